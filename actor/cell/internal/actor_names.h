// ActorNames: the names and paths of the actors of one system: an ActorPathRegistry with a lock.
//
// The registry has only actors with names of their own, and their ancestors. An automatic name is a
// number in the slot of the actor, so most actors cost nothing here.
//
// When an actor of the registry ends, its path and uid stay reserved for
// ActorSystemConfig::uid_reservation: so a path with a uid is known to mean an actor that has
// ended, and texts name the actor. A timer ends reservations.
//
// Thread safety: any thread, except where a function says otherwise.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_ACTOR_NAMES_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_ACTOR_NAMES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/internal/temp_names.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/registry/internal/actor_path_registry.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

struct ActorNamesOptions {
  // Gives the time, and the timer that ends reservations. Must outlive the names.
  RuntimeToolbox& toolbox;
  // Publishes UidReservationEvicted. Must outlive the names.
  EventStream& events;
};

class ActorNames : public std::enable_shared_from_this<ActorNames> {
 public:
  static std::shared_ptr<ActorNames> Make(std::unique_ptr<ActorPathRegistry> registry,
                                          const ActorNamesOptions& options) {
    return std::shared_ptr<ActorNames>(new ActorNames(std::move(registry), options));
  }
  ~ActorNames();
  ActorNames(const ActorNames&) = delete;
  ActorNames& operator=(const ActorNames&) = delete;

  // Registers the root of the tree.
  absl::Status RegisterRoot(ActorSlot& root);
  // Registers a living actor below its living parent. Called by the spawner. Errors: kInvalidName,
  // kNameTaken.
  absl::Status Register(ActorSlot& actor, ActorSlot& parent, std::string_view name);
  // The same for a name of the runtime, which may begin with `$`.
  absl::Status RegisterInternal(ActorSlot& actor, ActorSlot& parent, std::string_view name);
  // The actor has ended. Its name is free afterwards, and its path and uid are reserved.
  void Unregister(ActorSlot& actor, uint32_t generation);
  // Whether the actor is registered. Most actors are not.
  static bool Has(const ActorSlot& actor);

  // The path of a living actor; "" if it has ended.
  std::string TextOf(ActorRef actor) const;
  // The path and uid of an actor or promise; "" if it has ended and its path is no longer known.
  std::string CanonicalTextOf(ActorRef actor);
  // The path of a reply promise, which gets its name now; "" if the promise has ended without one.
  std::string TextOfPromise(ActorRef promise);
  // The path of an actor that has ended, as long as its uid is reserved; otherwise "".
  std::string TextOfEnded(ActorRef actor) const;
  // The path of an actor in its own turn, also in the last one, when its references are stale.
  std::string TextInTurnOf(ActorRef actor) const;
  // The last element of the path.
  std::string NameOf(ActorRef actor) const;
  // The uid of an actor or promise.
  ActorUid UidOf(ActorRef actor) const;

  // How uids follow from pids. Takes no lock.
  const ActorUidIssuer& uids() const { return uids_; }

  // The living actor or the waiting promise of a path; no one if there is none.
  ActorRef Find(const ActorPath& path) const;
  // The error for a path without a living actor: kUidReserved if its uid is that of an actor of
  // this path that has ended, and is still reserved; otherwise kPidUnknown.
  absl::Status WhyMissing(const ActorPath& path) const;
  // The living child of an actor by its name, automatic or not; below /temp, the waiting promise.
  // No one if there is none, or the parent has ended. Takes a constant time on average.
  ActorRef FindChild(ActorRef parent, std::string_view name) const;

 private:
  ActorNames(std::unique_ptr<ActorPathRegistry> registry, const ActorNamesOptions& options)
      : options_(options), uids_(registry->uids()), registry_(std::move(registry)) {}

  // The actor of a pid; no one if it has ended.
  static ActorRef RefOf(Pid pid);
  absl::Status EnsureRegistered(ActorSlot& actor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Climb(ActorRef actor) const;
  // The waiting promise of a path.
  ActorRef FindPromise(const ActorPath& path) const;
  // Arms the timer that ends expired reservations.
  void ArmExpiry(Instant deadline);
  void Expire();

  // How many reservations the timer ends at once, and the least time between two timers.
  static constexpr size_t kExpiredAtOnce = 1024;
  static constexpr absl::Duration kExpiryPeriod = absl::Seconds(1);

  const ActorNamesOptions options_;
  const ActorUidIssuer uids_;
  mutable Mutex mutex_;
  std::string root_text_ ABSL_GUARDED_BY(mutex_) = "/";
  const std::unique_ptr<ActorPathRegistry> registry_ ABSL_PT_GUARDED_BY(mutex_);
  TempNames temps_ ABSL_GUARDED_BY(mutex_);
  // Whether the timer is armed, or a thread is about to arm it.
  bool has_timer_ ABSL_GUARDED_BY(mutex_) = false;
  TimerId timer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_ACTOR_NAMES_H_
