#include "fraktor/actor/cell/internal/actor_names.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/registry/path_events.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

using path_internal::AutoNameText;
using path_internal::ParseAutoName;

namespace {

// Follows the text of the root, which ends with a slash.
constexpr absl::string_view kTempPrefix = "temp/";

Pid PidOf(const ActorSlot& slot, uint32_t generation) {
  return {.slot = ActorSlotTable::IndexOf(&slot), .generation = generation};
}

bool IsRegistered(uint64_t number) { return (number & ActorKin::kIsRegistered) != 0; }

void SetRegistered(ActorSlot& slot) {
  std::atomic_ref<uint64_t>(slot.kin.number).fetch_or(ActorKin::kIsRegistered, std::memory_order_relaxed);
}

absl::Status BadName(std::string_view name, const absl::Status& why) {
  return MakeError(absl::StatusCode::kInvalidArgument, ActorErrorKind::kInvalidName,
                   absl::StrCat("\"", ToAbsl(name).substr(0, 100), "\" is no name for an actor: ", why.message()));
}

absl::Status Taken(std::string_view name) {
  return MakeError(absl::StatusCode::kAlreadyExists, ActorErrorKind::kNameTaken,
                   absl::StrCat("the name \"", ToAbsl(name),
                                "\" is taken by a living child; stop that one first and wait for its Terminated, or "
                                "leave the name to the runtime"));
}

}  // namespace

absl::Status ActorNames::RegisterRoot(ActorSlot& root) {
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(registry_->RegisterRoot(PidOf(root, root.generation())));
  SetRegistered(root);
  FRAKTOR_ASSIGN_OR_RETURN(root_text_, registry_->TextOf(PidOf(root, root.generation())));
  return absl::OkStatus();
}

absl::Status ActorNames::EnsureRegistered(ActorSlot& actor) {
  // Without recursion: a tree may have very many levels.
  std::vector<ActorSlot*> missing;
  for (ActorSlot* at = &actor; !IsRegistered(NumberOf(*at)); at = ParentSlotOf(*at)) {
    if (ParentSlotOf(*at) == nullptr) return absl::FailedPreconditionError("an actor without a parent has no path");
    missing.push_back(at);
  }
  for (; !missing.empty(); missing.pop_back()) {
    ActorSlot& next = *missing.back();
    const ActorSlot& parent = *ParentSlotOf(next);
    FRAKTOR_RETURN_IF_ERROR(
        registry_->RegisterAuto(PidOf(next, next.generation()), PidOf(parent, parent.generation()), NumberOf(next)));
    SetRegistered(next);
  }
  return absl::OkStatus();
}

absl::Status ActorNames::Register(ActorSlot& actor, ActorSlot& parent, std::string_view name) {
  if (absl::StatusOr<PathSegment> segment = PathSegment::Create(name); !segment.ok()) {
    return BadName(name, segment.status());
  }
  return RegisterInternal(actor, parent, name);
}

absl::Status ActorNames::RegisterInternal(ActorSlot& actor, ActorSlot& parent, std::string_view name) {
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(EnsureRegistered(parent));
  const Pid parent_pid = PidOf(parent, parent.generation());
  absl::Status registered = registry_->Register(PidOf(actor, actor.generation()), parent_pid, name);
  if (ErrorKindOf<PathResolutionErrorKind>(registered) == PathResolutionErrorKind::kNameTaken) return Taken(name);
  FRAKTOR_RETURN_IF_ERROR(registered);
  SetRegistered(actor);
  return absl::OkStatus();
}

bool ActorNames::Has(const ActorSlot& actor) { return IsRegistered(NumberOf(actor)); }

void ActorNames::Unregister(ActorSlot& actor, uint32_t generation) {
  if (!Has(actor)) return;
  const Instant now = options_.toolbox.Now();
  std::vector<UidReservation> evicted;
  Instant first_expiry = Instant::InfiniteFuture();
  {
    MutexLock lock(mutex_);
    registry_->Unregister(PidOf(actor, generation), now).IgnoreError();
    evicted = registry_->TakeEvicted();
    if (!has_timer_) first_expiry = registry_->NextExpiry();
    has_timer_ = has_timer_ || first_expiry != Instant::InfiniteFuture();
  }
  if (first_expiry != Instant::InfiniteFuture()) ArmExpiry(first_expiry);
  // Without the lock: subscribers may look up paths.
  for (const UidReservation& reservation : evicted) {
    options_.events.PublishToAll(UidReservationEvicted{
        .path = reservation.path, .uid = reservation.uid, .reserved_until = reservation.deadline});
  }
}

ActorNames::~ActorNames() {
  MutexLock lock(mutex_);
  if (has_timer_) options_.toolbox.CancelTimer(timer_);
}

void ActorNames::ArmExpiry(Instant deadline) {
  // The timer may fire while this object is being destroyed.
  const absl::StatusOr<TimerId> timer = options_.toolbox.ScheduleAt(deadline, [weak = weak_from_this()] {
    if (const std::shared_ptr<ActorNames> names = weak.lock()) names->Expire();
  });
  MutexLock lock(mutex_);
  // If the toolbox has no timer left, the next actor that ends tries again.
  has_timer_ = timer.ok();
  if (timer.ok()) timer_ = *timer;
}

void ActorNames::Expire() {
  const Instant now = options_.toolbox.Now();
  Instant next;
  {
    MutexLock lock(mutex_);
    registry_->Expire(now, kExpiredAtOnce);
    next = registry_->NextExpiry();
    has_timer_ = next != Instant::InfiniteFuture();
  }
  // More expired reservations end at once. Others wait for kExpiryPeriod, so that reservations that
  // expire at nearly the same time end together.
  if (next != Instant::InfiniteFuture()) ArmExpiry(next <= now ? now : std::max(next, now + kExpiryPeriod));
}

std::string ActorNames::TextOfEnded(ActorRef actor) const {
  if (!actor.IsActor()) return {};
  MutexLock lock(mutex_);
  const UidReservation* const ended = registry_->FindEnded(PidOf(*actor.slot(), actor.generation()));
  return ended == nullptr ? std::string() : ended->path;
}

// The text is valid only if the actor lives after Climb.
std::string ActorNames::TextOf(ActorRef actor) const {
  if (!actor.IsActor() || !actor.IsCurrent()) return {};
  std::string text = Climb(actor);
  return actor.IsCurrent() ? text : std::string();
}

std::string ActorNames::TextOfPromise(ActorRef promise) {
  {
    MutexLock lock(mutex_);
    const std::string* const name = temps_.Find(promise);
    if (name != nullptr) return absl::StrCat(root_text_, kTempPrefix, *name);
  }
  const std::string target_name = NameOf(TargetOf(promise));
  // Another promise may have taken the slot, and its target may have been read.
  if (!promise.IsCurrent()) return {};
  MutexLock lock(mutex_);
  return absl::StrCat(root_text_, kTempPrefix, temps_.NameOf(promise, target_name));
}

std::string ActorNames::CanonicalTextOf(ActorRef actor) {
  if (actor.IsPromise()) {
    const std::string text = TextOfPromise(actor);
    return text.empty() ? text : absl::StrCat(text, "#", UidOf(actor).value());
  }
  if (std::string text = TextOf(actor); !text.empty()) return absl::StrCat(text, "#", UidOf(actor).value());
  if (!actor.IsActor()) return {};
  MutexLock lock(mutex_);
  const UidReservation* const ended = registry_->FindEnded(PidOf(*actor.slot(), actor.generation()));
  return ended == nullptr ? std::string() : absl::StrCat(ended->path, "#", ended->uid.value());
}

std::string ActorNames::TextInTurnOf(ActorRef actor) const { return Climb(actor); }

// Walks up to the first ancestor that the registry knows. The text is valid if the actor lives
// afterwards: its ancestors live as long as it does. Otherwise other actors may have taken the
// slots on the way.
std::string ActorNames::Climb(ActorRef actor) const {
  std::vector<uint64_t> numbers;
  const ActorSlot* slot = actor.slot();
  while (slot != nullptr) {
    const uint64_t number = NumberOf(*slot);
    if (IsRegistered(number)) break;
    // The actor is being spawned, and is not registered yet.
    if ((number & ActorKin::kIsNamed) != 0) return {};
    numbers.push_back(number);
    slot = ParentSlotOf(*slot);
  }
  if (slot == nullptr) return {};
  std::string text;
  {
    MutexLock lock(mutex_);
    absl::StatusOr<std::string> known =
        registry_->TextOf(PidOf(*slot, slot == actor.slot() ? actor.generation() : slot->generation()));
    if (!known.ok()) return {};
    text = *std::move(known);
  }
  while (!numbers.empty()) {
    if (text.empty() || text.back() != '/') text += '/';
    absl::StrAppend(&text, ToAbsl(AutoNameText(numbers.back()).view()));
    numbers.pop_back();
  }
  return text;
}

std::string ActorNames::NameOf(ActorRef actor) const {
  const std::string text = TextOf(actor);
  const size_t slash = text.rfind('/');
  return slash == std::string::npos ? text : text.substr(slash + 1);
}

ActorUid ActorNames::UidOf(ActorRef actor) const {
  // Promises have slot numbers of their own. Generations of actors are odd, so even ones stand for
  // promises.
  if (actor.IsPromise()) {
    return uids_.UidOf({.slot = PromiseSlotTable::IndexOf(actor.promise_slot()), .generation = actor.generation() + 1});
  }
  return actor.IsActor() ? uids_.UidOf(PidOf(*actor.slot(), actor.generation())) : ActorUid();
}

ActorRef ActorNames::RefOf(Pid pid) {
  ActorSlot* const slot = pid.IsValid() ? ProcessSlots().At(pid.slot) : nullptr;
  return slot == nullptr ? ActorRef() : slot->RefAt(pid.generation);
}

ActorRef ActorNames::FindChild(ActorRef parent, std::string_view name) const {
  if (!parent.IsActor()) return {};
  std::optional<ActorPath> child;
  {
    MutexLock lock(mutex_);
    const absl::StatusOr<PathSegment> segment = PathSegment::Parse(name);
    if (!segment.ok()) return {};
    const absl::StatusOr<ActorPath> path = registry_->PathOf(PidOf(*parent.slot(), parent.generation()));
    if (path.ok()) {
      child = path->Child(*segment);
      if (const ActorRef found = RefOf(registry_->Find(*child)); !found.IsNoOne()) return found;
    }
  }
  if (child.has_value()) {
    if (const ActorRef promise = FindPromise(*child); !promise.IsNoOne()) return promise;
  }
  const std::optional<uint64_t> number = ParseAutoName(name);
  return number.has_value() && *number <= ActorKin::kMaxNumber ? FindUnnamedChild(parent, *number) : ActorRef();
}

ActorRef ActorNames::FindPromise(const ActorPath& path) const {
  if (path.segment_count() != 2 || path.segment(0) != GuardianSegments::NameOf(Guardian::kTemp)) return {};
  ActorRef promise;
  {
    MutexLock lock(mutex_);
    if (!registry_->IsOurs(path)) return {};
    promise = temps_.FindByName(path.segment(1));
  }
  const bool is_meant = promise.IsCurrent() && (path.uid().IsNone() || path.uid() == UidOf(promise));
  return is_meant ? promise : ActorRef();
}

absl::Status ActorNames::WhyMissing(const ActorPath& path) const {
  bool is_reserved = false;
  {
    MutexLock lock(mutex_);
    is_reserved = registry_->IsReserved(path);
  }
  if (is_reserved) {
    return MakeError(absl::StatusCode::kNotFound, PathResolutionErrorKind::kUidReserved,
                     absl::StrCat("the actor ", ToAbsl(path.ToCanonical()),
                                  " has ended; leave out the uid to mean the actor that has the path now"),
                     {{"uid", path.uid().value()}});
  }
  return MakeError(absl::StatusCode::kNotFound, PathResolutionErrorKind::kPidUnknown,
                   absl::StrCat("no living actor has the path ", ToAbsl(path.ToCanonical())));
}

ActorRef ActorNames::Find(const ActorPath& path) const {
  Pid pid;
  {
    MutexLock lock(mutex_);
    pid = registry_->Find(path);
  }
  if (const ActorRef found = RefOf(pid); !found.IsNoOne()) return found;
  if (const ActorRef promise = FindPromise(path); !promise.IsNoOne()) return promise;
  // The parent finds a child with an automatic name. The search starts at the last ancestor with a
  // name of its own, which the registry knows, and ends at the first name without a child: a path
  // from another node may have thousands of automatic names.
  size_t named = path.segment_count();
  while (named > 0 && ParseAutoName(path.segment(named - 1)).has_value()) --named;
  if (named == path.segment_count()) return {};
  std::vector<std::string_view> names;
  for (size_t i = 0; i < named; ++i) names.push_back(path.segment(i));
  const ActorPath ancestor = path_internal::PathBuilder::OfNames(path, names, ActorUid());
  {
    MutexLock lock(mutex_);
    pid = registry_->Find(ancestor);
  }
  ActorRef found = RefOf(pid);
  for (size_t i = named; i < path.segment_count() && !found.IsNoOne(); ++i) found = FindChild(found, path.segment(i));
  const bool is_meant = !found.IsNoOne() && (path.uid().IsNone() || UidOf(found) == path.uid());
  return is_meant ? found : ActorRef();
}

}  // namespace fraktor::inline v0::actor_internal
