// StateStoreContract: what every store of durable states promises, as tests that any store can run.
//
//   INSTANTIATE_TEST_SUITE_P(MyStore, StateStoreContract, testing::Values(StateStoreContractParameter{
//       .name = "MyStore", .make = [] { return std::make_unique<MyStoreUnderTest>(); }}), StateStoreContractName);
//
// Put that into a test that depends on //persistence/testing; the tests come with it. Each one gets a store of its own.
#ifndef FRAKTOR_PERSISTENCE_TESTING_STATE_STORE_CONTRACT_H_
#define FRAKTOR_PERSISTENCE_TESTING_STATE_STORE_CONTRACT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"

namespace fraktor::inline v0 {

class StateStoreUnderTest {
 public:
  virtual ~StateStoreUnderTest() = default;

  virtual StateStorage& storage() = 0;

  // Closes the store, as at the end of a program, and opens it again over what it has stored.
  virtual absl::Status Reopen() = 0;

  // What has to be pumped for futures to become ready. None if they do so by themselves.
  virtual PumpedToolbox* toolbox() { return nullptr; }
};

struct StateStoreContractParameter {
  std::string name = {};
  std::function<std::unique_ptr<StateStoreUnderTest>()> make = {};
  // Whether it keeps what it has over a Reopen.
  bool survives_reopen = true;

  // How a test that fails names it.
  friend void PrintTo(const StateStoreContractParameter& parameter, std::ostream* out) { *out << parameter.name; }
};

class StateStoreContract : public testing::TestWithParam<StateStoreContractParameter> {
 protected:
  StateStoreContract() : store_(GetParam().make()) {}

  StateStorage& storage() { return store_->storage(); }
  absl::Status Reopen() { return store_->Reopen(); }

  template <class T>
  typename Future<T>::Result Await(Future<T> future) {
    PumpedToolbox* const toolbox = store_->toolbox();
    if (toolbox == nullptr) return future.Wait();
    const absl::Status ran = toolbox->RunUntil([&future] { return future.IsReady(); }, absl::Hours(1));
    if (!ran.ok()) return ran;
    return future.Take();
  }

  absl::Status Open(const std::string& id, uint64_t token);
  absl::Status Upsert(const std::string& id, uint64_t revision, const std::string& payload, WriterId writer = {},
                      uint64_t token = kNoEpoch);
  absl::Status Delete(const std::string& id, uint64_t revision, WriterId writer = {}, uint64_t token = kNoEpoch);
  // "2: text", or "2: -" if it does not exist.
  std::string Load(const std::string& id);

  std::unique_ptr<StateStoreUnderTest> store_;
};

std::string StateStoreContractName(const testing::TestParamInfo<StateStoreContractParameter>& info);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_STATE_STORE_CONTRACT_H_
