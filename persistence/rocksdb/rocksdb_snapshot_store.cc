#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"

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
#include "absl/time/time.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/rocksdb/commit_queue.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/mutation.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/rocksdb/owner_epochs.h"
#include "fraktor/persistence/rocksdb/prefix_transform.h"
#include "fraktor/persistence/rocksdb/reader_pool.h"
#include "fraktor/persistence/rocksdb/store_engine.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint32_t kSchemaVersion = 1;
// What to do if files are damaged.
constexpr std::string_view kDamageAdvice =
    "Restore the whole folder from a backup. Without one, move it away: actors whose events are all in the journal "
    "recover from those, and the recovery of others says that it needs a snapshot";
constexpr size_t kIndex = 0;
constexpr size_t kRecords = 1;
constexpr uint8_t kSnapshotRecordVersion = 1;
constexpr std::string_view kLastTimeKey = "last time";

// Times before 1970 sort before those after.
uint64_t SortedTime(int64_t nanoseconds) { return static_cast<uint64_t>(nanoseconds) ^ (uint64_t{1} << 63); }

std::string SnapshotKey(std::string_view persistence_id, uint64_t sequence_nr, int64_t time_ns) {
  std::string key = EventKey(persistence_id, sequence_nr);
  AppendSorted64(key, SortedTime(time_ns));
  return key;
}

struct ParsedKey {
  uint64_t sequence_nr = 0;
  int64_t time_ns = 0;
};

// Of a key that is known to begin with the prefix of an id.
ParsedKey ParseKey(std::string_view key) {
  const char* const numbers = key.data() + key.size() - 16;
  return {LoadSorted64(numbers), static_cast<int64_t>(LoadSorted64(numbers + 8) ^ (uint64_t{1} << 63))};
}

std::string EncodeSnapshot(std::string_view key, const Snapshot& snapshot) {
  std::string record;
  record.reserve(snapshot.payload.size() + snapshot.manifest.size() + snapshot.metadata.metadata.size() + 32);
  record.push_back(static_cast<char>(kSnapshotRecordVersion));
  AppendVarint(record, snapshot.manifest_version);
  AppendSized(record, snapshot.manifest);
  AppendSized(record, snapshot.metadata.metadata);
  record.append(snapshot.payload);
  AppendFixed32(record, ExtendCrc32c(ExtendCrc32c(0, key), record));
  return record;
}

absl::Status SnapshotError(absl::StatusCode code, JournalErrorKind kind, std::string_view id, uint64_t sequence_nr,
                           std::string_view what) {
  return MakeError(code, kind,
                   absl::StrCat("snapshot ", sequence_nr, " of \"", std::string(id), "\": ", std::string(what)),
                   {{"id", id}, {"nr", sequence_nr}});
}

absl::StatusOr<Snapshot> DecodeSnapshot(std::string_view key, const std::string& id, std::string_view record) {
  const ParsedKey parsed = ParseKey(key);
  const std::string_view covered = record.substr(0, record.size() < 4 ? 0 : record.size() - 4);
  if (covered.empty() || ExtendCrc32c(ExtendCrc32c(0, key), covered) != LoadFixed32(record.data() + covered.size())) {
    return SnapshotError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, id, parsed.sequence_nr,
                         "its record has a wrong checksum. Delete it, or load one below that number: the events since "
                         "then are replayed");
  }
  ByteReader reader(covered);
  const uint8_t version = reader.Byte();
  if (version > kSnapshotRecordVersion) {
    return SnapshotError(
        absl::StatusCode::kFailedPrecondition, JournalErrorKind::kNewerSchema, id, parsed.sequence_nr,
        absl::StrCat("its record has version ", static_cast<int>(version), "; this program knows versions up to ",
                     static_cast<int>(kSnapshotRecordVersion), ". Read it with the newer program that wrote it"));
  }
  Snapshot snapshot;
  snapshot.metadata.persistence_id = id;
  snapshot.metadata.sequence_nr = parsed.sequence_nr;
  snapshot.metadata.timestamp = absl::FromUnixNanos(parsed.time_ns);
  snapshot.manifest_version = static_cast<uint32_t>(reader.Varint());
  snapshot.manifest = std::string(reader.Sized());
  snapshot.metadata.metadata = std::string(reader.Sized());
  snapshot.payload = std::string(reader.rest());
  if (!reader.ok()) {
    return SnapshotError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, id, parsed.sequence_nr,
                         "its record is too short. Delete it");
  }
  return snapshot;
}

}  // namespace

class RocksDbSnapshotStore::Core {
 public:
  static absl::StatusOr<std::unique_ptr<Core>> Open(RuntimeToolbox& toolbox,
                                                    const RocksDbSnapshotStoreOptions& options);
  ~Core() {
    if (engine_ != nullptr) engine_->Stop();
  }

  Future<void> OpenWriter(std::string persistence_id, uint64_t epoch);
  Future<SnapshotMetadata> Save(Snapshot snapshot, uint64_t epoch);
  Future<std::optional<Snapshot>> Load(std::string persistence_id, SnapshotSelectionCriteria criteria);
  Future<void> Delete(std::string persistence_id, SnapshotSelectionCriteria criteria, uint64_t epoch);
  Future<void> Close() { return engine_->Close(); }

  const RocksDbSnapshotStoreOptions& options() const { return options_; }
  const RocksDbOpenReport& report() const { return engine_->report(); }
  StoreEngine& engine() { return *engine_; }

  // The worker's side, for operations.

  OwnerEpochs& owners() { return owners_; }
  // Every Prepare calls this first. An empty batch is a new group.
  void BeginPrepare(const rocksdb::WriteBatch& batch) {
    if (batch.Count() > 0) return;
    saved_in_group_.clear();
    owners_.BeginGroup();
  }

 private:
  using Outcome = CommitQueue::Operation::Outcome;
  class SaveOperation;
  class DeleteOperation;

  Core(RuntimeToolbox& toolbox, const RocksDbSnapshotStoreOptions& options) : toolbox_(toolbox), options_(options) {}

  absl::StatusOr<std::optional<Snapshot>> ReadNewest(const std::string& persistence_id,
                                                     const SnapshotSelectionCriteria& criteria);

  Database& database() { return engine_->database(); }
  rocksdb::DB& db() { return engine_->db(); }
  rocksdb::ColumnFamilyHandle* family(size_t i) { return engine_->family(i); }

  // The worker's side.

  void PutDeletion(rocksdb::WriteBatch& batch, const rocksdb::Slice& key) {
    batch.Delete(family(kIndex), key);
    batch.Delete(family(kRecords), key);
  }

  RuntimeToolbox& toolbox_;
  const RocksDbSnapshotStoreOptions options_;

  // The worker's own.
  int64_t last_time_ns_ = 0;
  // The snapshots that the open group saves, by id. The database does not show them before the
  // commit.
  absl::flat_hash_map<std::string, std::vector<ParsedKey>> saved_in_group_;
  OwnerEpochs owners_;

  std::unique_ptr<StoreEngine> engine_;
};

class RocksDbSnapshotStore::Core::SaveOperation final : public CommitQueue::Operation {
 public:
  SaveOperation(Core& core, Snapshot snapshot, uint64_t epoch, Promise<SnapshotMetadata> promise)
      : core_(core), snapshot_(std::move(snapshot)), epoch_(epoch), promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    core_.BeginPrepare(batch);
    refusal_ = core_.owners_.Claim(core_.database(), batch, snapshot_.metadata.persistence_id, epoch_);
    if (!refusal_.ok()) return Outcome::kReady;
    // Never twice, also if the clock goes back.
    core_.last_time_ns_ = std::max(absl::ToUnixNanos(core_.toolbox_.WallNow()), core_.last_time_ns_ + 1);
    has_time_ = true;
    SnapshotMetadata& metadata = snapshot_.metadata;
    metadata.timestamp = absl::FromUnixNanos(core_.last_time_ns_);
    const std::string key = SnapshotKey(metadata.persistence_id, metadata.sequence_nr, core_.last_time_ns_);
    const std::string record = EncodeSnapshot(key, snapshot_);
    std::string size;
    AppendVarint(size, record.size());
    std::string time;
    AppendFixed64(time, static_cast<uint64_t>(core_.last_time_ns_));
    batch.Put(core_.family(kIndex), key, size);
    batch.Put(core_.family(kRecords), key, record);
    batch.Put(core_.database().default_column_family(), ToSlice(kLastTimeKey), time);
    core_.saved_in_group_[metadata.persistence_id].push_back({metadata.sequence_nr, core_.last_time_ns_});
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    if (!refusal_.ok()) {
      promise_.Set(refusal_);
    } else if (committed.ok()) {
      promise_.Set(std::move(snapshot_.metadata));
    } else {
      const absl::Status error = Annotate(committed, absl::StrCat("save of snapshot ", snapshot_.metadata.sequence_nr,
                                                                  " of \"", snapshot_.metadata.persistence_id, "\""));
      // A commit that fails may still have reached the disk.
      promise_.Set(has_time_ ? WithSnapshotTime(error, snapshot_.metadata.timestamp) : error);
    }
    core_.engine_->Leave();
  }
  size_t byte_size() const override { return snapshot_.payload.size() + 256; }

 private:
  Core& core_;
  Snapshot snapshot_;
  const uint64_t epoch_;
  Promise<SnapshotMetadata> promise_;
  absl::Status refusal_;
  bool has_time_ = false;
};

class RocksDbSnapshotStore::Core::DeleteOperation final : public CommitQueue::Operation {
 public:
  DeleteOperation(Core& core, std::string persistence_id, const SnapshotSelectionCriteria& criteria, uint64_t epoch,
                  Promise<void> promise)
      : core_(core),
        persistence_id_(std::move(persistence_id)),
        criteria_(criteria),
        epoch_(epoch),
        promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    core_.BeginPrepare(batch);
    result_ = core_.owners_.Claim(core_.database(), batch, persistence_id_, epoch_);
    if (!result_.ok() || criteria_.MatchesNothing()) return Outcome::kReady;
    DeleteSavedInGroup(batch);
    rocksdb::ReadOptions read;
    read.prefix_same_as_start = true;
    const std::unique_ptr<rocksdb::Iterator> entries(core_.db().NewIterator(read, core_.family(kIndex)));
    for (entries->Seek(next_); entries->Valid(); entries->Next()) {
      const ParsedKey parsed = ParseKey(ToView(entries->key()));
      if (parsed.sequence_nr > criteria_.max_sequence_nr) break;
      if (!Matches(parsed)) continue;
      if (core_.engine_->IsFull(batch)) {
        next_ = entries->key().ToString();
        return Outcome::kCommitFirst;
      }
      core_.PutDeletion(batch, entries->key());
    }
    result_ = core_.database().ToStatus(entries->status(), absl::StrCat("find snapshots of \"", persistence_id_, "\""));
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    promise_.Set(committed.ok() ? result_
                                : Annotate(committed, absl::StrCat("delete snapshots of \"", persistence_id_, "\"")));
    core_.engine_->Leave();
  }
  size_t byte_size() const override { return persistence_id_.size() + 64; }

 private:
  bool Matches(const ParsedKey& key) const {
    return criteria_.Matches(key.sequence_nr, absl::FromUnixNanos(key.time_ns));
  }
  void DeleteSavedInGroup(rocksdb::WriteBatch& batch) {
    const auto saved = core_.saved_in_group_.find(persistence_id_);
    if (saved == core_.saved_in_group_.end() || IsMutated("overlook_snapshots_of_group")) return;
    for (const ParsedKey& key : saved->second) {
      if (Matches(key)) core_.PutDeletion(batch, SnapshotKey(persistence_id_, key.sequence_nr, key.time_ns));
    }
    saved->second.erase(std::remove_if(saved->second.begin(), saved->second.end(),
                                       [this](const ParsedKey& key) { return Matches(key); }),
                        saved->second.end());
  }

  Core& core_;
  const std::string persistence_id_;
  const SnapshotSelectionCriteria criteria_;
  const uint64_t epoch_;
  Promise<void> promise_;
  // The first key in the index that it has not looked at.
  std::string next_ = EventKey(persistence_id_, criteria_.min_sequence_nr);
  absl::Status result_;
};

absl::StatusOr<std::unique_ptr<RocksDbSnapshotStore::Core>> RocksDbSnapshotStore::Core::Open(
    RuntimeToolbox& toolbox, const RocksDbSnapshotStoreOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckSnapshotLimits(options.limits));
  if (options.path.empty()) return absl::InvalidArgumentError("RocksDbSnapshotStoreOptions::path is missing");
  FRAKTOR_RETURN_IF_ERROR(CheckReaderThreads("RocksDbSnapshotStoreOptions", options.reader_threads));
  auto core = absl::WrapUnique(new Core(toolbox, options));
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions index;
  index.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  index.prefix_extractor = std::make_shared<SizedPrefixTransform>();
  index.compression = rocksdb::kNoCompression;
  rocksdb::ColumnFamilyOptions records = index;
  records.prefix_extractor.reset();
  records.write_buffer_size = options.write_buffer_bytes;
  records.enable_blob_files = true;
  records.min_blob_size = options.min_blob_bytes;
  records.enable_blob_garbage_collection = true;
  Database::Options database{.path = options.path,
                             .format = "fraktor-snapshots",
                             .schema_version = kSchemaVersion,
                             .column_families = {{"index", index}, {"records", records}},
                             .create_if_missing = options.create_if_missing,
                             .read_only = options.read_only,
                             .on_damaged_log = options.on_damaged_log,
                             .options_name = "RocksDbSnapshotStoreOptions",
                             .damage_advice = std::string(kDamageAdvice),
                             .on_warning = options.on_warning,
                             .env = options.env};
  FRAKTOR_ASSIGN_OR_RETURN(core->engine_,
                           StoreEngine::Open(toolbox, {.what = "snapshot store",
                                                       .thread_name = "snapshot",
                                                       .database = std::move(database),
                                                       .sync = options.sync,
                                                       .max_waiting_requests = options.max_waiting_requests,
                                                       .max_waiting_bytes = options.max_waiting_bytes,
                                                       .reader_threads = options.reader_threads}));
  std::string last;
  const rocksdb::Status found =
      core->db().Get(rocksdb::ReadOptions(), core->database().default_column_family(), ToSlice(kLastTimeKey), &last);
  if (!found.ok() && !found.IsNotFound()) return core->database().ToStatus(found, "read the time of the last snapshot");
  if (last.size() == 8) core->last_time_ns_ = static_cast<int64_t>(LoadFixed64(last.data()));
  return core;
}

Future<void> RocksDbSnapshotStore::Core::OpenWriter(std::string persistence_id, uint64_t epoch) {
  absl::Status checked = CheckSnapshotId(options_.limits, persistence_id);
  if (checked.ok()) checked = CheckOwnerEpoch(persistence_id, epoch);
  if (!checked.ok()) return MakeReadyFuture<void>(checked);
  return engine_->Submit<void, ClaimOperation<Core>>(*this, std::move(persistence_id), epoch, "snapshots");
}

Future<SnapshotMetadata> RocksDbSnapshotStore::Core::Save(Snapshot snapshot, uint64_t epoch) {
  const absl::Status checked = CheckSnapshot(options_.limits, snapshot);
  if (!checked.ok()) return MakeReadyFuture<SnapshotMetadata>(checked);
  return engine_->Submit<SnapshotMetadata, SaveOperation>(*this, std::move(snapshot), epoch);
}

Future<std::optional<Snapshot>> RocksDbSnapshotStore::Core::Load(std::string persistence_id,
                                                                 SnapshotSelectionCriteria criteria) {
  using Found = std::optional<Snapshot>;
  const absl::Status checked = CheckSnapshotId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<Found>(checked);
  return engine_->Read<Found>(
      [this, persistence_id = std::move(persistence_id), criteria] { return ReadNewest(persistence_id, criteria); });
}

absl::StatusOr<std::optional<Snapshot>> RocksDbSnapshotStore::Core::ReadNewest(
    const std::string& persistence_id, const SnapshotSelectionCriteria& criteria) {
  // A snapshot that is deleted between the two reads is as if it had never been found.
  for (int attempt = 0; attempt < 3 && !criteria.MatchesNothing(); ++attempt) {
    const std::string lower = EventKey(persistence_id, criteria.min_sequence_nr);
    const rocksdb::Slice lower_slice = lower;
    rocksdb::ReadOptions read;
    read.iterate_lower_bound = &lower_slice;
    read.total_order_seek = true;
    const std::unique_ptr<rocksdb::Iterator> entries(db().NewIterator(read, family(kIndex)));
    entries->SeekForPrev(SnapshotKey(persistence_id, criteria.max_sequence_nr, std::numeric_limits<int64_t>::max()));
    std::string key;
    for (; entries->Valid(); entries->Prev()) {
      const ParsedKey parsed = ParseKey(ToView(entries->key()));
      if (!criteria.Matches(parsed.sequence_nr, absl::FromUnixNanos(parsed.time_ns))) continue;
      key = entries->key().ToString();
      break;
    }
    FRAKTOR_RETURN_IF_ERROR(
        database().ToStatus(entries->status(), absl::StrCat("find snapshots of \"", persistence_id, "\"")));
    if (key.empty()) return std::nullopt;
    rocksdb::PinnableSlice record;
    const rocksdb::Status found = db().Get(rocksdb::ReadOptions(), family(kRecords), key, &record);
    if (found.IsNotFound()) continue;
    if (!found.ok()) {
      const absl::Status problem = database().ToStatus(found, "read it");
      return SnapshotError(problem.code(), ErrorKindOf<JournalErrorKind>(problem).value_or(JournalErrorKind::kIo),
                           persistence_id, ParseKey(key).sequence_nr, std::string(problem.message()));
    }
    FRAKTOR_ASSIGN_OR_RETURN(Snapshot snapshot, DecodeSnapshot(key, persistence_id, ToView(record)));
    return snapshot;
  }
  return std::nullopt;
}

Future<void> RocksDbSnapshotStore::Core::Delete(std::string persistence_id, SnapshotSelectionCriteria criteria,
                                                uint64_t epoch) {
  const absl::Status checked = CheckSnapshotId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<void>(checked);
  return engine_->Submit<void, DeleteOperation>(*this, std::move(persistence_id), criteria, epoch);
}

absl::StatusOr<std::unique_ptr<RocksDbSnapshotStore>> RocksDbSnapshotStore::Open(
    RuntimeToolbox& toolbox, const RocksDbSnapshotStoreOptions& options) {
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<Core> core, Core::Open(toolbox, options));
  return absl::WrapUnique(new RocksDbSnapshotStore(std::move(core)));
}

RocksDbSnapshotStore::RocksDbSnapshotStore(std::unique_ptr<Core> core) : core_(std::move(core)) {}
RocksDbSnapshotStore::~RocksDbSnapshotStore() = default;

Future<void> RocksDbSnapshotStore::OpenWriter(std::string persistence_id, uint64_t epoch) {
  return core_->OpenWriter(std::move(persistence_id), epoch);
}
Future<SnapshotMetadata> RocksDbSnapshotStore::Save(Snapshot snapshot, uint64_t epoch) {
  return core_->Save(std::move(snapshot), epoch);
}
Future<std::optional<Snapshot>> RocksDbSnapshotStore::Load(std::string persistence_id,
                                                           SnapshotSelectionCriteria criteria) {
  return core_->Load(std::move(persistence_id), criteria);
}
Future<void> RocksDbSnapshotStore::Delete(std::string persistence_id, uint64_t sequence_nr, uint64_t epoch) {
  return core_->Delete(std::move(persistence_id), {.max_sequence_nr = sequence_nr, .min_sequence_nr = sequence_nr},
                       epoch);
}
Future<void> RocksDbSnapshotStore::DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria,
                                                  uint64_t epoch) {
  return core_->Delete(std::move(persistence_id), criteria, epoch);
}
Future<void> RocksDbSnapshotStore::Close() { return core_->Close(); }
StoreIdentity RocksDbSnapshotStore::identity() const { return core_->engine().identity(); }
Future<void> RocksDbSnapshotStore::RememberPartner(std::string role, std::string id) {
  return core_->engine().RememberPartner(std::move(role), std::move(id));
}
const SnapshotLimits& RocksDbSnapshotStore::limits() const { return core_->options().limits; }
const RocksDbOpenReport& RocksDbSnapshotStore::open_report() const { return core_->report(); }

}  // namespace fraktor::inline v0
