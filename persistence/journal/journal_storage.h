// JournalStorage: the interface of stores of events. The journal actor, queries and tools use it.
//
//   WriterOpened writer = storage.OpenWriter("account-7", {}).Wait().value();             // in main() and tests only
//   PersistentRepr event{.persistence_id = "account-7", .sequence_nr = writer.highest_sequence_nr + 1,
//                        .epoch = writer.epoch, .manifest = "deposited", .payload = bytes};
//   std::vector<AtomicWrite> writes = {AtomicWrite::Make(event).value()};
//   WriteResults results = storage.Write(std::move(writes)).Wait().value();               // empty: all are stored
//   EventBatch batch = storage.Replay({.persistence_id = "account-7"}).Wait().value();    // the first piece
//
// Every call returns at once and answers by a future; a store that waits for a disk does so on
// threads of its own. Dropping a future does not take its request back.
//
// Order. Openings, writes and deletions take effect in the order in which they were asked for. A
// read sees everything that was answered before it was asked for; it may overtake a write that is
// still under way. A reader that must see such writes opens the writer first, and recovery does.
//
// Durability. When a write, an opening or a deletion has been answered with success, it survives
// what the store says it survives: a crash of the process always, a loss of power unless the store
// was told not to sync.
//
// Ids. OpenWriter, Write, Replay, HighestSequenceNr and DeleteTo refuse an id that is empty
// (kInvalid) or longer than JournalLimits::max_persistence_id_bytes (kTooLarge), whether it is
// known or not: CheckPersistenceId says so for all.
//
// Bounded. A read hands over at most one page; the caller asks again for more, and keeps no
// resource of the store in between. Requests that wait are limited too: a request is refused
// (kOverloaded) if those that wait before it have reached the limit. It has had no effect then.
//
// Thread safety: all methods may be called from any thread. The store must outlive its calls, not
// its futures.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_STORAGE_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

// The answer of OpenWriter.
struct WriterOpened {
  uint64_t epoch = 0;
  uint64_t highest_sequence_nr = 0;
  // All events up to this number are deleted: a recovery needs a snapshot that is not older. 0:
  // none is.
  uint64_t deleted_to = 0;
};

// One entry for each atomic write, in order: OK, or why it was rejected. Nothing at all if all are
// OK.
using WriteResults = std::vector<absl::Status>;

// OK if `results` is an answer to so many atomic writes: none, or one for each. Otherwise the error
// that the whole write fails with: nobody can say what was stored.
absl::Status CheckWriteResults(const WriteResults& results, size_t atomic_writes);

// How much one page may have. A page has at least one event if there is one, however large.
struct PageLimits {
  size_t max_events = 1000;
  size_t max_bytes = size_t{4} << 20;

  // For stores: whether nothing may be added to the page.
  bool ReachedBy(const EventBatch& batch) const {
    return !batch.empty() && (batch.size() >= max_events || batch.byte_size() >= max_bytes);
  }
};

struct ReplayPage {
  std::string persistence_id = {};
  uint64_t from_sequence_nr = 1;
  uint64_t to_sequence_nr = std::numeric_limits<uint64_t>::max();  // included
  PageLimits limits = {};
};

struct TagPage {
  std::string tag = {};
  uint64_t from_offset = 0;
  uint64_t to_offset = std::numeric_limits<uint64_t>::max();  // included
  PageLimits limits = {};
};

struct IdPage {
  uint64_t from_offset = 0;
  size_t max_ids = 1000;
};

// Persistence ids in the order in which the journal first met them.
struct IdBatch {
  std::vector<std::string> ids = {};
  // IdPage::from_offset of the next page.
  uint64_t resume_at = 0;
  bool at_end = true;
};

// The subject of a live query.
struct JournalSubject {
  enum class Kind { kId, kTag, kAllIds };

  static JournalSubject OfId(std::string persistence_id) { return {Kind::kId, std::move(persistence_id)}; }
  static JournalSubject OfTag(std::string tag) { return {Kind::kTag, std::move(tag)}; }
  static JournalSubject OfAllIds() { return {Kind::kAllIds, {}}; }

  Kind kind = Kind::kAllIds;
  std::string name = {};  // the id or the tag

  friend bool operator==(const JournalSubject&, const JournalSubject&) = default;
};

class JournalStorage : public IdentifiedStore {
 public:
  // Makes the caller the only one who may write to the id: stores a new epoch durably and answers
  // it. Comes before the replay of a recovery, or else a former writer could still write between
  // the replay and the first write of the new one.
  //
  // Without a token the epoch is one more than the last. With one, which is a number from the part
  // of the program that decides on ownership (and not 0), it is the token: kFenced if a higher
  // epoch has been stored, so that an owner of the past cannot come back; the same token may open
  // again. One id uses one of the two ways.
  virtual Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token) = 0;

  // Stores atomic writes. Each one is stored as a whole or rejected as a whole, and is judged as if
  // those before it in the list were stored. Rejected:
  // - kFenced: the epoch is below that of the id. The writer must stop.
  // - kNotOpen: the epoch is above that of the id, as after a crash of a journal that does not
  //   sync. Open again.
  // - kEventsLost: the highest number of the id is below what the writer knows to be stored
  //   (AtomicWrite::known_stored) below this write. The journal has lost its tail.
  // - kSequenceMismatch: a number is not above the highest of the id, and what is stored is
  //   something else. An atomic write that is stored already, by the same writer and with the same
  //   bytes, is a success: it was sent again because an answer was lost. Numbers may leave gaps.
  // - kTooLarge, kInvalid: see CheckAtomicWrite.
  // - kCorrupt, kNewerSchema, kIo: what the journal knows of this id cannot be read. Others are
  //   not concerned.
  // A writer that hears of kEventsLost, kSequenceMismatch, kFenced, kNotOpen, kCorrupt,
  // kNewerSchema or kIo cannot go on: what is stored is not what it believes. The other rejections
  // concern the events. An error of the future itself means that nothing is known: each of the
  // writes may or may not be stored.
  virtual Future<WriteResults> Write(std::vector<AtomicWrite> writes) = 0;

  // Write for a store that waits for nothing, at less cost: sets what the future would have come
  // to. False: it has to wait, nothing was done, and the caller calls Write.
  virtual bool WriteAtOnce(std::span<const AtomicWrite> writes, absl::StatusOr<WriteResults>& answer);

  // Events of one id in rising order: from the first that is not deleted and not below
  // `from_sequence_nr`. Nothing for an unknown id. A page to the end of the id that has no events
  // goes on behind the deleted ones, so that a live query can wait from there. kCorrupt or
  // kNewerSchema, naming the event, if the first of the page cannot be read; the events before it
  // come in pages of their own.
  virtual Future<EventBatch> Replay(ReplayPage page) = 0;

  // The highest number that was ever stored, deleted or not. 0 for an unknown id.
  virtual Future<uint64_t> HighestSequenceNr(std::string persistence_id) = 0;

  // Deletes all events up to and including `to_sequence_nr`, as far as there are any. The highest
  // number stays. `epoch` is that of the owner, as in a write: kFenced if it is below the epoch of
  // the id, kNotOpen if it is above. So a former owner deletes nothing that its successor needs.
  // kNoEpoch deletes events of an id that was never opened, and is kFenced for all others.
  virtual Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) = 0;

  // Events with a tag that are not deleted, of all ids, in the order in which they were committed.
  // None with a lower offset appears later.
  virtual Future<EventBatch> EventsByTag(TagPage page) = 0;

  virtual Future<IdBatch> PersistenceIds(IdPage page) = 0;

  // For live queries: completes when there is something above `after`, with the highest number that
  // is known: of a sequence number for an id, of an offset for a tag and for all ids. It may be
  // more than what the next page shows, as events may have been deleted. Drop the future to stop
  // waiting. kOverloaded if too many wait; FailedPrecondition (kReadOnly) if there is nothing, and
  // nothing can come, since the journal was opened to be read only.
  virtual Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) = 0;

  // Takes no more requests (they get kClosed), and completes when all that were taken are answered
  // and the storage is let go. May be called again.
  virtual Future<void> Close() = 0;

  virtual const JournalLimits& limits() const = 0;

  // How many journal actors it serves best. One, if it gains from writes that are collected from
  // all clients; more, if it answers at once, so that one actor would be what all others wait for.
  virtual size_t UsefulActors() const { return 1; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_STORAGE_H_
