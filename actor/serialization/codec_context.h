// CodecContext: the surroundings of a codec: how references are written, and how large a message
// may be.
//
//   PathRefs refs(system);                                           // an ActorRefCodec: references as paths
//   const CodecContext context{.refs = &refs, .max_bytes = 1'000'000};
//   absl::StatusOr<const MessageCodec*> codec = registry.Encode(event, bytes, context);
//
// Thread safety: a value. One thread at a time uses an ActorRefCodec, unless its class says
// otherwise.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_CODEC_CONTEXT_H_
#define FRAKTOR_ACTOR_SERIALIZATION_CODEC_CONTEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// Writes references so that they can be read elsewhere or later. Never called with
// ActorRef::NoOne(), which needs no ActorRefCodec.
class ActorRefCodec {
 public:
  virtual ~ActorRefCodec() = default;

  // Appends the bytes of `ref`. Appends nothing for a reference that is to be read as no one.
  virtual absl::Status Write(ActorRef ref, std::string& out) = 0;

  // Reads the bytes, at least one, that Write appended. They may come from a stranger.
  virtual absl::StatusOr<ActorRef> Read(std::string_view bytes) = 0;
};

inline constexpr size_t kDefaultMaxMessageBytes = size_t{16} << 20;

struct CodecContext {
  // Null: a message that contains a reference cannot be written or read.
  ActorRefCodec* refs = nullptr;
  // The limit for one message.
  size_t max_bytes = kDefaultMaxMessageBytes;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_CODEC_CONTEXT_H_
