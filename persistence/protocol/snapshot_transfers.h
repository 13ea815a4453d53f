// SnapshotTransfers: the parts of large snapshots that a snapshot actor has received or is sending,
// within a limit of bytes.
//
//   SnapshotTransfers transfers({.max_bytes = size_t{256} << 20, .timeout = absl::Seconds(30)});
//   SnapshotTransfers::Upload upload = transfers.Take(part, storage.limits().max_snapshot_bytes, now);
//   if (upload.step == SnapshotTransfers::Step::kComplete) Save(std::move(upload.snapshot));
//
// Uploads and downloads share the limit. One transfer is always admitted when there is no other, so
// a snapshot above the limit can travel too. A transfer is forgotten when nothing is heard of it
// for the timeout. The result of an upload is kept for the same time, since its answer may be lost;
// the oldest results are forgotten before if there are many.
//
// Thread safety: none; the snapshot actor owns it.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_TRANSFERS_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::protocol_internal {

class SnapshotTransfers {
 public:
  struct Limits {
    size_t max_bytes = size_t{256} << 20;
    absl::Duration timeout = absl::Seconds(30);
  };
  enum class Step {
    // Answer with `taken`.
    kTaken,
    // All parts are there: save `snapshot`, then call EndUpload.
    kComplete,
    // Answer with `saved`: the upload has ended before, or it is refused.
    kEnded,
  };
  struct Upload {
    Step step = Step::kTaken;
    SnapshotPartsTaken taken = {};
    SnapshotPartsSaved saved = {};
    Snapshot snapshot = {};
  };

  explicit SnapshotTransfers(const Limits& limits) : limits_(limits) {}

  Upload Take(SaveSnapshotPart part, size_t max_snapshot_bytes, Instant now);
  // Remembers the result, and frees the room of the upload.
  void EndUpload(const SnapshotPartsSaved& saved, Instant now);

  // Keeps a snapshot that is about to be asked for in parts, if there is room.
  void Keep(Snapshot snapshot, Instant now);
  // Whether the snapshot of the request is kept.
  bool Has(const GetSnapshotPart& request) const;
  // The part, of a snapshot that is kept. The last part of a snapshot frees its room.
  SnapshotPart Part(const GetSnapshotPart& request, Instant now);

  // Begins to load the snapshot of the request again. False: the request waits for one that has
  // begun. kOverloaded: there is no room now.
  absl::StatusOr<bool> BeginLoad(const GetSnapshotPart& request, Instant now);
  // Keeps what was loaded, and returns the requests that wait for it.
  std::vector<GetSnapshotPart> EndLoad(const SnapshotMetadata& metadata, std::optional<Snapshot> loaded, Instant now);

  // Forgets the transfers of which nothing was heard for the timeout.
  void ForgetIdle(Instant now);

  bool empty() const { return uploads_.empty() && downloads_.empty() && results_.empty(); }
  size_t bytes() const { return bytes_; }
  const Limits& limits() const { return limits_; }

 private:
  struct Incoming {
    Snapshot snapshot;
    uint64_t total_bytes = 0;
    Instant last_use;
    bool is_saving = false;
  };
  struct Result {
    SnapshotPartsSaved saved;
    Instant ended_at;
  };
  struct Outgoing {
    Snapshot snapshot = {};
    // The bytes that it counts for.
    uint64_t bytes = 0;
    Instant last_use;
    bool is_loading = false;
    std::vector<GetSnapshotPart> waiting = {};
  };
  // Id, number and time.
  using Key = std::tuple<std::string, uint64_t, int64_t>;

  static Key KeyOf(const SnapshotMetadata& metadata);
  void ForgetOldestResult();
  bool HasRoom(uint64_t bytes) const;

  const Limits limits_;
  std::map<SnapshotTransferId, Incoming> uploads_;
  std::map<Key, Outgoing> downloads_;
  // The results of uploads that have ended. They take no room.
  std::map<SnapshotTransferId, Result> results_;
  // The oldest first.
  std::deque<SnapshotTransferId> results_by_age_;
  // Bytes reserved against max_bytes.
  size_t bytes_ = 0;
};

}  // namespace fraktor::inline v0::protocol_internal

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_TRANSFERS_H_
