// SnapshotOracle: what the clients of a snapshot store know of it, and whether the store agrees.
// See JournalOracle; the rules are the same.
//
// Thread safety: none.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SIMULATION_SNAPSHOT_ORACLE_H_
#define FRAKTOR_PERSISTENCE_TESTING_SIMULATION_SNAPSHOT_ORACLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/testing/simulation/owner_claims.h"
#include "fraktor/persistence/testing/simulation/sim_log.h"

namespace fraktor::inline v0 {

class SnapshotOracle {
 public:
  explicit SnapshotOracle(SimLog& log) : log_(log) {}

  void SubmitOpening(uint64_t order, const std::string& id, uint64_t epoch);
  void SubmitSave(uint64_t order, const Snapshot& snapshot, uint64_t epoch);
  // The deletion of all snapshots whose numbers are not below `min` and not above `max`.
  void SubmitDeletion(uint64_t order, const std::string& id, uint64_t min, uint64_t max, uint64_t epoch);

  void OnOpened(uint64_t order, const absl::Status& answer, bool heard);
  void OnSaved(uint64_t order, const absl::StatusOr<SnapshotMetadata>& answer, bool heard);
  void OnDeleted(uint64_t order, const absl::Status& answer, bool heard);

  void OnRestart(uint64_t next_order) { settled_before_ = next_order; }

  // While no request is under way: all snapshots of an id that are there.
  void Audit(const std::string& id, const std::vector<Snapshot>& found);

  std::set<std::string> ids() const;
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  struct Save {
    uint64_t order = 0;
    Snapshot snapshot;
    uint64_t epoch = 0;
    bool is_acknowledged = false;
  };
  struct Deletion {
    uint64_t order = 0;
    uint64_t min = 0;
    uint64_t max = 0;
    uint64_t epoch = 0;
    bool is_acknowledged = false;

    bool Covers(const Save& save) const {
      const uint64_t number = save.snapshot.metadata.sequence_nr;
      return order > save.order && min <= number && number <= max;
    }
  };
  struct Id {
    OwnerClaims claims;
    std::map<uint64_t, Save> saves;          // by order
    std::map<uint64_t, Deletion> deletions;  // by order
    std::map<uint64_t, uint64_t> openings;   // epochs by order, of those without an answer
  };

  // Judges an answer. True if the request was carried out; `is_gone` if it had no effect.
  bool Judge(uint64_t order, const std::string& id, Id& state, uint64_t epoch, const absl::Status& answer, bool heard,
             bool& is_gone);

  SimLog& log_;
  absl::flat_hash_map<std::string, Id> ids_;
  absl::flat_hash_map<uint64_t, std::string> id_of_;
  uint64_t settled_before_ = 0;
  uint64_t acknowledged_ = 0;
  absl::Time last_time_ = absl::InfinitePast();
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SIMULATION_SNAPSHOT_ORACLE_H_
