// PathAuthority: the protocol, host and port at which other systems reach a system.
//
//   FRAKTOR_ASSIGN_OR_RETURN(PathAuthority peer, PathAuthority::Create("pekko.tcp", "10.0.0.7", 2552));
//   std::string text = peer.ToString();  // "pekko.tcp://10.0.0.7:2552"
//
// Letter case is kept and counts. Order: protocol, host, port.
//
// Thread safety: immutable values.
#ifndef FRAKTOR_ACTOR_PATH_PATH_AUTHORITY_H_
#define FRAKTOR_ACTOR_PATH_PATH_AUTHORITY_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

// Returns whether the protocol is a scheme of paths: `pekko` or `pekko.tcp`.
bool IsKnownProtocol(std::string_view protocol);

class PathAuthority {
 public:
  // Returns an error if the protocol is no scheme or ActorPathValidator::ValidateHost refuses the
  // host.
  static absl::StatusOr<PathAuthority> Create(std::string_view protocol, std::string_view host, uint16_t port);

  std::string_view protocol() const { return protocol_; }
  std::string_view host() const { return host_; }
  uint16_t port() const { return port_; }

  std::string ToString() const;

  friend bool operator==(const PathAuthority&, const PathAuthority&) = default;
  friend std::strong_ordering operator<=>(const PathAuthority&, const PathAuthority&) = default;

  template <class H>
  friend H AbslHashValue(H h, const PathAuthority& authority) {
    return H::combine(std::move(h), authority.protocol_, authority.host_, authority.port_);
  }

 private:
  friend class ActorPath;

  PathAuthority(std::string_view protocol, std::string_view host, uint16_t port)
      : protocol_(protocol), host_(host), port_(port) {}

  std::string protocol_;
  std::string host_;
  uint16_t port_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_PATH_AUTHORITY_H_
