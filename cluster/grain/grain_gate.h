// GrainGate: where calls of grains go in on a node. One to a grain of another node whose place is known leaves at once, on
// the thread of the caller; one that comes from another node, for a grain that runs here, goes to its actor at once, on the
// thread that brings it. Every other one goes to the router, which finds the grain.
//
//   GrainGate& gate = *GrainGate::Make(authority).value();
//   gate.Open(router, parts);
//   Tell(gate.ref(), GrainCall{...});
//   gate.Close();                                    // from now on the router has to do with it alone
//
// To wake a worker for the router takes longer than to send a message to another node, so who calls from a thread of its
// own does it itself.
//
// A call does not overtake one of the same caller: what has gone to the router carries a ticket until it has left it, and
// as long as there are tickets for the key of a grain, calls to it go to the router as well. Nor does it come behind the
// end of a grain: who stops one waits for those who are on their way to it (AwaitEntering).
//
// It leads there as a reference to another node leads to that node (RemoteLink), so it costs other sends nothing, and
// lives as long as the process, since references to it may.
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_GATE_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_GATE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/visitor_count.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/remote/association/remote_door.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

struct GrainRouterParts;

class GrainGate final : public actor_internal::RemoteLink, public RemoteDoor {
 public:
  // The gate of the node that is reached so; its router is not there yet. ResourceExhausted if the process has no slot
  // left.
  static absl::StatusOr<GrainGate*> Make(const std::string& authority);

  ActorRef ref() const { return {slot_, ActorRef::kRemote | 1}; }

  // Calls may leave by themselves from now on. Once, with a driver among the parts, before anybody has ref() and before
  // a grain runs.
  void Open(ActorRef router, std::shared_ptr<const GrainRouterParts> parts);
  // No call does so any more; does not wait for those that are at it.
  void Shut() { closed_.fetch_or(kShut, std::memory_order_acq_rel); }
  // And when this returns, nothing of the parts is used.
  void Close();

  // After Shut: another life of the router goes on.
  void Reopen() { closed_.fetch_and(~kShut, std::memory_order_release); }

  // As long as there is one, all calls go to the router. When it has been made, those have left that do not. That takes as
  // long as the encoding of a message. One at a time: the router's.
  class Hold {
   public:
    explicit Hold(GrainGate& gate) : gate_(gate) {
      gate_.closed_.fetch_or(kHeld, std::memory_order_acq_rel);
      gate_.crossing_.Await();
    }
    ~Hold() { gate_.closed_.fetch_and(~kHeld, std::memory_order_release); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    GrainGate& gate_;
  };

  // Whether the router hears of calls that have not left this node: none leaves by itself before.
  void SetRouterHears(bool hears) { router_hears_.store(hears, std::memory_order_release); }

  // As long as there is one, later calls to the grain go to the router.
  CallTicket TicketFor(const GrainKey& key) { return CallTicket(StripeOf(key)); }

  // Whether there is one, of it or of another grain: some share them.
  bool IsAtRouter(const GrainKey& key) { return StripeOf(key).load(std::memory_order_acquire) != 0; }

  // When this returns, calls of other nodes that have found a grain here before placement has given it up are in its
  // mailbox. Takes as long as the batches that are being read.
  void AwaitEntering() { entering_.Await(); }

  // The actor of a grain that runs here. What it has not handled when it ends, and somebody waits for, goes to the
  // router.
  void Settle(ActorRef actor, const GrainKey& key);
  // It has ended: it is remembered for a while, since something may be on its way to it.
  void Vacate(ActorRef actor);
  // Of the grain whose actor it is, or was; none if it is not known.
  std::optional<GrainKey> KeyOf(ActorRef actor);
  // Whether the actor is that of a grain, and the message is on its way to the router.
  bool TakeIn(ActorRef ended, EnvelopePtr& message);

  // What is known of a grain that has not answered, for the text of an error: where it is, or what is missing.
  std::string WhatIsKnownOf(const GrainKey& key);

  // How many have left by themselves.
  uint64_t crossed() const { return crossed_.load(std::memory_order_relaxed); }
  // How many have come to their grains without the router.
  uint64_t entered() const { return entered_.load(std::memory_order_relaxed); }

  uint32_t BeginBatch() override;
  std::optional<Delivery> Enter(uint32_t batch, const Arrival& arrival) override;
  void EndBatch(uint32_t batch) override;

  absl::Status Send(ActorRef to, EnvelopePtr message) override;
  EnvelopePtr SendSystem(ActorRef to, EnvelopePtr message) override;
  std::string PathOf(ActorRef to) const override;
  std::string NodeText() const override;

 private:
  static constexpr size_t kStripes = 256;
  // Of closed_.
  static constexpr uint32_t kShut = 1;
  static constexpr uint32_t kHeld = 2;
  // Of what BeginBatch returns: the phase, whether calls may go to their grains, and whether they may go nowhere but to the
  // router, with a ticket, so that those of the next batch do not overtake them.
  static constexpr uint32_t kPhase = 1;
  static constexpr uint32_t kMayEnter = 2;
  static constexpr uint32_t kToRouter = 4;
  class Visit;

  explicit GrainGate(const std::string& authority) : authority_(authority) {}

  std::atomic<uint32_t>& StripeOf(const GrainKey& key) { return stripes_[key.hash() % kStripes]; }
  // True: it is on its way to the node of its grain. False: the call is as it was.
  bool TryToCross(EnvelopePtr& message);
  std::optional<Delivery> TryToEnter(const Arrival& arrival, bool may_enter);
  // The actor of a grain that runs here and that the call need not wait for; no one otherwise.
  ActorRef OpenTo(const GrainCall& call);
  bool HasFilters(const std::string& kind) const;

  const std::string authority_;
  actor_internal::RemoteSlot* slot_ = nullptr;
  // Set by Open, before all who read them.
  ActorRef router_;
  std::shared_ptr<const GrainRouterParts> parts_;
  // 0: calls may take a shorter way. Set before the counts are awaited, and read by who has counted himself.
  std::atomic<uint32_t> closed_{kShut};
  std::atomic<bool> router_hears_{false};
  std::atomic<uint64_t> crossed_{0};
  std::atomic<uint64_t> entered_{0};
  std::array<std::atomic<uint32_t>, kStripes> stripes_{};
  // Calls that are about to leave, and batches that are being read.
  VisitorCount crossing_;
  VisitorCount entering_;

  static constexpr size_t kRememberedVacancies = 1024;
  // References to an actor differ in their flags.
  using Seat = std::pair<const utils_internal::TableSlot*, uint32_t>;
  Mutex seats_mutex_;
  absl::flat_hash_map<Seat, GrainKey> seats_ ABSL_GUARDED_BY(seats_mutex_);
  std::deque<Seat> vacancies_ ABSL_GUARDED_BY(seats_mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_GATE_H_
