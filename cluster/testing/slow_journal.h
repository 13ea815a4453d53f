// SlowJournal: a journal that stands between a node of a test and the one that all nodes share, at the end of a SlowLine.
//
//   auto trouble = std::make_shared<StoreTrouble>();
//   options.on_system = [&](ActorSystem& system) {
//     journals.push_back(SlowJournal::Make(system.toolbox(), random.Fork(++lives), journal, trouble));
//     system.Extension<PersistenceExtension>().AddJournal("main", {.storage = journals.back()}).IgnoreError();
//   };
//   *trouble = {.slow = 0.3, .max_delay = absl::Seconds(6), .lost = 0.1};        // from now on, for all nodes
//
// What a node has sent for one persistence id arrives in the order in which it was sent, and also when the node has died
// meanwhile, if the test keeps its SlowJournal. Queries are not slowed down.
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_TESTING_SLOW_JOURNAL_H_
#define FRAKTOR_CLUSTER_TESTING_SLOW_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"

#include "fraktor/cluster/testing/slow_line.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/testing/forwarding_journal.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class SlowJournal final : public ForwardingJournal {
 public:
  // The toolbox must outlive it. All that share the trouble have it.
  static std::shared_ptr<SlowJournal> Make(RuntimeToolbox& toolbox, Random random,
                                           std::shared_ptr<JournalStorage> journal,
                                           std::shared_ptr<const StoreTrouble> trouble);

  Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token) override;
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override;
  Future<EventBatch> Replay(ReplayPage page) override;
  Future<uint64_t> HighestSequenceNr(std::string persistence_id) override;
  Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) override;
  // The others go on with the journal.
  Future<void> Close() override;

 private:
  template <class T>
  using Request = absl::AnyInvocable<Future<T>(JournalStorage& journal)>;

  SlowJournal(std::shared_ptr<SlowLine> line, std::shared_ptr<JournalStorage> journal)
      : ForwardingJournal(std::move(journal)), line_(std::move(line)) {}

  template <class T>
  Future<T> Send(std::span<const std::string> persistence_ids, Request<T> request);

  const std::shared_ptr<SlowLine> line_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_SLOW_JOURNAL_H_
