// How a run of an actor ends (InvokeResult), and why and how long an actor is suspended
// (SuspendReason, ResumeCondition). MessageInvoker::Run returns an InvokeResult to the worker. A
// middleware (invoker_middleware.h) chooses a reason and a condition:
//
//   const ResumeCondition soon = ResumeCondition::After(absl::Milliseconds(1));
//   return MiddlewareFlow::Break(SuspendReason::kRateLimit, soon);
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INVOKE_RESULT_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INVOKE_RESULT_H_

#include <compare>
#include <cstdint>
#include <string_view>

#include "absl/time/time.h"

namespace fraktor::inline v0 {

// Why an actor handles no user messages for now. It always handles system messages.
enum class SuspendReason : uint8_t {
  kBackpressure,   // It has sent to a full mailbox.
  kAwaitExternal,  // It waits for a future, or for the decision of its supervisor.
  kRateLimit,      // It has used up its rate.
  kUserDefined,    // A middleware has suspended it for a reason of its own.
};

// The name of a signal that an actor waits for. The middleware that suspends the actor chooses it.
struct SignalKey {
  uint64_t value = 0;
  friend auto operator<=>(const SignalKey&, const SignalKey&) = default;
};

// When a suspended actor resumes.
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
  kYielded,    // The budget is used up and messages may be left: the worker must queue the actor again.
  kSuspended,  // The actor handles no user message until its resume condition holds.
  kFailed,     // A handler has failed: the actor handles no user message until its supervisor has
               // decided, which it learns by a system message.
  kStopped,    // The actor has ended. Its mailbox is empty and its slot is free.
};

std::string_view ToString(SuspendReason reason);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INVOKE_RESULT_H_
