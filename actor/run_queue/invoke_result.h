// How a run of an actor ends, and why and how long an actor is suspended.
//
//   if (invoker.Run(worker, slot) == InvokeResult::kYielded) worker.Register(slot, Placement::kYield);
//   return MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(delay));
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INVOKE_RESULT_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INVOKE_RESULT_H_

#include <compare>
#include <cstdint>
#include <string_view>

#include "absl/time/time.h"

namespace fraktor::inline v0 {

// Why an actor handles no user message for the time being. System messages it handles always.
enum class SuspendReason : uint8_t {
  kBackpressure,   // It has sent to a full mailbox.
  kAwaitExternal,  // It waits for something outside: a future, a verdict of its supervisor.
  kRateLimit,      // It has used what it may use for now.
  kUserDefined,    // A middleware said so.
};

// Names what an actor waits for, when it waits for a signal. Chosen by who suspends; opaque to the scheduler.
struct SignalKey {
  uint64_t value = 0;
  friend auto operator<=>(const SignalKey&, const SignalKey&) = default;
};

// When a suspended actor goes on.
class ResumeCondition {
 public:
  enum class Kind : uint8_t { kExternalSignal, kAfter, kWhenCapacityAvailable };

  static constexpr ResumeCondition ExternalSignal(SignalKey key) { return ResumeCondition(Kind::kExternalSignal, key); }
  static ResumeCondition After(absl::Duration delay) {
    ResumeCondition condition(Kind::kAfter, {});
    condition.delay_ = delay;
    return condition;
  }
  static constexpr ResumeCondition WhenCapacityAvailable() { return ResumeCondition(Kind::kWhenCapacityAvailable, {}); }

  constexpr Kind kind() const { return kind_; }
  // Only for kExternalSignal.
  constexpr SignalKey key() const { return key_; }
  // Only for kAfter.
  absl::Duration delay() const { return delay_; }

  friend bool operator==(const ResumeCondition&, const ResumeCondition&) = default;

 private:
  constexpr ResumeCondition(Kind kind, SignalKey key) : kind_(kind), key_(key) {}

  Kind kind_;
  SignalKey key_;
  absl::Duration delay_;
};

// How a run of an actor ends.
enum class InvokeResult : uint8_t {
  kCompleted,  // The mailbox is empty.
  kYielded,    // The budget is used, and there may be messages left: the actor is to be queued again.
  kSuspended,  // The actor handles no user message until its resume condition holds.
  kFailed,     // A handler has failed: the actor handles no user message until the verdict of its
               // supervisor, which comes as a system message.
  kStopped,    // The actor has ended. Its mailbox is empty and its slot is free.
};

std::string_view ToString(SuspendReason reason);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INVOKE_RESULT_H_
