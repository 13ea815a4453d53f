// The examples of small headers of actor: reasons, causes, answers, and parts of options. They
// compile and run. The header_examples check of tools/tidy finds each paragraph of an example here,
// line by line.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/dispatch/scheduler_options.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_answer.h"
#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/router.h"
#include "fraktor/actor/router/router_strategy.h"
#include "fraktor/actor/router/routing_plan.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/system_state.h"
#include "fraktor/actor/system/termination_hook.h"
#include "fraktor/actor/testkit/actor_trace.h"
#include "fraktor/actor/testkit/test_failure.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/tree/tree_observer.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"

// The examples stand as they do in the headers.
// clang-format off
// Readers use the variables that an example leaves unused.
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace fraktor {

using actor_internal::AskCompletion;
using actor_internal::BootingSystemState;
using actor_internal::GuardianKind;
using actor_internal::RunningSystemState;
using actor_internal::SendAsk;

namespace {

struct Got { int value = 0; };
struct Get { using Reply = Got; };
struct Open { std::string name; };
struct Order { uint64_t customer = 0; };

class Shelf : public Actor<Shelf, Get> {
 public:
  Got On(Context&, const Get&) { return {7}; }
};

// Adds up the replies to asks.
class SumOfReplies final : public AskCompletion {
 public:
  SumOfReplies(const MessageType* asked, int* sum) : AskCompletion(asked, absl::Seconds(1)), sum_(*sum) {}
  void TakeReply(Envelope& reply) noexcept override {
    sum_ += reply.As<Got>().value;
    delete this;
  }
  void Fail(absl::Status) noexcept override { delete this; }

 private:
  int& sum_;
};

// Asks the shelf for each message.
class Adder final : public ActorInstance {
 public:
  Adder(ActorRef shelf, int* sum) : shelf_(shelf), sum_(sum) {}
  absl::Status Receive(ActorContext&, Envelope&) override {
    // In the turn of the asker.
    auto* const completion = new SumOfReplies(MessageTypeOf<Get>(), sum_);
    absl::Status sent = SendAsk(ActorContext::worker(), shelf_, MakeEnvelope<Get>(ActorRef()), *completion);
    if (!sent.ok()) completion->Abandon();
    return sent;
  }

 private:
  const ActorRef shelf_;
  int* const sum_;
};

TEST(HeaderExamples, AskCompletion) {
  TestKit kit;
  int sum = 0;
  const PropsPtr adders = MakeProps<Adder>({}, kit.Spawn<Shelf>().untyped(), &sum);
  const ActorRef adder = kit.Spawn(*adders);
  Tell(adder, 1);
  Tell(adder, 1);
  kit.Settle();
  EXPECT_EQ(sum, 14);
}

TEST(HeaderExamples, DispatcherOptions) {
  DispatcherOptions db{.name = "db", .workers = 4, .may_block = true};
  ActorSystemOptions options{.config = {.system_name = "shop"}, .dispatchers = {db}};
  ActorSystem system(options);
  auto shelf = system.Spawn<Shelf>("shelf", {.dispatcher = "db"});
  EXPECT_EQ(system.AskAndWait(shelf, Get{}, absl::Seconds(60)).value().value, 7);
}

TEST(HeaderExamples, DeadLetterReasonAndOverflowAnswer) {
  const auto of_reason = [] {
    std::string_view label = NameOf(DeadLetterReason::kMailboxFull);   // "mailbox_full"
    return label;
  };
  EXPECT_EQ(of_reason(), "mailbox_full");
  std::string_view label = NameOf(OverflowAnswer::kDropOldest);        // "drop_oldest"
  EXPECT_EQ(label, "drop_oldest");
}

TEST(HeaderExamples, OverflowStrategy) {
  MailboxOptions latest{.capacity = 100, .overflow = OverflowStrategy::kDropOldest};
  TestKit kit;
  EXPECT_EQ(kit.AskAndWait(kit.Spawn<Shelf>(SpawnOptions{.mailbox = latest}), Get{})->value, 7);
}

class Vault final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const Open* open = message.TryAs<Open>();
    if (open == nullptr) return context.Unhandled(message);
    context.Reply(ErrorReply{absl::NotFoundError("there is no box " + open->name)});   // the ask fails with NotFound
    return absl::OkStatus();
  }
};

TEST(HeaderExamples, ErrorReply) {
  TestKit kit;
  const absl::Status error =
      kit.system().AskAndWait<Got>(kit.Spawn(PropsOf<Vault>()), Open{"7"}, absl::Seconds(1)).status();
  EXPECT_EQ(error, absl::NotFoundError("there is no box 7"));
}

// Stops children that cannot start, and restarts all others.
SupervisionDirective OnChildFailure(const Failure& failure) {
  return failure.cause == FailureCause::kInitialization ? Stop() : Restart();
}

TEST(HeaderExamples, FailureCause) {
  const absl::Status error = absl::InternalError("no");
  EXPECT_EQ(OnChildFailure({.child = {}, .error = error, .cause = FailureCause::kInitialization}), Stop());
  EXPECT_EQ(OnChildFailure({.child = {}, .error = error, .cause = FailureCause::kThrown}), Restart());
}

// Delays the end of the system until it has said goodbye.
class Greeter final : public ActorInstance {
 public:
  explicit Greeter(std::string* said) : said_(*said) {}
  absl::Status PreStart(ActorContext& context) override {
    context.Tell(context.system().system_guardian(), RegisterTerminationHook{});
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (!message.Is<TerminationHook>()) return context.Unhandled(message);
    said_ = "goodbye";
    context.Reply(TerminationHookDone{});
    return absl::OkStatus();
  }

 private:
  std::string& said_;
};

TEST(HeaderExamples, Guardians) {
  std::string said;
  {
    TestKit kit;
    const PropsPtr greeters = MakeProps<Greeter>({}, &said);
    ASSERT_TRUE(kit.system().TrySpawnSystemActor(*greeters).ok());
    kit.Settle();
  }
  EXPECT_EQ(said, "goodbye");
}

absl::StatusOr<std::unique_ptr<RunningSystemState>> Boot(ActorRef root, ActorRef user, ActorRef system) {
  BootingSystemState booting;
  booting.SetGuardian(GuardianKind::kRoot, root);
  booting.SetGuardian(GuardianKind::kUser, user);
  booting.SetGuardian(GuardianKind::kSystem, system);
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<RunningSystemState> running, std::move(booting).IntoRunning());
  return running;
}

TEST(HeaderExamples, SystemState) {
  TestKit kit;
  const ActorRef any = kit.Spawn<Shelf>().untyped();
  EXPECT_TRUE(Boot(any, any, any).value()->IsAlive(GuardianKind::kUser));
  EXPECT_FALSE(Boot(any, ActorRef(), any).ok());
}

TEST(HeaderExamples, RoutingPlan) {
  const RoutingMapping by_customer = [](const Envelope& message) -> std::optional<uint64_t> {
    const Order* order = message.TryAs<Order>();
    return order == nullptr ? std::nullopt : std::optional(order->customer);
  };
  PoolOptions options{.strategy = RouterStrategy::ConsistentHashing({.mapping = by_customer}), .size = 4};
  EXPECT_EQ(options.strategy.plan().mapping(*MakeEnvelope<Order>(ActorRef(), uint64_t{7})), 7u);
}

MiddlewareFlow Pause() {
  const ResumeCondition soon = ResumeCondition::After(absl::Milliseconds(1));
  return MiddlewareFlow::Break(SuspendReason::kRateLimit, soon);
}

TEST(HeaderExamples, InvokeResult) { EXPECT_TRUE(Pause().breaks()); }

TEST(HeaderExamples, ActorTrace) {
  const std::unique_ptr<SimToolbox> toolbox = SimToolbox::Make({.seed = 7}).value();
  auto trace = std::make_shared<ActorTrace>(toolbox->trace());
  ActorSystemOptions options{.config = {.system_name = "shop"}, .toolbox = toolbox.get()};
  options.tree_observer = trace.get();
  options.scheduler.dispatchers.default_pool.middleware = {trace};
  const absl::StatusOr<std::unique_ptr<ActorSystem>> system = ActorSystem::Create(options);
  ASSERT_TRUE(system.ok()) << system.status();
  (*system)->Spawn<Shelf>("shelf");
  EXPECT_GT(trace->spawned(), 0u);
}

TEST(HeaderExamples, ReadyQueueSchedulerOptions) {
  ActorSystemOptions options;
  options.scheduler.observability.max_actors = 16;
  options.scheduler.dispatchers.default_pool.workers = 2;
  EXPECT_TRUE(options.scheduler.Validate().ok());
}

class SpawnCount final : public TreeObserver {
 public:
  void OnSpawned(ActorRef, ActorRef, std::string_view) override { ++spawned; }
  void OnEnded(ActorRef) override {}
  void OnDeadLetter(ActorRef, const Envelope&, DeadLetterReason) override {}

  std::atomic<int> spawned = 0;
};

TEST(HeaderExamples, TreeObserver) {
  SpawnCount count;
  ActorSystemOptions options{.tree_observer = &count};
  options.config.system_name = "shop";
  const absl::StatusOr<std::unique_ptr<ActorSystem>> system = ActorSystem::Create(options);
  ASSERT_TRUE(system.ok()) << system.status();
  EXPECT_GT(count.spawned.load(), 0);
}

void ExpectPositive(int number, TestLocation at = TestLocation::Here()) {
  if (number <= 0) ReportFailure(at, "the number is not positive");   // names the line of the caller
}

TEST(HeaderExamples, TestFailure) {
  ExpectPositive(1);
  EXPECT_NONFATAL_FAILURE(ExpectPositive(0), "the number is not positive");
}

}  // namespace
}  // namespace fraktor
