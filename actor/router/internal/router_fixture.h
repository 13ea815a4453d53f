// The part that tests of routers share: the routees of a router, and a system for stress tests.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTER_FIXTURE_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTER_FIXTURE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"

namespace fraktor::inline v0::router_internal {

// Asks the router for its routees. Returns none if it does not reply.
inline std::vector<ActorRef> AskForRoutees(ActorSystem& system, ActorRef router) {
  const absl::StatusOr<Routees> routees = system.AskAndWait<Routees>(router, GetRoutees{}, absl::Seconds(10));
  EXPECT_TRUE(routees.ok()) << routees.status();
  return routees.ok() ? routees->refs : std::vector<ActorRef>();
}

// A system with two workers, which logs nothing.
inline std::unique_ptr<ActorSystem> MakeStressSystem() {
  ActorSystemOptions options;
  options.config.system_name = "stress";
  options.log_level = LogLevel::kOff;
  options.workers = 2;
  return ActorSystem::Create(options).value();
}

}  // namespace fraktor::inline v0::router_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTER_FIXTURE_H_
