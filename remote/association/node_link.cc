#include "fraktor/remote/association/node_link.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/remote/association/outgoing_message.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

using actor_internal::MakeRemoteSlot;
using actor_internal::RemoteLink;
using actor_internal::RemoteSlot;
using actor_internal::SystemCore;

namespace {

constexpr uint64_t kTopBit = uint64_t{1} << 63;
static_assert(kTopBit == ActorRef::kRemote);

ActorRef RefAtSlot(RemoteSlot* slot, uint64_t uid) {
  if (slot->IsAt(static_cast<uint32_t>(uid))) return {};
  return ActorRef(slot, uid | ActorRef::kRemote);
}

// Kept together, so that tools that look for leaks find them: they do not look into the memory of slots.
void Keep(NodeLink* link) {
  struct All {
    Mutex mutex;
    std::vector<NodeLink*> links ABSL_GUARDED_BY(mutex);
  };
  static All& all = *new All;
  MutexLock lock(all.mutex);
  all.links.push_back(link);
}

}  // namespace

// All slots, whatever it is for: it may be for something else later.
absl::StatusOr<NodeLink*> NodeLink::Make(CoreHandle& handle, const ActorPathParts& node, uint64_t life) {
  auto* const link = new NodeLink(handle, node, life);  // NOLINT(cppcoreguidelines-owning-memory): of the process.
  Keep(link);
  FRAKTOR_ASSIGN_OR_RETURN(link->low_, MakeRemoteSlot(*link));
  FRAKTOR_ASSIGN_OR_RETURN(link->high_, MakeRemoteSlot(*link));
  FRAKTOR_ASSIGN_OR_RETURN(link->low_promise_, MakeRemoteSlot(*link));
  FRAKTOR_ASSIGN_OR_RETURN(link->high_promise_, MakeRemoteSlot(*link));
  return link;
}

NodeLink& NodeLink::Of(ActorRef ref) { return static_cast<NodeLink&>(*ref.remote_slot()->link); }

void NodeLink::Recycle(const ActorPathParts& node, uint64_t life) {
  node_ = node;
  life_ = life;
  peer = nullptr;
  watches = 0;
  paths = {};
  path_index = {};
  selections = {};
  next_selection = 0;
  texts = {};
  text_bytes = 0;
  lanes = {};
}

ActorRef NodeLink::RefOfUid(uint64_t uid) const { return RefAtSlot((uid & kTopBit) == 0 ? low_ : high_, uid); }

ActorRef NodeLink::PromiseOfUid(uint64_t uid) const {
  return RefAtSlot((uid & kTopBit) == 0 ? low_promise_ : high_promise_, uid);
}

uint64_t NodeLink::UidOf(ActorRef ref) const {
  const bool is_high = ref.any_slot() == high_ || ref.any_slot() == high_promise_;
  return is_high ? ref.word() : ref.word() & ~ActorRef::kRemote;
}

// The lower half is odd, which the generation of a slot that leads elsewhere is not.
ActorRef NodeLink::RefOfPath(uint32_t index, uint32_t turn) const {
  return ActorRef(low_, ActorRef::kRemote | uint64_t{turn} << 32 | index << 1 | 1);
}

uint32_t NodeLink::PathIndexOf(ActorRef ref) { return static_cast<uint32_t>(ref.word()) >> 1; }

uint32_t NodeLink::PathTurnOf(ActorRef ref) { return static_cast<uint32_t>((ref.word() & ~ActorRef::kRemote) >> 32); }

const PathEntry* NodeLink::FindPath(ActorRef ref) const {
  const uint32_t index = PathIndexOf(ref);
  if (life_ != 0 || index >= paths.size() || paths[index].turn != PathTurnOf(ref)) return nullptr;
  return &paths[index];
}

absl::Status NodeLink::Send(ActorRef to, EnvelopePtr message) {
  const Visit visit(handle_);
  if (visit.node() != nullptr) {
    OutgoingMessage outgoing(*visit.node());
    outgoing.Encode(*message, places_.load(std::memory_order_relaxed));
    for (;;) {
      bool is_done = false;
      {
        Section section(handle_);
        if (section.core() == nullptr) break;
        is_done = section.core()->Send(section, *this, to, message, outgoing);
        if (is_done) places_.store(outgoing.places(), std::memory_order_relaxed);
      }
      if (is_done) return absl::OkStatus();
      outgoing.Encode(*message, 0);
    }
  }
  SystemCore::LoseForeign(to, std::move(message), DeadLetterReason::kShutdown);
  return absl::UnavailableError("the actor system has ended");
}

EnvelopePtr NodeLink::SendSystem(ActorRef to, EnvelopePtr message) {
  Section section(handle_);
  if (section.core() == nullptr) return message;
  return section.core()->SendSystem(section, *this, to, std::move(message));
}

std::string NodeLink::PathOf(ActorRef to) const {
  Section section(handle_);
  std::string path = section.core() == nullptr ? std::string() : section.core()->PathTextOf(*this, to);
  if (!path.empty()) return absl::StrCat(node_.ToString(), path);
  return life_ == 0 ? absl::StrCat(node_.ToString(), "/?") : absl::StrCat(node_.ToString(), "/?#", UidOf(to));
}

std::string NodeLink::CanonicalPathOf(ActorRef to) const {
  Section section(handle_);
  if (life_ == 0) {
    const PathEntry* const entry = FindPath(to);
    if (entry == nullptr || entry->is_selection) return {};
    // A uid without a path.
    return absl::StrCat(node_.ToString(), entry->path.front() == '#' ? "/?" : "", entry->path);
  }
  const std::string path = section.core() == nullptr ? std::string() : section.core()->PathTextOf(*this, to);
  return absl::StrCat(node_.ToString(), path.empty() ? "/?" : path, "#", UidOf(to));
}

std::string NodeLink::NodeText() const {
  const MutexLock lock(handle_.mutex);
  return node_.ToString();
}

RemoteLink::Asked NodeLink::DescribeAsked(const RemoteSlot& slot, uint32_t low_word) const {
  Section section(handle_);
  std::string path;
  if (life_ == 0) {
    const uint32_t index = low_word >> 1;
    if (index < paths.size()) path = paths[index].path;
  } else {
    // Two of the texts that are kept hardly ever have the same lower half.
    for (const auto& [uid, text] : texts) {
      const bool is_high = (uid & kTopBit) != 0;
      if (static_cast<uint32_t>(uid) == low_word && is_high == (&slot == high_)) path = text;
    }
  }
  return {.path = absl::StrCat(node_.ToString(), path),
          .status = section.core() == nullptr ? "the actor system has ended" : section.core()->StateOf(*this)};
}

}  // namespace fraktor::inline v0
