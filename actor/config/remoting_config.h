// How a system is reached by others, and how it treats them.
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
  // The host that others use to reach this system: a name, an IPv4 address, or an IPv6 address in brackets. It goes
  // into paths, so it has to be one that every parser of paths takes, ours and Pekko's: `_` is not allowed. (Pekko starts
  // with `a_b.org`, and then peers cannot read its refs.)
  std::string canonical_hostname = "localhost";

  // 0 until the port that was picked is known.
  uint16_t canonical_port = 0;

  // How long a peer is refused once it is in quarantine. At least one second; absl::InfiniteDuration() is until it is
  // restarted or overridden.
  absl::Duration quarantine_duration = absl::Hours(5 * 24);

  // So many messages wait for one authority to be connected; further ones are dead letters.
  size_t max_deferred_per_authority = 1000;

  // So many authorities are known at once. When there is no more room, one that is not connected and has nothing
  // waiting makes place; if there is none, messages to a further one are dead letters.
  size_t max_authorities = 4096;

  // OK, or what is wrong with which option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONFIG_REMOTING_CONFIG_H_
