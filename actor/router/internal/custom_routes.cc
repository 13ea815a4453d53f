#include "fraktor/actor/router/internal/custom_routes.h"

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

struct CustomRoutes::Pool {
  CustomRoutes& Take() ABSL_LOCKS_EXCLUDED(mutex) {
    MutexLock lock(mutex);
    if (free.empty()) return *new CustomRoutes;  // NOLINT: it belongs to the process.
    CustomRoutes* const taken = free.back();
    free.pop_back();
    return *taken;
  }
  void Give(CustomRoutes& routes) ABSL_LOCKS_EXCLUDED(mutex) {
    MutexLock lock(mutex);
    free.push_back(&routes);
  }

  Mutex mutex;
  std::vector<CustomRoutes*> free ABSL_GUARDED_BY(mutex);
};

CustomRoutes::Pool& CustomRoutes::Free() {
  static Pool& pool = *new Pool;
  return pool;
}

CustomRoutes& CustomRoutes::Make(Owner owner, std::shared_ptr<const RoutingLogic> logic,
                                 absl::Span<const ActorRef> routees) {
  CustomRoutes& routes = Free().Take();
  routes.owner_ = owner;
  routes.logic_ = std::move(logic);
  routes.routees_.assign(routees.begin(), routees.end());
  routes.references_.Open();
  return routes;
}

void CustomRoutes::Recycle() {
  owner_ = {};
  logic_.reset();
  routees_ = std::vector<ActorRef>();
  Free().Give(*this);
}

}  // namespace fraktor::inline v0::actor_internal
