// SystemCore: the part of an actor system that a late sender may use after the system has ended, so
// it belongs to the process. It knows whether the system accepts messages of foreign threads,
// whether a thread may block for it, and how many messages were lost on their way to it.
//
// The chunk of a slot leads to its core. When a system ends, a later system uses its core and its
// slots again. A sender to an actor of the earlier system has a stale reference, and its generation
// check fails before it uses the core.
//
// Called by: actor systems, which own one, and senders on foreign threads. Thread: any.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_SYSTEM_CORE_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_SYSTEM_CORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/internal/foreign_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class RuntimeToolbox;

namespace actor_internal {

class ActorLifecycle;

// While it lives, its thread does not block for room in a mailbox: a message that finds a full
// mailbox is a dead letter.
class NonBlockingScope {
 public:
  NonBlockingScope();
  ~NonBlockingScope();
  NonBlockingScope(const NonBlockingScope&) = delete;
  NonBlockingScope& operator=(const NonBlockingScope&) = delete;
};

class SystemCore {
 public:
  // Returns a core for a new system. `threaded`: worker threads run its actors, so a foreign thread
  // may block for them.
  static SystemCore& Acquire(bool threaded);
  // Frees the core of a system that has ended.
  static void Release(SystemCore& core);

  // The core of the system of a slot, or of a reference; null if that system has ended.
  static SystemCore* Of(const ActorSlot& slot);
  static SystemCore* Of(ActorRef ref);

  // True if this thread may block for an actor of that slot's system.
  static bool MayBlockFor(const ActorSlot& slot);

  // Makes a message of a foreign thread to `to` a dead letter. Takes it over. The system of the
  // target counts and publishes it. The oldest system of the process gets a message to no one,
  // since the target names no system.
  static void LoseForeign(ActorRef to, EnvelopePtr envelope, DeadLetterReason reason);

  // True if the system accepts messages of foreign threads.
  bool is_open() const { return open_.load(std::memory_order_relaxed); }
  void Close() { open_.store(false, std::memory_order_relaxed); }

  // The metrics of foreign threads, or null. They belong to the process, as this does.
  ForeignMetrics* metrics() const { return metrics_.load(std::memory_order_acquire); }
  void SetMetrics(ForeignMetrics* metrics) { metrics_.store(metrics, std::memory_order_release); }

  // Sets the lifecycle that publishes dead letters of foreign threads; null for none. When it
  // returns, no thread calls the earlier one any more.
  void SetLifecycle(ActorLifecycle* lifecycle);
  // The path of an actor, for a thread that is no worker. Empty if it is not known.
  static std::string PathOf(ActorRef actor);

  // Sets the clock for messages of foreign threads that are sampled; null for none. When it
  // returns, no thread uses the earlier one any more.
  void SetToolbox(const RuntimeToolbox* toolbox);
  // The time of that clock; nothing if there is none.
  std::optional<Instant> Now() const;

  uint64_t foreign_dead_letters(DeadLetterReason reason) const {
    return lost_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  SystemCore() = default;

  // Relaxed: they pair with nothing, since a sender may always be too late.
  std::atomic<bool> open_{false};
  std::atomic<bool> threaded_{false};
  // The release of SetMetrics pairs with the acquire of metrics().
  std::atomic<ForeignMetrics*> metrics_{nullptr};
  // Statistics. Relaxed: they pair with nothing.
  std::array<std::atomic<uint64_t>, kDeadLetterReasonCount> lost_{};
  // Held while a dead letter is published: that is rare, and the system must not end meanwhile.
  Mutex lifecycle_mutex_;
  ActorLifecycle* lifecycle_ ABSL_GUARDED_BY(lifecycle_mutex_) = nullptr;
  // Held while the clock is read: only for sampled messages, and the system must not end meanwhile.
  mutable Mutex toolbox_mutex_;
  const RuntimeToolbox* toolbox_ ABSL_GUARDED_BY(toolbox_mutex_) = nullptr;
};

}  // namespace actor_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_SYSTEM_CORE_H_
