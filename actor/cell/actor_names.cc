#include "fraktor/actor/cell/actor_names.h"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/child_list.h"
#include "fraktor/actor/path/auto_name.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

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

ActorSlot* ParentSlotOf(const ActorSlot& slot) {
  // Acquire: pairs with the release of Adopt, and of whoever takes the slot over.
  return std::atomic_ref<ActorSlot*>(const_cast<ActorSlot&>(slot).kin.parent).load(std::memory_order_acquire);
}

absl::Status ActorNames::RegisterRoot(ActorSlot& root) {
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(registry_->RegisterRoot(PidOf(root, root.generation())));
  SetRegistered(root);
  FRAKTOR_ASSIGN_OR_RETURN(root_text_, registry_->TextOf(PidOf(root, root.generation())));
  return absl::OkStatus();
}

std::string ActorNames::RootText() const {
  MutexLock lock(mutex_);
  return root_text_;
}

absl::Status ActorNames::EnsureRegistered(ActorSlot& actor) {
  if (IsRegistered(NumberOf(actor))) return absl::OkStatus();
  ActorSlot* const parent = ParentSlotOf(actor);
  if (parent == nullptr) return absl::FailedPreconditionError("an actor without a parent has no path");
  FRAKTOR_RETURN_IF_ERROR(EnsureRegistered(*parent));
  FRAKTOR_RETURN_IF_ERROR(
      registry_->RegisterAuto(PidOf(actor, actor.generation()), PidOf(*parent, parent->generation()), NumberOf(actor)));
  SetRegistered(actor);
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

void ActorNames::Unregister(ActorSlot& actor, uint32_t generation, Instant now) {
  if (!Has(actor)) return;
  const Pid pid = PidOf(actor, generation);
  MutexLock lock(mutex_);
  if (absl::StatusOr<std::string> text = registry_->TextOf(pid); text.ok()) Remember(pid, *std::move(text));
  registry_->Unregister(pid, now).IgnoreError();
}

void ActorNames::Remember(Pid pid, std::string text) {
  if (ended_order_.size() < kRemembered) {
    ended_order_.push_back(pid);
  } else {
    ended_.erase(std::exchange(ended_order_[oldest_ended_], pid));
    oldest_ended_ = (oldest_ended_ + 1) % kRemembered;
  }
  ended_[pid] = std::move(text);
}

std::string ActorNames::TextOfEnded(ActorRef actor) const {
  if (!actor.IsActor()) return {};
  MutexLock lock(mutex_);
  const auto found = ended_.find(PidOf(*actor.slot(), actor.generation()));
  return found == ended_.end() ? std::string() : found->second;
}

std::string ActorNames::TextOf(ActorRef actor) const { return TextOf(actor, false); }

std::string ActorNames::CanonicalTextOf(ActorRef actor) const { return TextOf(actor, true); }

std::string ActorNames::TextInTurnOf(ActorRef actor) const { return Climb(actor); }

// What is read on the way up is only good if the actor lives at the end.
std::string ActorNames::TextOf(ActorRef actor, bool canonical) const {
  if (!actor.IsActor() || !actor.IsCurrent()) return {};
  std::string text = Climb(actor);
  if (text.empty() || !actor.IsCurrent()) return {};
  if (canonical) absl::StrAppend(&text, "#", UidOf(actor).value());
  return text;
}

// Up to the first that the registry knows. What was read is right if the actor lives afterwards: its ancestors live as
// long as it does. Otherwise the way may lead through slots that others have taken over, but they are still actors'.
std::string ActorNames::Climb(ActorRef actor) const {
  std::vector<uint64_t> numbers;
  const ActorSlot* slot = actor.slot();
  while (slot != nullptr) {
    const uint64_t number = NumberOf(*slot);
    if (IsRegistered(number)) break;
    // It is being spawned, and its name is not there yet.
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
  if (!actor.IsActor()) return {};
  MutexLock lock(mutex_);
  return registry_->UidOf(PidOf(*actor.slot(), actor.generation()));
}

ActorRef ActorNames::RefOf(Pid pid) {
  ActorSlot* const slot = pid.IsValid() ? ProcessSlots().At(pid.slot) : nullptr;
  return slot == nullptr ? ActorRef() : slot->RefAt(pid.generation);
}

ActorRef ActorNames::FindChild(ActorRef parent, std::string_view name) const {
  if (!parent.IsActor()) return {};
  {
    MutexLock lock(mutex_);
    const absl::StatusOr<PathSegment> segment = PathSegment::Parse(name);
    if (!segment.ok()) return {};
    const absl::StatusOr<ActorPath> path = registry_->PathOf(PidOf(*parent.slot(), parent.generation()));
    if (path.ok()) {
      if (const ActorRef found = RefOf(registry_->Find(path->Child(*segment))); !found.IsNoOne()) return found;
    }
  }
  const std::optional<uint64_t> number = ParseAutoName(name);
  return number.has_value() && *number <= ActorKin::kMaxNumber ? FindUnnamedChild(parent, *number) : ActorRef();
}

absl::Status ActorNames::WhyMissing(const ActorPath& path) const {
  if (!path.uid().IsNone()) {
    MutexLock lock(mutex_);
    FRAKTOR_RETURN_IF_ERROR(registry_->CheckUid(path, path.uid()));
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
  // An actor with an automatic name is found by its parent. So the search goes down from the last
  // ancestor with a name of its own, which the registry knows, and ends where there is no child: a
  // path from another node may have thousands of such names.
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

}  // namespace fraktor::inline v0
