#include "fraktor/actor/turn/routed_sending.h"

#include <atomic>
#include <utility>

namespace fraktor::inline v0 {
namespace {

// Released before a router can be known, so whoever has a reference to one finds it.
std::atomic<RouteFunction> installed{nullptr};

}  // namespace

void InstallRouting(RouteFunction route) { installed.store(route, std::memory_order_release); }

absl::Status RouteMessage(ActorRef router, EnvelopePtr message) {
  return installed.load(std::memory_order_acquire)(router, std::move(message));
}

}  // namespace fraktor::inline v0
