// A40: five hundred actors fail, stop, restart and escalate at random, also in their hooks and
// constructors, and while their supervisors decide. After the storm all actors exist, none is
// suspended, and no message was lost.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {

using actor_internal::FindLiving;
using actor_internal::FindParent;
using actor_internal::kSuspendingGates;

namespace {

constexpr int kActors = 500;
constexpr int kChildren = 5;

int ParentOf(int id) { return (id - 1) / kChildren; }
std::string NameOf(int id) { return absl::StrCat("n", id); }

// A command for an actor. The code of the error tells its supervisor what to decide.
struct Ping {};
struct Fail {
  absl::StatusCode code;
  bool by_throwing;
};
// Comes from a child, in place of Terminated.
struct ChildGone {
  int id;
};

constexpr absl::StatusCode kVerdicts[] = {absl::StatusCode::kUnavailable, absl::StatusCode::kAborted,
                                          absl::StatusCode::kDataLoss, absl::StatusCode::kOutOfRange};

SupervisionDirective DirectiveOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return Resume();
    case absl::StatusCode::kDataLoss:
      return Stop();
    case absl::StatusCode::kOutOfRange:
      return Escalate();
    default:
      return Restart();
  }
}

// The state that all actors share.
class World {
 public:
  explicit World(Random random, bool has_delays) : with_delays(has_delays), random_(random) {}

  // The probability of a failure during the storm.
  bool Happens(double probability) {
    if (!storm.load()) return false;
    MutexLock lock(mutex_);
    return random_.Bernoulli(probability);
  }
  uint64_t Draw(uint64_t n) {
    MutexLock lock(mutex_);
    return random_.Uniform(n);
  }
  void SetRef(int id, ActorRef ref) {
    MutexLock lock(mutex_);
    refs_[static_cast<size_t>(id)] = ref;
  }
  ActorRef RefOf(int id) {
    MutexLock lock(mutex_);
    return refs_[static_cast<size_t>(id)];
  }
  void Complain(std::string text) {
    MutexLock lock(mutex_);
    complaints_.push_back(std::move(text));
  }
  std::vector<std::string> complaints() {
    MutexLock lock(mutex_);
    return complaints_;
  }

  const bool with_delays;
  std::atomic<bool> storm{false};
  std::atomic<int> instances{0};
  std::atomic<int> restarts{0};
  std::atomic<int64_t> sent{0};
  std::atomic<int64_t> handled{0};
  std::atomic<int64_t> lost{0};

 private:
  Mutex mutex_;
  Random random_ ABSL_GUARDED_BY(mutex_);
  std::vector<ActorRef> refs_ ABSL_GUARDED_BY(mutex_) = std::vector<ActorRef>(kActors);
  std::vector<std::string> complaints_ ABSL_GUARDED_BY(mutex_);
};

class Node final : public ActorInstance {
 public:
  Node(World* world, int id) : world_(*world), id_(id) {
    if (id_ != 0 && world_.Happens(0.02)) throw std::runtime_error("stillborn");
    world_.instances.fetch_add(1);
  }
  ~Node() override { world_.instances.fetch_sub(1); }

  absl::Status PreStart(ActorContext& context) override {
    world_.SetRef(id_, context.self());
    for (int child = FirstChild(); child < EndOfChildren(); ++child) {
      if (absl::Status spawned = Have(context, child); !spawned.ok()) return spawned;
      if (world_.Happens(0.005)) return absl::AbortedError("fell over in the middle of its start");
    }
    return absl::OkStatus();
  }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Ping>()) {
      world_.handled.fetch_add(1);
    } else if (const auto* fail = message.TryAs<Fail>()) {
      if (fail->by_throwing) throw std::runtime_error("thrown");
      return absl::Status(fail->code, "told to");
    } else if (const auto* gone = message.TryAs<ChildGone>()) {
      return Have(context, gone->id);
    } else {
      world_.Complain(absl::StrCat(id_, " got something else"));
    }
    return absl::OkStatus();
  }

  void PostStop(ActorContext&) override {
    if (world_.Happens(0.02)) throw std::runtime_error("dies badly");
  }
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override {
    world_.restarts.fetch_add(1);
    if (!KeepsChildren()) {
      if (absl::Status usual = ActorInstance::PreRestart(context, reason, message); !usual.ok()) return usual;
    }
    return world_.Happens(0.05) ? absl::InternalError("does not want to go") : absl::OkStatus();
  }
  absl::Status PostRestart(ActorContext& context, const absl::Status& reason) override {
    if (world_.Happens(0.03)) return absl::AbortedError("does not want to come back");
    // Children that were kept still exist: PreStart spawns the missing ones.
    return ActorInstance::PostRestart(context, reason);
  }

  const SupervisorStrategy& supervision() const override {
    static const SupervisorStrategy all({.scope = SupervisionScope::kAllForOne});
    static const SupervisorStrategy few({.max_restarts = 2, .window = absl::Seconds(1)});
    static const SupervisorStrategy slow({.backoff = {.min = absl::Milliseconds(1), .max = absl::Milliseconds(40)}});
    if (id_ % 7 == 3) return all;
    if (id_ % 7 == 4) return few;
    return id_ % 7 == 5 && world_.with_delays ? slow : SupervisorStrategy::Default();
  }
  SupervisionDirective OnChildFailure(ActorContext&, const Failure& failure) override {
    if (world_.Happens(0.05)) throw std::runtime_error("cannot decide");
    if (failure.cause == FailureCause::kInitialization) {
      const uint64_t draw = world_.Draw(10);
      return draw < 6 ? Restart() : draw < 8 ? Stop() : draw < 9 ? Resume() : Escalate();
    }
    if (failure.cause == FailureCause::kKilled) return Stop();
    return DirectiveOf(failure.error.code());
  }

 private:
  int FirstChild() const { return std::min(kActors, id_ * kChildren + 1); }
  int EndOfChildren() const { return std::min(kActors, id_ * kChildren + kChildren + 1); }
  bool KeepsChildren() const { return id_ % 3 == 1; }

  // The child exists, and is watched.
  absl::Status Have(ActorContext& context, int child) {
    ActorRef ref = context.Child(NameOf(child));
    if (ref.IsNoOne()) {
      absl::StatusOr<ActorRef> spawned = context.TrySpawn(*MakeProps<Node>({}, &world_, child), NameOf(child));
      if (ErrorKindOf<ActorErrorKind>(spawned.status()) == ActorErrorKind::kTerminating) return absl::OkStatus();
      if (!spawned.ok()) {
        world_.Complain(absl::StrCat(id_, " has no child ", child, ": ", spawned.status().ToString()));
        return spawned.status();
      }
      ref = *spawned;
    }
    return context.WatchWith(ref, ChildGone{child});
  }

  World& world_;
  const int id_;
};

ActorSystemOptions StormySystem() {
  ActorSystemOptions options;
  options.log_level = LogLevel::kOff;
  // A failure that is escalated to /user must not end the system.
  options.guardian_strategy.decider = [](const Failure&) { return Restart(); };
  return options;
}

// One event from outside.
void Strike(TestKit& kit, World& world) {
  const int id = static_cast<int>(world.Draw(kActors));
  const ActorRef actor = world.RefOf(id);
  const uint64_t what = world.Draw(20);
  if (what < 9) {
    world.sent.fetch_add(1);
    Tell(actor, Ping{});
  } else if (what < 16) {
    const absl::StatusCode code = kVerdicts[world.Draw(std::size(kVerdicts))];
    const bool by_throwing = world.Draw(5) == 0;
    Tell(actor, Fail{code, by_throwing});
  } else if (id == 0) {
    // Nobody would bring it back.
  } else if (what < 18) {
    Tell(actor, Kill{});
  } else if (what < 19) {
    Tell(actor, PoisonPill{});
  } else {
    kit.system().Stop(actor);
  }
}

// The invariants when the system has come to rest.
void CheckConsistent(TestKit& kit, World& world) {
  for (const std::string& complaint : world.complaints()) ADD_FAILURE() << complaint;
  const std::vector<ActorRef> living = FindLiving(kit.system().user_guardian(), 10 * kActors);
  EXPECT_EQ(living.size(), size_t{kActors + 1});
  EXPECT_EQ(world.instances.load(), kActors);
  for (const ActorRef actor : living) {
    EXPECT_EQ(actor.slot()->failures, 0) << kit.system().PathOf(actor) << " is suspended";
    EXPECT_EQ(actor.slot()->gate & kSuspendingGates, 0) << kit.system().PathOf(actor) << " is suspended";
    EXPECT_EQ(actor.slot()->leaving_children, 0u) << kit.system().PathOf(actor);
  }
  for (int id = 0; id < kActors; ++id) {
    const ActorRef actor = world.RefOf(id);
    ASSERT_TRUE(kit.IsAlive(actor)) << "actor " << id;
    ASSERT_EQ(FindParent(actor), id == 0 ? kit.system().user_guardian() : world.RefOf(ParentOf(id)));
  }
  const int64_t handled_before = world.handled.load();
  const int64_t on_the_way = world.sent.load() - handled_before - world.lost.load();
  EXPECT_EQ(on_the_way, 0) << "messages were lost, or came twice";
  for (int id = 0; id < kActors; ++id) Tell(world.RefOf(id), Ping{});
  kit.Settle();
  EXPECT_EQ(world.handled.load() - handled_before, kActors) << "somebody does not answer";
}

struct StormOptions {
  int rounds;
  int strikes;
};

void RunStorm(TestKit& kit, World& world, const StormOptions& options, const std::function<void()>& pause) {
  const EventSubscription listening = kit.system().events().Listen<AllDeadLetters>([&](const AllDeadLetters& letter) {
    if (letter.message.type == MessageTypeOf<Ping>()) world.lost.fetch_add(1);
  });
  const ActorRef top = kit.Spawn(*MakeProps<Node>({}, &world, 0), "top");
  kit.Settle();
  ASSERT_EQ(world.instances.load(), kActors);
  world.storm.store(true);
  for (int round = 0; round < options.rounds; ++round) {
    for (int strike = 0; strike < options.strikes; ++strike) Strike(kit, world);
    pause();
  }
  world.storm.store(false);
  pause();
  kit.Settle();
  if (world.with_delays) kit.Advance(absl::Seconds(10));
  CheckConsistent(kit, world);
  auto probe = kit.Probe();
  probe.Watch(top);
  kit.system().Stop(top);
  probe.ExpectTerminated(top);
  kit.Settle();
  EXPECT_EQ(world.instances.load(), 0);
  EXPECT_EQ(FindLiving(kit.system().user_guardian(), kActors).size(), 1u);
}

// A40
TEST(FailureStorm, EndsConsistentWithEverySchedule) {
  int restarts = 0;
  Simulate({.seeds = 100, .twice_every = 50, .each = {.kit = {.system = StormySystem()}}}, [&](Simulation& sim) {
    World world(sim.MakeRandom("world"), /*with_delays=*/true);
    Random pauses = sim.MakeRandom("pauses");
    // Sometimes a long one.
    RunStorm(sim, world, {.rounds = sim.seed() % 10 == 0 ? 10 : 2, .strikes = 40}, [&] {
      const uint64_t draw = pauses.Uniform(3);
      if (draw == 0) sim.Settle();
      if (draw == 1) sim.Advance(pauses.UniformDuration(absl::ZeroDuration(), absl::Milliseconds(20)));
    });
    restarts += world.restarts.load();
  });
  EXPECT_GT(restarts, 0);
}

struct Order {
  std::function<absl::Status(ActorContext&)> what;
};

// Executes commands, fails on replies, and keeps its children across restarts.
class Keeper final : public ActorInstance {
 public:
  explicit Keeper(int* pings) : pings_(*pings) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* order = message.TryAs<Order>()) return order->what(context);
    ++pings_;
    return absl::OkStatus();
  }
  absl::Status OnReply(ActorContext&, ActorRef, absl::StatusOr<Envelope*>) override {
    return absl::InternalError("the second failure");
  }
  absl::Status PreRestart(ActorContext&, const absl::Status&, Envelope*) override { return absl::OkStatus(); }
  absl::Status PostRestart(ActorContext&, const absl::Status&) override { return absl::OkStatus(); }

 private:
  int& pings_;
};

// Ends slowly, because many descendants end first.
class Ancestor final : public ActorInstance {
 public:
  explicit Ancestor(int descendants) : descendants_(descendants) {}
  absl::Status PreStart(ActorContext& context) override {
    return descendants_ == 0 ? absl::OkStatus() : context.TrySpawn(*MakeProps<Ancestor>({}, descendants_ - 1)).status();
  }
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }

 private:
  const int descendants_;
};

// A40: a second decision arrives while a restart waits for a child to end. The children have waited
// for both.
TEST(FailureStorm, TwoVerdictsInOneRestartLeaveNobodySuspended) {
  TestKit kit;
  int pings = 0;
  ActorRef child;
  ActorRef leaving;
  const ActorRef keeper = kit.Spawn(*MakeProps<Keeper>({}, &pings), "keeper");
  Tell(keeper, Order{[&](ActorContext& context) {
         child = context.TrySpawn(*MakeProps<Keeper>({}, &pings), "child").value();
         leaving = context.TrySpawn(*MakeProps<Ancestor>({}, 1000), "leaving").value();
         return absl::OkStatus();
       }});
  kit.Settle();
  kit.ExpectLog({.contains = "restarts after", .path = "/user/keeper"}, 2, [&] {
    Tell(keeper, Order{[&](ActorContext& context) {
           // Nobody replies. The error reaches OnReply although the actor is suspended by then.
           if (absl::Status asked = context.AskOnReply(ActorRef(), 1, absl::InfiniteDuration()).status(); !asked.ok()) {
             return asked;
           }
           context.Stop(leaving);
           return absl::InternalError("the first failure");
         }});
  });
  EXPECT_FALSE(kit.IsAlive(leaving));
  EXPECT_EQ(keeper.slot()->failures, 0);
  EXPECT_EQ(child.slot()->failures, 0);
  for (const ActorRef actor : {keeper, child}) Tell(actor, Ping{});
  kit.Settle();
  EXPECT_EQ(pings, 2);
}

// A40
TEST(FailureStorm, EndsConsistentWithThreads) {
  TestKit kit({.patience = absl::Minutes(5), .threads = 4, .system = StormySystem()});
  World world(Random(1), /*with_delays=*/false);
  RunStorm(kit, world, {.rounds = 20, .strikes = 200}, [] {});
  EXPECT_GT(world.restarts.load(), 0);
}

}  // namespace
}  // namespace fraktor
