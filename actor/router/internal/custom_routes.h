// CustomRoutes: the RoutingLogic of a router and the routees that it chooses from, for senders on
// any thread.
//
// The router calls Make, and Release when it publishes other routes. A sender calls TryAcquire,
// uses the routes, and calls Release.
//
// A sender may hold an old pointer, as it may hold an old reference to a router. Therefore the
// memory is reused for later routes of any router, and never freed. The logic and the routees end
// with the last Release.
//
// Thread safety: TryAcquire from any thread; the rest while the caller holds a reference.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_CUSTOM_ROUTES_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_CUSTOM_ROUTES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/reuse_count.h"
#include "fraktor/actor/router/routing_logic.h"

namespace fraktor::inline v0::actor_internal {

class CustomRoutes {
 public:
  // A router: its routing table, which is never freed either, and the generation of its slot.
  struct Owner {
    const void* table = nullptr;
    uint32_t generation = 0;

    bool operator==(const Owner&) const = default;
  };

  CustomRoutes(const CustomRoutes&) = delete;
  CustomRoutes& operator=(const CustomRoutes&) = delete;

  // The caller holds the first reference.
  static CustomRoutes& Make(Owner owner, std::shared_ptr<const RoutingLogic> logic, absl::Span<const ActorRef> routees);

  // False if these routes have ended, or serve another router by now.
  bool TryAcquire(Owner owner) {
    if (!references_.TryAcquire()) return false;
    if (owner_ == owner) return true;
    Release();
    return false;
  }
  void Release() {
    if (references_.Release()) Recycle();
  }

  const RoutingLogic& logic() const { return *logic_; }
  absl::Span<const ActorRef> routees() const { return routees_; }

 private:
  struct Pool;

  CustomRoutes() = default;
  static Pool& Free();
  void Recycle();

  ReuseCount references_;
  // Written before Open and after the last Release.
  Owner owner_;
  std::shared_ptr<const RoutingLogic> logic_;
  std::vector<ActorRef> routees_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_CUSTOM_ROUTES_H_
