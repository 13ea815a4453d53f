// SerializationErrorKind: why a message could not be turned into bytes or back; programs decide by
// it.
//
//   const bool is_unknown = ErrorKindOf<SerializationErrorKind>(status) == SerializationErrorKind::kUnknownManifest;
//
// Every error names the type or the manifest, and what to do. The manifest is also the detail
// "manifest".
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_SERIALIZATION_SERIALIZATION_ERROR_H_
#define FRAKTOR_ACTOR_SERIALIZATION_SERIALIZATION_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

// The numbers are stored and sent; never reuse one.
enum class SerializationErrorKind {
  kNotRegistered = 0,  // No codec was registered for the type of the message.
  kCannotEncode = 1,   // The codec refused the message: a reference that cannot be written, or a field that is not set.
  kUnknownManifest = 2,  // No codec was registered under the manifest.
  kNewerVersion = 3,     // Written by a newer version of the codec.
  kCorrupt = 4,          // The codec cannot read the bytes.
  kTooLarge = 5,         // More bytes than the reader or the writer allows.
  kInvalidSetup = 6,     // Two codecs of one type or under one manifest, or a manifest that cannot be one.
  kWrongType = 7,        // The manifest belongs to another type than the requested one.
};

template <>
struct ErrorKindTraits<SerializationErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/serialization";
  static constexpr SerializationErrorKind kLast = SerializationErrorKind::kWrongType;
};

absl::Status SerializationError(SerializationErrorKind kind, std::string_view manifest, std::string_view text);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SERIALIZATION_SERIALIZATION_ERROR_H_
