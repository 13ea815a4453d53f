// FailureCause: how an actor failed, for supervision.
//
//   // Stops children that cannot start, and restarts all others.
//   SupervisionDirective OnChildFailure(const Failure& failure) {
//     return failure.cause == FailureCause::kInitialization ? Stop() : Restart();
//   }
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_SUPERVISION_FAILURE_CAUSE_H_
#define FRAKTOR_ACTOR_SUPERVISION_FAILURE_CAUSE_H_

#include <cstdint>

namespace fraktor::inline v0 {

// How an actor failed. The runtime sets it where the failure happens. It is no part of the error
// and does not travel with it.
enum class FailureCause : uint8_t {
  kReturned = 0,    // A handler returned an error.
  kThrown,          // A handler threw a std::exception.
  kThrownUnknown,   // A handler threw something else.
  kInitialization,  // The constructor, PreStart or PostRestart failed; or OnRecoveryCompleted of a persistent actor.
  kKilled,          // It received Kill.
  kDeathPact,       // An actor that it watched ended, and it does not handle Terminated.
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SUPERVISION_FAILURE_CAUSE_H_
