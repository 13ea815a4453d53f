// RemoteStores: the stores of another node, as references.
//
//   FRAKTOR_ASSIGN_OR_RETURN(RemoteStores far, RemoteStores::At(system, "10.0.0.7:2552"));
//   FRAKTOR_ASSIGN_OR_RETURN(ActorRef journal, far.Journal("main"));
//   FRAKTOR_RETURN_IF_ERROR(persistence.AddJournal("main", {.actor = journal}));
//   FRAKTOR_ASSIGN_OR_RETURN(ActorRef snapshots, far.SnapshotStore("main"));
//   FRAKTOR_RETURN_IF_ERROR(persistence.AddSnapshotStore("main", {.actor = snapshots}));
//
// The ids are those under which the other node has added its stores. The other node must start
// their actors: PersistenceExtension::StartStores, StateExtension::StartStores. Nothing is sent
// before the first request, so the other node may start later.
//
// Both nodes need ProtocolCodecs(), and StateCodecs() for durable states.
//
// Thread safety: any thread. The system outlives the object.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_REMOTE_STORES_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_REMOTE_STORES_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"

namespace fraktor::inline v0 {

class RemoteStores {
 public:
  // `authority` is "host:port", if both nodes have the same system name, or "name@host:port".
  // InvalidArgument if it is neither; FailedPrecondition if the system has no remoting.
  static absl::StatusOr<RemoteStores> At(const ActorSystem& system, std::string_view authority);

  // The first of several actors of a journal. Errors: those of ActorSystem::Resolve, and
  // InvalidArgument for an id that no store can have.
  absl::StatusOr<ActorRef> Journal(std::string_view plugin_id) const;
  absl::StatusOr<ActorRef> SnapshotStore(std::string_view plugin_id) const;
  absl::StatusOr<ActorRef> StateStore(std::string_view plugin_id) const;

 private:
  RemoteStores(const ActorSystem& system, std::string root) : system_(&system), root_(std::move(root)) {}

  absl::StatusOr<ActorRef> Resolve(std::string_view what, std::string_view plugin_id, const std::string& name) const;

  const ActorSystem* system_;
  // "pekko://bank@10.0.0.7:2552/system/"
  std::string root_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_REMOTE_STORES_H_
