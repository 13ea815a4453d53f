// StoreSimulation: a process that uses the three stores on RocksDB, on a SimDisk, by one seed.
//
// Up to thousands of persistence ids have two owners each, that write, save snapshots, delete and
// recover at the same time. The disk fails, runs full, and loses its power at random points; the
// process closes and opens the stores. JournalOracle, SnapshotOracle and StateOracle judge each
// answer, and what is stored after each crash and at the end. Each request must be answered.
//
// Thread safety: one thread.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SIMULATION_STORE_SIMULATION_H_
#define FRAKTOR_PERSISTENCE_TESTING_SIMULATION_STORE_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/rocksdb_state_store.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/testing/rocksdb/sim_disk.h"
#include "fraktor/persistence/testing/simulation/journal_oracle.h"
#include "fraktor/persistence/testing/simulation/pending_answers.h"
#include "fraktor/persistence/testing/simulation/sim_log.h"
#include "fraktor/persistence/testing/simulation/snapshot_oracle.h"
#include "fraktor/persistence/testing/simulation/state_oracle.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"

namespace fraktor::inline v0 {

struct StoreSimulationOptions {
  uint64_t seed = 1;
  size_t ids = 8;
  int rounds = 12;
  // Requests of one round, which are all submitted before the first is answered.
  int requests = 40;
  // Faults of the disk, restarts and random crashes. Without them the disk works.
  bool has_faults = true;
  // The power goes instead of this point; 0: at random ones, if there are faults.
  uint64_t crash_at = 0;

  // The options that a seed chooses: few ids or thousands.
  static StoreSimulationOptions Draw(uint64_t seed);
};

class StoreSimulation {
 public:
  explicit StoreSimulation(const StoreSimulationOptions& options);
  ~StoreSimulation();

  void Run();

  const SimLog& log() const { return log_; }
  // The points of the disk that the run has passed, without those of its end.
  uint64_t points() const { return points_of_rounds_; }
  // A line that says how much the run has done.
  std::string Summary() const;
  uint64_t acknowledged() const {
    return journal_oracle_.acknowledged() + snapshot_oracle_.acknowledged() + state_oracle_.acknowledged();
  }
  uint64_t crashes() const { return crashes_; }

 private:
  // An actor that owns an id, or believes so: each id has two.
  struct Owner {
    std::string id = {};
    std::optional<uint64_t> token = {};
    WriterId writer = {};
    enum class Stage : uint8_t { kClosed, kOpening, kOpen } stage = Stage::kClosed;
    // How often it was started; answers to a former incarnation are not its business.
    uint64_t incarnation = 0;
    uint64_t epoch = 0;
    uint64_t next_number = 1;
    uint64_t known_stored = 0;
    // The write that may be stored.
    AtomicWrite unknown = {};
    bool has_heard_fence = false;

    // The durable state of the id, as this owner knows it.
    uint64_t state_token = 0;
    uint64_t revision = 0;
    enum class StateStage : uint8_t { kClosed, kBusy, kOpen } state_stage = StateStage::kClosed;
  };
  struct GatheredWrite {
    size_t owner = 0;
    uint64_t incarnation = 0;
    AtomicWrite write;
    bool is_resend = false;
  };

  bool OpenStores();
  bool TryToOpenStores();
  void CloseStores();
  // Everything that is under way, until it is answered or the power has gone.
  void Pump();
  void RecoverFromCrash();
  void AuditAll();
  void AuditId(const std::string& id);
  void AuditTags();
  void AuditIds();
  void DrawWeather();
  // The answer of a request that is made while nothing else is under way.
  template <class T>
  auto Answer(Future<T> future);

  void Act();
  void ActOnJournal(size_t owner);
  void ActOnState(size_t owner);
  void OpenOwner(size_t owner);
  void Gather(size_t owner, AtomicWrite write, bool is_resend);
  void SubmitGathered();
  AtomicWrite MakeWrite(Owner& owner, size_t events, bool is_too_large);
  void DeleteEvents(Owner& owner);
  void SaveSnapshot(size_t owner);
  void DeleteSnapshots(Owner& owner, uint64_t min, uint64_t max);
  void ReplayPage(Owner& owner);
  void LoadState(size_t owner);
  void OnWritten(const GatheredWrite& gathered, const absl::Status& status, bool is_whole, bool heard);
  std::string MakePayload();

  const StoreSimulationOptions options_;
  SimLog log_;
  SimDisk disk_;
  const std::unique_ptr<SimToolbox> toolbox_;
  Random random_;
  Random weather_;
  JournalOracle journal_oracle_;
  SnapshotOracle snapshot_oracle_;
  StateOracle state_oracle_;
  PendingAnswers answers_;
  RocksDbJournalOptions journal_options_;
  RocksDbSnapshotStoreOptions snapshot_options_;
  RocksDbStateStoreOptions state_options_;
  std::unique_ptr<RocksDbJournal> journal_;
  std::unique_ptr<RocksDbSnapshotStore> snapshots_;
  std::unique_ptr<RocksDbStateStore> states_;
  std::vector<Owner> owners_;
  std::map<std::string, uint64_t> next_token_;
  std::vector<GatheredWrite> gathered_;
  uint64_t next_order_ = 1;
  uint64_t next_payload_ = 1;
  uint64_t points_of_rounds_ = 0;
  uint64_t crashes_ = 0;
  uint64_t restarts_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SIMULATION_STORE_SIMULATION_H_
