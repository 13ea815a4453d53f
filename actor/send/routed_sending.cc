#include "fraktor/actor/send/routed_sending.h"

#include <atomic>
#include <utility>

namespace fraktor::inline v0 {
namespace {

// Released before a router can be known, so whoever has a reference to one, or a message of one, finds them.
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

}  // namespace fraktor::inline v0
