// A system that is destroyed leaves nothing behind, in any state of its actors. The tests count
// instances and messages; AddressSanitizer counts every byte.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/actor_subscriber.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define FRAKTOR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define FRAKTOR_SANITIZED 1
#endif
#endif

#ifndef FRAKTOR_SANITIZED
namespace {
// The allocations that have not been freed.
std::atomic<int64_t> allocated{0};
}  // namespace

void* operator new(size_t size) {
  allocated.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) allocated.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
#endif

namespace fraktor {

using system_internal::DiarySink;

namespace {

#ifndef FRAKTOR_SANITIZED
// A program that waits for the end with a limit, again and again.
TEST(SystemLeaks, FuturesOfTheEndLeaveNothingWhenTheyAreDropped) {
  auto toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  options.log_level = LogLevel::kOff;
  auto system = ActorSystem::Create(options).value();
  std::vector<Future<void>> kept;
  for (int i = 0; i < 100; ++i) kept.push_back(system->WhenTerminated());
  const int64_t before = allocated.load();
  for (int i = 0; i < 10'000; ++i) static_cast<void>(system->WhenTerminated());
  EXPECT_LT(allocated.load() - before, 500);
  EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());
  for (Future<void>& future : kept) EXPECT_TRUE(future.Take().ok());
}
#endif

using Token = std::shared_ptr<int>;

enum class State {
  kIdle,
  kHasMail,
  kHasStash,
  kHasQuestion,
  kHasFuture,
  kHasTimer,
  kWatches,
  kListens,
  kHasFailed,        // The actor waits for a restart in an hour.
  kParentHasFailed,  // The actor is suspended until then.
  kCannotStart,      // The actor waits for another start.
  kSendsToFullOne,   // The actor is suspended until there is room.
  kStops,            // The actor stops, with a child and messages.
  kIsAwaiting,       // A handler waits for an hour.
  kAsksInATask,      // A task waits for a reply.
};
constexpr int kStates = 15;

struct Enter {
  State state;
  Token token;
  ActorRef other;
};

std::atomic<int64_t> alive{0};

class Counted {
 public:
  Counted() { alive.fetch_add(1, std::memory_order_relaxed); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { alive.fetch_sub(1, std::memory_order_relaxed); }
};

// Restarts are slow.
const SupervisorStrategy& InAnHour() {
  static const auto& strategy = *new SupervisorStrategy(
      {.backoff = {.min = absl::Hours(1), .max = absl::Hours(1)}, .decider = [](const Failure&) { return Restart(); }});
  return strategy;
}

class NeverStarts final : public ActorInstance {
 public:
  explicit NeverStarts(Token token) : token_(std::move(token)) {}
  absl::Status PreStart(ActorContext&) override { return absl::UnavailableError("not yet"); }
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }

 private:
  Counted counted_;
  Token token_;
};

Task<void> AskAndKeep(ActorContext& context, ActorRef other, Token token) {
  auto asking = context.Ask<int>(other, Token(token), absl::Hours(1));
  static_cast<void>(co_await asking);
}

class Citizen final : public ActorInstance {
 public:
  absl::Status PreRestart(ActorContext&, const absl::Status&, Envelope*) override { return absl::OkStatus(); }
  const SupervisorStrategy& supervision() const override { return InAnHour(); }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    auto* const enter = message.TryAs<Enter>();
    if (enter == nullptr) {
      if (stashes_) stash_.push_back(context.Stash());
      return absl::OkStatus();
    }
    token_ = enter->token;
    const ActorRef other = enter->other;
    switch (enter->state) {
      case State::kIdle:
      case State::kIsAwaiting:
      case State::kCannotStart:
        return absl::OkStatus();
      case State::kHasMail:
        for (int i = 0; i < 3; ++i) context.Tell(context.self(), Token(token_));
        return absl::OkStatus();
      case State::kHasStash:
        stashes_ = true;
        for (int i = 0; i < 3; ++i) context.Tell(context.self(), Token(token_));
        return absl::OkStatus();
      case State::kHasQuestion:
        return context.AskOnReply(other, Token(token_), absl::Hours(1)).status();
      case State::kHasFuture:
        answer_ = context.Ask<int>(other, Token(token_), absl::Hours(1));
        return absl::OkStatus();
      case State::kHasTimer:
        return context.system()
            .toolbox()
            .ScheduleAfter(absl::Hours(1), [self = context.self()] { Tell(self, 1); })
            .status();
      case State::kWatches: {
        const absl::Status watches = context.Watch(other);
        return watches.ok() ? context.WatchWith(context.parent(), Token(token_)) : watches;
      }
      case State::kListens:
        return SubscribeActor<UnhandledMessage>(context.system().events(), context.self()).status();
      case State::kHasFailed:
        return absl::InternalError("broken");
      case State::kParentHasFailed: {
        const absl::StatusOr<ActorRef> child = context.TrySpawn(PropsOf<Citizen>());
        if (child.ok()) context.Tell(*child, Token(token_));
        return absl::InternalError("broken");
      }
      case State::kSendsToFullOne:
        for (int i = 0; i < 3; ++i) context.Tell(other, Token(token_));
        context.Tell(context.self(), Token(token_));
        return absl::OkStatus();
      case State::kStops:
        context.Tell(context.TrySpawn(PropsOf<Citizen>()).value(), Token(token_));
        context.Tell(context.self(), Token(token_));
        context.Stop();
        return absl::OkStatus();
      case State::kAsksInATask:
        return context.Run(AskAndKeep(context, other, token_));
    }
    return absl::OkStatus();
  }

 private:
  Counted counted_;
  Token token_;
  bool stashes_ = false;
  std::vector<EnvelopePtr> stash_;
  Future<int> answer_;
};

class Waiter : public Actor<Waiter, Enter> {
 public:
  Task<void> On(Context& context, Enter enter) {
    const Token kept = enter.token;
    auto delay = context.Delay(absl::Hours(1));
    static_cast<void>(co_await delay);
  }

 private:
  Counted counted_;
};

struct Populate {
  int actors;
  Token token;
};

class Town final : public ActorInstance {
 public:
  const SupervisorStrategy& supervision() const override { return InAnHour(); }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const auto* const populate = message.TryAs<Populate>();
    if (populate == nullptr) return absl::OkStatus();
    const Token& token = populate->token;
    const PropsPtr unlucky = MakeProps<NeverStarts>({}, token);
    const PropsPtr small =
        MakeProps<Citizen>({.mailbox = {.capacity = 2, .overflow = OverflowStrategy::kBlockProducer}});
    // The target waits for a restart, so its mailbox fills up.
    const ActorRef full = context.TrySpawn(*small).value();
    context.Tell(full, Enter{State::kHasFailed, token, {}});
    const ActorRef silent = context.TrySpawn(PropsOf<Citizen>()).value();
    for (int i = 0; i < populate->actors; ++i) {
      const State state = static_cast<State>(i % kStates);
      const ActorProps& props = state == State::kIsAwaiting    ? TypedPropsOf<Waiter>()
                                : state == State::kCannotStart ? *unlucky
                                                               : PropsOf<Citizen>();
      const absl::StatusOr<ActorRef> actor = context.TrySpawn(props);
      if (!actor.ok()) return actor.status();
      context.Tell(*actor, Enter{state, token, state == State::kSendsToFullOne ? full : silent});
    }
    return absl::OkStatus();
  }

 private:
  Counted counted_;
};

struct Plan {
  int actors;
  bool settles;    // All actors run before the system is destroyed.
  int64_t steps;   // The steps that the system may take to end by itself.
  bool told_more;  // There are messages that no actor has handled.
};

void Live(const Plan& plan) {
  const Token token = std::make_shared<int>(0);
  DiarySink sink;
  {
    const auto toolbox = LocalToolbox::Make({.max_timers = 1 << 20, .max_steps = plan.steps}).value();
    {
      ActorSystemOptions options;
      options.toolbox = toolbox.get();
      options.log_sink = &sink;
      options.log_level = LogLevel::kOff;
      options.dead_letters.log_limit = 0;
      options.shutdown_timeout = absl::ZeroDuration();
      const auto system = ActorSystem::Create(options).value();
      std::vector<ActorRef> towns;
      for (int i = 0; i < 10; ++i) {
        towns.push_back(system->TrySpawn(PropsOf<Town>()).value());
        Tell(towns.back(), Populate{plan.actors / 10, token});
      }
      if (plan.settles) {
        while (!toolbox->RunUntilIdle().ok()) {
        }
        // Except the actors that have stopped or were not made.
        EXPECT_GE(alive.load(), plan.actors * 9 / 10);
      }
      if (plan.told_more) {
        for (const ActorRef town : towns) {
          Tell(town, Token(token));
          Tell(town, Populate{kStates, token});
        }
        system->Stop(towns[0]);
        system->Stop(towns[1]);
      }
    }
    EXPECT_EQ(alive.load(), 0);
    EXPECT_EQ(token.use_count(), 1);
    // Timers belong to the toolbox. They fire without an effect.
    while (!toolbox->RunFor(absl::Hours(3)).ok()) {
    }
  }
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(token.use_count(), 1);
}

// GRD-6
TEST(SystemLeaks, ThereAreNoneWhenAHundredThousandActorsGoInTheMiddleOfThings) {
  Live({.actors = 100'000, .settles = true, .steps = 1, .told_more = true});
}

// GRD-6
TEST(SystemLeaks, ThereAreNoneWhereverTheSystemIsWhenItGoes) {
  for (const int64_t steps : {1, 2, 3, 5, 10, 30, 100, 1000}) {
    for (const bool settles : {false, true}) {
      Live({.actors = 1500, .settles = settles, .steps = steps, .told_more = settles});
    }
  }
  Live({.actors = 1500, .settles = true, .steps = 100'000'000, .told_more = false});
}

// GRD-6
TEST(SystemLeaks, ThereAreNoneWhenThreadsAreStoppedAnywhere) {
  const Token token = std::make_shared<int>(0);
  for (int round = 0; round < 10; ++round) {
    const auto toolbox = StdToolbox::Make({}).value();
    ActorSystemOptions options;
    options.toolbox = toolbox.get();
    options.workers = 2;
    options.log_level = LogLevel::kOff;
    options.dead_letters.log_limit = 0;
    options.shutdown_timeout = absl::ZeroDuration();
    auto system = ActorSystem::Create(options).value();
    for (int i = 0; i < 4; ++i) {
      Tell(system->TrySpawn(PropsOf<Town>()).value(), Populate{round * 50, token});
    }
    system.reset();
    ASSERT_EQ(alive.load(), 0);
    ASSERT_EQ(token.use_count(), 1);
  }
}

}  // namespace
}  // namespace fraktor
