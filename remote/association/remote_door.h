// RemoteDoor: handles what other nodes send to one actor before it is in that actor's mailbox, on the thread that brings it.
//
//   remoting.OpenDoor(actor, MessageTypeOf<Parcel>(), door);          // of its Parcels; the others go to the actor
//
// A door says for each message who gets what. What is sent goes in the order in which it has come, and what follows each
// other to the same actor goes together.
//
// Thread safety: any thread may call anything; each for batches of its own.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_REMOTE_DOOR_H_
#define FRAKTOR_REMOTE_ASSOCIATION_REMOTE_DOOR_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"

namespace fraktor::inline v0 {

class RemoteDoor {
 public:
  // As it has come: bytes that the codec of its type, in this version, has written.
  struct Arrival {
    const ActorPathParts& from;
    ActorRef sender;
    uint32_t version = 0;
    std::string_view payload;
    const CodecContext& context;
  };
  struct Delivery {
    ActorRef to;
    EnvelopePtr message;
  };

  // Before the first one of a batch; what it returns is given back with each of them.
  virtual uint32_t BeginBatch() = 0;
  // None: it cannot be read, or is no business of the door: it is decoded, and goes to the actor. Does not throw.
  virtual std::optional<Delivery> Enter(uint32_t batch, const Arrival& arrival) = 0;
  // What was delivered is in the mailboxes.
  virtual void EndBatch(uint32_t batch) = 0;

 protected:
  ~RemoteDoor() = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_REMOTE_DOOR_H_
