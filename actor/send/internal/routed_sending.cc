#include "fraktor/actor/send/internal/routed_sending.h"

#include <atomic>
#include <utility>

namespace fraktor::inline v0::actor_internal {
namespace {

// The releases of InstallRouting pair with the acquires below. A thread that has a reference to a
// router finds them set.
std::atomic<RouteFunction> installed{nullptr};
std::atomic<UnwrapFunction> unwrapping{nullptr};

}  // namespace

void InstallRouting(RouteFunction route, UnwrapFunction unwrap) {
  unwrapping.store(unwrap, std::memory_order_release);
  installed.store(route, std::memory_order_release);
}

absl::Status RouteMessage(ActorRef router, EnvelopePtr message) {
  return installed.load(std::memory_order_acquire)(router, std::move(message));
}

EnvelopePtr UnwrapRouted(EnvelopePtr message) {
  if (!message->type()->is_intercepted()) return message;
  const UnwrapFunction unwrap = unwrapping.load(std::memory_order_acquire);
  return unwrap == nullptr ? std::move(message) : unwrap(std::move(message));
}

}  // namespace fraktor::inline v0::actor_internal
