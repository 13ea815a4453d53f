// CodecSetup and CodecRegistry: the messages that a system can store and send, and their manifests.
//
//   CodecSetup codecs;
//   codecs.Add<Deposited, Withdrawn>();                                 // types with a Codec<T>, or protobuf messages
//   codecs.AddAlias<Deposited>("bank.payed_in");                        // an earlier name: is read, never written
//   FRAKTOR_ASSIGN_OR_RETURN(options.codecs, codecs.Build());
//
// Encode and decode with the registry:
//
//   std::string bytes;
//   FRAKTOR_ASSIGN_OR_RETURN(const MessageCodec* codec, registry.Encode(Deposited{7}, bytes));
//   const EncodedMessage stored{codec->manifest(), codec->version(), bytes};
//   FRAKTOR_ASSIGN_OR_RETURN(EnvelopePtr message, registry.Decode(stored));
//   FRAKTOR_ASSIGN_OR_RETURN(Deposited event, registry.DecodeAs<Deposited>(stored));
//
// Manifests are stored and sent, so choose a manifest once and keep it. It is never the name of a
// C++ type. Bool, numbers and std::string are always registered.
//
// Thread safety: a setup is a value; a registry is immutable.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_CODEC_REGISTRY_H_
#define FRAKTOR_ACTOR_SERIALIZATION_CODEC_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/message_codec.h"

namespace fraktor::inline v0 {

// Bytes with their manifest and version.
struct EncodedMessage {
  std::string_view manifest = {};
  uint32_t version = 0;
  std::string_view bytes = {};
};

inline constexpr size_t kMaxManifestBytes = 255;

class CodecRegistry {
 public:
  CodecRegistry(const CodecRegistry&) = delete;
  CodecRegistry& operator=(const CodecRegistry&) = delete;

  // The registry of a system without codecs of its own: bool, numbers and strings.
  static const CodecRegistry& BuiltIn();

  // Appends the bytes of a message to `out`. Returns the codec, which knows manifest and version
  // and lives as long as the registry. Leaves `out` unchanged on an error: kNotRegistered,
  // kCannotEncode or kTooLarge.
  absl::StatusOr<const MessageCodec*> Encode(const Envelope& message, std::string& out,
                                             const CodecContext& context = {}) const {
    return EncodeUntyped(message.type(), message.payload(), out, context);
  }
  template <Encodable T>
  absl::StatusOr<const MessageCodec*> Encode(const T& message, std::string& out,
                                             const CodecContext& context = {}) const {
    return EncodeUntyped(MessageTypeOf<T>(), &message, out, context);
  }

  // Returns the message in an envelope from `sender`. Errors: kUnknownManifest, kNewerVersion,
  // kCorrupt, kTooLarge.
  absl::StatusOr<EnvelopePtr> Decode(const EncodedMessage& message, ActorRef sender = {},
                                     const CodecContext& context = {}) const;
  // Returns the message as a value. Also kWrongType, if the manifest belongs to another type.
  template <Encodable T>
  absl::StatusOr<T> DecodeAs(const EncodedMessage& message, const CodecContext& context = {}) const {
    absl::StatusOr<const MessageCodec*> codec = Require(message.manifest, MessageTypeOf<T>());
    if (!codec.ok()) return codec.status();
    return static_cast<const TypedMessageCodec<T>*>(*codec)->DecodeValue(message.version, message.bytes, context);
  }

  // Returns null if there is none.
  const MessageCodec* FindType(const MessageType* type) const;
  template <class T>
  const MessageCodec* Find() const {
    return FindType(MessageTypeOf<T>());
  }
  const MessageCodec* FindManifest(std::string_view manifest) const;

  // The errors for a type or a manifest that is not registered.
  static absl::Status NotRegistered(const MessageType* type);
  static absl::Status UnknownManifest(std::string_view manifest);

  // The manifests of written messages, sorted; for tools.
  std::vector<std::string_view> Manifests() const;

 private:
  friend class CodecSetup;
  CodecRegistry() = default;

  absl::StatusOr<const MessageCodec*> EncodeUntyped(const MessageType* type, const void* message, std::string& out,
                                                    const CodecContext& context) const;
  absl::StatusOr<const MessageCodec*> Require(std::string_view manifest, const MessageType* type) const;

  absl::Status Add(std::shared_ptr<const MessageCodec> codec);
  absl::Status AddName(std::string manifest, const MessageCodec* codec);

  std::vector<std::shared_ptr<const MessageCodec>> codecs_;
  absl::flat_hash_map<const MessageType*, const MessageCodec*> by_type_;
  absl::flat_hash_map<std::string, const MessageCodec*> by_manifest_;
};

class CodecSetup {
 public:
  CodecSetup() = default;

  // Adds types with a Codec, and protobuf messages.
  template <class... Ts>
  CodecSetup& Add() {
    (AddAs<Ts>({}), ...);
    return *this;
  }
  // Adds a type under another manifest than its own.
  template <class T>
  CodecSetup& AddAs(std::string manifest) {
    static_assert(Encodable<T>,
                  "this message has no fraktor::Codec and is no protobuf message: write a Codec for it, see "
                  "fraktor/actor/serialization/codec.h");
    if constexpr (Encodable<T>) {
      codecs_.push_back(std::make_shared<const TypedMessageCodec<T>>(manifest.empty() ? codec_internal::ManifestOf<T>()
                                                                                      : std::move(manifest)));
    }
    return *this;
  }
  // Adds another manifest under which a T is read. T must be added too, before or after.
  template <class T>
  CodecSetup& AddAlias(std::string manifest) {
    aliases_.push_back({std::move(manifest), MessageTypeOf<T>()});
    return *this;
  }
  // Adds everything in another setup.
  CodecSetup& Add(const CodecSetup& other);

  // Returns kInvalidSetup with the type and the manifest for an empty or unprintable manifest, a
  // manifest of two types, a type that was added twice, and an alias of a type that was not added.
  absl::StatusOr<std::shared_ptr<const CodecRegistry>> Build() const;

 private:
  struct Alias {
    std::string manifest;
    const MessageType* type;
  };

  std::vector<std::shared_ptr<const MessageCodec>> codecs_;
  std::vector<Alias> aliases_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_CODEC_REGISTRY_H_
