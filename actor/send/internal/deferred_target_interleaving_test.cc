// DeferredTarget in every interleaving of the worker and a thief: exactly one of them gets the
// target, and sees what the worker has written to it before. Further tests prove that these tests
// can fail: they do without one side of the barrier, or with a weaker memory order.
//
// The model checker has no fences. Here both sides of the barrier are a read-modify-write of one
// atomic, which orders memory like the real barrier: the second side sees what the first has done
// before.
//
// SCH-8
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/send/internal/deferred_target.h"
#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_cases.h"
#include "fraktor/utils/testing/model_lock.h"

namespace fraktor::actor_internal {
namespace {

enum class Sides { kBoth, kWithoutLight, kWithoutHeavy, kRefused };

template <Sides kSides>
class ModelBarrier {
 public:
  void Light() {
    if (kSides != Sides::kWithoutLight) both_.fetch_add(1, std::memory_order_acq_rel);
  }
  bool Heavy() {
    if (kSides != Sides::kWithoutHeavy) both_.fetch_add(1, std::memory_order_acq_rel);
    return kSides != Sides::kRefused;
  }

 private:
  ModelAtomic<int> both_{0};
};

// An actor. The thread that has got it may write to it.
struct Target {
  ModelPlain<int> put{0};
  ModelPlain<int> obtained{0};

  ActorSlot* slot() { return reinterpret_cast<ActorSlot*>(this); }
  static void Obtain(ActorSlot* slot) {
    auto& target = *reinterpret_cast<Target*>(slot);
    MODEL_ASSERT(target.put == 1);
    ++target.obtained;
  }
};

template <Sides kSides, DeferralOrder kOrder = DeferralOrder::kBarrier>
struct Cases {
  struct World {
    explicit World(Model& m) {
      for (Target*& target : targets) target = &m.Make<Target>();
    }

    void PutAndTake(size_t i) {
      targets[i]->put = 1;
      deferred.Put(targets[i]->slot());
      if (ActorSlot* const slot = deferred.Take()) {
        MODEL_ASSERT(slot == targets[i]->slot());
        Target::Obtain(slot);
      }
    }
    bool PeekAndSteal() {
      ActorSlot* const slot = deferred.Steal(deferred.Peek());
      if (slot == nullptr) return false;
      Target::Obtain(slot);
      return true;
    }
    void ExpectEachObtainedOnce(size_t targets_put) {
      MODEL_ASSERT(deferred.empty() && deferred.Peek() == nullptr);
      for (size_t i = 0; i < targets_put; ++i) MODEL_ASSERT(targets[i]->obtained == 1, "lost, or obtained twice");
      // The state is the same as at the beginning.
      targets[2]->put = 1;
      deferred.Put(targets[2]->slot());
      MODEL_ASSERT(PeekAndSteal() == (kSides != Sides::kRefused), "nothing can be stolen any more");
      deferred.Take();
    }

    BasicDeferredTarget<ModelAtomics, ModelLock, ModelBarrier<kSides>> deferred{kOrder};
    std::array<Target*, 3> targets{};
  };

  static void WorkerAndThief(Model& m) {
    auto& world = m.Make<World>(m);
    m.Thread("worker", [&] { world.PutAndTake(0); });
    m.Thread("thief", [&] { world.PeekAndSteal(); });
    m.After([&] { world.ExpectEachObtainedOnce(1); });
  }

  // The thief sees the target that it has stolen already, or the next one.
  static void TwoTargets(Model& m) {
    auto& world = m.Make<World>(m);
    m.Thread("worker", [&] {
      world.PutAndTake(0);
      world.PutAndTake(1);
    });
    m.Thread("thief", [&] {
      world.PeekAndSteal();
      world.PeekAndSteal();
    });
    m.After([&] { world.ExpectEachObtainedOnce(2); });
  }

  static void TwoThieves(Model& m) {
    auto& world = m.Make<World>(m);
    m.Thread("worker", [&] { world.PutAndTake(0); });
    for (int i = 0; i < 2; ++i) m.Thread("thief", [&] { world.PeekAndSteal(); });
    m.After([&] { world.ExpectEachObtainedOnce(1); });
  }

  static std::vector<ModelTest> All() {
    return {{"worker and thief", WorkerAndThief}, {"two targets", TwoTargets}, {"two thieves", TwoThieves}};
  }
};

TEST(DeferredTargetInterleaving, GivesEachTargetToExactlyOne) {
  ExpectAllPass(Cases<Sides::kBoth>::All());
  ExpectAllPass(Cases<Sides::kBoth, DeferralOrder::kExchange>::All());
}

TEST(DeferredTargetInterleaving, LeavesAllToTheWorkerIfTheKernelRefuses) {
  ExpectAllPass(Cases<Sides::kRefused>::All());
}

TEST(DeferredTargetInterleaving, FailsWithoutOneSideOfTheBarrier) {
  EXPECT_FALSE(CheckInterleavings({}, Cases<Sides::kWithoutLight>::WorkerAndThief).ok());
  EXPECT_FALSE(CheckInterleavings({}, Cases<Sides::kWithoutHeavy>::WorkerAndThief).ok());
}

TEST(DeferredTargetInterleaving, FailsIfAnyMemoryOrderIsWeaker) {
  std::vector<ModelTest> all = Cases<Sides::kBoth>::All();
  for (const ModelTest& test : Cases<Sides::kBoth, DeferralOrder::kExchange>::All()) all.push_back(test);
  const ModelWeakeningReport report = FindUnnoticedWeakenings({}, all, "deferred_target.h");
  EXPECT_TRUE(report.unweakened.ok()) << report.unweakened;
  EXPECT_EQ(report.unnoticed, std::vector<std::string>{}) << report.text;
  EXPECT_EQ(report.weakenings, 3) << report.text;
}

}  // namespace
}  // namespace fraktor::actor_internal
