// Encoder: the output of a codec. Appends to a buffer of the caller.
//
//   static void Encode(const Deposited& event, Encoder& out) {
//     out.Value(event.amount);                       // a number, in as few bytes as it needs
//     out.Value(event.note);                         // a text, with its length
//     out.Value(event.from);                         // an ActorRef, as the context says
//   }
//
// Value accepts bool, integers, enums, float and double, texts, absl::Time and absl::Duration
// (nanoseconds), absl::Status, ActorRef and TypedRef; std::vector, std::optional and std::map of
// these; and every type that has a Codec. It does not accept unordered maps, because equal messages
// must have equal bytes.
//
// The encoder remembers the first error and writes nothing from then on, so that a codec need not
// check. The registry checks at the end and restores the buffer.
//
// Thread safety: belongs to one thread.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_ENCODER_H_
#define FRAKTOR_ACTOR_SERIALIZATION_ENCODER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {

// Turns a type into bytes; see codec.h.
template <class T>
struct Codec;

// The maximum number of payloads of a status. Usual are one or two; bytes from a stranger may claim
// more.
inline constexpr uint64_t kMaxStatusPayloads = 16;

class Encoder {
 public:
  // Both must outlive the encoder.
  Encoder(std::string& out, const CodecContext& context) : out_(out), context_(context), start_(out.size()) {}
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Takes one to ten bytes; small numbers are short.
  void Varint(uint64_t value) {
    if (MayAppend(kMaxVarintBytes)) AppendVarint(out_, value);
  }
  // The same for signed numbers; numbers near zero are short.
  void Signed(int64_t value) { Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }
  void Bool(bool value) { Raw(value ? std::string_view("\1", 1) : std::string_view("\0", 1)); }
  void Fixed32(uint32_t value) {
    if (MayAppend(sizeof(value))) AppendFixed32(out_, value);
  }
  void Fixed64(uint64_t value) {
    if (MayAppend(sizeof(value))) AppendFixed64(out_, value);
  }
  // Writes the length and the bytes.
  void Bytes(std::string_view bytes) {
    if (MayAppend(kMaxVarintBytes + bytes.size())) AppendSized(out_, bytes);
  }
  // Writes the bytes without their length.
  void Raw(std::string_view bytes) {
    if (MayAppend(bytes.size())) out_.append(bytes);
  }
  void Ref(ActorRef ref);
  // Writes code, text, and up to kMaxStatusPayloads payloads. The kind of a typed error is a
  // payload.
  void Status(const absl::Status& status);

  // Writes a value of any type that the top of this file lists.
  template <class T>
  void Value(const T& value);

  // Appends room for `bytes` bytes, which the caller must fill at once. Returns null beyond the
  // limit.
  char* Extend(size_t bytes) {
    if (!MayAppend(bytes)) return nullptr;
    const size_t at = out_.size();
    out_.resize(at + bytes);
    return out_.data() + at;
  }

  // Marks the message as one that cannot be written. The first reason counts.
  void Fail(absl::Status why);
  void Fail(std::string_view why);

  bool ok() const { return !has_failed_; }
  const absl::Status& status() const { return status_; }

 private:
  static constexpr size_t kMaxVarintBytes = 10;

  bool MayAppend(size_t bytes) {
    if (has_failed_) return false;
    if (out_.size() - start_ + bytes <= context_.max_bytes) [[likely]]
      return true;
    // A number may take fewer bytes than were assumed for it. The registry checks the size again.
    return AppendAtLimit(bytes);
  }
  bool AppendAtLimit(size_t bytes);

  std::string& out_;
  const CodecContext& context_;
  const size_t start_;
  absl::Status status_;
  bool has_failed_ = false;
};

namespace codec_internal {

template <class T>
concept HasCodec = requires {
  Codec<T>::kManifest;
};

template <class T>
concept HasUntypedRef = requires(const T& ref) {
  { ref.untyped() } -> std::same_as<ActorRef>;
};

template <class T>
inline constexpr bool kIsVector = false;
template <class T, class A>
inline constexpr bool kIsVector<std::vector<T, A>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsMap = false;
template <class K, class V, class C, class A>
inline constexpr bool kIsMap<std::map<K, V, C, A>> = true;

template <class T>
inline constexpr bool kNever = false;

template <class T>
constexpr uint32_t VersionOf() {
  if constexpr (requires { Codec<T>::kVersion; }) {
    return Codec<T>::kVersion;
  } else {
    return 0;
  }
}

// Calls Encode, which may return nothing or a status.
template <class T>
void EncodeBody(const T& value, Encoder& out) {
  if constexpr (std::is_void_v<decltype(Codec<T>::Encode(value, out))>) {
    Codec<T>::Encode(value, out);
  } else {
    absl::Status status = Codec<T>::Encode(value, out);
    if (!status.ok()) out.Fail(std::move(status));
  }
}

}  // namespace codec_internal

template <class T>
void Encoder::Value(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    Bool(value);
  } else if constexpr (std::is_enum_v<T>) {
    Value(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      Signed(value);
    } else {
      Varint(value);
    }
  } else if constexpr (std::is_same_v<T, double>) {
    Fixed64(std::bit_cast<uint64_t>(value));
  } else if constexpr (std::is_same_v<T, float>) {
    Fixed32(std::bit_cast<uint32_t>(value));
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    Bytes(value);
  } else if constexpr (std::is_same_v<T, absl::Status>) {
    Status(value);
  } else if constexpr (std::is_same_v<T, absl::Time>) {
    Signed(absl::ToUnixNanos(value));
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    Signed(absl::ToInt64Nanoseconds(value));
  } else if constexpr (std::is_same_v<T, ActorRef>) {
    Ref(value);
  } else if constexpr (codec_internal::HasUntypedRef<T>) {
    Ref(value.untyped());
  } else if constexpr (codec_internal::kIsVector<T>) {
    Varint(value.size());
    // `const auto&` and not the element's type, because std::vector<bool> has no elements of that
    // type.
    for (const auto& element : value) Value(static_cast<const typename T::value_type&>(element));
  } else if constexpr (codec_internal::kIsOptional<T>) {
    Bool(value.has_value());
    if (value.has_value()) Value(*value);
  } else if constexpr (codec_internal::kIsMap<T>) {
    Varint(value.size());
    for (const auto& [key, mapped] : value) {
      Value(key);
      Value(mapped);
    }
  } else if constexpr (codec_internal::HasCodec<T>) {
    // Writes the version, the size of the body, and the body.
    Varint(codec_internal::VersionOf<T>());
    const size_t at = out_.size();
    Fixed32(0);
    if (!ok()) return;
    codec_internal::EncodeBody(value, *this);
    if (!ok()) return;
    const size_t size = out_.size() - at - sizeof(uint32_t);
    for (size_t i = 0; i < sizeof(uint32_t); ++i) out_[at + i] = static_cast<char>(size >> (8 * i));
  } else {
    static_assert(codec_internal::kNever<T>, "Encoder::Value does not know this type: give it a fraktor::Codec");
  }
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_ENCODER_H_
