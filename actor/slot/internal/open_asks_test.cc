// The cost of the asks of one actor, counted in steps, and the order in which they are due.
#include "fraktor/actor/slot/internal/open_asks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor::actor_internal {
namespace {

struct Ask {
  int64_t deadline_ns = 0;
  uint32_t previous = 0;
  uint32_t next = 0;
  uint32_t child = 0;
  uint32_t number = 0;
};

// Counts each access to an ask.
struct CountedLinks {
  using Node = Ask;
  static Ask* At(uint32_t number) {
    ++steps;
    return &all[number];
  }
  static uint32_t NumberOf(const Ask& ask) { return ask.number; }
  static int64_t DeadlineOf(const Ask& ask) {
    ++steps;
    return ask.deadline_ns;
  }

  static inline std::deque<Ask> all;
  static inline uint64_t steps = 0;
};

class OpenAsksTest : public testing::Test {
 protected:
  OpenAsksTest() {
    CountedLinks::all.clear();
    CountedLinks::steps = 0;
  }

  Ask& Open(int64_t deadline_ns) {
    CountedLinks::all.push_back(
        {.deadline_ns = deadline_ns, .number = static_cast<uint32_t>(CountedLinks::all.size())});
    asks_.Add(CountedLinks::all.back());
    return CountedLinks::all.back();
  }

  // How many steps `what` takes.
  template <class What>
  static uint64_t StepsOf(What what) {
    const uint64_t before = CountedLinks::steps;
    what();
    return CountedLinks::steps - before;
  }

  std::vector<int64_t> TakeAll() {
    std::vector<int64_t> taken;
    while (const Ask* const ask = asks_.TakeFirst()) taken.push_back(ask->deadline_ns);
    return taken;
  }

  BasicOpenAsks<CountedLinks> asks_;
};

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kFewSteps = 16;

// An implementation with a step per open ask took 2.4 ms.
TEST_F(OpenAsksTest, AnAskThatIsDueBeforeManyOthersCostsAFewSteps) {
  for (int64_t i = 0; i < 100'000; ++i) Open(60 * kSecond + i);
  for (int64_t i = 0; i < 100; ++i) {
    Ask* ask = nullptr;
    EXPECT_LE(StepsOf([&] { ask = &Open(5 * kSecond + i); }), kFewSteps);
    EXPECT_LE(StepsOf([&] { asks_.Remove(*ask); }), kFewSteps);
  }
}

TEST_F(OpenAsksTest, ManyAsksOfTwoTimeoutsCostAFewStepsEach) {
  std::deque<Ask*> open;
  uint64_t most = 0;
  for (int64_t i = 0; i < 50'000; ++i) {
    most = std::max(most, StepsOf([&] { Open(60 * kSecond + i); }));
    most = std::max(most, StepsOf([&] { open.push_back(&Open(5 * kSecond + i)); }));
    // The replies come in the order of the asks, a thousand asks later.
    if (open.size() < 1000) continue;
    most = std::max(most, StepsOf([&] { asks_.Remove(*open.front()); }));
    open.pop_front();
  }
  EXPECT_LE(most, kFewSteps);
}

// Each timeout is the rest of a deadline, so no two are equal.
TEST_F(OpenAsksTest, AsksOfManyTimeoutsCostAsManyStepsAsTheLogarithmSays) {
  std::mt19937_64 random(1);
  std::vector<Ask*> open;
  constexpr uint64_t kAsks = 100'000;
  const uint64_t steps = StepsOf([&] {
    for (uint64_t i = 0; i < kAsks; ++i) {
      open.push_back(&Open(static_cast<int64_t>(i) * kMillisecond + static_cast<int64_t>(random() % (60 * kSecond))));
      if (i % 2 == 0) continue;
      std::swap(open[random() % open.size()], open.back());
      asks_.Remove(*open.back());
      open.pop_back();
    }
    while (Ask* const ask = asks_.Earliest()) asks_.Remove(*ask);
  });
  constexpr uint64_t kLogarithm = 17;
  EXPECT_LE(steps, kAsks * 4 * kLogarithm);
}

TEST_F(OpenAsksTest, TheEarliestIsTheEarliestWhateverIsAddedAndRemoved) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    // By deadline, with the number of the ask.
    std::set<std::pair<int64_t, uint32_t>> expected;
    const uint64_t deadlines = 1 + random() % 50;
    for (int i = 0; i < 300; ++i) {
      if (random() % 5 < 3 || expected.empty()) {
        const Ask& ask = Open(static_cast<int64_t>(random() % deadlines));
        expected.emplace(ask.deadline_ns, ask.number);
      } else {
        auto at = expected.begin();
        std::advance(at, random() % expected.size());
        asks_.Remove(CountedLinks::all[at->second]);
        expected.erase(at);
      }
      const Ask* const earliest = asks_.Earliest();
      ASSERT_EQ(earliest == nullptr, expected.empty());
      if (earliest != nullptr) {
        ASSERT_EQ(earliest->deadline_ns, expected.begin()->first);
      }
    }
    std::vector<int64_t> all;
    for (const auto& [deadline, number] : expected) all.push_back(deadline);
    ASSERT_EQ(TakeAll(), all);
    ASSERT_EQ(asks_.Earliest(), nullptr);
  }
}

TEST_F(OpenAsksTest, AnAskWhoseAnswerIsOnItsWayIsNotDueAndStays) {
  Ask& first = Open(1);
  Open(3);
  Ask& second = Open(2);
  asks_.SetOverdue(first);
  EXPECT_EQ(asks_.Earliest(), &second);
  asks_.SetOverdue(second);
  EXPECT_EQ(asks_.Earliest()->deadline_ns, 3);
  asks_.Remove(first);
  EXPECT_EQ(TakeAll(), std::vector<int64_t>({2, 3}));
}

}  // namespace
}  // namespace fraktor::actor_internal
