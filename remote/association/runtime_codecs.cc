#include "fraktor/remote/association/runtime_codecs.h"

#include <memory>

#include "absl/status/status.h"

#include "fraktor/actor/message/error_reply.h"

namespace fraktor::inline v0 {

void Codec<ErrorReply>::Encode(const ErrorReply& reply, Encoder& out) { out.Status(reply.status); }

ErrorReply Codec<ErrorReply>::Decode(Decoder& in) {
  ErrorReply reply{in.Status()};
  // Whatever came, it is no success.
  if (reply.status.ok()) reply.status = absl::UnknownError("an error without a code");
  return reply;
}

const CodecRegistry& RuntimeCodecs() {
  static const std::shared_ptr<const CodecRegistry>& codecs = *new std::shared_ptr<const CodecRegistry>(
      CodecSetup()
          .Add<PoisonPill, Kill, Identify, ActorIdentity, ErrorReply, Done, RemoteSpawn, RemoteSpawned>()
          .Build()
          .value());
  return *codecs;
}

bool IsHarmful(const MessageType* type) {
  return type == MessageTypeOf<PoisonPill>() || type == MessageTypeOf<Kill>() || type == MessageTypeOf<RemoteSpawn>();
}

}  // namespace fraktor::inline v0
