// The metrics of a system: of its actors, of messages from outside, and of a single actor.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/system_fixture.h"

namespace fraktor {

using actor_internal::IsObservedActor;
using system_internal::Fail;
using system_internal::SystemTest;

namespace {

// A message that can be moved and not copied.
struct Parcel {
  std::unique_ptr<std::string> contents;
};

class Observation : public SystemTest {
 protected:
  ObservabilityOptions& observability() { return options_.scheduler.observability; }

  MetricsSnapshot Snapshot() { return system().hub().Snapshot(system().toolbox().Now()); }

  // The metrics of all puppets, or of one.
  MetricLabels Labels(const std::string& name = "") {
    MetricLabels labels;
    if (!name.empty()) labels.push_back({"actor", "pekko://test/user/" + name});
    labels.push_back({"type", std::string(PropsFor("any")->type_name())});
    return labels;
  }
  double Enqueued(const std::string& name = "") {
    const MetricsSnapshot snapshot = Snapshot();
    const Metric* const metric = snapshot.Find(kMailboxEnqueued, Labels(name));
    return metric == nullptr ? -1 : metric->value;
  }
  double Depth(const std::string& name = "") {
    const MetricsSnapshot snapshot = Snapshot();
    const Metric* const metric = snapshot.Find(kMailboxDepth, Labels(name));
    return metric == nullptr ? -1 : metric->value;
  }
  uint64_t Timed(const std::string& name = "") {
    const MetricsSnapshot snapshot = Snapshot();
    const Metric* const metric = snapshot.Find(kInvokeDuration, Labels(name));
    return metric == nullptr ? 0 : metric->summary.count;
  }
  uint64_t Waited() {
    const MetricsSnapshot snapshot = Snapshot();
    return snapshot.Find(kLatency)->summary.count;
  }
  void SayTo(ActorRef actor, int times) {
    for (int i = 0; i < times; ++i) Say(actor, "hello");
    Settle();
  }
};

// SCH-11
TEST_F(Observation, SamplesEveryMessageFromOutsideOnRequest) {
  observability().sample_every = 1;
  std::vector<int64_t> times;
  std::string contents;
  const ActorRef a = Spawn("a", {.other = [&](ActorContext&, Envelope& message) {
                             EXPECT_NE(message.trace(), nullptr);
                             if (message.trace() != nullptr) times.push_back(message.trace()->enqueued_ns);
                             contents = *message.As<Parcel>().contents;
                             return absl::OkStatus();
                           }});
  RunFor(absl::Seconds(7));
  const int64_t sent_ns = system().toolbox().Now().nanoseconds();
  const uint64_t waited = Waited();
  const uint64_t timed = Timed();
  Tell(a, Parcel{std::make_unique<std::string>("tea")});
  Settle();
  EXPECT_EQ(contents, "tea");
  EXPECT_EQ(times, std::vector<int64_t>({sent_ns}));
  SayTo(a, 9);
  EXPECT_EQ(Waited(), waited + 10);
  EXPECT_EQ(Timed(), timed + 10);
}

// SCH-11
TEST_F(Observation, SamplesOneIn256OfTheMessagesFromOutside) {
  const ActorRef a = Spawn("a");
  const uint64_t timed = Timed();
  SayTo(a, 1024);
  EXPECT_EQ(Timed(), timed + 4);
  ASSERT_TRUE(system().hub().SetSampleEvery(0).ok());
  SayTo(a, 1024);
  EXPECT_EQ(Timed(), timed + 4);
  ASSERT_TRUE(system().hub().SetSampleEvery(2).ok());
  SayTo(a, 10);
  EXPECT_EQ(Timed(), timed + 9);
}

// SCH-11
TEST_F(Observation, SamplesMessagesFromOutsideToMailboxesWithALimit) {
  observability().sample_every = 1;
  for (const OverflowStrategy overflow : {OverflowStrategy::kReject, OverflowStrategy::kDropOldest}) {
    const ActorRef a = Spawn(overflow == OverflowStrategy::kReject ? "a" : "b", {},
                             {.mailbox = {.capacity = 8, .overflow = overflow}});
    const uint64_t timed = Timed();
    SayTo(a, 5);
    EXPECT_EQ(Timed(), timed + 5);
    EXPECT_EQ(Depth(), 0);
  }
}

// SCH-11
TEST_F(Observation, TimesNothingIfMetricsAreOff) {
  observability().enabled = false;
  bool has_trace = true;
  const ActorRef a = Spawn("a", {.other = [&](ActorContext&, Envelope& message) {
                             has_trace = message.has_trace();
                             return absl::OkStatus();
                           }});
  Tell(a, 7);
  Settle();
  EXPECT_FALSE(has_trace);
  const absl::Status refused = system().Observe(a);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("ObservabilityOptions.enabled"), std::string::npos) << refused;
}

// SCH-11
TEST_F(Observation, CountsForAnActorAloneAndForItsType) {
  observability().sample_every = 1;
  const ActorRef a = Spawn("a");
  const ActorRef b = Spawn("b");
  SayTo(a, 5);
  EXPECT_EQ(Enqueued("a"), -1) << "nobody has asked for it";
  const double before = Enqueued();
  ASSERT_TRUE(system().Observe(a).ok());
  Settle();
  SayTo(a, 3);
  SayTo(b, 2);
  // Also on a worker.
  Let(b, [&](ActorContext& context) {
    context.Tell(a, std::string("from b"));
    return absl::OkStatus();
  });
  EXPECT_EQ(Enqueued("a"), 4);
  EXPECT_EQ(Depth("a"), 0);
  EXPECT_EQ(Timed("a"), 4u);
  EXPECT_EQ(Enqueued("b"), -1);
  EXPECT_EQ(Enqueued(), before + 7);
  EXPECT_EQ(Depth(), 0);

  system().StopObserving(a);
  Settle();
  EXPECT_EQ(Enqueued("a"), -1);
  SayTo(a, 1);
  EXPECT_EQ(Enqueued(), before + 8) << "what was counted for it is its type's";
  ASSERT_TRUE(system().Observe(a).ok()) << "and again";
  Settle();
  SayTo(a, 1);
  EXPECT_EQ(Enqueued("a"), 1);
  EXPECT_EQ(Enqueued(), before + 9);
}

// SCH-11
TEST_F(Observation, EndsWithTheActor) {
  observability().max_actors = 1;
  const ActorRef a = Spawn("a");
  ASSERT_TRUE(system().Observe(a).ok());
  Settle();
  SayTo(a, 3);
  const double before = Enqueued();
  const ActorRef b = Spawn("b");
  const absl::Status too_many = system().Observe(b);
  EXPECT_EQ(too_many.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(too_many.message().find("ObservabilityOptions.max_actors"), std::string::npos) << too_many;
  Stop(a);
  EXPECT_EQ(Enqueued("a"), -1);
  EXPECT_EQ(Enqueued(), before);
  EXPECT_EQ(Depth(), 0);

  // An actor that ends before the message arrives.
  system().Stop(b);
  EXPECT_TRUE(system().Observe(b).ok());
  Settle();
  EXPECT_EQ(Enqueued("b"), -1);
  // Also in its last turn.
  ActorRef self;
  const ActorRef c = Spawn("c", {.post_stop = [&](ActorContext& context) {
                             self = context.self();
                             EXPECT_TRUE(system().Observe(context.self()).ok());
                           }});
  Stop(c);
  EXPECT_EQ(self, c);
  const ActorRef again = Spawn("a");
  EXPECT_TRUE(system().Observe(again).ok()) << "the place is free";
  Settle();
  SayTo(again, 1);
  EXPECT_EQ(Enqueued("a"), 1);
}

// SCH-11
TEST_F(Observation, OutlivesARestart) {
  const ActorRef a = Spawn("a");
  ASSERT_TRUE(system().Observe(a).ok());
  Settle();
  SayTo(a, 1);
  Fail(a);
  SayTo(a, 1);
  EXPECT_EQ(Enqueued("a"), 3);
}

// SCH-11
TEST_F(Observation, IsRefusedToWhatIsNoActorOfTheSystem) {
  const ActorRef a = Spawn("a");
  ASSERT_TRUE(system().Observe(a).ok());
  EXPECT_EQ(system().Observe(a).code(), absl::StatusCode::kAlreadyExists);
  Settle();
  EXPECT_EQ(system().Observe(a).code(), absl::StatusCode::kAlreadyExists);
  const absl::Status of_nobody = system().Observe(ActorRef());
  EXPECT_EQ(of_nobody.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(of_nobody.message().find("no one"), std::string::npos) << of_nobody;
  system().StopObserving(ActorRef());
  Stop(a);
  EXPECT_EQ(system().Observe(a).code(), absl::StatusCode::kNotFound);
  system().StopObserving(a);
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options = options_;
  options.toolbox = toolbox.get();
  const std::unique_ptr<ActorSystem> other = ActorSystem::Create(options).value();
  EXPECT_EQ(other->Observe(system().user_guardian()).code(), absl::StatusCode::kInvalidArgument);
}

// Log lines name the type of an observed actor too.
TEST_F(Observation, LeavesTheNameOfTheType) {
  const ActorRef a = Spawn("a");
  const std::string type = system().tree().types().NameOf(a.slot()->type.load(std::memory_order_relaxed));
  EXPECT_EQ(type, PropsFor("any")->type_name());
  ASSERT_TRUE(system().Observe(a).ok());
  Settle();
  EXPECT_TRUE(IsObservedActor(a.slot()->type.load(std::memory_order_relaxed)));
  EXPECT_EQ(system().tree().types().NameOf(a.slot()->type.load(std::memory_order_relaxed)), type);
}

TEST_F(Observation, CountsMessagesThatAnActorDoesNotHandle) {
  const ActorRef a = Spawn("a");
  for (int i = 0; i < 3; ++i) Tell(a, 3.5);
  Settle();
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kUnhandled), 3u);
  const MetricsSnapshot snapshot = Snapshot();
  const Metric* const metric = snapshot.Find(kDeadLettersTotal, {{"reason", "unhandled"}});
  ASSERT_NE(metric, nullptr);
  EXPECT_EQ(metric->value, 3);
}

}  // namespace
}  // namespace fraktor
