// NodeLink: where references to actors of one node lead: to one life of it, or, for references by path, to whoever lives
// there.
//
// A link lives as long as the process, since references to it may be anywhere. There is a limit to how many a node has;
// at it, one that nobody has used for longest gets another meaning. What was sent by its old references then reaches
// nobody: uids of one life mean nothing in another, and a path has its own number each time.
//
// Thread safety: any thread may call the methods of RemoteLink, and RefOfUid, PromiseOfUid, UidOf, RefOfPath and the static
// ones; everything else is guarded by the lock of the handle.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_NODE_LINK_H_
#define FRAKTOR_REMOTE_ASSOCIATION_NODE_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/remote/association/core_handle.h"
#include "fraktor/remote/wire/frame_header.h"

namespace fraktor::inline v0 {

struct Peer;

// A reference by path.
struct PathEntry {
  std::string path;
  bool is_selection = false;
  uint32_t turn = 0;  // Of the place: another one each time it is used.
  Lane lane = Lane::kOrdinary;
};

class NodeLink final : public actor_internal::RemoteLink {
 public:
  // For ever. `life` is the uid of the system; 0 for references by path. ResourceExhausted if there is no slot left.
  static absl::StatusOr<NodeLink*> Make(CoreHandle& handle, const ActorPathParts& node, uint64_t life);

  // Of a reference that leads here.
  static NodeLink& Of(ActorRef ref);

  absl::Status Send(ActorRef to, EnvelopePtr message) override;
  EnvelopePtr SendSystem(ActorRef to, EnvelopePtr message) override;
  std::string PathOf(ActorRef to) const override;
  std::string CanonicalPathOf(ActorRef to) const override;
  std::string NodeText() const override;
  bool IsPromise(ActorRef to) const override { return to.any_slot() == low_promise_ || to.any_slot() == high_promise_; }
  ActorRef Shared(ActorRef promise) const override { return IsPromise(promise) ? RefOfUid(UidOf(promise)) : promise; }
  Asked DescribeAsked(const actor_internal::RemoteSlot& slot, uint32_t low_word) const override;

  // A life: the reference to the actor of that uid; no one for the few uids that cannot be told from others.
  ActorRef RefOfUid(uint64_t uid) const;
  // The same of a promise, which has slots of its own so that it is known as one.
  ActorRef PromiseOfUid(uint64_t uid) const;
  uint64_t UidOf(ActorRef ref) const;

  // References by path: a number, which is even shorter than the path.
  ActorRef RefOfPath(uint32_t index, uint32_t turn) const;
  static uint32_t PathIndexOf(ActorRef ref);
  static uint32_t PathTurnOf(ActorRef ref);
  // Null if the place has been used again since.
  const PathEntry* FindPath(ActorRef ref) const;

  CoreHandle& handle() const { return handle_; }
  const ActorPathParts& node() const { return node_; }
  uint64_t life() const { return life_; }

  // Another meaning.
  void Recycle(const ActorPathParts& node, uint64_t life);

  // Whom it leads to, if that has been found out.
  Peer* peer = nullptr;
  // When it was used last, among all links.
  uint64_t last_use = 0;
  // Actors there that are watched from here by references of this link.
  size_t watches = 0;

  // References by path.
  std::vector<PathEntry> paths;
  absl::flat_hash_map<std::string, uint32_t> path_index;
  std::vector<uint32_t> selections;  // Places that are used again, the oldest first.
  size_t next_selection = 0;
  uint32_t NextTurn() { return next_turn_ = (next_turn_ + 1) & 0x7fffffff; }

  // Of a life: what its actors are called, as far as it was said, for people; and by which lane they are reached, if that
  // was ever a question: for ever, since messages must not overtake each other.
  absl::flat_hash_map<uint64_t, std::string> texts;
  size_t text_bytes = 0;
  absl::flat_hash_map<uint64_t, Lane> lanes;

 private:
  NodeLink(CoreHandle& handle, const ActorPathParts& node, uint64_t life) : handle_(handle), node_(node), life_(life) {}

  CoreHandle& handle_;
  ActorPathParts node_;
  uint64_t life_;
  uint32_t next_turn_ = 0;
  // A word has room for 63 bits of a uid: which slot it is says the highest.
  actor_internal::RemoteSlot* low_ = nullptr;
  actor_internal::RemoteSlot* high_ = nullptr;
  actor_internal::RemoteSlot* low_promise_ = nullptr;
  actor_internal::RemoteSlot* high_promise_ = nullptr;
  // How many references the batch had when the last message was added: a guess where those of the next will stand. Pairs
  // with nothing.
  std::atomic<uint32_t> places_{0};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_NODE_LINK_H_
