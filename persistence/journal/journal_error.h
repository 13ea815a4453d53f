// JournalErrorKind: what went wrong in a journal or a snapshot store, for programs that decide by
// it.
//
//   if (ErrorKindOf<JournalErrorKind>(status) == JournalErrorKind::kFenced) Stop();
//
// Every error about an id or an event names the persistence id, the sequence number where there is
// one, and what to do. Both are also details of the payload, "id" and "nr": so it is of all that a
// persistent actor hears of its own, also if a storage, or the circuit breaker before it, has
// answered with an error of another kind, or of none. Errors about a store as a whole (it is
// locked, closed, cannot be opened) have no such details.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_ERROR_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_ERROR_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

// Stored and sent: a number is never used for something else.
enum class JournalErrorKind {
  // The number is not above the highest that is stored, and what is stored there is another event.
  kSequenceMismatch = 0,
  // Another writer has opened the id since: the one who hears this must stop.
  kFenced = 1,
  // The epoch is one that the journal has never given: the id has to be opened again.
  kNotOpen = 2,
  // Above one of the JournalLimits.
  kTooLarge = 3,
  // The request makes no sense: an empty id, a number 0, an event that has no codec.
  kInvalid = 4,
  // What is stored is not what was written; or its codec is not the one that wrote it.
  kCorrupt = 5,
  // Written by a newer version of this program.
  kNewerSchema = 6,
  // Another process has the database open.
  kLocked = 7,
  // The files or the folder cannot be written.
  kReadOnly = 8,
  kDiskFull = 9,
  // The device or the storage failed in another way.
  kIo = 10,
  // Too much waits already: try again later.
  kOverloaded = 11,
  // The store is closed or closing.
  kClosed = 12,
  // No decoder is registered for the manifest of an event.
  kUnknownManifest = 13,
  // Events that are needed are deleted.
  kDeleted = 14,
  // The journal has lost events that it had acknowledged: a backup was restored, or the journal
  // does not sync and its machine crashed.
  kEventsLost = 15,
};

template <>
struct ErrorKindTraits<JournalErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/journal";
  static constexpr JournalErrorKind kLast = JournalErrorKind::kEventsLost;
};

// "fenced" for kFenced.
std::string_view JournalErrorKindName(JournalErrorKind kind);

// An error about one event: `event 7 of "account-7": <what>`.
absl::Status EventError(absl::StatusCode code, JournalErrorKind kind, std::string_view persistence_id,
                        uint64_t sequence_nr, std::string_view what);

// An error about a persistence id as a whole: `"account-7": <what>`.
absl::Status IdError(absl::StatusCode code, JournalErrorKind kind, std::string_view persistence_id,
                     std::string_view what);

// `cause` as an error about that event, or id. One that has a JournalErrorKind stays as it is;
// others become of `kind`, with their code, their payloads, and their text behind the name.
absl::Status AboutEvent(const absl::Status& cause, JournalErrorKind kind, std::string_view persistence_id,
                        uint64_t sequence_nr);
absl::Status AboutId(const absl::Status& cause, JournalErrorKind kind, std::string_view persistence_id);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_ERROR_H_
