#include "fraktor/persistence/protocol/snapshot_transfers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0::protocol_internal {
namespace {

// Transfers that are under way at once.
constexpr size_t kMaxTransfers = 4096;
// Results that are kept.
constexpr size_t kMaxResults = 4096;

absl::Status Refusal(const SaveSnapshotPart& part, size_t limit) {
  const SnapshotMetadata& metadata = part.head.metadata;
  return MakeError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge,
                   absl::StrCat("snapshot ", metadata.sequence_nr, " of \"", metadata.persistence_id, "\" has ",
                                part.total_bytes, " bytes; the limit, SnapshotLimits::max_snapshot_bytes, is ", limit,
                                ". Keep large values elsewhere, or raise it"),
                   {{"id", metadata.persistence_id}, {"nr", metadata.sequence_nr}});
}

}  // namespace

SnapshotTransfers::Key SnapshotTransfers::KeyOf(const SnapshotMetadata& metadata) {
  return {metadata.persistence_id, metadata.sequence_nr, absl::ToUnixNanos(metadata.timestamp)};
}

bool SnapshotTransfers::HasRoom(uint64_t bytes) const {
  if (uploads_.size() + downloads_.size() >= kMaxTransfers) return false;
  return bytes_ == 0 || (bytes <= limits_.max_bytes && bytes_ <= limits_.max_bytes - bytes);
}

SnapshotTransfers::Upload SnapshotTransfers::Take(SaveSnapshotPart part, size_t max_snapshot_bytes, Instant now) {
  Upload result{.taken = {.transfer = part.transfer}, .saved = {.transfer = part.transfer}};
  if (const auto ended = results_.find(part.transfer); ended != results_.end()) {
    result.step = Step::kEnded;
    result.saved = ended->second.saved;
    return result;
  }
  auto found = uploads_.find(part.transfer);
  if (found == uploads_.end()) {
    if (part.offset != 0) return result;
    if (part.total_bytes > max_snapshot_bytes) {
      result.step = Step::kEnded;
      result.saved.cause = Refusal(part, max_snapshot_bytes);
      return result;
    }
    result.taken.has_room = HasRoom(part.total_bytes);
    if (!result.taken.has_room) return result;
    found = uploads_.try_emplace(part.transfer).first;
    found->second.snapshot = std::move(part.head);
    found->second.total_bytes = part.total_bytes;
    bytes_ += part.total_bytes;
  }
  Incoming& upload = found->second;
  upload.last_use = now;
  result.taken.received_bytes = upload.total_bytes;
  if (upload.is_saving) return result;
  std::string& payload = upload.snapshot.payload;
  if (part.offset == payload.size() && part.bytes.size() <= upload.total_bytes - payload.size()) payload += part.bytes;
  result.taken.received_bytes = payload.size();
  if (payload.size() < upload.total_bytes) return result;
  upload.is_saving = true;
  result.step = Step::kComplete;
  result.snapshot = std::move(upload.snapshot);
  return result;
}

void SnapshotTransfers::EndUpload(const SnapshotPartsSaved& saved, Instant now) {
  const auto found = uploads_.find(saved.transfer);
  if (found == uploads_.end()) return;
  bytes_ -= found->second.total_bytes;
  uploads_.erase(found);
  results_.insert_or_assign(saved.transfer, Result{.saved = saved, .ended_at = now});
  results_by_age_.push_back(saved.transfer);
  if (results_.size() > kMaxResults) ForgetOldestResult();
}

void SnapshotTransfers::ForgetOldestResult() {
  results_.erase(results_by_age_.front());
  results_by_age_.pop_front();
}

void SnapshotTransfers::Keep(Snapshot snapshot, Instant now) {
  const uint64_t bytes = snapshot.payload.size();
  Key key = KeyOf(snapshot.metadata);
  const auto kept = downloads_.find(key);
  if (kept != downloads_.end()) {
    kept->second.last_use = now;
    return;
  }
  if (!HasRoom(bytes)) return;
  downloads_.try_emplace(std::move(key), Outgoing{.snapshot = std::move(snapshot), .bytes = bytes, .last_use = now});
  bytes_ += bytes;
}

bool SnapshotTransfers::Has(const GetSnapshotPart& request) const {
  const auto found = downloads_.find(KeyOf(request.metadata));
  return found != downloads_.end() && !found->second.is_loading;
}

SnapshotPart SnapshotTransfers::Part(const GetSnapshotPart& request, Instant now) {
  SnapshotPart part{.number = request.number, .offset = request.offset};
  const auto found = downloads_.find(KeyOf(request.metadata));
  Outgoing& download = found->second;
  download.last_use = now;
  const std::string& payload = download.snapshot.payload;
  if (request.offset >= payload.size() || request.max_bytes == 0) {
    part.cause = MakeError(
        absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid,
        absl::StrCat("snapshot ", request.metadata.sequence_nr, " of \"", request.metadata.persistence_id, "\" has ",
                     payload.size(), " bytes, and no part at ", request.offset, ": load it again"));
    return part;
  }
  part.bytes = payload.substr(request.offset, std::min<uint64_t>(request.max_bytes, payload.size()));
  if (request.offset + part.bytes.size() == payload.size()) {
    bytes_ -= download.bytes;
    downloads_.erase(found);
  }
  return part;
}

absl::StatusOr<bool> SnapshotTransfers::BeginLoad(const GetSnapshotPart& request, Instant now) {
  Key key = KeyOf(request.metadata);
  const auto found = downloads_.find(key);
  if (found != downloads_.end()) {
    if (found->second.waiting.size() < kMaxTransfers) found->second.waiting.push_back(request);
    return false;
  }
  if (!HasRoom(request.total_bytes)) {
    return MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded,
                     absl::StrCat("the snapshot store has parts of ", bytes_,
                                  " bytes in memory; the limit, SnapshotActorOptions::max_transfer_bytes, is ",
                                  limits_.max_bytes, ". Ask again"));
  }
  downloads_.try_emplace(
      std::move(key),
      Outgoing{.bytes = request.total_bytes, .last_use = now, .is_loading = true, .waiting = {request}});
  bytes_ += request.total_bytes;
  return true;
}

std::vector<GetSnapshotPart> SnapshotTransfers::EndLoad(const SnapshotMetadata& metadata,
                                                        std::optional<Snapshot> loaded, Instant now) {
  const auto found = downloads_.find(KeyOf(metadata));
  if (found == downloads_.end() || !found->second.is_loading) return {};
  Outgoing& download = found->second;
  std::vector<GetSnapshotPart> waiting = std::exchange(download.waiting, {});
  bytes_ -= download.bytes;
  if (!loaded.has_value()) {
    downloads_.erase(found);
    return waiting;
  }
  download.snapshot = *std::move(loaded);
  download.bytes = download.snapshot.payload.size();
  bytes_ += download.bytes;
  download.is_loading = false;
  download.last_use = now;
  return waiting;
}

void SnapshotTransfers::ForgetIdle(Instant now) {
  const auto is_idle = [&](Instant last_use) { return now - last_use >= limits_.timeout; };
  std::erase_if(uploads_, [&](const auto& entry) {
    const Incoming& upload = entry.second;
    // A running save ends by its own answer.
    if (upload.is_saving || !is_idle(upload.last_use)) return false;
    bytes_ -= upload.total_bytes;
    return true;
  });
  std::erase_if(downloads_, [&](const auto& entry) {
    const Outgoing& download = entry.second;
    if (download.is_loading || !is_idle(download.last_use)) return false;
    bytes_ -= download.bytes;
    return true;
  });
  while (!results_.empty() && is_idle(results_.find(results_by_age_.front())->second.ended_at)) ForgetOldestResult();
}

}  // namespace fraktor::inline v0::protocol_internal
