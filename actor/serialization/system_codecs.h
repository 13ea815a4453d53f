// The codecs of an actor system, and references as paths.
//
//   const CodecRegistry& codecs = CodecsOf(system);                     // ActorSystemOptions::codecs
//   PathRefs refs(system);
//   absl::StatusOr<const MessageCodec*> codec = codecs.Encode(event, bytes, {.refs = &refs});
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_SYSTEM_CODECS_H_
#define FRAKTOR_ACTOR_SERIALIZATION_SYSTEM_CODECS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"

namespace fraktor::inline v0 {

// The registry lives as long as the system.
const CodecRegistry& CodecsOf(const ActorSystem& system);

// For stored messages: writes a reference as the path of its actor, without the uid, and reads it
// as the actor that has the path then, or as no one. An actor that has ended, a promise, and an
// actor of another node without a known path are written as no one. The path of an actor of another
// node is read as no one if this system cannot reach that node.
class PathRefs final : public ActorRefCodec {
 public:
  // `system` must outlive this object.
  explicit PathRefs(const ActorSystem& system) : system_(system) {}

  absl::Status Write(ActorRef ref, std::string& out) override;
  absl::StatusOr<ActorRef> Read(std::string_view bytes) override;

 private:
  const ActorSystem& system_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_SYSTEM_CODECS_H_
