// RecoveryPermitter: lets so many persistent actors recover at once, the others in the order in which they came.
//
//   context.Tell(permitter, RequestRecoveryPermit{self, instance_id});
//   ... RecoveryPermitGranted{instance_id} ...
//   context.Tell(permitter, ReturnRecoveryPermit{instance_id});      // also to leave the queue
//
// Without it a system of a million actors that starts would ask its journal for everything at the same time.
//
// Whoever has asked returns the permit when it is done, stops or is restarted, whether it has got it or not. A
// PersistentActor does that in its last hook, so a holder that dies does not keep its permit.
//
// Thread safety: an actor.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_RECOVERY_PERMITTER_H_
#define FRAKTOR_PERSISTENCE_ACTOR_RECOVERY_PERMITTER_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// Instances are numbered by PersistenceExtension::NextInstance: no two have the same number.
struct RequestRecoveryPermit {
  ActorRef client = {};
  uint64_t instance_id = 0;
};
struct RecoveryPermitGranted {
  uint64_t instance_id = 0;
};
struct ReturnRecoveryPermit {
  uint64_t instance_id = 0;
};
// Whoever is gone has returned its permit.
template <>
inline constexpr bool kIsSuppressedDeadLetter<RecoveryPermitGranted> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<ReturnRecoveryPermit> = true;

class RecoveryPermitter final : public ActorInstance {
 public:
  explicit RecoveryPermitter(size_t max_permits) : max_permits_(max_permits) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override;

 private:
  struct Waiting {
    ActorRef client;
    uint64_t instance_id;
  };

  void Grant(ActorContext& context, const Waiting& waiting);
  void Return(ActorContext& context, uint64_t instance_id);

  const size_t max_permits_;
  absl::flat_hash_set<uint64_t> holders_;
  // By the order of their arrival, and their places in it.
  std::map<uint64_t, Waiting> queue_;
  absl::flat_hash_map<uint64_t, uint64_t> places_;
  uint64_t next_place_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_RECOVERY_PERMITTER_H_
