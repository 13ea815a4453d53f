// What is known of another node, for people and tests: a snapshot.
//
//   for (const PeerInfo& peer : Remoting::Of(system)->Peers()) {
//     if (!peer.is_associated) std::cout << peer.parts.ToString() << " is not connected; " << peer.queued << " wait\n";
//   }
//
// Thread safety: a value.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_PEER_INFO_H_
#define FRAKTOR_REMOTE_ASSOCIATION_PEER_INFO_H_

#include <cstddef>
#include <cstdint>

#include "fraktor/actor/path/actor_path_parts.h"

namespace fraktor::inline v0 {

struct PeerInfo {
  ActorPathParts parts;
  // Of the start that was met last; 0 for none.
  uint64_t uid = 0;
  bool is_associated = false;
  bool is_quarantined = false;
  // Of the protocol.
  uint32_t version = 0;
  // Of RemoteOptions.features, those that it has too.
  uint64_t features = 0;
  // Messages that wait for a stream, and system messages that wait for an answer.
  size_t queued = 0;
  size_t pending_system = 0;
  // Messages that have waited in vain: the peer was gone, or put into quarantine, before they left.
  uint64_t lost = 0;
  // Actors there that are watched from here.
  size_t watches = 0;
  size_t open_streams = 0;
  // So many heartbeats have been sent to it.
  uint64_t heartbeats = 0;
  bool has_detector = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_PEER_INFO_H_
