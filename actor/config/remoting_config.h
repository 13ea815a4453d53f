// RemotingConfig: the address by which other systems reach this one, and its limits for them.
//
//   RemotingConfig remoting{.canonical_hostname = "10.0.0.7", .canonical_port = 2552};
//   remoting.quarantine_duration = absl::Hours(1);
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_CONFIG_REMOTING_CONFIG_H_
#define FRAKTOR_ACTOR_CONFIG_REMOTING_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

struct RemotingConfig {
  // The host that other systems use to reach this one: a name, an IPv4 address, or an IPv6 address
  // in brackets. Paths contain it, so every parser of paths must accept it, ours and Pekko's: `_`
  // is not allowed. (Pekko starts with `a_b.org`, and then peers cannot read its references.)
  std::string canonical_hostname = "localhost";

  // The port that other systems use to reach this one. 0 means that it is not known yet; remoting
  // does not start with it.
  uint16_t canonical_port = 0;

  // How long the system refuses a peer that is in quarantine. At least one second.
  // absl::InfiniteDuration() means until the peer is restarted or the quarantine is overridden.
  absl::Duration quarantine_duration = absl::Hours(5 * 24);

  // The largest number of messages that wait for the connection to one authority. Further ones
  // become dead letters.
  size_t max_deferred_per_authority = 1000;

  // The largest number of authorities that the system knows at once. When it is reached, the system
  // forgets an authority that is not connected and has no messages waiting. If there is none,
  // messages to further authorities become dead letters.
  size_t max_authorities = 4096;

  // Returns OK, or an error that names the bad option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONFIG_REMOTING_CONFIG_H_
