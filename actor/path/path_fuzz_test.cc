// For any bytes: no crash, no control character in a path or an error, and an accepted text is
// canonical after one round. PTH-10
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/internal/actor_path_comparator.h"
#include "fraktor/actor/path/internal/actor_path_formatter.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/internal/uri_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/selection/internal/actor_selection_resolver.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor {

using actor_internal::ActorSelectionResolver;
using actor_internal::ResolvedSelection;
using path_internal::ActorPathComparator;
using path_internal::ActorPathFormatter;
using path_internal::UriParser;
using path_internal::UriParts;

namespace {

#define FRAKTOR_FUZZ_CHECK(condition)                                                \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

bool IsPrintable(std::string_view text) {
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) return false;
  }
  return true;
}

// Returns the text with every %HH decoded, also where it is no escape of a part.
std::string Decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && path_internal::IsEscape(text, i);
    decoded.push_back(is_escape ? static_cast<char>(path_internal::DecodeEscape(text, i)) : text[i]);
    if (is_escape) i += 2;
  }
  return decoded;
}

void CheckUri(std::string_view input) {
  const absl::StatusOr<UriParts> uri = UriParser::Parse(input);
  if (!uri.ok()) {
    FRAKTOR_FUZZ_CHECK(ErrorKindOf<UriErrorKind>(uri.status()).has_value());
    FRAKTOR_FUZZ_CHECK(IsPrintable(ToStd(uri.status().message())));
    return;
  }
  // The parts, joined, are the input.
  std::string whole;
  if (!uri->scheme.empty()) whole += std::string(uri->scheme) + ":";
  if (uri->has_authority) whole += "//" + std::string(uri->authority);
  whole += std::string(uri->path);
  if (uri->query.has_value()) whole += "?" + std::string(*uri->query);
  if (uri->fragment.has_value()) whole += "#" + std::string(*uri->fragment);
  FRAKTOR_FUZZ_CHECK(whole == input);
  FRAKTOR_FUZZ_CHECK(IsPrintable(input));
}

void CheckPath(std::string_view input) {
  const absl::StatusOr<ActorPath> path = ActorPathParser::Parse(input);
  if (!path.ok()) {
    FRAKTOR_FUZZ_CHECK(ErrorKindOf<ActorPathErrorKind>(path.status()).has_value());
    FRAKTOR_FUZZ_CHECK(IsPrintable(ToStd(path.status().message())));
    return;
  }
  const std::string canonical = ActorPathFormatter::Format(*path);
  FRAKTOR_FUZZ_CHECK(IsPrintable(canonical));
  FRAKTOR_FUZZ_CHECK(IsPrintable(Decode(canonical)));
  const absl::StatusOr<ActorPath> again = ActorPathParser::Parse(canonical);
  FRAKTOR_FUZZ_CHECK(again.ok());
  FRAKTOR_FUZZ_CHECK(ActorPathComparator::RefEquals(*again, *path));
  FRAKTOR_FUZZ_CHECK(again->hash() == path->hash());
  FRAKTOR_FUZZ_CHECK(ActorPathFormatter::Format(*again) == canonical);
  // Built segment by segment, the path is the same, and no segment hides a control character.
  ActorPath built = ActorPath::Root(path->parts());
  for (size_t i = 0; i < path->segment_count(); ++i) {
    const absl::StatusOr<PathSegment> segment = PathSegment::Parse(path->segment(i));
    FRAKTOR_FUZZ_CHECK(segment.ok());
    FRAKTOR_FUZZ_CHECK(IsPrintable(segment->Decoded()));
    FRAKTOR_FUZZ_CHECK(segment->Decoded().find('/') == std::string::npos);
    built = built.Child(*segment);
  }
  FRAKTOR_FUZZ_CHECK(built == *path && built.text() == path->text() && built.hash() == path->hash());
  FRAKTOR_FUZZ_CHECK(path->IsRoot() || path->Parent().segment_count() + 1 == path->segment_count());
  const absl::StatusOr<ActorPath> normal = ActorSelectionResolver::Normalize(*path);
  if (normal.ok()) {
    FRAKTOR_FUZZ_CHECK(normal->segment_count() <= path->segment_count());
    for (size_t i = 0; i < normal->segment_count(); ++i) FRAKTOR_FUZZ_CHECK(normal->segment(i) != "..");
  }
}

void CheckSelection(std::string_view input) {
  static const ActorPath base = *ActorPathParser::Parse("pekko://s/user/a/b");
  const absl::StatusOr<ActorSelection> selection = ActorSelection::Parse(input);
  if (!selection.ok()) {
    FRAKTOR_FUZZ_CHECK(ErrorKindOf<ActorPathErrorKind>(selection.status()).has_value());
    FRAKTOR_FUZZ_CHECK(IsPrintable(ToStd(selection.status().message())));
    return;
  }
  const absl::StatusOr<ActorSelection> again = ActorSelection::Parse(selection->ElementsText());
  FRAKTOR_FUZZ_CHECK(again.ok() && again->elements() == selection->elements());
  const absl::StatusOr<ResolvedSelection> resolved = ActorSelectionResolver::ResolvePrefix(base, *selection);
  if (!resolved.ok()) {
    FRAKTOR_FUZZ_CHECK(IsPrintable(ToStd(resolved.status().message())));
    return;
  }
  FRAKTOR_FUZZ_CHECK(ActorPathParser::Parse(resolved->prefix.ToCanonical()).ok());
  for (const SelectionElement& element : resolved->rest) element.Matches("some-name");
}

}  // namespace
}  // namespace fraktor

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  fraktor::CheckUri(input);
  fraktor::CheckPath(input);
  fraktor::CheckSelection(input);
  return 0;
}
