// Asks, futures and coroutines.
#include <memory>
#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/dispatch/blocking_pool.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/pattern/start_task.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_timeout.h"

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
  if (answer.ok() && !deed.person.life().is_pinned) {
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

}  // namespace

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
  };
}

}  // namespace fraktor::storm
