// SupervisorStrategy: how an actor supervises its children: which children a failure affects, how
// often a child is restarted, and what the verdict is.
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
// The example is a member of a typed actor. SpawnOptions::supervision sets a strategy for an actor
// whose class has none, and an ActorInstance overrides supervision().
//
// The default strategy restarts each child by itself, without a limit. It decides by
// Failure::cause: it stops a child that could not start, was killed, or died of a death pact; it
// escalates a thrown value that is no std::exception (`throw 42`), which ends the system if it
// reaches /user; it restarts the child in all other cases.
//
// A strategy is a constant that many actors may share. The supervisor keeps the counts, per child.
//
// Thread safety: immutable. Several threads call the decider of a shared strategy.
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
  kOneForOne,  // The verdict affects only the child that failed.
  // Restart and stop affect all children. Such a verdict also covers the failures of children that
  // it has not reached yet: the decider is not asked about them, and they restart or stop nobody
  // again. So n children that fail at once make n restarts. A child that fails after its restart
  // has failed anew.
  kAllForOne,
};

// The delay before a restart: `min` before the first, then `factor` times longer each time, at most
// `max`. None by default. The child stays suspended meanwhile, and its messages stay queued.
struct RestartBackoff {
  absl::Duration min = absl::ZeroDuration();
  absl::Duration max = absl::ZeroDuration();
  double factor = 2.0;

  absl::Duration After(int64_t restarts) const;
};

struct SupervisorStrategyOptions {
  SupervisionScope scope = SupervisionScope::kOneForOne;
  // The number of restarts that are allowed within the window; then the child is stopped. 0 allows
  // none. -1 allows any number, or one if the window is finite. With kAllForOne a restart counts
  // for each child that it affects, a failure that it covers counts for none, and a child that
  // exceeds the number stops all.
  int64_t max_restarts = -1;
  absl::Duration window = absl::InfiniteDuration();
  RestartBackoff backoff = {};
  // Null: the default decision.
  std::function<SupervisionDirective(const Failure& failure)> decider = nullptr;

  // Returns InvalidArgument with the name of the invalid option.
  absl::Status Validate() const;
};

// How often a child has been restarted.
struct RestartStats {
  int64_t restarts = 0;
  Instant window_start = Instant::InfiniteFuture();  // not begun
};

class SupervisorStrategy {
 public:
  SupervisorStrategy() : SupervisorStrategy(SupervisorStrategyOptions()) {}
  // Aborts the program on options that Validate refuses: options are constants of a program.
  explicit SupervisorStrategy(SupervisorStrategyOptions options);

  static const SupervisorStrategy& Default();
  // Stops every child that fails.
  static const SupervisorStrategy& Stopping();

  const SupervisorStrategyOptions& options() const { return options_; }
  bool is_all_for_one() const { return options_.scope == SupervisionScope::kAllForOne; }

  SupervisionDirective Decide(const Failure& failure) const;
  static SupervisionDirective DecideByDefault(const Failure& failure);

  // Counts a restart at `now`. Returns false if the limit is exceeded.
  bool AllowsRestart(RestartStats& stats, Instant now) const;

 private:
  const SupervisorStrategyOptions options_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SUPERVISION_SUPERVISOR_STRATEGY_H_
