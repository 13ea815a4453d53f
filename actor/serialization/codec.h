// Codec<T>: turns messages of a type into bytes and back, under a manifest and a version. Write it
// once, next to the type. Persistence stores events with it, and the remote transport sends
// messages with it.
//
//   struct Deposited { int64_t amount = 0; std::string note = {}; };
//
//   template <>
//   struct fraktor::Codec<Deposited> : fraktor::FieldCodec<Deposited, &Deposited::amount, &Deposited::note> {
//     static constexpr std::string_view kManifest = "bank.deposited";       // explicit and stable: it is stored
//     static constexpr uint32_t kVersion = 1;                               // 0 if left out
//   };
//
// FieldCodec writes the fields one after the other. A version that appends fields can read the
// bytes of older versions: the new fields keep their defaults. If that is not enough, write the two
// functions yourself:
//
//   template <>
//   struct fraktor::Codec<Shape> {
//     static constexpr std::string_view kManifest = "draw.shape";
//     static constexpr uint32_t kVersion = 2;
//     static void Encode(const Shape& shape, Encoder& out);                 // or absl::Status
//     static Shape Decode(Decoder& in);                                     // or absl::StatusOr<Shape>
//   };                                                                      // in.version() is 0, 1 or 2
//
// A protobuf message needs no codec: its manifest is its full name, and protobuf handles its
// versions. bool, numbers of 32 and 64 bits, float, double and std::string have their codecs here.
//
// Thread safety: a codec has no state.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_CODEC_H_
#define FRAKTOR_ACTOR_SERIALIZATION_CODEC_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/actor/serialization/encoder.h"

namespace fraktor::inline v0 {

template <class T, auto... kFields>
struct FieldCodec {
  static void Encode([[maybe_unused]] const T& value, [[maybe_unused]] Encoder& out) {
    (out.Value(value.*kFields), ...);
  }
  static T Decode([[maybe_unused]] Decoder& in) {
    T value{};
    (DecodeField(in, value.*kFields), ...);
    return value;
  }

 private:
  template <class Field>
  static void DecodeField(Decoder& in, Field& field) {
    if (in.AtEnd() && in.IsOlder()) return;  // an older version did not write this field
    field = in.Value<Field>();
  }
};

// The functions that generated protobuf messages have, full and lite, of any version of the
// library. Our headers do not include those of protobuf.
template <class T>
concept ProtobufMessage = std::is_class_v<T> && std::is_default_constructible_v<T> &&
    requires(const T& message, T& parsed, void* out, const void* bytes, int size) {
  { message.ByteSizeLong() } -> std::convertible_to<size_t>;
  { message.SerializeToArray(out, size) } -> std::convertible_to<bool>;
  { message.IsInitialized() } -> std::convertible_to<bool>;
  { parsed.ParseFromArray(bytes, size) } -> std::convertible_to<bool>;
  std::string(message.GetTypeName());
};

// The types that a CodecRegistry accepts.
template <class T>
concept Encodable = codec_internal::HasCodec<T> || ProtobufMessage<T>;

namespace codec_internal {

template <class T>
struct ValueCodec {
  static void Encode(const T& value, Encoder& out) { out.Value(value); }
  static T Decode(Decoder& in) { return in.Value<T>(); }
};

}  // namespace codec_internal

template <>
struct Codec<bool> : codec_internal::ValueCodec<bool> {
  static constexpr std::string_view kManifest = "fraktor.bool";
};
template <>
struct Codec<int32_t> : codec_internal::ValueCodec<int32_t> {
  static constexpr std::string_view kManifest = "fraktor.int32";
};
template <>
struct Codec<uint32_t> : codec_internal::ValueCodec<uint32_t> {
  static constexpr std::string_view kManifest = "fraktor.uint32";
};
template <>
struct Codec<int64_t> : codec_internal::ValueCodec<int64_t> {
  static constexpr std::string_view kManifest = "fraktor.int64";
};
template <>
struct Codec<uint64_t> : codec_internal::ValueCodec<uint64_t> {
  static constexpr std::string_view kManifest = "fraktor.uint64";
};
template <>
struct Codec<float> : codec_internal::ValueCodec<float> {
  static constexpr std::string_view kManifest = "fraktor.float";
};
template <>
struct Codec<double> : codec_internal::ValueCodec<double> {
  static constexpr std::string_view kManifest = "fraktor.double";
};
// The bytes of the string, and nothing else.
template <>
struct Codec<std::string> {
  static constexpr std::string_view kManifest = "fraktor.string";
  static void Encode(const std::string& text, Encoder& out) { out.Raw(text); }
  static std::string Decode(Decoder& in) { return std::string(in.Raw(in.rest().size())); }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_CODEC_H_
