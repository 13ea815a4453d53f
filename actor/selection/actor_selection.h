// ActorSelection: a path with `..` and wildcards that selects actors.
//
//   FRAKTOR_ASSIGN_OR_RETURN(ActorSelection workers, ActorSelection::Parse("../pool/*"));
//   bool is_in_pool = workers.elements()[1].Matches("pool");
//
// Forms: `a/b` starts where the selection is made, `/user/a` starts at the root, and
// `pekko://shop@host:1/user/a` names another system. `..` is the parent. An element with `*` (any
// run of characters) or `?` (one character) is a pattern. Any other element is a name, which may
// carry `#uid`. Empty elements vanish. ActorSelectionResolver turns a selection into paths.
//
// Two selections are equal if they start at the same place and have the same elements.
//
// Thread safety: immutable values.
#ifndef FRAKTOR_ACTOR_SELECTION_ACTOR_SELECTION_H_
#define FRAKTOR_ACTOR_SELECTION_ACTOR_SELECTION_H_

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
  // The name or pattern. ".." for the parent.
  std::string_view text() const { return text_; }
  // The uid that the name carries.
  ActorUid uid() const { return uid_; }

  // Returns whether the element selects an actor of this name. The parent selects none.
  bool Matches(std::string_view name) const;

  // The element as it was written: "..", "cart#42", "c*".
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
    kHere,      // at the path that the caller gives the resolver
    kRoot,      // at the root of that path's system
    kAbsolute,  // at the root of address()
  };

  // Errors carry an ActorPathErrorKind. A selection longer than kMaxUriLength is an error.
  static absl::StatusOr<ActorSelection> Parse(std::string_view text, const ActorPathParserOptions& options = {});

  Start start() const { return start_; }
  // The root of the system that an absolute selection names. None otherwise.
  const std::optional<ActorPath>& address() const { return address_; }
  const std::vector<SelectionElement>& elements() const { return elements_; }
  bool HasPattern() const;

  // "/../*/hello".
  std::string ElementsText() const;

  // The selection with the path it starts at, as it goes over the wire:
  // "pekko://S/user/c2/../*/hello".
  std::string ToWireText(const ActorPath& anchor) const;

  // The selection as people read it: "ActorSelection[Anchor(pekko://S/user/c2#1),
  // Path(/../*/hello)]".
  std::string ToString(const ActorPath& anchor) const;

  friend bool operator==(const ActorSelection&, const ActorSelection&) = default;

 private:
  ActorSelection() = default;

  Start start_ = Start::kHere;
  std::optional<ActorPath> address_;
  std::vector<SelectionElement> elements_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SELECTION_ACTOR_SELECTION_H_
