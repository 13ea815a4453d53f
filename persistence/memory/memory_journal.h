// MemoryJournal: a journal in memory, for tests, for simulations, and for state that need not survive the process.
//
//   auto journal = MemoryJournal::Open({}).value();
//   WriterOpened writer = journal->OpenWriter("account-7", {}).Take().value();    // ready at once
//
// Futures are ready when they are returned, unless a delay is asked for. Everything it does is decided by its requests
// and its seed, so a simulation repeats.
//
// On a MemoryDisk it also survives: everything that changes it is one checksummed frame there, and Open reads them
// again, up to a torn end, which it cuts off and counts in dropped_bytes().
//
// Thread safety: as JournalStorage.
#ifndef FRAKTOR_PERSISTENCE_MEMORY_MEMORY_JOURNAL_H_
#define FRAKTOR_PERSISTENCE_MEMORY_MEMORY_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/advance_board.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/memory/memory_disk.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct MemoryJournalOptions {
  JournalLimits limits = {};
  // Where it survives; none: nowhere.
  std::shared_ptr<MemoryDisk> disk = nullptr;
  // Whether each change is synced before it is answered.
  bool sync = true;
  // Answers take from min_delay to max_delay, drawn from the toolbox's stream. The toolbox is needed only for this.
  RuntimeToolbox* toolbox = nullptr;
  absl::Duration min_delay = absl::ZeroDuration();
  absl::Duration max_delay = absl::ZeroDuration();
  uint64_t random_stream = 0;
  // Live queries that may wait.
  size_t max_live_queries = 65'536;
};

class MemoryJournal final : public JournalStorage {
 public:
  // InvalidArgument for a bad option.
  static absl::StatusOr<std::unique_ptr<MemoryJournal>> Open(const MemoryJournalOptions& options);

  Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token) override;
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override;
  Future<EventBatch> Replay(ReplayPage page) override;
  Future<uint64_t> HighestSequenceNr(std::string persistence_id) override;
  Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr) override;
  Future<EventBatch> EventsByTag(TagPage page) override;
  Future<IdBatch> PersistenceIds(IdPage page) override;
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override;
  Future<void> Close() override;
  const JournalLimits& limits() const override { return options_.limits; }
  // Several, unless it takes its time.
  size_t UsefulActors() const override { return options_.toolbox == nullptr ? 16 : 1; }

  // What Open cut off the disk's end.
  size_t dropped_bytes() const { return dropped_bytes_; }

 private:
  struct StoredRecord {
    uint64_t sequence_nr;
    std::string bytes;
  };
  struct Id {
    IdState state;
    uint32_t prefix_crc = 0;           // of its keys
    std::deque<StoredRecord> records;  // rising
  };
  struct TagEntry {
    uint64_t offset;
    std::string persistence_id;
    uint64_t sequence_nr;
  };
  using Advances = std::vector<std::pair<JournalSubject, uint64_t>>;

  explicit MemoryJournal(const MemoryJournalOptions& options);

  void LoadDisk();
  // False for a frame that makes no sense.
  bool ApplyFrame(std::string_view frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CommitFrame(const std::string& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the id, or makes it.
  Id& Find(const std::string& persistence_id, Advances& advances) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DeleteRecords(Id& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteOne(const AtomicWrite& write, std::string& frame, Advances& advances)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool IsStored(const Id& id, const AtomicWrite& write);
  void Publish(const Advances& advances);

  absl::StatusOr<WriterOpened> OpenWriterNow(const std::string& persistence_id, std::optional<uint64_t> token);
  absl::StatusOr<WriteResults> WriteNow(const std::vector<AtomicWrite>& writes);
  absl::StatusOr<EventBatch> ReplayNow(const ReplayPage& page);
  absl::StatusOr<uint64_t> HighestNow(const std::string& persistence_id);
  absl::Status DeleteToNow(const std::string& persistence_id, uint64_t to_sequence_nr);
  absl::StatusOr<EventBatch> EventsByTagNow(const TagPage& page);
  absl::StatusOr<IdBatch> PersistenceIdsNow(const IdPage& page);
  uint64_t NumberOf(const JournalSubject& subject);
  template <class T>
  Future<T> Answer(FutureResult<T> result);

  const MemoryJournalOptions options_;
  AdvanceBoard board_;
  size_t dropped_bytes_ = 0;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Random random_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Id> ids_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, std::string>> ids_by_offset_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::deque<TagEntry>, std::less<>> tags_ ABSL_GUARDED_BY(mutex_);
  uint64_t opens_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_offset_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_MEMORY_MEMORY_JOURNAL_H_
