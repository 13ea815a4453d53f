// The requests to a journal actor, and its answers.
//
//   context.Tell(journal, WriteMessages{.writes = std::move(writes), .client = self, .instance_id = 7, .batch = 1});
//   ...
//   WriteMessagesSuccessful{7, 1}, then for each event in order WriteMessageSuccess{12, 7, 1}
//
// Every request names its client, which receives the answers, and the client's instance: a number
// of the incarnation that asks. Answers repeat it, so that a restarted actor recognizes answers to
// an earlier incarnation.
//
// The meaning of answers for events is in fraktor/persistence/journal/journal_storage.h.
//
// Thread safety: values.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_JOURNAL_MESSAGES_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_JOURNAL_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"

namespace fraktor::inline v0 {

// Requests.

// Makes the client the only writer of the id. Answer: WriterIsOpen or OpenWriterFailure.
struct OpenWriter {
  std::string persistence_id = {};
  // A fencing token from the part of the program that decides on ownership. 0: the journal counts
  // by itself.
  uint64_t token = 0;
  ActorRef client = {};
  uint64_t instance_id = 0;
};

// An entry of a write that is not stored but answered in its place, by a LoopMessageSuccess.
struct DeferredEntry {
  // Before the atomic write with this index; behind all, if that is their number.
  size_t position = 0;
  uint64_t token = 0;
};

// One, mostly: copies share their events.
using AtomicWrites = absl::InlinedVector<AtomicWrite, 1>;

// Stores atomic writes. Answer: WriteMessagesSuccessful, then for each event in order
// WriteMessageSuccess, WriteMessageRejected or, if the writer cannot go on, WriteMessageFailure. Or
// WriteMessagesFailed, and then a WriteMessageFailure for each. Deferred entries are answered in
// any case. A request with deferred entries alone does not reach the store.
struct WriteMessages {
  AtomicWrites writes = {};
  std::vector<DeferredEntry> deferred = {};  // rising
  ActorRef client = {};
  uint64_t instance_id = 0;
  // The client's number for this request. One that is sent again has it again.
  uint64_t batch = 0;
  // The answers for the events and deferred entries are enough: neither WriteMessagesSuccessful nor
  // WriteMessagesFailed comes before them. For clients on the journal's own node. It is not sent to
  // another node, whose journal answers both.
  bool only_events_are_answered = false;
};

// Reads one page of a replay. Answer: ReplayedMessages if there are any, and RecoverySuccess if
// that was all; or ReplayMessagesFailure. The client asks for the next page: so it is never sent
// more than it can take, and one that is gone costs nothing.
struct ReplayMessages {
  std::string persistence_id = {};
  uint64_t from_sequence_nr = 1;
  uint64_t to_sequence_nr = std::numeric_limits<uint64_t>::max();  // included
  uint64_t max_events = std::numeric_limits<uint64_t>::max();      // 0: only the highest number
  PageLimits limits = {};
  // The highest number, if the client knows it from WriterIsOpen: spares the store a look.
  bool knows_highest = false;
  uint64_t highest_sequence_nr = 0;
  ActorRef client = {};
  uint64_t instance_id = 0;
  // RecoverySuccess must have its last_sent_nr. A client on a node of an older version does not ask
  // for it. Sent to other nodes only together with knows_highest.
  bool asks_for_last_sent = false;
};

// Deletes events up to and including a number. Answer: DeleteMessagesSuccess or
// DeleteMessagesFailure.
struct DeleteMessagesTo {
  // It is published, if the journal's options say so.
  static constexpr EventInfo<DeleteMessagesTo> kEvent{"DeleteMessagesTo"};
  static constexpr bool kOwnsItsData = true;

  std::string persistence_id = {};
  uint64_t to_sequence_nr = 0;
  ActorRef client = {};
  uint64_t instance_id = 0;
  // From WriterIsOpen, as in JournalStorage::DeleteTo. A node of an older version does not send it:
  // then it is kNoEpoch, and the journal refuses the deletion for every id that was opened.
  uint64_t epoch = kNoEpoch;
};

// Answer: HighestSequenceNrSuccess or HighestSequenceNrFailure.
struct GetHighestSequenceNr {
  std::string persistence_id = {};
  ActorRef client = {};
  uint64_t instance_id = 0;
};

// Answers.

struct WriterIsOpen {
  uint64_t epoch = 0;
  uint64_t highest_sequence_nr = 0;
  uint64_t instance_id = 0;
  // As in WriterOpened. 0 also of a journal on another node that does not say it yet.
  uint64_t deleted_to = 0;
};
struct OpenWriterFailure {
  absl::Status cause = {};
  uint64_t instance_id = 0;
};

// The write as a whole went well; what became of each event follows.
struct WriteMessagesSuccessful {
  uint64_t instance_id = 0;
  uint64_t batch = 0;
};
// The write may be stored or not, as a whole.
struct WriteMessagesFailed {
  absl::Status cause = {};
  size_t write_count = 0;
  uint64_t instance_id = 0;
  uint64_t batch = 0;
};
struct WriteMessageSuccess {
  uint64_t sequence_nr = 0;
  uint64_t instance_id = 0;
  uint64_t batch = 0;
};
// The event is not stored; its number is used up. The writer goes on.
struct WriteMessageRejected {
  uint64_t sequence_nr = 0;
  absl::Status cause = {};
  uint64_t instance_id = 0;
  uint64_t batch = 0;
};
// The writer must stop.
struct WriteMessageFailure {
  uint64_t sequence_nr = 0;
  absl::Status cause = {};
  uint64_t instance_id = 0;
  uint64_t batch = 0;
};
struct LoopMessageSuccess {
  uint64_t token = 0;
  uint64_t instance_id = 0;
  uint64_t batch = 0;
};

// A page of events.
struct ReplayedMessages {
  EventBatch events = {};
  // A RecoverySuccess follows. Otherwise the client asks for what is from events.resume_at() on.
  bool is_last = false;
  uint64_t instance_id = 0;
};
struct RecoverySuccess {
  uint64_t highest_sequence_nr = 0;
  uint64_t instance_id = 0;
  // The number of the last event in the page before this message; 0 if there was no page. The
  // client notices by it that the page was lost. Absent: the client did not ask for it, or the
  // journal is on a node of an older version.
  std::optional<uint64_t> last_sent_nr = {};
};
struct ReplayMessagesFailure {
  absl::Status cause = {};
  uint64_t instance_id = 0;
};

struct DeleteMessagesSuccess {
  uint64_t to_sequence_nr = 0;
  uint64_t instance_id = 0;
};
struct DeleteMessagesFailure {
  absl::Status cause = {};
  uint64_t to_sequence_nr = 0;
  uint64_t instance_id = 0;
};

struct HighestSequenceNrSuccess {
  uint64_t highest_sequence_nr = 0;
  uint64_t instance_id = 0;
};
struct HighestSequenceNrFailure {
  absl::Status cause = {};
  uint64_t instance_id = 0;
};

// A client that stops while it waits for an answer does not miss it.
template <>
inline constexpr bool kIsSuppressedDeadLetter<WriterIsOpen> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<OpenWriterFailure> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<WriteMessagesSuccessful> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<WriteMessagesFailed> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<WriteMessageSuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<WriteMessageRejected> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<WriteMessageFailure> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<LoopMessageSuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<ReplayedMessages> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<RecoverySuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<ReplayMessagesFailure> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<DeleteMessagesSuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<DeleteMessagesFailure> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<HighestSequenceNrSuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<HighestSequenceNrFailure> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_JOURNAL_MESSAGES_H_
