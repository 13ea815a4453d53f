// The names and paths of the actors of one system, for any thread: ActorPathRegistry with a lock around it.
//
// Only actors with names of their own are in it, and their ancestors. An automatic name is a number that the actor's
// slot has anyway, so most actors cost nothing here.
//
// When an actor of the registry ends, its path and uid stay reserved for
// ActorSystemConfig::uid_reservation: so a path with a uid is known to mean an actor that has
// ended, and texts name the actor. A timer ends reservations.
#ifndef FRAKTOR_ACTOR_CELL_ACTOR_NAMES_H_
#define FRAKTOR_ACTOR_CELL_ACTOR_NAMES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/temp_names.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/registry/actor_path_registry.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct ActorNamesOptions {
  // Gives the time, and the timer that ends reservations. Must outlive the names.
  RuntimeToolbox& toolbox;
  // Where UidReservationEvicted goes. Must outlive the names.
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

  // The root of all.
  absl::Status RegisterRoot(ActorSlot& root);
  // A living actor below a living one, whose slot it holds or whose child it is. kInvalidName, kNameTaken.
  absl::Status Register(ActorSlot& actor, ActorSlot& parent, std::string_view name);
  // The same for a name that the runtime gives, which may begin with `$`.
  absl::Status RegisterInternal(ActorSlot& actor, ActorSlot& parent, std::string_view name);
  // The actor has ended. Its name is free afterwards, and its path and uid are reserved.
  void Unregister(ActorSlot& actor, uint32_t generation);
  // Whether there is anything to unregister: most actors have no name.
  static bool Has(const ActorSlot& actor);

  // The path of an actor that lives; "" if it has ended. Any thread.
  std::string TextOf(ActorRef actor) const;
  // The path and uid of an actor or promise; "" if it has ended and its path is not known any more.
  // Any thread.
  std::string CanonicalTextOf(ActorRef actor);
  // The path of a reply promise, which has it from now on; "" if the promise is over and nobody has
  // asked for its path before. Any thread.
  std::string TextOfPromise(ActorRef promise);
  // The path of an actor that has ended, as long as its uid is reserved; otherwise "". Any thread.
  std::string TextOfEnded(ActorRef actor) const;
  // In the actor's turn: also in the last one, when nobody reaches it any more.
  std::string TextInTurnOf(ActorRef actor) const;
  // The last element of the path.
  std::string NameOf(ActorRef actor) const;
  // The uid of an actor or promise.
  ActorUid UidOf(ActorRef actor) const;

  // How uids follow from pids. Without a lock.
  const ActorUidIssuer& uids() const { return uids_; }

  // The living actor of a path, or the promise that waits and has the path; no one if there is
  // none.
  ActorRef Find(const ActorPath& path) const;
  // Why nobody has a path: kUidReserved if its uid is that of an actor of this path that has ended
  // and is still reserved, otherwise kPidUnknown.
  absl::Status WhyMissing(const ActorPath& path) const;
  // The living child of an actor by its name, automatic or not; below /temp, the promise that
  // waits. No one if there is none, or the parent has ended. Any thread. Takes a constant time on
  // average.
  ActorRef FindChild(ActorRef parent, std::string_view name) const;

 private:
  ActorNames(std::unique_ptr<ActorPathRegistry> registry, const ActorNamesOptions& options)
      : options_(options), uids_(registry->uids()), registry_(std::move(registry)) {}

  // The actor, if it lives.
  static ActorRef RefOf(Pid pid);
  absl::Status EnsureRegistered(ActorSlot& actor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Climb(ActorRef actor) const;
  // The promise that waits and has the path.
  ActorRef FindPromise(const ActorPath& path) const;
  // Arms the timer that ends the reservations whose time has come.
  void ArmExpiry(Instant deadline);
  void Expire();

  // The timer ends so many reservations at a time, and fires no more often than this.
  static constexpr size_t kExpiredAtOnce = 1024;
  static constexpr absl::Duration kExpiryPeriod = absl::Seconds(1);

  const ActorNamesOptions options_;
  const ActorUidIssuer uids_;
  mutable Mutex mutex_;
  std::string root_text_ ABSL_GUARDED_BY(mutex_) = "/";
  const std::unique_ptr<ActorPathRegistry> registry_ ABSL_PT_GUARDED_BY(mutex_);
  TempNames temps_ ABSL_GUARDED_BY(mutex_);
  // Whether the timer is armed, or about to be.
  bool has_timer_ ABSL_GUARDED_BY(mutex_) = false;
  TimerId timer_ ABSL_GUARDED_BY(mutex_);
};

// Any thread may read them. They are those of the actor that the thread means only if the actor's generation is the same
// afterwards: see ActorKin.
ActorSlot* ParentSlotOf(const ActorSlot& slot);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_ACTOR_NAMES_H_
