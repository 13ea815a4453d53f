// How an actor system is set up, as far as its paths are concerned. Options are values of a program, never a file.
//
//   ActorSystemConfig config{
//       .system_name = "shop",
//       .remoting = RemotingConfig{.canonical_hostname = "10.0.0.7", .canonical_port = 2552},
//   };
//   FRAKTOR_RETURN_IF_ERROR(config.Validate());
//
// Whatever takes a config validates it first, and refuses to be made of one that is wrong.
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_CONFIG_ACTOR_SYSTEM_CONFIG_H_
#define FRAKTOR_ACTOR_CONFIG_ACTOR_SYSTEM_CONFIG_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/remoting_config.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/guardian_segments.h"

namespace fraktor::inline v0 {

struct ActorSystemConfig {
  static constexpr size_t kMaxSystemNameLength = 255;

  // A letter or digit, then letters, digits, `-` and `_`; at most 255 bytes, since it is part of every path.
  std::string system_name = "default";

  // The scheme of this system's paths: `pekko` or `pekko.tcp`.
  std::string scheme = "pekko";

  // Where actors go that are spawned without another word: /user, or /system for a runtime's own system.
  Guardian default_guardian = Guardian::kUser;

  // How long the path and uid of an actor with a name stay reserved after its end. Until then a
  // path with that uid means the actor that has ended (kUidReserved), and its reference still has a
  // path. At least one second; absl::InfiniteDuration() is as long as max_uid_reservations lasts.
  absl::Duration uid_reservation = absl::Hours(5 * 24);

  // The number of reservations that are kept, some 200 bytes each. Beyond that the oldest goes,
  // with an event UidReservationEvicted.
  size_t max_uid_reservations = 65'536;

  // Set if the system can be reached by others. Its host and port are then part of the paths that leave the system.
  std::optional<RemotingConfig> remoting = std::nullopt;

  // OK, or what is wrong with which option.
  absl::Status Validate() const;

  // The address of the system for its own paths: without authority, as all local paths are.
  absl::StatusOr<ActorPathParts> LocalParts() const;

  // The address that others know; the local one without remoting.
  absl::StatusOr<ActorPathParts> CanonicalParts() const;

  // pekko://shop/user.
  absl::StatusOr<ActorPath> DefaultGuardianPath() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONFIG_ACTOR_SYSTEM_CONFIG_H_
