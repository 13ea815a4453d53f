// How an actor supervises its children: whom a failure concerns, how often a child is restarted, and what is decided.
//
//   static const SupervisorStrategy& Supervision() {
//     static const SupervisorStrategy strategy({.scope = SupervisionScope::kAllForOne,
//                                               .max_restarts = 3,
//                                               .window = absl::Minutes(1),
//                                               .decider = [](const Failure& failure) {
//                                                 return failure.IsTransient() ? Restart() : Stop();
//                                               }});
//     return strategy;
//   }
//
// That is a typed actor's; SpawnOptions::supervision has one for an actor whose class says nothing, and an ActorInstance
// overrides supervision().
//
// The usual strategy restarts each child by itself, however often. It decides by Failure::cause: it
// stops a child that could not be started, was killed, or died of a death pact; it escalates
// something thrown that is no std::exception (`throw 42`), which at /user ends the system; it
// restarts after everything else.
//
// A strategy is a constant that many actors share. What it counts is kept per child, by the supervisor.
//
// Thread safety: immutable; deciders are called from many threads if the strategy is shared.
#ifndef FRAKTOR_ACTOR_SUPERVISION_SUPERVISOR_STRATEGY_H_
#define FRAKTOR_ACTOR_SUPERVISION_SUPERVISOR_STRATEGY_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

enum class SupervisionScope : uint8_t {
  kOneForOne,  // The verdict concerns the child that failed.
  kAllForOne,  // Restart and stop concern all children.
};

// How long a restart waits: `min` at the first, `factor` times longer each time, at most `max`; none by default. The
// child stays suspended meanwhile, and its messages wait.
struct RestartBackoff {
  absl::Duration min = absl::ZeroDuration();
  absl::Duration max = absl::ZeroDuration();
  double factor = 2.0;

  absl::Duration After(int64_t restarts) const;
};

struct SupervisorStrategyOptions {
  SupervisionScope scope = SupervisionScope::kOneForOne;
  // So many restarts are allowed within the window, and then the child is stopped. 0 allows none; -1 any number, or, if
  // there is a finite window, one.
  int64_t max_restarts = -1;
  absl::Duration window = absl::InfiniteDuration();
  RestartBackoff backoff = {};
  // Null: the usual.
  std::function<SupervisionDirective(const Failure& failure)> decider = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// How often a child has been restarted.
struct RestartStats {
  int64_t restarts = 0;
  Instant window_start = Instant::InfiniteFuture();  // Not begun.
};

class SupervisorStrategy {
 public:
  SupervisorStrategy() : SupervisorStrategy(SupervisorStrategyOptions()) {}
  // Dies of options that Validate refuses: they are constants of a program.
  explicit SupervisorStrategy(SupervisorStrategyOptions options);

  static const SupervisorStrategy& Default();
  // Stops whatever fails.
  static const SupervisorStrategy& Stopping();

  const SupervisorStrategyOptions& options() const { return options_; }
  bool is_all_for_one() const { return options_.scope == SupervisionScope::kAllForOne; }

  SupervisionDirective Decide(const Failure& failure) const;
  static SupervisionDirective DecideByDefault(const Failure& failure);

  // Counts a restart at `now`: false if it is one too many.
  bool AllowsRestart(RestartStats& stats, Instant now) const;

 private:
  const SupervisorStrategyOptions options_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SUPERVISION_SUPERVISOR_STRATEGY_H_
