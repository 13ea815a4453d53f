// RemoteProvider: how a system finds actors of other systems. The room `remote` has one; without it there are none.
//
//   system.SetRemoteProvider(&provider);                                      // must live until the system has ended
//   ActorRef cart = system.Resolve("pekko://shop@10.0.0.7:2552/user/cart").value();
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_SYSTEM_REMOTE_PROVIDER_H_
#define FRAKTOR_ACTOR_SYSTEM_REMOTE_PROVIDER_H_

#include <cstddef>
#include <limits>
#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

class RemoteProvider {
 public:
  // Whoever has the path at its authority, which is not ours, whenever something is sent to it. Nobody is asked whether
  // there is one. Errors: kUnsupportedAuthority; ResourceExhausted if too many paths are known already.
  virtual absl::StatusOr<ActorRef> RefAt(const ActorPath& path) = 0;

  // The actors that a selection means there, for a message or a question: not to be kept. `elements` is their text,
  // "/user/workers/*"; `anchor` says of which system.
  virtual absl::StatusOr<ActorRef> SelectionAt(const ActorPath& anchor, std::string_view elements) = 0;

  // How many bytes a message to an actor of this path on another node may have, with all that goes with it.
  virtual size_t MaxMessageBytes(std::string_view /*path*/) const { return std::numeric_limits<size_t>::max(); }

 protected:
  ~RemoteProvider() = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_REMOTE_PROVIDER_H_
