// ActorPathParts: the parts that all paths of one system share: scheme, system name and, if other
// systems can reach it, its authority.
//
//   FRAKTOR_ASSIGN_OR_RETURN(ActorPathParts local, ActorPathParts::Local("shop"));
//   FRAKTOR_ASSIGN_OR_RETURN(ActorPathParts remote, ActorPathParts::Remote("shop", authority));
//   std::string here = local.ToString();    // "pekko://shop"
//   std::string there = remote.ToString();  // "pekko://shop@10.0.0.7:2552"
//
// Two values are equal if all parts are equal, the scheme too. Paths ignore the scheme if there is
// no authority (actor_path.h). The order is that of addresses in Pekko: scheme, system, host, port.
// Parts without a host come before parts with one.
//
// Thread safety: immutable values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARTS_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARTS_H_

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/path_authority.h"

namespace fraktor::inline v0 {

class ActorPathParts {
 public:
  // Returns a system without an authority. Errors name the problem with the system's name or with
  // the scheme. Any well-formed scheme passes here; ActorPathParser checks that it is a known one.
  static absl::StatusOr<ActorPathParts> Local(std::string_view system, std::string_view scheme = "pekko");

  // Returns a system at an authority. The protocol of the authority is the scheme.
  static absl::StatusOr<ActorPathParts> Remote(std::string_view system, PathAuthority authority);

  std::string_view scheme() const { return scheme_; }
  std::string_view system() const { return system_; }
  const std::optional<PathAuthority>& authority() const { return authority_; }

  std::string ToString() const;

  friend bool operator==(const ActorPathParts&, const ActorPathParts&) = default;
  friend std::strong_ordering operator<=>(const ActorPathParts&, const ActorPathParts&) = default;

 private:
  friend class ActorPath;

  ActorPathParts(std::string_view scheme, std::string_view system, std::optional<PathAuthority> authority)
      : scheme_(scheme), system_(system), authority_(std::move(authority)) {}

  std::string scheme_;
  std::string system_;
  std::optional<PathAuthority> authority_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARTS_H_
