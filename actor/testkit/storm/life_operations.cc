// Spawning, stopping, failing and watching.
#include <stdexcept>

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
      {"fail by a status", 2, &FailByStatus},
      {"fail by throwing", 2, &FailByThrowing},
      {"fail by throwing a number", 1, &FailByThrowingANumber},
      {"spawn and fail", 1, &SpawnAndFail},
      {"watch somebody", 4, &WatchAnybody},
      {"watch a child", 2, &WatchAChild},
      {"watch with a message", 3, &WatchWithANote},
      {"watch and stop", 2, &WatchAndStop},
      {"unwatch", 3, &UnwatchOne},
  };
}

}  // namespace fraktor::storm
