#include "fraktor/persistence/rocksdb/rocksdb_state_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/rocksdb/commit_queue.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/rocksdb/owner_epochs.h"
#include "fraktor/persistence/rocksdb/reader_pool.h"
#include "fraktor/persistence/rocksdb/store_engine.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint32_t kSchemaVersion = 1;
// What to do if files are damaged.
constexpr std::string_view kDamageAdvice = "Restore the whole folder from a backup";
constexpr size_t kStates = 0;
// 1 had no writer.
constexpr uint8_t kStateRecordVersion = 2;

std::string EncodeRecord(const StoredState& stored) {
  const DurableState& state = stored.state;
  std::string record;
  record.reserve(state.payload.size() + state.manifest.size() + 48);
  record.push_back(static_cast<char>(kStateRecordVersion));
  record.push_back(stored.exists ? 1 : 0);
  AppendVarint(record, state.revision);
  AppendFixed64(record, state.writer.high);
  AppendFixed64(record, state.writer.low);
  AppendVarint(record, state.manifest_version);
  AppendSized(record, state.manifest);
  record.append(state.payload);
  AppendFixed32(record, ExtendCrc32c(ExtendCrc32c(0, state.persistence_id), record));
  return record;
}

absl::StatusOr<StoredState> DecodeRecord(std::string persistence_id, std::string_view record) {
  const std::string_view covered = record.substr(0, record.size() < 4 ? 0 : record.size() - 4);
  if (covered.empty() ||
      ExtendCrc32c(ExtendCrc32c(0, persistence_id), covered) != LoadFixed32(record.data() + covered.size())) {
    return IdError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, persistence_id,
                   "the record of its state has a wrong checksum. Restore it from a backup");
  }
  ByteReader reader(covered);
  const uint8_t version = reader.Byte();
  if (version > kStateRecordVersion) {
    return IdError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kNewerSchema, persistence_id,
                   absl::StrCat("the record of its state has version ", static_cast<int>(version),
                                "; this program knows versions up to ", static_cast<int>(kStateRecordVersion),
                                ". Read it with the newer program that wrote it"));
  }
  StoredState stored;
  stored.exists = reader.Byte() != 0;
  stored.state.persistence_id = std::move(persistence_id);
  stored.state.revision = reader.Varint();
  if (version >= 2) {
    stored.state.writer.high = reader.Fixed64();
    stored.state.writer.low = reader.Fixed64();
  }
  stored.state.manifest_version = static_cast<uint32_t>(reader.Varint());
  stored.state.manifest = std::string(reader.Sized());
  stored.state.payload = std::string(reader.rest());
  if (reader.ok()) return stored;
  return IdError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, stored.state.persistence_id,
                 "the record of its state is too short. Restore it from a backup");
}

}  // namespace

class RocksDbStateStore::Core {
 public:
  static absl::StatusOr<std::unique_ptr<Core>> Open(RuntimeToolbox& toolbox, const RocksDbStateStoreOptions& options);
  ~Core() {
    if (engine_ != nullptr) engine_->Stop();
  }

  Future<StoredState> Load(std::string persistence_id);
  Future<void> OpenWriter(std::string persistence_id, uint64_t token);
  Future<void> Change(StoredState change, uint64_t token);
  Future<void> Close() { return engine_->Close(); }

  const RocksDbStateStoreOptions& options() const { return options_; }
  const RocksDbOpenReport& report() const { return engine_->report(); }
  StoreEngine& engine() { return *engine_; }

  // The worker's side, for operations.

  OwnerEpochs& owners() { return owners_; }
  // Every Prepare calls this first. An empty batch is a new group.
  void BeginPrepare(const rocksdb::WriteBatch& batch) {
    if (batch.Count() > 0) return;
    in_batch_.clear();
    owners_.BeginGroup();
  }

 private:
  class ChangeOperation;

  explicit Core(const RocksDbStateStoreOptions& options) : options_(options) {}

  absl::StatusOr<StoredState> Read(const std::string& persistence_id);

  const RocksDbStateStoreOptions options_;

  // The worker's own: ids that the batch changes, which cannot be read before it is committed.
  absl::flat_hash_set<std::string> in_batch_;
  OwnerEpochs owners_;
  std::unique_ptr<StoreEngine> engine_;
};

class RocksDbStateStore::Core::ChangeOperation final : public CommitQueue::Operation {
 public:
  ChangeOperation(Core& core, StoredState change, uint64_t token, Promise<void> promise)
      : core_(core), change_(std::move(change)), token_(token), promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    const std::string& id = change_.state.persistence_id;
    core_.BeginPrepare(batch);
    if (core_.in_batch_.contains(id)) return Outcome::kCommitFirst;
    result_ = Judge(batch);
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    promise_.Set(committed.ok() ? result_
                                : Annotate(committed, absl::StrCat("write of revision ", change_.state.revision,
                                                                   " of \"", change_.state.persistence_id, "\"")));
    core_.engine_->Leave();
  }
  size_t byte_size() const override { return change_.state.payload.size() + 256; }

 private:
  absl::Status Judge(rocksdb::WriteBatch& batch) {
    const std::string& id = change_.state.persistence_id;
    FRAKTOR_RETURN_IF_ERROR(core_.owners_.Claim(core_.engine_->database(), batch, id, token_));
    FRAKTOR_ASSIGN_OR_RETURN(const StoredState stored, core_.Read(id));
    const bool is_stored = stored.exists == change_.exists && stored.state == change_.state;
    FRAKTOR_RETURN_IF_ERROR(CheckRevision(id, stored.state.revision, change_.state.revision, is_stored));
    if (is_stored) return absl::OkStatus();
    batch.Put(core_.engine_->family(kStates), id, EncodeRecord(change_));
    core_.in_batch_.insert(id);
    return absl::OkStatus();
  }

  Core& core_;
  const StoredState change_;
  const uint64_t token_;
  Promise<void> promise_;
  absl::Status result_;
};

absl::StatusOr<std::unique_ptr<RocksDbStateStore::Core>> RocksDbStateStore::Core::Open(
    RuntimeToolbox& toolbox, const RocksDbStateStoreOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckStateLimits(options.limits));
  if (options.path.empty()) return absl::InvalidArgumentError("RocksDbStateStoreOptions::path is missing");
  FRAKTOR_RETURN_IF_ERROR(CheckReaderThreads("RocksDbStateStoreOptions", options.reader_threads));
  auto core = absl::WrapUnique(new Core(options));
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions states;
  states.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  states.compression = rocksdb::kNoCompression;
  states.write_buffer_size = options.write_buffer_bytes;
  states.enable_blob_files = true;
  states.min_blob_size = options.min_blob_bytes;
  states.enable_blob_garbage_collection = true;
  Database::Options database{.path = options.path,
                             .format = "fraktor-states",
                             .schema_version = kSchemaVersion,
                             .column_families = {{"states", states}},
                             .create_if_missing = options.create_if_missing,
                             .read_only = options.read_only,
                             .on_damaged_log = options.on_damaged_log,
                             .options_name = "RocksDbStateStoreOptions",
                             .damage_advice = std::string(kDamageAdvice),
                             .on_warning = options.on_warning,
                             .env = options.env};
  FRAKTOR_ASSIGN_OR_RETURN(core->engine_,
                           StoreEngine::Open(toolbox, {.what = "state store",
                                                       .thread_name = "state",
                                                       .database = std::move(database),
                                                       .sync = options.sync,
                                                       .max_waiting_requests = options.max_waiting_requests,
                                                       .max_waiting_bytes = options.max_waiting_bytes,
                                                       .reader_threads = options.reader_threads}));
  return core;
}

absl::StatusOr<StoredState> RocksDbStateStore::Core::Read(const std::string& persistence_id) {
  rocksdb::PinnableSlice record;
  const rocksdb::Status found =
      engine_->db().Get(rocksdb::ReadOptions(), engine_->family(kStates), persistence_id, &record);
  if (found.IsNotFound()) return StoredState{.state = {.persistence_id = persistence_id}};
  if (!found.ok()) {
    return engine_->database().ToStatus(found, absl::StrCat("read the state of \"", persistence_id, "\""));
  }
  return DecodeRecord(persistence_id, ToView(record));
}

Future<StoredState> RocksDbStateStore::Core::Load(std::string persistence_id) {
  const absl::Status checked = CheckStateId(options_.limits, persistence_id);
  if (!checked.ok()) return MakeReadyFuture<StoredState>(checked);
  return engine_->Read<StoredState>(
      [this, persistence_id = std::move(persistence_id)] { return Read(persistence_id); });
}

Future<void> RocksDbStateStore::Core::OpenWriter(std::string persistence_id, uint64_t token) {
  absl::Status checked = CheckStateId(options_.limits, persistence_id);
  if (checked.ok()) checked = CheckOwnerEpoch(persistence_id, token);
  if (!checked.ok()) return MakeReadyFuture<void>(checked);
  return engine_->Submit<void, ClaimOperation<Core>>(*this, std::move(persistence_id), token, "the state");
}

Future<void> RocksDbStateStore::Core::Change(StoredState change, uint64_t token) {
  const absl::Status checked = CheckState(options_.limits, change.state);
  if (!checked.ok()) return MakeReadyFuture<void>(checked);
  return engine_->Submit<void, ChangeOperation>(*this, std::move(change), token);
}

absl::StatusOr<std::unique_ptr<RocksDbStateStore>> RocksDbStateStore::Open(RuntimeToolbox& toolbox,
                                                                           const RocksDbStateStoreOptions& options) {
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<Core> core, Core::Open(toolbox, options));
  return absl::WrapUnique(new RocksDbStateStore(std::move(core)));
}

RocksDbStateStore::RocksDbStateStore(std::unique_ptr<Core> core) : core_(std::move(core)) {}
RocksDbStateStore::~RocksDbStateStore() = default;

Future<StoredState> RocksDbStateStore::Load(std::string persistence_id) {
  return core_->Load(std::move(persistence_id));
}
Future<void> RocksDbStateStore::OpenWriter(std::string persistence_id, uint64_t token) {
  return core_->OpenWriter(std::move(persistence_id), token);
}
Future<void> RocksDbStateStore::Upsert(DurableState state, uint64_t token) {
  return core_->Change({.exists = true, .state = std::move(state)}, token);
}
Future<void> RocksDbStateStore::Delete(std::string persistence_id, uint64_t revision, WriterId writer, uint64_t token) {
  return core_->Change(
      {.exists = false, .state = {.persistence_id = std::move(persistence_id), .revision = revision, .writer = writer}},
      token);
}
Future<void> RocksDbStateStore::Close() { return core_->Close(); }
StoreIdentity RocksDbStateStore::identity() const { return core_->engine().identity(); }
Future<void> RocksDbStateStore::RememberPartner(std::string role, std::string id) {
  return core_->engine().RememberPartner(std::move(role), std::move(id));
}
const StateLimits& RocksDbStateStore::limits() const { return core_->options().limits; }
const RocksDbOpenReport& RocksDbStateStore::open_report() const { return core_->report(); }

}  // namespace fraktor::inline v0
