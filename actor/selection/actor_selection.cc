#include "fraktor/actor/selection/actor_selection.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/internal/uri_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using path_internal::kMaxUriLength;

namespace {

using path_internal::PathError;

constexpr size_t kNone = std::string_view::npos;

// `*` matches any run, `?` one character. Goes back only to the last `*`, so that each `*` takes
// linear time.
bool MatchesPattern(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = kNone;
  size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != kNone) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

absl::Status CheckElement(std::string_view whole, size_t number, std::string_view element) {
  const std::string what = absl::StrCat("element ", number, " of selection ", QuotedForText(whole));
  std::string without_wildcards(element);
  std::replace(without_wildcards.begin(), without_wildcards.end(), '?', '*');
  return path_internal::ExplainSegment(what, without_wildcards);
}

}  // namespace

bool SelectionElement::Matches(std::string_view name) const {
  switch (kind_) {
    case Kind::kParent:
      return false;
    case Kind::kName:
      return text_ == name;
    case Kind::kPattern:
      return MatchesPattern(text_, name);
  }
  return false;
}

std::string SelectionElement::ToString() const {
  return uid_.IsNone() ? text_ : absl::StrCat(text_, "#", uid_.value());
}

absl::StatusOr<ActorSelection> ActorSelection::Parse(std::string_view text, const ActorPathParserOptions& options) {
  if (text.size() > kMaxUriLength) {
    return PathError(ActorPathErrorKind::kInvalidUri,
                     absl::StrCat("selection ", QuotedForText(text), " has ", text.size(), " bytes; at most ",
                                  kMaxUriLength, " are read: shorten it"),
                     kMaxUriLength);
  }
  ActorSelection selection;
  std::string_view rest = text;
  if (const size_t delimiter = text.find_first_of(":/?#"); delimiter != kNone && text[delimiter] == ':') {
    // The text has a scheme: the parser of paths reads the address, and the elements follow as in
    // every selection.
    if (text.substr(delimiter, 3) != "://") {
      return PathError(ActorPathErrorKind::kInvalidScheme,
                       absl::StrCat("selection ", QuotedForText(text), ": ", QuotedForText(text.substr(0, delimiter)),
                                    " before ':' is read as a scheme; write pekko://system/..., or begin at the root "
                                    "(/user/...) to mean a name with a colon"),
                       delimiter);
    }
    const size_t address_end = std::min(text.find_first_of("/#", delimiter + 3), text.size());
    FRAKTOR_ASSIGN_OR_RETURN(selection.address_, ActorPathParser::Parse(text.substr(0, address_end), options));
    selection.start_ = Start::kAbsolute;
    rest = text.substr(address_end);
  } else if (!text.empty() && text.front() == '/') {
    selection.start_ = Start::kRoot;
  }
  while (!rest.empty()) {
    const std::string_view element = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), element.size() + 1));
    if (element.empty()) continue;
    const size_t number = selection.elements_.size();
    const size_t hash = element.find('#');
    const std::string_view name = element.substr(0, hash);
    FRAKTOR_RETURN_IF_ERROR(CheckElement(text, number, name));
    const bool is_pattern = name.find_first_of("*?") != kNone;
    ActorUid uid;
    if (hash != kNone) {
      uint64_t value = 0;
      const bool may_have_uid = !is_pattern && name != "..";
      if (!may_have_uid || !path_internal::ParseUid(element.substr(hash + 1), value)) {
        return PathError(ActorPathErrorKind::kInvalidUid,
                         absl::StrCat("element ", number, " of selection ", QuotedForText(text), ": uid ",
                                      QuotedForText(element.substr(hash + 1)), " at ", hash + 1,
                                      may_have_uid ? " is no decimal number below 2^64; leave it out"
                                                   : " stands behind a wildcard or .., which have none; leave it out"),
                         hash);
      }
      uid = ActorUid(value);
    }
    const SelectionElement::Kind kind = name == ".." ? SelectionElement::Kind::kParent
                                        : is_pattern ? SelectionElement::Kind::kPattern
                                                     : SelectionElement::Kind::kName;
    selection.elements_.push_back(SelectionElement(kind, name, uid));
  }
  return selection;
}

bool ActorSelection::HasPattern() const {
  return std::any_of(elements_.begin(), elements_.end(), [](const SelectionElement& element) {
    return element.kind() == SelectionElement::Kind::kPattern;
  });
}

std::string ActorSelection::ElementsText() const {
  std::string text;
  for (const SelectionElement& element : elements_) absl::StrAppend(&text, "/", element.ToString());
  return text;
}

std::string ActorSelection::ToWireText(const ActorPath& anchor) const {
  const std::string_view text = anchor.IsRoot() ? anchor.text().substr(0, anchor.text().size() - 1) : anchor.text();
  return absl::StrCat(ToAbsl(text), ElementsText());
}

std::string ActorSelection::ToString(const ActorPath& anchor) const {
  return absl::StrCat("ActorSelection[Anchor(", anchor.ToCanonical(), "), Path(", ElementsText(), ")]");
}

}  // namespace fraktor::inline v0
