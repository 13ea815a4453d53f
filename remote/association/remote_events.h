// What the event stream hears of other nodes, besides the states of their authorities (authority_events.h).
//
//   const EventSubscription lost = system.events().Listen<AddressTerminated>([](const AddressTerminated& gone) {
//     pager.Call(std::string(gone.node), std::string(gone.reason));         // on the thread that publishes: be brief
//   });
//
// Events are views that hold during the publication.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_REMOTE_EVENTS_H_
#define FRAKTOR_REMOTE_ASSOCIATION_REMOTE_EVENTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "fraktor/actor/event/event_type.h"

namespace fraktor::inline v0 {

// A node is gone, as far as this one knows: actors there that are watched from here have been reported.
struct AddressTerminated {
  static constexpr EventInfo<AddressTerminated> kEvent{"AddressTerminated"};
  std::string_view node;  // "pekko://shop@10.0.0.7:2552"
  uint64_t system_uid;    // 0 if it was never known
  std::string_view reason;
};

// A peer has put this node into quarantine, and this node the peer, each for RemotingConfig.quarantine_duration of its
// own. What is sent to it is lost until then, until one of the two is restarted, or until both end it
// (Remoting::EndQuarantine).
struct ThisSystemQuarantined {
  static constexpr EventInfo<ThisSystemQuarantined> kEvent{"ThisSystemQuarantined"};
  std::string_view node;  // Who has.
  std::string_view reason;
};

// A peer has been left in peace: it goes by its own will.
struct HarmlessQuarantine {
  static constexpr EventInfo<HarmlessQuarantine> kEvent{"HarmlessQuarantine"};
  std::string_view node;
  uint64_t system_uid;
  std::string_view reason;
};

// Messages to a peer that were encoded, and waited for a stream, are lost with it. They are counted as dead letters, and
// nothing else is known of them any more.
struct QueuedMessagesLost {
  static constexpr EventInfo<QueuedMessagesLost> kEvent{"QueuedMessagesLost"};
  std::string_view node;
  uint64_t count;
  std::string_view reason;
};

// A handshake was refused, here or there.
struct HandshakeRefused {
  static constexpr EventInfo<HandshakeRefused> kEvent{"HandshakeRefused"};
  std::string_view node;
  std::string_view reason;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_REMOTE_EVENTS_H_
