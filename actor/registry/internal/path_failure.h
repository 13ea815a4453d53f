// PathFailureReporter: reports a path that the running system cannot use, as an event and as a dead
// letter.
//
//   absl::StatusOr<ActorPath> path = ActorSelectionResolver::Resolve(base, selection);
//   if (!path.ok()) {
//     return reporter.Report(path.status(), {.sender = from, .recipient = text, .message = view}, now);
//   }
//
// The parser reports nothing. The code that sends a message by a path reports the failure.
//
// Thread safety: any thread may call it. Callers pass the time.
#ifndef FRAKTOR_ACTOR_REGISTRY_INTERNAL_PATH_FAILURE_H_
#define FRAKTOR_ACTOR_REGISTRY_INTERNAL_PATH_FAILURE_H_

#include "absl/status/status.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

class PathFailureReporter {
 public:
  // Both must outlive the reporter.
  PathFailureReporter(EventStream& events, DeadLetters& dead_letters) : events_(events), dead_letters_(dead_letters) {}

  // Publishes a PathFailure and a DeadLetter, whose reason follows from the kind of the error, and
  // returns the error. Does nothing for OK.
  absl::Status Report(absl::Status error, const AllDeadLetters& letter, Instant now) const;

 private:
  EventStream& events_;
  DeadLetters& dead_letters_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_REGISTRY_INTERNAL_PATH_FAILURE_H_
