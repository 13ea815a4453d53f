// OutgoingMessage: a message as bytes, before it is known where in a batch it will stand. Made without the node's lock,
// since codecs are of users.
//
//   OutgoingMessage outgoing(node);
//   outgoing.Encode(message, base);             // references in it get the places base + 1, base + 2, ...
//   // with the lock: if the batch has `base` references, outgoing.refs() are added and then outgoing.payload()
//
// Thread safety: belongs to one thread.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_OUTGOING_MESSAGE_H_
#define FRAKTOR_REMOTE_ASSOCIATION_OUTGOING_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/message_codec.h"

namespace fraktor::inline v0 {

struct LocalNode;

class OutgoingMessage final : private ActorRefCodec {
 public:
  // `node` must outlive it.
  explicit OutgoingMessage(const LocalNode& node);
  ~OutgoingMessage() override;
  OutgoingMessage(const OutgoingMessage&) = delete;
  OutgoingMessage& operator=(const OutgoingMessage&) = delete;

  void Encode(const Envelope& message, uint32_t base);

  // Why it cannot leave this node; OK if it can. The codec is there if it can.
  const absl::Status& status() const { return status_; }
  const MessageCodec* codec() const { return codec_; }
  std::string_view payload() const { return buffers_->payload; }
  const std::vector<ActorRef>& refs() const { return buffers_->refs; }
  uint32_t base() const { return base_; }
  // How often it has been encoded.
  int attempts() const { return attempts_; }

  // How many references the batch has after it: a guess for the next one.
  uint32_t places() const { return places_; }
  void set_places(size_t places) { places_ = static_cast<uint32_t>(places); }

 private:
  // Kept by the thread from one message to the next.
  struct Buffers {
    std::string payload;
    std::vector<ActorRef> refs;
    bool is_used = false;
  };
  static Buffers& OfThisThread();

  absl::Status Write(ActorRef ref, std::string& out) override;
  absl::StatusOr<ActorRef> Read(std::string_view bytes) override;

  const LocalNode& node_;
  // Of one that is inside of another one, since a codec has sent a message.
  std::unique_ptr<Buffers> own_;
  Buffers* buffers_;
  absl::Status status_;
  const MessageCodec* codec_ = nullptr;
  uint32_t base_ = 0;
  uint32_t places_ = 0;
  int attempts_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_OUTGOING_MESSAGE_H_
