// Decoder: the input of a codec; the counterpart of Encoder.
//
//   static Deposited Decode(Decoder& in) {
//     Deposited event;
//     event.amount = in.Value<int64_t>();
//     event.note = in.Value<std::string>();
//     if (in.version() >= 2) event.from = in.Value<ActorRef>();       // a field that version 1 did not have
//     return event;
//   }
//
// The decoder remembers the first error and returns 0 or empty values from then on, so that a codec
// need not check. The registry checks at the end. Memory stays within a small multiple of the
// number of bytes, for any input.
//
// Thread safety: belongs to one thread.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_DECODER_H_
#define FRAKTOR_ACTOR_SERIALIZATION_DECODER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {

class Decoder {
 public:
  // The maximum nesting of values in codecs of recursive types.
  static constexpr int kMaxDepth = 100;

  // `version` belongs to the bytes, `current_version` to the codec. `bytes` and `context` must
  // outlive the decoder.
  Decoder(std::string_view bytes, uint32_t version, uint32_t current_version, const CodecContext& context)
      : reader_(bytes), context_(context), version_(version), current_version_(current_version) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // The version of the codec that wrote the bytes. Never above that of the codec that reads.
  uint32_t version() const { return version_; }
  bool IsOlder() const { return version_ < current_version_; }

  uint64_t Varint() { return reader_.Varint(); }
  int64_t Signed() {
    const uint64_t value = reader_.Varint();
    return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  bool Bool() {
    const uint8_t byte = reader_.Byte();
    if (byte > 1) Fail("a byte that is neither true nor false");
    return byte == 1;
  }
  uint32_t Fixed32() { return reader_.Fixed32(); }
  uint64_t Fixed64() { return reader_.Fixed64(); }
  // Reads the bytes of Encoder::Bytes. The view lives as long as the input.
  std::string_view Bytes() { return reader_.Sized(); }
  // Reads the bytes of Encoder::Raw.
  std::string_view Raw(size_t size) { return reader_.Take(size); }
  ActorRef Ref();
  // An unknown status code is read as kUnknown.
  absl::Status Status();
  // Returns the number of elements that follow. Fails if the rest is too short for elements of
  // `min_bytes`.
  size_t Count(size_t min_bytes = 1);

  template <class T>
  T Value();

  // The bytes that are not read yet.
  std::string_view rest() const { return reader_.rest(); }
  bool AtEnd() const { return reader_.rest().empty(); }
  // For codecs that keep bytes that they do not know.
  void SkipRest() { reader_.Take(reader_.rest().size()); }

  // Marks the bytes as corrupt. The first reason counts.
  void Fail(absl::Status why);
  void Fail(std::string_view why);

  bool ok() const { return reader_.ok() && !has_failed_; }
  // Returns the first error. Also an error if bytes are missing or left over.
  absl::Status Finish();

 private:
  ByteReader reader_;
  const CodecContext& context_;
  uint32_t version_;
  uint32_t current_version_;
  int depth_ = 0;
  bool has_failed_ = false;
  absl::Status status_;
};

namespace codec_internal {

// Calls Decode, which may return a value or a StatusOr.
template <class T>
absl::StatusOr<T> DecodeBody(Decoder& in) {
  return Codec<T>::Decode(in);
}

}  // namespace codec_internal

template <class T>
T Decoder::Value() {
  if constexpr (std::is_same_v<T, bool>) {
    return Bool();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(Value<std::underlying_type_t<T>>());
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      const int64_t value = Signed();
      if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
        Fail("a number that does not fit");
        return 0;
      }
      return static_cast<T>(value);
    } else {
      const uint64_t value = Varint();
      if (value > std::numeric_limits<T>::max()) {
        Fail("a number that does not fit");
        return 0;
      }
      return static_cast<T>(value);
    }
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(Fixed64());
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(Fixed32());
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    return T(Bytes());
  } else if constexpr (std::is_same_v<T, absl::Status>) {
    return Status();
  } else if constexpr (std::is_same_v<T, absl::Time>) {
    const int64_t nanoseconds = Signed();
    if (nanoseconds == std::numeric_limits<int64_t>::max()) return absl::InfiniteFuture();
    if (nanoseconds == std::numeric_limits<int64_t>::min()) return absl::InfinitePast();
    return absl::FromUnixNanos(nanoseconds);
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    const int64_t nanoseconds = Signed();
    if (nanoseconds == std::numeric_limits<int64_t>::max()) return absl::InfiniteDuration();
    if (nanoseconds == std::numeric_limits<int64_t>::min()) return -absl::InfiniteDuration();
    return absl::Nanoseconds(nanoseconds);
  } else if constexpr (std::is_same_v<T, ActorRef>) {
    return Ref();
  } else if constexpr (codec_internal::HasUntypedRef<T>) {
    return T::Unchecked(Ref());
  } else if constexpr (codec_internal::kIsVector<T>) {
    T values;
    const size_t count = Count();
    for (size_t i = 0; i < count && ok(); ++i) values.push_back(Value<typename T::value_type>());
    return values;
  } else if constexpr (codec_internal::kIsOptional<T>) {
    T value;
    if (Bool()) value = Value<typename T::value_type>();
    return value;
  } else if constexpr (codec_internal::kIsMap<T>) {
    T values;
    const size_t count = Count(2);
    for (size_t i = 0; i < count && ok(); ++i) {
      auto key = Value<typename T::key_type>();
      auto mapped = Value<typename T::mapped_type>();
      if (!values.emplace(std::move(key), std::move(mapped)).second) Fail("a key that comes twice");
    }
    return values;
  } else if constexpr (codec_internal::HasCodec<T>) {
    const uint64_t version = Varint();
    const std::string_view body = reader_.Take(Fixed32());
    if (version > codec_internal::VersionOf<T>()) Fail("a part of it was written by a newer version");
    if (depth_ >= kMaxDepth) Fail("parts within parts, too deep");
    if (!ok()) return T{};
    Decoder in(body, static_cast<uint32_t>(version), codec_internal::VersionOf<T>(), context_);
    in.depth_ = depth_ + 1;
    absl::StatusOr<T> value = codec_internal::DecodeBody<T>(in);
    absl::Status status = value.ok() ? in.Finish() : value.status();
    if (!status.ok()) {
      Fail(std::move(status));
      return T{};
    }
    return *std::move(value);
  } else {
    static_assert(codec_internal::kNever<T>, "Decoder::Value does not know this type: give it a fraktor::Codec");
  }
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_DECODER_H_
