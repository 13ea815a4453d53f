#include "fraktor/cluster/grain/grain_router.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

GrainRouter::GrainRouter(std::shared_ptr<const GrainRouterParts> parts)
    : parts_(std::move(parts)), filtered_(parts_->max_waiting) {
  for (const GrainKind& kind : parts_->kinds) {
    kinds_.emplace(kind.name, &kind);
    GrainCallFilters filters = parts_->incoming_filters;
    filters.insert(filters.end(), kind.filters.begin(), kind.filters.end());
    if (!filters.empty()) incoming_filters_.emplace(kind.name, std::move(filters));
  }
}

absl::Status GrainRouter::Receive(ActorContext& context, Envelope& message) {
  if (message.Is<GrainCall>()) {
    GrainCall call = message.Take<GrainCall>();
    // From now on it is somebody else who answers.
    message.set_target_word(message.target_word() | kForwarded);
    call.message->set_sender(message.sender());
    if (!parts_->outgoing_filters.empty() && call.hops == 0 && !call.message->type()->is_marked()) {
      if (const absl::Status passed =
              filtered_.Enter(context, parts_->outgoing_filters, call.key, *call.message, call.timeout);
          !passed.ok()) {
        Refuse(context, std::move(call), passed);
        return absl::OkStatus();
      }
    }
    OnCall(context, std::move(call));
  } else if (message.Is<GrainFound>()) {
    OnFound(context, message.As<GrainFound>());
  } else if (message.Is<StartGrain>()) {
    OnStart(context, message.Take<StartGrain>());
  } else if (message.Is<StopGrain>()) {
    OnStop(context, message.Take<StopGrain>());
  } else if (message.Is<GrainEnded>()) {
    OnEnded(context, message.As<GrainEnded>());
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

absl::Status GrainRouter::OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) {
  filtered_.OnReply(context, ask, answer);
  return absl::OkStatus();
}

void GrainRouter::OnCall(ActorContext& context, GrainCall call) {
  const auto lookup = lookups_.find(call.key);
  if (lookup == lookups_.end()) {
    const PlacementResolutionPtr known = parts_->driver->Cached(call.key);
    // Who was sent here by the record is not sent away by what this node remembers.
    if (known != nullptr && (known->locality == PlacementLocality::kLocal || !call.is_redirected)) {
      Deliver(context, std::move(call), *known);
      return;
    }
  }
  if (waiting_ >= parts_->max_waiting) {
    Refuse(
        context, std::move(call),
        absl::ResourceExhaustedError(absl::StrCat(waiting_, " calls wait for their grains already; try again later")));
    return;
  }
  ++waiting_;
  if (lookup != lookups_.end()) {
    lookup->second.calls.push_back(std::move(call));
    return;
  }
  const GrainKey key = call.key;
  const bool is_redirected = call.is_redirected;
  lookups_[key].calls.push_back(std::move(call));
  Ask(context, key, is_redirected);
}

void GrainRouter::Ask(ActorContext& context, const GrainKey& key, bool is_redirected) {
  // Found by a message, even if it is known at once: a handler does one thing.
  lookups_.find(key)->second.watching =
      parts_->driver->Resolve(key, {.is_redirected = is_redirected})
          .Then(*parts_->executor, [self = context.self(), key](absl::StatusOr<PlacementResolutionPtr> found) {
            Tell(self,
                 GrainFound{
                     .key = key, .status = found.status(), .resolution = found.ok() ? *std::move(found) : nullptr});
          });
}

void GrainRouter::OnFound(ActorContext& context, GrainFound& found) {
  const auto lookup = lookups_.find(found.key);
  if (lookup == lookups_.end()) return;
  std::deque<GrainCall> calls = std::move(lookup->second.calls);
  lookups_.erase(lookup);
  waiting_ -= calls.size();
  for (GrainCall& call : calls) {
    if (found.status.ok()) {
      Deliver(context, std::move(call), *found.resolution);
    } else {
      Refuse(context, std::move(call), found.status);
    }
  }
}

void GrainRouter::Deliver(ActorContext& context, GrainCall call, const PlacementResolution& where) {
  if (where.locality == PlacementLocality::kLocal) {
    const auto grain = grains_.find(call.key);
    if (grain != grains_.end() && grain->second.token == where.token && !grain->second.is_stopping) {
      const bool is_marked = call.message->type()->is_marked();
      if (grain->second.filters != nullptr && !is_marked) {
        if (const absl::Status passed =
                filtered_.Enter(context, *grain->second.filters, call.key, *call.message, call.timeout);
            !passed.ok()) {
          Refuse(context, std::move(call), passed);
          return;
        }
      }
      if (is_marked) {
        ActorContext::worker().SendMarked(grain->second.actor, call.message.release());
      } else {
        ActorContext::worker().Send(grain->second.actor, call.message.release());
      }
      return;
    }
    // It has ended since: the next lookup activates it anew.
    if (++call.hops <= kMaxHops) {
      OnCall(context, std::move(call));
      return;
    }
  } else if (++call.hops <= kMaxHops) {
    const absl::StatusOr<ActorRef> router = parts_->peers->RouterAt(where.decision.authority);
    if (router.ok()) {
      const ActorRef sender = call.message->sender();
      call.is_redirected = !where.pid.empty();
      ActorContext::worker().Send(*router, MakeEnvelope<GrainCall>(sender, std::move(call)).release());
      return;
    }
    parts_->driver->RemovePid(call.key, where.pid);
    Refuse(context, std::move(call), router.status());
    return;
  }
  Refuse(context, std::move(call),
         absl::UnavailableError(
             absl::StrCat("not found after ", kMaxHops, " attempts: the cluster is changing; try again")));
}

void GrainRouter::Refuse(ActorContext& context, GrainCall call, const absl::Status& why) {
  const ActorRef sender = call.message->sender();
  const std::string from = sender.IsNoOne() ? std::string() : context.PathOf(sender);
  const std::string recipient = absl::StrCat("grain ", call.key.ToString());
  ActorSystem& system = context.system();
  system.dead_letters().Publish(DeadLetter{{.reason = DeadLetterReason::kNoRecipient,
                                            .sender = from,
                                            .recipient = recipient,
                                            .message = {.type_name = call.message->type()->name(),
                                                        .type = call.message->type(),
                                                        .message = call.message->payload()}}},
                                system.toolbox().Now());
  if (!sender.IsNoOne()) context.Tell(sender, ErrorReply{why});
}

void GrainRouter::OnStart(ActorContext& context, StartGrain start) {
  const auto running = grains_.find(start.key);
  if (running != grains_.end()) {
    Grain& grain = running->second;
    if (grain.token == start.token && !grain.is_stopping) {
      start.started.Set(ActivationRecord{.pid = context.PathOf(grain.actor)});
      return;
    }
    if (!grain.is_stopping) {
      grain.is_stopping = true;
      context.Tell(grain.actor, PoisonPill{});
    }
    grain.next.push_back(std::move(start));
    return;
  }
  const auto kind = kinds_.find(start.key.kind());
  if (kind == kinds_.end()) {
    start.started.Set(MakeLookupError(LookupError::kUnknownKind, absl::StatusCode::kNotFound, start.key,
                                      "this node does not host the kind; see ClusterOptions::kinds"));
    return;
  }
  const PropsPtr props = kind->second->make(GrainContext{.key = start.key, .token = start.token});
  absl::StatusOr<ActorRef> actor = context.Spawn(*props);
  if (!actor.ok()) {
    start.started.Set(actor.status());
    return;
  }
  if (const absl::Status watched = context.WatchWith(*actor, GrainEnded{.key = start.key, .token = start.token});
      !watched.ok()) {
    context.Stop(*actor);
    start.started.Set(watched);
    return;
  }
  const auto filters = incoming_filters_.find(start.key.kind());
  grains_.emplace(start.key, Grain{.actor = *actor,
                                   .token = start.token,
                                   .filters = filters == incoming_filters_.end() ? nullptr : &filters->second});
  start.started.Set(ActivationRecord{.pid = context.PathOf(*actor)});
}

void GrainRouter::OnStop(ActorContext& context, StopGrain stop) {
  const auto running = grains_.find(stop.key);
  if (running == grains_.end() || running->second.token != stop.token) {
    stop.stopped.Set();
    return;
  }
  Grain& grain = running->second;
  grain.stopped.push_back(std::move(stop.stopped));
  if (grain.is_stopping) return;
  grain.is_stopping = true;
  // After what has been sent to it before.
  context.Tell(grain.actor, PoisonPill{});
}

void GrainRouter::OnEnded(ActorContext& context, GrainEnded& ended) {
  const auto running = grains_.find(ended.key);
  if (running == grains_.end() || running->second.token != ended.token) return;
  Grain grain = std::move(running->second);
  grains_.erase(running);
  for (Promise<void>& stopped : grain.stopped) stopped.Set();
  if (!grain.is_stopping) parts_->driver->ActivationEnded(ended.key, ended.token);
  for (StartGrain& start : grain.next) OnStart(context, std::move(start));
}

void ForwardToGrain(ActorContext& context, ActorRef router, const GrainKey& key, EnvelopePtr message) {
  const ActorRef sender = message->sender();
  const absl::Duration timeout =
      sender.IsPromise() ? DeadlineOf(sender) - context.system().toolbox().Now() : absl::ZeroDuration();
  GrainCall call{.key = key, .message = std::move(message), .is_redirected = false, .hops = 0, .timeout = timeout};
  ActorContext::worker().Send(router, MakeEnvelope<GrainCall>(sender, std::move(call)).release());
}

Future<ActivationRecord> GrainActivations::EnsureActivation(GrainKey key, std::string /*owner*/, uint64_t token) {
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
