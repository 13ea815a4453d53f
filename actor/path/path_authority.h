// PathAuthority: where a system is reached: protocol, host and port.
//
//   FRAKTOR_ASSIGN_OR_RETURN(PathAuthority peer, PathAuthority::Create("pekko.tcp", "10.0.0.7", 2552));
//   peer.ToString()  // "pekko.tcp://10.0.0.7:2552"
//
// The case of letters is kept, and counts. Order: protocol, host, port.
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

// The protocols that are also the schemes of paths: `pekko` and `pekko.tcp`.
bool IsKnownProtocol(std::string_view protocol);

class PathAuthority {
 public:
  // An error if the protocol is no scheme, or the host is not as ActorPathValidator::ValidateHost wants it.
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
