// Remoting: makes the actors of a system reachable from other nodes, and those of others from here.
//
//   SimNetwork network(...);                                                // or a GrpcTransport
//   auto transport = network.MakeTransport(address);
//   ActorSystemOptions options{.config = {.system_name = "shop", .remoting = RemotingConfig{...}}, .codecs = codecs};
//   std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
//   Remoting& remoting = *Remoting::Start(*system, std::move(transport)).value();
//
//   ActorRef cart = system->Resolve("pekko://shop@10.0.0.7:2552/user/cart").value();
//   Tell(cart, Add{"milk"});                                                // like any other actor
//   Select(context, "pekko://shop@10.0.0.7:2552/user/*").Tell(Reload{});
//   context.Watch(cart);                                                    // Terminated, also if the node goes
//
// A reference works wherever it gets to: in a message, as its sender, to a third node. Messages need a codec
// (actor/serialization); what has none is a dead letter here, what cannot be read is one there.
//
// What is promised: messages from one actor to another arrive in the order in which they were sent, at most once; each
// may be lost. Watching is reliable: a Terminated comes when the actor ends, or when its node is taken for dead. A node
// that is taken for dead is put into quarantine: this start of it is not spoken to again before the quarantine ends, since
// nobody knows what it has missed. It ends after RemotingConfig.quarantine_duration, by EndQuarantine, or when the node is
// restarted. A node that was restarted is another one, whatever its address: references to actors of its former life lead
// nowhere, and whoever watches one of them hears Terminated, by path as well.
//
// A question fails as it does locally, with the handler's error, or with what has become of it: it is not handled there,
// nobody has the path, it or its answer has no codec. So does one that never left this node: InvalidArgument without a
// codec, ResourceExhausted if it is too large or too many wait, Unavailable to a node in quarantine.
//
// Differences to local actors:
// - TryTell never says that a mailbox is full.
// - Stopping an actor elsewhere asks it, and its supervisor is the one that it has there.
// - A question that times out says whether the node is connected, and why not, but not what the actor is at.
// - The error of a question can be lost as its answer can: then it waits for its timeout. Peers of earlier versions send
//   none.
//
// Thread safety: any thread.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_REMOTING_H_
#define FRAKTOR_REMOTE_ASSOCIATION_REMOTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/remote_provider.h"
#include "fraktor/remote/association/peer_info.h"
#include "fraktor/remote/association/remote_door.h"
#include "fraktor/remote/association/remote_options.h"
#include "fraktor/remote/transport/transport.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0 {

struct CoreHandle;
class RemotingCore;

// Makes the recipe of an actor that another node wants to have here, of what that node says.
//
//   remoting.RegisterFactory("till", [](std::string_view argument) -> absl::StatusOr<PropsPtr> {
//     return MakeTypedProps<Till>({}, std::string(argument));                                // actor/typed/typed_actor.h
//   });
//   auto spawning = Remoting::Of(system)->SpawnAt(node, "till", "the argument", "till-2");   // on another node
//   absl::StatusOr<ActorRef> till = co_await spawning;
using RemoteFactory = std::function<absl::StatusOr<PropsPtr>(std::string_view argument)>;

class Remoting final : public actor_internal::RemoteProvider {
 public:
  // Once for each system, whose config has a RemotingConfig. It ends with the system. InvalidArgument for bad options.
  static absl::StatusOr<Remoting*> Start(ActorSystem& system, std::unique_ptr<Transport> transport,
                                         const RemoteOptions& options = {});
  // Null if it was not started.
  static Remoting* Of(ActorSystem& system);

  ~Remoting();
  Remoting(const Remoting&) = delete;
  Remoting& operator=(const Remoting&) = delete;

  // How others know this node, and which start of it this is.
  const ActorPathParts& address() const;
  uint64_t system_uid() const;
  // Of RemoteOptions: who opens messages that came within others refuses what is harmful (runtime_codecs.h) himself.
  bool is_untrusted() const;

  absl::StatusOr<ActorRef> RefAt(const ActorPath& path) override;
  absl::StatusOr<ActorRef> SelectionAt(const ActorPath& anchor, std::string_view elements) override;
  // As WireLimits and RemoteOptions::large_destinations say.
  size_t MaxMessageBytes(std::string_view path) const override;

  struct QuarantineOptions {
    std::string reason = "the program says so";
    // The peer goes by its own will: it is not told, and the event is another one.
    bool is_harmless = false;
  };
  // No dealings with that start of a node any more. FailedPrecondition, and nothing happens, if it is not the one that is
  // known there.
  absl::Status Quarantine(const PathAuthority& node, uint64_t system_uid, const QuarantineOptions& options);
  // Before its time.
  absl::Status EndQuarantine(const PathAuthority& node);

  // Messages of these types that wait for a connection to a node, and so have not left this one, are given back to who
  // has sent them (UndeliveredMessage), in order; what nobody takes is a dead letter. Others go on waiting: for
  // somebody who knows that the node will not come back, or that they have a better place to go to.
  void GiveBack(const PathAuthority& node, absl::Span<const MessageType* const> types);

  // Messages of this type that other nodes send to `actor`, which is one of this system, go through `door` from now on,
  // which lives as long as the process. One at a time; the last one counts.
  void OpenDoor(ActorRef actor, const MessageType* type, RemoteDoor& door);

  // What is known of others, by their addresses.
  std::vector<PeerInfo> Peers() const;

  // Peers may spawn actors by this name, if RemoteOptions::allow_deployment is on. Before they do; AlreadyExists for a
  // name that is taken.
  absl::Status RegisterFactory(std::string_view name, RemoteFactory factory);
  // Spawns an actor by a factory of another node, as a child of its /system/remote. Errors: what the factory and spawning
  // there say, or those of an ask.
  Future<ActorRef> SpawnAt(const ActorPathParts& node, std::string_view factory, std::string_view argument,
                           std::string_view name = {}, absl::Duration timeout = absl::Seconds(5));

 private:
  friend struct RemotingExtension;
  Remoting(ActorSystem& system, CoreHandle& handle, std::unique_ptr<RemotingCore> core);

  // Ends it: see the destructor.
  void Stop();

  ActorSystem& system_;
  CoreHandle& handle_;
  // Reached through the handle, with its lock.
  std::unique_ptr<RemotingCore> core_;
  TimerId timer_;
  ActorRef daemon_;
  struct Factories;
  const std::shared_ptr<Factories> factories_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_REMOTING_H_
