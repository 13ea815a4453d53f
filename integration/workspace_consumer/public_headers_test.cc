// Uses headers of the API that programs include beside actor.h, each through its public target.
#include <atomic>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_subscriber.h"
#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/overflow/overflow_answer.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"
#include "fraktor/actor/observe/gauge_table.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/router/routee_load.h"
#include "fraktor/actor/router/routing_plan.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/typed/interleaving_task.h"
#include "fraktor/actor/typed/spawn_options.h"
#include "fraktor/actor/typed/typed_context.h"
#include "fraktor/actor/typed/typed_props.h"

namespace {

struct Twice {
  int value;
};
struct Double {
  using Reply = Twice;
  int value;
};

class Doubler : public fraktor::Actor<Doubler, Double> {
 public:
  fraktor::InterleavingTask<Twice> On(fraktor::TypedContext<Double>&, const Double& message) {
    co_return Twice{2 * message.value};
  }
};

// Counts the dead letters that it hears of.
class Observer : public fraktor::Actor<Observer, fraktor::DeadLetterNotice> {
 public:
  explicit Observer(std::atomic<int>* count) : count_(count) {}
  void On(Context&, const fraktor::DeadLetterNotice&) { count_->fetch_add(1); }

 private:
  std::atomic<int>* const count_;
};

TEST(PublicHeaders, SpawnByPropsAndOptionsOnAPoolOfTheProgram) {
  fraktor::DispatcherOptions pool{.name = "own", .workers = 1};
  fraktor::ActorSystemOptions options{.config = {.system_name = "consumer"}};
  options.dispatchers = {pool};
  fraktor::ActorSystem system(options);
  const fraktor::SpawnOptions on_pool{.dispatcher = "own",
                                      .mailbox = {.capacity = 10, .overflow = fraktor::OverflowStrategy::kReject}};
  const auto doubler = system.Spawn<Doubler>("doubler", on_pool);
  const absl::StatusOr<Twice> reply = system.AskAndWait(doubler, Double{21}, absl::Seconds(30));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->value, 42);

  const fraktor::PropsPtr recipe = fraktor::MakeTypedProps<Doubler>(fraktor::PropsOptions());
  EXPECT_TRUE(system.TrySpawn(*recipe, "by-recipe").ok());
  EXPECT_TRUE(system.TrySpawn(fraktor::TypedPropsOf<Doubler>(), "shared").ok());
  EXPECT_EQ(fraktor::RouteeLoad(fraktor::ActorRef()), fraktor::kLoadOfEnded);
}

TEST(PublicHeaders, AnActorSubscribesToEvents) {
  std::atomic<int> count{0};
  fraktor::ActorSystem system("consumer");
  const auto observer = system.Spawn<Observer>("observer", &count);
  EXPECT_EQ(fraktor::SubscribeActor<fraktor::AllDeadLetters>(system.events(), observer).value(), true);
  EXPECT_TRUE(fraktor::UnsubscribeActor<fraktor::AllDeadLetters>(system.events(), observer));
}

TEST(PublicHeaders, AProgramAddsAMetric) {
  fraktor::ActorSystem system("consumer");
  absl::StatusOr<fraktor::MetricCounter> orders = system.hub().AddCounter("shop.orders_total", {{"region", "eu"}});
  ASSERT_TRUE(orders.ok()) << orders.status();
  orders->Add();
}

TEST(PublicHeaders, NamePolicies) {
  EXPECT_EQ(fraktor::NameOf(fraktor::OverflowAnswer::kDropOldest), "drop_oldest");
  EXPECT_EQ(fraktor::OverflowDecision::Hold().answer(), fraktor::OverflowAnswer::kHold);
  EXPECT_EQ(fraktor::ToString(fraktor::OverflowStrategy::kReject), "Reject");
  EXPECT_NE(fraktor::BuiltInPolicy(fraktor::OverflowStrategy::kReject), nullptr);
  EXPECT_FALSE(fraktor::ToString(fraktor::SuspendReason::kRateLimit).empty());
  EXPECT_EQ(fraktor::ResumeCondition::After(absl::Seconds(1)).delay(), absl::Seconds(1));
  EXPECT_GT(fraktor::kMaxRoutees, 0u);
}

TEST(PublicHeaders, ReadPaths) {
  const fraktor::PathAuthority authority = fraktor::PathAuthority::Create("pekko.tcp", "10.0.0.7", 2552).value();
  EXPECT_EQ(fraktor::ActorPathParts::Remote("shop", authority).value().ToString(), "pekko.tcp://shop@10.0.0.7:2552");
  const fraktor::Pid pid{.slot = 7, .generation = 3};
  const fraktor::ActorUidIssuer issuer(1);
  EXPECT_EQ(issuer.PidOf(issuer.UidOf(pid)), pid);
  EXPECT_TRUE(fraktor::ActorSelection::Parse("../pool/*").value().elements()[1].Matches("pool"));
}

}  // namespace
