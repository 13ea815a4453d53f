// CodecContext: what a codec may need beside the message: how references are written, and how large things may be.
//
//   class LinkRefs : public ActorRefCodec { ... };                   // the remote transport: paths, or table indices
//   LinkRefs refs(link);
//   registry.Encode(envelope, frame, {.refs = &refs, .max_bytes = limits.max_message_bytes});
//
// Thread safety: a value; an ActorRefCodec is used by one thread at a time unless it says otherwise.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_CODEC_CONTEXT_H_
#define FRAKTOR_ACTOR_SERIALIZATION_CODEC_CONTEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// Writes references so that they can be read elsewhere, or later. Never asked about ActorRef::NoOne(), which is
// written without its help.
class ActorRefCodec {
 public:
  virtual ~ActorRefCodec() = default;

  // Appends what stands for `ref`, and nothing if it is as good as no one: it is read back as no one.
  virtual absl::Status Write(ActorRef ref, std::string& out) = 0;

  // `bytes`, which are not empty, are what Write has appended; they may come from a stranger.
  virtual absl::StatusOr<ActorRef> Read(std::string_view bytes) = 0;
};

inline constexpr size_t kDefaultMaxMessageBytes = size_t{16} << 20;

struct CodecContext {
  // Null: a message with a reference in it cannot be written or read here.
  ActorRefCodec* refs = nullptr;
  // Of one message.
  size_t max_bytes = kDefaultMaxMessageBytes;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_CODEC_CONTEXT_H_
