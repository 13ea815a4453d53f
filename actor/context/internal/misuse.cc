#include "fraktor/actor/context/internal/misuse.h"

#include <atomic>

namespace fraktor::inline v0::actor_internal {
namespace {

// Relaxed: it orders nothing. A test sets it before it starts threads.
#ifdef NDEBUG
constinit std::atomic<bool> is_fatal{false};
#else
constinit std::atomic<bool> is_fatal{true};
#endif

}  // namespace

bool IsMisuseFatal() { return is_fatal.load(std::memory_order_relaxed); }

RefusedMisuse::RefusedMisuse() : was_fatal_(is_fatal.exchange(false, std::memory_order_relaxed)) {}
RefusedMisuse::~RefusedMisuse() { is_fatal.store(was_fatal_, std::memory_order_relaxed); }

}  // namespace fraktor::inline v0::actor_internal
