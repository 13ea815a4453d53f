// ActorPathParts: what all paths of one system share: scheme, system name and, if it can be reached, its authority.
//
//   FRAKTOR_ASSIGN_OR_RETURN(ActorPathParts local, ActorPathParts::Local("shop"));
//   FRAKTOR_ASSIGN_OR_RETURN(ActorPathParts remote, ActorPathParts::Remote("shop", authority));
//   local.ToString()   // "pekko://shop"
//   remote.ToString()  // "pekko://shop@10.0.0.7:2552"
//
// Parts are equal if all of them are, the scheme too; paths are not that strict about a scheme without authority
// (actor_path.h). Order, as for addresses of Pekko: scheme, system, host, port; without a host comes before any host.
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
  // A system without authority. Errors name what is wrong with the system's name or the scheme; whether a scheme is
  // known is the parser's question.
  static absl::StatusOr<ActorPathParts> Local(std::string_view system, std::string_view scheme = "pekko");

  // A system at an authority, whose protocol is the scheme.
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
