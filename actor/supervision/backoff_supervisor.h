// BackoffSupervisor: the parent of one child that it starts again after a pause, which grows with each time.
//
//   BackoffSupervisorOptions options;
//   options.child = MakeTypedProps<Connection>({}, address);
//   options.child_name = "connection";
//   options.min_backoff = absl::Milliseconds(100);
//   options.max_backoff = absl::Seconds(30);
//   PropsPtr props = MakeBackoffProps(std::move(options)).value();
//   ActorRef connection = system.TrySpawn(*props, "connection-supervisor").value();
//
// Messages go through it to the child, with their senders; what the child sends to it goes to its own parent. It answers
// GetCurrentChild, GetRestartCount and ResetBackoff itself.
//
// On failure: a child that fails, and is to be restarted by the verdict, is stopped and started anew after the pause. A
// child that ends otherwise, by itself or by a verdict to stop, ends its supervisor.
// On stop: a child that has ended, for whatever reason, is started anew after the pause. Failures are decided on as usual,
// so a restart is one without a pause.
//
// The n-th pause in a row is min_backoff * 2^(n-1), at most max_backoff, and longer by up to `jitter` of it, by chance.
// The count begins anew when the child has lived for auto_reset, or on ResetBackoff if that is infinite.
//
// The target is //actor/supervision:backoff_supervisor, apart from //actor/supervision, which systems are made of.
//
// Thread safety: that of any actor.
#ifndef FRAKTOR_ACTOR_SUPERVISION_BACKOFF_SUPERVISOR_H_
#define FRAKTOR_ACTOR_SUPERVISION_BACKOFF_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/turn/actor_context.h"

namespace fraktor::inline v0 {

// To the supervisor.
struct CurrentChild {
  ActorRef child;  // No one while it is away.
};
struct GetCurrentChild {
  using Reply = CurrentChild;
};
struct RestartCount {
  int64_t count;  // In a row.
};
struct GetRestartCount {
  using Reply = RestartCount;
};
// The next pause is the shortest again.
struct ResetBackoff {};

enum class BackoffTrigger : uint8_t { kOnFailure, kOnStop };

struct BackoffSupervisorOptions {
  BackoffTrigger trigger = BackoffTrigger::kOnFailure;
  // How the child is made. Must be set.
  PropsPtr child = nullptr;
  std::string child_name = "child";
  // Positive.
  absl::Duration min_backoff = absl::Milliseconds(200);
  absl::Duration max_backoff = absl::Seconds(30);
  // From 0 to 1.
  double jitter = 0.2;
  // So long a child must live for the count to begin anew; min_backoff if not given. Infinite: on ResetBackoff only.
  std::optional<absl::Duration> auto_reset = std::nullopt;
  // So many restarts in a row, and then the supervisor ends. -1: any number.
  int64_t max_restarts = -1;
  // A message after which the child is not started again: the supervisor ends with the child.
  std::function<bool(const Envelope& message)> is_final_stop = nullptr;
  // On the child's failures. Null: the usual.
  std::function<SupervisionDirective(const Failure& failure)> decider = nullptr;

  // For messages that come while the child is away. At most one of these; without either they are dead letters
  // to the child, and who asked hears Unavailable, with the time until the child starts again. Mostly an answer: `[](ActorContext& context) { context.Reply(ErrorReply{...}); }`.
  std::function<void(ActorContext& context)> while_away = nullptr;
  ActorRef handler_while_away = {};

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// The pause before the restart that follows `restarts` others, for options that are valid. `chance` is from 0 to 1.
absl::Duration BackoffAfter(const BackoffSupervisorOptions& options, int64_t restarts, double chance);

// How such a supervisor is made. Errors: those of the options.
absl::StatusOr<PropsPtr> MakeBackoffProps(BackoffSupervisorOptions options, const PropsOptions& props = {});

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SUPERVISION_BACKOFF_SUPERVISOR_H_
