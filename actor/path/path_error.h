// The kinds of errors that paths cause; programs decide by them.
//
//   absl::StatusOr<ActorPath> path = ActorPathParser::Parse(text);
//   if (ErrorKindOf<ActorPathErrorKind>(path.status()) == ActorPathErrorKind::kInvalidSegment) {
//     std::optional<int64_t> index = ErrorDetailNumberOf<ActorPathErrorKind>(path.status(), "index");
//   }
//
// The text of an error names the input, the position and what to do. It shows control characters of
// the input as \xHH, so that no path can forge a log line.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_PATH_ERROR_H_
#define FRAKTOR_ACTOR_PATH_PATH_ERROR_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

// Errors of UriParser: the text is no URI of RFC 2396. The detail "index" is the offending byte of
// the whole input.
enum class UriErrorKind {
  kInvalidScheme = 0,     // no scheme, or a character that a scheme cannot have
  kInvalidCharacter = 1,  // a character that its component cannot have
  kInvalidEscape = 2,     // a % that two hexadecimal digits do not follow
  kInvalidHost = 3,       // brackets without an IPv6 address in them
  kTooLong = 4,           // more than kMaxUriLength bytes
};

template <>
struct ErrorKindTraits<UriErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/uri";
  static constexpr UriErrorKind kLast = UriErrorKind::kTooLong;
};

// Errors of an actor path or of a part of one. The detail "index" is the offending byte: of the
// segment if the detail "segment" or the text names one, of the whole input otherwise.
enum class ActorPathErrorKind {
  kInvalidUri = 0,            // no URI at all; the status carries the UriErrorKind too
  kInvalidScheme = 1,         // a URI, but not of an actor system
  kInvalidSegment = 2,        // a name that is empty or reserved, or has a character that names cannot have
  kUnsupportedAuthority = 3,  // no host and port that an actor system can have
  kRelativeEscape = 4,        // `..` leads above the guardian
  kPercentDecode = 5,         // %HH hides a control character, a slash, or something that is not ASCII
  kQuarantined = 6,           // the path leads to an authority in quarantine; detail "authority"
  kInvalidSystemName = 7,     // the name of the actor system breaks its rule
  kInvalidUid = 8,            // the text after # is no unsigned decimal number of 64 bits
  kUnknownGuardian = 9,       // the first segment is none of the top-level names
};

template <>
struct ErrorKindTraits<ActorPathErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/actor_path";
  static constexpr ActorPathErrorKind kLast = ActorPathErrorKind::kUnknownGuardian;
};

// Reasons why a well-formed path does not lead to an actor.
enum class PathResolutionErrorKind {
  kPidUnknown = 0,            // no live actor has this pid or path
  kAuthorityUnresolved = 1,   // not connected, and the queue of deferred messages is full
  kAuthorityQuarantined = 2,  // the authority is quarantined until its deadline; detail "authority"
  kUidReserved = 3,           // an earlier actor of this path had this uid; detail "uid"
  kNameTaken = 4,             // a live actor has this path
  kIllegalTransition = 5,     // the authority cannot change from its state to the requested one
  kHasChildren = 6,           // a parent cannot be removed before its children
};

template <>
struct ErrorKindTraits<PathResolutionErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/path_resolution";
  static constexpr PathResolutionErrorKind kLast = PathResolutionErrorKind::kHasChildren;
};

// Returns the input as an error text or a log line may show it: bytes that are not printable ASCII,
// quotes and backslashes are escaped, and input of more than `limit` bytes is cut and ends in
// "...".
std::string QuotedForText(std::string_view input, size_t limit = 128);

namespace path_internal {

absl::Status UriError(UriErrorKind kind, std::string_view text, size_t index);
absl::Status PathError(ActorPathErrorKind kind, std::string_view text, size_t index);
absl::Status PathError(ActorPathErrorKind kind, std::string_view text);

// Returns kInvalidUri with the text, kind and details of the URI's error.
absl::Status WrapUriError(const absl::Status& uri_error);

}  // namespace path_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_PATH_ERROR_H_
