// NodeLink: where references to actors of one node lead: to one life of it, or, for references by path, to whoever lives
// there.
//
// Thread safety: any thread.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_NODE_LINK_H_
#define FRAKTOR_REMOTE_ASSOCIATION_NODE_LINK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/turn/remote_sending.h"
#include "fraktor/remote/association/core_handle.h"

namespace fraktor::inline v0 {

class NodeLink final : public RemoteLink {
 public:
  // For ever. `life` is the uid of the system; 0 for references by path. ResourceExhausted if there is no slot left.
  static absl::StatusOr<NodeLink*> Make(CoreHandle& handle, const ActorPathParts& node, uint64_t life);

  // Of a reference that leads here.
  static NodeLink& Of(ActorRef ref);

  absl::Status Send(ActorRef to, EnvelopePtr message) override;
  EnvelopePtr SendSystem(ActorRef to, EnvelopePtr message) override;
  std::string PathOf(ActorRef to) const override;
  std::string NodeText() const override { return node_.ToString(); }

  // A life: the reference to the actor of that uid; no one for the few uids that cannot be told from others.
  ActorRef RefOfUid(uint64_t uid) const;
  uint64_t UidOf(ActorRef ref) const;

  // References by path: a number, which is even shorter than the path.
  ActorRef RefOfPath(uint32_t index, uint32_t turn) const;
  static uint32_t PathIndexOf(ActorRef ref);
  static uint32_t PathTurnOf(ActorRef ref);

  CoreHandle& handle() const { return handle_; }
  const ActorPathParts& node() const { return node_; }
  uint64_t life() const { return life_; }

 private:
  NodeLink(CoreHandle& handle, const ActorPathParts& node, uint64_t life) : handle_(handle), node_(node), life_(life) {}

  CoreHandle& handle_;
  const ActorPathParts node_;
  const uint64_t life_;
  // A word has room for 63 bits of a uid: which slot it is says the highest.
  ActorSlot* low_ = nullptr;
  ActorSlot* high_ = nullptr;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_NODE_LINK_H_
