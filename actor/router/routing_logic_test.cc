// Routing strategies that a program writes itself, through real routers.
#include "fraktor/actor/router/routing_logic.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/router_fixture.h"
#include "fraktor/actor/router/routee_load.h"
#include "fraktor/actor/router/router.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/router/router_strategy.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/testing/sanitized.h"

namespace fraktor {

using router_internal::AskForRoutees;
using router_internal::MakeStressSystem;

namespace {

struct Served {
  ActorRef by;
  int number = 0;
};
struct Serve {
  using Reply = Served;
  int number = 0;
};
struct Note {
  int number = 0;
};
struct Owned {
  std::unique_ptr<int> value;
};
struct Break {};
// Its key throws.
struct Keyless {
  using Reply = Served;
  uint64_t RoutingKey() const { throw std::runtime_error("no key"); }
};

struct Diary {
  // One entry for each Note, in the order in which they were handled.
  std::vector<std::pair<ActorRef, int>> notes;
  int starts = 0;
};

class Clerk : public Actor<Clerk, Serve, Note, Owned, Break, Keyless> {
 public:
  explicit Clerk(Diary* diary) : diary_(*diary) {}
  void PreStart(Context&) { ++diary_.starts; }
  Served On(Context& context, const Serve& serve) { return {context.self().untyped(), serve.number}; }
  void On(Context& context, const Note& note) { diary_.notes.emplace_back(context.self().untyped(), note.number); }
  void On(Context& context, const Owned&) { diary_.notes.emplace_back(context.self().untyped(), 0); }
  Served On(Context& context, const Keyless&) { return {context.self().untyped(), 0}; }
  absl::Status On(Context&, const Break&) { return absl::InternalError("the clerk broke"); }

 private:
  Diary& diary_;
};
using ClerkRef = RefOf<Clerk>;

// Counts its objects, so that a test can see when the last one ends.
class CountedLogic : public RoutingLogic {
 public:
  explicit CountedLogic(std::atomic<int>* living) : living_(*living) { living_.fetch_add(1); }
  ~CountedLogic() override { living_.fetch_sub(1); }
  RoutingChoice Choose(const RoutingCall& call) const override {
    return RoutingChoice::One(call.ticket() % call.routees().size());
  }

 private:
  std::atomic<int>& living_;
};

// Does what a test says.
class ScriptedLogic : public RoutingLogic {
 public:
  using Script = std::function<RoutingChoice(const RoutingCall&)>;
  explicit ScriptedLogic(Script script) : script_(std::move(script)) {}
  RoutingChoice Choose(const RoutingCall& call) const override { return script_(call); }

 private:
  const Script script_;
};

class RoutingLogicTest : public testing::Test {
 protected:
  ClerkRef SpawnClerks(const RouterStrategy& strategy, int size) {
    return SpawnPool<Clerk>(kit_.system(), {.strategy = strategy, .size = size}, "clerks", &diary_);
  }
  ClerkRef SpawnScripted(ScriptedLogic::Script script, int size = 3) {
    return SpawnClerks(RouterStrategy::Using<ScriptedLogic>(std::move(script)), size);
  }
  std::vector<ActorRef> RouteesOf(ClerkRef router) { return AskForRoutees(kit_.system(), router.untyped()); }
  // The routee that handled each note, by its number in `routees`, in the order of the notes.
  std::vector<size_t> Handlers(const std::vector<ActorRef>& routees) const {
    auto notes = diary_.notes;
    std::stable_sort(notes.begin(), notes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<size_t> handlers;
    for (const auto& [clerk, note] : notes) {
      handlers.push_back(static_cast<size_t>(std::find(routees.begin(), routees.end(), clerk) - routees.begin()));
    }
    return handlers;
  }
  uint64_t DeadLetters(DeadLetterReason reason) { return kit_.system().dead_letters().count(reason); }
  size_t Warnings(const std::string& text) {
    return kit_.log().Find(0, {.level = LogLevel::kWarning, .contains = text}).size();
  }

  Diary diary_;
  // The living objects of CountedLogic. The last ones end with the kit.
  std::atomic<int> living_{0};
  TestKit kit_;
};

TEST_F(RoutingLogicTest, ChoosesOneOfAPool) {
  std::vector<uint64_t> tickets;
  const ClerkRef clerks = SpawnScripted([&](const RoutingCall& call) {
    tickets.push_back(call.ticket());
    EXPECT_EQ(call.routees().size(), 3u);
    const auto* const note = call.message().TryAs<Note>();
    return RoutingChoice::One(note == nullptr ? 0 : static_cast<size_t>(note->number) % 3);
  });
  for (int i = 0; i < 4; ++i) clerks.Tell(Note{2 * i});
  kit_.Settle();
  EXPECT_EQ(Handlers(RouteesOf(clerks)), (std::vector<size_t>{0, 2, 1, 0}));
  EXPECT_EQ(tickets, (std::vector<uint64_t>{0, 1, 2, 3}));
  const absl::StatusOr<Served> served = kit_.AskAndWait(clerks, Serve{7});
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->by, RouteesOf(clerks)[0]);
}

TEST_F(RoutingLogicTest, ChoosesOneOfAGroup) {
  std::vector<ClerkRef> members;
  for (int i = 0; i < 3; ++i) members.push_back(kit_.Spawn<Clerk>(&diary_));
  const ClerkRef group =
      SpawnGroup(kit_.system(), {.strategy = RouterStrategy::Using<CountedLogic>(&living_)}, members, "group");
  for (int i = 0; i < 6; ++i) group.Tell(Note{i});
  kit_.Settle();
  EXPECT_EQ(Handlers({members[0].untyped(), members[1].untyped(), members[2].untyped()}),
            (std::vector<size_t>{0, 1, 2, 0, 1, 2}));
}

TEST_F(RoutingLogicTest, ChoosesSeveralAllAndNobody) {
  const ClerkRef clerks = SpawnScripted([](const RoutingCall& call) {
    const auto* const note = call.message().TryAs<Note>();
    if (note == nullptr) return RoutingChoice::Several({1});
    if (note->number == 0) return RoutingChoice::Several({2, 0});
    return note->number == 1 ? RoutingChoice::All() : RoutingChoice::Nobody();
  });
  const std::vector<ActorRef> routees = RouteesOf(clerks);
  clerks.Tell(Note{0});
  kit_.Settle();
  EXPECT_EQ(Handlers(routees), (std::vector<size_t>{2, 0}));
  diary_.notes.clear();
  clerks.Tell(Note{1});
  kit_.Settle();
  EXPECT_EQ(diary_.notes.size(), 3u);
  diary_.notes.clear();
  EXPECT_EQ(DeadLetters(DeadLetterReason::kNoRecipient), 0u);
  clerks.Tell(Note{2});
  kit_.Settle();
  EXPECT_TRUE(diary_.notes.empty());
  EXPECT_EQ(DeadLetters(DeadLetterReason::kNoRecipient), 1u);
  // One recipient needs no copy.
  clerks.Tell(Owned{});
  kit_.Settle();
  EXPECT_EQ(Handlers(routees), std::vector<size_t>{1});
  EXPECT_EQ(Warnings(""), 0u) << "none of these is an error";
}

TEST_F(RoutingLogicTest, SeesTheKeyOfAMessage) {
  std::vector<std::optional<uint64_t>> keys;
  const ClerkRef clerks = SpawnScripted([&](const RoutingCall& call) {
    keys.push_back(call.key());
    return RoutingChoice::One(0);
  });
  clerks.Tell(Note{1});
  TellKeyed(clerks, "alice", Note{2});
  TellKeyed(clerks, "alice", Note{3});
  kit_.Settle();
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_FALSE(keys[0].has_value());
  EXPECT_TRUE(keys[1].has_value());
  EXPECT_EQ(keys[1], keys[2]);
  EXPECT_EQ(diary_.notes.size(), 3u);
}

// The two-choices strategy: any logic can use the load of a routee.
TEST_F(RoutingLogicTest, MayLookAtTheLoadOfRoutees) {
  const ClerkRef clerks = SpawnScripted(
      [](const RoutingCall& call) {
        return RoutingChoice::One(RouteeLoad(call.routees()[0]) <= RouteeLoad(call.routees()[1]) ? 0 : 1);
      },
      2);
  kit_.Settle();
  const std::vector<ActorRef> routees = RouteesOf(clerks);
  Tell(routees[0], Note{100});
  clerks.Tell(Note{1});
  kit_.Settle();
  EXPECT_EQ(Handlers(routees), (std::vector<size_t>{1, 0}));
}

TEST_F(RoutingLogicTest, FollowsRouteesThatComeAndGo) {
  std::vector<size_t> sizes;
  const ClerkRef clerks = SpawnScripted([&](const RoutingCall& call) {
    sizes.push_back(call.routees().size());
    return RoutingChoice::One(call.routees().size() - 1);
  });
  const ClerkRef extra = kit_.Spawn<Clerk>(&diary_);
  clerks.Tell(Note{1});
  AddRouteeTo(clerks, extra);
  kit_.Settle();
  clerks.Tell(Note{2});
  RemoveRouteeFrom(clerks, extra);
  kit_.Settle();
  clerks.Tell(Note{3});
  clerks.Tell(AdjustPoolSize{.change = -2});
  kit_.Settle();
  clerks.Tell(Note{4});
  kit_.Settle();
  EXPECT_EQ(sizes, (std::vector<size_t>{3, 4, 3, 1}));
  EXPECT_EQ(diary_.notes.size(), 4u);
  // A routee that ends leaves by itself, and a pool without routees ends.
  const ActorRef last = RouteesOf(clerks).front();
  kit_.system().Stop(last);
  kit_.Settle();
  EXPECT_FALSE(clerks.untyped().IsCurrent());
}

TEST_F(RoutingLogicTest, IsNotCalledWithoutRoutees) {
  bool is_called = false;
  const PropsPtr props = MakeGroup({.strategy = RouterStrategy::Using<ScriptedLogic>([&](const RoutingCall&) {
                                      is_called = true;
                                      return RoutingChoice::One(0);
                                    })})
                             .value();
  const ActorRef group = kit_.Spawn(*props);
  Tell(group, Note{1});
  kit_.Settle();
  EXPECT_FALSE(is_called);
  EXPECT_EQ(DeadLetters(DeadLetterReason::kNoRecipient), 1u);
}

TEST_F(RoutingLogicTest, WorksWithAResizer) {
  std::vector<uint64_t> tickets;
  const ClerkRef clerks = SpawnPool<Clerk>(
      kit_.system(),
      {.strategy = RouterStrategy::Using<ScriptedLogic>([&](const RoutingCall& call) {
         tickets.push_back(call.ticket());
         return RoutingChoice::One(call.ticket() % call.routees().size());
       }),
       .size = 2,
       .resizer = PressureResizerOptions{.lower_bound = 2, .upper_bound = 6, .messages_per_resize = 5}},
      "clerks", &diary_);
  for (int i = 0; i < 20; ++i) clerks.Tell(Note{i});
  kit_.Settle();
  EXPECT_EQ(diary_.notes.size(), 20u);
  std::vector<uint64_t> all(20);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  EXPECT_EQ(tickets, all) << "a message has one ticket, for the resizer and the logic";
}

TEST_F(RoutingLogicTest, SurvivesRestartsOfItsRouter) {
  const ClerkRef clerks = SpawnClerks(RouterStrategy::Using<CountedLogic>(&living_), 3);
  kit_.Settle();
  const std::vector<ActorRef> routees = RouteesOf(clerks);
  EXPECT_EQ(living_.load(), 1);
  // A pool escalates: the guardian restarts the router, and with it all routees.
  Tell(routees[1], Break{});
  kit_.Settle();
  EXPECT_EQ(diary_.starts, 6);
  EXPECT_EQ(RouteesOf(clerks), routees);
  for (int i = 0; i < 6; ++i) clerks.Tell(Note{i});
  kit_.Settle();
  EXPECT_EQ(Handlers(routees), (std::vector<size_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(living_.load(), 1) << "the same object serves the restarted router";
}

TEST_F(RoutingLogicTest, EndsWithItsLastRouterAndRecipe) {
  {
    const PropsPtr props = MakePool({.strategy = RouterStrategy::Using<CountedLogic>(&living_), .size = 2},
                                    *typed_internal::MakePropsOf<Clerk>(&diary_))
                               .value();
    const ActorRef first = kit_.Spawn(*props);
    const ActorRef second = kit_.Spawn(*props);
    Tell(first, Note{1});
    Tell(second, Note{2});
    kit_.Settle();
    EXPECT_EQ(diary_.notes.size(), 2u);
    kit_.system().Stop(first);
    kit_.Settle();
    Tell(second, Note{3});
    kit_.Settle();
    EXPECT_EQ(diary_.notes.size(), 3u) << "the other router goes on";
    EXPECT_EQ(living_.load(), 1);
    kit_.system().Stop(second);
    kit_.Settle();
    EXPECT_EQ(living_.load(), 1) << "the recipe can still make routers";
    const uint64_t lost = DeadLetters(DeadLetterReason::kStopped);
    Tell(second, Note{4});
    kit_.Settle();
    EXPECT_EQ(DeadLetters(DeadLetterReason::kStopped), lost + 1) << "a stale reference leads nowhere";
  }
  EXPECT_EQ(living_.load(), 0);
}

// The spawn of a pool whose routees cannot be spawned fails with their error. The pool ends.
TEST_F(RoutingLogicTest, EndsWithARouterThatCannotStart) {
  {
    const PropsPtr props = MakePool({.strategy = RouterStrategy::Using<CountedLogic>(&living_), .size = 2},
                                    *MakeTypedProps<Clerk>({.dispatcher = "missing"}, &diary_))
                               .value();
    const absl::Status refused = kit_.system().TrySpawn(*props, "clerks").status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("routee 1 of 2 of a pool: no dispatcher has the name \"missing\""),
              absl::string_view::npos)
        << refused;
    kit_.Settle();
    EXPECT_EQ(living_.load(), 1);
    EXPECT_EQ(Warnings(""), 0u) << "the spawner has the error; it is no failure of an actor";
    EXPECT_TRUE(SpawnPool<Clerk>(kit_.system(), {.size = 1}, "clerks", &diary_).untyped().IsCurrent())
        << "the name is free again";
  }
  EXPECT_EQ(living_.load(), 0);
}

TEST_F(RoutingLogicTest, AnIndexOutOfRangeIsADeadLetterAndAnErrorForTheAsker) {
  const ClerkRef clerks = SpawnScripted([](const RoutingCall& call) {
    const auto* const serve = call.message().TryAs<Serve>();
    if (serve != nullptr && serve->number == 1) return RoutingChoice::Several({0, 5});
    return RoutingChoice::One(serve != nullptr && serve->number == 0 ? 3 : 0);
  });
  kit_.Settle();
  const absl::StatusOr<Served> failed = kit_.AskAndWait(clerks, Serve{0});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(failed.status().message().find("/user/clerks"), absl::string_view::npos) << failed.status();
  EXPECT_NE(failed.status().message().find("routee 3 of 3"), absl::string_view::npos) << failed.status();
  EXPECT_EQ(kit_.AskAndWait(clerks, Serve{1}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(DeadLetters(DeadLetterReason::kNoRecipient), 2u);
  EXPECT_TRUE(kit_.AskAndWait(clerks, Serve{2}).ok()) << "the router works on";
}

TEST_F(RoutingLogicTest, AnExceptionIsADeadLetterAndAnErrorForTheAsker) {
  const ClerkRef clerks = SpawnScripted([](const RoutingCall& call) -> RoutingChoice {
    const auto* const serve = call.message().TryAs<Serve>();
    if (serve != nullptr && serve->number == 0) throw std::runtime_error("no idea");
    if (serve != nullptr && serve->number == 1) throw 42;
    return RoutingChoice::One(0);
  });
  kit_.Settle();
  const absl::StatusOr<Served> thrown = kit_.AskAndWait(clerks, Serve{0});
  EXPECT_EQ(thrown.status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(thrown.status().message().find("no idea"), absl::string_view::npos) << thrown.status();
  EXPECT_EQ(kit_.AskAndWait(clerks, Serve{1}).status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(kit_.AskAndWait(clerks, Serve{2}).ok());
  EXPECT_EQ(DeadLetters(DeadLetterReason::kNoRecipient), 2u);
  EXPECT_EQ(diary_.starts, 3) << "nobody was restarted";
  const absl::Status tried = clerks.TryTell(Serve{0});
  EXPECT_EQ(tried.code(), absl::StatusCode::kInternal);
  EXPECT_NE(tried.message().find("no idea"), absl::string_view::npos) << tried;
}

// An actor that sends through a router must not fail because of the router's logic.
TEST_F(RoutingLogicTest, ASenderDoesNotFailWithTheLogic) {
  struct Forwarder : Actor<Forwarder, Note> {
    explicit Forwarder(ClerkRef clerks) : to(clerks) {}
    void On(Context& context, const Note& note) { context.Tell(to, note); }
    ClerkRef to;
  };
  const ClerkRef clerks = SpawnScripted([](const RoutingCall& call) -> RoutingChoice {
    if (call.ticket() == 0) throw std::runtime_error("not yet");
    return RoutingChoice::One(0);
  });
  const auto forwarder = kit_.Spawn<Forwarder>(clerks);
  forwarder.Tell(Note{1});
  forwarder.Tell(Note{2});
  kit_.Settle();
  ASSERT_EQ(diary_.notes.size(), 1u);
  EXPECT_EQ(diary_.notes[0].second, 2);
}

std::optional<uint64_t> ThrowForNotes(const Envelope& message) {
  if (message.Is<Note>()) throw 42;
  return std::nullopt;
}

// The key of a message and the mapping of a strategy are code of the program, which a sender runs.
TEST_F(RoutingLogicTest, AKeyThatThrowsIsADeadLetterAndAnErrorForTheAsker) {
  struct Forwarder : Actor<Forwarder, Note> {
    explicit Forwarder(ClerkRef clerks) : to(clerks) {}
    void On(Context& context, const Note& note) { context.Tell(to, note); }
    ClerkRef to;
  };
  const ClerkRef clerks = SpawnClerks(RouterStrategy::ConsistentHashing({.mapping = &ThrowForNotes}), 3);
  kit_.Settle();
  EXPECT_NO_THROW(clerks.Tell(Keyless{}));
  const absl::Status tried = clerks.TryTell(Keyless{});
  EXPECT_EQ(tried.code(), absl::StatusCode::kInternal);
  EXPECT_NE(tried.message().find("the routing key of "), absl::string_view::npos) << tried;
  EXPECT_NE(tried.message().find("it threw an exception: no key"), absl::string_view::npos) << tried;
  const absl::StatusOr<Served> asked = kit_.AskAndWait(clerks, Keyless{});
  EXPECT_EQ(asked.status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(asked.status().message().find("no key"), absl::string_view::npos) << asked.status();
  EXPECT_NO_THROW(clerks.Tell(Note{1})) << "the mapping throws";
  const auto forwarder = kit_.Spawn<Forwarder>(clerks);
  forwarder.Tell(Note{2});
  kit_.Settle();
  EXPECT_TRUE(forwarder.untyped().IsCurrent()) << "the sender does not fail";
  EXPECT_EQ(DeadLetters(DeadLetterReason::kNoRecipient), 5u);
  EXPECT_EQ(Warnings("the routing key failed, for "), 3u) << "for 1, 2 and 4";
  TellKeyed(clerks, 7, Note{3});
  kit_.Settle();
  EXPECT_EQ(diary_.notes.size(), 1u) << "a Keyed needs no key of the message";
}

TEST_F(RoutingLogicTest, LogsFailuresLessAndLessOften) {
  const ClerkRef clerks = SpawnScripted([](const RoutingCall&) { return RoutingChoice::One(99); });
  kit_.Settle();
  for (int i = 0; i < 1000; ++i) {
    clerks.Tell(Note{i});
    kit_.Settle();
  }
  EXPECT_EQ(DeadLetters(DeadLetterReason::kNoRecipient), 1000u);
  EXPECT_EQ(Warnings("the routing logic failed"), 10u) << "for 1, 2, 4 and so on up to 512";
  EXPECT_EQ(Warnings("for 512 messages so far"), 1u);
  EXPECT_EQ(Warnings("routee 99 of 3"), 10u);
}

TEST_F(RoutingLogicTest, ANullLogicIsRefused) {
  const PoolOptions options{.strategy = RouterStrategy::Using(std::shared_ptr<const RoutingLogic>())};
  EXPECT_EQ(options.Validate().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(options.Validate().message().find("RouterStrategy::Using"), absl::string_view::npos);
}

// Threads send while routees come and go and routers end: each message is handled or a dead letter,
// and each logic ends.
TEST(RoutingLogicStress, RoutersEndWhileManySend) {
  constexpr int kSenders = 3;
  constexpr int kPerSender = 400;
  const int rounds = kIsSanitized ? 10 : 30;
  std::atomic<int> living{0};
  std::atomic<uint64_t> handled{0};
  struct Counter : Actor<Counter, Note> {
    explicit Counter(std::atomic<uint64_t>* handled_notes) : count(*handled_notes) {}
    void On(Context&, const Note&) { count.fetch_add(1, std::memory_order_relaxed); }
    std::atomic<uint64_t>& count;
  };
  const std::unique_ptr<ActorSystem> system = MakeStressSystem();
  std::atomic<uint64_t> lost{0};
  const EventSubscription subscription = system->events().Listen<DeadLetter>([&](const DeadLetter& letter) {
    if (letter.message.type == MessageTypeOf<Note>()) lost.fetch_add(1);
  });
  for (int round = 0; round < rounds; ++round) {
    const auto pool = SpawnPool<Counter>(*system, {.strategy = RouterStrategy::Using<CountedLogic>(&living), .size = 3},
                                         {}, &handled);
    std::atomic<int> sent{0};
    std::vector<std::thread> senders;
    for (int s = 0; s < kSenders; ++s) {
      senders.emplace_back([&] {
        for (int i = 0; i < kPerSender; ++i) {
          pool.Tell(Note{i});
          sent.fetch_add(1);
        }
      });
    }
    for (int change = 0; change < 4; ++change) {
      pool.Tell(AdjustPoolSize{.change = change % 2 == 0 ? 2 : -2});
    }
    // The pool ends in the middle of the messages.
    while (sent.load() < kSenders * kPerSender / 2) std::this_thread::yield();
    system->Stop(pool.untyped());
    for (std::thread& sender : senders) sender.join();
  }
  // A late message may wait in the mailbox of an actor that has ended. A dead letter that is found
  // after the workers have stopped is not published.
  ASSERT_TRUE(system->scheduler().dispatchers().AwaitQuiet(absl::InfiniteDuration()));
  EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());
  EXPECT_EQ(living.load(), 0);
  EXPECT_EQ(handled.load() + lost.load(), uint64_t{kSenders} * kPerSender * static_cast<uint64_t>(rounds));
  EXPECT_GT(handled.load(), 0u);
}

}  // namespace
}  // namespace fraktor
