// The little of an actor system that a late sender touches, and that therefore belongs to the process: whether it still
// takes messages from outside, whether one may wait for it, and how many messages were lost on the way to it.
//
// The chunk of a slot names it. When a system ends, its core is used again by a later one, as its slots are: whoever
// comes that late has a stale reference and does not get here.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_SEND_SYSTEM_CORE_H_
#define FRAKTOR_ACTOR_SEND_SYSTEM_CORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/foreign_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class ActorLifecycle;
class RuntimeToolbox;

// As long as one lives, its thread does not wait for room in a mailbox: what finds none is a dead letter.
class NonBlockingScope {
 public:
  NonBlockingScope();
  ~NonBlockingScope();
  NonBlockingScope(const NonBlockingScope&) = delete;
  NonBlockingScope& operator=(const NonBlockingScope&) = delete;
};

class SystemCore {
 public:
  // A core for a new system. `threaded`: its actors run on threads of their own, so a foreign thread may wait for them.
  static SystemCore& Acquire(bool threaded);
  // The system has ended.
  static void Release(SystemCore& core);

  // Of the system that a slot belongs to, or the slot of a reference to an actor or promise; null if that has ended.
  static SystemCore* Of(const ActorSlot& slot);
  static SystemCore* Of(ActorRef ref);

  // Whether this thread may wait for an actor of that slot's system.
  static bool MayBlockFor(const ActorSlot& slot);

  // A message from a foreign thread, which has nobody else to tell, was lost on its way to `to`. Takes it over: it is
  // counted, and the system hears of it if it still wants to. If it was for no one, nobody knows which system was meant:
  // the one hears of it that has been there for the longest time.
  static void LoseForeign(ActorRef to, EnvelopePtr envelope, DeadLetterReason reason);

  // Whether messages of foreign threads are accepted.
  bool is_open() const { return open_.load(std::memory_order_relaxed); }
  void Close() { open_.store(false, std::memory_order_relaxed); }

  // Where foreign threads count, or null; of the process, as this is.
  ForeignMetrics* metrics() const { return metrics_.load(std::memory_order_acquire); }
  void SetMetrics(ForeignMetrics* metrics) { metrics_.store(metrics, std::memory_order_release); }

  // Who hears of messages that foreign threads lose; null for no one. When it returns, the one before is not called any
  // more.
  void SetLifecycle(ActorLifecycle* lifecycle);
  // What its lifecycle calls an actor of it, for a thread that is no worker; empty if nobody can say.
  static std::string PathOf(ActorRef actor);

  // Whose clock foreign threads look at for messages that are sampled; null for none. When it returns, the one before is
  // not used any more.
  void SetToolbox(const RuntimeToolbox* toolbox);
  // Nothing if there is no clock.
  std::optional<Instant> Now() const;

  uint64_t foreign_dead_letters(DeadLetterReason reason) const {
    return lost_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  SystemCore() = default;

  // Relaxed, as a sender may always be too late.
  std::atomic<bool> open_{false};
  std::atomic<bool> threaded_{false};
  // Released with what was done to make it, for whoever counts.
  std::atomic<ForeignMetrics*> metrics_{nullptr};
  // Sums that order nothing.
  std::array<std::atomic<uint64_t>, kDeadLetterReasonCount> lost_{};
  // Held while a lost message is published: that is rare, and the system must not end meanwhile.
  Mutex lifecycle_mutex_;
  ActorLifecycle* lifecycle_ ABSL_GUARDED_BY(lifecycle_mutex_) = nullptr;
  // Held for a look at the clock: only for messages that are sampled, and the system must not end meanwhile.
  mutable Mutex toolbox_mutex_;
  const RuntimeToolbox* toolbox_ ABSL_GUARDED_BY(toolbox_mutex_) = nullptr;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_SYSTEM_CORE_H_
