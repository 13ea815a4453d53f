// ActorSelection: a path as somebody writes it who looks for actors, with `..` and wildcards.
//
//   FRAKTOR_ASSIGN_OR_RETURN(ActorSelection workers, ActorSelection::Parse("../pool/*"));
//   workers.elements()[1].Matches("pool")
//
// Forms: `a/b` from where the selection is made, `/user/a` from the root, `pekko://shop@host:1/user/a` at another
// system. `..` is the parent; an element with `*` (any run of characters) or `?` (one) is a pattern; everything else is
// a name, which may carry `#uid`. Empty elements vanish. ActorSelectionResolver turns it into paths.
//
// Two selections are equal if they start at the same place and have the same elements.
//
// Thread safety: immutable values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_SELECTION_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_SELECTION_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/actor_uid.h"

namespace fraktor::inline v0 {

class SelectionElement {
 public:
  enum class Kind { kParent, kName, kPattern };

  static SelectionElement Parent() { return SelectionElement(Kind::kParent, "..", ActorUid()); }

  Kind kind() const { return kind_; }
  // The name or pattern; ".." for the parent.
  std::string_view text() const { return text_; }
  // The uid that a name carries.
  ActorUid uid() const { return uid_; }

  // Whether an actor of that name is meant. Never for the parent.
  bool Matches(std::string_view name) const;

  // As it was written: "..", "cart#42", "c*".
  std::string ToString() const;

  friend bool operator==(const SelectionElement&, const SelectionElement&) = default;

 private:
  friend class ActorSelection;

  SelectionElement(Kind kind, std::string_view text, ActorUid uid) : kind_(kind), text_(text), uid_(uid) {}

  Kind kind_;
  std::string text_;
  ActorUid uid_;
};

class ActorSelection {
 public:
  enum class Start {
    kHere,      // at the path that the resolver is given
    kRoot,      // at the root of that path's system
    kAbsolute,  // at the root of address()
  };

  // Errors carry an ActorPathErrorKind. A selection longer than kMaxUriLength is one.
  static absl::StatusOr<ActorSelection> Parse(std::string_view text, const ActorPathParserOptions& options = {});

  Start start() const { return start_; }
  // The root of the system that an absolute selection names; none otherwise.
  const std::optional<ActorPath>& address() const { return address_; }
  const std::vector<SelectionElement>& elements() const { return elements_; }
  bool HasPattern() const;

  // "/../*/hello".
  std::string ElementsText() const;

  // With the path that it starts at, as it goes over the wire: "pekko://S/user/c2/../*/hello".
  std::string ToWireText(const ActorPath& anchor) const;

  // For people: "ActorSelection[Anchor(pekko://S/user/c2#1), Path(/../*/hello)]".
  std::string ToString(const ActorPath& anchor) const;

  friend bool operator==(const ActorSelection&, const ActorSelection&) = default;

 private:
  ActorSelection() = default;

  Start start_ = Start::kHere;
  std::optional<ActorPath> address_;
  std::vector<SelectionElement> elements_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_SELECTION_H_
