// How the runtime's own messages travel: PoisonPill, Kill, Identify and its answer, an error or Done as an
// answer, and what spawns an actor on another node. Programs need not register them:
//
//   const MessageCodec* codec = codecs_of_the_program.FindManifest(name);
//   if (codec == nullptr) codec = RuntimeCodecs().FindManifest(name);
//
// Thread safety: constants.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_RUNTIME_CODECS_H_
#define FRAKTOR_REMOTE_ASSOCIATION_RUNTIME_CODECS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/typed/done.h"

namespace fraktor::inline v0 {

// To the daemon of another node: an actor is to be spawned there by a factory that it knows.
struct RemoteSpawned {
  ActorRef ref;
};
struct RemoteSpawn {
  using Reply = RemoteSpawned;
  std::string factory;
  std::string name;
  // What the factory gets, in the form that it expects.
  std::string argument;
};

template <>
struct Codec<PoisonPill> : FieldCodec<PoisonPill> {
  static constexpr std::string_view kManifest = "fraktor.poison_pill";
};
template <>
struct Codec<Kill> : FieldCodec<Kill> {
  static constexpr std::string_view kManifest = "fraktor.kill";
};
template <>
struct Codec<Identify> : FieldCodec<Identify, &Identify::id> {
  static constexpr std::string_view kManifest = "fraktor.identify";
};
template <>
struct Codec<ActorIdentity> : FieldCodec<ActorIdentity, &ActorIdentity::id, &ActorIdentity::ref> {
  static constexpr std::string_view kManifest = "fraktor.actor_identity";
};
template <>
struct Codec<ErrorReply> {
  static constexpr std::string_view kManifest = "fraktor.error_reply";
  static void Encode(const ErrorReply& reply, Encoder& out);
  static ErrorReply Decode(Decoder& in);
};
template <>
struct Codec<Done> : FieldCodec<Done> {
  static constexpr std::string_view kManifest = "fraktor.done";
};
template <>
struct Codec<RemoteSpawn> : FieldCodec<RemoteSpawn, &RemoteSpawn::factory, &RemoteSpawn::name, &RemoteSpawn::argument> {
  static constexpr std::string_view kManifest = "fraktor.remote_spawn";
};
template <>
struct Codec<RemoteSpawned> : FieldCodec<RemoteSpawned, &RemoteSpawned::ref> {
  static constexpr std::string_view kManifest = "fraktor.remote_spawned";
};

const CodecRegistry& RuntimeCodecs();

// Whether peers that are not trusted may not send it (RemoteOptions::untrusted): not by itself, and not within a
// message that whoever gets it opens.
bool IsHarmful(const MessageType* type);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_RUNTIME_CODECS_H_
