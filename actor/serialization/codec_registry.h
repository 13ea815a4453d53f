// CodecSetup and CodecRegistry: which messages a system can store and send, and under which manifests.
//
//   CodecSetup codecs;
//   codecs.Add<Deposited, Withdrawn, bank::Transfer>();                 // Codec<T>, or a protobuf message
//   codecs.AddAlias<Deposited>("bank.payed_in");                        // its name in the past: is read, never written
//   FRAKTOR_ASSIGN_OR_RETURN(options.codecs, codecs.Build());
//   ...
//   std::string bytes;
//   FRAKTOR_ASSIGN_OR_RETURN(const MessageCodec* codec, registry.Encode(Deposited{7}, bytes));
//   Store(codec->manifest(), codec->version(), bytes);
//   FRAKTOR_ASSIGN_OR_RETURN(EnvelopePtr message, registry.Decode({manifest, version, bytes}));
//   FRAKTOR_ASSIGN_OR_RETURN(Deposited event, registry.DecodeAs<Deposited>({manifest, version, bytes}));
//
// A manifest is stored and sent, so it is chosen once and kept: it is never the name of a C++ type. Bool, numbers and
// std::string are always there.
//
// Thread safety: a setup is a value; a registry is a constant.
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

// Bytes, and what is said about them.
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

  // Bool, numbers and texts: what a system has whose options say nothing.
  static const CodecRegistry& BuiltIn();

  // Appends the bytes of a message to `out`, and answers the codec, which knows manifest and version and lives as long
  // as the registry. On an error `out` is as it was: kNotRegistered, kCannotEncode, kTooLarge.
  absl::StatusOr<const MessageCodec*> Encode(const Envelope& message, std::string& out,
                                             const CodecContext& context = {}) const {
    return EncodeUntyped(message.type(), message.payload(), out, context);
  }
  template <Encodable T>
  absl::StatusOr<const MessageCodec*> Encode(const T& message, std::string& out,
                                             const CodecContext& context = {}) const {
    return EncodeUntyped(MessageTypeOf<T>(), &message, out, context);
  }

  // The message in an envelope from `sender`. kUnknownManifest, kNewerVersion, kCorrupt, kTooLarge.
  absl::StatusOr<EnvelopePtr> Decode(const EncodedMessage& message, ActorRef sender = {},
                                     const CodecContext& context = {}) const;
  // The message as a value. Also kWrongType, if the manifest is that of another type.
  template <Encodable T>
  absl::StatusOr<T> DecodeAs(const EncodedMessage& message, const CodecContext& context = {}) const {
    absl::StatusOr<const MessageCodec*> codec = Require(message.manifest, MessageTypeOf<T>());
    if (!codec.ok()) return codec.status();
    return static_cast<const TypedMessageCodec<T>*>(*codec)->DecodeValue(message.version, message.bytes, context);
  }

  // Null if there is none.
  const MessageCodec* FindType(const MessageType* type) const;
  template <class T>
  const MessageCodec* Find() const {
    return FindType(MessageTypeOf<T>());
  }
  const MessageCodec* FindManifest(std::string_view manifest) const;

  // What is said about a type or a manifest that was not found.
  static absl::Status NotRegistered(const MessageType* type);
  static absl::Status UnknownManifest(std::string_view manifest);

  // The manifests that are written, sorted: for tools.
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

  // Types with a Codec, and protobuf messages.
  template <class... Ts>
  CodecSetup& Add() {
    (AddAs<Ts>({}), ...);
    return *this;
  }
  // Under another manifest than its own.
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
  // Another manifest under which a T is read. T is added too, before or after.
  template <class T>
  CodecSetup& AddAlias(std::string manifest) {
    aliases_.push_back({std::move(manifest), MessageTypeOf<T>()});
    return *this;
  }
  // All that another setup has.
  CodecSetup& Add(const CodecSetup& other);

  // kInvalidSetup that names the type and the manifest: an empty or unprintable manifest, one that stands for two types,
  // a type that was added twice, an alias of a type that was not added.
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
