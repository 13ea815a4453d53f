// What becomes of a path that the running system cannot use: an event and a dead letter, besides the error itself.
//
//   absl::StatusOr<ActorPath> path = ActorSelectionResolver::Resolve(base, selection);
//   if (!path.ok()) return reporter.Report(path.status(), {.sender = from, .recipient = text, .message = view}, now);
//
// A bare call of a parser reports nothing; whoever sends a message by a path does.
//
// Thread safety: any thread may call it. Time comes in as an argument.
#ifndef FRAKTOR_ACTOR_REGISTRY_PATH_FAILURE_H_
#define FRAKTOR_ACTOR_REGISTRY_PATH_FAILURE_H_

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/event_type.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// A message could not be sent by the path that it was meant for. A view that holds during the publication.
struct PathFailure {
  static constexpr EventInfo<PathFailure> kEvent{"PathFailure"};
  const absl::Status& error;  // with an ActorPathErrorKind or a PathResolutionErrorKind
  std::string_view sender;
  std::string_view recipient;  // as it was written, perhaps malformed
  Instant at;
};

class PathFailureReporter {
 public:
  // Both must live longer.
  PathFailureReporter(EventStream& events, DeadLetters& dead_letters) : events_(events), dead_letters_(dead_letters) {}

  // Publishes PathFailure and a DeadLetter whose reason follows from the error's kind, and returns the error. An OK
  // status is returned without a word.
  absl::Status Report(absl::Status error, const AllDeadLetters& letter, Instant now) const;

 private:
  EventStream& events_;
  DeadLetters& dead_letters_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_REGISTRY_PATH_FAILURE_H_
