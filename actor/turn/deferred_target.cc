#include "fraktor/actor/turn/deferred_target.h"

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fraktor::inline v0 {
namespace {

#if defined(__linux__) && defined(SYS_membarrier)
bool RegisterForBarriers() { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0; }
// False if there was none.
bool BarrierOnAllCores() { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0; }
#else
bool RegisterForBarriers() { return false; }
bool BarrierOnAllCores() { return false; }
#endif

}  // namespace

DeferralOrder BestDeferralOrder() {
  static const DeferralOrder order = RegisterForBarriers() ? DeferralOrder::kBarrier : DeferralOrder::kExchange;
  return order;
}

ActorSlot* DeferredTarget::Steal(ActorSlot* seen) {
  if (seen == nullptr) return nullptr;
  if (order_ == DeferralOrder::kExchange) {
    return shown_.compare_exchange_strong(seen, nullptr, std::memory_order_acquire, std::memory_order_relaxed)
               ? seen
               : nullptr;
  }
  MutexLock lock(mutex_);
  // The worker has not seen the last theft yet: what it shows is what was stolen then.
  if (stolen_ != nullptr) return nullptr;
  wanted_.store(true, std::memory_order_relaxed);
  // Without the barrier nobody knows whether the worker has taken it: it stays where it is.
  if (!BarrierOnAllCores() || shown_.load(std::memory_order_acquire) != seen) {
    wanted_.store(false, std::memory_order_relaxed);
    return nullptr;
  }
  stolen_ = seen;
  return seen;
}

ActorSlot* DeferredTarget::Settle(ActorSlot* slot) {
  MutexLock lock(mutex_);
  if (stolen_ == nullptr) return slot;  // The thief came too late, or has not looked yet and will find nothing.
  stolen_ = nullptr;
  wanted_.store(false, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace fraktor::inline v0
