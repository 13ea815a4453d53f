#include "fraktor/persistence/actor/persistent_actor_state.h"

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

std::string_view NameOf(PersistentActorState state) {
  switch (state) {
    case PersistentActorState::kWaitingRecoveryPermit:
      return "waiting_recovery_permit";
    case PersistentActorState::kRecoveryStarted:
      return "recovery_started";
    case PersistentActorState::kRecovering:
      return "recovering";
    case PersistentActorState::kProcessingCommands:
      return "processing_commands";
    case PersistentActorState::kPersistingEvents:
      return "persisting_events";
  }
  return "unknown";
}

absl::Status CheckTransition(PersistentActorState from, PersistentActorState to) {
  using State = PersistentActorState;
  const bool to_work = to == State::kProcessingCommands || to == State::kPersistingEvents;
  bool is_legal = false;
  switch (from) {
    case State::kWaitingRecoveryPermit:
      is_legal = to == State::kRecoveryStarted;
      break;
    case State::kRecoveryStarted:
      is_legal = to == State::kRecovering || to_work;
      break;
    case State::kRecovering:
      is_legal = to_work;
      break;
    case State::kProcessingCommands:
      is_legal = to == State::kPersistingEvents;
      break;
    case State::kPersistingEvents:
      is_legal = to == State::kProcessingCommands;
      break;
  }
  if (is_legal) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a persistent actor cannot go from ", ToAbsl(NameOf(from)), " to ",
                                          ToAbsl(NameOf(to)), ": this is a defect of fraktor; please report it"));
}

}  // namespace fraktor::inline v0
