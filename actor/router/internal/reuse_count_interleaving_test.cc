// The reference count of custom routes in every interleaving.
#include <functional>
#include <string>

#include "gtest/gtest.h"

#include "fraktor/actor/router/internal/reuse_count.h"
#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {

using actor_internal::BasicReuseCount;
using actor_internal::ReuseCount;

namespace {

// An object that serves one owner after the other. Readers keep its address for ever.
struct Routes {
  BasicReuseCount<ModelAtomics> count;
  ModelAtomics::Plain<int> owner{0};

  void Make(int new_owner) {
    owner = new_owner;
    count.Open();
  }
  void Release(ModelSemaphore& recycled) {
    if (!count.Release()) return;
    owner = 0;
    recycled.Release();
  }
  void Read(ModelSemaphore& recycled) {
    if (!count.TryAcquire()) return;
    const int found = owner;
    // A reader that comes late may find the next owner, but never an object without one.
    MODEL_ASSERT(found == 1 || found == 2);
    const int again = owner;
    MODEL_ASSERT(found == again);
    Release(recycled);
  }
};

void ReusedWhileRead(Model& model, int readers) {
  auto& routes = model.Make<Routes>();
  auto& recycled = model.Make<ModelSemaphore>(0);
  routes.Make(1);
  model.Thread("owner", [&] {
    routes.Release(recycled);
    // The last reference may be that of a reader.
    recycled.Acquire();
    routes.Make(2);
    routes.Release(recycled);
  });
  for (int i = 0; i < readers; ++i) {
    model.Thread("reader", [&] { routes.Read(recycled); });
  }
}

TEST(ReuseCount, AReferenceKeepsTheObjectAsItIs) {
  ModelResult result = CheckInterleavings({}, [](Model& model) { ReusedWhileRead(model, 2); });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(result.complete);
}

TEST(ReuseCount, NeedsItsMemoryOrders) {
  const std::function<void(Model&)> test = [](Model& model) { ReusedWhileRead(model, 1); };
  bool open_matters = false;
  bool acquire_matters = false;
  bool release_matters = false;
  for (const ModelWeakenedResult& run : CheckEachWeakening({}, test)) {
    if (run.weakening.file != "reuse_count.h" || run.result.ok()) continue;
    if (run.weakening.operation == "store") open_matters = true;
    if (run.weakening.operation.find("compare_exchange") != std::string::npos) acquire_matters = true;
    if (run.weakening.operation == "fetch_sub") release_matters = true;
  }
  EXPECT_TRUE(open_matters);
  EXPECT_TRUE(acquire_matters);
  EXPECT_TRUE(release_matters);
}

}  // namespace
}  // namespace fraktor
