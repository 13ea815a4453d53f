// The names and paths of the actors of one system, for any thread: ActorPathRegistry with a lock around it.
//
// Only actors with names of their own are in it, and their ancestors. An automatic name is a number that the actor's
// slot has anyway, so most actors cost nothing here.
#ifndef FRAKTOR_ACTOR_CELL_ACTOR_NAMES_H_
#define FRAKTOR_ACTOR_CELL_ACTOR_NAMES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/registry/actor_path_registry.h"
#include "fraktor/actor/turn/actor_slot.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class ActorNames {
 public:
  explicit ActorNames(std::unique_ptr<ActorPathRegistry> registry)
      : uids_(registry->uids()), registry_(std::move(registry)) {}

  // The root of all.
  absl::Status RegisterRoot(ActorSlot& root);
  // A living actor below a living one, whose slot it holds or whose child it is. kInvalidName, kNameTaken.
  absl::Status Register(ActorSlot& actor, ActorSlot& parent, std::string_view name);
  // The same for a name that the runtime gives, which may begin with `$`.
  absl::Status RegisterInternal(ActorSlot& actor, ActorSlot& parent, std::string_view name);
  // The actor has ended.
  void Unregister(ActorSlot& actor, uint32_t generation, Instant now);
  // Whether there is anything to unregister: most actors have no name, and their end need not ask for the time.
  static bool Has(const ActorSlot& actor);

  // "pekko://shop/".
  std::string RootText() const;
  // Of an actor that lives; "" of one that has ended. Any thread.
  std::string TextOf(ActorRef actor) const;
  std::string CanonicalTextOf(ActorRef actor) const;
  // Of one that has ended, if it had a name and not too many have ended since; otherwise "". Any thread.
  std::string TextOfEnded(ActorRef actor) const;
  // In the actor's turn: also in the last one, when nobody reaches it any more.
  std::string TextInTurnOf(ActorRef actor) const;
  // The last element of the path.
  std::string NameOf(ActorRef actor) const;
  ActorUid UidOf(ActorRef actor) const;

  // How uids follow from pids. Without a lock.
  const ActorUidIssuer& uids() const { return uids_; }

  // The living actor of a path, whatever it is called there; no one if there is none.
  ActorRef Find(const ActorPath& path) const;
  // Why nobody has a path: kUidReserved if it means an earlier life of the actor, otherwise kPidUnknown.
  absl::Status WhyMissing(const ActorPath& path) const;
  // The living child of an actor by its name, automatic or not. No one if there is none, or the parent has ended. Any
  // thread. Takes a constant time on average.
  ActorRef FindChild(ActorRef parent, std::string_view name) const;

 private:
  // The actor, if it lives.
  static ActorRef RefOf(Pid pid);
  absl::Status EnsureRegistered(ActorSlot& actor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Climb(ActorRef actor) const;
  std::string TextOf(ActorRef actor, bool canonical) const;
  void Remember(Pid pid, std::string text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // So many of those that have ended are remembered, for texts.
  static constexpr size_t kRemembered = 1024;

  const ActorUidIssuer uids_;
  mutable Mutex mutex_;
  std::string root_text_ ABSL_GUARDED_BY(mutex_) = "/";
  const std::unique_ptr<ActorPathRegistry> registry_ ABSL_PT_GUARDED_BY(mutex_);
  // What their paths were, and who is to be forgotten next: a ring.
  absl::flat_hash_map<Pid, std::string> ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<Pid> ended_order_ ABSL_GUARDED_BY(mutex_);
  size_t oldest_ended_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Any thread may read them. They are those of the actor that the thread means only if the actor's generation is the same
// afterwards: see ActorKin.
ActorSlot* ParentSlotOf(const ActorSlot& slot);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_ACTOR_NAMES_H_
