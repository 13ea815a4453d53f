#include "fraktor/cluster/grain/grain_gate.h"

#include <cxxabi.h>

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/turn/actor_worker.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
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

}  // namespace

class GrainGate::Visit {
 public:
  explicit Visit(GrainGate& gate)
      : gate_(gate), may_enter_((gate.word_.fetch_add(kOne, std::memory_order_acquire) & kShut) == 0) {}
  ~Visit() {
    if (gate_.word_.fetch_sub(kOne, std::memory_order_release) == (kOne | kShut)) gate_.word_.notify_all();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  bool may_enter() const { return may_enter_; }

 private:
  GrainGate& gate_;
  const bool may_enter_;
};

absl::StatusOr<GrainGate*> GrainGate::Make(ActorRef router, const std::string& authority) {
  auto* const gate = new GrainGate(router, authority);  // NOLINT(cppcoreguidelines-owning-memory): of the process.
  Keep(gate);
  FRAKTOR_ASSIGN_OR_RETURN(gate->slot_, MakeRemoteSlot(*gate));
  return gate;
}

void GrainGate::Open(std::shared_ptr<const GrainRouterParts> parts) {
  parts_ = std::move(parts);
  word_.fetch_and(~kShut, std::memory_order_release);
}

void GrainGate::Close() {
  Shut();
  for (uint32_t word = word_.load(std::memory_order_acquire); word != kShut;
       word = word_.load(std::memory_order_acquire)) {
    word_.wait(word, std::memory_order_acquire);
  }
}

absl::Status GrainGate::Send(ActorRef /*to*/, EnvelopePtr message) {
  if (message->Is<GrainCall>()) {
    auto& call = message->As<GrainCall>();
    std::atomic<uint32_t>& stripe = StripeOf(call.key);
    if (stripe.load(std::memory_order_acquire) == 0 && Cross(call, message->sender())) return absl::OkStatus();
    call.ticket = CallTicket(stripe);
  }
  return SendHere(router_, std::move(message));
}

bool GrainGate::Cross(GrainCall& call, ActorRef sender) {
  try {
    return TryToCross(call, sender);
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (...) {
    return false;  // The router meets with the same, and says what it is.
  }
}

bool GrainGate::TryToCross(GrainCall& call, ActorRef sender) {
  const Visit visit(*this);
  if (!visit.may_enter() || !router_hears_.load(std::memory_order_acquire) || !parts_->outgoing_filters.empty()) {
    return false;
  }
  const PlacementResolutionPtr known = parts_->driver->Cached(call.key);
  if (known == nullptr || known->locality != PlacementLocality::kRemote) return false;
  // Those of other systems of this process are sent to in the turns of routers: so they stay in order.
  const absl::StatusOr<ActorRef> router = parts_->peers->RouterAt(known->decision.authority);
  if (!router.ok() || !router->IsRemote()) return false;
  absl::StatusOr<GrainCallFrame> frame = EncodeCall(call, *parts_->codecs);
  // The router refuses it, and says why.
  if (!frame.ok()) return false;
  frame->is_redirected = true;
  frame->hops = 1;
  frame->router = router_;
  frame->sender = sender;
  crossed_.fetch_add(1, std::memory_order_relaxed);
  SendRemote(*router, MakeEnvelope<GrainCallFrame>(sender, *std::move(frame))).IgnoreError();
  return true;
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
    return "it is not known where it is: it has ended or moves, or its node is not a member any more";
  }
  return absl::StrCat("as far as is known here it runs on the node at \"", known->decision.authority,
                      "\": it is busy there, or the question or the answer was lost on the way");
}

EnvelopePtr GrainGate::SendSystem(ActorRef /*to*/, EnvelopePtr message) { return message; }

std::string GrainGate::PathOf(ActorRef /*to*/) const { return NodeText(); }

std::string GrainGate::NodeText() const { return absl::StrCat("a grain, called on the node at \"", authority_, "\","); }

}  // namespace fraktor::inline v0
