#include "fraktor/cluster/grain/grain_gate.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

using actor_internal::ActorWorker;
using actor_internal::MakeRemoteSlot;
using actor_internal::SendRemote;

namespace {

// Kept together, so that tools that look for leaks find them: they do not look into the memory of slots.
void Keep(GrainGate* gate) {
  struct All {
    Mutex mutex;
    std::vector<GrainGate*> gates ABSL_GUARDED_BY(mutex);
  };
  static All& all = *new All;
  MutexLock lock(all.mutex);
  all.gates.push_back(gate);
}

absl::Status SendHere(ActorRef to, EnvelopePtr message) {
  ActorWorker* const worker = ActorWorker::Current();
  if (worker == nullptr) return SendForeign(to, std::move(message));
  return worker->TrySend(to, message.release());
}

// What it returns, or nothing if it throws.
template <class Body>
auto Guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (...) {
    return {};
  }
}

}  // namespace

class GrainGate::Visit {
 public:
  explicit Visit(GrainGate& gate)
      : gate_(gate), visit_(gate.crossing_.Enter()), may_enter_(gate.closed_.load(std::memory_order_acquire) == 0) {}
  ~Visit() { gate_.crossing_.Leave(visit_); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  bool may_enter() const { return may_enter_; }

 private:
  GrainGate& gate_;
  const uint32_t visit_;
  const bool may_enter_;
};

absl::StatusOr<GrainGate*> GrainGate::Make(const std::string& authority) {
  auto* const gate = new GrainGate(authority);  // NOLINT(cppcoreguidelines-owning-memory): of the process.
  Keep(gate);
  FRAKTOR_ASSIGN_OR_RETURN(gate->slot_, MakeRemoteSlot(*gate));
  return gate;
}

void GrainGate::Open(ActorRef router, std::shared_ptr<const GrainRouterParts> parts) {
  router_ = router;
  parts_ = std::move(parts);
  Reopen();
}

void GrainGate::Close() {
  Shut();
  crossing_.Await();
  entering_.Await();
}

uint32_t GrainGate::BeginBatch() {
  const uint32_t visit = entering_.Enter();
  const uint32_t closed = closed_.load(std::memory_order_acquire);
  return visit | (closed == 0 ? kMayEnter : (closed & kShut) == 0 ? kToRouter : 0);
}

void GrainGate::EndBatch(uint32_t batch) { entering_.Leave(batch & kPhase); }

std::optional<RemoteDoor::Delivery> GrainGate::Enter(uint32_t batch, const Arrival& arrival) {
  if ((batch & (kMayEnter | kToRouter)) == 0) return std::nullopt;
  return Guarded([&] { return TryToEnter(arrival, (batch & kMayEnter) != 0); });
}

std::optional<RemoteDoor::Delivery> GrainGate::TryToEnter(const Arrival& arrival, bool may_enter) {
  constexpr uint32_t kVersion = codec_internal::VersionOf<GrainCall>();
  if (arrival.version > kVersion) return std::nullopt;
  Decoder in(arrival.payload, arrival.version, kVersion, arrival.context);
  bool has_router = false;
  GrainCall call = ReadCallHead(in, has_router);
  if (!in.ok()) return std::nullopt;
  absl::StatusOr<EnvelopePtr> message = OpenMessage(in.rest(), call.refs, arrival.sender, parts_->opening());
  if (message.ok()) {
    call.message = *std::move(message);
    if (const ActorRef actor = may_enter ? OpenTo(call) : ActorRef(); !actor.IsNoOne()) {
      entered_.fetch_add(1, std::memory_order_relaxed);
      return Delivery{.to = actor, .message = std::move(call.message)};
    }
  } else {
    // The router says what is wrong with it.
    call.closed = std::string(in.rest());
  }
  if (has_router) {
    const PathAuthority& from = *arrival.from.authority();
    call.router = Guarded([&] {
      return parts_->peers->RouterAt(absl::StrCat(ToAbsl(from.host()), ":", from.port())).value_or(ActorRef());
    });
  }
  call.ticket = CallTicket(StripeOf(call.key));
  return Delivery{.to = router_, .message = MakeEnvelope<GrainCall>(arrival.sender, std::move(call))};
}

ActorRef GrainGate::OpenTo(const GrainCall& call) {
  if (call.message->type()->is_intercepted() || HasFilters(call.key.kind())) return {};
  if (IsAtRouter(call.key)) return {};
  const PlacementResolutionPtr known = parts_->driver->Cached(call.key);
  if (known == nullptr || known->locality != PlacementLocality::kLocal) return {};
  const ActorRef actor = known->actor;
  // The router waits until its end is known, and starts the next one.
  return actor.IsNoOne() || actor.IsCurrent() ? actor : ActorRef();
}

absl::Status GrainGate::Send(ActorRef /*to*/, EnvelopePtr message) {
  if (message->Is<GrainCall>()) {
    auto& call = message->As<GrainCall>();
    std::atomic<uint32_t>& stripe = StripeOf(call.key);
    // What others' code throws the router meets with as well, and says what it is.
    if (stripe.load(std::memory_order_acquire) == 0 && Guarded([&] { return TryToCross(message); })) {
      return absl::OkStatus();
    }
    call.ticket = CallTicket(stripe);
  }
  return SendHere(router_, std::move(message));
}

bool GrainGate::TryToCross(EnvelopePtr& message) {
  const Visit visit(*this);
  if (!visit.may_enter() || !router_hears_.load(std::memory_order_acquire) || !parts_->outgoing_filters.empty()) {
    return false;
  }
  auto& call = message->As<GrainCall>();
  const PlacementResolutionPtr known = parts_->driver->Cached(call.key);
  if (known == nullptr || known->locality != PlacementLocality::kRemote) return false;
  ActorRef router = known->actor;
  if (router.IsNoOne()) router = parts_->peers->RouterAt(known->decision.authority).value_or(ActorRef());
  // Those of other systems of this process are sent to in the turns of routers: so they stay in order.
  if (!router.IsRemote()) return false;
  const MessageCodec* const codec = CodecOfCall(call, *parts_->codecs);
  // The router refuses it, and says why.
  if (codec == nullptr) return false;
  call.codec = codec;
  call.is_redirected = true;
  call.hops = 1;
  call.router = router_;
  // For the router, if it gets it back.
  call.message->set_sender(message->sender());
  crossed_.fetch_add(1, std::memory_order_relaxed);
  SendRemote(router, std::move(message)).IgnoreError();
  return true;
}

void GrainGate::Settle(ActorRef actor, const GrainKey& key) {
  MutexLock lock(seats_mutex_);
  seats_.insert_or_assign(Seat(actor.any_slot(), actor.generation()), key);
}

void GrainGate::Vacate(ActorRef actor) {
  MutexLock lock(seats_mutex_);
  vacancies_.emplace_back(actor.any_slot(), actor.generation());
  if (vacancies_.size() <= kRememberedVacancies) return;
  seats_.erase(vacancies_.front());
  vacancies_.pop_front();
}

std::optional<GrainKey> GrainGate::KeyOf(ActorRef actor) {
  MutexLock lock(seats_mutex_);
  const auto seat = seats_.find(Seat(actor.any_slot(), actor.generation()));
  return seat == seats_.end() ? std::nullopt : std::optional<GrainKey>(seat->second);
}

bool GrainGate::TakeIn(ActorRef ended, EnvelopePtr& message) {
  std::optional<GrainKey> key = KeyOf(ended);
  if (!key.has_value()) return false;
  const ActorRef sender = message->sender();
  GrainCall call{.key = *std::move(key)};
  call.hops = 1;
  call.ended = ended;
  call.ticket = TicketFor(call.key);
  call.message = std::move(message);
  SendHere(router_, MakeEnvelope<GrainCall>(sender, std::move(call))).IgnoreError();
  return true;
}

bool GrainGate::HasFilters(const std::string& kind) const {
  if (!parts_->incoming_filters.empty()) return true;
  return std::any_of(parts_->kinds.begin(), parts_->kinds.end(),
                     [&kind](const GrainKind& one) { return !one.filters.empty() && one.name == kind; });
}

std::string GrainGate::WhatIsKnownOf(const GrainKey& key) {
  const Visit visit(*this);
  if (!visit.may_enter()) return "this node has ended";
  if (parts_->driver->Local(key) != nullptr) {
    return absl::StrCat("it runs on this node, \"", authority_,
                        "\": it is busy, waits for something, or has forgotten to answer");
  }
  const PlacementResolutionPtr known = parts_->driver->Cached(key);
  if (known == nullptr || known->locality != PlacementLocality::kRemote) {
    const ClusterTopologyPtr topology = parts_->driver->topology();
    const Member* const owner = RendezvousHasher::OwnerOf(*topology, key);
    return absl::StrCat("it is not known where it is: it has ended or moves, or its node is not a member any more; ",
                        owner == nullptr
                            ? "no member that is known here hosts its kind"
                            : absl::StrCat("who looks for it now asks the node at \"", owner->authority, "\""));
  }
  return absl::StrCat(
      "as far as is known here it runs on the node at \"", known->decision.authority,
      "\": it is busy there, or that node cannot be reached, or the question or the answer was lost on the way");
}

EnvelopePtr GrainGate::SendSystem(ActorRef /*to*/, EnvelopePtr message) { return message; }

std::string GrainGate::PathOf(ActorRef /*to*/) const { return NodeText(); }

std::string GrainGate::NodeText() const { return absl::StrCat("a grain, called on the node at \"", authority_, "\","); }

}  // namespace fraktor::inline v0
