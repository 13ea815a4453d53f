// FaultyJournal: a journal over another one that fails, rejects, loses answers and delays, as its seed decides.
//
//   TestKit kit;                                           // or a Simulation, or a system
//   auto journal = MemoryJournal::Open({}).value();
//   auto executor = SerialExecutor::Make(kit.toolbox(), {}).value();
//   auto faulty = std::make_shared<FaultyJournal>(
//       *journal, kit.toolbox(), *executor, JournalFaults{.fail_write = 0.1, .max_delay = absl::Milliseconds(50)});
//   kit.system().Extension<PersistenceExtension>().AddJournal("faulty", {.storage = faulty});
//   faulty->SetFaults({});                                 // from now on everything is well
//
// Requests go to the journal below at once and in order, so the order that it promises is kept; answers may be late and
// in another order. What a request will suffer is drawn when it is made, from the toolbox's stream, so a simulation
// repeats. For losses of what was not synced and torn records see MemoryDisk and testing/rocksdb.
//
// Thread safety: as JournalStorage. Everything that it is made of outlives it; it outlives its answers.
#ifndef FRAKTOR_PERSISTENCE_TESTING_FAULTY_JOURNAL_H_
#define FRAKTOR_PERSISTENCE_TESTING_FAULTY_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/testing/fault_dice.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// Probabilities, each from 0 to 1. With others, and with delays that are none, every request fails and says so.
struct JournalFaults {
  // A write as a whole fails (kIo), and nothing of it is stored.
  double fail_write = 0;
  // It is stored, but the answer is kIo.
  double lose_answer = 0;
  // One atomic write is rejected (kInvalid) and not stored.
  double reject_write = 0;
  // Opening a writer, deleting, and reading fail (kIo).
  double fail_open = 0;
  double fail_delete = 0;
  double fail_read = 0;
  // Whatever stores something fails with kDiskFull.
  bool disk_full = false;
  // How late answers are.
  absl::Duration min_delay = absl::ZeroDuration();
  absl::Duration max_delay = absl::ZeroDuration();

  // InvalidArgument that names the field.
  absl::Status Validate() const;
};

class FaultyJournal final : public JournalStorage {
 public:
  struct Counts {
    uint64_t failed = 0;
    uint64_t rejected = 0;
    uint64_t answers_lost = 0;
  };

  FaultyJournal(JournalStorage& journal, RuntimeToolbox& toolbox, Executor& executor, const JournalFaults& faults,
                uint64_t random_stream = 1);

  // For requests from now on.
  void SetFaults(const JournalFaults& faults) { dice_.SetFaults(faults); }
  Counts counts() const;

  Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token) override;
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override;
  Future<EventBatch> Replay(ReplayPage page) override;
  Future<uint64_t> HighestSequenceNr(std::string persistence_id) override;
  Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) override;
  Future<EventBatch> EventsByTag(TagPage page) override;
  Future<IdBatch> PersistenceIds(IdPage page) override;
  // Never fails by itself and is never late.
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override;
  Future<void> Close() override;
  const JournalLimits& limits() const override { return journal_.limits(); }

 private:
  JournalStorage& journal_;
  FaultDice<JournalFaults> dice_;
  mutable Mutex mutex_;
  uint64_t rejected_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_FAULTY_JOURNAL_H_
