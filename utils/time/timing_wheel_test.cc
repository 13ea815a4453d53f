#include "fraktor/utils/time/timing_wheel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor {
namespace {

using Wheel = TimingWheel<int>;

Instant At(absl::Duration since_start) { return Instant() + since_start; }

std::unique_ptr<Wheel> ExactWheel() { return Wheel::Make({.resolution = absl::Nanoseconds(1)}).value(); }

std::vector<int> Advance(Wheel& wheel, Instant now) {
  std::vector<int> fired;
  wheel.Advance(now, [&](Wheel::Due& due) { fired.push_back(due.payload); });
  return fired;
}

using Fired = std::vector<int>;

TEST(TimingWheel, FiresAtTheDeadlineAndNotANanosecondEarlier) {
  auto wheel = ExactWheel();
  ASSERT_TRUE(wheel->Insert(At(absl::Seconds(5)), 7).ok());
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(5) - absl::Nanoseconds(1))), Fired{});
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(5))), Fired{7});
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(50))), Fired{});
}

TEST(TimingWheel, IsNeverEarlyAndLateByLessThanTheResolution) {
  for (int64_t offset : {0, 1, 499'999, 999'999, 1'000'000, 1'000'001}) {
    auto wheel = Wheel::Make({.resolution = absl::Milliseconds(1), .start = Instant::FromNanoseconds(12'345)}).value();
    const Instant deadline = Instant::FromNanoseconds(12'345 + 5'000'000 + offset);
    ASSERT_TRUE(wheel->Insert(deadline, 1).ok());
    EXPECT_EQ(Advance(*wheel, deadline + absl::Nanoseconds(-1)), Fired{});
    EXPECT_GE(wheel->NextDeadline(), deadline);
    EXPECT_LT(wheel->NextDeadline() - deadline, absl::Milliseconds(1));
    EXPECT_EQ(Advance(*wheel, wheel->NextDeadline()), Fired{1});
  }
}

TEST(TimingWheel, FiresByDeadlineAndThenInOrderOfInsertion) {
  auto wheel = ExactWheel();
  // The same instant, armed from different distances and therefore on different levels.
  const Instant meeting = At(absl::Hours(1));
  ASSERT_TRUE(wheel->Insert(meeting, 1).ok());
  ASSERT_TRUE(wheel->Insert(meeting + absl::Nanoseconds(1), 9).ok());
  Advance(*wheel, At(absl::Minutes(59)));
  ASSERT_TRUE(wheel->Insert(meeting, 2).ok());
  Advance(*wheel, meeting + absl::Nanoseconds(-10));
  ASSERT_TRUE(wheel->Insert(meeting, 3).ok());
  ASSERT_TRUE(wheel->Insert(meeting + absl::Nanoseconds(-1), 0).ok());
  EXPECT_EQ(Advance(*wheel, At(absl::Hours(2))), (Fired{0, 1, 2, 3, 9}));
}

TEST(TimingWheel, KeepsTheOrderOfInsertionWithinATick) {
  auto wheel = Wheel::Make({.resolution = absl::Milliseconds(1)}).value();
  ASSERT_TRUE(wheel->Insert(At(absl::Microseconds(1900)), 1).ok());
  ASSERT_TRUE(wheel->Insert(At(absl::Microseconds(1100)), 2).ok());
  EXPECT_EQ(Advance(*wheel, At(absl::Milliseconds(2))), (Fired{1, 2}));
}

TEST(TimingWheel, CancelAnswersTrueExactlyOnce) {
  auto wheel = ExactWheel();
  TimerId id = wheel->Insert(At(absl::Seconds(1)), 1).value();
  EXPECT_EQ(wheel->pending(), 1u);
  EXPECT_TRUE(wheel->Cancel(id));
  EXPECT_FALSE(wheel->Cancel(id));
  EXPECT_EQ(wheel->pending(), 0u);
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(2))), Fired{});
}

TEST(TimingWheel, CancelAfterFiringAnswersFalse) {
  auto wheel = ExactWheel();
  TimerId id = wheel->Insert(At(absl::Seconds(1)), 1).value();
  bool while_firing = true;
  wheel->Advance(At(absl::Seconds(1)), [&](Wheel::Due& due) {
    EXPECT_EQ(due.id, id);
    while_firing = wheel->Cancel(id);
  });
  EXPECT_FALSE(while_firing);
  EXPECT_FALSE(wheel->Cancel(id));
}

TEST(TimingWheel, AStaleIdDoesNotCancelTheNextTimerInItsPlace) {
  auto wheel = ExactWheel();
  TimerId stale = wheel->Insert(At(absl::Seconds(1)), 1).value();
  ASSERT_TRUE(wheel->Cancel(stale));
  TimerId fresh = wheel->Insert(At(absl::Seconds(1)), 2).value();
  EXPECT_FALSE(stale == fresh);
  EXPECT_FALSE(wheel->Cancel(stale));
  EXPECT_FALSE(wheel->Cancel(TimerId{}));
  EXPECT_FALSE(wheel->Cancel(TimerId{~uint64_t{0}}));
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(1))), Fired{2});
}

TEST(TimingWheel, NeverIssuesAnIdTwiceEvenWhenGenerationsRunOut) {
  auto wheel = TimingWheel<int, 3>::Make({}).value();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 10'000; ++i) {
    TimerId id = wheel->Insert(At(absl::Seconds(1)), i).value();
    ids.push_back(id.value);
    ASSERT_TRUE(wheel->Cancel(id));
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

TEST(TimingWheel, ADeadlineInThePastFiresInTheNextAdvance) {
  auto wheel = Wheel::Make({.start = At(absl::Hours(1))}).value();
  Advance(*wheel, At(absl::Hours(2)));
  ASSERT_TRUE(wheel->Insert(At(absl::Hours(2)), 1).ok());
  ASSERT_TRUE(wheel->Insert(At(absl::Minutes(1)), 2).ok());
  ASSERT_TRUE(wheel->Insert(Instant::InfinitePast(), 3).ok());
  EXPECT_LE(wheel->NextDeadline(), At(absl::Hours(2)));
  EXPECT_EQ(Advance(*wheel, At(absl::Hours(2))), (Fired{1, 2, 3}));
}

TEST(TimingWheel, AnInfiniteDeadlineIsPendingAndNeverFires) {
  auto wheel = ExactWheel();
  TimerId id = wheel->Insert(At(absl::InfiniteDuration()), 1).value();
  EXPECT_EQ(wheel->NextDeadline(), Instant::InfiniteFuture());
  EXPECT_EQ(Advance(*wheel, Instant::InfiniteFuture()), Fired{});
  EXPECT_EQ(wheel->pending(), 1u);
  EXPECT_TRUE(wheel->Cancel(id));
}

TEST(TimingWheel, HoldsTimersForYears) {
  for (absl::Duration resolution : {absl::Nanoseconds(1), absl::Milliseconds(1), absl::Hours(1)}) {
    auto wheel = Wheel::Make({.resolution = resolution}).value();
    const absl::Duration year = absl::Hours(24 * 365);
    for (int years : {250, 100, 1, 10}) ASSERT_TRUE(wheel->Insert(At(years * year), years).ok());
    EXPECT_EQ(Advance(*wheel, At(1 * year)), Fired{1});
    EXPECT_EQ(Advance(*wheel, At(99 * year)), Fired{10});
    EXPECT_EQ(wheel->NextDeadline(), At(100 * year));
    EXPECT_EQ(Advance(*wheel, At(300 * year)), (Fired{100, 250}));
  }
}

TEST(TimingWheel, TheLastNanosecondBeforeInfinityIsADeadlineLikeAnother) {
  auto wheel = ExactWheel();
  const Instant last = Instant::FromNanoseconds(Instant::InfiniteFuture().nanoseconds() - 1);
  ASSERT_TRUE(wheel->Insert(last, 1).ok());
  EXPECT_EQ(wheel->NextDeadline(), last);
  EXPECT_EQ(Advance(*wheel, last + absl::Nanoseconds(-1)), Fired{});
  EXPECT_EQ(Advance(*wheel, Instant::FromNanoseconds(last.nanoseconds())), Fired{1});
}

TEST(TimingWheel, AClockThatGoesBackChangesNothing) {
  auto wheel = ExactWheel();
  Advance(*wheel, At(absl::Seconds(10)));
  ASSERT_TRUE(wheel->Insert(At(absl::Seconds(5)), 1).ok());
  ASSERT_TRUE(wheel->Insert(At(absl::Seconds(11)), 2).ok());
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(3))), Fired{1});  // its deadline counts as 10 s, which has passed
  EXPECT_EQ(wheel->now(), At(absl::Seconds(10)));
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(11))), Fired{2});
}

TEST(TimingWheel, WhatIsArmedInAFiringWaitsForTheNextAdvance) {
  auto wheel = ExactWheel();
  ASSERT_TRUE(wheel->Insert(At(absl::Seconds(1)), 1).ok());
  int fired = 0;
  auto rearm = [&](Wheel::Due& due) {
    ++fired;
    ASSERT_TRUE(wheel->Insert(due.deadline, due.payload).ok());
  };
  EXPECT_EQ(wheel->Advance(At(absl::Hours(1)), rearm), 1u);
  EXPECT_EQ(wheel->NextDeadline(), At(absl::Hours(1)));
  EXPECT_EQ(wheel->Advance(At(absl::Hours(1)), rearm), 1u);
  EXPECT_EQ(fired, 2);
}

TEST(TimingWheel, AFiringCanCancelATimerThatIsDueWithIt) {
  auto wheel = ExactWheel();
  TimerId other;
  ASSERT_TRUE(wheel->Insert(At(absl::Seconds(1)), 1).ok());
  other = wheel->Insert(At(absl::Seconds(1)), 2).value();
  Fired fired;
  wheel->Advance(At(absl::Seconds(3)), [&](Wheel::Due& due) {
    fired.push_back(due.payload);
    EXPECT_TRUE(wheel->Cancel(other));
  });
  EXPECT_EQ(fired, Fired{1});
  EXPECT_EQ(wheel->pending(), 0u);
}

TEST(TimingWheel, AFixedRateTimerKeepsItsRate) {
  auto wheel = ExactWheel();
  ASSERT_TRUE(wheel->InsertPeriodic(At(absl::Seconds(1)), absl::Seconds(2), Cadence::kFixedRate, 1).ok());
  std::vector<int64_t> deadlines;
  for (int second = 1; second <= 7; ++second) {
    wheel->Advance(At(absl::Seconds(second)), [&](Wheel::Due& due) {
      EXPECT_TRUE(due.periodic);
      EXPECT_EQ(due.periods, 1u);
      deadlines.push_back(due.deadline.nanoseconds() / 1'000'000'000);
    });
  }
  EXPECT_EQ(deadlines, (std::vector<int64_t>{1, 3, 5, 7}));
}

TEST(TimingWheel, MissedPeriodsBecomeOneFiringThatSaysHowMany) {
  auto wheel = ExactWheel();
  ASSERT_TRUE(wheel->InsertPeriodic(At(absl::Seconds(1)), absl::Seconds(1), Cadence::kFixedRate, 1).ok());
  std::vector<uint64_t> periods;
  auto sink = [&](Wheel::Due& due) { periods.push_back(due.periods); };
  wheel->Advance(At(absl::Milliseconds(10'500)), sink);
  EXPECT_EQ(periods, (std::vector<uint64_t>{10}));
  EXPECT_EQ(wheel->NextDeadline(), At(absl::Seconds(11)));
  wheel->Advance(At(absl::Seconds(11)), sink);
  EXPECT_EQ(periods, (std::vector<uint64_t>{10, 1}));
  wheel->Advance(At(absl::Hours(1)), sink);
  EXPECT_EQ(periods, (std::vector<uint64_t>{10, 1, 3589}));
}

TEST(TimingWheel, AFixedDelayTimerCountsFromTheEndOfItsFiring) {
  auto wheel = ExactWheel();
  ASSERT_TRUE(wheel->InsertPeriodic(At(absl::Seconds(1)), absl::Seconds(2), Cadence::kFixedDelay, 1).ok());
  ASSERT_TRUE(wheel->Expire(At(absl::Seconds(5))));
  auto due = wheel->TakeExpired();
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(due->periods, 1u);
  EXPECT_FALSE(wheel->TakeExpired().has_value());
  EXPECT_TRUE(wheel->Rearm(*due, At(absl::Seconds(6))));
  EXPECT_FALSE(wheel->Rearm(*due, At(absl::Seconds(6))));
  EXPECT_EQ(wheel->NextDeadline(), At(absl::Seconds(8)));
}

TEST(TimingWheel, APeriodicTimerCanBeCancelledFromItsOwnFiring) {
  auto wheel = ExactWheel();
  TimerId id = wheel->InsertPeriodic(At(absl::Seconds(1)), absl::Seconds(1), Cadence::kFixedRate, 1).value();
  int fired = 0;
  for (int second = 1; second < 5; ++second) {
    wheel->Advance(At(absl::Seconds(second)), [&](Wheel::Due& due) {
      EXPECT_EQ(due.id, id);
      if (++fired == 2) {
        EXPECT_TRUE(wheel->Cancel(id));
        EXPECT_FALSE(wheel->Cancel(id));
      }
    });
  }
  EXPECT_EQ(fired, 2);
  EXPECT_EQ(wheel->pending(), 0u);
  // The entry is free again.
  TimerId next = wheel->Insert(At(absl::Seconds(9)), 2).value();
  EXPECT_FALSE(wheel->Cancel(id));
  EXPECT_TRUE(wheel->Cancel(next));
}

TEST(TimingWheel, APeriodicTimerWithAnInfinitePeriodFiresOnceAndStaysPending) {
  auto wheel = ExactWheel();
  TimerId id = wheel->InsertPeriodic(At(absl::Seconds(1)), absl::InfiniteDuration(), Cadence::kFixedRate, 1).value();
  EXPECT_EQ(Advance(*wheel, At(absl::Seconds(1))), Fired{1});
  EXPECT_EQ(Advance(*wheel, At(absl::Hours(1))), Fired{});
  EXPECT_TRUE(wheel->Cancel(id));
}

TEST(TimingWheel, RefusesAPeriodThatIsNotPositive) {
  auto wheel = ExactWheel();
  auto zero = wheel->InsertPeriodic(At(absl::Seconds(1)), absl::ZeroDuration(), Cadence::kFixedRate, 1);
  EXPECT_EQ(zero.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(zero.status().message(), "timer: period is 0; it must be positive");
  EXPECT_EQ(wheel->pending(), 0u);
}

TEST(TimingWheel, RefusesOneTimerMoreThanItsLimit) {
  auto wheel = Wheel::Make({.max_timers = 2}).value();
  TimerId id = wheel->Insert(At(absl::Seconds(1)), 1).value();
  ASSERT_TRUE(wheel->Insert(At(absl::InfiniteDuration()), 2).ok());
  absl::Status refused = wheel->Insert(At(absl::Seconds(1)), 3).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.message(),
      "timing wheel: 2 timers are pending and the limit is 2; cancel timers that are not needed or raise max_timers");
  EXPECT_EQ(wheel->InsertPeriodic(At(absl::Seconds(1)), absl::Seconds(1), Cadence::kFixedRate, 3).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(wheel->Cancel(id));
  EXPECT_TRUE(wheel->Insert(At(absl::Seconds(1)), 3).ok());
}

TEST(TimingWheel, RefusesBadOptions) {
  EXPECT_EQ(Wheel::Make({.resolution = absl::ZeroDuration()}).status().message(),
            "timing wheel: resolution is 0; use 1ns to 1h");
  EXPECT_FALSE(Wheel::Make({.resolution = absl::Hours(2)}).ok());
  EXPECT_EQ(Wheel::Make({.max_timers = -1}).status().message(), "timing wheel: max_timers is -1; use 1 to 268435455");
  EXPECT_FALSE(Wheel::Make({.max_timers = int64_t{1} << 28}).ok());
}

TEST(TimingWheel, NextDeadlineIsExactUntilTheEarliestIsCancelledAndThenALowerBound) {
  auto wheel = ExactWheel();
  EXPECT_EQ(wheel->NextDeadline(), Instant::InfiniteFuture());
  ASSERT_TRUE(wheel->Insert(At(absl::Seconds(3000)), 1).ok());
  EXPECT_EQ(wheel->NextDeadline(), At(absl::Seconds(3000)));
  TimerId first = wheel->Insert(At(absl::Seconds(2900)), 2).value();
  EXPECT_EQ(wheel->NextDeadline(), At(absl::Seconds(2900)));
  ASSERT_TRUE(wheel->Cancel(first));
  EXPECT_LE(wheel->NextDeadline(), At(absl::Seconds(3000)));
  int steps = 0;
  while (wheel->pending() > 0 && ++steps < 20) Advance(*wheel, wheel->NextDeadline());
  EXPECT_LE(steps, 2);
  EXPECT_EQ(wheel->now(), At(absl::Seconds(3000)));
}

TEST(TimingWheel, AnHourOfVirtualTimeTakesAsManyStepsAsThereAreFirings) {
  auto wheel = ExactWheel();
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(wheel->Insert(Instant::FromNanoseconds(static_cast<int64_t>(random() % 3'600'000'000'000)), i).ok());
  }
  int steps = 0;
  size_t fired = 0;
  while (wheel->pending() > 0) {
    ++steps;
    fired += Advance(*wheel, wheel->NextDeadline()).size();
  }
  EXPECT_EQ(fired, 100u);
  EXPECT_LE(steps, 100);
}

// A payload whose destructor calls the wheel.
struct Meddler {
  explicit Meddler(std::function<void()> on_destruction) : meddle(std::move(on_destruction)) {}
  Meddler(Meddler&& other) noexcept : meddle(std::exchange(other.meddle, nullptr)) {}
  ~Meddler() {
    if (meddle) meddle();
  }
  std::function<void()> meddle;
};

TEST(TimingWheel, APayloadMayUseTheWheelWhenItIsDestroyed) {
  auto wheel = TimingWheel<Meddler>::Make({}).value();
  int destroyed = 0;
  TimerId second = wheel->Insert(At(absl::Seconds(1)), Meddler([&] { ++destroyed; })).value();
  TimerId first = wheel
                      ->Insert(At(absl::Seconds(1)), Meddler([&] {
                                 ++destroyed;
                                 EXPECT_TRUE(wheel->Cancel(second));
                               }))
                      .value();
  EXPECT_TRUE(wheel->Cancel(first));
  EXPECT_EQ(destroyed, 2);
  EXPECT_EQ(wheel->pending(), 0u);
}

TEST(TimingWheel, DropsWhatIsPendingWithoutFiringIt) {
  auto alive = std::make_shared<int>();
  {
    auto wheel = TimingWheel<std::shared_ptr<int>>::Make({}).value();
    ASSERT_TRUE(wheel->Insert(At(absl::Seconds(1)), alive).ok());
    ASSERT_TRUE(wheel->Insert(At(absl::InfiniteDuration()), alive).ok());
    ASSERT_TRUE(wheel->Insert(At(absl::ZeroDuration()), alive).ok());
    wheel->Expire(At(absl::ZeroDuration()));
    TimerId id = wheel->Insert(At(absl::Seconds(2)), alive).value();
    bool cancelled = false;
    auto removed = wheel->Remove(id, cancelled);
    EXPECT_TRUE(cancelled);
    ASSERT_TRUE(removed.has_value());
    EXPECT_FALSE(wheel->Remove(id, cancelled).has_value());
    EXPECT_FALSE(cancelled);
    EXPECT_EQ(alive.use_count(), 5);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

// The contract of a wheel, modelled with a sorted map: the key is (tick, order of arming).
class Model {
 public:
  struct Timer {
    int label;
    Instant deadline;
    absl::Duration period = absl::ZeroDuration();  // zero: fires once
    Cadence cadence;
  };
  struct Firing {
    int label;
    uint64_t periods;
    friend bool operator==(const Firing&, const Firing&) = default;
  };

  explicit Model(int64_t resolution_ns) : resolution_ns_(resolution_ns) {}

  void Insert(const Timer& timer) {
    if (timer.deadline == Instant::InfiniteFuture()) {
      never_.push_back(timer.label);
      return;
    }
    int64_t tick = (std::max<int64_t>(timer.deadline.nanoseconds(), 0) + resolution_ns_ - 1) / resolution_ns_;
    timers_.emplace(std::max(tick, now_.nanoseconds() / resolution_ns_), timer);
  }
  bool Cancel(int label) {
    for (auto it = timers_.begin(); it != timers_.end(); ++it) {
      if (it->second.label == label) {
        timers_.erase(it);
        return true;
      }
    }
    return std::erase(never_, label) > 0;
  }
  std::vector<Firing> Advance(Instant now) {
    now_ = std::max(now_, now);
    std::vector<Timer> due;
    while (!timers_.empty() && timers_.begin()->first <= now_.nanoseconds() / resolution_ns_) {
      due.push_back(timers_.begin()->second);
      timers_.erase(timers_.begin());
    }
    std::vector<Firing> fired;
    for (Timer& timer : due) {
      uint64_t periods = 1;
      if (timer.period > absl::ZeroDuration()) {
        if (timer.cadence == Cadence::kFixedDelay) {
          timer.deadline = now_ + timer.period;
        } else {
          while (timer.deadline + static_cast<int64_t>(periods) * timer.period <= now_) ++periods;
          timer.deadline += static_cast<int64_t>(periods) * timer.period;
        }
        Insert(timer);
      }
      fired.push_back({timer.label, periods});
    }
    return fired;
  }
  Instant NextDeadline() const {
    return timers_.empty() ? Instant::InfiniteFuture()
                           : Instant::FromNanoseconds(timers_.begin()->first * resolution_ns_);
  }
  size_t pending() const { return timers_.size() + never_.size(); }

 private:
  int64_t resolution_ns_;
  Instant now_;
  std::multimap<int64_t, Timer> timers_;
  std::vector<int> never_;
};

void PrintTo(const Model::Firing& firing, std::ostream* out) { *out << firing.label << "x" << firing.periods; }

void CompareWithModel(uint64_t seed, absl::Duration resolution) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", resolution " << absl::FormatDuration(resolution));
  std::mt19937_64 random(seed);
  auto wheel = Wheel::Make({.resolution = resolution}).value();
  Model model(absl::ToInt64Nanoseconds(resolution));
  std::vector<std::pair<int, TimerId>> armed;
  Instant now;
  // Distances of every magnitude: the number of bits is uniform.
  auto distance = [&] { return absl::Nanoseconds(static_cast<int64_t>(random() >> (18 + random() % 46))); };
  for (int label = 0; label < 2000; ++label) {
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        Instant deadline = now + distance();
        if (random() % 16 == 0) deadline = now + -distance();
        if (random() % 64 == 0) deadline = Instant::InfiniteFuture();
        if (random() % 4 == 0 && model.NextDeadline() != Instant::InfiniteFuture()) deadline = model.NextDeadline();
        armed.emplace_back(label, wheel->Insert(deadline, label).value());
        model.Insert({label, deadline, absl::ZeroDuration(), Cadence::kFixedRate});
        break;
      }
      case 3: {
        const Instant first = now + distance();
        // Long enough that the model does not count missed periods forever.
        const absl::Duration period = distance() / 16 + absl::Seconds(100'000);
        const Cadence cadence = random() % 2 == 0 ? Cadence::kFixedRate : Cadence::kFixedDelay;
        armed.emplace_back(label, wheel->InsertPeriodic(first, period, cadence, label).value());
        // The model's clock is the wheel's. The period has whole nanoseconds in both.
        model.Insert({label, first, Instant() + period - Instant(), cadence});
        break;
      }
      case 4:
      case 5: {
        if (armed.empty()) break;
        const size_t index = random() % armed.size();
        ASSERT_EQ(wheel->Cancel(armed[index].second), model.Cancel(armed[index].first));
        break;
      }
      default: {
        // Just before the next deadline, exactly at it, or anywhere.
        Instant next = model.NextDeadline();
        if (next == Instant::InfiniteFuture()) next = now;
        const uint64_t how = random() % 4;
        if (how == 0) now = std::max(now, next + absl::Nanoseconds(-1));
        if (how == 1) now = std::max(now, next);
        if (how == 2) now += distance();
        std::vector<Model::Firing> fired;
        wheel->Advance(now, [&](Wheel::Due& due) {
          ASSERT_LE(due.deadline, now);
          fired.push_back({due.payload, due.periods});
        });
        ASSERT_EQ(fired, model.Advance(now)) << "at " << now.nanoseconds();
      }
    }
    ASSERT_EQ(wheel->pending(), model.pending());
    ASSERT_LE(wheel->NextDeadline(), model.NextDeadline());
    ASSERT_GE(wheel->NextDeadline(), std::min(model.NextDeadline(), wheel->now()));
  }
}

TEST(TimingWheel, DoesWhatASortedMapDoes) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (absl::Duration resolution : {absl::Nanoseconds(1), absl::Nanoseconds(7), absl::Milliseconds(1)}) {
      CompareWithModel(seed, resolution);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace fraktor
