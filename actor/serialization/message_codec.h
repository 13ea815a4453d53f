// MessageCodec: the codec of a type under its manifest, without the type in its interface.
// CodecRegistry returns it.
//
//   const MessageCodec* codec = registry.FindManifest("bank.deposited");
//   absl::StatusOr<EnvelopePtr> envelope = codec->Decode(version, bytes, sender, context);
//
// For any bytes, and also if a codec throws, the result is a status.
//
// Thread safety: immutable.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_MESSAGE_CODEC_H_
#define FRAKTOR_ACTOR_SERIALIZATION_MESSAGE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/actor/serialization/encoder.h"

// A program with protobuf messages includes their definitions.
namespace google::protobuf::io {
class ArrayOutputStream;
class CodedOutputStream;
}  // namespace google::protobuf::io

namespace fraktor::inline v0 {

class MessageCodec {
 public:
  virtual ~MessageCodec() = default;
  MessageCodec(const MessageCodec&) = delete;
  MessageCodec& operator=(const MessageCodec&) = delete;

  const MessageType* type() const { return type_; }
  // The name of the type in stored and sent bytes.
  std::string_view manifest() const { return manifest_; }
  // The version that this codec writes. It reads this version and all earlier ones.
  uint32_t version() const { return version_; }

  // Appends the bytes of `message`, which is of type(). Leaves `out` unchanged on an error:
  // kCannotEncode or kTooLarge.
  absl::Status Encode(const void* message, std::string& out, const CodecContext& context) const;

  // Makes an envelope with the decoded message. Errors: kNewerVersion, kCorrupt, kTooLarge.
  absl::StatusOr<EnvelopePtr> Decode(uint32_t version, std::string_view bytes, ActorRef sender,
                                     const CodecContext& context) const;

 protected:
  MessageCodec(const MessageType* type, std::string manifest, uint32_t version)
      : type_(type), manifest_(std::move(manifest)), version_(version) {}

  // Calls `decode` if the version and the size allow it. Turns an error or an exception into an
  // error that names the manifest.
  absl::Status Guarded(uint32_t version, std::string_view bytes, const CodecContext& context,
                       absl::FunctionRef<absl::Status(Decoder& in)> decode) const;

 private:
  virtual void EncodeTo(const void* message, Encoder& out) const = 0;
  virtual absl::StatusOr<EnvelopePtr> DecodeFrom(Decoder& in, ActorRef sender) const = 0;

  const MessageType* const type_;
  const std::string manifest_;
  const uint32_t version_;
};

namespace codec_internal {

template <Encodable T>
std::string ManifestOf() {
  if constexpr (HasCodec<T>) {
    return std::string(Codec<T>::kManifest);
  } else {
    return std::string(T().GetTypeName());
  }
}

template <Encodable T>
constexpr uint32_t CodecVersionOf() {
  if constexpr (HasCodec<T>) {
    return VersionOf<T>();
  } else {
    return 0;
  }
}

// Equal full messages have equal bytes, even with maps. Lite messages have no such option.
template <ProtobufMessage T, class Array = google::protobuf::io::ArrayOutputStream,
          class Coded = google::protobuf::io::CodedOutputStream>
bool WriteProtobuf(const T& message, char* bytes, int size) {
  if constexpr (requires { T::descriptor(); }) {
    Array array(bytes, size);
    Coded coded(&array);
    coded.SetSerializationDeterministic(true);
    return message.SerializeToCodedStream(&coded);
  } else {
    return message.SerializeToArray(bytes, size);
  }
}

template <ProtobufMessage T>
void EncodeProtobuf(const T& message, Encoder& out) {
  if (!message.IsInitialized()) return out.Fail("a required field is not set");
  const size_t size = message.ByteSizeLong();
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return out.Fail("protobuf writes no message of more than 2 GiB");
  }
  char* const bytes = out.Extend(size);
  if (bytes == nullptr) return;
  if (!WriteProtobuf(message, bytes, static_cast<int>(size))) out.Fail("protobuf cannot write it");
}

template <ProtobufMessage T>
absl::Status DecodeProtobuf(Decoder& in, T& message) {
  const std::string_view bytes = in.rest();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    in.Fail("protobuf cannot read it");
  }
  in.SkipRest();
  return in.Finish();
}

}  // namespace codec_internal

// For CodecSetup.
template <Encodable T>
class TypedMessageCodec final : public MessageCodec {
 public:
  explicit TypedMessageCodec(std::string manifest)
      : MessageCodec(MessageTypeOf<T>(), std::move(manifest), codec_internal::CodecVersionOf<T>()) {}

  // Decodes the value without an envelope.
  absl::StatusOr<T> DecodeValue(uint32_t version, std::string_view bytes, const CodecContext& context) const {
    absl::StatusOr<T> value = absl::UnknownError("");
    absl::Status status = Guarded(version, bytes, context, [&value](Decoder& in) -> absl::Status {
      if constexpr (codec_internal::HasCodec<T>) {
        value = codec_internal::DecodeBody<T>(in);
        if (!value.ok()) return value.status();
        return in.Finish();
      } else {
        return codec_internal::DecodeProtobuf(in, value.emplace());
      }
    });
    if (!status.ok()) return status;
    return value;
  }

 private:
  void EncodeTo(const void* message, Encoder& out) const override {
    const T& typed = *static_cast<const T*>(message);
    if constexpr (codec_internal::HasCodec<T>) {
      codec_internal::EncodeBody(typed, out);
    } else {
      codec_internal::EncodeProtobuf(typed, out);
    }
  }

  absl::StatusOr<EnvelopePtr> DecodeFrom(Decoder& in, ActorRef sender) const override {
    if constexpr (codec_internal::HasCodec<T>) {
      absl::StatusOr<T> value = codec_internal::DecodeBody<T>(in);
      if (!value.ok()) return value.status();
      if (absl::Status status = in.Finish(); !status.ok()) return status;
      return MakeEnvelope<T>(sender, *std::move(value));
    } else {
      EnvelopePtr envelope = MakeEnvelope<T>(sender);
      if (absl::Status status = codec_internal::DecodeProtobuf(in, envelope->As<T>()); !status.ok()) return status;
      return envelope;
    }
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_MESSAGE_CODEC_H_
