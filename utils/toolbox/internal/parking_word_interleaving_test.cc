// The parking word in every interleaving: a lost wake-up is a deadlock here.
#include <atomic>
#include <functional>
#include <string>

#include "gtest/gtest.h"

#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/toolbox/internal/parking_word.h"

namespace fraktor {
namespace {

using Word = toolbox_internal::BasicParkingWord<ModelAtomics>;

// A worker that takes `left` pieces of work, and sleeps when there are none. The semaphore stands
// for the kernel: it has a permit for each call of the kernel, and the sleeper takes one per sleep.
// So a missing or superfluous call shows as well.
struct Worker {
  Word word;
  ModelAtomic<int> work{0};
  ModelSemaphore kernel{0};

  int Take() {
    if (work.load(std::memory_order_seq_cst) == 0) return 0;
    return work.exchange(0, std::memory_order_seq_cst);
  }

  void Run(int left) {
    while (true) {
      left -= Take();
      if (left == 0) return;
      word.PublishParking();
      const int found = Take();
      if (found > 0) {
        left -= found;
        word.StayAwake();
        if (left == 0) return;
        continue;
      }
      while (word.FallAsleep()) {
        kernel.Acquire();
        if (!word.Stir()) break;
      }
    }
  }

  void Give(std::memory_order order = std::memory_order_seq_cst) {
    work.fetch_add(1, order);
    if (word.Wake()) kernel.Release();
  }
};

TEST(ParkingWord, LosesNoWakeUpOfTwoWakers) {
  ModelResult result = CheckInterleavings({}, [](Model& model) {
    auto& worker = model.Make<Worker>();
    model.Thread("worker", [&] { worker.Run(2); });
    model.Thread("first", [&] { worker.Give(); });
    model.Thread("second", [&] { worker.Give(); });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(result.complete);
}

TEST(ParkingWord, LosesNoWakeUpOfAWakerThatComesBack) {
  ModelResult result = CheckInterleavings({}, [](Model& model) {
    auto& worker = model.Make<Worker>();
    model.Thread("worker", [&] { worker.Run(3); });
    model.Thread("waker", [&] {
      for (int i = 0; i < 3; ++i) worker.Give();
    });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(result.complete);
}

TEST(ParkingWord, ANudgeNeitherWakesNorHidesAWake) {
  ModelResult result = CheckInterleavings({.max_spurious_failures = 1}, [](Model& model) {
    auto& worker = model.Make<Worker>();
    model.Thread("worker", [&] { worker.Run(1); });
    model.Thread("nudger", [&] {
      if (worker.word.Nudge()) worker.kernel.Release();
    });
    model.Thread("waker", [&] { worker.Give(); });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(result.complete);
}

TEST(ParkingWord, WorkThatIsOnlyReleasedCanBeMissed) {
  // Shows the mistake that toolbox_worker.h warns of: a plain store, and a worker that checks
  // with a plain load.
  ModelResult result = CheckInterleavings({}, [](Model& model) {
    auto& worker = model.Make<Worker>();
    auto& flag = model.Make<ModelAtomic<bool>>(false);
    model.Thread("worker", [&] {
      worker.word.PublishParking();
      if (flag.load(std::memory_order_acquire)) return;
      if (worker.word.FallAsleep()) worker.kernel.Acquire();
    });
    model.Thread("waker", [&] {
      flag.store(true, std::memory_order_release);
      if (worker.word.Wake()) worker.kernel.Release();
    });
  });
  EXPECT_EQ(result.failure, ModelFailure::kDeadlock) << result;
}

TEST(ParkingWord, NeedsTheTotalOrderWhereItSaysSo) {
  // With weaker orders, the waker's load and the worker's publication lose a wake-up.
  const std::function<void(Model&)> test = [](Model& model) {
    auto& worker = model.Make<Worker>();
    model.Thread("worker", [&] { worker.Run(1); });
    model.Thread("waker", [&] { worker.Give(); });
  };
  bool load_matters = false;
  bool store_matters = false;
  for (const ModelWeakenedResult& run : CheckEachWeakening({}, test)) {
    if (run.weakening.file != "parking_word.h") continue;
    if (run.weakening.operation == "load" && !run.result.ok()) load_matters = true;
    if (run.weakening.operation == "store" && !run.result.ok()) store_matters = true;
  }
  EXPECT_TRUE(load_matters);
  EXPECT_TRUE(store_matters);
}

}  // namespace
}  // namespace fraktor
