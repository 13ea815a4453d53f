// Five loads, each with two workers. Each takes far less than thirty seconds. Under a sanitizer
// each load has a tenth of the messages: the checks do not depend on their number.
#include <atomic>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/actor/tree/internal/tree_fixture.h"

namespace fraktor::actor_internal {
namespace {

constexpr int64_t kScale = kIsSanitized ? 10 : 1;

// The messages that one actor has handled, over all of its instances. Written in the actor's turns
// only.
struct Tally {
  int64_t next = 0;
  int64_t received = 0;
  int64_t out_of_order = 0;
  int64_t failures = 0;
  int64_t instances = 0;
  // Notified when all expected messages have come. Null: no thread waits.
  int64_t wanted = 0;
  std::counting_semaphore<>* done = nullptr;
};

// A numbered message. The handler of every `fails_every`-th one fails after it was counted.
struct Numbered {
  int64_t number;
};

class Counter final : public ActorInstance {
 public:
  Counter(Tally* tally, int64_t fails_every) : tally_(*tally), fails_every_(fails_every) { ++tally_.instances; }

  absl::Status Receive(ActorContext&, Envelope& message) override {
    const int64_t number = message.As<Numbered>().number;
    if (number != tally_.next) ++tally_.out_of_order;
    tally_.next = number + 1;
    if (++tally_.received == tally_.wanted) tally_.done->release();
    if (fails_every_ == 0 || tally_.received % fails_every_ != 0) return absl::OkStatus();
    ++tally_.failures;
    return absl::InternalError("as it was told to");
  }

 private:
  Tally& tally_;
  const int64_t fails_every_;
};

// Sends numbered messages, a hundred in each turn.
class Source final : public ActorInstance {
 public:
  Source(ActorRef to, int64_t messages) : to_(to), messages_(messages) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    for (int i = 0; i < 100 && sent_ < messages_; ++i) context.Tell(to_, Numbered{sent_++});
    if (sent_ < messages_) context.Tell(context.self(), message.As<int>());
    return absl::OkStatus();
  }

 private:
  const ActorRef to_;
  const int64_t messages_;
  int64_t sent_ = 0;
};

TestSystemOptions TwoWorkers() {
  TestSystemOptions options;
  options.scheduler.dispatchers.default_pool.workers = 2;
  return options;
}

void ExpectAll(const Tally& tally, int64_t messages) {
  EXPECT_EQ(tally.received, messages);
  EXPECT_EQ(tally.next, messages);
  EXPECT_EQ(tally.out_of_order, 0);
}

// SCH-12
TEST(SchedulerScenarios, OneActorGetsAllThatAForeignThreadSends) {
  constexpr int64_t kMessages = 1'000'000 / kScale;
  Tally tally;
  TestSystem system(Threads(), TwoWorkers());
  const ActorRef actor = system.Spawn(*MakeProps<Counter>({}, &tally, int64_t{0}));
  for (int64_t i = 0; i < kMessages; ++i) Tell(actor, Numbered{i});
  system.Settle();
  ExpectAll(tally, kMessages);
  EXPECT_EQ(system.dead_letters(), 0u);
}

// SCH-12
TEST(SchedulerScenarios, AHundredActorsGetTenThousandMessagesEach) {
  constexpr int64_t kActors = 100;
  constexpr int64_t kMessages = 10'000 / kScale;
  std::vector<Tally> tallies(kActors);
  TestSystem system(Threads(), TwoWorkers());
  std::vector<ActorRef> sources;
  for (Tally& tally : tallies) {
    const ActorRef actor = system.Spawn(*MakeProps<Counter>({}, &tally, int64_t{0}));
    sources.push_back(system.Spawn(*MakeProps<Source>({}, actor, int64_t{kMessages})));
  }
  for (const ActorRef source : sources) Tell(source, 1);
  system.Settle();
  for (const Tally& tally : tallies) ExpectAll(tally, kMessages);
  EXPECT_EQ(system.dead_letters(), 0u);
}

std::atomic<int64_t> spiked{0};

class Spike final : public ActorInstance {
 public:
  absl::Status PreStart(ActorContext&) override {
    started_ = true;
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope&) override {
    if (!started_) return absl::FailedPreconditionError("a message came before the start");
    spiked.fetch_add(1);
    context.Stop();
    return absl::OkStatus();
  }

 private:
  bool started_ = false;
};

// SCH-12
TEST(SchedulerScenarios, AThousandActorsComeAtOnceAndGo) {
  constexpr int64_t kActors = 1000;
  constexpr int64_t kSpikes = 50 / kScale;
  spiked.store(0);
  TestLog log;
  std::atomic<int> failures{0};
  TestSystemOptions options = TwoWorkers();
  options.supervisor = [&](ActorRef, const absl::Status&) {
    failures.fetch_add(1);
    return SupervisionDirective::kStop;
  };
  TestSystem system(Threads(), options);
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  for (int64_t spike = 1; spike <= kSpikes; ++spike) {
    Tell(root, Do{[](ActorContext& context) {
           std::vector<ActorRef> children;
           for (int64_t i = 0; i < kActors; ++i) {
             const absl::StatusOr<ActorRef> child = ActorTree::Of(context).Spawn(context, PropsOf<Spike>());
             if (!child.ok()) return child.status();
             children.push_back(*child);
           }
           for (const ActorRef child : children) context.Tell(child, 1);
           return absl::OkStatus();
         }});
    system.Settle();
    ASSERT_EQ(spiked.load(), spike * kActors);
    ASSERT_EQ(CountChildren(*root.slot()), 0u);
  }
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(system.dead_letters(), 0u);
}

// Suspends the actor now and then until a signal comes: from a timer, or from the test.
class Brake final : public InvokerMiddleware {
 public:
  static constexpr SignalKey kGoOn{7};

  MiddlewareFlow BeforeReceive(const Interception& at) override {
    if (!at.message.Is<Numbered>()) return MiddlewareFlow::Continue();
    const int64_t asked = asked_.fetch_add(1) + 1;
    if (asked % 97 == 0) {
      suspended.fetch_add(1);
      Signal(at.actor, kGoOn);
      return MiddlewareFlow::Break(SuspendReason::kUserDefined, ResumeCondition::ExternalSignal(kGoOn));
    }
    if (asked % 1009 == 0) {
      suspended.fetch_add(1);
      return MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(absl::Microseconds(1)));
    }
    return MiddlewareFlow::Continue();
  }

  void AfterReceive(const Interception&, const absl::Status&) override {}

  // Sums. They pair with nothing.
  std::atomic<int64_t> suspended{0};

 private:
  std::atomic<int64_t> asked_{0};
};

// SCH-12
TEST(SchedulerScenarios, ActorsThatAreSuspendedAndResumedLoseNothing) {
  constexpr int64_t kActors = 20;
  constexpr int64_t kMessages = 5'000 / kScale;
  const auto brake = std::make_shared<Brake>();
  std::counting_semaphore<> done{0};
  std::vector<Tally> tallies(kActors, Tally{.wanted = kMessages, .done = &done});
  TestSystemOptions options = TwoWorkers();
  options.scheduler.dispatchers.default_pool.middleware = {brake};
  TestSystem system(Threads(), options);
  std::vector<ActorRef> sources;
  for (Tally& tally : tallies) {
    const ActorRef actor = system.Spawn(*MakeProps<Counter>({}, &tally, int64_t{0}));
    sources.push_back(system.Spawn(*MakeProps<Source>({}, actor, int64_t{kMessages})));
  }
  for (const ActorRef source : sources) Tell(source, 1);
  // AwaitQuiet does not wait for pending timers.
  for (int64_t i = 0; i < kActors; ++i) done.acquire();
  system.Settle();
  for (const Tally& tally : tallies) ExpectAll(tally, kMessages);
  EXPECT_GT(brake->suspended.load(), 0);
  EXPECT_EQ(system.dead_letters(), 0u);
}

// SCH-12
TEST(SchedulerScenarios, ActorsThatCrashAndAreRestartedLoseNothing) {
  constexpr int64_t kActors = 20;
  constexpr int64_t kMessages = 10'000 / kScale;
  constexpr int64_t kFailsEvery = 50;
  std::vector<Tally> tallies(kActors);
  TestLog log;
  TestSystem system(Threads(), TwoWorkers());
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  std::vector<ActorRef> actors;
  for (Tally& tally : tallies) {
    actors.push_back(SpawnUnder(system, root, *MakeProps<Counter>({}, &tally, int64_t{kFailsEvery})).value());
  }
  for (const ActorRef actor : actors) Tell(system.Spawn(*MakeProps<Source>({}, actor, int64_t{kMessages})), 1);
  system.Settle();
  for (const Tally& tally : tallies) {
    ExpectAll(tally, kMessages);
    EXPECT_EQ(tally.failures, kMessages / kFailsEvery);
    EXPECT_EQ(tally.instances, 1 + kMessages / kFailsEvery);
  }
  EXPECT_EQ(system.dead_letters(), 0u);
}

}  // namespace
}  // namespace fraktor::actor_internal
