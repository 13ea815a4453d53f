// RocksDbJournal: a journal in a folder, on RocksDB.
//
//   auto toolbox = StdToolbox::Make({}).value();
//   auto journal = RocksDbJournal::Open(*toolbox, {.path = "/var/lib/shop/journal"}).value();
//
// Writes of all callers that wait are one synced write of RocksDB (group commit), made by a thread of its own; reads
// have threads of their own. With sync on, which is the default, what was answered with success survives a loss of
// power. With sync off it survives a crash of the process, not of the machine.
//
// After a crash it opens by itself. What was dropped from the torn end of the log is a warning (on_warning), and in
// open_report(); nothing of it was acknowledged, as long as sync was on. A log that is missing, or damaged before its
// end, is not what a crash leaves: it is refused (kCorrupt), see OnDamagedLog.
//
// It is made in a folder that is empty or not there yet. One that has something else in it is refused (kInvalid), and so
// is an incomplete copy of a database (kCorrupt). An Open that fails changes nothing there, but for the text in LOG.
//
// A full disk: Open and writes fail with kDiskFull, reads go on, and writes go on when there is room.
//
// One process at a time may open it for writing (kLocked); others may open it read_only, and see what was there when
// they opened it. So there are no live queries then: AwaitAdvance, and with it a live query that has come to the end,
// is FailedPrecondition (kReadOnly).
//
// Layout, of schema 1. Column family "events": be16(length) | id | be64(number) -> record
// (event_record.h). "ids": id -> what must be known of it beside its events (epoch, deletions).
// "index": be16(length) | tag | be64(offset) -> event's key; with an empty tag: be16(0) |
// be64(offset) -> id, for all ids. Offsets are (times opened) << 40 | count, so that none is given
// twice even if a crash takes the last ones back. The default column family has "purge " | id for
// each id with deleted events that are not removed yet.
//
// Thread safety: as JournalStorage. The destructor closes and waits, and must not run on one of the journal's own
// threads (in a waker of one of its futures). The toolbox outlives the journal.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_JOURNAL_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace fraktor::inline v0 {

struct RocksDbJournalOptions {
  // The folder, which is made if it is missing. Its parent must be there. No other files belong in it.
  std::string path = {};
  // Whether each commit waits for the disk.
  bool sync = true;
  bool create_if_missing = true;
  // Only look: no opening of writers, no writes, no deletions; they get kReadOnly.
  bool read_only = false;
  // If the write-ahead log is missing, or damaged before its end.
  OnDamagedLog on_damaged_log = OnDamagedLog::kRefuse;
  // Hears, while it is opened for writing, of each line of open_report(). Null: a line on standard error.
  std::function<void(const std::string&)> on_warning = {};
  JournalLimits limits = {};
  // Requests that change something and wait, in number and in bytes. A request is refused
  // (kOverloaded) if those before it have reached a limit: so the last one that is taken may go
  // beyond max_waiting_bytes.
  size_t max_waiting_requests = 65'536;
  size_t max_waiting_bytes = size_t{64} << 20;
  // Bytes of one commit, at least 1. A commit ends with the atomic write that reaches the limit,
  // and a request that has more is divided into several commits, but never inside an atomic write.
  size_t max_commit_bytes = size_t{4} << 20;
  // From 1 to 64. Each may have read a page of a recovery ahead, which stays in memory until it or another one is asked for.
  int reader_threads = 2;
  // Ids whose state is kept in memory for their next write; some 200 bytes each. At least 1. While
  // a commit is under way, its ids are kept beyond the limit.
  size_t max_cached_ids = 65'536;
  // Live queries that may wait.
  size_t max_live_queries = 65'536;
  // What RocksDB keeps of its files in memory, and what it gathers before it writes a file.
  size_t block_cache_bytes = size_t{32} << 20;
  size_t write_buffer_bytes = size_t{64} << 20;
  // Of all write-ahead logs together, which are read when it is opened. When they reach it, what is rarely written goes
  // to a file too, and old logs are taken away. At least 1.
  size_t max_log_bytes = size_t{256} << 20;
  // Another world of files, for tests. Outlives the journal.
  rocksdb::Env* env = nullptr;
};

class RocksDbJournal final : public JournalStorage {
 public:
  struct Statistics {
    uint64_t commits = 0;
    uint64_t requests = 0;  // that changed something
    uint64_t events = 0;
  };

  // InvalidArgument for a bad option; kLocked, kReadOnly, kNewerSchema, kCorrupt, kDiskFull, kInvalid (the folder has
  // something else in it), kIo.
  static absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(RuntimeToolbox& toolbox,
                                                              const RocksDbJournalOptions& options);
  ~RocksDbJournal() override;

  Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token) override;
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override;
  Future<EventBatch> Replay(ReplayPage page) override;
  Future<uint64_t> HighestSequenceNr(std::string persistence_id) override;
  Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) override;
  Future<EventBatch> EventsByTag(TagPage page) override;
  Future<IdBatch> PersistenceIds(IdPage page) override;
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override;
  Future<void> Close() override;
  StoreIdentity identity() const override;
  Future<void> RememberPartner(std::string role, std::string id) override;
  const JournalLimits& limits() const override;

  // For programs that copy another journal into this one, which must be new. Ids and events keep
  // the offsets that they had there, so queries find the same order, and positions that they have
  // stored stay valid. All offsets that this journal gives later are above them.

  // Makes the id known, at this offset of the list of ids. An id that is known stays as it is.
  Future<void> ImportId(std::string persistence_id, uint64_t offset);
  // Write, with the offset of the first event of each atomic write. 0: the journal's next one.
  Future<WriteResults> ImportEvents(std::vector<AtomicWrite> writes, std::vector<uint64_t> offsets);

  // Up to where events of the id are deleted, as in WriterOpened, for whoever only looks.
  Future<uint64_t> DeletedTo(std::string persistence_id);
  const RocksDbOpenReport& open_report() const;
  // events / commits is the mean size of a group.
  Statistics statistics() const;

 private:
  class Core;

  explicit RocksDbJournal(std::unique_ptr<Core> core);

  const std::unique_ptr<Core> core_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_JOURNAL_H_
