// Messages of one sender to one recipient arrive in the order in which they were sent, by whichever
// way they go (A55). Actors and threads mix all ways at random: in virtual time with many seeds,
// and with threads. Some recipients end soon, and others take their slots.
//
// Each sender numbers everything that it sends. Messages may be lost in full mailboxes, but a
// recipient never sees the number of a sender fall. The text of a failure names the two ways.
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/dispatch/internal/guest_seat.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/router.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/router/routing_logic.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/send/internal/foreign_burst.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/testing/sanitized.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {
namespace {

constexpr int kMembers = 12;
constexpr int kStrangers = 2;
constexpr int kSenders = kMembers + kStrangers;
constexpr size_t kMayflies = 8;
constexpr std::string_view kFewWorkers = "few";

struct Received {};
struct Numbered {
  int sender = 0;
  int64_t number = 0;
  const char* way = "";

  uint64_t RoutingKey() const { return static_cast<uint64_t>(number); }
};
// The recipient sends.
struct Go {
  uint64_t seed = 0;
};

// The state of an actor or a thread that sends and receives. It outlives restarts. One turn or
// thread uses it at a time.
struct Member {
  int id = 0;
  int64_t sent = 0;
  struct Seen {
    int64_t number = -1;
    const char* way = "";
  };
  std::array<Seen, kSenders> seen = {};
  std::atomic<int64_t> handled = 0;  // Relaxed: a count, which the test reads from its own thread.
  int to_stash = 0;
  std::string text;
};

// All members, and what leads to them.
class World {
 public:
  struct Destination {
    ActorRef direct;
    std::vector<ActorRef> routers;  // Each has this one routee.
    std::string path;
  };

  Member& member(int id) { return members_[static_cast<size_t>(id)]; }
  std::vector<Destination>& destinations() { return destinations_; }
  Destination& Anybody(Random& random) { return destinations_[random.Uniform(destinations_.size())]; }
  ActorSystem& system() { return *system_; }
  void Attach(ActorSystem& system) {
    system_ = &system;
    for (int id = 0; id < kSenders; ++id) member(id).id = id;
  }
  // An actor that ends soon; others take its slot.
  ActorRef AnyMayfly(Random& random) {
    const size_t i = random.Uniform(kMayflies);
    MutexLock lock(mutex_);
    return mayflies_[i];
  }
  void SetMayfly(size_t i, ActorRef mayfly) {
    MutexLock lock(mutex_);
    mayflies_[i] = mayfly;
  }

  // Members send each other so many Go.
  bool TakeGo() { return gos_.fetch_sub(1, std::memory_order_relaxed) > 0; }
  void GiveGos(int64_t gos) { gos_.store(gos, std::memory_order_relaxed); }

  void Check(Member& recipient, const Numbered& message) {
    recipient.handled.fetch_add(1, std::memory_order_relaxed);
    Member::Seen& last = recipient.seen[static_cast<size_t>(message.sender)];
    if (message.number <= last.number) {
      MutexLock lock(mutex_);
      if (violations_.size() < 5) {
        violations_.push_back(absl::StrCat("message ", message.number, " of sender ", message.sender, " (", message.way,
                                           ") came after ", last.number, " (", last.way, "); the recipient is ",
                                           recipient.id, ": ", recipient.text));
      }
    }
    last = {message.number, message.way};
  }
  std::vector<std::string> violations() {
    MutexLock lock(mutex_);
    return violations_;
  }

 private:
  std::array<Member, kSenders> members_;
  std::vector<Destination> destinations_;
  ActorSystem* system_ = nullptr;
  std::atomic<int64_t> gos_{0};  // Relaxed: a limit that pairs with nothing.
  Mutex mutex_;
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mutex_);
  std::array<ActorRef, kMayflies> mayflies_ ABSL_GUARDED_BY(mutex_);
};

Numbered Next(Member& sender, const char* way) { return {.sender = sender.id, .number = sender.sent++, .way = way}; }

absl::Duration ShortTime(Random& random) {
  return random.UniformDuration(absl::Microseconds(10), absl::Milliseconds(3));
}

ActorRef ARouter(World::Destination& to, Random& random) { return to.routers[random.Uniform(to.routers.size())]; }

// A restart and a resume, by the decider of the guardian.
absl::Status FailAtTimes(uint64_t draw) {
  if (draw == 0) return absl::AbortedError("a member fails and is restarted");
  if (draw == 1) return absl::UnavailableError("a member fails and is resumed");
  return absl::OkStatus();
}

// Decides otherwise for each message.
class Fickle final : public OverflowPolicy {
 public:
  explicit Fickle(OverflowNeeds needs) : needs_(needs) {}
  std::string_view name() const noexcept override { return "Fickle"; }
  OverflowNeeds needs() const noexcept override { return needs_; }
  OverflowDecision Decide(const OverflowCase& full) const override {
    const auto* const numbered = full.message.TryAs<Numbered>();
    if (numbered != nullptr && numbered->number % 3 == 0) return OverflowDecision::Reject();
    return needs_ == OverflowNeeds::kLine ? OverflowDecision::Hold() : OverflowDecision::DropOldest();
  }
  bool MayReplace(const Envelope&, const Envelope& oldest) const override {
    const auto* const numbered = oldest.TryAs<Numbered>();
    return numbered != nullptr && numbered->number % 3 == 1;
  }

 private:
  const OverflowNeeds needs_;
};

MailboxOptions MailboxOf(int id) {
  MailboxOptions options{.capacity = static_cast<size_t>(2 + id % 3), .push_timeout = absl::Milliseconds(1 + id % 3)};
  switch (id % 8) {
    case 0:
    case 1:
      return {};
    case 2:
      options.overflow = OverflowStrategy::kDropOldest;
      break;
    case 3:
      options.overflow = OverflowStrategy::kBlockProducer;
      break;
    case 4:
      options.overflow_policy = std::make_shared<Fickle>(OverflowNeeds::kLine);
      break;
    case 5:
      options.overflow_policy = std::make_shared<Fickle>(OverflowNeeds::kQueue);
      break;
    case 6:
      options.overflow = OverflowStrategy::kDropNewest;
      break;
    default:
      options.overflow = OverflowStrategy::kBlockProducer;
      options.push_timeout = absl::Milliseconds(20);
  }
  return options;
}

// The ways that actors and threads share.
void SendAnyhow(World& world, Member& self, World::Destination& to, Random& random) {
  switch (random.Uniform(6)) {
    case 0:
      return Tell(to.direct, Next(self, "Tell"));
    case 1:
      return TryTell(to.direct, Next(self, "TryTell")).IgnoreError();
    case 2:
      return Tell(ARouter(to, random), Next(self, "Tell of a router"));
    case 3:
      return Tell(ARouter(to, random), Broadcast(Next(self, "Broadcast of a router")));
    case 4:
      return Tell(ARouter(to, random), Keyed(random.Next(), Next(self, "Keyed of a router")));
    default:
      world.system().Ask<Received>(to.direct, Next(self, "Ask of the system"), ShortTime(random)).Cancel();
  }
}

void SendMany(World& world, Member& self, ActorContext& context, Random& random);

Task<void> SendLater(World* world, Member* self, ActorContext* context, uint64_t seed) {
  Random random(seed);
  auto delay = context->Delay(ShortTime(random));
  static_cast<void>(co_await delay);
  SendMany(*world, *self, *context, random);
}

Task<void> AskAndSend(World* world, Member* self, ActorContext* context, uint64_t seed) {
  Random random(seed);
  auto asking = context->Ask<Received>(world->Anybody(random).direct, Next(*self, "Ask in a task"), ShortTime(random));
  static_cast<void>(co_await asking);
  SendMany(*world, *self, *context, random);
}

// Sends in a turn of an actor.
void SendMany(World& world, Member& self, ActorContext& context, Random& random) {
  for (uint64_t i = 1 + random.Uniform(4); i > 0; --i) {
    World::Destination& to = world.Anybody(random);
    switch (random.Uniform(10)) {
      case 0:
        for (uint64_t n = random.Uniform(random.Uniform(8) == 0 ? 100 : 12); n > 0; --n) {
          context.Tell(to.direct, Next(self, "one of many"));
        }
        break;
      case 1:
        for (uint64_t n = random.Uniform(12); n > 0; --n) SendAnyhow(world, self, to, random);
        break;
      case 2:
        Select(context, to.path).Tell(Next(self, "Tell of a selection"));
        break;
      case 3:
        context.Ask<Received>(to.direct, Next(self, "Ask"), ShortTime(random)).Cancel();
        break;
      case 4:
        context.Ask<Received>(ARouter(to, random), Next(self, "Ask of a router"), ShortTime(random)).Cancel();
        break;
      case 5:
        context.Tell(context.self(), Next(self, "Tell of itself"));
        break;
      case 6:
        if (random.Uniform(4) == 0) context.Flush();
        for (int target = 0; target < 3; ++target) {
          const ActorRef mayfly = world.AnyMayfly(random);
          for (uint64_t n = random.Uniform(20); n > 0; --n) context.Tell(mayfly, Next(self, "Tell of a mayfly"));
        }
        break;
      case 7:
        if (world.TakeGo()) context.Tell(to.direct, Go{random.Next()});
        break;
      default:
        context.Tell(to.direct, Next(self, "Tell of the context"));
    }
  }
}

// Ends after some messages.
class Mayfly final : public ActorInstance {
 public:
  Mayfly(World* world, std::shared_ptr<Member> self, int64_t limit)
      : world_(*world), self_(std::move(self)), limit_(limit) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const auto* const numbered = message.TryAs<Numbered>();
    if (numbered == nullptr) return context.Unhandled(message);
    world_.Check(*self_, *numbered);
    if (self_->handled.load(std::memory_order_relaxed) == limit_) context.Stop();
    return FailAtTimes(static_cast<uint64_t>(numbered->number) % 50);
  }

 private:
  World& world_;
  const std::shared_ptr<Member> self_;
  const int64_t limit_;
};

void SpawnMayfly(World& world, Random& random) {
  auto self = std::make_shared<Member>();
  self->id = 1000;
  const int mailbox = static_cast<int>(random.Uniform(16));
  self->text = absl::StrCat("a mayfly, mailbox ", mailbox);
  PropsOptions options{.mailbox = mailbox < 8 ? MailboxOf(mailbox) : MailboxOptions()};
  if (random.Uniform(12) == 0) options.dispatcher = DispatcherChoice::kPinned;
  if (random.Uniform(4) == 0) options.dispatcher = kFewWorkers;
  const size_t i = random.Uniform(kMayflies);
  const auto spawned = world.system().TrySpawn(
      *MakeProps<Mayfly>(options, &world, std::move(self), static_cast<int64_t>(1 + random.Uniform(40))));
  if (spawned.ok()) world.SetMayfly(i, *spawned);
}

// Sends on a thread that is no worker.
void SendFromOutside(World& world, Member& self, Random& random) {
  if (random.Uniform(3) == 0) SpawnMayfly(world, random);
  switch (random.Uniform(6)) {
    case 4:
      for (int target = 0; target < 4; ++target) {
        const ActorRef mayfly = world.AnyMayfly(random);
        for (uint64_t n = random.Uniform(10); n > 0; --n) Tell(mayfly, Next(self, "foreign Tell of a mayfly"));
      }
      return;
    case 0: {
      actor_internal::ForeignBurst burst;
      for (uint64_t targets = 1 + random.Uniform(3); targets > 0; --targets) {
        World::Destination& to = world.Anybody(random);
        for (uint64_t n = random.Uniform(12); n > 0; --n) {
          burst.Send(to.direct, MakeEnvelope<Numbered>(ActorRef(), Next(self, "a foreign burst")));
        }
      }
      return;
    }
    case 1: {
      const actor_internal::GuestStay stay(world.system().scheduler().dispatchers().default_pool().guest_seat());
      for (int i = 0; i < 5; ++i) SendAnyhow(world, self, world.Anybody(random), random);
      Tell(world.Anybody(random).direct, Go{random.Next()});
      return;
    }
    case 2:
      return Select(world.system(), world.Anybody(random).path).Tell(Next(self, "foreign Tell of a selection"));
    case 3:
      return Tell(world.Anybody(random).direct, Go{random.Next()});
    default: {
      World::Destination& to = world.Anybody(random);
      for (uint64_t n = random.Uniform(6); n > 0; --n) SendAnyhow(world, self, to, random);
    }
  }
}

// Stashes, fails, forwards, and runs tasks.
class Keeper final : public ActorInstance {
 public:
  Keeper(World* world, int id) : world_(*world), self_(world->member(id)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* go = message.TryAs<Go>()) {
      Random random(go->seed);
      SendMany(world_, self_, context, random);
      if (random.Uniform(3) == 0) return context.Run(SendLater(&world_, &self_, &context, random.Next()));
      if (random.Uniform(3) == 0) return context.Run(AskAndSend(&world_, &self_, &context, random.Next()));
      return FailAtTimes(random.Uniform(20));
    }
    auto* const numbered = message.TryAs<Numbered>();
    if (numbered == nullptr) return context.Unhandled(message);
    // All messages are stashed until all come back.
    if (self_.to_stash > 0) {
      const absl::Status stashed = Stash(context);
      if (--self_.to_stash == 0) UnstashAll(context);
      return stashed;
    }
    world_.Check(self_, *numbered);
    Random random(static_cast<uint64_t>(numbered->number) * kSenders + static_cast<uint64_t>(numbered->sender));
    switch (random.Uniform(12)) {
      case 0:
        self_.to_stash = static_cast<int>(1 + random.Uniform(6));
        break;
      case 1:
        *numbered = Next(self_, "Forward");
        context.Forward(world_.Anybody(random).direct);
        break;
      case 2:
        SendMany(world_, self_, context, random);
        break;
      default:
        break;
    }
    return FailAtTimes(random.Uniform(40));
  }
  absl::Status PreRestart(ActorContext& context, const absl::Status&, Envelope*) override {
    // A restart brings back what is stashed.
    self_.to_stash = 0;
    Random random(static_cast<uint64_t>(self_.sent));
    SendMany(world_, self_, context, random);
    return absl::OkStatus();
  }

 private:
  World& world_;
  Member& self_;
};

// Waits in the middle of handlers. `Handling` is Task or InterleavingTask.
template <template <class> class Handling>
class Waiter final : public Actor<Waiter<Handling>, Numbered, Go> {
 public:
  using Context = TypedContext<Numbered, Go>;

  Waiter(World* world, int id) : world_(*world), self_(world->member(id)) {}

  Handling<absl::Status> On(Context& context, Go& go) {
    Random random(go.seed);
    SendMany(world_, self_, context, random);
    if (random.Uniform(3) == 0) {
      auto delay = context.Delay(ShortTime(random));
      static_cast<void>(co_await delay);
      SendMany(world_, self_, context, random);
    }
    co_return FailAtTimes(random.Uniform(20));
  }
  Handling<absl::Status> On(Context& context, Numbered& numbered) {
    world_.Check(self_, numbered);
    Random random(static_cast<uint64_t>(numbered.number) * kSenders + static_cast<uint64_t>(numbered.sender));
    if (random.Uniform(10) == 0) {
      auto delay = context.Delay(ShortTime(random));
      static_cast<void>(co_await delay);
    }
    if (random.Uniform(12) == 0) SendMany(world_, self_, context, random);
    co_return FailAtTimes(random.Uniform(40));
  }

 private:
  World& world_;
  Member& self_;
};

template <class T>
using Waits = Task<T>;
template <class T>
using Interleaves = InterleavingTask<T>;

// Always the only routee.
class FirstOnly final : public RoutingLogic {
 public:
  RoutingChoice Choose(const RoutingCall&) const override { return RoutingChoice::One(0); }
};

PropsPtr MakeMember(World& world, int id) {
  static constexpr const char* kClasses[] = {"a keeper", "waiting", "interleaving"};
  PropsOptions options{.mailbox = MailboxOf(id)};
  if (id % 4 == 1) options.dispatcher = kFewWorkers;
  world.member(id).text = absl::StrCat(kClasses[id % 3], ", mailbox ", id % 8);
  switch (id % 3) {
    case 0:
      return MakeProps<Keeper>(options, &world, id);
    case 1:
      return MakeTypedProps<Waiter<Waits>>(options, &world, id);
    default:
      return MakeTypedProps<Waiter<Interleaves>>(options, &world, id);
  }
}

void Spawn(World& world, ActorSystem& system) {
  world.Attach(system);
  for (int id = 0; id < kMembers; ++id) {
    const std::string name = absl::StrCat("m", id);
    World::Destination to{
        .direct = system.TrySpawn(*MakeMember(world, id), name).value(), .routers = {}, .path = "/user/" + name};
    const RouterStrategy strategies[] = {
        RouterStrategy::RoundRobin(),      RouterStrategy::Random(),
        RouterStrategy::Broadcasting(),    RouterStrategy::ConsistentHashing({.virtual_nodes = 2}),
        RouterStrategy::SmallestMailbox(), RouterStrategy::Using<FirstOnly>()};
    for (size_t i : {0, 1}) {
      const RouterStrategy& strategy = strategies[(static_cast<size_t>(id) + 3 * i) % std::size(strategies)];
      const PropsPtr group = MakeGroup({.strategy = strategy, .routees = {to.direct}}).value();
      to.routers.push_back(system.TrySpawn(*group).value());
    }
    world.destinations().push_back(std::move(to));
  }
}

TestKitOptions KitOptions() {
  TestKitOptions options;
  options.patience = absl::Seconds(60);
  options.system.log_level = LogLevel::kOff;
  options.system.dead_letters.log_limit = 0;
  options.system.dispatchers = {{.name = std::string(kFewWorkers), .workers = 1, .budget = 3}};
  options.system.guardian_strategy.decider = [](const Failure& failure) {
    return failure.error.code() == absl::StatusCode::kUnavailable ? Resume() : Restart();
  };
  return options;
}

int64_t Handled(World& world) {
  int64_t sum = 0;
  for (int id = 0; id < kMembers; ++id) sum += world.member(id).handled.load(std::memory_order_relaxed);
  return sum;
}

// A55
TEST(Order, HoldsOnAllWaysUnderEachSchedule) {
  const SimulationOptions each{.kit = KitOptions()};
  Simulate({.seeds = 1000, .twice_every = 100, .each = each}, [](Simulation& sim) {
    World world;
    Spawn(world, sim.system());
    world.GiveGos(40);
    Random random = sim.MakeRandom("threads");
    for (int i = 0; i < 40; ++i) {
      SendFromOutside(world, world.member(kMembers), random);
      // Some messages come in the middle of a schedule.
      uint64_t steps = random.Uniform(12);
      if (steps > 0) sim.RunUntil([&] { return steps-- == 0; }, absl::Milliseconds(1));
    }
    sim.Advance(absl::Seconds(1));
    EXPECT_GT(Handled(world), 0);
    EXPECT_EQ(world.violations(), std::vector<std::string>());
  });
}

// A55
TEST(Order, HoldsOnAllWaysWithThreads) {
  constexpr int kSends = kIsSanitized ? 1'000 : 5'000;
  TestKitOptions options = KitOptions();
  options.threads = 2;
  World world;
  TestKit kit(options);
  Spawn(world, kit.system());
  world.GiveGos(2 * kSends);
  std::vector<std::thread> threads;
  for (int stranger = 0; stranger < kStrangers; ++stranger) {
    threads.emplace_back([&world, stranger] {
      Random random(static_cast<uint64_t>(stranger) + 1);
      for (int i = 0; i < kSends; ++i) SendFromOutside(world, world.member(kMembers + stranger), random);
    });
  }
  for (std::thread& thread : threads) thread.join();
  kit.Settle();
  EXPECT_GT(Handled(world), kSends);
  EXPECT_EQ(world.violations(), std::vector<std::string>());
}

}  // namespace
}  // namespace fraktor
