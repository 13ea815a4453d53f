// RemoteProvider: finds actors of other systems. `remote` implements it, and installs it by
// ActorSystem::SetRemoteProvider. ActorSystem::Resolve and selections call it.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_SYSTEM_INTERNAL_REMOTE_PROVIDER_H_
#define FRAKTOR_ACTOR_SYSTEM_INTERNAL_REMOTE_PROVIDER_H_

#include <cstddef>
#include <limits>
#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

class RemoteProvider {
 public:
  // A reference to the actor that has the path on another node when a message arrives there. The
  // provider does not check that it exists. Errors: kUnsupportedAuthority, and ResourceExhausted if
  // too many paths are known.
  virtual absl::StatusOr<ActorRef> RefAt(const ActorPath& path) = 0;

  // A reference to the actors of a selection, for one message or ask: do not keep it. `elements` is
  // its text, "/user/workers/*"; `anchor` names the system.
  virtual absl::StatusOr<ActorRef> SelectionAt(const ActorPath& anchor, std::string_view elements) = 0;

  // The maximum size in bytes of a message to an actor of this path, with its envelope.
  virtual size_t MaxMessageBytes(std::string_view /*path*/) const { return std::numeric_limits<size_t>::max(); }

 protected:
  ~RemoteProvider() = default;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SYSTEM_INTERNAL_REMOTE_PROVIDER_H_
