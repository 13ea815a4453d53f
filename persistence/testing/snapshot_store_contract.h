// SnapshotStoreContract: what every snapshot store promises, as tests that any store can run.
//
//   INSTANTIATE_TEST_SUITE_P(MyStore, SnapshotStoreContract, testing::Values(SnapshotStoreContractParameter{
//       .name = "MyStore", .make = [] { return std::make_unique<MyStoreUnderTest>(); }}), SnapshotStoreContractName);
//
// Put that into a test that depends on //persistence/testing; the tests come with it. Each one gets a store of its own.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SNAPSHOT_STORE_CONTRACT_H_
#define FRAKTOR_PERSISTENCE_TESTING_SNAPSHOT_STORE_CONTRACT_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"

namespace fraktor::inline v0 {

class SnapshotStoreUnderTest {
 public:
  virtual ~SnapshotStoreUnderTest() = default;

  virtual SnapshotStorage& storage() = 0;

  // Closes the store, as at the end of a program, and opens it again over what it has stored.
  virtual absl::Status Reopen() = 0;

  // What has to be pumped for futures to become ready. None if they do so by themselves.
  virtual PumpedToolbox* toolbox() { return nullptr; }
};

struct SnapshotStoreContractParameter {
  std::string name = {};
  std::function<std::unique_ptr<SnapshotStoreUnderTest>()> make = {};
  // Whether it keeps what it has over a Reopen.
  bool survives_reopen = true;
  // Whether metadata comes back.
  bool keeps_metadata = true;

  // How a test that fails names it.
  friend void PrintTo(const SnapshotStoreContractParameter& parameter, std::ostream* out) { *out << parameter.name; }
};

class SnapshotStoreContract : public testing::TestWithParam<SnapshotStoreContractParameter> {
 protected:
  static constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

  SnapshotStoreContract() : store_(GetParam().make()) {}

  SnapshotStorage& storage() { return store_->storage(); }
  absl::Status Reopen() { return store_->Reopen(); }

  template <class T>
  typename Future<T>::Result Await(Future<T> future) {
    PumpedToolbox* const toolbox = store_->toolbox();
    if (toolbox == nullptr) return future.Wait();
    const absl::Status ran = toolbox->RunUntil([&future] { return future.IsReady(); }, absl::Hours(1));
    if (!ran.ok()) return ran;
    return future.Take();
  }

  // Saves one whose payload names id and number.
  SnapshotMetadata Save(const std::string& id, uint64_t sequence_nr, uint64_t epoch = kNoEpoch);
  // The same for a save that may fail.
  absl::Status TrySave(const std::string& id, uint64_t sequence_nr, uint64_t epoch);
  absl::Status Open(const std::string& id, uint64_t epoch);
  // Saves 11 to 15.
  std::vector<SnapshotMetadata> SaveFive(const std::string& id);
  // The number that Load finds; 0 for none.
  uint64_t Load(const std::string& id, const SnapshotSelectionCriteria& criteria = {});
  absl::Status Delete(const std::string& id, uint64_t sequence_nr, uint64_t epoch = kNoEpoch);
  absl::Status DeleteMatching(const std::string& id, const SnapshotSelectionCriteria& criteria,
                              uint64_t epoch = kNoEpoch);
  // The numbers of all that are there, the newest first.
  std::vector<uint64_t> All(const std::string& id);

  std::unique_ptr<SnapshotStoreUnderTest> store_;
};

std::string SnapshotStoreContractName(const testing::TestParamInfo<SnapshotStoreContractParameter>& info);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SNAPSHOT_STORE_CONTRACT_H_
