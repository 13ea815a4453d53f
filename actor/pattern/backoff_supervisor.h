// BackoffSupervisor: the parent of one child, which it restarts after a pause that grows with each
// restart.
//
//   BackoffSupervisorOptions options;
//   options.child = MakeTypedProps<Connection>({}, address);
//   options.child_name = "connection";
//   options.min_backoff = absl::Milliseconds(100);
//   options.max_backoff = absl::Seconds(30);
//   PropsPtr props = MakeBackoffProps(std::move(options)).value();
//   ActorRef connection = system.TrySpawn(*props, "connection-supervisor").value();
//
// The supervisor passes messages to its child, with their senders, and passes messages from the
// child to its own parent. It handles GetCurrentChild, GetRestartCount and ResetBackoff itself.
//
// kOnFailure: if the verdict on a failure is to restart the child, the supervisor stops the child
// and starts a new one after the pause. If the child ends in any other way, the supervisor ends
// too. kOnStop: the supervisor starts a child that has ended, for any reason, again after the
// pause. It decides about failures as usual, so a restart has no pause.
//
// The n-th pause in a row is min_backoff * 2^(n-1), at most max_backoff, plus a random part of up
// to `jitter` of it. The count starts again when the child has lived for auto_reset, or on
// ResetBackoff if auto_reset is infinite.
//
// The target is //actor/pattern:backoff_supervisor.
//
// Thread safety: that of any actor.
#ifndef FRAKTOR_ACTOR_PATTERN_BACKOFF_SUPERVISOR_H_
#define FRAKTOR_ACTOR_PATTERN_BACKOFF_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/supervision/failure.h"

namespace fraktor::inline v0 {

// Messages to the supervisor.
struct CurrentChild {
  ActorRef child;  // no one between two children
};
struct GetCurrentChild {
  using Reply = CurrentChild;
};
struct RestartCount {
  int64_t count;  // restarts in a row
};
struct GetRestartCount {
  using Reply = RestartCount;
};
// Makes the next pause the shortest one again.
struct ResetBackoff {};

enum class BackoffTrigger : uint8_t { kOnFailure, kOnStop };

struct BackoffSupervisorOptions {
  BackoffTrigger trigger = BackoffTrigger::kOnFailure;
  // How to make the child. Required.
  PropsPtr child = nullptr;
  std::string child_name = "child";
  // Must be positive.
  absl::Duration min_backoff = absl::Milliseconds(200);
  absl::Duration max_backoff = absl::Seconds(30);
  // From 0 to 1.
  double jitter = 0.2;
  // How long a child must live until the count starts again; min_backoff if not set. Infinite: only
  // ResetBackoff resets the count.
  std::optional<absl::Duration> auto_reset = std::nullopt;
  // The number of restarts in a row after which the supervisor ends. -1: no limit.
  int64_t max_restarts = -1;
  // Returns true for a message after which the child does not start again: the supervisor ends with
  // the child.
  std::function<bool(const Envelope& message)> is_final_stop = nullptr;
  // Decides about failures of the child. Null: the default decision.
  std::function<SupervisionDirective(const Failure& failure)> decider = nullptr;

  // Handles messages that arrive while the child is away. Set at most one of the two. With neither,
  // the messages are dead letters of the child, and an asker receives Unavailable with the time
  // until the child starts again. Usually `while_away` replies: `[](ActorContext& context) {
  // context.Reply(ErrorReply{...}); }`
  std::function<void(ActorContext& context)> while_away = nullptr;
  ActorRef handler_while_away = {};

  // Returns InvalidArgument with the name of the invalid option.
  absl::Status Validate() const;
};

// Returns the pause before the restart after `restarts` others, for valid options. `chance` is from
// 0 to 1.
absl::Duration BackoffAfter(const BackoffSupervisorOptions& options, int64_t restarts, double chance);

// Returns the props of such a supervisor, or the error of the options.
absl::StatusOr<PropsPtr> MakeBackoffProps(BackoffSupervisorOptions options, const PropsOptions& props = {});

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_BACKOFF_SUPERVISOR_H_
