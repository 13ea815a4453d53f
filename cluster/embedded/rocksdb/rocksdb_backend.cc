#include "fraktor/cluster/embedded/rocksdb/rocksdb_backend.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"

#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Never used for something else. In 1 members had no oldest_kinds; in 2 they had them, and no version that said so.
constexpr uint64_t kSchema = 3;
constexpr std::string_view kSchemaKey = "schema";
constexpr std::string_view kEpochKey = "epoch";
constexpr std::string_view kMembersKey = "members";
constexpr std::string_view kTokenKey = "token";
// Before the kind, with its length, and the identity.
constexpr char kActivationPrefix = '/';

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

template <class T>
absl::StatusOr<std::string> EncodeValue(std::string_view what, const T& value) {
  std::string out;
  const CodecContext context;
  Encoder encoder(out, context);
  encoder.Value(value);
  // What was written up to there could not be read.
  if (encoder.ok()) return out;
  return absl::InvalidArgumentError(
      absl::StrCat("the cluster's store: ", ToAbsl(what), " cannot be written: ", encoder.status().message()));
}

template <class T>
absl::StatusOr<T> DecodeValue(std::string_view what, std::string_view bytes) {
  const CodecContext context;
  Decoder decoder(bytes, 0, 0, context);
  T value = decoder.Value<T>();
  if (const absl::Status read = decoder.Finish(); !read.ok()) {
    return absl::DataLossError(absl::StrCat("the cluster's store: ", ToAbsl(what), " cannot be read: ", read.message(),
                                            "; restore the folder, or delete it when no node of the cluster runs"));
  }
  return value;
}

std::string ActivationKey(const GrainKey& key) {
  std::string out(1, kActivationPrefix);
  AppendSized(out, key.kind());
  out += key.identity();
  return out;
}

// The error of an operation on the database.
absl::Status FromDatabase(absl::Status status) { return Annotate(std::move(status), "the cluster's store"); }

absl::Status CheckSchema(rocksdb::DB& db, const std::string& folder) {
  std::string schema;
  const rocksdb::Status found = db.Get(rocksdb::ReadOptions(), ToSlice(kSchemaKey), &schema);
  if (found.IsNotFound()) return absl::OkStatus();
  if (!found.ok()) return absl::UnavailableError(absl::StrCat(folder, ": cannot read its version: ", found.ToString()));
  FRAKTOR_ASSIGN_OR_RETURN(const uint64_t version, DecodeValue<uint64_t>("its version", schema));
  if (version == kSchema) return absl::OkStatus();
  if (version > kSchema) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", folder, "\" is of version ", version, ", and this program knows ", kSchema, ": update it"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("\"", folder, "\" is of version ", version, ", which this program, of version ", kSchema,
                   ", cannot read: begin a cluster with a new folder, and with new journals of its grains"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<RocksDbBackend>> RocksDbBackend::Open(const RocksDbBackendOptions& options) {
  rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = size_t{8} << 20;
  Database::Options database{
      .path = options.path,
      .format = "fraktor-cluster",
      .default_family = family,
      .check = [folder = options.path](rocksdb::DB& db) { return CheckSchema(db, folder); },
      .on_damaged_log = options.on_damaged_log,
      .options_name = "RocksDbBackendOptions",
      .damage_advice = "Restore the folder from a backup, or delete it when no node of the cluster runs",
      .on_warning = options.on_warning,
      .env = options.env};
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<Database> opened,
                           Annotate(Database::Open(std::move(database)), "the cluster's store"));
  return std::shared_ptr<RocksDbBackend>(new RocksDbBackend(std::move(opened)));
}

RocksDbBackend::RocksDbBackend(std::unique_ptr<Database> database) : database_(std::move(database)) {}

RocksDbBackend::~RocksDbBackend() = default;

absl::Status RocksDbBackend::GoOn() {
  if (!has_failed_) return absl::OkStatus();
  FRAKTOR_RETURN_IF_ERROR(FromDatabase(database_->Reopen()));
  has_failed_ = false;
  return absl::OkStatus();
}

absl::StatusOr<EmbeddedState> RocksDbBackend::Load() {
  // Without room on the disk, what was written before can still be read: the members need it.
  const absl::Status usable = GoOn();
  const Database::Lease lease(*database_);
  if (!lease.status().ok()) return FromDatabase(usable.ok() ? lease.status() : usable);
  EmbeddedState state;
  const std::unique_ptr<rocksdb::Iterator> at(database_->db().NewIterator(rocksdb::ReadOptions()));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    state.exists = true;
    const std::string_view key = FromSlice(at->key());
    const std::string_view value = FromSlice(at->value());
    if (key.front() == kActivationPrefix) {
      ByteReader reader(key.substr(1));
      const std::string_view kind = reader.Sized();
      const GrainKey grain(kind, reader.rest());
      if (!reader.ok() || !grain.Check().ok()) {
        return absl::DataLossError("the cluster's store: the key of an activation cannot be read");
      }
      FRAKTOR_ASSIGN_OR_RETURN(ActivationEntry entry,
                               DecodeValue<ActivationEntry>(absl::StrCat("activation ", grain.ToString()), value));
      state.activations.emplace_back(grain, std::move(entry));
    } else if (key == kEpochKey) {
      FRAKTOR_ASSIGN_OR_RETURN(state.epoch, DecodeValue<uint64_t>("the epoch", value));
    } else if (key == kTokenKey) {
      FRAKTOR_ASSIGN_OR_RETURN(state.token_limit, DecodeValue<uint64_t>("the last token", value));
    } else if (key == kMembersKey) {
      FRAKTOR_ASSIGN_OR_RETURN(state.members, DecodeValue<std::vector<Member>>("the list of members", value));
    }
  }
  if (at->status().ok()) return state;
  return FromDatabase(database_->ToStatus(at->status(), "read"));
}

absl::Status RocksDbBackend::Write(const EmbeddedChanges& changes) {
  rocksdb::WriteBatch batch;
  const auto put = [&](std::string_view key, std::string_view what, const auto& value) -> absl::Status {
    FRAKTOR_ASSIGN_OR_RETURN(const std::string bytes, EncodeValue(what, value));
    const rocksdb::Status added = batch.Put(ToSlice(key), bytes);
    return FromDatabase(database_->ToStatus(added, "gather what is written"));
  };
  FRAKTOR_RETURN_IF_ERROR(put(kSchemaKey, "its version", kSchema));
  if (changes.token_limit.has_value()) {
    FRAKTOR_RETURN_IF_ERROR(put(kTokenKey, "the last token", *changes.token_limit));
  }
  if (changes.epoch.has_value()) {
    FRAKTOR_RETURN_IF_ERROR(put(kEpochKey, "the epoch", *changes.epoch));
    FRAKTOR_RETURN_IF_ERROR(put(kMembersKey, "the list of members", changes.members));
  }
  for (const auto& [key, entry] : changes.activations) {
    FRAKTOR_RETURN_IF_ERROR(key.Check());
    const std::string name = ActivationKey(key);
    if (entry.has_value()) {
      FRAKTOR_RETURN_IF_ERROR(put(name, absl::StrCat("activation ", key.ToString()), *entry));
    } else if (const rocksdb::Status removed = batch.Delete(name); !removed.ok()) {
      return FromDatabase(database_->ToStatus(removed, "gather what is written"));
    }
  }
  FRAKTOR_RETURN_IF_ERROR(GoOn());
  const absl::Status written = database_->Commit(/*sync=*/true, batch);
  has_failed_ = !written.ok();
  return FromDatabase(written);
}

}  // namespace fraktor::inline v0
