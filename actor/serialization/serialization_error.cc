#include "fraktor/actor/serialization/serialization_error.h"

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

absl::StatusCode CodeOf(SerializationErrorKind kind) {
  switch (kind) {
    case SerializationErrorKind::kNotRegistered:
    case SerializationErrorKind::kUnknownManifest:
      return absl::StatusCode::kNotFound;
    case SerializationErrorKind::kCannotEncode:
    case SerializationErrorKind::kInvalidSetup:
    case SerializationErrorKind::kWrongType:
      return absl::StatusCode::kInvalidArgument;
    case SerializationErrorKind::kNewerVersion:
      return absl::StatusCode::kUnimplemented;
    case SerializationErrorKind::kCorrupt:
      return absl::StatusCode::kDataLoss;
    case SerializationErrorKind::kTooLarge:
      return absl::StatusCode::kResourceExhausted;
  }
  return absl::StatusCode::kUnknown;
}

}  // namespace

absl::Status SerializationError(SerializationErrorKind kind, std::string_view manifest, std::string_view text) {
  return MakeError(CodeOf(kind), kind, text, {{"manifest", manifest}});
}

}  // namespace fraktor::inline v0
