// JournalContract: what every journal promises, as tests that any store can run.
//
//   class MyJournalUnderTest : public JournalUnderTest { ... opens MyJournal in a fresh place ... };
//   INSTANTIATE_TEST_SUITE_P(MyJournal, JournalContract, testing::Values(JournalContractParameter{
//       .name = "MyJournal", .make = [] { return std::make_unique<MyJournalUnderTest>(); }}), JournalContractName);
//
// Put that into a test that depends on //persistence/testing; the tests come with it. Each one gets a journal of its
// own.
#ifndef FRAKTOR_PERSISTENCE_TESTING_JOURNAL_CONTRACT_H_
#define FRAKTOR_PERSISTENCE_TESTING_JOURNAL_CONTRACT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"

namespace fraktor::inline v0 {

class JournalUnderTest {
 public:
  virtual ~JournalUnderTest() = default;

  virtual JournalStorage& storage() = 0;

  // Closes the journal, as at the end of a program, and opens it again over what it has stored.
  virtual absl::Status Reopen() = 0;

  // What has to be pumped for futures to become ready. None if they do so by themselves.
  virtual PumpedToolbox* toolbox() { return nullptr; }
};

struct JournalContractParameter {
  std::string name = {};
  std::function<std::unique_ptr<JournalUnderTest>()> make = {};
  // Whether it keeps what it has over a Reopen.
  bool survives_reopen = true;
  // Whether an atomic write may have several events. If not, the suite writes one at a time.
  bool writes_several_atomically = true;
  // Whether metadata comes back.
  bool keeps_metadata = true;
  // How many persistence ids the tests at scale use at once. A store that keeps the states of some
  // ids in memory runs the suite with more ids than that.
  size_t many_ids = 1100;

  // How a test that fails names it.
  friend void PrintTo(const JournalContractParameter& parameter, std::ostream* out) { *out << parameter.name; }
};

class JournalContract : public testing::TestWithParam<JournalContractParameter> {
 protected:
  static constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

  JournalContract() : journal_(GetParam().make()) {}

  JournalStorage& storage() { return journal_->storage(); }
  absl::Status Reopen() { return journal_->Reopen(); }

  template <class T>
  typename Future<T>::Result Await(Future<T> future) {
    PumpedToolbox* const toolbox = journal_->toolbox();
    if (toolbox == nullptr) return future.Wait();
    const absl::Status ran = toolbox->RunUntil([&future] { return future.IsReady(); }, absl::Hours(1));
    if (!ran.ok()) return ran;
    return future.Take();
  }

  // An event of the id with that number, whose payload names both.
  PersistentRepr Event(const std::string& id, uint64_t sequence_nr, uint64_t epoch = 0) const;
  // One atomic write for each number.
  std::vector<AtomicWrite> Writes(const std::string& id, uint64_t from, uint64_t to, uint64_t epoch = 0) const;
  // The result of writing one event, or of several as one atomic write.
  absl::Status Write(const PersistentRepr& event);
  absl::Status WriteTogether(AtomicWrite::Events events);
  // Stores events `from` to `to`.
  void Fill(const std::string& id, uint64_t from, uint64_t to, uint64_t epoch = 0);
  // The numbers that a replay shows, page by page.
  std::vector<uint64_t> Replay(const std::string& id, uint64_t from = 1, uint64_t to = kMax, uint64_t max = kMax,
                               PageLimits limits = {});
  std::vector<PersistentRepr> ReplayEvents(const std::string& id);
  uint64_t Highest(const std::string& id);
  absl::Status DeleteTo(const std::string& id, uint64_t to, uint64_t epoch = kNoEpoch);
  // "id/number" of everything with that tag.
  std::vector<std::string> Tagged(const std::string& tag, uint64_t from_offset = 0, PageLimits limits = {});
  std::vector<std::string> Ids(size_t page = 1000);
  // "many-0", "many-1" and so on: as many as the parameter says, but at most `limit`.
  std::vector<std::string> ManyIds(size_t limit = std::numeric_limits<size_t>::max()) const;

  std::unique_ptr<JournalUnderTest> journal_;
};

std::string JournalContractName(const testing::TestParamInfo<JournalContractParameter>& info);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_JOURNAL_CONTRACT_H_
