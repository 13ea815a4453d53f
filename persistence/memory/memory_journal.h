// MemoryJournal: a journal in memory, for tests, for simulations, and for state that need not
// survive the process.
//
//   auto journal = MemoryJournal::Open({}).value();
//   WriterOpened writer = journal->OpenWriter("account-7", {}).Take().value();    // ready at once
//
// Futures are ready when they are returned, unless a delay is asked for. Everything it does is
// decided by its requests and its seed, so a simulation repeats.
//
// On a MemoryDisk it also survives: everything that changes it is one checksummed frame there, and
// Open reads them again, up to a torn end, which it cuts off and counts in dropped_bytes().
//
// Thread safety: as JournalStorage. Ids are spread over several locks, so that actors on several
// threads rarely meet.
#ifndef FRAKTOR_PERSISTENCE_MEMORY_MEMORY_JOURNAL_H_
#define FRAKTOR_PERSISTENCE_MEMORY_MEMORY_JOURNAL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
#include "fraktor/persistence/memory/chunk_pool.h"
#include "fraktor/persistence/memory/memory_disk.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/strings/string_view.h"
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
  // Answers take from min_delay to max_delay, drawn from the toolbox's stream. The toolbox is
  // needed only for this.
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
  bool WriteAtOnce(std::span<const AtomicWrite> writes, absl::StatusOr<WriteResults>& answer) override;
  Future<EventBatch> Replay(ReplayPage page) override;
  Future<uint64_t> HighestSequenceNr(std::string persistence_id) override;
  Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) override;
  Future<EventBatch> EventsByTag(TagPage page) override;
  Future<IdBatch> PersistenceIds(IdPage page) override;
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override;
  Future<void> Close() override;
  const JournalLimits& limits() const override { return options_.limits; }
  // Several, unless it takes its time.
  size_t UsefulActors() const override { return options_.toolbox == nullptr ? 64 : 1; }

  // What Open cut off the disk's end.
  size_t dropped_bytes() const { return dropped_bytes_; }

 private:
  // A view into a chunk of its id.
  struct StoredRecord {
    uint64_t sequence_nr;
    std::string_view bytes;
  };
  // The small ones are allocated, the others are the pool's.
  struct Chunk {
    std::unique_ptr<char[]> small;
    ChunkPool::Chunk large;
    uint64_t last_sequence_nr = 0;
  };
  struct Id {
    IdState state;
    std::deque<StoredRecord> records;  // rising
    std::deque<Chunk> chunks;          // the last one is being filled
    char* free = nullptr;
    size_t free_bytes = 0;

    // Room for a record of so many bytes, which the caller fills.
    char* Add(uint64_t sequence_nr, size_t bytes, ChunkPool& pool);
    // Lets go of what is deleted.
    void Trim();
  };
  using Ids = absl::flat_hash_map<std::string, Id>;
  // Ids of which the hashes begin with the same bits.
  struct alignas(64) Shard {
    Mutex mutex;
    Ids ids ABSL_GUARDED_BY(mutex);
  };
  struct TagEntry {
    uint64_t offset;
    std::string persistence_id;
    uint64_t sequence_nr;
  };
  struct TagEntries {
    std::vector<TagEntry> entries;
    bool from_front = false;  // There is none before them.
  };
  using Advances = std::vector<std::pair<JournalSubject, uint64_t>>;

  static constexpr size_t kShards = 64;
  static constexpr int kShardShift = 58;
  static_assert(sizeof(size_t) == 8 && kShards == size_t{1} << (64 - kShardShift));

  explicit MemoryJournal(const MemoryJournalOptions& options);

  static size_t HashOf(std::string_view persistence_id) { return Ids::hasher()(ToAbsl(persistence_id)); }
  Shard& ShardOf(std::string_view persistence_id);
  void LoadDisk();
  // False for a frame that makes no sense.
  bool ApplyFrame(std::string_view frame);
  bool ApplyEvent(std::string_view persistence_id, uint64_t sequence_nr, std::string_view record);
  absl::Status CommitFrame(const std::string& frame);
  absl::Status CheckOpen(std::string_view persistence_id = {}) const;
  // Finds the id, or makes it.
  Id& Find(Shard& shard, const std::string& persistence_id, Advances& advances)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex) ABSL_LOCKS_EXCLUDED(index_mutex_);
  absl::Status WriteOne(const AtomicWrite& write, std::string& frame, Advances& advances);
  uint64_t IndexEvent(const PersistentRepr& event, Advances& advances) ABSL_LOCKS_EXCLUDED(index_mutex_);
  static bool IsStored(const Id& id, const AtomicWrite& write);
  void Publish(const Advances& advances);

  absl::StatusOr<WriterOpened> OpenWriterNow(const std::string& persistence_id, std::optional<uint64_t> token);
  absl::StatusOr<WriteResults> WriteNow(std::span<const AtomicWrite> writes);
  absl::StatusOr<EventBatch> ReplayNow(const ReplayPage& page);
  absl::StatusOr<uint64_t> HighestNow(const std::string& persistence_id);
  absl::Status DeleteToNow(const std::string& persistence_id, uint64_t to_sequence_nr, uint64_t epoch);
  absl::StatusOr<EventBatch> EventsByTagNow(const TagPage& page);
  // At most so many entries of the tag from an offset on.
  TagEntries EntriesOf(const std::string& tag, uint64_t from_offset, size_t max);
  // False: the event of the entry is deleted.
  bool AddEvent(const TagEntry& entry, EventBatch& batch, absl::Status& problem);
  absl::StatusOr<IdBatch> PersistenceIdsNow(const IdPage& page);
  uint64_t NumberOf(const JournalSubject& subject);
  template <class T>
  Future<T> Answer(FutureResult<T> result);

  const MemoryJournalOptions options_;
  AdvanceBoard board_;
  size_t dropped_bytes_ = 0;
  uint64_t opens_ = 0;

  // Locks are taken in this order: disk, shard, index.

  // Held for the whole of whatever changes something, so that the frames on the disk have the order
  // of the changes. Of no use without a disk, and not taken then.
  Mutex disk_mutex_;
  ChunkPool pool_;
  std::array<Shard, kShards> shards_;
  Mutex index_mutex_;
  std::vector<std::pair<uint64_t, std::string>> ids_by_offset_ ABSL_GUARDED_BY(index_mutex_);
  std::map<std::string, std::deque<TagEntry>, std::less<>> tags_ ABSL_GUARDED_BY(index_mutex_);
  Random random_ ABSL_GUARDED_BY(index_mutex_);
  // Whoever puts one into the index takes it under its lock. Otherwise it only has to rise:
  // relaxed.
  std::atomic<uint64_t> next_offset_{1};
  // Relaxed: what is written after it is nowhere if there is no disk; and if there is one, its lock
  // orders both.
  std::atomic<bool> closed_{false};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_MEMORY_MEMORY_JOURNAL_H_
