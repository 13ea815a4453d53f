// Spawning, stopping, failing and watching.
#include <stdexcept>
#include <utility>

#include "absl/time/time.h"

#include "fraktor/actor/context/stop_because.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/backoff_supervisor.h"
#include "fraktor/actor/testkit/storm/citizens.h"
#include "fraktor/actor/testkit/storm/person.h"

namespace fraktor::storm {
namespace {

absl::Status SpawnChild(Deed& deed) {
  SpawnCitizen(deed.world(), deed.random, deed.context).IgnoreError();
  return absl::OkStatus();
}

// Spawns as code outside of the system does, but in a turn, possibly of an actor of another system.
absl::Status SpawnAtTheTop(Deed& deed) {
  SpawnCitizen(deed.world(), deed.random, deed.world().system()).IgnoreError();
  return absl::OkStatus();
}

absl::Status StopOther(Deed& deed) {
  deed.context.Stop(deed.Anybody().ref);
  return absl::OkStatus();
}

absl::Status StopSelf(Deed& deed) {
  deed.context.Stop();
  return absl::OkStatus();
}

absl::Status StopAChild(Deed& deed) {
  const std::vector<ActorRef> children = deed.context.Children();
  if (!children.empty()) deed.context.Stop(children[deed.random.Uniform(children.size())]);
  return absl::OkStatus();
}

absl::Status StopAllChildren(Deed& deed) {
  deed.person.ForgetChildren(deed.context);
  deed.context.StopChildren();
  return absl::OkStatus();
}

absl::Status StopForAReason(Deed& deed) {
  StopBecause(deed.context, absl::DataLossError("an actor was told to stop"));
  return absl::OkStatus();
}

absl::Status FailByStatus(Deed& deed) {
  static constexpr absl::StatusCode kCodes[] = {absl::StatusCode::kUnavailable, absl::StatusCode::kAborted,
                                                absl::StatusCode::kDataLoss, absl::StatusCode::kOutOfRange};
  return absl::Status(kCodes[deed.random.Uniform(std::size(kCodes))], "an actor was told to fail");
}

absl::Status FailByThrowing(Deed&) { throw std::runtime_error("an actor was told to throw"); }

absl::Status FailByThrowingANumber(Deed&) { throw 42; }

absl::Status SpawnAndFail(Deed& deed) {
  SpawnCitizen(deed.world(), deed.random, deed.context).IgnoreError();
  return absl::AbortedError("an actor failed after it had spawned a child");
}

// A watch of no one never ends.
bool MayWatch(Deed& deed, ActorRef actor) { return !actor.IsNoOne() && actor != deed.context.self(); }

absl::Status WatchSomebody(Deed& deed, ActorRef actor) {
  if (!MayWatch(deed, actor)) return absl::OkStatus();
  Life& life = deed.person.life();
  const absl::Status status = deed.context.Watch(actor);
  if (status.ok()) {
    life.watched.insert_or_assign(actor, Life::WatchKind::kTerminated);
    deed.world().ledger().watches.fetch_add(1, std::memory_order_relaxed);
  } else if (!life.is_anonymous && !life.watched.contains(actor)) {
    deed.world().ledger().Violate("a watch works, or says why not", status.ToString());
  }
  return absl::OkStatus();
}

absl::Status WatchAnybody(Deed& deed) { return WatchSomebody(deed, deed.Anybody().ref); }

absl::Status WatchAChild(Deed& deed) {
  const std::vector<ActorRef> children = deed.context.Children();
  if (children.empty()) return absl::OkStatus();
  return WatchSomebody(deed, children[deed.random.Uniform(children.size())]);
}

absl::Status WatchWithANote(Deed& deed) {
  const ActorRef actor = deed.Anybody().ref;
  if (!MayWatch(deed, actor)) return absl::OkStatus();
  Life& life = deed.person.life();
  const absl::Status status = deed.context.WatchWith(actor, WatchNote{actor});
  if (status.ok()) {
    life.watched.insert_or_assign(actor, Life::WatchKind::kNote);
    deed.world().ledger().watches.fetch_add(1, std::memory_order_relaxed);
  } else if (!life.is_anonymous && !life.watched.contains(actor)) {
    deed.world().ledger().Violate("a watch works, or says why not", status.ToString());
  }
  return absl::OkStatus();
}

absl::Status WatchAndStop(Deed& deed) {
  const ActorRef actor = deed.Anybody().ref;
  static_cast<void>(WatchSomebody(deed, actor));
  deed.context.Stop(actor);
  return absl::OkStatus();
}

absl::Status SpawnWatched(Deed& deed) {
  World& world = deed.world();
  if (!world.HasRoom()) return absl::OkStatus();
  ActorSystem& system = deed.context.system();
  const PropsPtr citizen = MakeCitizen(world, deed.random);
  const absl::StatusOr<ActorRef> actor = system.TrySpawnWatched(*citizen, deed.context.self(), RandomName(deed.random));
  CheckSpawned(world, actor.status());
  if (!actor.ok()) return absl::OkStatus();
  // Its end is a message to this actor, which comes in a later turn.
  deed.person.life().watched.insert_or_assign(*actor, Life::WatchKind::kTerminated);
  world.ledger().watches.fetch_add(1, std::memory_order_relaxed);
  world.Meet(deed.random, {.ref = *actor, .is_free = &system != &world.system()});
  return absl::OkStatus();
}

absl::Status SpawnABackoffSupervisor(Deed& deed) {
  World& world = deed.world();
  if (!world.HasRoom()) return absl::OkStatus();
  Random& random = deed.random;
  BackoffSupervisorOptions options;
  options.trigger = random.Bernoulli(0.5) ? BackoffTrigger::kOnFailure : BackoffTrigger::kOnStop;
  options.child = MakeSupervised(world, random);
  options.min_backoff = random.UniformDuration(absl::Microseconds(100), absl::Milliseconds(2));
  options.max_backoff = absl::Milliseconds(8);
  options.max_restarts = random.Bernoulli(0.5) ? -1 : 5;
  if (random.Bernoulli(0.3)) {
    options.is_final_stop = [](const Envelope& message) { return message.Is<Urgent>(); };
  }
  const uint64_t away = random.Uniform(3);
  if (away == 0) {
    options.while_away = [](ActorContext& context) {
      context.Reply(ErrorReply{absl::UnavailableError("the child is away")});
    };
  } else if (away == 1) {
    const Acquaintance handler = deed.Anybody();
    if (!handler.is_free && !handler.ref.IsNoOne()) options.handler_while_away = handler.ref;
  }
  // Without a name: nobody finds it by its path before the world knows that it is a supervisor.
  const absl::StatusOr<ActorRef> actor = deed.context.TrySpawn(*MakeBackoffProps(std::move(options)).value());
  CheckSpawned(world, actor.status());
  if (!actor.ok()) return absl::OkStatus();
  // `while_away` does not settle the messages that it handles.
  world.Meet(random, {.ref = *actor,
                      .is_free = away == 0 || &deed.context.system() != &world.system(),
                      .is_unordered = true,
                      .is_supervisor = true});
  return absl::OkStatus();
}

// To supervisors these are commands; to others they are unhandled.
absl::Status ManageSupervisor(Deed& deed) {
  const ActorRef supervisor = deed.Anybody().ref;
  switch (deed.random.Uniform(3)) {
    case 0:
      deed.context.Tell(supervisor, ResetBackoff{});
      return absl::OkStatus();
    case 1:
      deed.context.Ask<RestartCount>(supervisor, GetRestartCount{}, absl::Milliseconds(5)).Cancel();
      return absl::OkStatus();
    default:
      deed.context.Ask<CurrentChild>(supervisor, GetCurrentChild{}, absl::Milliseconds(5)).Cancel();
      return absl::OkStatus();
  }
}

absl::Status UnwatchOne(Deed& deed) {
  Life& life = deed.person.life();
  if (life.watched.empty()) return absl::OkStatus();
  const ActorRef actor = life.watched.begin()->first;
  life.watched.erase(actor);
  deed.context.Unwatch(actor);
  return absl::OkStatus();
}

}  // namespace

std::vector<ActorOperation> LifeOperations() {
  return {
      {"spawn a child", 8, &SpawnChild},
      {"spawn at the top", 2, &SpawnAtTheTop},
      {"stop another actor", 2, &StopOther},
      {"stop oneself", 2, &StopSelf},
      {"stop a child", 2, &StopAChild},
      {"stop all children", 1, &StopAllChildren},
      {"stop for a reason", 2, &StopForAReason},
      {"fail by a status", 2, &FailByStatus},
      {"fail by throwing", 2, &FailByThrowing},
      {"fail by throwing a number", 1, &FailByThrowingANumber},
      {"spawn and fail", 1, &SpawnAndFail},
      {"watch somebody", 4, &WatchAnybody},
      {"watch a child", 2, &WatchAChild},
      {"watch with a message", 3, &WatchWithANote},
      {"watch and stop", 2, &WatchAndStop},
      {"unwatch", 3, &UnwatchOne},
      {"spawn watched", 2, &SpawnWatched},
      {"spawn a backoff supervisor", 3, &SpawnABackoffSupervisor},
      {"manage a supervisor", 2, &ManageSupervisor},
  };
}

}  // namespace fraktor::storm
