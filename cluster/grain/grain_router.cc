#include "fraktor/cluster/grain/grain_router.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/event/orphaned_message.h"
#include "fraktor/actor/event/undelivered_message.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/grain/grain_gate.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/grain/last_moment.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::MessageInvoker;
using actor_internal::Turn;

namespace {

// Whether another try may have more luck: the node was restarted, or will be, or its grains go elsewhere.
bool MayPass(DeadLetterReason reason) {
  return reason == DeadLetterReason::kNewIncarnation || reason == DeadLetterReason::kQuarantined;
}

ActivationRecord RecordOf(ActorContext& context, ActorRef actor) {
  return {.pid = context.system().CanonicalPathOf(actor), .snapshot = {}, .version = 0, .actor = actor};
}

absl::Status TooManyWait(const GrainKey& key, size_t waiting) {
  return MakeLookupError(LookupError::kPending, absl::StatusCode::kResourceExhausted, key,
                         absl::StrCat(waiting, " calls wait for their grains already; try again later"));
}

// In an order that does not depend on how a table hashes.
template <class Table>
std::vector<GrainKey> KeysInOrder(const Table& table) {
  std::vector<GrainKey> keys;
  keys.reserve(table.size());
  for (const auto& [key, value] : table) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

// As of a question to any actor of another node.
absl::Status NoCodecFor(const Envelope& message) {
  const absl::Status missing = CodecRegistry::NotRegistered(message.type());
  absl::Status why = absl::InvalidArgumentError(missing.message());
  missing.ForEachPayload([&why](absl::string_view url, const absl::Cord& payload) { why.SetPayload(url, payload); });
  return why;
}

void LogError(ActorContext& context, const std::string& text) {
  ActorSystem& system = context.system();
  system.log().Log(LogLevel::kError,
                   {.at = system.toolbox().WallNow(), .path = context.Path(), .type = "GrainRouter", .text = text});
}

}  // namespace

std::string GrainActorName(const GrainKey& key) {
  constexpr size_t kLongest = 100;
  bool is_exact = true;
  std::string name;
  const auto append = [&](std::string_view part) {
    for (const char c : part) {
      if (name.size() == kLongest) {
        is_exact = false;
        return;
      }
      const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                            c == '.' || c == '_' || c == '@';
      is_exact = is_exact && is_plain;
      name.push_back(is_plain ? c : '_');
    }
  };
  append(key.kind());
  name.push_back(':');
  append(key.identity());
  return is_exact ? name : absl::StrCat(name, "~", absl::Hex(key.hash()));
}

struct GrainRouter::Turn {
  Turn(GrainRouter& r, ActorContext& c) : router(r), context(c), outer(std::exchange(current, this)) {}
  ~Turn() { current = outer; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  GrainRouter& router;
  ActorContext& context;
  Turn* const outer;
  static thread_local constinit Turn* current;
};
thread_local constinit GrainRouter::Turn* GrainRouter::Turn::current = nullptr;

GrainRouter::GrainRouter(std::shared_ptr<const GrainRouterParts> parts)
    : parts_(std::move(parts)), filtered_(parts_->max_waiting), waiting_(parts_->counts->waiting_calls) {
  // Of a former life none are left.
  waiting_.Reset();
  for (const GrainKind& kind : parts_->kinds) {
    kinds_.emplace(kind.name, &kind);
    parts_->counts->kinds[kind.name].active.Reset();
    GrainCallFilters filters = parts_->incoming_filters;
    filters.insert(filters.end(), kind.filters.begin(), kind.filters.end());
    if (!filters.empty()) incoming_filters_.emplace(kind.name, std::move(filters));
  }
}

absl::Status GrainRouter::Receive(ActorContext& context, Envelope& message) {
  const ActorRef sender = message.sender();
  const absl::Status handled = MessageInvoker::Call("the router of grains", [&] { return Handle(context, message); });
  if (handled.ok()) [[likely]]
    return absl::OkStatus();
  // Whoever's code that was, the grains of this node have nothing to do with it.
  if (message.Is<GrainCall>() && !sender.IsNoOne()) context.Tell(sender, ErrorReply{NamedHere(handled)});
  LogError(context, absl::StrCat("could not handle ", ToAbsl(message.type()->name()), ": ", handled.message()));
  return absl::OkStatus();
}

absl::Status GrainRouter::Handle(ActorContext& context, Envelope& message) {
  const Turn turn(*this, context);
  if (message.Is<GrainCall>()) {
    GrainCall call = message.Take<GrainCall>();
    // From now on it is somebody else who answers.
    message.set_target_word(message.target_word() | kForwarded);
    if (call.message != nullptr) {
      call.message->set_sender(message.sender());
    } else {
      absl::StatusOr<EnvelopePtr> opened = OpenMessage(call.closed, call.refs, message.sender(), parts_->opening());
      if (!opened.ok()) {
        RefuseClosed(context, call, message.sender(), opened.status());
        return absl::OkStatus();
      }
      call.message = *std::move(opened);
    }
    if (!parts_->outgoing_filters.empty() && call.hops == 0 && !call.message->type()->is_intercepted()) {
      if (const FilteredCalls::Entry entry =
              filtered_.Enter(context, parts_->outgoing_filters, call.key, *call.message, call.timeout);
          !entry.status.ok()) {
        RefuseFiltered(context, call, entry);
        return absl::OkStatus();
      }
    }
    OnCall(context, std::move(call));
  } else if (message.Is<GrainFound>()) {
    OnFound(context, message.As<GrainFound>());
  } else if (message.Is<GrainLocated>()) {
    OnLocated(context, message.Take<GrainLocated>());
  } else if (message.Is<LocateGrain>()) {
    OnLocate(context, message.As<LocateGrain>());
  } else if (message.Is<InquiryAnswered>()) {
    OnInquiryAnswered(context, message.As<InquiryAnswered>());
  } else if (message.Is<GrainGone>()) {
    OnGone(message.As<GrainGone>());
  } else if (message.Is<LookupsDue>()) {
    OnDue(context);
  } else if (message.Is<StartGrain>()) {
    OnStart(context, message.Take<StartGrain>());
  } else if (message.Is<StopGrain>()) {
    OnStop(context, message.Take<StopGrain>());
  } else if (message.Is<GrainEnded>()) {
    OnEnded(context, message.As<GrainEnded>());
  } else if (message.Is<MembersLeft>()) {
    OnMembersLeft(context, message.As<MembersLeft>());
  } else if (message.Is<GrainFarewell>()) {
    OnFarewell(context, message.As<GrainFarewell>());
  } else if (message.Is<FarewellHeard>()) {
    OnFarewellHeard(context, message.As<FarewellHeard>());
  } else if (message.Is<SayFarewell>()) {
    OnSayFarewell(context, message.As<SayFarewell>());
  } else if (message.Is<FarewellDue>()) {
    GoOnWithFarewell(context);
  } else if (message.Is<CallLost>()) {
    OnCallLost(context, message.As<CallLost>());
  } else if (message.Is<LocateLost>()) {
    OnLocateLost(context, message.As<LocateLost>());
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

absl::Status GrainRouter::OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) {
  const absl::Status handled = MessageInvoker::Call("the router of grains", [&] {
    filtered_.OnReply(context, ask, answer);
    return absl::OkStatus();
  });
  if (!handled.ok()) LogError(context, absl::StrCat("could not pass on an answer: ", handled.message()));
  return absl::OkStatus();
}

absl::Status GrainRouter::PreRestart(ActorContext& context, const absl::Status& reason, Envelope* /*message*/) {
  if (parts_->gate != nullptr) {
    parts_->gate->Shut();
    parts_->gate->SetRouterHears(false);
  }
  losses_.Reset();
  unhandled_.Reset();
  const absl::Status why =
      absl::UnavailableError(absl::StrCat("the router of grains of the node at \"", parts_->authority,
                                          "\" has failed, and begins anew; try again: ", reason.message()));
  for (const GrainKey& key : KeysInOrder(lookups_)) RefuseAll(context, lookups_.find(key), why);
  // They have ended when the next life begins.
  for (const GrainKey& key : KeysInOrder(grains_)) {
    Grain& grain = grains_.find(key)->second;
    if (parts_->gate != nullptr) parts_->gate->Vacate(grain.actor);
    Legacy& legacy = grain.Leave();
    for (GrainCall& call : legacy.unhandled) Refuse(context, std::move(call), why);
    waiting_ -= legacy.unhandled.size();
    parts_->estate->grains.push_back({.key = key,
                                      .token = grain.token,
                                      .is_stopping = grain.is_stopping,
                                      .stopped = std::move(legacy.stopped),
                                      .next = std::move(legacy.next)});
  }
  grains_.clear();
  for (auto& [kind, counts] : parts_->counts->kinds) counts.active.Reset();
  context.StopChildren();
  return absl::OkStatus();
}

absl::Status GrainRouter::PostRestart(ActorContext& context, const absl::Status& /*reason*/) {
  for (GrainEstate::Grain& grain : std::exchange(parts_->estate->grains, {})) {
    for (Promise<void>& stopped : grain.stopped) stopped.Set();
    if (!grain.is_stopping) parts_->driver->ActivationEnded(grain.key, grain.token);
    for (StartGrain& start : grain.next) OnStart(context, std::move(start));
  }
  if (parts_->gate != nullptr) parts_->gate->Reopen();
  return PreStart(context);
}

void GrainRouter::PostStop(ActorContext& /*context*/) {
  if (parts_->gate != nullptr) parts_->gate->Shut();
  for (auto& [kind, counts] : parts_->counts->kinds) counts.active.Reset();
  losses_.Reset();
  unhandled_.Reset();
  if (parts_->on_ended != nullptr) parts_->on_ended();
}

SupervisionDirective GrainRouter::OnChildFailure(ActorContext& /*context*/, const Failure& failure) {
  const SupervisionDirective directive = supervision().Decide(failure);
  if (failure.cause == FailureCause::kInitialization) {
    const std::optional<GrainKey> key = parts_->gate == nullptr ? std::nullopt : parts_->gate->KeyOf(failure.child);
    const auto unborn = key.has_value() ? grains_.find(*key) : grains_.end();
    if (unborn != grains_.end() && unborn->second.actor == failure.child) {
      unborn->second.Leave().failure = Annotate(
          failure.error, absl::StrCat("grain \"", key->ToString(), "\", on the node at \"", parts_->authority, "\""));
    }
  }
  // Nobody above knows what a grain is. It ends, and is there again when it is needed.
  return directive == SupervisionDirective::kEscalate ? SupervisionDirective::kStop : directive;
}

void GrainRouter::RefuseClosed(ActorContext& context, const GrainCall& call, ActorRef sender,
                               const absl::Status& why) const {
  ActorSystem& system = context.system();
  const std::string from = sender.IsNoOne() ? std::string() : context.PathOf(sender);
  const std::string recipient = absl::StrCat("grain ", call.key.ToString());
  system.dead_letters().Publish(DeadLetter{{.reason = DeadLetterReason::kNotReadable,
                                            .sender = from,
                                            .recipient = recipient,
                                            .message = {.type_name = ManifestOfClosed(call)}}},
                                system.toolbox().Now());
  if (!sender.IsNoOne()) context.Tell(sender, ErrorReply{NamedHere(why)});
}

absl::Status GrainRouter::NamedHere(const absl::Status& why) const {
  const std::string here = absl::StrCat("the node at \"", parts_->authority, "\"");
  return absl::StrContains(why.message(), here) ? why : Annotate(why, here);
}

void GrainRouter::OnCall(ActorContext& context, GrainCall call) {
  if (call.returns != 0 && call.router.IsNoOne() && !call.is_redirected) {
    OnSentBack(context, std::move(call));
    return;
  }
  if (!call.ended.IsNoOne()) {
    if (!MayReturn(context, call)) return;
    const auto ending = grains_.find(call.key);
    if (ending != grains_.end() && ending->second.actor.any_slot() == call.ended.any_slot() &&
        ending->second.actor.generation() == call.ended.generation()) {
      Keep(context, ending->second, std::move(call));
      return;
    }
  }
  if (!lookups_.contains(call.key)) {
    const PlacementResolutionPtr known = parts_->driver->Cached(call.key);
    // Who was sent here by the record is not sent away by what this node remembers.
    if (known != nullptr && (known->locality == PlacementLocality::kLocal || !call.is_redirected)) {
      Deliver(context, std::move(call), *known);
      return;
    }
  }
  if (!call.router.IsNoOne()) {
    context.Tell(call.router, GrainGone{.key = call.key, .authority = parts_->authority});
  }
  Wait(context, std::move(call));
}

void GrainRouter::Wait(ActorContext& context, GrainCall call) {
  const Lookups::iterator begun = Enqueue(context, std::move(call));
  if (begun != lookups_.end()) Ask(context, begun);
}

GrainRouter::Lookups::iterator GrainRouter::Enqueue(ActorContext& context, GrainCall call) {
  if (waiting_.value() >= parts_->max_waiting) {
    const absl::Status why = TooManyWait(call.key, waiting_.value());
    Refuse(context, std::move(call), why);
    return lookups_.end();
  }
  const Instant now = context.system().toolbox().Now();
  if (call.wait_until == Instant::InfinitePast()) {
    const ActorRef sender = call.message->sender();
    if (sender.IsPromise()) {
      call.wait_until = LastMoment(sender, now);
    } else if (call.timeout > absl::ZeroDuration()) {
      // Who asks is on another node, and waits no longer than that.
      call.wait_until = now + std::min(call.timeout, kMaxWaitOfOthers);
    } else {
      call.wait_until = now + parts_->max_wait;
    }
  }
  ++waiting_;
  const auto [lookup, is_new] = lookups_.try_emplace(call.key);
  lookup->second.is_redirected |= call.is_redirected;
  lookup->second.calls.push_back(std::move(call));
  if (is_new) {
    lookup->second.due = dues_.end();
    return lookup;
  }
  if (lookup->second.due->first > lookup->second.calls.back().wait_until) SetDue(context, lookup);
  return lookups_.end();
}

void GrainRouter::Ask(ActorContext& context, Lookups::iterator at) {
  Lookup& lookup = at->second;
  const uint64_t attempt = lookup.attempt = next_number_++;
  lookup.is_paused = false;
  // The driver answers, whatever happens.
  lookup.step_at = Instant::InfiniteFuture();
  // It may start the grain at once, which leaves the lookups alone.
  Future<PlacementResolutionPtr> found = parts_->driver->Resolve(at->first, {.is_redirected = lookup.is_redirected});
  if (found.IsReady()) {
    Found(context, at, found.Take());
    return;
  }
  SetDue(context, at);
  lookup.watching = std::move(found).Then(*parts_->executor, [self = context.self(), key = at->first,
                                                              attempt](absl::StatusOr<PlacementResolutionPtr> answer) {
    Tell(self, GrainFound{.key = key, .attempt = attempt, .found = std::move(answer)});
  });
}

void GrainRouter::OnFound(ActorContext& context, const GrainFound& found) {
  const auto lookup = lookups_.find(found.key);
  if (lookup == lookups_.end() || lookup->second.attempt != found.attempt) return;
  Found(context, lookup, found.found);
}

void GrainRouter::Found(ActorContext& context, Lookups::iterator lookup,
                        const absl::StatusOr<PlacementResolutionPtr>& found) {
  if (!found.ok()) {
    Fail(context, lookup, found.status());
  } else if ((*found)->locality == PlacementLocality::kRemote && (*found)->pid.empty()) {
    Locate(context, lookup, **found);
  } else {
    Settle(context, lookup, **found);
  }
}

void GrainRouter::Locate(ActorContext& context, Lookups::iterator at, const PlacementResolution& owner) {
  Lookup& lookup = at->second;
  const std::string& authority = owner.decision.authority;
  if (authority == parts_->authority) {
    // Another life of this node is in the topology, or this one is not yet.
    Fail(context, at,
         MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, at->first,
                         "this node is to run it, and is no member now; try again"));
    return;
  }
  const absl::StatusOr<ActorRef> router = RouterAt(authority);
  if (!router.ok()) {
    Fail(context, at,
         MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, at->first,
                         ToStd(router.status().message())));
    return;
  }
  // One that is lost on the way is asked again sooner if that is heard of, and later otherwise.
  if (router->IsRemote()) HearsOfLosses(context);
  lookup.attempt = next_number_++;
  lookup.is_paused = false;
  lookup.asked = authority;
  lookup.asked_router = *router;
  lookup.step_at = context.system().toolbox().Now() + parts_->locate_timeout;
  SetDue(context, at);
  context.Tell(*router, LocateGrain{.key = at->first, .attempt = lookup.attempt, .is_repeated = lookup.failures > 0});
}

void GrainRouter::OnLocated(ActorContext& context, GrainLocated located) {
  const auto at = lookups_.find(located.key);
  if (at == lookups_.end() || at->second.attempt != located.attempt) return;
  if (!located.status.ok()) {
    Fail(context, at, located.status);
    return;
  }
  if (located.authority == parts_->authority) {
    // The record says that it runs here: what is known here does not.
    at->second.is_redirected = true;
    Ask(context, at);
    return;
  }
  const ActorRef router = located.authority == at->second.asked ? at->second.asked_router : ActorRef();
  const auto where = std::make_shared<PlacementResolution>(
      PlacementResolution{.decision = {.key = at->first,
                                       .authority = std::move(located.authority),
                                       .owner = std::move(located.owner),
                                       .observed_at = context.system().toolbox().Now()},
                          .locality = PlacementLocality::kRemote,
                          .pid = std::move(located.pid),
                          .token = located.token,
                          .actor = router});
  parts_->driver->Learn(where);
  Settle(context, at, *where);
}

std::vector<GrainCall> GrainRouter::Take(Lookups::iterator lookup) {
  std::vector<GrainCall> calls = std::move(lookup->second.calls);
  if (lookup->second.due != dues_.end()) dues_.erase(lookup->second.due);
  lookups_.erase(lookup);
  waiting_ -= calls.size();
  return calls;
}

void GrainRouter::Settle(ActorContext& context, Lookups::iterator lookup, const PlacementResolution& where) {
  if (where.locality == PlacementLocality::kRemote && left_.contains(where.decision.owner)) {
    // The answer was on its way when its node has left.
    parts_->driver->RemovePid(lookup->first, where.pid);
    Fail(context, lookup,
         MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, lookup->first,
                         absl::StrCat("the node at \"", where.decision.authority, "\" has left; try again")));
    return;
  }
  for (GrainCall& call : Take(lookup)) Deliver(context, std::move(call), where);
}

void GrainRouter::RefuseAll(ActorContext& context, Lookups::iterator lookup, const absl::Status& why) {
  for (GrainCall& call : Take(lookup)) Refuse(context, std::move(call), why);
}

void GrainRouter::Fail(ActorContext& context, Lookups::iterator at, const absl::Status& why) {
  ++parts_->counts->failed_lookups;
  const std::optional<LookupError> error = ErrorKindOf<LookupError>(why);
  if (!IsRetryableLookup(why) && error != LookupError::kNotStarted && error != LookupError::kTimeout) {
    RefuseAll(context, at, why);
    return;
  }
  Lookup& lookup = at->second;
  if (error == LookupError::kNotStarted || error == LookupError::kNotReady) {
    // This node is no member, or will not be one for long: who has sent a call here finds a better place.
    std::vector<GrainCall> ours;
    for (GrainCall& call : lookup.calls) {
      if (call.router.IsNoOne()) {
        ours.push_back(std::move(call));
      } else {
        --waiting_;
        SendBack(context, std::move(call), why);
      }
    }
    lookup.calls = std::move(ours);
    if (lookup.calls.empty()) {
      Take(at);
      return;
    }
  }
  Pause(context, at, why);
}

void GrainRouter::Pause(ActorContext& context, Lookups::iterator at, const absl::Status& why) {
  Lookup& lookup = at->second;
  absl::Duration pause = parts_->min_backoff;
  for (int i = 0; i < lookup.failures && pause < parts_->max_backoff; ++i) pause *= 2;
  ++lookup.failures;
  lookup.why = why;
  lookup.watching = {};
  lookup.attempt = 0;
  lookup.is_paused = true;
  lookup.step_at = context.system().toolbox().Now() + std::min(pause, parts_->max_backoff);
  SetDue(context, at);
}

// When something has to be done about a lookup: its next step, or the end of the first call's patience.
void GrainRouter::SetDue(ActorContext& context, Lookups::iterator at) {
  Lookup& lookup = at->second;
  Instant due = lookup.step_at;
  // Mostly the first has waited longest.
  for (const GrainCall& call : lookup.calls) due = std::min(due, call.wait_until);
  if (lookup.due == dues_.end()) {
    lookup.due = dues_.emplace(due, at->first);
  } else {
    if (lookup.due->first == due) return;
    Dues::node_type node = dues_.extract(lookup.due);
    node.key() = due;
    lookup.due = dues_.insert(std::move(node));
  }
  if (due >= timer_at_) return;
  timer_at_ = due;
  // A timer that fires in vain does no harm. Without one the next that is armed does it.
  context.system()
      .toolbox()
      .ScheduleAt(due, [self = context.self()] { Tell(self, LookupsDue{}); })
      .status()
      .IgnoreError();
}

void GrainRouter::OnDue(ActorContext& context) {
  const Instant now = context.system().toolbox().Now();
  timer_at_ = Instant::InfiniteFuture();
  while (!dues_.empty() && dues_.begin()->first <= now) {
    const auto at = lookups_.find(dues_.begin()->second);
    dues_.erase(dues_.begin());
    Lookup& lookup = at->second;
    lookup.due = dues_.end();
    std::vector<GrainCall> patient;
    for (GrainCall& call : lookup.calls) {
      if (now < call.wait_until) {
        patient.push_back(std::move(call));
        continue;
      }
      --waiting_;
      const std::string why =
          lookup.why.ok() ? (lookup.asked.empty() ? std::string("it is being looked for")
                                                  : absl::StrCat("the node at \"", lookup.asked, "\" does not answer"))
                          : std::string(lookup.why.message());
      const LookupError error = ErrorKindOf<LookupError>(lookup.why).value_or(LookupError::kTimeout);
      Refuse(context, std::move(call),
             MakeLookupError(error, absl::StatusCode::kUnavailable, at->first,
                             absl::StrCat("not found in time, in ", lookup.failures + 1, " attempts: ", why)));
    }
    lookup.calls = std::move(patient);
    if (lookup.calls.empty()) {
      lookups_.erase(at);
      continue;
    }
    if (now < lookup.step_at) {
      SetDue(context, at);
    } else if (lookup.is_paused) {
      Ask(context, at);
    } else {
      Fail(context, at,
           MakeLookupError(LookupError::kTimeout, absl::StatusCode::kUnavailable, at->first,
                           absl::StrCat("its owner, the node at \"", lookup.asked, "\", does not answer")));
    }
  }
  if (dues_.empty() || dues_.begin()->first >= timer_at_) return;
  timer_at_ = dues_.begin()->first;
  context.system()
      .toolbox()
      .ScheduleAt(timer_at_, [self = context.self()] { Tell(self, LookupsDue{}); })
      .status()
      .IgnoreError();
}

void GrainRouter::OnLocate(ActorContext& context, const LocateGrain& locate) {
  const GrainKey& key = locate.key;
  if (inquiries_.size() >= kMaxInquiries) {
    context.Reply(Located(key, locate.attempt,
                          MakeLookupError(LookupError::kPending, absl::StatusCode::kResourceExhausted, key,
                                          "many others are being looked for; try again")));
    return;
  }
  if (locate.is_repeated) ForgetPlace(key);
  Future<PlacementResolutionPtr> found = parts_->driver->Resolve(key);
  if (found.IsReady()) {
    context.Reply(Located(key, locate.attempt, found.Take()));
    return;
  }
  const uint64_t number = next_number_++;
  Inquiry& inquiry = inquiries_[number];
  inquiry.asker = context.sender();
  inquiry.attempt = locate.attempt;
  inquiry.watching = std::move(found).Then(
      *parts_->executor, [self = context.self(), key, number](absl::StatusOr<PlacementResolutionPtr> answer) {
        Tell(self, InquiryAnswered{.number = number, .key = key, .found = std::move(answer)});
      });
}

void GrainRouter::OnInquiryAnswered(ActorContext& context, const InquiryAnswered& answered) {
  const auto at = inquiries_.find(answered.number);
  if (at == inquiries_.end()) return;
  context.Tell(at->second.asker, Located(answered.key, at->second.attempt, answered.found));
  inquiries_.erase(at);
}

GrainLocated GrainRouter::Located(const GrainKey& key, uint64_t attempt,
                                  const absl::StatusOr<PlacementResolutionPtr>& found) const {
  GrainLocated located{.key = key, .attempt = attempt};
  if (!found.ok()) {
    located.status = NamedHere(found.status());
    return located;
  }
  const PlacementResolution& where = **found;
  if (where.pid.empty()) {
    located.status =
        MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, key,
                        absl::StrCat("the node at \"", parts_->authority, "\" takes \"", where.decision.owner,
                                     "\" for its owner: not all know the same members yet; try again"));
    return located;
  }
  located.authority = where.decision.authority;
  located.owner = where.decision.owner;
  located.pid = where.pid;
  located.token = where.token;
  return located;
}

void GrainRouter::OnGone(const GrainGone& gone) {
  const PlacementResolutionPtr known = parts_->driver->Cached(gone.key);
  if (known == nullptr || known->locality == PlacementLocality::kLocal || known->decision.authority != gone.authority) {
    return;
  }
  parts_->driver->RemovePid(gone.key, known->pid);
}

void GrainRouter::Deliver(ActorContext& context, GrainCall call, const PlacementResolution& where) {
  if (where.locality == PlacementLocality::kLocal) {
    const auto grain = grains_.find(call.key);
    if (grain != grains_.end() && grain->second.token == where.token && !grain->second.is_stopping) {
      const ActorRef actor = grain->second.actor;
      if (grain->second.HasUnhandled() || !actor.IsCurrent()) {
        Keep(context, grain->second, std::move(call));
        return;
      }
      const bool is_intercepted = call.message->type()->is_intercepted();
      // One that comes back has passed them.
      if (grain->second.filters != nullptr && !is_intercepted && call.ended.IsNoOne()) {
        if (const FilteredCalls::Entry entry =
                filtered_.Enter(context, *grain->second.filters, call.key, *call.message, call.timeout);
            !entry.status.ok()) {
          RefuseFiltered(context, call, entry);
          return;
        }
      }
      if (is_intercepted) {
        ActorContext::worker().SendIntercepted(grain->second.actor, call.message.release());
      } else {
        ActorContext::worker().Send(grain->second.actor, call.message.release());
      }
      // What comes from other nodes may go to the grain without the router as soon as the ticket is gone.
      if (call.hops != 0) ActorContext::worker().outbox.Flush();
      return;
    }
    // It has ended since: the next lookup activates it anew.
    if (++call.hops <= kMaxHops) {
      Wait(context, std::move(call));
      return;
    }
  } else if (++call.hops <= kMaxHops) {
    const absl::StatusOr<ActorRef> router = RouterAt(where.decision.authority);
    if (!router.ok()) {
      parts_->driver->RemovePid(call.key, where.pid);
      const absl::Status why = MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, call.key,
                                               ToStd(router.status().message()));
      Refuse(context, std::move(call), why);
      return;
    }
    if (!router->IsRemote() && !router->IsCurrent()) {
      // Of a system of this process that has ended, and is a member still: it does not get there, which is known at once.
      ++call.returns;
      call.hops = 1;
      OnSentBack(context, std::move(call));
      return;
    }
    call.is_redirected = true;
    call.router = context.self();
    Send(context, *router, std::move(call));
    return;
  }
  const absl::Status why =
      MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, call.key,
                      absl::StrCat("not found after ", kMaxHops, " attempts, the last for the node at \"",
                                   where.decision.authority, "\": the cluster is changing; try again"));
  Refuse(context, std::move(call), why);
}

void GrainRouter::SendBack(ActorContext& context, GrainCall call, const absl::Status& why) {
  if (++call.returns > kMaxSentBack && call.timeout <= absl::ZeroDuration()) {
    Refuse(context, std::move(call), why);
    return;
  }
  const ActorRef router = std::exchange(call.router, ActorRef());
  call.is_redirected = false;
  call.hops = 1;
  Send(context, router, std::move(call));
}

void GrainRouter::Send(ActorContext& context, ActorRef router, GrainCall call) {
  call.wait_until = Instant::InfinitePast();
  const ActorRef sender = call.message->sender();
  if (!router.IsRemote()) {
    ActorContext::worker().Send(router, MakeEnvelope<GrainCall>(sender, std::move(call)).release());
    return;
  }
  call.codec = CodecOfCall(call, *parts_->codecs);
  if (call.codec == nullptr) {
    const absl::Status why = NoCodecFor(*call.message);
    Refuse(context, std::move(call), why, DeadLetterReason::kNotSerializable);
    return;
  }
  HearsOfLosses(context);
  const CallTicket ticket = std::move(call.ticket);
  ActorContext::worker().Send(router, MakeEnvelope<GrainCall>(sender, std::move(call)).release());
}

template <class Lost>
void GrainRouter::GiveTo(ActorRef self, Lost lost) {
  const Turn* const turn = Turn::current;
  if (turn != nullptr && turn->router.taken_back_.has_value() && turn->context.self() == self) {
    turn->router.taken_back_->emplace_back(std::move(lost));
  } else {
    Tell(self, std::move(lost));
  }
}

bool GrainRouter::HearsOfLosses(ActorContext& context) {
  if (!has_listened_) {
    has_listened_ = true;
    losses_ =
        context.system().events().Listen<UndeliveredMessage>([self = context.self()](const UndeliveredMessage& lost) {
          const MessageView& message = lost.letter.message;
          if (message.type == MessageTypeOf<GrainCall>()) {
            // Of those that others have sent nobody knows what they have done.
            if (static_cast<const GrainCall*>(message.message)->router != self) return;
            GiveTo(self,
                   CallLost{.call = lost.TakeBack().Take<GrainCall>(), .reason = lost.letter.reason, .why = lost.why});
          } else if (message.type == MessageTypeOf<LocateGrain>()) {
            const auto& locate = *static_cast<const LocateGrain*>(message.message);
            LocateLost lost_one{.key = locate.key, .attempt = locate.attempt, .reason = lost.letter.reason};
            lost.TakeBack();
            GiveTo(self, std::move(lost_one));
          }
        });
  }
  if (!losses_.IsListening()) return false;
  parts_->gate->SetRouterHears(true);
  return true;
}

void GrainRouter::OnMembersLeft(ActorContext& context, MembersLeft& change) {
  if (left_.size() >= kRememberedLeaves) left_.clear();
  left_.insert(change.ids.begin(), change.ids.end());
  // No call leaves this node meanwhile: not by this router, whose turn it is, and not past it.
  const GrainGate::Hold hold(*parts_->gate);
  taken_back_.emplace();
  parts_->give_back(change.left);
  TakenBack back = *std::exchange(taken_back_, std::nullopt);
  parts_->driver->UpdateTopology(std::move(change.topology));
  // Before the calls that have come meanwhile, which are in the mailbox.
  for (auto& one : back) {
    if (auto* const call = std::get_if<CallLost>(&one)) {
      OnCallLost(context, *call);
    } else {
      OnLocateLost(context, std::get<LocateLost>(one));
    }
  }
}

void GrainRouter::OnSayFarewell(ActorContext& context, SayFarewell& say) {
  farewell_.emplace(Farewell{.member = std::move(say.member), .said = std::move(say.said)});
  for (const Member& member : parts_->driver->topology()->members()) {
    if (member.authority != parts_->authority) farewell_->unheard.insert(member.authority);
  }
  GoOnWithFarewell(context);
}

void GrainRouter::GoOnWithFarewell(ActorContext& context) {
  if (!farewell_.has_value()) return;
  if (farewell_->unheard.empty() && waiting_.value() == 0) {
    context.system().toolbox().CancelTimer(farewell_->timer);
    farewell_->said.Set();
    farewell_.reset();
    return;
  }
  for (const std::string& authority : farewell_->unheard) {
    const absl::StatusOr<ActorRef> router = RouterAt(authority);
    if (router.ok()) context.Tell(*router, GrainFarewell{.member = farewell_->member});
  }
  // Without a timer nobody is asked again, and who waits has a limit of his own.
  context.system().toolbox().CancelTimer(farewell_->timer);
  farewell_->timer = context.system()
                         .toolbox()
                         .ScheduleAfter(farewell_->pause, [self = context.self()] { Tell(self, FarewellDue{}); })
                         .value_or(TimerId());
  farewell_->pause = std::min(farewell_->pause * 2, kMaxFarewellPause);
}

void GrainRouter::OnFarewell(ActorContext& context, const GrainFarewell& farewell) {
  if (parts_->driver->topology()->FindId(farewell.member) != nullptr) return;
  context.Reply(FarewellHeard{.member = farewell.member, .authority = parts_->authority});
}

void GrainRouter::OnFarewellHeard(ActorContext& context, const FarewellHeard& heard) {
  if (!farewell_.has_value() || farewell_->member != heard.member) return;
  if (farewell_->unheard.erase(heard.authority) != 0 && farewell_->unheard.empty()) GoOnWithFarewell(context);
}

void GrainRouter::OnCallLost(ActorContext& context, CallLost& lost) {
  GrainCall& call = lost.call;
  const std::string what = absl::StrCat("grain \"", call.key.ToString(), "\": ", ToAbsl(call.message->type()->name()),
                                        " did not leave this node");
  const absl::Status why = lost.why.ok() ? absl::UnavailableError(absl::StrCat(what, ": ", ToAbsl(NameOf(lost.reason))))
                                         : Annotate(lost.why, what);
  if (!MayPass(lost.reason)) {
    Refuse(context, std::move(call), why, lost.reason);
    return;
  }
  ++parts_->counts->retried_calls;
  const GrainKey key = call.key;
  const int tries = static_cast<int>(call.hops);
  call.router = ActorRef();
  call.is_redirected = false;
  call.ticket = parts_->gate->TicketFor(key);
  ForgetPlace(key);
  const Lookups::iterator begun = Enqueue(context, std::move(call));
  if (begun == lookups_.end()) return;
  begun->second.failures = tries;
  if (lost.reason == DeadLetterReason::kNewIncarnation) {
    Ask(context, begun);
  } else {
    Pause(context, begun, why);
  }
}

void GrainRouter::ForgetPlace(const GrainKey& key) {
  const PlacementResolutionPtr known = parts_->driver->Cached(key);
  if (known != nullptr && known->locality == PlacementLocality::kRemote) parts_->driver->RemovePid(key, known->pid);
}

void GrainRouter::OnSentBack(ActorContext& context, GrainCall call) {
  ++parts_->counts->retried_calls;
  const GrainKey key = call.key;
  // As a number of pauses, all of which are alike from here on.
  const int tries = static_cast<int>(std::min(call.returns - 1, 64u));
  ForgetPlace(key);
  const Lookups::iterator begun = Enqueue(context, std::move(call));
  if (begun == lookups_.end()) return;
  begun->second.failures = tries;
  Pause(context, begun,
        MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, key,
                        "the node on which it was has ended, or takes no calls; try again"));
}

void GrainRouter::OnLocateLost(ActorContext& context, const LocateLost& lost) {
  const auto at = lookups_.find(lost.key);
  if (at == lookups_.end() || at->second.attempt != lost.attempt) return;
  Fail(context, at,
       MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, lost.key,
                       absl::StrCat("its owner, the node at \"", at->second.asked,
                                    "\", could not be asked: ", ToAbsl(NameOf(lost.reason)))));
}

void GrainRouter::Refuse(ActorContext& context, GrainCall call, const absl::Status& why, DeadLetterReason reason) {
  ++parts_->counts->refused_calls;
  SendError(context, call, why, reason);
}

void GrainRouter::RefuseFiltered(ActorContext& context, const GrainCall& call, const FilteredCalls::Entry& entry) {
  ++(entry.is_refused ? parts_->counts->calls_refused_by_filter : parts_->counts->refused_calls);
  SendError(context, call, entry.status, DeadLetterReason::kNoRecipient);
}

void GrainRouter::SendError(ActorContext& context, const GrainCall& call, const absl::Status& why,
                            DeadLetterReason reason) {
  const ActorRef sender = call.message->sender();
  const std::string from = sender.IsNoOne() ? std::string() : context.PathOf(sender);
  const std::string recipient = absl::StrCat("grain ", call.key.ToString());
  ActorSystem& system = context.system();
  system.dead_letters().Publish(DeadLetter{{.reason = reason,
                                            .sender = from,
                                            .recipient = recipient,
                                            .message = {.type_name = call.message->type()->name(),
                                                        .type = call.message->type(),
                                                        .message = call.message->payload()}}},
                                system.toolbox().Now());
  if (sender.IsNoOne()) return;
  // Who has called on another node does not know to which one the call has come.
  const bool is_of_another = !call.router.IsNoOne() && call.router != context.self();
  context.Tell(sender, ErrorReply{is_of_another ? NamedHere(why) : why});
}

void GrainRouter::OnStart(ActorContext& context, StartGrain start) {
  std::optional<absl::StatusOr<ActivationRecord>> started =
      Start(context, start.key, start.token, [&start] { return std::move(start.started); });
  if (started.has_value()) start.started.Set(*std::move(started));
}

std::optional<Future<ActivationRecord>> GrainRouter::StartInTurn(ActorRef self, const GrainKey& key, uint64_t token) {
  const Turn* const turn = Turn::current;
  if (turn == nullptr || turn->context.self() != self) return std::nullopt;
  Future<ActivationRecord> later;
  std::optional<absl::StatusOr<ActivationRecord>> started = turn->router.Start(turn->context, key, token, [&later] {
    auto [promise, future] = MakePromise<ActivationRecord>();
    later = std::move(future);
    return std::move(promise);
  });
  if (!started.has_value()) return later;
  return MakeReadyFuture<ActivationRecord>(*std::move(started));
}

std::optional<absl::StatusOr<ActivationRecord>> GrainRouter::Start(
    ActorContext& context, const GrainKey& key, uint64_t token,
    absl::FunctionRef<Promise<ActivationRecord>()> started) {
  const auto running = grains_.find(key);
  if (running != grains_.end()) {
    Grain& grain = running->second;
    if (grain.token == token && !grain.is_stopping) {
      return RecordOf(context, grain.actor);
    }
    if (!grain.is_stopping) End(context, grain);
    grain.Leave().next.push_back(StartGrain{.key = key, .token = token, .started = started()});
    return std::nullopt;
  }
  const auto kind = kinds_.find(key.kind());
  if (kind == kinds_.end()) {
    return MakeLookupError(LookupError::kUnknownKind, absl::StatusCode::kNotFound, key,
                           "this node does not host the kind; see ClusterOptions::kinds");
  }
  KindCounts& counts = *parts_->counts->Find(key.kind());
  const absl::StatusOr<ActorRef> actor = Spawn(context, *kind->second, key, token);
  if (!actor.ok()) {
    ++counts.failed;
    return actor.status();
  }
  if (const absl::Status watched = context.WatchWith(*actor, GrainEnded{.key = key, .token = token}); !watched.ok()) {
    ++counts.failed;
    context.Stop(*actor);
    return watched;
  }
  ++counts.started;
  ++counts.active;
  HearOfUnhandled(context);
  if (parts_->gate != nullptr) parts_->gate->Settle(*actor, key);
  const auto filters = incoming_filters_.find(key.kind());
  grains_.emplace(key, Grain{.actor = *actor,
                             .token = token,
                             .filters = filters == incoming_filters_.end() ? nullptr : &filters->second});
  return RecordOf(context, *actor);
}

absl::StatusOr<ActorRef> GrainRouter::RouterAt(const std::string& authority) {
  absl::StatusOr<ActorRef> router = absl::InternalError("GrainPeers::RouterAt has not answered");
  FRAKTOR_RETURN_IF_ERROR(MessageInvoker::Call("GrainPeers::RouterAt", [&] {
    router = parts_->peers->RouterAt(authority);
    return absl::OkStatus();
  }));
  return router;
}

absl::StatusOr<ActorRef> GrainRouter::Spawn(ActorContext& context, const GrainKind& kind, const GrainKey& key,
                                            uint64_t token) {
  PropsPtr props;
  FRAKTOR_RETURN_IF_ERROR(MessageInvoker::Call("GrainKind::make", [&] {
    props = kind.make(GrainContext{.key = key, .token = token});
    return props != nullptr
               ? absl::OkStatus()
               : absl::InternalError(absl::StrCat("GrainKind::make of kind \"", kind.name,
                                                  "\" has returned null; it returns the props of an actor"));
  }));
  absl::StatusOr<ActorRef> actor = context.TrySpawn(*props, GrainActorName(key));
  // Two keys of one name in one hash; it happens never, and costs the name.
  if (ErrorKindOf<ActorErrorKind>(actor.status()) == ActorErrorKind::kNameTaken) return context.TrySpawn(*props);
  return actor;
}

void GrainRouter::OnStop(ActorContext& context, StopGrain stop) {
  const auto running = grains_.find(stop.key);
  if (running == grains_.end() || running->second.token != stop.token) {
    if (running != grains_.end() && running->second.legacy != nullptr) {
      // One that has not begun does not begin: who waits for it hears that.
      std::vector<StartGrain>& next = running->second.legacy->next;
      next.erase(std::remove_if(next.begin(), next.end(),
                                [&stop](const StartGrain& start) { return start.token == stop.token; }),
                 next.end());
    }
    stop.stopped.Set();
    return;
  }
  Grain& grain = running->second;
  grain.Leave().stopped.push_back(std::move(stop.stopped));
  if (!grain.is_stopping) End(context, grain);
}

void GrainRouter::End(ActorContext& context, Grain& grain) {
  grain.is_stopping = true;
  // After what has been sent to it before.
  if (parts_->gate != nullptr) parts_->gate->AwaitEntering();
  context.Tell(grain.actor, PoisonPill{});
}

void GrainRouter::OnEnded(ActorContext& context, GrainEnded& ended) {
  const auto running = grains_.find(ended.key);
  if (running == grains_.end() || running->second.token != ended.token) return;
  Grain grain = std::move(running->second);
  grains_.erase(running);
  KindCounts& counts = *parts_->counts->Find(ended.key.kind());
  --counts.active;
  Legacy& legacy = grain.Leave();
  if (!legacy.failure.ok()) ++counts.failed;
  for (Promise<void>& stopped : legacy.stopped) stopped.Set();
  if (!grain.is_stopping) parts_->driver->ActivationEnded(ended.key, ended.token, legacy.failure);
  PassOn(context, grain.actor, legacy);
  for (StartGrain& start : legacy.next) OnStart(context, std::move(start));
}

void GrainRouter::Keep(ActorContext& context, Grain& grain, GrainCall call) {
  if (waiting_.value() >= parts_->max_waiting) {
    const absl::Status why = TooManyWait(call.key, waiting_.value());
    Refuse(context, std::move(call), why);
    return;
  }
  ++waiting_;
  grain.Leave().unhandled.push_back(std::move(call));
}

void GrainRouter::PassOn(ActorContext& context, ActorRef actor, Legacy& legacy) {
  if (parts_->gate != nullptr) parts_->gate->Vacate(actor);
  waiting_ -= legacy.unhandled.size();
  for (GrainCall& call : std::exchange(legacy.unhandled, {})) {
    if (legacy.failure.ok()) {
      Wait(context, std::move(call));
    } else {
      Refuse(context, std::move(call), legacy.failure);
    }
  }
}

// What the actor has not handled may be handled by the next one: it is once all the same.
bool GrainRouter::MayReturn(ActorContext& context, GrainCall& call) {
  const ActorRef sender = call.message->sender();
  if (sender.IsPromise() && !sender.IsCurrent()) return false;
  if (returns_.size() >= kRememberedReturns) returns_.clear();
  if (++returns_[sender] <= kMaxReturns) {
    ++parts_->counts->retried_calls;
    return true;
  }
  returns_.erase(sender);
  const absl::Status why = absl::UnavailableError(absl::StrCat(
      "grain \"", call.key.ToString(), "\" has ended before it has handled ", ToAbsl(call.message->type()->name()),
      ", ", kMaxReturns + 1, " times, on the node at \"", parts_->authority, "\"; try again"));
  Refuse(context, std::move(call), why);
  return false;
}

void GrainRouter::HearOfUnhandled(ActorContext& context) {
  if (unhandled_.IsListening() || parts_->gate == nullptr) return;
  unhandled_ = context.system().events().Listen<OrphanedMessage>(
      [gate = parts_->gate](const OrphanedMessage& orphan) { gate->TakeIn(orphan.recipient, orphan.message); });
}

void ForwardToGrain(ActorContext& context, ActorRef gate, const GrainKey& key, EnvelopePtr message) {
  const ActorRef sender = message->sender();
  const absl::Duration timeout =
      sender.IsPromise() ? DeadlineOf(sender) - context.system().toolbox().Now() : absl::ZeroDuration();
  GrainCall call{.key = key, .message = std::move(message), .is_redirected = false, .hops = 0, .timeout = timeout};
  ActorContext::worker().Send(gate, MakeEnvelope<GrainCall>(sender, std::move(call)).release());
}

absl::Status ExplainLateGrain(const absl::Status& error, ActorRef gate, const GrainKey& key,
                              const MessageType* question, absl::Duration timeout) {
  if (timeout <= absl::ZeroDuration() && absl::IsInvalidArgument(error)) {
    return absl::InvalidArgumentError(absl::StrCat("the ask of grain \"", key.ToString(), "\" for an answer to ",
                                                   ToAbsl(question->name()), " has the timeout ",
                                                   absl::FormatDuration(timeout), "; it must be positive"));
  }
  if (ErrorKindOf<ActorErrorKind>(error) != ActorErrorKind::kAskTimeout) return error;
  constexpr size_t kShown = 200;
  std::string name = key.ToString();
  if (name.size() > kShown) name = absl::StrCat(name.substr(0, kShown), "...");
  return MakeError(error.code(), ActorErrorKind::kAskTimeout,
                   absl::StrCat("grain \"", name, "\" has not answered ", ToAbsl(question->name()), " within ",
                                absl::FormatDuration(timeout), ": ",
                                static_cast<GrainGate&>(*gate.remote_slot()->link).WhatIsKnownOf(key)));
}

Future<ActivationRecord> GrainActivations::EnsureActivation(GrainKey key, std::string /*owner*/, uint64_t token) {
  if (std::optional<Future<ActivationRecord>> now = GrainRouter::StartInTurn(router_, key, token)) {
    return *std::move(now);
  }
  auto [promise, future] = MakePromise<ActivationRecord>();
  Tell(router_, StartGrain{.key = std::move(key), .token = token, .started = std::move(promise)});
  return std::move(future);
}

Future<void> GrainActivations::StopActivation(GrainKey key, uint64_t token) {
  auto [promise, future] = MakePromise<void>();
  Tell(router_, StopGrain{.key = std::move(key), .token = token, .stopped = std::move(promise)});
  return std::move(future);
}

}  // namespace fraktor::inline v0
