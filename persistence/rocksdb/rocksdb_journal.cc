#include "fraktor/persistence/rocksdb/rocksdb_journal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/advance_board.h"
#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/rocksdb/commit_queue.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/id_cache.h"
#include "fraktor/persistence/rocksdb/insert_hints.h"
#include "fraktor/persistence/rocksdb/journal_layout.h"
#include "fraktor/persistence/rocksdb/mutation.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/rocksdb/pages_ahead.h"
#include "fraktor/persistence/rocksdb/prefix_transform.h"
#include "fraktor/persistence/rocksdb/reader_pool.h"
#include "fraktor/persistence/rocksdb/store_engine.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint32_t kSchemaVersion = 1;
// What to do if files are damaged.
constexpr std::string_view kDamageAdvice =
    "Restore the whole folder from a backup, or take out what can be read with `journal export --skip-corrupt`, for "
    "`journal import` into another folder";
// The column families, in the order of Database::Options.
constexpr size_t kEvents = 0;
constexpr size_t kIds = 1;
constexpr size_t kIndex = 2;

// Up to so many events are deleted one by one; a range deletion is cheaper for more.
constexpr uint64_t kMaxPointDeletes = 512;
// Events with tags are read before they are deleted: at most so many in one commit.
constexpr uint64_t kMaxPurgedEvents = 512;

constexpr uint8_t kIdRecordVersion = 1;

// In the default column family: the id has deleted events that are not removed yet.
constexpr std::string_view kPurgePrefix = "purge ";

std::string PurgeKey(std::string_view persistence_id) {
  return absl::StrCat(ToAbsl(kPurgePrefix), ToAbsl(persistence_id));
}

// The first key that is greater than `key`.
std::string Successor(std::string key) {
  key.push_back('\0');
  return key;
}

std::string EncodeId(std::string_view persistence_id, const CachedId& id) {
  std::string record;
  record.push_back(static_cast<char>(kIdRecordVersion));
  AppendVarint(record, id.state.epoch);
  AppendVarint(record, id.state.highest_sequence_nr);
  AppendVarint(record, id.state.deleted_to);
  AppendVarint(record, id.purged_to);
  record.push_back(id.has_tags ? 1 : 0);
  AppendFixed32(record, ExtendCrc32c(ExtendCrc32c(0, persistence_id), record));
  return record;
}

absl::StatusOr<CachedId> DecodeId(std::string_view persistence_id, std::string_view record) {
  const absl::Status corrupt =
      IdError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, persistence_id,
              "the record of its epoch and deletions has a wrong checksum. Restore it from a backup; "
              "`journal verify` lists all that are damaged");
  if (record.size() < 5) return corrupt;
  const std::string_view covered = record.substr(0, record.size() - 4);
  if (ExtendCrc32c(ExtendCrc32c(0, persistence_id), covered) != LoadFixed32(record.data() + covered.size())) {
    return corrupt;
  }
  ByteReader reader(covered);
  const uint8_t version = reader.Byte();
  if (version > kIdRecordVersion) {
    return IdError(
        absl::StatusCode::kFailedPrecondition, JournalErrorKind::kNewerSchema, persistence_id,
        absl::StrCat("its record has version ", static_cast<int>(version), "; this program knows versions up to ",
                     static_cast<int>(kIdRecordVersion), ". Read it with the newer program that wrote it"));
  }
  CachedId id;
  id.is_known = true;
  id.state.epoch = reader.Varint();
  id.state.highest_sequence_nr = reader.Varint();
  id.state.deleted_to = reader.Varint();
  id.purged_to = reader.Varint();
  id.has_tags = reader.Byte() != 0;
  if (!reader.ok()) return corrupt;
  return id;
}

rocksdb::ColumnFamilyOptions MakeFamilyOptions(const RocksDbJournalOptions& options,
                                               const std::shared_ptr<rocksdb::Cache>& cache,
                                               const std::shared_ptr<InsertHints>& hints) {
  const bool has_prefixes = hints != nullptr;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  // With many ids, indexes and filters would outgrow memory if they stayed there for ever.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // Filters of ids rather than of events: a thousand events cost what one does.
  table.whole_key_filtering = !has_prefixes;
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions family;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.compression = rocksdb::kNoCompression;
  family.write_buffer_size = options.write_buffer_bytes;
  family.level_compaction_dynamic_level_bytes = true;
  if (has_prefixes) {
    family.prefix_extractor = std::make_shared<SizedPrefixTransform>();
    family.memtable_insert_with_hint_prefix_extractor = hints;
    family.memtable_prefix_bloom_size_ratio = 0.05;
  } else {
    family.memtable_whole_key_filtering = true;
    family.memtable_prefix_bloom_size_ratio = 0.05;
  }
  return family;
}

// What a replay reads ahead: most events are small, and what is read in vain is small too.
constexpr size_t kReadAheadPerEvent = 160;
constexpr size_t kMaxReadAheadBytes = size_t{256} << 10;
constexpr size_t kMaxReservedEvents = 4096;

absl::Status CheckAtLeastOne(std::string_view option, size_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("RocksDbJournalOptions::", ToAbsl(option), " is 0; it must be at least 1"));
}

// All reads of this journal leave range deletions aside: what is deleted is known from the id's record, and looking for
// range deletions after each new one costs milliseconds when there are thousands.
rocksdb::ReadOptions PlainRead() {
  rocksdb::ReadOptions read;
  read.ignore_range_deletions = true;
  return read;
}

}  // namespace

class RocksDbJournal::Core {
 public:
  static absl::StatusOr<std::unique_ptr<Core>> Open(RuntimeToolbox& toolbox, const RocksDbJournalOptions& options);
  ~Core() {
    if (engine_ != nullptr) engine_->Stop();
  }

  Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token);
  Future<WriteResults> Write(std::vector<AtomicWrite> writes, std::vector<uint64_t> offsets = {});
  Future<void> ImportId(std::string persistence_id, uint64_t offset);
  Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch);
  Future<EventBatch> Replay(ReplayPage page);
  Future<uint64_t> HighestSequenceNr(std::string persistence_id);
  Future<uint64_t> DeletedTo(std::string persistence_id);
  Future<EventBatch> EventsByTag(TagPage page);
  Future<IdBatch> PersistenceIds(IdPage page);
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after);
  // The same where nothing comes any more.
  Future<uint64_t> FindAdvance(JournalSubject subject, uint64_t after);
  Future<void> Close() { return engine_->Close(); }

  const RocksDbJournalOptions& options() const { return options_; }
  const RocksDbOpenReport& report() const { return engine_->report(); }
  StoreEngine& engine() { return *engine_; }
  Statistics statistics() const;

 private:
  using Outcome = CommitQueue::Operation::Outcome;
  class OpenOperation;
  class ImportIdOperation;
  class WriteOperation;
  class DeleteOperation;
  class PurgeOperation;
  // Where the events of an atomic write went, if they did.
  struct Placed {
    uint64_t first_offset = 0;
    uint64_t new_id_offset = 0;
  };

  explicit Core(const RocksDbJournalOptions& options)
      : options_(options),
        board_(options.max_live_queries),
        ahead_(static_cast<size_t>(options.reader_threads)),
        cache_(options.max_cached_ids) {}

  Database& database() { return engine_->database(); }
  rocksdb::DB& db() { return engine_->db(); }
  rocksdb::ColumnFamilyHandle* family(size_t i) { return engine_->family(i); }

  // The worker's side.

  // Every Prepare calls this first. An empty batch is a new group: all that the cache has is in the
  // database, so the cache may evict.
  void BeginPrepare(const rocksdb::WriteBatch& batch) {
    if (batch.Count() > 0) {
      if (IsMutated("evict_dirty_id")) cache_.Clear();
      return;
    }
    ++group_;
    cache_.Trim();
  }
  absl::StatusOr<CachedId*> Load(const std::string& persistence_id);
  uint64_t PutNewId(rocksdb::WriteBatch& batch, const std::string& persistence_id, CachedId& id);
  void PutIdAt(rocksdb::WriteBatch& batch, const std::string& persistence_id, CachedId& id, uint64_t offset);
  // Offsets up to `end` are taken.
  void AdvanceOffset(rocksdb::WriteBatch& batch, uint64_t end);
  void PutId(rocksdb::WriteBatch& batch, const std::string& persistence_id, const CachedId& id);
  // `first_offset` is that of the first event; 0: the next one.
  Outcome PrepareWrite(const AtomicWrite& write, uint64_t first_offset, rocksdb::WriteBatch& batch,
                       absl::Status& result, Placed& placed);
  absl::StatusOr<bool> IsStored(const CachedId& id, const AtomicWrite& write);
  absl::Status PreparePurge(rocksdb::WriteBatch& batch, const std::string& persistence_id, CachedId& id);
  void PublishWrite(const AtomicWrite& write, const Placed& placed);
  // Submits a purge of each id that has a mark.
  absl::Status GoOnPurging();

  // The readers' side.
  absl::StatusOr<CachedId> ReadId(const std::string& persistence_id);
  absl::StatusOr<uint64_t> ReadHighest(const std::string& persistence_id);
  absl::StatusOr<uint64_t> LastStored(const std::string& persistence_id);
  // Answers a page, and reads the next one ahead; and so on for as long as they are asked for meanwhile.
  void ReplayPages(ReplayPage page, Promise<EventBatch> promise, std::shared_ptr<PageAhead> ahead);
  // `ahead`, if there is one and it is what a read would find now.
  absl::StatusOr<EventBatch> ReadPage(const ReplayPage& page, PageAhead* ahead);
  absl::StatusOr<bool> IsCurrent(const PageAhead& ahead);
  std::shared_ptr<PageAhead> BeginAhead(const ReplayPage& page, const absl::StatusOr<EventBatch>& events);
  void ReadAhead(PageAhead& ahead);
  // `deleted_to` is set to up to where the id's events are deleted.
  absl::StatusOr<EventBatch> ReadEvents(const ReplayPage& page, uint64_t& deleted_to);
  absl::StatusOr<EventBatch> ReadTag(const TagPage& page);
  absl::StatusOr<IdBatch> ReadIds(const IdPage& page);
  absl::StatusOr<uint64_t> ReadNumberOf(const JournalSubject& subject);

  const RocksDbJournalOptions options_;
  AdvanceBoard board_;
  PagesAhead ahead_;

  // The worker's own.
  IdCache cache_;
  uint64_t group_ = 0;
  uint64_t next_offset_ = 0;
  // As it is stored: the count of openings in new offsets.
  uint64_t open_count_ = 0;
  std::string key_;
  std::string record_;  // room to make one in

  std::unique_ptr<StoreEngine> engine_;
};

class RocksDbJournal::Core::OpenOperation final : public CommitQueue::Operation {
 public:
  OpenOperation(Core& core, std::string persistence_id, std::optional<uint64_t> token, Promise<WriterOpened> promise)
      : core_(core), persistence_id_(std::move(persistence_id)), token_(token), promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    core_.BeginPrepare(batch);
    result_ = Open(batch);
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    if (!committed.ok()) {
      promise_.Set(Annotate(committed, absl::StrCat("open \"", persistence_id_, "\"")));
    } else {
      if (new_id_offset_ != 0 && core_.board_.HasWaiters()) {
        core_.board_.Publish(JournalSubject::OfAllIds(), new_id_offset_);
      }
      promise_.Set(std::move(result_));
    }
    core_.engine_->Leave();
  }
  size_t byte_size() const override { return persistence_id_.size() + 64; }

 private:
  absl::StatusOr<WriterOpened> Open(rocksdb::WriteBatch& batch) {
    FRAKTOR_ASSIGN_OR_RETURN(CachedId* const id, core_.Load(persistence_id_));
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t epoch, NextEpoch(persistence_id_, id->state.epoch, token_));
    id->state.epoch = epoch;
    id->changed_in = core_.group_;
    if (!id->is_known) new_id_offset_ = core_.PutNewId(batch, persistence_id_, *id);
    core_.PutId(batch, persistence_id_, *id);
    return WriterOpened{
        .epoch = epoch, .highest_sequence_nr = id->state.highest_sequence_nr, .deleted_to = id->state.deleted_to};
  }

  Core& core_;
  const std::string persistence_id_;
  const std::optional<uint64_t> token_;
  Promise<WriterOpened> promise_;
  absl::StatusOr<WriterOpened> result_;
  uint64_t new_id_offset_ = 0;
};

class RocksDbJournal::Core::ImportIdOperation final : public CommitQueue::Operation {
 public:
  ImportIdOperation(Core& core, std::string persistence_id, uint64_t offset, Promise<void> promise)
      : core_(core), persistence_id_(std::move(persistence_id)), offset_(offset), promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    core_.BeginPrepare(batch);
    const absl::StatusOr<CachedId*> id = core_.Load(persistence_id_);
    result_ = id.status();
    if (!id.ok() || (*id)->is_known) return Outcome::kReady;
    (*id)->changed_in = core_.group_;
    core_.PutIdAt(batch, persistence_id_, **id, offset_);
    core_.PutId(batch, persistence_id_, **id);
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    promise_.Set(committed.ok() ? result_ : Annotate(committed, absl::StrCat("import \"", persistence_id_, "\"")));
    core_.engine_->Leave();
  }
  size_t byte_size() const override { return persistence_id_.size() + 64; }

 private:
  Core& core_;
  const std::string persistence_id_;
  const uint64_t offset_;
  Promise<void> promise_;
  absl::Status result_;
};

class RocksDbJournal::Core::WriteOperation final : public CommitQueue::Operation {
 public:
  WriteOperation(Core& core, std::vector<AtomicWrite> writes, std::vector<uint64_t> offsets,
                 Promise<WriteResults> promise)
      : core_(core),
        writes_(std::move(writes)),
        offsets_(std::move(offsets)),
        promise_(std::move(promise)),
        placed_(writes_.size()) {
    for (const AtomicWrite& write : writes_) {
      bytes_ += write.ByteSize() + write.events().size() * (write.persistence_id().size() + 64);
    }
  }

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    // Called again: the writes that it prepared before are committed.
    PublishUpTo(next_);
    for (; next_ < writes_.size(); ++next_) {
      if (core_.engine_->IsFull(batch)) return Outcome::kCommitFirst;
      core_.BeginPrepare(batch);
      absl::Status result;
      const uint64_t first_offset = next_ < offsets_.size() ? offsets_[next_] : 0;
      if (core_.PrepareWrite(writes_[next_], first_offset, batch, result, placed_[next_]) == Outcome::kCommitFirst) {
        return Outcome::kCommitFirst;
      }
      if (placed_[next_].first_offset != 0) events_ += writes_[next_].events().size();
      if (result.ok()) continue;
      if (results_.empty()) results_.resize(writes_.size());
      results_[next_] = std::move(result);
    }
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    if (!committed.ok()) {
      const AtomicWrite& first = writes_.front();
      promise_.Set(Annotate(
          committed, absl::StrCat("write of event ", first.lowest_sequence_nr(), " of \"", first.persistence_id(),
                                  "\" and ", writes_.size() - 1, " further atomic writes")));
    } else {
      PublishUpTo(writes_.size());
      if (IsMutated("lose_answer") && writes_.size() > 1) promise_ = Promise<WriteResults>();
      promise_.Set(std::move(results_));
    }
    core_.engine_->Leave();
  }
  size_t byte_size() const override { return bytes_; }
  size_t event_count() const override { return events_; }

 private:
  // Tells live queries of the first `count` writes, which are committed.
  void PublishUpTo(size_t count) {
    if (core_.board_.HasWaiters()) {
      for (size_t i = published_; i < count; ++i) core_.PublishWrite(writes_[i], placed_[i]);
    }
    published_ = count;
  }

  Core& core_;
  const std::vector<AtomicWrite> writes_;
  const std::vector<uint64_t> offsets_;  // of an import; as many as writes, or none
  Promise<WriteResults> promise_;
  WriteResults results_;
  std::vector<Placed> placed_;
  size_t next_ = 0;       // the first write that is not prepared
  size_t published_ = 0;  // the first write that live queries have not heard of
  size_t bytes_ = 64;
  size_t events_ = 0;
};

// Removes deleted events that were too many for one commit. While there are such events, the
// database has a mark for the id (PurgeKey): so the journal goes on when it is opened again.
class RocksDbJournal::Core::PurgeOperation final : public CommitQueue::Operation {
 public:
  PurgeOperation(Core& core, std::string persistence_id) : core_(core), persistence_id_(std::move(persistence_id)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    core_.BeginPrepare(batch);
    // The next opening goes on.
    if (core_.engine_->is_closed()) return Outcome::kReady;
    const absl::StatusOr<CachedId*> id = core_.Load(persistence_id_);
    if (!id.ok()) return Outcome::kReady;
    if ((*id)->changed_in == core_.group_) return Outcome::kCommitFirst;
    if (!core_.PreparePurge(batch, persistence_id_, **id).ok()) return Outcome::kReady;
    core_.PutId(batch, persistence_id_, **id);
    if ((*id)->purged_to >= (*id)->state.deleted_to) {
      batch.Delete(core_.database().default_column_family(), PurgeKey(persistence_id_));
    }
    return Outcome::kReady;
  }
  void Complete(const absl::Status&) override {}
  size_t byte_size() const override { return persistence_id_.size() + 64; }

 private:
  Core& core_;
  const std::string persistence_id_;
};

class RocksDbJournal::Core::DeleteOperation final : public CommitQueue::Operation {
 public:
  DeleteOperation(Core& core, std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch,
                  Promise<void> promise)
      : core_(core),
        persistence_id_(std::move(persistence_id)),
        to_sequence_nr_(to_sequence_nr),
        epoch_(epoch),
        promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    core_.BeginPrepare(batch);
    const absl::StatusOr<CachedId*> found = core_.Load(persistence_id_);
    if (!found.ok()) {
      result_ = found.status();
      return Outcome::kReady;
    }
    CachedId& id = **found;
    if (!IsMutated("deletion_without_epoch")) result_ = CheckDeletion(id.state, persistence_id_, epoch_);
    if (!result_.ok()) return Outcome::kReady;
    // Events with tags are read before they go, so they have to be there.
    if (id.has_tags && id.changed_in == core_.group_) return Outcome::kCommitFirst;
    const uint64_t to = std::min(to_sequence_nr_, id.state.highest_sequence_nr);
    if (to <= id.state.deleted_to && id.purged_to >= id.state.deleted_to) return Outcome::kReady;
    id.state.deleted_to = std::max(id.state.deleted_to, to);
    result_ = core_.PreparePurge(batch, persistence_id_, id);
    core_.PutId(batch, persistence_id_, id);
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    promise_.Set(committed.ok() ? result_
                                : Annotate(committed, absl::StrCat("delete events of \"", persistence_id_, "\" up to ",
                                                                   to_sequence_nr_)));
    core_.engine_->Leave();
  }
  size_t byte_size() const override { return persistence_id_.size() + 64; }

 private:
  Core& core_;
  const std::string persistence_id_;
  const uint64_t to_sequence_nr_;
  const uint64_t epoch_;
  Promise<void> promise_;
  absl::Status result_;
};

absl::StatusOr<std::unique_ptr<RocksDbJournal::Core>> RocksDbJournal::Core::Open(RuntimeToolbox& toolbox,
                                                                                 const RocksDbJournalOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckJournalLimits(options.limits));
  if (options.path.empty()) return absl::InvalidArgumentError("RocksDbJournalOptions::path is missing");
  FRAKTOR_RETURN_IF_ERROR(CheckReaderThreads("RocksDbJournalOptions", options.reader_threads));
  FRAKTOR_RETURN_IF_ERROR(CheckAtLeastOne("max_log_bytes", options.max_log_bytes));
  FRAKTOR_RETURN_IF_ERROR(CheckAtLeastOne("max_commit_bytes", options.max_commit_bytes));
  FRAKTOR_RETURN_IF_ERROR(CheckAtLeastOne("max_cached_ids", options.max_cached_ids));
  auto core = absl::WrapUnique(new Core(options));
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  const auto hints = std::make_shared<InsertHints>();
  Database::Options database{.path = options.path,
                             .format = std::string(JournalLayout::kFormat),
                             .schema_version = kSchemaVersion,
                             .create_if_missing = options.create_if_missing,
                             .read_only = options.read_only,
                             .on_damaged_log = options.on_damaged_log,
                             .options_name = "RocksDbJournalOptions",
                             .damage_advice = std::string(kDamageAdvice),
                             .max_log_bytes = options.max_log_bytes,
                             .on_warning = options.on_warning,
                             .env = options.env};
  database.column_families = {{std::string(JournalLayout::kEvents), MakeFamilyOptions(options, cache, hints)},
                              {std::string(JournalLayout::kIds), MakeFamilyOptions(options, cache, nullptr)},
                              {std::string(JournalLayout::kIndex), MakeFamilyOptions(options, cache, hints)}};
  FRAKTOR_ASSIGN_OR_RETURN(
      core->engine_,
      StoreEngine::Open(toolbox,
                        {.what = "journal",
                         .thread_name = "journal",
                         .database = std::move(database),
                         .sync = options.sync,
                         .max_waiting_requests = options.max_waiting_requests,
                         .max_waiting_bytes = options.max_waiting_bytes,
                         .max_commit_bytes = options.max_commit_bytes,
                         .reader_threads = options.reader_threads,
                         .hints = hints,
                         .on_failure =
                             [core = core.get()] {
                               if (!IsMutated("keep_cache_after_failure")) core->cache_.Clear();
                             },
                         .on_close = [core = core.get()] { core->board_.Close(core->engine_->ClosedStatus()); }}));
  core->open_count_ = IsMutated("reuse_offsets") ? 1 : core->engine_->report().open_count;
  core->next_offset_ = core->open_count_ << 40 | 1;
  if (!options.read_only) FRAKTOR_RETURN_IF_ERROR(core->GoOnPurging());
  return core;
}

RocksDbJournal::Statistics RocksDbJournal::Core::statistics() const {
  const CommitQueue::Statistics statistics = engine_->statistics();
  return {.commits = statistics.groups, .requests = statistics.operations, .events = statistics.events};
}

Future<WriterOpened> RocksDbJournal::Core::OpenWriter(std::string persistence_id, std::optional<uint64_t> token) {
  const absl::Status checked = CheckPersistenceId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<WriterOpened>(checked);
  return engine_->Submit<WriterOpened, OpenOperation>(*this, std::move(persistence_id), token);
}

Future<void> RocksDbJournal::Core::ImportId(std::string persistence_id, uint64_t offset) {
  const absl::Status checked = CheckPersistenceId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<void>(checked);
  return engine_->Submit<void, ImportIdOperation>(*this, std::move(persistence_id), offset);
}

Future<WriteResults> RocksDbJournal::Core::Write(std::vector<AtomicWrite> writes, std::vector<uint64_t> offsets) {
  if (writes.empty() && engine_->CheckWritable().ok() && !engine_->is_closed()) {
    return MakeReadyFuture<WriteResults>(WriteResults());
  }
  return engine_->Submit<WriteResults, WriteOperation>(*this, std::move(writes), std::move(offsets));
}

Future<void> RocksDbJournal::Core::DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) {
  const absl::Status checked = CheckPersistenceId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<void>(checked);
  return engine_->Submit<void, DeleteOperation>(*this, std::move(persistence_id), to_sequence_nr, epoch);
}

absl::StatusOr<CachedId*> RocksDbJournal::Core::Load(const std::string& persistence_id) {
  if (CachedId* const cached = cache_.Find(persistence_id)) return cached;
  FRAKTOR_ASSIGN_OR_RETURN(CachedId id, ReadId(persistence_id));
  if (id.is_known && !IsMutated("reuse_number")) {
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t last, LastStored(persistence_id));
    id.state.highest_sequence_nr = std::max(id.state.highest_sequence_nr, last);
  }
  return &cache_.Insert(persistence_id, id);
}

uint64_t RocksDbJournal::Core::PutNewId(rocksdb::WriteBatch& batch, const std::string& persistence_id, CachedId& id) {
  const uint64_t offset = next_offset_;
  PutIdAt(batch, persistence_id, id, offset);
  return offset;
}

void RocksDbJournal::Core::PutIdAt(rocksdb::WriteBatch& batch, const std::string& persistence_id, CachedId& id,
                                   uint64_t offset) {
  id.is_known = true;
  batch.Put(family(kIndex), EventKey("", offset), persistence_id);
  AdvanceOffset(batch, offset + 1);
}

void RocksDbJournal::Core::AdvanceOffset(rocksdb::WriteBatch& batch, uint64_t end) {
  next_offset_ = std::max(next_offset_, end);
  if (next_offset_ >> 40 <= open_count_) return;
  open_count_ = next_offset_ >> 40;
  database().PutOpenCount(open_count_, batch);
}

void RocksDbJournal::Core::PutId(rocksdb::WriteBatch& batch, const std::string& persistence_id, const CachedId& id) {
  batch.Put(family(kIds), persistence_id, EncodeId(persistence_id, id));
}

CommitQueue::Operation::Outcome RocksDbJournal::Core::PrepareWrite(const AtomicWrite& write, uint64_t first_offset,
                                                                   rocksdb::WriteBatch& batch, absl::Status& result,
                                                                   Placed& placed) {
  result = CheckAtomicWrite(options_.limits, write);
  if (!result.ok()) return Outcome::kReady;
  const absl::StatusOr<CachedId*> loaded = Load(write.persistence_id());
  if (!loaded.ok()) {
    result = Annotate(loaded.status(), absl::StrCat("event ", write.lowest_sequence_nr(), " of \"",
                                                    write.persistence_id(), "\" is not written"));
    return Outcome::kReady;
  }
  CachedId& id = **loaded;
  result = CheckWriter(id.state, write);
  if (!result.ok()) return Outcome::kReady;
  if (write.lowest_sequence_nr() <= id.state.highest_sequence_nr) {
    // What it may be a copy of can be in this very batch, where it cannot be looked at.
    if (id.changed_in == group_) return Outcome::kCommitFirst;
    const absl::StatusOr<bool> is_stored = IsStored(id, write);
    if (!is_stored.ok()) {
      result = is_stored.status();
    } else if (!*is_stored) {
      result = SequenceMismatch(id.state, write);
    }
    return Outcome::kReady;
  }
  bool has_tags = false;
  for (const PersistentRepr& event : write.events()) has_tags = has_tags || !event.tags.empty();
  const bool id_changes = !id.is_known || (has_tags && !id.has_tags);
  if (!id.is_known) placed.new_id_offset = PutNewId(batch, write.persistence_id(), id);
  id.has_tags = id.has_tags || has_tags;
  if (id_changes) PutId(batch, write.persistence_id(), id);

  key_ = IdPrefix(write.persistence_id());
  const size_t prefix_size = key_.size();
  const uint32_t prefix_crc = ExtendCrc32c(0, key_);
  uint64_t offset = first_offset == 0 ? next_offset_ : first_offset;
  placed.first_offset = offset;
  for (const PersistentRepr& event : write.events()) {
    if (IsMutated("half_atomic_write") && event.sequence_nr > write.lowest_sequence_nr()) break;
    key_.resize(prefix_size);
    AppendSorted64(key_, event.sequence_nr);
    const size_t bytes = EventRecordBytes(event);
    if (record_.size() < bytes) record_.resize(bytes);
    WriteEventRecord(event, ExtendEventKeyCrc(prefix_crc, event.sequence_nr), offset, record_.data());
    batch.Put(family(kEvents), key_, rocksdb::Slice(record_.data(), bytes));
    for (const std::string& tag : event.tags) batch.Put(family(kIndex), EventKey(tag, offset), key_);
    ++offset;
  }
  AdvanceOffset(batch, offset);
  id.state.highest_sequence_nr = write.highest_sequence_nr();
  id.changed_in = group_;
  return Outcome::kReady;
}

absl::StatusOr<bool> RocksDbJournal::Core::IsStored(const CachedId& id, const AtomicWrite& write) {
  if (write.lowest_sequence_nr() <= id.state.deleted_to) return false;
  std::string stored;
  for (const PersistentRepr& event : write.events()) {
    const rocksdb::Status found =
        db().Get(PlainRead(), family(kEvents), EventKey(event.persistence_id, event.sequence_nr), &stored);
    if (found.IsNotFound()) return false;
    if (!found.ok()) {
      return database().ToStatus(found,
                                 absl::StrCat("read event ", event.sequence_nr, " of \"", event.persistence_id, "\""));
    }
    record_.clear();
    AppendEventBody(event, record_);
    if (BodyOfRecord(stored) != record_ && !IsMutated("accept_other_event")) return false;
  }
  return true;
}

absl::Status RocksDbJournal::Core::PreparePurge(rocksdb::WriteBatch& batch, const std::string& persistence_id,
                                                CachedId& id) {
  const uint64_t first = id.purged_to + 1;
  const uint64_t last = id.state.deleted_to;
  if (first > last) return absl::OkStatus();
  if (!id.has_tags) {
    if (last - first < kMaxPointDeletes) {
      for (uint64_t number = first; number <= last; ++number) {
        batch.Delete(family(kEvents), EventKey(persistence_id, number));
      }
    } else {
      batch.DeleteRange(family(kEvents), EventKey(persistence_id, first), Successor(EventKey(persistence_id, last)));
    }
    id.purged_to = last;
    return absl::OkStatus();
  }
  const std::string upper = Successor(EventKey(persistence_id, last));
  const rocksdb::Slice upper_slice = upper;
  rocksdb::ReadOptions read = PlainRead();
  read.iterate_upper_bound = &upper_slice;
  read.prefix_same_as_start = true;
  const std::unique_ptr<rocksdb::Iterator> events(db().NewIterator(read, family(kEvents)));
  uint64_t purged = 0;
  events->Seek(EventKey(persistence_id, first));
  for (; events->Valid() && purged < kMaxPurgedEvents && !engine_->IsFull(batch); events->Next(), ++purged) {
    std::string_view ignored;
    uint64_t number = 0;
    if (!ParseEventKey(ToView(events->key()), ignored, number)) continue;
    StoredEvent event;
    // One that cannot be read leaves its entries in the index, which readers pass over.
    if (DecodeEventRecord(EventKeyCrc(persistence_id, number), ToView(events->value()), event) ==
        RecordProblem::kNone) {
      for (const std::string_view tag : event.tags()) batch.Delete(family(kIndex), EventKey(tag, event.offset));
    }
    batch.Delete(family(kEvents), events->key());
    id.purged_to = number;
  }
  FRAKTOR_RETURN_IF_ERROR(
      database().ToStatus(events->status(), absl::StrCat("read deleted events of \"", persistence_id, "\"")));
  if (!events->Valid()) {
    id.purged_to = last;
  } else {
    batch.Put(database().default_column_family(), PurgeKey(persistence_id), rocksdb::Slice());
    engine_->SubmitMore(std::make_unique<PurgeOperation>(*this, persistence_id));
  }
  return absl::OkStatus();
}

absl::Status RocksDbJournal::Core::GoOnPurging() {
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> marks(db().NewIterator(read, database().default_column_family()));
  for (marks->Seek(ToSlice(kPurgePrefix)); marks->Valid() && marks->key().starts_with(ToSlice(kPurgePrefix));
       marks->Next()) {
    const std::string_view key = ToView(marks->key());
    engine_->SubmitMore(std::make_unique<PurgeOperation>(*this, std::string(key.substr(kPurgePrefix.size()))));
  }
  return database().ToStatus(marks->status(), "read which ids have deleted events to remove");
}

void RocksDbJournal::Core::PublishWrite(const AtomicWrite& write, const Placed& placed) {
  if (placed.new_id_offset != 0) board_.Publish(JournalSubject::OfAllIds(), placed.new_id_offset);
  if (placed.first_offset == 0) return;
  board_.Publish(JournalSubject::OfId(write.persistence_id()), write.highest_sequence_nr());
  uint64_t offset = placed.first_offset;
  for (const PersistentRepr& event : write.events()) {
    for (const std::string& tag : event.tags) board_.Publish(JournalSubject::OfTag(tag), offset);
    ++offset;
  }
}

absl::StatusOr<CachedId> RocksDbJournal::Core::ReadId(const std::string& persistence_id) {
  std::string record;
  const rocksdb::Status found = db().Get(PlainRead(), family(kIds), persistence_id, &record);
  if (found.IsNotFound()) return CachedId();
  if (!found.ok()) return database().ToStatus(found, absl::StrCat("read the state of \"", persistence_id, "\""));
  return DecodeId(persistence_id, record);
}

absl::StatusOr<uint64_t> RocksDbJournal::Core::LastStored(const std::string& persistence_id) {
  const std::string lower = IdPrefix(persistence_id);
  const rocksdb::Slice lower_slice = lower;
  rocksdb::ReadOptions read = PlainRead();
  read.iterate_lower_bound = &lower_slice;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> last(db().NewIterator(read, family(kEvents)));
  last->SeekForPrev(EventKey(persistence_id, std::numeric_limits<uint64_t>::max()));
  if (!last->Valid()) {
    FRAKTOR_RETURN_IF_ERROR(
        database().ToStatus(last->status(), absl::StrCat("read the last event of \"", persistence_id, "\"")));
    return 0;
  }
  std::string_view id;
  uint64_t number = 0;
  return ParseEventKey(ToView(last->key()), id, number) && id == persistence_id ? number : 0;
}

absl::StatusOr<uint64_t> RocksDbJournal::Core::ReadHighest(const std::string& persistence_id) {
  FRAKTOR_ASSIGN_OR_RETURN(CachedId id, ReadId(persistence_id));
  if (!id.is_known) return 0;
  FRAKTOR_ASSIGN_OR_RETURN(const uint64_t last, LastStored(persistence_id));
  // All events may have been deleted between the two reads. Then the record has the number by now.
  if (last == 0) {
    FRAKTOR_ASSIGN_OR_RETURN(id, ReadId(persistence_id));
  }
  return std::max(id.state.highest_sequence_nr, last);
}

Future<uint64_t> RocksDbJournal::Core::HighestSequenceNr(std::string persistence_id) {
  const absl::Status checked = CheckPersistenceId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<uint64_t>(checked);
  return engine_->Read<uint64_t>(
      [this, persistence_id = std::move(persistence_id)] { return ReadHighest(persistence_id); });
}

Future<uint64_t> RocksDbJournal::Core::DeletedTo(std::string persistence_id) {
  const absl::Status checked = CheckPersistenceId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<uint64_t>(checked);
  return engine_->Read<uint64_t>([this, persistence_id = std::move(persistence_id)]() -> absl::StatusOr<uint64_t> {
    FRAKTOR_ASSIGN_OR_RETURN(const CachedId id, ReadId(persistence_id));
    return id.state.deleted_to;
  });
}

Future<EventBatch> RocksDbJournal::Core::Replay(ReplayPage page) {
  const absl::Status checked = CheckPersistenceId(options_.limits, page.persistence_id);
  if (!checked.ok()) return MakeReadyFuture<EventBatch>(checked);
  if (!engine_->is_closed()) {
    // Answered by who reads it, and closing waits for that.
    if (std::optional<Future<EventBatch>> coming = ahead_.Await(page)) return *std::move(coming);
  }
  std::shared_ptr<PageAhead> ahead = ahead_.Take(page);
  return engine_->Run<EventBatch>(
      [this, page = std::move(page), ahead = std::move(ahead)](Promise<EventBatch> promise) mutable {
        ReplayPages(std::move(page), std::move(promise), std::move(ahead));
      });
}

void RocksDbJournal::Core::ReplayPages(ReplayPage page, Promise<EventBatch> promise, std::shared_ptr<PageAhead> ahead) {
  for (;;) {
    absl::StatusOr<EventBatch> events = ReadPage(page, ahead.get());
    ahead = BeginAhead(page, events);
    promise.Set(std::move(events));
    if (ahead == nullptr) return;
    ReadAhead(*ahead);
    std::optional<Promise<EventBatch>> asked = ahead_.Finish(*ahead);
    if (!asked.has_value()) return;
    promise = *std::move(asked);
    page = ahead->request;
  }
}

absl::StatusOr<EventBatch> RocksDbJournal::Core::ReadPage(const ReplayPage& page, PageAhead* ahead) {
  const Database::Lease lease(database());
  FRAKTOR_RETURN_IF_ERROR(lease.status());
  if (ahead != nullptr && ahead->events.ok()) {
    FRAKTOR_ASSIGN_OR_RETURN(const bool is_current, IsCurrent(*ahead));
    if (is_current) return *std::move(ahead->events);
  }
  uint64_t deleted_to = 0;
  return ReadEvents(page, deleted_to);
}

absl::StatusOr<bool> RocksDbJournal::Core::IsCurrent(const PageAhead& ahead) {
  if (db().GetLatestSequenceNumber() == ahead.changes) return true;
  // Where others follow, or could not, nothing is added any more.
  const EventBatch& events = *ahead.events;
  const bool is_whole = !events.empty() && events.back().sequence_nr == ahead.request.to_sequence_nr;
  if (events.at_end() && !is_whole) return false;
  FRAKTOR_ASSIGN_OR_RETURN(const CachedId id, ReadId(ahead.request.persistence_id));
  return id.state.deleted_to == ahead.deleted_to;
}

std::shared_ptr<PageAhead> RocksDbJournal::Core::BeginAhead(const ReplayPage& page,
                                                            const absl::StatusOr<EventBatch>& events) {
  // Who names the last one is a recovery, and wants them all.
  if (!events.ok() || events->empty() || events->at_end()) return nullptr;
  if (page.to_sequence_nr == std::numeric_limits<uint64_t>::max()) return nullptr;
  if (engine_->is_closed() || engine_->HasWaitingReads()) return nullptr;
  ReplayPage next = page;
  next.from_sequence_nr = events->resume_at();
  return ahead_.Begin(std::move(next));
}

void RocksDbJournal::Core::ReadAhead(PageAhead& ahead) {
  const Database::Lease lease(database());
  if (!lease.status().ok()) return;
  // Before anything is read: what comes meanwhile is a change.
  ahead.changes = db().GetLatestSequenceNumber();
  ahead.events = ReadEvents(ahead.request, ahead.deleted_to);
}

absl::StatusOr<EventBatch> RocksDbJournal::Core::ReadEvents(const ReplayPage& page, uint64_t& deleted_to) {
  EventBatch batch;
  batch.Finish(page.from_sequence_nr, true);
  FRAKTOR_ASSIGN_OR_RETURN(const CachedId id, ReadId(page.persistence_id));
  deleted_to = id.state.deleted_to;
  const uint64_t first = IsMutated("ignore_watermark") ? 1 : id.state.deleted_to + 1;
  const uint64_t from = std::max(page.from_sequence_nr, first);
  if (!id.is_known || from > page.to_sequence_nr) return batch;

  std::string key = EventKey(page.persistence_id, from);
  const size_t prefix_size = key.size() - 8;
  const uint32_t prefix_crc = ExtendCrc32c(0, std::string_view(key).substr(0, prefix_size));
  const std::string upper = Successor(EventKey(page.persistence_id, page.to_sequence_nr));
  const rocksdb::Slice upper_slice = upper;
  rocksdb::ReadOptions read = PlainRead();
  // Not prefix_same_as_start, which the bound makes true and which is looked at for each event.
  read.iterate_upper_bound = &upper_slice;
  if (page.to_sequence_nr != std::numeric_limits<uint64_t>::max()) {
    // Who names the last one knows how many come: memory and the file are asked once for a page. By itself RocksDB begins
    // each page with single blocks.
    const uint64_t after_first = page.to_sequence_nr - from;
    const size_t expected = std::min<uint64_t>(after_first, std::max<size_t>(page.limits.max_events, 1) - 1) + 1;
    batch.Reserve(std::min(expected, kMaxReservedEvents));
    read.readahead_size = std::min(expected * kReadAheadPerEvent, kMaxReadAheadBytes);
    // A history of several pages is read once. It would only drive out of the cache what is read again.
    read.fill_cache = after_first < page.limits.max_events;
  }
  const std::unique_ptr<rocksdb::Iterator> events(db().NewIterator(read, family(kEvents)));

  StoredEvent event;
  event.persistence_id = batch.Keep(page.persistence_id);
  uint64_t next = from;
  for (events->Seek(key); events->Valid(); events->Next()) {
    const rocksdb::Slice found = events->key();
    next = LoadSorted64(found.data() + prefix_size);
    if (page.limits.ReachedBy(batch)) {
      batch.Finish(next, false);
      return batch;
    }
    event.sequence_nr = next;
    const std::string_view record = batch.Keep(ToView(events->value()));
    const RecordProblem problem = DecodeEventRecord(ExtendEventKeyCrc(prefix_crc, next), record, event);
    if (problem != RecordProblem::kNone) {
      // What is good comes first, in a page of its own.
      if (batch.empty()) return RecordError(problem, page.persistence_id, next, record);
      batch.Finish(next, false);
      return batch;
    }
    batch.Add(event);
    ++next;
  }
  if (!events->status().ok()) {
    if (batch.empty()) {
      const absl::Status read_error = database().ToStatus(events->status(), "read events");
      return EventError(read_error.code(), ErrorKindOf<JournalErrorKind>(read_error).value_or(JournalErrorKind::kIo),
                        page.persistence_id, next,
                        absl::StrCat("it or the next one cannot be read: ", std::string(read_error.message())));
    }
    batch.Finish(next, false);
    return batch;
  }
  batch.Finish(next, true);
  return batch;
}

Future<EventBatch> RocksDbJournal::Core::EventsByTag(TagPage page) {
  return engine_->Read<EventBatch>([this, page = std::move(page)] { return ReadTag(page); });
}

absl::StatusOr<EventBatch> RocksDbJournal::Core::ReadTag(const TagPage& page) {
  EventBatch batch;
  batch.Finish(page.from_offset, true);
  // No event has such a tag; the empty one is the index of ids.
  if (page.tag.empty() || page.tag.size() > options_.limits.max_tag_bytes) return batch;
  const std::string upper = Successor(EventKey(page.tag, page.to_offset));
  const rocksdb::Slice upper_slice = upper;
  rocksdb::ReadOptions read = PlainRead();
  read.iterate_upper_bound = &upper_slice;
  read.prefix_same_as_start = true;
  const std::unique_ptr<rocksdb::Iterator> entries(db().NewIterator(read, family(kIndex)));
  // Entries of deleted events are passed over, but not endlessly in one page.
  size_t passes_left = std::max<size_t>(1000, 10 * std::min<size_t>(page.limits.max_events, 100'000));
  absl::flat_hash_map<std::string, uint64_t> deleted_to;
  std::string record;
  uint64_t next = page.from_offset;
  for (entries->Seek(EventKey(page.tag, page.from_offset)); entries->Valid(); entries->Next()) {
    next = LoadSorted64(entries->key().data() + entries->key().size() - 8);
    if (page.limits.ReachedBy(batch) || passes_left-- == 0) {
      batch.Finish(next, false);
      return batch;
    }
    StoredEvent event;
    std::string_view id_view;
    if (!ParseEventKey(ToView(entries->value()), id_view, event.sequence_nr)) {
      return MakeError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt,
                       absl::StrCat(options_.path, ": the entry of tag \"", page.tag, "\" at offset ", next,
                                    " is damaged. Restore it from a backup, or go on after it"));
    }
    const std::string id(id_view);
    auto deleted = deleted_to.find(id);
    if (deleted == deleted_to.end()) {
      FRAKTOR_ASSIGN_OR_RETURN(const CachedId state, ReadId(id));
      deleted = deleted_to.emplace(id, state.state.deleted_to).first;
    }
    if (event.sequence_nr <= deleted->second) {
      ++next;
      continue;
    }
    const rocksdb::Status found = db().Get(PlainRead(), family(kEvents), entries->value(), &record);
    if (found.IsNotFound()) {  // deleted meanwhile
      ++next;
      continue;
    }
    absl::Status problem = database().ToStatus(found, "read it");
    if (!problem.ok()) {
      problem = EventError(problem.code(), ErrorKindOf<JournalErrorKind>(problem).value_or(JournalErrorKind::kIo), id,
                           event.sequence_nr, std::string(problem.message()));
    } else {
      event.persistence_id = batch.Keep(id);
      const std::string_view kept = batch.Keep(record);
      problem =
          RecordError(DecodeEventRecord(EventKeyCrc(id, event.sequence_nr), kept, event), id, event.sequence_nr, kept);
    }
    if (!problem.ok()) {
      if (batch.empty()) return problem;
      batch.Finish(next, false);
      return batch;
    }
    batch.Add(event);
    ++next;
  }
  FRAKTOR_RETURN_IF_ERROR(
      database().ToStatus(entries->status(), absl::StrCat("read the entries of tag \"", page.tag, "\"")));
  batch.Finish(next, true);
  return batch;
}

Future<IdBatch> RocksDbJournal::Core::PersistenceIds(IdPage page) {
  return engine_->Read<IdBatch>([this, page] { return ReadIds(page); });
}

absl::StatusOr<IdBatch> RocksDbJournal::Core::ReadIds(const IdPage& page) {
  rocksdb::ReadOptions read = PlainRead();
  read.prefix_same_as_start = true;
  const std::unique_ptr<rocksdb::Iterator> entries(db().NewIterator(read, family(kIndex)));
  IdBatch batch;
  batch.resume_at = page.from_offset;
  for (entries->Seek(EventKey("", page.from_offset)); entries->Valid(); entries->Next()) {
    if (batch.ids.size() >= std::max<size_t>(1, page.max_ids)) {
      batch.at_end = false;
      break;
    }
    batch.ids.push_back(entries->value().ToString());
    batch.resume_at = LoadSorted64(entries->key().data() + 2) + 1;
  }
  FRAKTOR_RETURN_IF_ERROR(database().ToStatus(entries->status(), "read the list of ids"));
  return batch;
}

absl::StatusOr<uint64_t> RocksDbJournal::Core::ReadNumberOf(const JournalSubject& subject) {
  if (subject.kind == JournalSubject::Kind::kId) return ReadHighest(subject.name);
  const std::string tag = subject.kind == JournalSubject::Kind::kTag ? subject.name : std::string();
  const std::string lower = IdPrefix(tag);
  const rocksdb::Slice lower_slice = lower;
  rocksdb::ReadOptions read = PlainRead();
  read.iterate_lower_bound = &lower_slice;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> last(db().NewIterator(read, family(kIndex)));
  last->SeekForPrev(EventKey(tag, std::numeric_limits<uint64_t>::max()));
  FRAKTOR_RETURN_IF_ERROR(database().ToStatus(last->status(), "read the last offset"));
  return last->Valid() ? LoadSorted64(last->key().data() + last->key().size() - 8) : 0;
}

Future<uint64_t> RocksDbJournal::Core::AwaitAdvance(JournalSubject subject, uint64_t after) {
  if (engine_->is_closed()) return MakeReadyFuture<uint64_t>(engine_->ClosedStatus());
  if (options_.read_only) return FindAdvance(std::move(subject), after);
  Future<uint64_t> advance = board_.Wait(subject, after);
  // What came before the wait; what comes after is published by the commit.
  Future<void> looking = engine_->Read<void>([this, subject = std::move(subject)]() -> absl::Status {
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t number, ReadNumberOf(subject));
    board_.Publish(subject, number);
    return absl::OkStatus();
  });
  if (looking.IsReady()) {
    const absl::Status looked = looking.Take();
    if (!looked.ok()) return MakeReadyFuture<uint64_t>(looked);
  }
  return advance;
}

Future<uint64_t> RocksDbJournal::Core::FindAdvance(JournalSubject subject, uint64_t after) {
  return engine_->Read<uint64_t>([this, subject = std::move(subject), after]() -> absl::StatusOr<uint64_t> {
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t number, ReadNumberOf(subject));
    if (number > after) return number;
    return MakeError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kReadOnly,
                     absl::StrCat("the journal ", options_.path,
                                  " was opened for reading only and shows what was there then: a live query would wait "
                                  "for ever. Query the journal that is open for writing, in the process that writes "
                                  "it, or open this one again and read bounded pages from where this query stands"));
  });
}

absl::StatusOr<std::unique_ptr<RocksDbJournal>> RocksDbJournal::Open(RuntimeToolbox& toolbox,
                                                                     const RocksDbJournalOptions& options) {
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<Core> core, Core::Open(toolbox, options));
  return absl::WrapUnique(new RocksDbJournal(std::move(core)));
}

RocksDbJournal::RocksDbJournal(std::unique_ptr<Core> core) : core_(std::move(core)) {}
RocksDbJournal::~RocksDbJournal() = default;

Future<WriterOpened> RocksDbJournal::OpenWriter(std::string persistence_id, std::optional<uint64_t> token) {
  return core_->OpenWriter(std::move(persistence_id), token);
}
Future<WriteResults> RocksDbJournal::Write(std::vector<AtomicWrite> writes) { return core_->Write(std::move(writes)); }
Future<void> RocksDbJournal::ImportId(std::string persistence_id, uint64_t offset) {
  return core_->ImportId(std::move(persistence_id), offset);
}
Future<WriteResults> RocksDbJournal::ImportEvents(std::vector<AtomicWrite> writes, std::vector<uint64_t> offsets) {
  return core_->Write(std::move(writes), std::move(offsets));
}
Future<EventBatch> RocksDbJournal::Replay(ReplayPage page) { return core_->Replay(std::move(page)); }
Future<uint64_t> RocksDbJournal::HighestSequenceNr(std::string persistence_id) {
  return core_->HighestSequenceNr(std::move(persistence_id));
}
Future<uint64_t> RocksDbJournal::DeletedTo(std::string persistence_id) {
  return core_->DeletedTo(std::move(persistence_id));
}
Future<void> RocksDbJournal::DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) {
  return core_->DeleteTo(std::move(persistence_id), to_sequence_nr, epoch);
}
Future<EventBatch> RocksDbJournal::EventsByTag(TagPage page) { return core_->EventsByTag(std::move(page)); }
Future<IdBatch> RocksDbJournal::PersistenceIds(IdPage page) { return core_->PersistenceIds(page); }
Future<uint64_t> RocksDbJournal::AwaitAdvance(JournalSubject subject, uint64_t after) {
  return core_->AwaitAdvance(std::move(subject), after);
}
Future<void> RocksDbJournal::Close() { return core_->Close(); }
StoreIdentity RocksDbJournal::identity() const { return core_->engine().identity(); }
Future<void> RocksDbJournal::RememberPartner(std::string role, std::string id) {
  return core_->engine().RememberPartner(std::move(role), std::move(id));
}
const JournalLimits& RocksDbJournal::limits() const { return core_->options().limits; }
const RocksDbOpenReport& RocksDbJournal::open_report() const { return core_->report(); }
RocksDbJournal::Statistics RocksDbJournal::statistics() const { return core_->statistics(); }

}  // namespace fraktor::inline v0
