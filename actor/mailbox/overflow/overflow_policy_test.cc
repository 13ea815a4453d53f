// Overflow policies that a user writes, through real systems and their public API.
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/overflow/overflow_answer.h"
#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor {
namespace {

double Overflows(ActorSystem& system, OverflowAnswer answer) {
  const MetricsSnapshot snapshot = system.hub().Snapshot(system.toolbox().Now());
  return snapshot.Find(kMailboxOverflow, {{"answer", std::string(NameOf(answer))}})->value;
}

struct Reading {
  int sensor = 0;
  int value = 0;
};
struct Pause {};
struct Readings {
  std::vector<Reading> all;
};
struct Report {
  using Reply = Readings;
};

// Keeps the newest reading of each sensor.
class NewestOfEachSensor : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "NewestOfEachSensor"; }
  OverflowNeeds needs() const noexcept override { return OverflowNeeds::kQueue; }
  OverflowDecision Decide(const OverflowCase& full) const override {
    return full.message.Is<Reading>() ? OverflowDecision::DropOldest()
                                      : OverflowDecision::Reject("only readings are kept");
  }
  bool MayReplace(const Envelope& arriving, const Envelope& queued) const override {
    return queued.Is<Reading>() && queued.As<Reading>().sensor == arriving.As<Reading>().sensor;
  }
};

// Takes readings; a Pause holds it until `go`.
class Station : public Actor<Station, Reading, Pause, Report> {
 public:
  Station(std::binary_semaphore* pausing, std::binary_semaphore* go) : pausing_(pausing), go_(go) {}
  void On(Context&, const Reading& reading) { readings_.all.push_back(reading); }
  void On(Context&, const Pause&) {
    pausing_->release();
    go_->acquire();
  }
  Readings On(Context&, const Report&) { return readings_; }

 private:
  std::binary_semaphore* const pausing_;
  std::binary_semaphore* const go_;
  Readings readings_;
};

// SCH-4: threads overrun an actor, and the policy of the user decides which messages stay.
TEST(OverflowPolicy, KeepsTheNewestReadingOfEachSensorUnderThreads) {
  constexpr int kSensors = 4;
  constexpr int kReadings = 2'000;
  ActorSystem system("weather");
  std::binary_semaphore pausing{0};
  std::binary_semaphore go{0};
  const auto station = system.Spawn<Station>(
      "station", {.mailbox = {.capacity = kSensors, .overflow_policy = std::make_shared<NewestOfEachSensor>()}},
      &pausing, &go);
  station.Tell(Pause{});
  pausing.acquire();
  for (int sensor = 0; sensor < kSensors; ++sensor) ASSERT_TRUE(station.TryTell(Reading{sensor, 0}).ok());

  const absl::Status other = station.TryTell(Pause{});
  EXPECT_EQ(other.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(other.message().find("the mailbox of pekko://weather/user/station is full (4 messages): "), 0u) << other;
  EXPECT_NE(other.message().find("Pause was not accepted: only readings are kept"), std::string::npos) << other;

  std::vector<std::thread> threads;
  for (int sensor = 0; sensor < kSensors; ++sensor) {
    threads.emplace_back([&station, sensor] {
      for (int i = 1; i <= kReadings; ++i) EXPECT_TRUE(station.TryTell(Reading{sensor, i}).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Overflows(system, OverflowAnswer::kDropOldest), kSensors * kReadings);
  EXPECT_EQ(Overflows(system, OverflowAnswer::kReject), 1);
  EXPECT_EQ(system.dead_letters().count(DeadLetterReason::kMailboxFull), kSensors * kReadings + 1u);

  go.release();
  // There is no room for a Report until the readings are handled.
  absl::StatusOr<Readings> readings = absl::UnavailableError("not asked yet");
  while (!readings.ok()) readings = system.AskAndWait(station, Report{}, absl::Seconds(30));
  std::map<int, int> newest;
  for (const Reading& reading : readings->all) newest[reading.sensor] = reading.value;
  EXPECT_EQ(readings->all.size(), static_cast<size_t>(kSensors));
  for (int sensor = 0; sensor < kSensors; ++sensor) EXPECT_EQ(newest[sensor], kReadings) << sensor;
}

struct Parcel {
  int producer = 0;
  int number = 0;
  bool is_large = false;
};

// Rejects large parcels. The producers of small ones wait.
class RejectLarge : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "RejectLarge"; }
  OverflowNeeds needs() const noexcept override { return OverflowNeeds::kLine; }
  OverflowDecision Decide(const OverflowCase& full) const override {
    asked_.fetch_add(1, std::memory_order_relaxed);
    return full.message.As<Parcel>().is_large ? OverflowDecision::Reject("it is large") : OverflowDecision::Hold();
  }
  int asked() const { return asked_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<int> asked_{0};  // A sum that orders nothing.
};

constexpr int kProducers = 4;
constexpr int kParcels = 500;

class Depot : public Actor<Depot, Parcel> {
 public:
  Depot(std::atomic<int>* large, std::binary_semaphore* done) : large_(large), done_(done) {}
  void On(Context&, const Parcel& parcel) {
    if (parcel.is_large) {
      large_->fetch_add(1);
      return;
    }
    EXPECT_EQ(parcel.number, last_[parcel.producer] + 1) << "of producer " << parcel.producer;
    last_[parcel.producer] = parcel.number;
    if (++small_ == kProducers * kParcels) done_->release();
  }

 private:
  std::atomic<int>* const large_;
  std::binary_semaphore* const done_;
  std::map<int, int> last_;
  int small_ = 0;
};

struct Step {
  int number = 0;
};

// Sends a large and a small parcel per step.
class Sender : public Actor<Sender, Step> {
 public:
  Sender(int producer, RefOf<Depot> depot, std::atomic<int>* refused)
      : producer_(producer), depot_(depot), refused_(refused) {}
  void On(Context& context, const Step& step) {
    const absl::Status large = context.TryTell(depot_, Parcel{producer_, step.number, true});
    if (!large.ok()) refused_->fetch_add(1);
    EXPECT_TRUE(context.TryTell(depot_, Parcel{producer_, step.number, false}).ok());
    if (step.number < kParcels) context.Tell(context.self(), Step{step.number + 1});
  }

 private:
  const int producer_;
  const RefOf<Depot> depot_;
  std::atomic<int>* const refused_;
};

// SCH-4: a policy of the user suspends actors; nothing is lost, and nothing overtakes.
TEST(OverflowPolicy, HoldsActorsAndRejectsOthersUnderThreads) {
  std::atomic<int> large{0};
  std::atomic<int> refused{0};
  std::binary_semaphore done{0};
  const auto policy = std::make_shared<RejectLarge>();
  {
    ActorSystem system("post");
    const auto depot =
        system.Spawn<Depot>("depot", {.mailbox = {.capacity = 5, .overflow_policy = policy}}, &large, &done);
    for (int producer = 0; producer < kProducers; ++producer) {
      system.Spawn<Sender>({}, producer, depot, &refused).Tell(Step{1});
    }
    done.acquire();
    EXPECT_EQ(Overflows(system, OverflowAnswer::kReject), refused.load());
    // A message that is to be held goes in at once if the receiver has made room meanwhile.
    EXPECT_LE(Overflows(system, OverflowAnswer::kReject) + Overflows(system, OverflowAnswer::kHold), policy->asked());
  }
  EXPECT_EQ(large.load() + refused.load(), kProducers * kParcels);
}

class Throws : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "Throws"; }
  OverflowDecision Decide(const OverflowCase&) const override { throw std::runtime_error("no idea"); }
};

struct Number {
  int value = 0;
};
struct Sum {
  int value = 0;
};
struct AskSum {
  using Reply = Sum;
};
class Adder : public Actor<Adder, Number, AskSum> {
 public:
  void On(Context&, const Number& number) { sum_ += number.value; }
  Sum On(Context&, const AskSum&) { return {sum_}; }

 private:
  int sum_ = 0;
};

struct Forward {
  int value = 0;
};
// Tells an Adder, and keeps what TryTell returns.
class Teller : public Actor<Teller, Forward> {
 public:
  Teller(RefOf<Adder> adder, absl::Status* told) : adder_(adder), told_(told) {}
  void On(Context& context, const Forward& forward) { *told_ = context.TryTell(adder_, Number{forward.value}); }

 private:
  const RefOf<Adder> adder_;
  absl::Status* const told_;
};

// SCH-4: the sender learns of it, be it a thread or an actor, and the system goes on.
TEST(OverflowPolicy, RejectsIfItThrows) {
  TestKit kit;
  const auto adder = kit.SpawnNamed<Adder>(
      "adder", SpawnOptions{.mailbox = {.capacity = 2, .overflow_policy = std::make_shared<Throws>()}});
  absl::Status told;
  const auto teller = kit.Spawn<Teller>(adder, &told);
  teller.Tell(Forward{100});
  ASSERT_TRUE(adder.TryTell(Number{1}).ok());
  ASSERT_TRUE(adder.TryTell(Number{2}).ok());
  const absl::Status thrown = adder.TryTell(Number{4});
  EXPECT_EQ(thrown.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(
      thrown.message().find("Number was not accepted: the overflow policy Throws threw an exception (no idea); it "
                            "must not throw"),
      std::string::npos)
      << thrown;
  kit.Settle();
  EXPECT_EQ(told, thrown);
  EXPECT_EQ(kit.system().dead_letters().count(DeadLetterReason::kMailboxFull), 2u);
  EXPECT_EQ(kit.AskAndWait(adder, AskSum{})->value, 3);
}

// SCH-4: a foreign thread must not block a kit in virtual time, so Hold times out at once.
TEST(OverflowPolicy, IsCountedByAnswer) {
  TestKit kit;
  const auto spawn = [&](OverflowStrategy strategy) {
    return kit.Spawn<Adder>(SpawnOptions{.mailbox = {.capacity = 1, .overflow = strategy}});
  };
  const std::pair<OverflowStrategy, OverflowAnswer> answers[] = {
      {OverflowStrategy::kReject, OverflowAnswer::kReject},
      {OverflowStrategy::kDropNewest, OverflowAnswer::kDropNewest},
      {OverflowStrategy::kDropOldest, OverflowAnswer::kDropOldest},
      {OverflowStrategy::kDeadLetter, OverflowAnswer::kDeadLetter},
      {OverflowStrategy::kBlockProducer, OverflowAnswer::kHold},
  };
  for (const auto& [strategy, answer] : answers) {
    const auto adder = spawn(strategy);
    adder.Tell(Number{1});
    EXPECT_EQ(Overflows(kit.system(), answer), 0) << ToString(strategy);
    adder.Tell(Number{2});
    EXPECT_EQ(Overflows(kit.system(), answer), 1) << ToString(strategy);
  }
}

}  // namespace
}  // namespace fraktor
