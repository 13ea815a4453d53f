// What came of running an actor: the answer of a MessageInvoker, by which a ReadyQueueCoordinator decides whether the
// actor is queued again.
//
//   InvokeResult result = invoker.InvokeBatch(slot, 64);
//   if (result.kind == InvokeResult::Kind::kSuspended) Log("waits for ", ToString(result.reason));
#ifndef FRAKTOR_ACTOR_READY_INVOKE_RESULT_H_
#define FRAKTOR_ACTOR_READY_INVOKE_RESULT_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

// What an actor is doing, seen from outside.
enum class ActorState : uint8_t { kRunning, kSuspended, kStopping, kStopped };

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

struct InvokeResult {
  enum class Kind : uint8_t {
    kCompleted,  // Did what there was to do; `ready_hint` says that something has come in since.
    kYielded,    // Used its budget with messages left.
    kSuspended,  // Handles no user message until `resume_on`.
    kFailed,     // A handler failed with `error`; suspended until the verdict, which comes as a system message.
    kStopped,    // Ended; its mailbox is empty and its slot free.
  };

  static InvokeResult Completed(bool ready_hint) { return {.kind = Kind::kCompleted, .ready_hint = ready_hint}; }
  static InvokeResult Yielded() { return {.kind = Kind::kYielded}; }
  static InvokeResult Suspended(SuspendReason reason, ResumeCondition resume_on) {
    return {.kind = Kind::kSuspended, .reason = reason, .resume_on = resume_on};
  }
  static InvokeResult Failed(absl::Status error, std::optional<absl::Duration> retry_after = std::nullopt) {
    InvokeResult result{.kind = Kind::kFailed};
    result.error = std::move(error);
    result.retry_after = retry_after;
    return result;
  }
  static InvokeResult Stopped() { return {.kind = Kind::kStopped}; }

  Kind kind = Kind::kCompleted;
  bool ready_hint = false;
  SuspendReason reason = SuspendReason::kUserDefined;
  ResumeCondition resume_on = ResumeCondition::ExternalSignal({});
  absl::Status error = {};
  std::optional<absl::Duration> retry_after = {};
};

std::string_view ToString(ActorState state);
std::string_view ToString(SuspendReason reason);
std::string_view ToString(InvokeResult::Kind kind);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_READY_INVOKE_RESULT_H_
