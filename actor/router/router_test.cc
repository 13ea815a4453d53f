#include "fraktor/actor/router/router.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/pool_load.h"
#include "fraktor/actor/router/internal/router_fixture.h"
#include "fraktor/actor/router/internal/routing_table.h"
#include "fraktor/actor/router/internal/smallest_mailbox.h"
#include "fraktor/actor/router/resizer.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/testing/counted_allocations.h"
#include "fraktor/utils/testing/sanitized.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {

using actor_internal::ActorSlot;
using actor_internal::LeastBusyRoutee;
using actor_internal::LoadOfPool;
using actor_internal::MakeRemoteSlot;
using actor_internal::PoolLoad;
using actor_internal::RemoteLink;
using actor_internal::RemoteSlot;
using actor_internal::RoutingTable;
using router_internal::AskForRoutees;
using router_internal::MakeStressSystem;

namespace {

struct Job {
  int number = 0;
};
struct MoveOnlyJob {
  std::unique_ptr<int> number;
};
struct NamedJob {
  std::string name;
  std::string_view RoutingKey() const { return name; }
};
struct NumberedJob {
  uint64_t customer = 0;
};
struct Answer {
  ActorRef from;
};
struct Question {
  using Reply = Answer;
};
struct Fail {};
struct TellAll {
  ActorRef router;
};

// The records of the workers of a test. One thread uses them.
struct Book {
  std::unordered_map<ActorRef, std::vector<int>> jobs;
  std::vector<ActorRef> asked;
  std::vector<ActorRef> senders;
  std::vector<std::string> answers;
  std::unordered_set<ActorRef> silent;
  int starts = 0;
  int stops = 0;
  bool all_silent = false;

  size_t total() const {
    size_t sum = 0;
    for (const auto& [actor, handled] : jobs) sum += handled.size();
    return sum;
  }
};

class Worker final : public ActorInstance {
 public:
  explicit Worker(Book* book) : book_(*book) {}

  absl::Status PreStart(ActorContext&) override {
    ++book_.starts;
    return absl::OkStatus();
  }
  void PostStop(ActorContext&) override { ++book_.stops; }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const ActorRef self = context.self();
    if (const auto* job = message.TryAs<Job>()) {
      book_.jobs[self].push_back(job->number);
      book_.senders.push_back(context.sender());
    } else if (message.Is<NamedJob>() || message.Is<NumberedJob>() || message.Is<MoveOnlyJob>()) {
      book_.jobs[self].push_back(0);
    } else if (message.Is<Question>()) {
      book_.asked.push_back(self);
      if (!book_.all_silent && book_.silent.count(self) == 0) context.Reply(Answer{self});
    } else if (message.Is<Fail>()) {
      return absl::InternalError("told to fail");
    } else {
      return context.Unhandled(message);
    }
    return absl::OkStatus();
  }

 private:
  Book& book_;
};

// Tells instead of asking, and records the reply.
class Teller final : public ActorInstance {
 public:
  explicit Teller(Book* book) : book_(*book) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* tell = message.TryAs<TellAll>()) {
      context.Tell(tell->router, Question{});
    } else if (message.Is<Answer>()) {
      book_.answers.push_back("answer");
    } else if (const auto* error = message.TryAs<ErrorReply>()) {
      book_.answers.push_back(ErrorKindOf<ActorErrorKind>(error->status) == ActorErrorKind::kAskTimeout ? "timeout"
                                                                                                        : "error");
    } else if (message.Is<Terminated>()) {
      book_.answers.push_back("terminated");
    } else if (const auto* job = message.TryAs<Job>()) {
      // Stands for any use of a router in a turn of an actor.
      context.Tell(router, Job{job->number});
    }
    return absl::OkStatus();
  }

  static inline ActorRef router;

 private:
  Book& book_;
};

class WatchingTeller final : public ActorInstance {
 public:
  WatchingTeller(Book* book, ActorRef watched) : book_(*book), watched_(watched) {}
  absl::Status PreStart(ActorContext& context) override { return context.Watch(watched_); }
  absl::Status Receive(ActorContext&, Envelope& message) override {
    const auto* const terminated = message.TryAs<Terminated>();
    if (terminated != nullptr && terminated->actor == watched_) book_.answers.push_back("terminated");
    return absl::OkStatus();
  }

 private:
  Book& book_;
  const ActorRef watched_;
};

class RouterTest : public testing::Test {
 protected:
  RouterTest() {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.log_level = LogLevel::kOff;
    system_ = ActorSystem::Create(options).value();
  }

  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }
  void RunFor(absl::Duration time) { ASSERT_TRUE(toolbox_->RunFor(time).ok()); }

  ActorRef SpawnPool(PoolOptions options, const PropsOptions& routee = {}) {
    const PropsPtr worker = MakeProps<Worker>(routee, &book_);
    return SpawnRouter(MakePool(options, *worker));
  }
  ActorRef SpawnRouter(absl::StatusOr<PropsPtr> props) {
    EXPECT_TRUE(props.ok()) << props.status();
    const absl::StatusOr<ActorRef> router = system_->TrySpawn(**props);
    EXPECT_TRUE(router.ok()) << router.status();
    return *router;
  }
  ActorRef SpawnWorker() { return system_->TrySpawn(*MakeProps<Worker>({}, &book_)).value(); }
  std::vector<ActorRef> SpawnWorkers(int count) {
    std::vector<ActorRef> workers;
    for (int i = 0; i < count; ++i) workers.push_back(SpawnWorker());
    return workers;
  }
  std::vector<ActorRef> RouteesOf(ActorRef router) { return AskForRoutees(*system_, router); }
  uint64_t DeadLettersFor(DeadLetterReason reason) { return system_->dead_letters().count(reason); }
  static bool IsAlive(ActorRef actor) { return actor.IsCurrent(); }
  void ExpectTenEach(const std::vector<ActorRef>& routees) {
    for (const ActorRef routee : routees) EXPECT_EQ(book_.jobs[routee].size(), 10u);
    EXPECT_EQ(book_.total(), 10 * routees.size());
  }

  Book book_;
  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  std::unique_ptr<ActorSystem> system_;
};

// A105
TEST_F(RouterTest, RoundRobinGivesEachOfAPoolTheSame) {
  const ActorRef router = SpawnPool({.size = 10});
  for (int i = 0; i < 100; ++i) Tell(router, Job{i});
  Settle();
  ExpectTenEach(RouteesOf(router));
}

// A105
TEST_F(RouterTest, RoundRobinGivesEachOfAGroupTheSameInTurn) {
  const std::vector<ActorRef> workers = SpawnWorkers(10);
  const ActorRef router = SpawnRouter(MakeGroup({.routees = workers}));
  for (int i = 0; i < 100; ++i) Tell(router, Job{i});
  Settle();
  ExpectTenEach(workers);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(book_.jobs[workers[static_cast<size_t>(i)]].front(), i);
}

// A106
TEST_F(RouterTest, RandomReachesAllAndRepeatsItself) {
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::Random(), .size = 5});
  for (int i = 0; i < 200; ++i) Tell(router, Job{i});
  Settle();
  for (const ActorRef routee : RouteesOf(router)) {
    EXPECT_GT(book_.jobs[routee].size(), 10u);
    EXPECT_LT(book_.jobs[routee].size(), 100u);
  }
  EXPECT_EQ(book_.total(), 200u);
}

// A106
TEST_F(RouterTest, BroadcastingReachesAll) {
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::Broadcasting(), .size = 20});
  Tell(router, Job{7});
  Settle();
  for (const ActorRef routee : RouteesOf(router)) EXPECT_EQ(book_.jobs[routee], std::vector<int>{7});
}

// A106
TEST_F(RouterTest, SmallestMailboxAvoidsABusyOne) {
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::SmallestMailbox(), .size = 3});
  Settle();
  const std::vector<ActorRef> routees = RouteesOf(router);
  Tell(routees[0], Job{100});
  Tell(routees[0], Job{101});
  // Two are idle; then they have a message each, and no other waits.
  for (int i = 0; i < 4; ++i) Tell(router, Job{i});
  Settle();
  EXPECT_EQ(book_.jobs[routees[0]].size(), 2u);
  EXPECT_EQ(book_.jobs[routees[1]].size(), 2u);
  EXPECT_EQ(book_.jobs[routees[2]].size(), 2u);
}

// A106
TEST_F(RouterTest, SmallestMailboxCountsWhatWaitsInBoundedOnes) {
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::SmallestMailbox(), .size = 3},
                                    {.mailbox = {.capacity = 100, .overflow = OverflowStrategy::kReject}});
  Settle();
  const std::vector<ActorRef> routees = RouteesOf(router);
  for (int i = 0; i < 6; ++i) Tell(routees[1], Job{100});
  for (int i = 0; i < 12; ++i) Tell(router, Job{i});
  Settle();
  EXPECT_EQ(book_.jobs[routees[0]].size(), 6u);
  EXPECT_EQ(book_.jobs[routees[1]].size(), 6u);
  EXPECT_EQ(book_.jobs[routees[2]].size(), 6u);
}

// A108
TEST_F(RouterTest, ScatterGatherGivesTheFirstAnswerAndLosesTheOthers) {
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::ScatterGather(), .size = 3});
  const absl::StatusOr<Answer> answer = system_->AskAndWait<Answer>(router, Question{}, absl::Seconds(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  Settle();
  EXPECT_EQ(book_.asked.size(), 3u);
  EXPECT_EQ(answer->from, book_.asked.front());
  EXPECT_EQ(DeadLettersFor(DeadLetterReason::kLateReply), 2u);
}

// A108
TEST_F(RouterTest, ScatterGatherWithoutRouteesFailsAtOnce) {
  const ActorRef router = SpawnRouter(MakeGroup({.strategy = RouterStrategy::ScatterGather()}));
  const Instant before = toolbox_->Now();
  const absl::StatusOr<Answer> answer = system_->AskAndWait<Answer>(router, Question{}, absl::Seconds(60));
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(answer.status()), ActorErrorKind::kAskTimeout) << answer.status();
  EXPECT_EQ(toolbox_->Now(), before);
}

// A108
TEST_F(RouterTest, ScatterGatherFailsWhenNobodyAnswersWithinItsTime) {
  const ActorRef router =
      SpawnPool({.strategy = RouterStrategy::ScatterGather({.within = absl::Seconds(2)}), .size = 3});
  book_.all_silent = true;
  const Instant before = toolbox_->Now();
  const absl::StatusOr<Answer> answer = system_->AskAndWait<Answer>(router, Question{}, absl::Seconds(60));
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(answer.status()), ActorErrorKind::kAskTimeout) << answer.status();
  EXPECT_EQ(toolbox_->Now() - before, absl::Seconds(2));
  // The ask also fails if the asker has a shorter timeout.
  EXPECT_FALSE(system_->AskAndWait<Answer>(router, Question{}, absl::Seconds(1)).ok());
  EXPECT_EQ(toolbox_->Now() - before, absl::Seconds(3));
}

// A message that a router has queued for its own turn is a dead letter of its own type.
TEST_F(RouterTest, WhatWaitsForARouterThatEndsIsADeadLetterOfItsOwnType) {
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::ScatterGather(), .size = 3});
  Settle();
  std::vector<std::string> lost;
  const EventSubscription subscription = system_->events().Listen<DeadLetter>(
      [&](const DeadLetter& letter) { lost.emplace_back(letter.message.type_name); });
  Tell(router, Question{});
  system_->Stop(router);
  Settle();
  const auto losses_of = [&](std::string_view type) {
    return std::count_if(lost.begin(), lost.end(),
                         [&](const std::string& name) { return name.find(type) != std::string::npos; });
  };
  EXPECT_EQ(losses_of("Question"), 1);
  EXPECT_EQ(losses_of("RouteInTurn"), 0);
  EXPECT_EQ(losses_of("Terminated"), 0) << "nobody misses the news of routees that end with their router";
}

TEST_F(RouterTest, ScatterGatherGetsAnAnswerAlthoughOneOfTheRouteesHasEnded) {
  const std::vector<ActorRef> workers = SpawnWorkers(3);
  const ActorRef router = SpawnRouter(MakeGroup({.strategy = RouterStrategy::ScatterGather(), .routees = workers}));
  Settle();
  // It ends with the ask in its mailbox, before the router learns of its end.
  Tell(workers[0], PoisonPill{});
  const absl::StatusOr<Answer> answer = system_->AskAndWait<Answer>(router, Question{}, absl::Seconds(1));
  EXPECT_TRUE(answer.ok()) << answer.status();
}

// A108, A109: the router asks in place of an actor that tells.
TEST_F(RouterTest, AnActorThatTellsGetsTheFirstAnswerOnly) {
  const ActorRef teller = system_->TrySpawn(*MakeProps<Teller>({}, &book_)).value();
  for (const RouterStrategy& strategy : {RouterStrategy::ScatterGather(), RouterStrategy::TailChopping()}) {
    const ActorRef router = SpawnPool({.strategy = strategy, .size = 3});
    Tell(teller, TellAll{router});
    Settle();
    EXPECT_EQ(book_.answers, std::vector<std::string>{"answer"});
    book_.answers.clear();
    book_.all_silent = true;
    Tell(teller, TellAll{router});
    RunFor(absl::Seconds(4.9));
    EXPECT_TRUE(book_.answers.empty());
    RunFor(absl::Seconds(0.1));
    EXPECT_EQ(book_.answers, std::vector<std::string>{"timeout"});
    book_.answers.clear();
    book_.all_silent = false;
  }
}

// A109
TEST_F(RouterTest, TailChoppingTriesTheNextAfterTheInterval) {
  const ActorRef router = SpawnPool(
      {.strategy = RouterStrategy::TailChopping({.within = absl::Milliseconds(50), .interval = absl::Milliseconds(10)}),
       .size = 3});
  book_.all_silent = true;
  Future<Answer> failing = system_->Ask<Answer>(router, Question{}, absl::Seconds(60));
  Settle();
  EXPECT_EQ(book_.asked.size(), 1u);
  RunFor(absl::Milliseconds(10));
  EXPECT_EQ(book_.asked.size(), 2u);
  RunFor(absl::Milliseconds(10));
  EXPECT_EQ(book_.asked.size(), 3u);
  EXPECT_EQ(std::unordered_set<ActorRef>(book_.asked.begin(), book_.asked.end()).size(), 3u);
  RunFor(absl::Milliseconds(29));
  EXPECT_FALSE(failing.IsReady());
  RunFor(absl::Milliseconds(1));
  ASSERT_TRUE(failing.IsReady());
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(failing.Take().status()), ActorErrorKind::kAskTimeout);

  // The second one replies: the third is not asked.
  const ActorRef first = book_.asked.front();
  book_.asked.clear();
  book_.all_silent = false;
  for (const ActorRef routee : RouteesOf(router)) book_.silent.insert(routee);
  book_.silent.erase(first);
  int asked_in_all = 0;
  for (int i = 0; i < 10; ++i) {
    const absl::StatusOr<Answer> answer = system_->AskAndWait<Answer>(router, Question{}, absl::Seconds(60));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->from, first);
    EXPECT_EQ(book_.asked.back(), first);
    RunFor(absl::Seconds(1));
    EXPECT_EQ(book_.asked.back(), first);
    asked_in_all += static_cast<int>(book_.asked.size());
    book_.asked.clear();
  }
  // The order is random: not always the first, nor always the last.
  EXPECT_GT(asked_in_all, 10);
  EXPECT_LT(asked_in_all, 30);
}

// A message whose copies throw from some copy on.
struct Fragile {
  using Reply = Answer;
  Fragile() = default;
  Fragile(Fragile&&) noexcept = default;
  Fragile(const Fragile&) {
    if (++copies > allowed) throw std::runtime_error("no copy");
  }
  static inline int copies = 0;
  static inline int allowed = 0;
};
struct FragileAnswer {
  FragileAnswer() = default;
  FragileAnswer(FragileAnswer&&) noexcept = default;
  FragileAnswer(const FragileAnswer&) { throw std::runtime_error("no copy of the answer"); }
};

TEST_F(RouterTest, TailChoppingFailsTheAskIfACopyThrows) {
  const ActorRef router = SpawnPool(
      {.strategy = RouterStrategy::TailChopping({.within = absl::Seconds(2), .interval = absl::Milliseconds(10)}),
       .size = 4});
  const std::vector<ActorRef> routees = RouteesOf(router);
  for (const int allowed : {0, 1, 2}) {
    Fragile::copies = 0;
    Fragile::allowed = allowed;
    const uint64_t lost = DeadLettersFor(DeadLetterReason::kNoRecipient);
    Future<Answer> asking = system_->Ask(router, Fragile{}, absl::Seconds(60));
    RunFor(absl::Milliseconds(100));
    ASSERT_TRUE(asking.IsReady()) << allowed;
    EXPECT_EQ(DeadLettersFor(DeadLetterReason::kNoRecipient), lost + 1) << allowed;
    const absl::Status why = asking.Take().status();
    EXPECT_NE(why.message().find("no copy"), absl::string_view::npos) << why;
  }
  EXPECT_EQ(RouteesOf(router), routees) << "the router has not failed";
  EXPECT_EQ(book_.starts, 4);
}

// A copy that throws fails the message, and not its sender.
TEST_F(RouterTest, ACopyThatThrowsIsADeadLetterAndDoesNotThrowOutOfTell) {
  for (const RouterStrategy& strategy : {RouterStrategy::Broadcasting(), RouterStrategy::ScatterGather()}) {
    const ActorRef router = SpawnPool({.strategy = strategy, .size = 3});
    const uint64_t lost = system_->dead_letters().total();
    Fragile::copies = 0;
    Fragile::allowed = 0;
    absl::StatusOr<Answer> answer;
    EXPECT_NO_THROW(answer = system_->AskAndWait<Answer>(router, Fragile{}, absl::Seconds(60)));
    EXPECT_NE(answer.status().message().find("no copy"), absl::string_view::npos) << answer.status();
    EXPECT_GT(system_->dead_letters().total(), lost);
  }
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::Broadcasting(), .size = 3});
  EXPECT_NO_THROW(Tell(router, Fragile{}));
  const absl::Status tried = TryTell(router, Fragile{});
  EXPECT_EQ(tried.code(), absl::StatusCode::kInternal);
  EXPECT_NE(tried.message().find("no copy"), absl::string_view::npos) << tried;
}

// An error of TryTell means that the message is lost, so one routee that takes it is enough for OK.
TEST_F(RouterTest, TryTellToAllIsAnErrorOnlyIfNoRouteeTakesTheMessage) {
  // A router without routees takes no message.
  const ActorRef nobody = SpawnRouter(MakeGroup({}));
  const std::vector<ActorRef> workers = SpawnWorkers(2);
  const auto broadcast_to = [&](std::vector<ActorRef> routees) {
    const ActorRef router =
        SpawnRouter(MakeGroup({.strategy = RouterStrategy::Broadcasting(), .routees = std::move(routees)}));
    Settle();
    return router;
  };
  const std::vector<std::vector<ActorRef>> some_take = {
      {nobody, workers[0], workers[1]}, {workers[0], nobody, workers[1]}, {workers[0], workers[1], nobody}};
  for (const std::vector<ActorRef>& routees : some_take) {
    const absl::Status tried = TryTell(broadcast_to(routees), Job{1});
    EXPECT_TRUE(tried.ok()) << tried;
    Settle();
    EXPECT_EQ(book_.total(), 2u);
    book_.jobs.clear();
  }
  EXPECT_EQ(TryTell(broadcast_to({nobody, nobody}), Job{1}).code(), absl::StatusCode::kNotFound);
  // The same if a copy throws.
  const ActorRef router = broadcast_to({workers[0], workers[1], nobody});
  for (const int allowed : {0, 1}) {
    const uint64_t lost = DeadLettersFor(DeadLetterReason::kNoRecipient);
    Fragile::copies = 0;
    Fragile::allowed = allowed;
    EXPECT_EQ(TryTell(router, Fragile{}).ok(), allowed == 1) << allowed;
    EXPECT_EQ(DeadLettersFor(DeadLetterReason::kNoRecipient), lost + 1) << allowed;
  }
}

// Asks by telling, and gets an answer that cannot be copied.
class AnswersFragile final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Reply(FragileAnswer());
    return absl::OkStatus();
  }
};

TEST_F(RouterTest, AnActorThatTellsGetsTheErrorOfAnAnswerWhoseCopyThrows) {
  const ActorRef router =
      SpawnRouter(MakePool({.strategy = RouterStrategy::ScatterGather(), .size = 2}, PropsOf<AnswersFragile>()));
  const ActorRef teller = system_->TrySpawn(*MakeProps<Teller>({}, &book_)).value();
  Tell(teller, TellAll{router});
  Settle();
  EXPECT_EQ(book_.answers, std::vector<std::string>{"error"});
}

// A109
TEST_F(RouterTest, TailChoppingWithoutRouteesFailsAtOnce) {
  const ActorRef router = SpawnRouter(MakeGroup({.strategy = RouterStrategy::TailChopping()}));
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(system_->AskAndWait<Answer>(router, Question{}, absl::Seconds(60)).status()),
            ActorErrorKind::kAskTimeout);
  EXPECT_EQ(toolbox_->Now(), Instant());
}

// A110
TEST_F(RouterTest, ConsistentHashingSendsEqualKeysToTheSameRoutee) {
  const ActorRef router = SpawnPool(
      {.strategy = RouterStrategy::ConsistentHashing({.mapping = &RoutingKeyOf<NumberedJob, &NumberedJob::customer>}),
       .size = 10});
  const auto owner_of = [&](auto message) {
    book_.jobs.clear();
    Tell(router, std::move(message));
    Settle();
    EXPECT_EQ(book_.jobs.size(), 1u);
    return book_.jobs.empty() ? ActorRef() : book_.jobs.begin()->first;
  };
  std::unordered_set<ActorRef> owners;
  for (uint64_t customer = 0; customer < 50; ++customer) {
    const ActorRef owner = owner_of(NumberedJob{customer});  // by the mapping
    EXPECT_EQ(owner_of(NumberedJob{customer}), owner);
    EXPECT_EQ(owner_of(Keyed(customer, Job{1})), owner);  // by the envelope
    owners.insert(owner);
    const std::string name = "customer " + std::to_string(customer);
    EXPECT_EQ(owner_of(NamedJob{name}), owner_of(Keyed(name, Job{1})));  // by the message itself
  }
  EXPECT_GT(owners.size(), 5u);
  // A message without a key has no owner.
  Tell(router, Job{1});
  Settle();
  EXPECT_EQ(DeadLettersFor(DeadLetterReason::kNoRecipient), 1u);
}

// A110
TEST_F(RouterTest, ConsistentHashingMovesOnlyTheKeysOfARouteeThatLeft) {
  const ActorRef router =
      SpawnPool({.strategy = RouterStrategy::ConsistentHashing({.mapping = nullptr, .virtual_nodes = 50}), .size = 5});
  const auto owners_of_all = [&] {
    std::vector<ActorRef> owners;
    for (int i = 0; i < 100; ++i) {
      book_.jobs.clear();
      Tell(router, Keyed(i, Job{i}));
      Settle();
      owners.push_back(book_.jobs.begin()->first);
    }
    return owners;
  };
  const std::vector<ActorRef> before = owners_of_all();
  const ActorRef left = RouteesOf(router)[2];
  Tell(router, RemoveRoutee{left});
  Settle();
  const std::vector<ActorRef> after = owners_of_all();
  int moved = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(after[i], left);
    if (before[i] == left) {
      ++moved;
    } else {
      EXPECT_EQ(after[i], before[i]) << i;
    }
  }
  EXPECT_GT(moved, 5);
  EXPECT_LT(moved, 50);
}

// A110
TEST_F(RouterTest, ConsistentHashingSpreadsKeysEvenly) {
  constexpr int kRoutees = 4;
  constexpr int kKeys = 4000;
  const ActorRef router = SpawnPool({.strategy = RouterStrategy::ConsistentHashing(), .size = kRoutees});
  for (int i = 0; i < kKeys; ++i) Tell(router, Keyed("customer-" + std::to_string(i), Job{i}));
  Settle();
  ASSERT_EQ(book_.jobs.size(), size_t{kRoutees});
  for (const auto& [routee, jobs] : book_.jobs) {
    EXPECT_GT(jobs.size(), size_t{kKeys / kRoutees * 3 / 4});
    EXPECT_LT(jobs.size(), size_t{kKeys / kRoutees * 5 / 4});
  }
}

// A111
TEST_F(RouterTest, DeadRouteesLeaveAndAPoolWithoutAnyEnds) {
  const ActorRef router = SpawnPool({.size = 3});
  Settle();
  const std::vector<ActorRef> routees = RouteesOf(router);
  system_->Stop(routees[1]);
  Settle();
  EXPECT_EQ(RouteesOf(router), (std::vector<ActorRef>{routees[0], routees[2]}));
  for (int i = 0; i < 4; ++i) Tell(router, Job{i});
  Settle();
  EXPECT_EQ(book_.total(), 4u);
  Tell(router, Broadcast(PoisonPill{}));
  Settle();
  EXPECT_FALSE(IsAlive(router));
  EXPECT_EQ(book_.stops, 3);
  const uint64_t before = DeadLettersFor(DeadLetterReason::kStopped);
  Tell(router, Job{5});
  EXPECT_EQ(DeadLettersFor(DeadLetterReason::kStopped), before + 1);
}

// A111
TEST_F(RouterTest, APoolWithAResizerStaysWithoutRouteesAndFillsUpAgain) {
  const ActorRef router = SpawnPool({.size = 2, .resizer = PressureResizerOptions{.lower_bound = 2}});
  Tell(router, Broadcast(PoisonPill{}));
  Settle();
  EXPECT_TRUE(IsAlive(router));
  EXPECT_TRUE(RouteesOf(router).empty());
  Tell(router, Job{1});
  EXPECT_EQ(DeadLettersFor(DeadLetterReason::kNoRecipient), 1u);
  Settle();
  EXPECT_EQ(RouteesOf(router).size(), 2u);
  Tell(router, Job{2});
  Settle();
  EXPECT_EQ(book_.total(), 1u);
}

TEST_F(RouterTest, AGroupStaysWithoutRouteesAndTakesNewOnes) {
  const ActorRef worker = SpawnWorker();
  const ActorRef router = SpawnRouter(MakeGroup({.routees = {worker}}));
  system_->Stop(worker);
  Settle();
  EXPECT_TRUE(RouteesOf(router).empty());
  const ActorRef other = SpawnWorker();
  Tell(router, AddRoutee{other});
  Tell(router, AddRoutee{other});
  Settle();
  EXPECT_EQ(RouteesOf(router), std::vector<ActorRef>{other});
}

// The router publishes routees that come and go in a row together: only then this ends in time.
TEST_F(RouterTest, TakesVeryManyRouteesInARow) {
  constexpr size_t kRoutees = 50'000;
  std::vector<ActorRef> workers;
  for (size_t i = 0; i < kRoutees; ++i) workers.push_back(SpawnWorker());
  const ActorRef router = SpawnRouter(MakeGroup({.routees = {workers[0]}}));
  for (const ActorRef worker : workers) Tell(router, AddRoutee{worker});
  EXPECT_EQ(RouteesOf(router), workers) << "in the order in which they came, and each once";
  for (size_t i = 0; i < kRoutees; ++i) Tell(router, Job{1});
  Settle();
  EXPECT_EQ(book_.total(), kRoutees);
  EXPECT_EQ(book_.jobs.size(), kRoutees) << "Each has got one.";
  for (size_t i = 1; i < kRoutees; ++i) Tell(router, RemoveRoutee{workers[i]});
  EXPECT_EQ(RouteesOf(router), std::vector<ActorRef>{workers[0]});
}

TEST_F(RouterTest, TakesARouteeBackThatHasJustLeft) {
  const ActorRef a = SpawnWorker();
  const ActorRef b = SpawnWorker();
  const ActorRef router = SpawnRouter(MakeGroup({.routees = {a, b}}));
  Tell(router, RemoveRoutee{a});
  Tell(router, AddRoutee{a});
  EXPECT_EQ(RouteesOf(router), std::vector<ActorRef>({b, a}));
  Tell(router, AddRoutee{a});
  Tell(router, RemoveRoutee{a});
  Settle();
  for (int i = 0; i < 4; ++i) Tell(router, Job{i});
  Settle();
  EXPECT_EQ(book_.jobs[b].size(), 4u) << "also without a question that has the router publish";
}

// A112
TEST_F(RouterTest, PoolsAreManagedByMessages) {
  const ActorRef router = SpawnPool({.size = 2});
  EXPECT_EQ(RouteesOf(router).size(), 2u);
  Tell(router, AdjustPoolSize{.change = 3});
  EXPECT_EQ(RouteesOf(router).size(), 5u);
  Tell(router, AdjustPoolSize{.change = -2});
  EXPECT_EQ(RouteesOf(router).size(), 3u);
  const ActorRef guest = SpawnWorker();
  Tell(router, AddRoutee{guest});
  EXPECT_EQ(RouteesOf(router).back(), guest);
  Tell(router, RemoveRoutee{guest});
  EXPECT_EQ(RouteesOf(router).size(), 3u);
  Tell(router, AdjustPoolSize{.change = -100});
  EXPECT_EQ(RouteesOf(router).size(), 1u);
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(IsAlive(guest)) << "only the router's own children are told to end";
  EXPECT_EQ(book_.starts - book_.stops, 2);
  // A group has no size to adjust.
  const ActorRef group = SpawnRouter(MakeGroup({.routees = {guest}}));
  Tell(group, AdjustPoolSize{.change = 1});
  EXPECT_EQ(RouteesOf(group).size(), 1u);
}

// The router publishes changes of its size in a row together: only then this ends in time.
TEST_F(RouterTest, ChangesItsSizeVeryOftenInARow) {
  constexpr size_t kRoutees = 1000;
  const ActorRef router = SpawnPool(
      {.strategy = RouterStrategy::ConsistentHashing({.mapping = nullptr, .virtual_nodes = 1000}), .size = 1});
  for (size_t i = 1; i < kRoutees; ++i) Tell(router, AdjustPoolSize{.change = 1});
  EXPECT_EQ(RouteesOf(router).size(), kRoutees);
  for (size_t i = 1; i < kRoutees; ++i) Tell(router, AdjustPoolSize{.change = -1});
  EXPECT_EQ(RouteesOf(router).size(), 1u);
}

// A112
TEST_F(RouterTest, AResizerClampsToItsBounds) {
  const ActorRef router =
      SpawnPool({.size = 50, .resizer = PressureResizerOptions{.lower_bound = 2, .upper_bound = 4}});
  EXPECT_EQ(RouteesOf(router).size(), 4u);
  Tell(router, AdjustPoolSize{.change = 10});
  EXPECT_EQ(RouteesOf(router).size(), 4u);
  Tell(router, AdjustPoolSize{.change = -10});
  EXPECT_EQ(RouteesOf(router).size(), 2u);
}

// A112
TEST(PressureResizer, GrowsWhenAllAreUnderPressureAndShrinksWhenFewAre) {
  const PressureResizerOptions options{.lower_bound = 2, .upper_bound = 20};
  const auto change = [&](int64_t size, int64_t pressed) {
    return ChangeByPressure(options, {.size = size, .pressed = pressed});
  };
  EXPECT_EQ(change(10, 10), 2);
  EXPECT_EQ(change(10, 9), 0);
  EXPECT_EQ(change(10, 3), 0);
  EXPECT_EQ(change(10, 2), -1);
  EXPECT_EQ(change(19, 19), 1);
  EXPECT_EQ(change(20, 20), 0);
  EXPECT_EQ(change(2, 0), 0);
  EXPECT_EQ(change(1, 0), 1);
  EXPECT_EQ(ChangeByPressure({.backoff_threshold = 0}, {.size = 10}), 0);
}

TEST(PressureResizer, JudgesByTheRouteesWhoseLoadIsKnown) {
  const PressureResizerOptions options{.lower_bound = 2, .upper_bound = 20};
  EXPECT_EQ(ChangeByPressure(options, {.size = 10, .unknown = 4, .pressed = 6}), 2);
  EXPECT_EQ(ChangeByPressure(options, {.size = 10, .unknown = 4, .pressed = 2}), 0);
  EXPECT_EQ(ChangeByPressure(options, {.size = 10, .unknown = 4, .pressed = 1}), -1);
  EXPECT_EQ(ChangeByPressure(options, {.size = 10, .unknown = 10}), 0);
  EXPECT_EQ(ChangeByPressure(options, {.size = 1, .unknown = 1}), 1) << "the bounds hold";
}

// Another node that takes every message and answers none.
class SilentNode final : public RemoteLink {
 public:
  absl::Status Send(ActorRef, EnvelopePtr) override { return absl::OkStatus(); }
  EnvelopePtr SendSystem(ActorRef, EnvelopePtr) override { return nullptr; }
  std::string PathOf(ActorRef) const override { return NodeText() + "/user/worker"; }
  std::string NodeText() const override { return "pekko://other@10.0.0.7:2552"; }
};

ActorRef RemoteRoutee(uint64_t uid) {
  static SilentNode* const node = new SilentNode;  // Links live as long as the process.
  static RemoteSlot* const slot = MakeRemoteSlot(*node).value();
  return ActorRef(slot, uid | ActorRef::kRemote);
}

TEST_F(RouterTest, ARemoteRouteeCountsNeitherAsBusyNorWithMessages) {
  const ActorRef idle = SpawnWorker();
  const ActorRef waiting = system_->TrySpawn(*MakeProps<Worker>({.mailbox = {.capacity = 10}}, &book_)).value();
  const ActorRef ended = SpawnWorker();
  system_->Stop(ended);
  Settle();
  for (int i = 0; i < 3; ++i) Tell(waiting, Job{i});
  const PoolLoad load = LoadOfPool({idle, waiting, ended, RemoteRoutee(1), RemoteRoutee(2)}, 3);
  EXPECT_EQ(load.busy, 1);
  EXPECT_EQ(load.waiting, 3);
  EXPECT_EQ(load.pressed, 1);
  EXPECT_EQ(load.unknown, 2);
}

TEST_F(RouterTest, APoolWithRemoteRouteesShrinksWhenItsOwnAreIdle) {
  const ActorRef router =
      SpawnPool({.size = 3, .resizer = PressureResizerOptions{.lower_bound = 5, .upper_bound = 20}});
  EXPECT_EQ(RouteesOf(router).size(), 5u);
  for (uint64_t uid = 1; uid <= 5; ++uid) Tell(router, AddRoutee{RemoteRoutee(uid)});
  EXPECT_EQ(RouteesOf(router).size(), 10u);
  // One message at a time: no routee is under pressure.
  for (int i = 0; i < 100; ++i) {
    Tell(router, Job{i});
    Settle();
  }
  EXPECT_EQ(RouteesOf(router).size(), 5u);
}

TEST_F(RouterTest, APoolGrowsUnderPressureAndShrinksAfterwards) {
  const ActorRef router = SpawnPool({.size = 1, .resizer = PressureResizerOptions{.upper_bound = 5}});
  Settle();
  // None of them runs meanwhile: all are under pressure at each check.
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 20; ++i) Tell(router, Job{i});
    Settle();
  }
  EXPECT_EQ(RouteesOf(router).size(), 5u);
  // One message at a time: no routee is under pressure.
  for (int i = 0; i < 100; ++i) {
    Tell(router, Job{i});
    Settle();
  }
  EXPECT_EQ(RouteesOf(router).size(), 1u);
  RunFor(absl::Seconds(1));
  EXPECT_EQ(book_.total(), 500u);
}

TEST(ExploringResizer, FindsTheSizeThatHandlesMost) {
  ExploringResizer resizer({.upper_bound = 30, .chance_of_exploration = 0.3}, Random(1));
  // The number of messages per second for a size: 12 routees handle most.
  const auto speed = [](int64_t size) { return std::max<int64_t>(10, 1000 - 5 * (size - 12) * (size - 12)); };
  ExploringResizer::Observation seen{.now = Instant(), .size = 3, .busy = 3};
  int64_t near = 0;
  for (int step = 0; step < 2000; ++step) {
    seen.size += resizer.Change(seen);
    ASSERT_GE(seen.size, 1);
    ASSERT_LE(seen.size, 30);
    seen.busy = seen.size;
    seen.now = seen.now + absl::Seconds(5);
    seen.messages += static_cast<uint64_t>(5 * speed(seen.size));
    if (step >= 1000 && seen.size >= 9 && seen.size <= 15) ++near;
  }
  EXPECT_GT(near, 700);
  // Nothing happens before the interval is over.
  const int64_t before = resizer.Change(seen);
  static_cast<void>(before);
  EXPECT_EQ(resizer.Change(seen), 0);
}

TEST(ExploringResizer, ShrinksAfterALongTimeWithLittleToDo) {
  ExploringResizer resizer({.downsize_after_underutilized_for = absl::Hours(1)}, Random(1));
  ExploringResizer::Observation seen{.now = Instant(), .size = 10, .busy = 5};
  EXPECT_EQ(resizer.Change(seen), 0);
  seen.now = seen.now + absl::Minutes(59);
  EXPECT_EQ(resizer.Change(seen), 0);
  seen.now = seen.now + absl::Minutes(1);
  EXPECT_EQ(resizer.Change(seen), -6) << "to 0.8 of the five that were busy";
}

TEST(ExploringResizer, IsFullWhenAllRouteesAreBusyWhoseLoadIsKnown) {
  const ExploringResizerOptions options{
      .lower_bound = 6, .upper_bound = 30, .downsize_after_underutilized_for = absl::Hours(1)};
  ExploringResizer full(options, Random(1));
  ExploringResizer remote(options, Random(1));
  ExploringResizer::Observation half{.now = Instant(), .size = 10, .unknown = 5, .busy = 5};
  ExploringResizer::Observation none{.now = Instant(), .size = 10, .unknown = 10};
  int changes = 0;
  for (int hour = 0; hour < 100; ++hour) {
    const int64_t change = full.Change(half);
    if (change != 0) ++changes;
    EXPECT_EQ(remote.Change(none), 0) << "nothing is known of any routee";
    half.size += change;
    half.busy = half.size - half.unknown;
    half.messages += 1000;
    for (auto* const seen : {&half, &none}) seen->now = seen->now + absl::Hours(1);
  }
  EXPECT_GT(changes, 0) << "it explores";
}

TEST_F(RouterTest, AnExploringPoolStaysWithinItsBounds) {
  const ActorRef router = SpawnPool(
      {.size = 2, .exploring_resizer = ExploringResizerOptions{.upper_bound = 4, .action_interval = absl::Seconds(1)}});
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 30; ++i) Tell(router, Job{i});
    RunFor(absl::Seconds(1));
    const size_t size = RouteesOf(router).size();
    ASSERT_GE(size, 1u);
    ASSERT_LE(size, 4u);
  }
  EXPECT_EQ(book_.total(), 3000u);
}

// A113
TEST_F(RouterTest, AFailureRestartsAllRouteesThroughTheParent) {
  const ActorRef router = SpawnPool({.size = 3});
  Settle();
  EXPECT_EQ(book_.starts, 3);
  const std::vector<ActorRef> routees = RouteesOf(router);
  Tell(routees[1], Fail{});
  Settle();
  // The guardian restarts the router, and the router restarts its routees: the same three.
  EXPECT_EQ(book_.starts, 6);
  EXPECT_EQ(RouteesOf(router), routees);
  for (int i = 0; i < 30; ++i) Tell(router, Job{i});
  Settle();
  ExpectTenEach(routees);
  // The router still learns of their ends.
  system_->Stop(routees[0]);
  Settle();
  EXPECT_EQ(RouteesOf(router).size(), 2u);
}

TEST_F(RouterTest, AStrategyOfItsOwnSpares) {
  const ActorRef router = SpawnPool(
      {.size = 3, .supervision = SupervisorStrategyOptions{.decider = [](const Failure&) { return Restart(); }}});
  Settle();
  Tell(RouteesOf(router)[1], Fail{});
  Settle();
  EXPECT_EQ(book_.starts, 4);
}

// A115: the options are the whole configuration.
TEST_F(RouterTest, BadOptionsAreRefusedAndNamed) {
  const auto refused = [&](const PoolOptions& options) {
    const absl::StatusOr<PropsPtr> props = MakePool(options, *MakeProps<Worker>({}, &book_));
    EXPECT_EQ(props.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(props.status().message());
  };
  EXPECT_NE(refused({.size = 1, .resizer = PressureResizerOptions{}, .exploring_resizer = ExploringResizerOptions{}})
                .find("both a resizer and an exploring_resizer"),
            std::string::npos);
  EXPECT_NE(refused({.size = 0}).find("PoolOptions.size is 0"), std::string::npos);
  EXPECT_NE(refused({.size = 65537}).find("65536"), std::string::npos);
  EXPECT_NE(refused({.resizer = PressureResizerOptions{.lower_bound = 5, .upper_bound = 4}}).find("lower_bound is 5"),
            std::string::npos);
  EXPECT_NE(refused({.resizer = PressureResizerOptions{.pressure_threshold = 2}}).find("pressure_threshold"),
            std::string::npos);
  EXPECT_NE(refused({.resizer = PressureResizerOptions{.messages_per_resize = 0}}).find("messages_per_resize"),
            std::string::npos);
  EXPECT_NE(
      refused({.exploring_resizer = ExploringResizerOptions{.chance_of_exploration = 2}}).find("chance_of_exploration"),
      std::string::npos);
  EXPECT_NE(refused({.strategy = RouterStrategy::ConsistentHashing({.virtual_nodes = 0})}).find("virtual_nodes"),
            std::string::npos);
  EXPECT_NE(
      refused({.strategy = RouterStrategy::ConsistentHashing({.virtual_nodes = 1000}), .size = 60000}).find("product"),
      std::string::npos);
  EXPECT_NE(refused({.strategy = RouterStrategy::ScatterGather({.within = absl::ZeroDuration()})}).find("within"),
            std::string::npos);
  EXPECT_NE(refused({.strategy = RouterStrategy::TailChopping({.interval = -absl::Seconds(1)})}).find("interval"),
            std::string::npos);
  EXPECT_NE(MakeGroup({.routees = {ActorRef()}}).status().message().find("no one"), absl::string_view::npos);
}

// A116
TEST_F(RouterTest, MessagesAreRoutedByTheSenderAndNotByTheRouter) {
  const ActorRef router = SpawnPool({.size = 2});
  Settle();
  const std::vector<ActorRef> routees = RouteesOf(router);
  // Only this thread runs.
  Tell(router, Job{1});
  EXPECT_TRUE(router.slot()->mailbox.inbox.IsIdle());
  EXPECT_FALSE(routees[0].slot()->mailbox.inbox.IsIdle());
  EXPECT_TRUE(routees[1].slot()->mailbox.inbox.IsIdle());
  Settle();
  EXPECT_EQ(book_.jobs[routees[0]], std::vector<int>{1});
}

// A116
TEST_F(RouterTest, AMessageCanBeRoutedAsSoonAsTheRouterIsSpawned) {
  const ActorRef router = SpawnPool({.size = 2});
  Tell(router, Job{1});
  Settle();
  EXPECT_EQ(book_.total(), 1u);
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

TEST_F(RouterTest, TheSenderOfARoutedMessageIsItsSender) {
  const ActorRef teller = system_->TrySpawn(*MakeProps<Teller>({}, &book_)).value();
  Teller::router = SpawnPool({.strategy = RouterStrategy::Broadcasting(), .size = 3});
  Tell(teller, Job{1});
  Settle();
  EXPECT_EQ(book_.senders, (std::vector<ActorRef>{teller, teller, teller}));
}

// A117
TEST_F(RouterTest, RemovedRouteesEndAMomentLater) {
  const ActorRef router = SpawnPool({.size = 3});
  Settle();
  const std::vector<ActorRef> routees = RouteesOf(router);
  const Instant before = toolbox_->Now();
  Tell(router, RemoveRoutee{routees[0]});
  Tell(router, AdjustPoolSize{.change = -1});
  Settle();
  EXPECT_EQ(RouteesOf(router), std::vector<ActorRef>{routees[1]});
  ASSERT_EQ(toolbox_->Now(), before);
  RunFor(absl::Milliseconds(99));
  // Messages on their way arrive.
  Tell(routees[0], Job{1});
  Tell(routees[2], Job{2});
  RunFor(absl::Milliseconds(1));
  EXPECT_EQ(book_.jobs[routees[0]], std::vector<int>{1});
  EXPECT_EQ(book_.jobs[routees[2]], std::vector<int>{2});
  EXPECT_FALSE(IsAlive(routees[0]));
  EXPECT_FALSE(IsAlive(routees[2]));
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

TEST_F(RouterTest, WhatIsForTheRouterItselfIsNotRouted) {
  const ActorRef router = SpawnPool({.size = 3});
  const absl::StatusOr<ActorIdentity> identity =
      system_->AskAndWait<ActorIdentity>(router, Identify{.id = 5}, absl::Seconds(1));
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->ref, router);
  EXPECT_EQ(identity->id, 5u);
  system_->TrySpawn(*MakeProps<WatchingTeller>({}, &book_, router)).value();
  Settle();
  Tell(router, PoisonPill{});
  Settle();
  EXPECT_FALSE(IsAlive(router));
  EXPECT_EQ(book_.stops, 3);
  EXPECT_EQ(book_.answers, std::vector<std::string>{"terminated"});
}

TEST_F(RouterTest, ABroadcastGoesToAllWhateverTheStrategy) {
  for (const RouterStrategy& strategy :
       {RouterStrategy::RoundRobin(), RouterStrategy::Random(), RouterStrategy::ConsistentHashing()}) {
    book_.jobs.clear();
    const ActorRef router = SpawnPool({.strategy = strategy, .size = 4});
    Tell(router, Broadcast(Job{3}));
    Settle();
    EXPECT_EQ(book_.jobs.size(), 4u);
    EXPECT_EQ(book_.total(), 4u);
  }
}

TEST_F(RouterTest, WhatCannotBeCopiedIsADeadLetterWhereSeveralWouldGetIt) {
  const ActorRef all = SpawnPool({.strategy = RouterStrategy::Broadcasting(), .size = 2});
  Tell(all, MoveOnlyJob{std::make_unique<int>(1)});
  EXPECT_EQ(DeadLettersFor(DeadLetterReason::kNotCopyable), 1u);
  const absl::StatusOr<Answer> answer =
      system_->AskAndWait<Answer>(all, MoveOnlyJob{std::make_unique<int>(1)}, absl::Seconds(60));
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(answer.status()), ActorErrorKind::kAskTimeout);
  // One recipient needs no copy.
  const ActorRef one = SpawnPool({.strategy = RouterStrategy::Broadcasting(), .size = 1});
  Tell(one, MoveOnlyJob{std::make_unique<int>(1)});
  const ActorRef turns = SpawnPool({.size = 2});
  Tell(turns, MoveOnlyJob{std::make_unique<int>(1)});
  Settle();
  EXPECT_EQ(book_.total(), 2u);
}

TEST_F(RouterTest, RoutersMayBeRouteesOfOthersButNotInACircle) {
  std::vector<ActorRef> inner = {SpawnPool({.size = 2}), SpawnPool({.size = 2})};
  const ActorRef outer = SpawnRouter(MakeGroup({.routees = inner}));
  for (int i = 0; i < 8; ++i) Tell(outer, Job{i});
  Settle();
  EXPECT_EQ(book_.jobs.size(), 4u);
  for (const auto& [actor, handled] : book_.jobs) EXPECT_EQ(handled.size(), 2u);
  const ActorRef a = SpawnRouter(MakeGroup({}));
  const ActorRef b = SpawnRouter(MakeGroup({.routees = {a}}));
  Tell(a, AddRoutee{b});
  Tell(a, AddRoutee{a});
  Settle();
  EXPECT_EQ(RouteesOf(a), std::vector<ActorRef>{b});
  Tell(a, Job{9});
  EXPECT_EQ(DeadLettersFor(DeadLetterReason::kNoRecipient), 1u);
}

TEST_F(RouterTest, AFullMailboxOfARouteeIsToldToWhoTries) {
  const ActorRef router = SpawnPool({.size = 1}, {.mailbox = {.capacity = 1, .overflow = OverflowStrategy::kReject}});
  Settle();
  EXPECT_TRUE(TryTell(router, Job{1}).ok());
  EXPECT_EQ(TryTell(router, Job{2}).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RouterTest, AStaleReferenceToARouterReachesNobody) {
  const ActorRef old = SpawnPool({.size = 1});
  Settle();
  system_->Stop(old);
  Settle();
  // Other actors take the same slot, until one of them is a router.
  for (int i = 0; i < 50; ++i) {
    const ActorRef next = SpawnPool({.size = 1});
    Tell(old, Job{1});
    Settle();
    system_->Stop(next);
    Settle();
  }
  EXPECT_EQ(book_.total(), 0u);
  system_.reset();
  Tell(old, Job{1});
  EXPECT_EQ(book_.total(), 0u);
}

TEST_F(RouterTest, ARoutedMessageAllocatesNothing) {
  if (!kCountsAllocations) GTEST_SKIP() << kWhyNoAllocationsAreCounted;
  const std::vector<ActorRef> workers = SpawnWorkers(4);
  for (const RouterStrategy& strategy : {RouterStrategy::RoundRobin(), RouterStrategy::Random(),
                                         RouterStrategy::SmallestMailbox(), RouterStrategy::ConsistentHashing()}) {
    const ActorRef router = SpawnRouter(MakeGroup({.strategy = strategy, .routees = workers}));
    Settle();
    const auto send = [&] {
      for (int i = 0; i < 50; ++i) Tell(router, NamedJob{"short"});
    };
    send();
    EXPECT_EQ(AllocationsIn(send), 0);
    Settle();
  }
}

struct Count {
  using Reply = Answer;
};
class TypedWorker : public Actor<TypedWorker, Job, Count> {
 public:
  explicit TypedWorker(Book* book) : book_(*book) {}
  void On(Context& context, const Job& job) { book_.jobs[context.self().untyped()].push_back(job.number); }
  Answer On(Context& context, const Count&) { return {context.self().untyped()}; }

 private:
  Book& book_;
};
class Foreman : public Actor<Foreman, Job> {
 public:
  explicit Foreman(Book* book) : book_(*book) {}
  void PreStart(Context& context) { workers_ = SpawnPool<TypedWorker>(context, {.size = 2}, "workers", &book_); }
  void On(Context& context, const Job& job) { context.Tell(workers_, job); }

 private:
  Book& book_;
  RefOf<TypedWorker> workers_;
};

TEST_F(RouterTest, TypedPoolsAndGroupsAreReferencesAsAnyOther) {
  const TypedRef<Job, Count> pool = fraktor::SpawnPool<TypedWorker>(*system_, {.size = 3}, "pool", &book_);
  for (int i = 0; i < 6; ++i) pool.Tell(Job{i});
  Settle();
  EXPECT_EQ(book_.jobs.size(), 3u);
  EXPECT_EQ(system_->PathOf(pool.untyped()), "pekko://default/user/pool");
  EXPECT_TRUE(system_->AskAndWait(pool, Count{}, absl::Seconds(1)).ok());
  pool.Tell(AdjustPoolSize{.change = 2});
  EXPECT_EQ(RouteesOf(pool.untyped()).size(), 5u);

  const std::vector<TypedRef<Job>> both = {system_->Spawn<TypedWorker>("a", &book_), pool};
  const TypedRef<Job> group = SpawnGroup(*system_, {}, both, "group");
  book_.jobs.clear();
  group.Tell(Job{1});
  group.Tell(Job{2});
  Settle();
  EXPECT_EQ(book_.total(), 2u);

  book_.jobs.clear();
  const auto foreman = system_->Spawn<Foreman>("foreman", &book_);
  foreman.Tell(Job{1});
  foreman.Tell(Job{2});
  Settle();
  EXPECT_EQ(book_.jobs.size(), 2u);
  EXPECT_THROW(fraktor::SpawnPool<TypedWorker>(*system_, {.size = 0}, "bad", &book_), SpawnError);
}

// Its state cannot be copied.
class Owner : public Actor<Owner, Question> {
 public:
  explicit Owner(std::unique_ptr<int> owned) : owned_(std::move(owned)) {}
  Answer On(Context& context, const Question&) { return {context.self().untyped()}; }

 private:
  std::unique_ptr<int> owned_;
};

TEST_F(RouterTest, APoolMayHaveRouteesThatAFactoryMakes) {
  int made = 0;
  const auto make = [&made] { return Owner(std::make_unique<int>(++made)); };
  const RefOf<Owner> pool = fraktor::SpawnPool(*system_, {.size = 3}, "owners", make);
  Settle();
  EXPECT_EQ(made, 3);
  EXPECT_TRUE(system_->AskAndWait(pool, Question{}, absl::Seconds(1)).ok());
  const RefOf<Owner> bounded =
      fraktor::SpawnPool(*system_, {.size = 1}, "bounded", SpawnOptions{.mailbox = {.capacity = 1}}, make);
  EXPECT_TRUE(bounded.TryTell(Question{}).ok());
  EXPECT_EQ(bounded.TryTell(Question{}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(TrySpawnPool(*system_, {.size = 0}, "none", make).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RouterTest, TryFormsReturnTheStatusForWhichTheOthersThrow) {
  const absl::StatusOr<TypedRef<Job, Count>> pool = TrySpawnPool<TypedWorker>(*system_, {.size = 2}, "pool", &book_);
  ASSERT_TRUE(pool.ok()) << pool.status();
  const std::vector<TypedRef<Job, Count>> routees = {*pool};
  const absl::StatusOr<TypedRef<Job, Count>> group = TrySpawnGroup(*system_, {}, routees, "group");
  ASSERT_TRUE(group.ok()) << group.status();
  group->Tell(Job{1});
  Settle();
  EXPECT_EQ(book_.total(), 1u);

  EXPECT_TRUE(absl::IsInvalidArgument(TrySpawnPool<TypedWorker>(*system_, {.size = 0}, "bad", &book_).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(TrySpawnPool<TypedWorker>(*system_, {}, "pool", SpawnOptions(), &book_).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(TrySpawnGroup(*system_, {}, routees, "group").status()));
  EXPECT_THROW(SpawnGroup(*system_, {}, routees, "group"), SpawnError);
}

TEST_F(RouterTest, TypedRoutersTakeTypedMessagesForAllForAKeyAndForTheirManagement) {
  const auto pool = fraktor::SpawnPool<TypedWorker>(
      *system_, {.strategy = RouterStrategy::ConsistentHashing(), .size = 3}, "pool", &book_);
  TellAllRoutees(pool, Job{1});
  Settle();
  EXPECT_EQ(book_.jobs.size(), 3u);
  book_.jobs.clear();
  for (int i = 0; i < 5; ++i) TellKeyed(pool, "alice", Job{i});
  Settle();
  EXPECT_EQ(book_.jobs.size(), 1u);
  EXPECT_EQ(book_.total(), 5u);
  const auto other = system_->Spawn<TypedWorker>("other", &book_);
  const TypedRef<Job> narrow = pool;
  AddRouteeTo(narrow, other);
  EXPECT_EQ(RouteesOf(pool.untyped()).size(), 4u);
  RemoveRouteeFrom(narrow, other);
  EXPECT_EQ(RouteesOf(pool.untyped()).size(), 3u);
}

// A117
TEST_F(RouterTest, RouteesOfATypedPoolHaveTheOptionsThatItSaysAndLeaveThoughTheyAreFull) {
  const SpawnOptions one_message{.mailbox = {.capacity = 1}};
  const auto pool = fraktor::SpawnPool<TypedWorker>(*system_, {.size = 2}, "pool", one_message, &book_);
  const std::vector<ActorRef> routees = RouteesOf(pool.untyped());
  for (int i = 0; i < 6; ++i) pool.Tell(Job{i});
  Settle();
  EXPECT_EQ(book_.total(), 2u) << "for the others there was no room";
  // When the pill arrives, there is no room for it either.
  toolbox_
      ->ScheduleAfter(absl::Milliseconds(100),
                      [&] {
                        for (int i = 0; i < 2; ++i) Tell(routees[1], Job{i});
                      })
      .value();
  pool.Tell(AdjustPoolSize{.change = -1});
  RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(IsAlive(routees[1]));
  EXPECT_TRUE(IsAlive(routees[0]));
}

// A sender looks at the load of routees while its snapshot is reused: first by the same router,
// then by one whose ring of points lies where the routees were.
TEST(RoutingTable, TheSmallestMailboxIsNotSoughtInASnapshotThatIsReused) {
  struct Fakes {
    ActorSlot searched;
    ActorSlot other;
    ActorSlot routee;
  };
  // Tables refer to slots for ever.
  static auto& fakes = *new Fakes;  // NOLINT
  RoutingTable& a = RoutingTable::Bind(fakes.searched);
  RoutingTable& b = RoutingTable::Bind(fakes.other);
  a.Begin(1);
  b.Begin(2);
  const ActorRef routee = fakes.routee.ref();
  const RoutingPlan smallest{.kind = RoutingKind::kSmallestMailbox};
  const std::vector<ActorRef> eight(8, routee);
  a.Publish(smallest, eight, {});
  bool is_first = true;
  int reads = 0;
  const bool is_known = a.Read(fakes.searched.generation(), [&](const RoutingTable::View& view) {
    ++reads;
    const uint32_t size = view.size();
    if (std::exchange(is_first, false)) {
      a.Publish(smallest, eight, {});
      // 2 words of a routee and 10 points have the capacity of the 16 words of eight routees.
      b.Publish({.kind = RoutingKind::kConsistentHashing}, {routee}, std::vector<uint64_t>(10, uint64_t{0x4242} << 32));
    }
    // The second one: the first is a routee in the new snapshot too.
    EXPECT_LT(LeastBusyRoutee(view, size, 1), 8u);
  });
  EXPECT_TRUE(is_known);
  EXPECT_EQ(reads, 2);
}

// Readers see one publication or the other, and never a mixture.
TEST(RoutingTableStress, ReadersSeeWholeSnapshots) {
  struct Fake {
    ActorSlot slot;
  };
  auto* const fake = new Fake;  // NOLINT: tables refer to slots for ever.
  static std::vector<Fake*> kept;
  kept.push_back(fake);
  RoutingTable& table = RoutingTable::Bind(fake->slot);
  table.Begin(1);
  const auto publish = [&](uint64_t round) {
    // All words of a publication are equal, and so is the only point of the ring.
    const std::vector<ActorRef> routees(1 + round % 40, ActorRef(&fake->slot, round));
    const std::vector<uint64_t> ring(round % 7, (round << 32) | 0);
    table.Publish({.kind = RoutingKind::kConsistentHashing, .within_ns = static_cast<int64_t>(round)}, routees, ring);
  };
  publish(1);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> bad{0};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop.load()) {
        std::vector<RoutingTable::RawRoutee> refs;
        int64_t within = 0;
        RoutingTable::RawRoutee owner;
        const bool known = table.Read(fake->slot.generation(), [&](const RoutingTable::View& view) {
          refs.clear();
          const uint32_t size = view.size();
          for (uint32_t at = 0; at < size; ++at) refs.push_back(view.routee(at));
          within = view.plan().within_ns;
          owner = view.OwnerOf(UINT64_MAX / 2);
        });
        const auto round = static_cast<uint64_t>(within);
        bool good = known && refs.size() == 1 + round % 40 && owner.ref().IsNoOne() == (round % 7 == 0);
        for (const RoutingTable::RawRoutee& raw : refs) good = good && raw.ref() == ActorRef(&fake->slot, round);
        if (!good) bad.fetch_add(1);
        reads.fetch_add(1);
      }
    });
  }
  const uint64_t rounds = kIsSanitized ? 5'000 : 20'000;
  for (uint64_t round = 2; round < rounds || reads.load() < 1000; ++round) publish(round);
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(bad.load(), 0u);
  EXPECT_FALSE(table.Read(fake->slot.generation() + 2, [](const RoutingTable::View&) {}));
}

class CountingWorker final : public ActorInstance {
 public:
  explicit CountingWorker(std::atomic<uint64_t>* handled) : handled_(*handled) {}
  absl::Status Receive(ActorContext&, Envelope&) override {
    handled_.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  }

 private:
  std::atomic<uint64_t>& handled_;
};

// With threads: routees come and go while many send, and no message is lost without a dead letter.
TEST(RouterStress, EveryMessageIsHandledOrADeadLetterWhilePoolsChange) {
  constexpr int kSenders = 3;
  const int per_sender = kIsSanitized ? 3000 : 20'000;
  std::atomic<uint64_t> handled{0};
  std::atomic<uint64_t> lost{0};
  const std::unique_ptr<ActorSystem> system = MakeStressSystem();
  const EventSubscription listening = system->events().Listen<AllDeadLetters>([&](const AllDeadLetters& letter) {
    if (letter.message.type == MessageTypeOf<NamedJob>()) lost.fetch_add(1, std::memory_order_relaxed);
  });
  std::vector<ActorRef> routers;
  const PropsPtr worker = MakeProps<CountingWorker>({}, &handled);
  const PropsPtr bounded =
      MakeProps<CountingWorker>({.mailbox = {.capacity = 1000, .overflow = OverflowStrategy::kReject}}, &handled);
  const auto spawn_pool = [&](const RouterStrategy& strategy, int size) {
    routers.push_back(system->TrySpawn(**MakePool({.strategy = strategy, .size = size}, *worker)).value());
  };
  spawn_pool(RouterStrategy::RoundRobin(), 4);
  spawn_pool(RouterStrategy::Random(), 4);
  // The snapshots of these two have the same capacity, so each is reused by the other.
  spawn_pool(RouterStrategy::SmallestMailbox(), 40);
  spawn_pool(RouterStrategy::ConsistentHashing(), 1);
  // A group whose bounded and unbounded routees change places.
  std::vector<ActorRef> mixed;
  for (int i = 0; i < 8; ++i) mixed.push_back(system->TrySpawn(i % 2 == 0 ? *worker : *bounded).value());
  const ActorRef group =
      system->TrySpawn(**MakeGroup({.strategy = RouterStrategy::SmallestMailbox(), .routees = mixed})).value();
  routers.push_back(group);
  std::vector<std::thread> senders;
  std::atomic<int> sending{kSenders};
  for (int s = 0; s < kSenders; ++s) {
    senders.emplace_back([&] {
      for (int i = 0; i < per_sender; ++i) {
        for (const ActorRef router : routers) Tell(router, NamedJob{std::to_string(i % 100)});
      }
      sending.fetch_sub(1);
    });
  }
  int change = 3;
  while (sending.load() > 0) {
    for (const ActorRef router : routers) {
      if (router != group) Tell(router, AdjustPoolSize{.change = change});
    }
    change = -change;
    Tell(group, RemoveRoutee{mixed[0]});
    ASSERT_TRUE(system->AskAndWait<Routees>(group, GetRoutees{}, absl::InfiniteDuration()).ok());
    Tell(group, AddRoutee{mixed[0]});
    for (const ActorRef router : routers) {
      ASSERT_TRUE(system->AskAndWait<Routees>(router, GetRoutees{}, absl::InfiniteDuration()).ok());
    }
  }
  for (std::thread& sender : senders) sender.join();
  for (const ActorRef router : routers) {
    if (router != group) Tell(router, Broadcast(PoisonPill{}));
  }
  // A dead letter that is found after the workers have stopped is not published.
  ASSERT_TRUE(system->scheduler().dispatchers().AwaitQuiet(absl::InfiniteDuration()));
  EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());
  const uint64_t sent = uint64_t{kSenders} * static_cast<uint64_t>(per_sender) * routers.size();
  EXPECT_EQ(handled.load() + lost.load(), sent);
  EXPECT_GT(handled.load(), sent / 2);
}

}  // namespace
}  // namespace fraktor
