// Failure: the failure of an actor, as its supervisor sees it, and the directives that a supervisor
// may return.
//
//   SupervisionDirective OnChildFailure(const Failure& failure) {
//     return failure.IsTransient() ? Restart() : Escalate();
//   }
//
// The error is an absl::Status. A handler returned it, or threw an exception, whose text then is in
// an Internal error. FailureCause tells how the actor failed.
//
// An error may have travelled: a handler may return the error of an actor that it asked, here or on
// another node, with the kind that it had there. So supervision decides by Failure::cause, which no
// message carries, and never by the kind of the error.
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_SUPERVISION_FAILURE_H_
#define FRAKTOR_ACTOR_SUPERVISION_FAILURE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

// The kinds of errors of actors and asks, for programs that inspect the error of an ask or of a
// spawn. The kind is a payload of the status, so it stays with an error that an actor passes on.
enum class ActorErrorKind : uint8_t {
  kInitialization = 0,          // The constructor or PreStart failed.
  kKilled = 1,                  // It received Kill.
  kDeathPact = 2,               // An actor that it watched ended, and it does not handle Terminated.
  kThrown = 3,                  // A handler threw a std::exception.
  kThrownUnknown = 4,           // A handler threw something else.
  kNameTaken = 5,               // A living child has the name.
  kInvalidName = 6,             // The name is not allowed: path_segment.h has the rule.
  kTerminating = 7,             // The parent or the system is stopping its children.
  kAskCircle = 8,               // The ask would wait for itself.
  kAskTimeout = 9,              // No reply in time.
  kStashOverflow = 10,          // The stash is full.
  kSystemNotBootstrapped = 11,  // The system is booting, or its boot failed.
};
template <>
struct ErrorKindTraits<ActorErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/actor";
  static constexpr ActorErrorKind kLast = ActorErrorKind::kSystemNotBootstrapped;
};

// The verdict on an actor that failed.
enum class SupervisionDirective : uint8_t {
  kResume,    // It continues with the next message, unchanged. The failed message is lost.
  kRestart,   // A new instance takes its place and continues with the next message. The mailbox is kept.
  kStop,      // It ends.
  kEscalate,  // The supervisor fails too, with the same error and the same cause.
};

// Short forms for deciders.
constexpr SupervisionDirective Resume() { return SupervisionDirective::kResume; }
constexpr SupervisionDirective Restart() { return SupervisionDirective::kRestart; }
constexpr SupervisionDirective Stop() { return SupervisionDirective::kStop; }
constexpr SupervisionDirective Escalate() { return SupervisionDirective::kEscalate; }

std::string_view NameOf(SupervisionDirective directive);

struct Failure {
  ActorRef child;
  const absl::Status& error;
  // How often the child has been restarted so far, within the window of the strategy.
  int64_t restarts = 0;
  FailureCause cause = FailureCause::kReturned;

  // Returns whether a retry may help: Unavailable, DeadlineExceeded, Aborted, ResourceExhausted or
  // Cancelled.
  bool IsTransient() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SUPERVISION_FAILURE_H_
