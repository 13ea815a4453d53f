// StateOracle: what the clients of a store of durable states know of it, and whether the store
// agrees. See JournalOracle; the rules are the same.
//
// Thread safety: none.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SIMULATION_STATE_ORACLE_H_
#define FRAKTOR_PERSISTENCE_TESTING_SIMULATION_STATE_ORACLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/persistence/testing/simulation/owner_claims.h"
#include "fraktor/persistence/testing/simulation/sim_log.h"

namespace fraktor::inline v0 {

class StateOracle {
 public:
  explicit StateOracle(SimLog& log) : log_(log) {}

  void SubmitOpening(uint64_t order, const std::string& id, uint64_t token);
  // A deletion is a change to a state that does not exist.
  void SubmitChange(uint64_t order, const StoredState& change, uint64_t token);

  void OnOpened(uint64_t order, const absl::Status& answer, bool heard);
  void OnChanged(uint64_t order, const absl::Status& answer, bool heard);

  void OnRestart(uint64_t next_order) { settled_before_ = next_order; }

  // While no request is under way.
  void Audit(const std::string& id, const StoredState& found);

  std::set<std::string> ids() const;
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  struct Change {
    StoredState state;
    uint64_t token = 0;
  };
  struct Id {
    OwnerClaims claims;
    std::optional<StoredState> last;        // acknowledged, or seen by an audit
    std::map<uint64_t, Change> changes;     // without an answer, by order
    std::map<uint64_t, uint64_t> openings;  // tokens of those without an answer, by order
  };

  bool Judge(uint64_t order, const std::string& id, Id& state, uint64_t token, const absl::Status& answer, bool heard,
             bool& is_gone);

  SimLog& log_;
  absl::flat_hash_map<std::string, Id> ids_;
  absl::flat_hash_map<uint64_t, std::string> id_of_;
  uint64_t settled_before_ = 0;
  uint64_t acknowledged_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SIMULATION_STATE_ORACLE_H_
