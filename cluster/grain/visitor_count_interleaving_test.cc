// Batches that are read while grains are ended, in every interleaving: nobody sends to an actor that has ended. And the
// proof that these tests can fail: whichever memory order in visitor_count.h is made weaker, one of them does.
//
// CLU-8
#include <atomic>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/cluster/grain/visitor_count.h"
#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {
namespace {

// Lives of a grain: its placement, which gives no order by itself, and the actors, of which each belongs to those who
// have found it until it is ended.
struct Lives {
  BasicVisitorCount<ModelAtomics> entering;
  ModelAtomic<uint32_t> current{0};
  ModelPlain<bool> is_first_over{false};
  ModelPlain<bool> is_second_over{false};

  void Bring() {
    const uint32_t phase = entering.Enter();
    const uint32_t life = current.load(std::memory_order_relaxed);
    if (life == 0) MODEL_ASSERT(!is_first_over);
    if (life == 1) MODEL_ASSERT(!is_second_over);
    entering.Leave(phase);
  }
  void EndFirst() {
    current.store(1, std::memory_order_relaxed);
    entering.Await();
    is_first_over = true;
  }
  void EndSecond() {
    current.store(2, std::memory_order_relaxed);
    entering.Await();
    is_second_over = true;
  }
};

void OneLife(Model& m) {
  auto& lives = m.Make<Lives>();
  m.Thread("reader", [&] { lives.Bring(); });
  m.Thread("router", [&] { lives.EndFirst(); });
}

// Who has read the phase long ago counts himself in one that has passed.
void TwoLives(Model& m) {
  auto& lives = m.Make<Lives>();
  m.Thread("reader", [&] { lives.Bring(); });
  m.Thread("router", [&] {
    lives.EndFirst();
    lives.EndSecond();
  });
}

void TwoReaders(Model& m) {
  auto& lives = m.Make<Lives>();
  m.Thread("reader", [&] { lives.Bring(); });
  m.Thread("another", [&] { lives.Bring(); });
  m.Thread("router", [&] { lives.EndFirst(); });
}

const std::vector<ModelTest>& Cases() {
  static const auto& cases =
      *new std::vector<ModelTest>{{"one life", OneLife}, {"two lives", TwoLives}, {"two readers", TwoReaders}};
  return cases;
}

TEST(VisitorCountInterleaving, NobodySendsToAnActorThatHasEnded) {
  for (const ModelTest& test : Cases()) {
    const ModelResult result = CheckInterleavings({}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
    EXPECT_TRUE(result.complete) << test.name;
    std::cout << test.name << ": " << result << "\n";
  }
}

TEST(VisitorCountInterleaving, FailsIfAnyMemoryOrderIsWeaker) {
  const ModelWeakeningReport report = FindUnnoticedWeakenings({}, Cases(), "visitor_count.h");
  EXPECT_TRUE(report.unweakened.ok()) << report.unweakened;
  EXPECT_EQ(report.unnoticed, std::vector<std::string>{}) << report.text;
  EXPECT_GE(report.weakenings, 5);
  std::cout << report.text;
}

}  // namespace
}  // namespace fraktor
