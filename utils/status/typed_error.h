// An absl::Status that also carries an error kind of its domain, for programs that decide by it.
//
//   enum class JournalErrorKind { kStaleEpoch = 0, kCorrupt = 1 };        // stored and sent: never reuse a number
//   template <>
//   struct fraktor::ErrorKindTraits<JournalErrorKind> {
//     static constexpr std::string_view kTypeUrl = "example.com/error/journal";  // stable; never a C++ type name
//     static constexpr JournalErrorKind kLast = JournalErrorKind::kCorrupt;      // kinds are numbered 0 .. kLast
//   };
//
//   absl::Status status = MakeError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt,
//                                   "journal \"orders\": record 7 has a bad checksum; restore it from a replica",
//                                   {{"record", 7}});
//   if (ErrorKindOf<JournalErrorKind>(status) == JournalErrorKind::kCorrupt) {
//     std::optional<int64_t> record = ErrorDetailNumberOf<JournalErrorKind>(status, "record");
//   }
//
// The kind and the details are a payload of the status. They survive copying, Annotate(), and any
// transport that keeps payloads. A status may carry kinds of several domains. The payload is short
// readable text, such as `1;record=7`, because absl::Status::ToString() prints it.
//
// A payload from a peer is not trusted. A kind that this build does not know (the peer is newer)
// and a payload that cannot be parsed give no kind, and never a value outside of the enum. The
// status code and the message are still there.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_UTILS_STATUS_TYPED_ERROR_H_
#define FRAKTOR_UTILS_STATUS_TYPED_ERROR_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

// Specialize this beside the enum, as above. `kTypeUrl` names the payload. `kLast` is the highest
// kind that this build knows.
template <class Kind>
struct ErrorKindTraits;

// An enum class, or an enum with a fixed underlying type, that has ErrorKindTraits.
template <class Kind>
concept ErrorKind = std::is_enum_v<Kind> && requires {
  { ErrorKindTraits<Kind>::kTypeUrl } -> std::convertible_to<std::string_view>;
  { ErrorKindTraits<Kind>::kLast } -> std::convertible_to<Kind>;
};

// Limits: a status keeps the first kMaxErrorDetails details, and the first kMaxErrorDetailBytes
// bytes of each key and value. Keys are literals of the program.
inline constexpr size_t kMaxErrorDetails = 8;
inline constexpr size_t kMaxErrorDetailBytes = 256;

// One named fact about an error: `{"index", 2}`, `{"segment", "a b"}`.
class ErrorDetail {
 public:
  ErrorDetail(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  ErrorDetail(std::string_view key, const char* value) : key_(key), value_(value) {}
  template <std::signed_integral Number>
  ErrorDetail(std::string_view key, Number value) : key_(key), value_(std::to_string(value)) {}
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) ErrorDetail(std::string_view key, Number value)
      : key_(key), value_(std::to_string(value)) {}

  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }

 private:
  std::string_view key_;
  std::string value_;
};

namespace status_internal {

absl::Status MakeTypedError(absl::StatusCode code, std::string_view type_url, uint64_t number, std::string_view text,
                            std::initializer_list<ErrorDetail> details);
std::optional<uint64_t> TypedErrorNumber(const absl::Status& status, std::string_view type_url);
std::optional<std::string> TypedErrorDetail(const absl::Status& status, std::string_view type_url,
                                            std::string_view key);
std::optional<int64_t> ParseDetailNumber(const std::optional<std::string>& text);

}  // namespace status_internal

// Makes an error with a code, a kind, a text and details. Details are read by their key; if two
// details have the same key, the first one counts. An OK status cannot carry a payload, so the code
// kOk becomes kUnknown.
template <ErrorKind Kind>
absl::Status MakeError(absl::StatusCode code, Kind kind, std::string_view text,
                       std::initializer_list<ErrorDetail> details = {}) {
  return status_internal::MakeTypedError(code, ErrorKindTraits<Kind>::kTypeUrl, static_cast<uint64_t>(kind), text,
                                         details);
}

// Returns the number of the kind as it was sent, even if this build does not know that kind.
// Returns nothing if the status has no readable payload of this domain.
template <ErrorKind Kind>
std::optional<uint64_t> ErrorKindNumberOf(const absl::Status& status) {
  return status_internal::TypedErrorNumber(status, ErrorKindTraits<Kind>::kTypeUrl);
}

// Returns the kind. Returns nothing if the status is OK, has no kind of this domain, or has a kind
// that this build does not know.
template <ErrorKind Kind>
std::optional<Kind> ErrorKindOf(const absl::Status& status) {
  const std::optional<uint64_t> number = ErrorKindNumberOf<Kind>(status);
  if (!number.has_value() || *number > static_cast<uint64_t>(ErrorKindTraits<Kind>::kLast)) return std::nullopt;
  return static_cast<Kind>(*number);
}

// Returns the detail with that key, if there is one. It does not matter whether this build knows
// the kind.
template <ErrorKind Kind>
std::optional<std::string> ErrorDetailOf(const absl::Status& status, std::string_view key) {
  return status_internal::TypedErrorDetail(status, ErrorKindTraits<Kind>::kTypeUrl, key);
}

// Returns the detail with that key if it is a signed 64-bit number.
template <ErrorKind Kind>
std::optional<int64_t> ErrorDetailNumberOf(const absl::Status& status, std::string_view key) {
  return status_internal::ParseDetailNumber(ErrorDetailOf<Kind>(status, key));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_STATUS_TYPED_ERROR_H_
