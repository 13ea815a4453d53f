// Asks, futures and coroutines.
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/dispatch/blocking_pool.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/pattern/start_task.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::storm {
namespace {

absl::Duration RandomTimeout(Random& random) {
  return random.UniformDuration(absl::Milliseconds(1), absl::Milliseconds(25));
}

Question MakeQuestion(Deed& deed, const Acquaintance& to) {
  return Question{deed.world().FreeToken(), deed.person.life().NextPlace(to), deed.random.Next()};
}

absl::Status AskOnReply(Deed& deed) {
  // A typed actor has another form of AskOnReply.
  if (deed.person.life().is_typed) return absl::OkStatus();
  const Acquaintance to = deed.Anybody();
  absl::StatusOr<ActorRef> ask = deed.context.AskOnReply(to.ref, MakeQuestion(deed, to), RandomTimeout(deed.random));
  if (ask.ok()) deed.person.life().asked.emplace(*ask, Counted(deed.world().ledger().open_asks));
  return absl::OkStatus();
}

enum class Then : uint8_t { kNothing, kFail, kAskAgain };

Task<void> AskInTask(Person* person, ActorContext* context, Acquaintance to, uint64_t seed, Then then) {
  World& world = person->world();
  const Counted frame(world.ledger().frames);
  const Counted open(world.ledger().open_asks);
  Random random(seed);
  for (int i = 0; i < (then == Then::kAskAgain ? 3 : 1); ++i) {
    auto asking = context->Ask<Answer>(to.ref, Question{world.FreeToken(), person->life().NextPlace(to), random.Next()},
                                       RandomTimeout(random));
    absl::StatusOr<Answer> answer = co_await asking;
    const Person::Inside inside(*person);
    if (then == Then::kFail && !answer.ok()) throw std::runtime_error(answer.status().ToString());
  }
}

absl::Status BeginAsk(Deed& deed, const Acquaintance& to, Then then) {
  deed.world().ledger().asks.fetch_add(1, std::memory_order_relaxed);
  return deed.context.Run(AskInTask(&deed.person, &deed.context, to, deed.random.Next(), then));
}

absl::Status AskInATask(Deed& deed) { return BeginAsk(deed, deed.Anybody(), Then::kNothing); }
absl::Status AskAgainAndAgain(Deed& deed) { return BeginAsk(deed, deed.Anybody(), Then::kAskAgain); }
// The error of another actor becomes the failure of this one.
absl::Status AskAndFailWithIt(Deed& deed) { return BeginAsk(deed, deed.Anybody(), Then::kFail); }
absl::Status AskOneself(Deed& deed) { return BeginAsk(deed, {deed.context.self()}, Then::kNothing); }

absl::Status AskAndDrop(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  Future<Answer> dropped = deed.context.Ask<Answer>(to.ref, MakeQuestion(deed, to), RandomTimeout(deed.random));
  if (deed.random.Bernoulli(0.5)) dropped.Cancel();
  return absl::OkStatus();
}

absl::Status AskAndKeep(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  std::vector<Future<Answer>>& kept = deed.person.kept();
  if (kept.size() > 8) kept.clear();
  kept.push_back(deed.context.Ask<Answer>(to.ref, MakeQuestion(deed, to), RandomTimeout(deed.random)));
  return absl::OkStatus();
}

absl::Status AskThroughTheSystem(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  // The sender is /temp, and not this actor: the message has no place in this actor's order.
  Question question = MakeQuestion(deed, to);
  question.place = {};
  if (deed.random.Bernoulli(0.5)) {
    deed.context.system().Ask<Answer>(to.ref, std::move(question), RandomTimeout(deed.random)).Cancel();
    return absl::OkStatus();
  }
  const absl::StatusOr<Answer> answer =
      deed.context.system().AskAndWait<Answer>(to.ref, std::move(question), absl::Milliseconds(3));
  if (answer.ok() && !deed.person.life().may_block) {
    deed.world().ledger().Violate("a worker does not wait", "AskAndWait on a worker had a reply");
  }
  return absl::OkStatus();
}

absl::Status PipeAnswer(Deed& deed) {
  const Acquaintance asked = deed.Anybody();
  World* const world = &deed.world();
  Future<Answer> asking = deed.context.Ask<Answer>(asked.ref, MakeQuestion(deed, asked), RandomTimeout(deed.random));
  Future<Piped> mapped = std::move(asking).Map([world](const Answer&) { return Piped{world->FreeToken()}; });
  PipeTo(deed.context, std::move(mapped), deed.random.Bernoulli(0.5) ? deed.context.self() : deed.Anybody().ref);
  return absl::OkStatus();
}

Task<Piped> Slowly(World* world, absl::Duration pause) {
  const Counted frame(world->ledger().frames);
  Future<void> pausing = SleepFor(world->system().toolbox(), pause);
  static_cast<void>(co_await pausing);
  co_return Piped{world->FreeToken()};
}

absl::Status PipeTask(Deed& deed) {
  const absl::Duration pause = deed.random.UniformDuration(absl::ZeroDuration(), absl::Milliseconds(3));
  Future<Piped> slow = StartTask(deed.context.system(), Slowly(&deed.world(), pause));
  if (deed.random.Bernoulli(0.3)) slow = WithTimeout(deed.context.system().toolbox(), std::move(slow), pause / 2);
  if (deed.random.Bernoulli(0.2)) return absl::OkStatus();
  PipeTo(deed.context, std::move(slow), deed.Anybody().ref);
  return absl::OkStatus();
}

// The threads of the system for blocking work.
struct Errands {
  explicit Errands(ActorSystem& system)
      : pool(BlockingPool::Start({.name = "errands", .max_threads = 2}, system.toolbox()).value()) {}
  std::unique_ptr<BlockingPool> pool;
};

Task<void> RunErrand(Person* person, ActorContext* context) {
  World* const world = &person->world();
  const Counted frame(world->ledger().frames);
  auto running = RunBlocking(*context->system().Extension<Errands>().pool, [world] { return world->FreeToken(); });
  absl::StatusOr<Token> token = co_await running;
  const Person::Inside inside(*person);
}

absl::Status RunAnErrand(Deed& deed) { return deed.context.Run(RunErrand(&deed.person, &deed.context)); }

// With stop tokens.

Task<void> AskUntilStopped(Person* person, ActorContext* context, Acquaintance to, uint64_t seed) {
  World& world = person->world();
  const Counted frame(world.ledger().frames);
  const Counted open(world.ledger().open_asks);
  Random random(seed);
  auto asking = context->Ask<Answer>(to.ref, Question{world.FreeToken(), person->life().NextPlace(to), random.Next()},
                                     RandomTimeout(random), world.StopToken(random));
  absl::StatusOr<Answer> answer = co_await asking;
  const Person::Inside inside(*person);
}

absl::Status AskWithStopToken(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.world().ledger().asks.fetch_add(1, std::memory_order_relaxed);
  return deed.context.Run(AskUntilStopped(&deed.person, &deed.context, to, deed.random.Next()));
}

absl::Status AskAndKeepWithStopToken(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  std::vector<Future<Answer>>& kept = deed.person.kept();
  if (kept.size() > 8) kept.clear();
  kept.push_back(deed.context.Ask<Answer>(to.ref, MakeQuestion(deed, to), RandomTimeout(deed.random),
                                          deed.world().StopToken(deed.random)));
  return absl::OkStatus();
}

Task<void> RunErrandUntilStopped(Person* person, ActorContext* context, std::stop_token stop) {
  World* const world = &person->world();
  const Counted frame(world->ledger().frames);
  auto running = RunBlocking(*context->system().Extension<Errands>().pool, stop, [world](const std::stop_token& token) {
    for (int i = 0; i < 10 && !token.stop_requested(); ++i) std::this_thread::yield();
    return world->FreeToken();
  });
  absl::StatusOr<Token> token = co_await running;
  const Person::Inside inside(*person);
}

absl::Status RunAnErrandWithStopToken(Deed& deed) {
  return deed.context.Run(RunErrandUntilStopped(&deed.person, &deed.context, deed.world().StopToken(deed.random)));
}

Task<void> SleepUntilStopped(Person* person, ActorContext* context, std::stop_token stop) {
  const Counted frame(person->world().ledger().frames);
  auto sleeping = WithStop(context->Delay(absl::Milliseconds(5)), stop);
  static_cast<void>(co_await sleeping);
  const Person::Inside inside(*person);
}

absl::Status SleepWithStopToken(Deed& deed) {
  return deed.context.Run(SleepUntilStopped(&deed.person, &deed.context, deed.world().StopToken(deed.random)));
}

absl::Status RequestAStop(Deed& deed) {
  deed.world().RequestStop(deed.random);
  return absl::OkStatus();
}

// Through a circuit breaker.

Task<void> AskBehindBreaker(Person* person, ActorContext* context, Acquaintance to, uint64_t seed) {
  World& world = person->world();
  const Counted frame(world.ledger().frames);
  const Counted open(world.ledger().open_asks);
  Random random(seed);
  bool is_called = false;
  auto calling = context->system().Extension<Breaker>().breaker->Call([&] {
    is_called = true;
    return context->Ask<Answer>(to.ref, Question{world.FreeToken(), person->life().NextPlace(to), random.Next()},
                                RandomTimeout(random));
  });
  const bool was_called = is_called;
  absl::StatusOr<Answer> answer = co_await calling;
  const Person::Inside inside(*person);
  const bool is_rejected = ErrorKindOf<CircuitBreakerErrorKind>(answer.status()) == CircuitBreakerErrorKind::kOpen;
  if (is_rejected == was_called) {
    world.ledger().Violate("a circuit breaker calls or rejects", answer.status().ToString());
  }
}

absl::Status AskThroughBreaker(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.world().ledger().asks.fetch_add(1, std::memory_order_relaxed);
  return deed.context.Run(AskBehindBreaker(&deed.person, &deed.context, to, deed.random.Next()));
}

absl::Status CallThroughBreaker(Deed& deed) {
  CircuitBreaker& breaker = *deed.context.system().Extension<Breaker>().breaker;
  const uint64_t draw = deed.random.Uniform(6);
  switch (draw) {
    case 0:
      breaker.Fail();
      return absl::OkStatus();
    case 1:
      breaker.Succeed();
      return absl::OkStatus();
    default:
      break;
  }
  try {
    breaker
        .CallNow([draw]() -> absl::Status {
          if (draw == 2) throw std::runtime_error("a call throws");
          return draw == 3 ? absl::UnavailableError("a call fails") : absl::OkStatus();
        })
        .IgnoreError();
  } catch (const std::runtime_error&) {
    // Thrown on by the breaker.
  }
  return absl::OkStatus();
}

}  // namespace

Breaker::Breaker(ActorSystem& system)
    : breaker(CircuitBreaker::Make(system.toolbox(), {.max_failures = 3,
                                                      .call_timeout = absl::Milliseconds(8),
                                                      .reset_timeout = absl::Milliseconds(2),
                                                      .backoff_factor = 2,
                                                      .max_reset_timeout = absl::Milliseconds(10)})
                  .value()) {}

std::vector<ActorOperation> AskingOperations() {
  return {
      {"ask on reply", 4, &AskOnReply},
      {"ask in a task", 5, &AskInATask},
      {"ask again and again", 2, &AskAgainAndAgain},
      {"ask and fail with the error", 2, &AskAndFailWithIt},
      {"ask oneself", 1, &AskOneself},
      {"ask and drop", 2, &AskAndDrop},
      {"ask and keep", 2, &AskAndKeep},
      {"ask through the system", 1, &AskThroughTheSystem},
      {"pipe an answer", 2, &PipeAnswer},
      {"pipe a task", 2, &PipeTask},
      {"run blocking work", 1, &RunAnErrand},
      {"ask with a stop token", 3, &AskWithStopToken},
      {"ask and keep, with a stop token", 1, &AskAndKeepWithStopToken},
      {"run blocking work with a stop token", 1, &RunAnErrandWithStopToken},
      {"sleep with a stop token", 1, &SleepWithStopToken},
      {"request a stop", 2, &RequestAStop},
      {"ask through a circuit breaker", 2, &AskThroughBreaker},
      {"call through a circuit breaker", 1, &CallThroughBreaker},
  };
}

}  // namespace fraktor::storm
