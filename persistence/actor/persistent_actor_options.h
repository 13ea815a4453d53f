// How persistent actors behave where they can behave in several ways.
//
//   const PersistentActorOptions& options() const override {
//     static const PersistentActorOptions options = {.stash_capacity = 100, .stash_overflow = StashOverflow::Discard()};
//     return options;
//   }
//
// An actor that says nothing has those of the PersistenceExtension.
//
// Thread safety: values; constants once actors use them.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_OPTIONS_H_
#define FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/actor/replay_filter.h"
#include "fraktor/persistence/journal/journal_storage.h"

namespace fraktor::inline v0 {

// What becomes of a command that has to wait and finds no room.
class StashOverflow {
 public:
  enum class Answer : uint8_t { kFail, kDiscard, kReply };

  // The actor fails with ActorErrorKind::kStashOverflow, and the command is lost. If its supervisor restarts or stops
  // it, all commands that wait are dead letters (stash_full), and who asked by them hears ResourceExhausted: so it
  // comes back from its events, and to what is behind them in its mailbox. With a verdict to resume they stay. What the
  // actor has put aside by Stash goes back to its mailbox, as at any restart.
  static StashOverflow Fail() { return StashOverflow(Answer::kFail); }
  // The command is a dead letter (stash_full), and the actor goes on.
  static StashOverflow Discard() { return StashOverflow(Answer::kDiscard); }
  // The sender gets a copy of `reply`, and the actor goes on. A command without a sender is discarded.
  template <class M>
  static StashOverflow ReplyWith(M reply) {
    static_assert(std::is_copy_constructible_v<M>, "the reply is copied for each sender: give it a copy constructor");
    StashOverflow overflow(Answer::kReply);
    overflow.make_reply_ = [reply = std::move(reply)](ActorRef sender) { return MakeEnvelope<M>(sender, M(reply)); };
    return overflow;
  }

  Answer answer() const { return answer_; }
  // For kReply.
  EnvelopePtr MakeReply(ActorRef sender) const { return make_reply_(sender); }

 private:
  explicit StashOverflow(Answer answer) : answer_(answer) {}

  Answer answer_;
  std::function<EnvelopePtr(ActorRef sender)> make_reply_;
};

struct PersistentActorOptions {
  // So many commands may wait for a recovery or for events to be stored; and then? (Whoever sends more at once than the
  // actor can store chooses Discard or ReplyWith, bounds the mailbox, or asks instead of telling.)
  size_t stash_capacity = 100'000;
  StashOverflow stash_overflow = StashOverflow::Fail();
  // So many messages may be put aside by Stash.
  size_t user_stash_capacity = 10'000;
  // So many events may wait to be stored; one more is a failure of the actor.
  size_t max_pending_events = 100'000;

  // Of a journal on this node another limit comes first: its circuit breaker answers for it after
  // CircuitBreakerOptions::call_timeout (10 s; JournalSetup::options.breaker), and then the write or the opening of the
  // recovery has failed. These matter if the journal is on another node, where a message or an answer may be lost, and
  // recovery_event_timeout also for replays, which no breaker watches.

  // A write that is not answered for so long is sent again, so many times; then it has failed. An
  // answer to a part of it begins the count anew.
  absl::Duration write_timeout = absl::Seconds(15);
  int max_write_resends = 3;

  // A recovery has failed if nothing comes for so long. The first page of a replay is small, and
  // the next ones grow only while they come in a quarter of this time. So a slow journal is not too
  // late.
  absl::Duration recovery_event_timeout = absl::Seconds(30);
  // How much of a replay is in memory at a time: two such pages. While one is applied the next one is read; small pages
  // make threads wait for each other.
  PageLimits replay_page = {.max_events = 4000};
  ReplayFilterOptions replay_filter = {};
  // Whether an actor whose snapshot store fails to load a snapshot is brought back from its events
  // alone. All of them are needed then. (A snapshot that was loaded but that the codec cannot read
  // is passed over in any case.)
  bool snapshot_is_optional = false;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_OPTIONS_H_
