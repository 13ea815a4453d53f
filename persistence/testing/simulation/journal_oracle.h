// JournalOracle: what the clients of a journal know of it, and whether the journal agrees. A model
// of its own: it knows nothing of how a journal works.
//
// It demands:
// - An event that was acknowledged is there, unchanged, until a deletion covers it.
// - Nothing else is there, but for events whose writes have no answer (the answer was an error, or
//   the process crashed before it heard one). All events of such a write are there or none.
// - A writer or deleter of an epoch below one that was opened before changes nothing.
// - Epochs, highest numbers and deletions never go back. A new epoch was never given before.
// - A refusal has a reason.
//
// Thread safety: none.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SIMULATION_JOURNAL_ORACLE_H_
#define FRAKTOR_PERSISTENCE_TESTING_SIMULATION_JOURNAL_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/testing/simulation/owner_claims.h"
#include "fraktor/persistence/testing/simulation/sim_log.h"

namespace fraktor::inline v0 {

class JournalOracle {
 public:
  // The result of an audit.
  struct Found {
    uint64_t deleted_to = 0;
    uint64_t highest = 0;
    std::vector<PersistentRepr> events = {};
  };

  // Writes with an event of more payload bytes than `max_payload` have to be refused.
  JournalOracle(SimLog& log, size_t max_payload) : log_(log), max_payload_(max_payload) {}

  // Orders rise, and each is used once.
  void SubmitOpening(uint64_t order, const std::string& id, std::optional<uint64_t> token);
  void SubmitWrite(uint64_t order, const AtomicWrite& write, bool is_resend);
  void SubmitDeletion(uint64_t order, const std::string& id, uint64_t to, uint64_t epoch);

  // `heard`: the process had not crashed when the answer was set.
  void OnOpened(uint64_t order, const absl::StatusOr<WriterOpened>& answer, bool heard);
  // The answer to one atomic write. `is_whole`: it is the error of the whole request.
  void OnWritten(uint64_t order, const absl::Status& answer, bool is_whole, bool heard);
  void OnDeleted(uint64_t order, const absl::Status& answer, bool heard);

  // A replay from `from` on is submitted now; gives the numbers that it has to find.
  std::vector<uint64_t> SubmitReplay(const std::string& id, uint64_t from) const;
  void OnReplayed(const std::string& id, const std::vector<uint64_t>& expected, const EventBatch& page);

  // The journal was opened again, so requests without an answer cannot take effect any more.
  void OnRestart(uint64_t next_order) { settled_before_ = next_order; }

  // The rest is for when no request is under way.
  void Audit(const std::string& id, const Found& found);
  // `found` has the ids and numbers that a query of the tag has given, in order.
  void AuditTag(const std::string& tag, const std::vector<std::pair<std::string, uint64_t>>& found);
  void AuditIds(const std::vector<std::string>& found);

  std::set<std::string> ids() const;
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  struct Write {
    uint64_t order = 0;
    AtomicWrite write;
    bool is_resend = false;
    bool is_answered = false;
  };
  struct Deletion {
    uint64_t order = 0;
    uint64_t to = 0;
    uint64_t epoch = 0;
    bool is_answered = false;
  };
  struct Event {
    AtomicWrite write;
    size_t index = 0;
    const PersistentRepr& repr() const { return write.events()[index]; }
  };
  struct Id {
    OwnerClaims claims;
    std::map<uint64_t, std::optional<uint64_t>> openings;  // tokens by order, of those without an answer
    std::map<uint64_t, Event> events;                      // acknowledged, or seen by an audit
    std::vector<Write> writes;                             // without an answer
    std::vector<Deletion> deletions;                       // without an answer
    uint64_t highest = 0;
    uint64_t deleted_to = 0;
    bool is_known = false;
  };

  Id& At(const std::string& id) { return ids_[id]; }
  const std::string& IdOf(uint64_t order) const { return id_of_.at(order); }
  void Acknowledge(const std::string& id, Id& state, const AtomicWrite& write);
  void Settle(uint64_t order);
  static uint64_t PossibleHighest(const Id& state, uint64_t before);
  static uint64_t PossibleDeletedTo(const Id& state);
  bool IsTooLarge(const AtomicWrite& write) const;

  SimLog& log_;
  const size_t max_payload_;
  absl::flat_hash_map<std::string, Id> ids_;
  absl::flat_hash_map<uint64_t, std::string> id_of_;  // of requests without an answer, by order
  // Requests of lower orders that have no answer took effect by now, or never will.
  uint64_t settled_before_ = 0;
  uint64_t acknowledged_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SIMULATION_JOURNAL_ORACLE_H_
