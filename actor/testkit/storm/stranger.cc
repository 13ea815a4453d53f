#include "fraktor/actor/testkit/storm/stranger.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/dispatch/internal/guest_seat.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/pattern/receptionist.h"
#include "fraktor/actor/pattern/start_task.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/send/internal/foreign_burst.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/storm/citizens.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_timeout.h"

namespace fraktor::storm {

using actor_internal::FindLiving;
using actor_internal::ForeignBurst;
using actor_internal::GuestStay;

namespace {

constexpr absl::Duration kLongEnough = absl::Seconds(30);

absl::Duration RandomTimeout(Random& random) {
  return random.UniformDuration(absl::Milliseconds(1), absl::Milliseconds(25));
}

// Messages.

void TellLetters(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  for (uint64_t i = 1 + stranger.random().Uniform(4); i > 0; --i) {
    Tell(to.ref, Letter{stranger.world().MakeToken(to), stranger.NextPlace(to)});
  }
}

void TellBulky(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  Tell(to.ref, Bulky{stranger.world().MakeToken(to), stranger.NextPlace(to)});
}

void TellParcel(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  Tell(to.ref, Parcel{stranger.world().MakeToken(to), stranger.NextPlace(to)});
}

void TryTellLetter(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  TryTell(to.ref, Letter{stranger.world().MakeToken(to), stranger.NextPlace(to)}).IgnoreError();
}

// Many messages to one actor, by ways that must not overtake each other. They fill a small mailbox.
void TellInAllWays(Stranger& stranger) {
  World& world = stranger.world();
  const Acquaintance to = stranger.Anybody();
  for (uint64_t count = 8 + stranger.random().Uniform(24); count > 0; --count) {
    switch (stranger.random().Uniform(4)) {
      case 0:
        Tell(to.ref, Bulky{world.MakeToken(to), stranger.NextPlace(to)});
        break;
      case 1:
        TryTell(to.ref, Letter{world.MakeToken(to), stranger.NextPlace(to)}).IgnoreError();
        break;
      case 2:
        world.system().Ask<Answer>(to.ref, stranger.MakeQuestion(to), absl::Milliseconds(3)).Cancel();
        break;
      default:
        Tell(to.ref, Letter{world.MakeToken(to), stranger.NextPlace(to)});
    }
  }
}

void TellAct(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  Tell(to.ref, Act{stranger.world().MakeToken(to), stranger.random().Next()});
}

void TellBurst(Stranger& stranger) {
  ForeignBurst burst;
  for (int targets = 0; targets < 3; ++targets) {
    const Acquaintance to = stranger.Anybody();
    for (uint64_t i = 1 + stranger.random().Uniform(8); i > 0; --i) {
      burst.Send(to.ref, MakeEnvelope<Letter>(ActorRef(), stranger.world().MakeToken(to), stranger.NextPlace(to)));
    }
  }
}

void TellAsGuest(Stranger& stranger) {
  {
    const GuestStay stay(stranger.world().guest_seat());
    if (stay.is_guest()) SetKindOfThisThread(ThreadKind::kInStay);
    for (int i = 0; i < 3; ++i) {
      TellLetters(stranger);
      TellAct(stranger);
    }
  }
  SetKindOfThisThread(ThreadKind::kForeign);
}

void TellSelection(Stranger& stranger) {
  static constexpr const char* kTexts[] = {"/user/*", "/user/c1", "/user/c?/*", "/user/../user/c2", "/user/c4/none"};
  const char* const text = kTexts[stranger.random().Uniform(std::size(kTexts))];
  Select(stranger.world().system(), text).Tell(Letter{stranger.world().FreeToken(), {}});
}

void BroadcastLetter(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  Tell(to.ref, Broadcast(Letter{stranger.world().MakeToken(to), {}}));
}

void PublishGust(Stranger& stranger) { stranger.world().system().events().Publish(Gust{1}); }

void ListenForAWhile(Stranger& stranger) {
  if (stranger.subscriptions().size() > 3) stranger.subscriptions().clear();
  Ledger& ledger = stranger.world().ledger();
  stranger.subscriptions().push_back(stranger.world().system().events().Listen<Gust>(
      [&ledger](const Gust&) { static_cast<void>(ledger.in_flight()); }));
}

// Lives.

void SpawnOne(Stranger& stranger) {
  SpawnCitizen(stranger.world(), stranger.random(), stranger.world().system()).IgnoreError();
}

void TrySpawnSystemActor(Stranger& stranger) {
  World& world = stranger.world();
  if (!world.HasRoom()) return;
  CheckSpawned(world, world.system()
                          .TrySpawnSystemActor(*MakeSteward(world, stranger.random()), RandomName(stranger.random()))
                          .status());
}

void SpawnWatched(Stranger& stranger) {
  World& world = stranger.world();
  if (!world.HasRoom()) return;
  const absl::StatusOr<ActorRef> actor = world.system().TrySpawnWatched(*MakeCitizen(world, stranger.random()),
                                                                        world.guard(), RandomName(stranger.random()));
  CheckSpawned(world, actor.status());
  if (!actor.ok()) return;
  world.AddGuarded(*actor);
  world.Meet(stranger.random(), {.ref = *actor});
}

void StopOne(Stranger& stranger) { stranger.world().system().Stop(stranger.Anybody().ref); }
void PoisonOne(Stranger& stranger) { Tell(stranger.Anybody().ref, PoisonPill{}); }
void KillOne(Stranger& stranger) { Tell(stranger.Anybody().ref, Kill{}); }

void StopGracefully(Stranger& stranger) {
  Future<void> stopping =
      GracefulStop(stranger.world().system(), stranger.Anybody().ref, RandomTimeout(stranger.random()));
  if (stranger.random().Bernoulli(0.3) && !stopping.WaitFor(kLongEnough).has_value()) {
    stranger.world().ledger().Violate("every future ends", "GracefulStop did not end");
  }
}

// Asks.

void AskOne(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  stranger.Keep(
      stranger.world().system().Ask<Answer>(to.ref, stranger.MakeQuestion(to), RandomTimeout(stranger.random())));
}

void AskAndWait(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  stranger.world()
      .system()
      .AskAndWait<Answer>(to.ref, stranger.MakeQuestion(to), RandomTimeout(stranger.random()))
      .IgnoreError();
}

void AskAndDrop(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  stranger.world().system().Ask<Answer>(to.ref, stranger.MakeQuestion(to), absl::Hours(1)).Cancel();
}

void AskWithStopToken(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  stranger.Keep(stranger.world().system().Ask<Answer>(to.ref, stranger.MakeQuestion(to),
                                                      RandomTimeout(stranger.random()),
                                                      stranger.world().StopToken(stranger.random())));
}

void RequestAStop(Stranger& stranger) { stranger.world().RequestStop(stranger.random()); }

void AskThroughBreaker(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  ActorSystem& system = stranger.world().system();
  stranger.Keep(system.Extension<Breaker>().breaker->Call(
      [&] { return system.Ask<Answer>(to.ref, stranger.MakeQuestion(to), RandomTimeout(stranger.random())); }));
}

void AskAndPipe(Stranger& stranger) {
  const Acquaintance to = stranger.Anybody();
  World* const world = &stranger.world();
  Future<Piped> mapped = world->system()
                             .Ask<Answer>(to.ref, stranger.MakeQuestion(to), RandomTimeout(stranger.random()))
                             .Map([world](const Answer&) { return Piped{world->FreeToken()}; });
  PipeTo(world->system(), std::move(mapped), stranger.Anybody().ref, stranger.Anybody().ref);
}

Task<void> AskInTask(World* world, Acquaintance to, Place place, uint64_t seed) {
  const Counted frame(world->ledger().frames);
  const Counted open(world->ledger().open_asks);
  auto asking = world->system().Ask<Answer>(to.ref, Question{world->FreeToken(), place, seed}, absl::Milliseconds(9));
  static_cast<void>(co_await asking);
}

void RunTask(Stranger& stranger) {
  World& world = stranger.world();
  // The task asks in its own turn: the message has no place in the order of this thread.
  Task<void> task = AskInTask(&world, stranger.Anybody(), {}, stranger.random().Next());
  if (stranger.random().Bernoulli(0.5)) {
    world.system().Run(std::move(task));
  } else {
    Future<void> running = StartTask(world.system(), std::move(task));
    if (stranger.random().Bernoulli(0.5)) running.Cancel();
  }
}

void ResolveBySelection(Stranger& stranger) {
  Future<ActorRef> resolving =
      Select(stranger.world().system(), "/user/c1").ResolveOne(RandomTimeout(stranger.random()));
  if (stranger.random().Bernoulli(0.3) && !resolving.WaitFor(kLongEnough).has_value()) {
    stranger.world().ledger().Violate("every future ends", "ResolveOne did not end");
  }
}

// Looking.

void LookAtPaths(Stranger& stranger) {
  ActorSystem& system = stranger.world().system();
  for (int i = 0; i < 5; ++i) {
    const ActorRef actor = stranger.Anybody().ref;
    static_cast<void>(system.PathOf(actor));
    static_cast<void>(system.CanonicalPathOf(actor));
  }
}

void ResolvePath(Stranger& stranger) {
  ActorSystem& system = stranger.world().system();
  const absl::StatusOr<ActorRef> found = system.Resolve(system.PathOf(stranger.Anybody().ref));
  if (!found.ok()) return;
  stranger.world().Meet(stranger.random(), stranger.world().Recognize(*found));
}

void FindService(Stranger& stranger) {
  const ServiceOfStorm key(absl::StrCat(stranger.random().Uniform(kServices)));
  Future<Services> finding = Receptionist::Of(stranger.world().system()).Find(key, RandomTimeout(stranger.random()));
  if (stranger.random().Bernoulli(0.3) && !finding.WaitFor(kLongEnough).has_value()) {
    stranger.world().ledger().Violate("every future ends", "Receptionist::Find did not end");
  }
}

void LookForNotStopped(Stranger& stranger) { static_cast<void>(stranger.world().system().NotStopped()); }

void WalkTheTree(Stranger& stranger) {
  ActorSystem& system = stranger.world().system();
  for (const ActorRef actor : FindLiving(system.root_guardian(), 50)) {
    static_cast<void>(system.PathOf(actor));
  }
  static_cast<void>(Select(system, "/user/*/*").Find());
}

void TakeSnapshot(Stranger& stranger) {
  ActorSystem& system = stranger.world().system();
  static_cast<void>(system.hub().Snapshot(system.toolbox().Now()));
}

void ObserveOne(Stranger& stranger) {
  ActorSystem& system = stranger.world().system();
  if (stranger.random().Bernoulli(0.5)) {
    system.Observe(stranger.Anybody().ref).IgnoreError();
  } else {
    system.StopObserving(stranger.Anybody().ref);
  }
}

// Time.

void StartSystemTimer(Stranger& stranger) {
  SystemTimers& timers = SystemTimers::Of(stranger.world().system());
  const ActorRef to = stranger.Anybody().ref;
  World* const world = &stranger.world();
  std::vector<Cancellable>& started = stranger.system_timers();
  const absl::Duration delay = stranger.random().UniformDuration(absl::Microseconds(100), absl::Milliseconds(4));
  absl::StatusOr<Cancellable> made;
  switch (stranger.random().Uniform(3)) {
    case 0:
      made = timers.StartSingle(delay, to, Tick{world->FreeToken()});
      break;
    case 1:
      made = timers.StartFixedRate({.period = delay}, to, Tick{world->FreeToken()});
      break;
    default:
      made = timers.StartFixedDelay({.period = delay}, to, Tick{world->FreeToken()});
      break;
  }
  if (made.ok()) started.push_back(*std::move(made));
  if (started.size() > 4) {
    started.front().Cancel();
    started.erase(started.begin());
  }
}

// Systems.

void AddShutdownTask(Stranger& stranger) {
  stranger.world().shutdown_tasks().Add(stranger.world().system(), stranger.random());
}
void CancelShutdownTask(Stranger& stranger) {
  stranger.world().shutdown_tasks().CancelOne(stranger.world().system(), stranger.random());
}

void BeginSystem(Stranger& stranger) { stranger.BeginSystem(); }
void EndSystem(Stranger& stranger) { stranger.EndSystem(); }

}  // namespace

struct Stranger::OtherSystem {
  std::unique_ptr<ActorSystem> system;
  World::Listeners listeners;
};

Stranger::Stranger(World& world, uint64_t seed) : world_(world), random_(seed), id_(world.NewSenderId()) {
  SetKindOfThisThread(ThreadKind::kForeign);
}
Stranger::~Stranger() = default;

void Stranger::DoSomething() {
  StrangerOperations().PerformOne(world_, random_,
                                  [this](const StrangerOperation& operation) { operation.perform(*this); });
}

void Stranger::Keep(Future<Answer> future) {
  world_.ledger().asks.fetch_add(1, std::memory_order_relaxed);
  asks_.push_back(std::move(future));
  if (asks_.size() < 64) return;
  // Some futures are taken. The others are dropped, if they are not ready yet.
  for (Future<Answer>& ask : asks_) {
    if (ask.IsReady()) ask.Take().IgnoreError();
  }
  asks_.clear();
}

void Stranger::Finish() {
  while (!systems_.empty()) EndSystem();
  for (Cancellable& timer : system_timers_) timer.Cancel();
  system_timers_.clear();
  subscriptions_.clear();
  for (Future<Answer>& ask : asks_) {
    if (!ask.WaitFor(kLongEnough).has_value()) {
      world_.ledger().Violate("every ask ends once", "an ask of a thread did not end; " + DescribeAsking());
    }
  }
  asks_.clear();
}

std::string Stranger::DescribeAsking() {
  Future<Audited> asking = world_.system().Ask<Audited>(world_.system().system_guardian(), Audit{}, absl::Seconds(5));
  const auto answer = asking.WaitFor(absl::Seconds(10));
  return answer.has_value() ? absl::StrCat("another one did: ", answer->status().ToString())
                            : std::string("another one did not either");
}

ActorSystemOptions StormySystem(RuntimeToolbox* toolbox, int workers) {
  ActorSystemOptions options;
  options.toolbox = toolbox;
  options.workers = workers;
  options.log_level = LogLevel::kOff;
  options.dead_letters.log_limit = 0;
  options.shutdown_timeout = kLongEnough;
  options.dispatchers = {{.name = std::string(kFewWorkers), .workers = 1, .budget = 8},
                         {.name = std::string(kBlockingWorkers), .workers = 1, .may_block = true}};
  // A failure that reaches /user must not end the system.
  options.guardian_strategy.decider = [](const Failure& failure) {
    return failure.error.code() == absl::StatusCode::kDataLoss ? Stop() : Restart();
  };
  return options;
}

void Stranger::BeginSystem() {
  if (systems_.size() >= 2) return;
  auto other = std::make_unique<OtherSystem>();
  other->system = ActorSystem::Create(StormySystem(nullptr, 1)).value();
  other->listeners = world_.Listen(*other->system);
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<ActorRef> actor = SpawnCitizen(world_, random_, *other->system);
    if (actor.ok()) Tell(*actor, Act{world_.FreeToken(), random_.Next()});
  }
  systems_.push_back(std::move(other));
}

void Stranger::EndSystem() {
  if (systems_.empty()) return;
  const std::unique_ptr<OtherSystem> other = std::move(systems_.front());
  systems_.erase(systems_.begin());
  const ShutdownReport report = other->system->Shutdown(kLongEnough);
  if (!report.ok()) world_.ledger().Violate("systems terminate", report.not_stopped.front() + " did not stop");
  other->listeners.clear();
}

const OperationTable<StrangerOperation>& StrangerOperations() {
  static const auto& table = *new OperationTable<StrangerOperation>(
      kFirstStrangerRow, {
                             {"tell letters", 30, &TellLetters},
                             {"tell a bulky letter", 5, &TellBulky},
                             {"tell a parcel", 5, &TellParcel},
                             {"try to tell", 10, &TryTellLetter},
                             {"tell in all ways", 6, &TellInAllWays},
                             {"tell an act", 120, &TellAct},
                             {"send a burst", 10, &TellBurst},
                             {"tell as a guest", 10, &TellAsGuest},
                             {"tell a selection", 2, &TellSelection},
                             {"broadcast a letter", 3, &BroadcastLetter},
                             {"publish an event", 2, &PublishGust},
                             {"listen to events", 1, &ListenForAWhile},
                             {"spawn", 12, &SpawnOne},
                             {"spawn a system actor", 1, &TrySpawnSystemActor},
                             {"spawn watched", 2, &SpawnWatched},
                             {"stop", 3, &StopOne},
                             {"poison", 3, &PoisonOne},
                             {"kill", 1, &KillOne},
                             {"stop gracefully", 1, &StopGracefully},
                             {"ask", 15, &AskOne},
                             {"ask and wait", 2, &AskAndWait},
                             {"ask and drop", 3, &AskAndDrop},
                             {"ask and pipe", 3, &AskAndPipe},
                             {"ask with a stop token", 3, &AskWithStopToken},
                             {"request a stop", 2, &RequestAStop},
                             {"ask through a circuit breaker", 2, &AskThroughBreaker},
                             {"find a service", 1, &FindService},
                             {"run a task", 3, &RunTask},
                             {"resolve by selection", 1, &ResolveBySelection},
                             {"look at paths", 3, &LookAtPaths},
                             {"resolve a path", 2, &ResolvePath},
                             {"look who has not stopped", 1, &LookForNotStopped},
                             {"walk the tree", 1, &WalkTheTree},
                             {"take a metrics snapshot", 1, &TakeSnapshot},
                             {"observe", 1, &ObserveOne},
                             {"start a system timer", 3, &StartSystemTimer},
                             {"add a shutdown task", 1, &AddShutdownTask},
                             {"cancel a shutdown task", 1, &CancelShutdownTask},
                             {"begin a system", 1, &BeginSystem},
                             {"end a system", 1, &EndSystem},
                         });
  return table;
}

}  // namespace fraktor::storm
