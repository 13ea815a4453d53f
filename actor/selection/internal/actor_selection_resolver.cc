#include "fraktor/actor/selection/internal/actor_selection_resolver.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {
namespace {

using path_internal::PathError;

absl::Status EscapeError(const std::string& what, size_t number) {
  return PathError(ActorPathErrorKind::kRelativeEscape,
                   absl::StrCat(what, ": \"..\" at element ", number, " leads above the guardian; use fewer of them"),
                   number);
}

absl::Status CheckGuardian(const ActorPath& path) {
  if (path.IsRoot() || GuardianSegments::Find(path.segment(0)).has_value()) return absl::OkStatus();
  return PathError(ActorPathErrorKind::kUnknownGuardian,
                   absl::StrCat("path ", QuotedForText(path.text()), ": ", QuotedForText(path.segment(0)),
                                " is no top-level name; use user, system, temp, deadLetters or remote"),
                   0);
}

}  // namespace

// Collects the names and makes one path of them at the end. A selection of a peer may have
// thousands of elements, and a path for each of them would take seconds.
absl::StatusOr<ResolvedSelection> ActorSelectionResolver::ResolvePrefix(const ActorPath& base,
                                                                        const ActorSelection& selection) {
  const ActorPath& system = selection.address().has_value() ? *selection.address() : base;
  std::vector<std::string_view> names;
  if (selection.start() == ActorSelection::Start::kHere) {
    for (size_t i = 0; i < base.segment_count(); ++i) names.push_back(base.segment(i));
  }
  ActorUid uid;
  std::vector<SelectionElement> rest;
  size_t depth = names.size();
  for (size_t i = 0; i < selection.elements().size(); ++i) {
    const SelectionElement& element = selection.elements()[i];
    if (element.kind() == SelectionElement::Kind::kParent) {
      if (depth <= 1) {
        return EscapeError(
            absl::StrCat("selection ", QuotedForText(selection.ElementsText()), " from ", QuotedForText(base.text())),
            i);
      }
      --depth;
    } else {
      ++depth;
    }
    if (!rest.empty() || !uid.IsNone() || element.kind() == SelectionElement::Kind::kPattern) {
      rest.push_back(element);
    } else if (element.kind() == SelectionElement::Kind::kParent) {
      names.pop_back();
    } else {
      names.push_back(element.text());
      uid = element.uid();
    }
  }
  ResolvedSelection resolved{.prefix = path_internal::PathBuilder::OfNames(system, names, uid),
                             .rest = std::move(rest)};
  FRAKTOR_RETURN_IF_ERROR(CheckGuardian(resolved.prefix));
  return resolved;
}

absl::StatusOr<ActorPath> ActorSelectionResolver::Normalize(const ActorPath& path) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < path.segment_count(); ++i) {
    if (path.segment(i) != "..") {
      names.push_back(path.segment(i));
    } else if (names.size() <= 1) {
      return EscapeError(absl::StrCat("path ", QuotedForText(path.text())), i);
    } else {
      names.pop_back();
    }
  }
  const ActorUid uid = path.name() == ".." ? ActorUid() : path.uid();
  ActorPath normal = path_internal::PathBuilder::OfNames(path, names, uid);
  FRAKTOR_RETURN_IF_ERROR(CheckGuardian(normal));
  return normal;
}

absl::StatusOr<ActorPath> ActorSelectionResolver::Resolve(const ActorPath& base, const ActorSelection& selection) {
  FRAKTOR_ASSIGN_OR_RETURN(ResolvedSelection resolved, ResolvePrefix(base, selection));
  if (resolved.rest.empty()) return std::move(resolved.prefix);
  return PathError(ActorPathErrorKind::kInvalidSegment,
                   absl::StrCat("selection ", QuotedForText(selection.ElementsText()),
                                " has a wildcard, or a uid before its last name, and means no single path; send to it, "
                                "or name the actor"),
                   0);
}

}  // namespace fraktor::inline v0::actor_internal
