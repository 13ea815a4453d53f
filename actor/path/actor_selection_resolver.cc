#include "fraktor/actor/path/actor_selection_resolver.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_selection.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
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

absl::StatusOr<ResolvedSelection> ActorSelectionResolver::ResolvePrefix(const ActorPath& base,
                                                                        const ActorSelection& selection) {
  ResolvedSelection resolved{.prefix = base.WithoutUid(), .rest = {}};
  if (selection.address().has_value()) {
    resolved.prefix = *selection.address();
  } else if (selection.start() == ActorSelection::Start::kRoot) {
    resolved.prefix = ActorPath::Root(base.parts());
  }
  size_t depth = resolved.prefix.segment_count();
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
    if (!resolved.rest.empty() || element.kind() == SelectionElement::Kind::kPattern) {
      resolved.rest.push_back(element);
    } else if (element.kind() == SelectionElement::Kind::kParent) {
      resolved.prefix = resolved.prefix.Parent();
    } else {
      FRAKTOR_ASSIGN_OR_RETURN(const PathSegment segment, PathSegment::Parse(element.text()));
      resolved.prefix = resolved.prefix.Child(segment).WithUid(element.uid());
    }
  }
  FRAKTOR_RETURN_IF_ERROR(CheckGuardian(resolved.prefix));
  return resolved;
}

absl::StatusOr<ActorPath> ActorSelectionResolver::Normalize(const ActorPath& path) {
  ActorPath normal = ActorPath::Root(path.parts());
  for (size_t i = 0; i < path.segment_count(); ++i) {
    if (path.segment(i) != "..") {
      FRAKTOR_ASSIGN_OR_RETURN(const PathSegment segment, PathSegment::Parse(path.segment(i)));
      normal = normal.Child(segment);
    } else if (normal.segment_count() <= 1) {
      return EscapeError(absl::StrCat("path ", QuotedForText(path.text())), i);
    } else {
      normal = normal.Parent();
    }
  }
  FRAKTOR_RETURN_IF_ERROR(CheckGuardian(normal));
  return path.name() == ".." ? normal : normal.WithUid(path.uid());
}

absl::StatusOr<ActorPath> ActorSelectionResolver::Resolve(const ActorPath& base, const ActorSelection& selection) {
  FRAKTOR_ASSIGN_OR_RETURN(ResolvedSelection resolved, ResolvePrefix(base, selection));
  if (resolved.rest.empty()) return std::move(resolved.prefix);
  return PathError(ActorPathErrorKind::kInvalidSegment,
                   absl::StrCat("selection ", QuotedForText(selection.ElementsText()),
                                " has a wildcard and means no single path; send to it, or name the actor"),
                   0);
}

}  // namespace fraktor::inline v0
