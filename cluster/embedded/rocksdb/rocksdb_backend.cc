#include "fraktor/cluster/embedded/rocksdb/rocksdb_backend.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
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

absl::Status FromRocksDb(const std::string& folder, const rocksdb::Status& status) {
  const std::string text = status.ToString();
  if (absl::StrContains(text, "lock hold by current process") || absl::StrContains(text, "While lock file")) {
    return absl::UnavailableError(absl::StrCat("the cluster's store in \"", folder,
                                               "\": another process, or another store of this one, has it open: end "
                                               "that one, or name another folder"));
  }
  return absl::UnavailableError(absl::StrCat("the cluster's store in \"", folder, "\": ", text));
}

}  // namespace

absl::StatusOr<std::shared_ptr<RocksDbBackend>> RocksDbBackend::Open(const std::string& folder) {
  rocksdb::Options options;
  options.create_if_missing = true;
  // What was acknowledged was synced: what is behind a hole never was.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.max_background_jobs = 1;
  options.write_buffer_size = size_t{8} << 20;
  options.keep_log_file_num = 2;
  rocksdb::DB* db = nullptr;
  if (const rocksdb::Status opened = rocksdb::DB::Open(options, folder, &db); !opened.ok()) {
    return FromRocksDb(folder, opened);
  }
  std::shared_ptr<RocksDbBackend> backend(new RocksDbBackend(folder, absl::WrapUnique(db)));
  std::string schema;
  const rocksdb::Status found = db->Get(rocksdb::ReadOptions(), ToSlice(kSchemaKey), &schema);
  if (found.IsNotFound()) return backend;
  if (!found.ok()) return FromRocksDb(folder, found);
  FRAKTOR_ASSIGN_OR_RETURN(const uint64_t version, DecodeValue<uint64_t>("its version", schema));
  if (version > kSchema) {
    return absl::FailedPreconditionError(absl::StrCat("the cluster's store in \"", folder, "\" is of version ", version,
                                                      ", and this program knows ", kSchema, ": update it"));
  }
  if (version < kSchema) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the cluster's store in \"", folder, "\" is of version ", version, ", which this program, of version ", kSchema,
        ", cannot read: begin a cluster with a new folder, and with new journals of its grains"));
  }
  return backend;
}

RocksDbBackend::RocksDbBackend(std::string folder, std::unique_ptr<rocksdb::DB> db)
    : folder_(std::move(folder)), db_(std::move(db)) {}

RocksDbBackend::~RocksDbBackend() = default;

absl::StatusOr<EmbeddedState> RocksDbBackend::Load() {
  EmbeddedState state;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
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
  if (!at->status().ok()) return FromRocksDb(folder_, at->status());
  return state;
}

absl::Status RocksDbBackend::Write(const EmbeddedChanges& changes) {
  rocksdb::WriteBatch batch;
  const auto put = [&](std::string_view key, std::string_view what, const auto& value) -> absl::Status {
    FRAKTOR_ASSIGN_OR_RETURN(const std::string bytes, EncodeValue(what, value));
    const rocksdb::Status added = batch.Put(ToSlice(key), bytes);
    return added.ok() ? absl::OkStatus() : FromRocksDb(folder_, added);
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
      return FromRocksDb(folder_, removed);
    }
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  const rocksdb::Status status = db_->Write(options, &batch);
  return status.ok() ? absl::OkStatus() : FromRocksDb(folder_, status);
}

}  // namespace fraktor::inline v0
