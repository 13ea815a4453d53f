#include "fraktor/actor/send/internal/deferred_target.h"

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fraktor::inline v0::actor_internal {
namespace {

#if defined(__linux__) && defined(SYS_membarrier)
bool RegisterForBarriers() { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0; }
// False if the kernel refuses.
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

bool ProcessBarrier::Heavy() { return BarrierOnAllCores(); }

template class BasicDeferredTarget<>;

}  // namespace fraktor::inline v0::actor_internal
