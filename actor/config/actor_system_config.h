// ActorSystemConfig: the name, paths and address of an actor system. The program sets the options;
// no file is read.
//
//   ActorSystemConfig config{
//       .system_name = "shop",
//       .remoting = RemotingConfig{.canonical_hostname = "10.0.0.7", .canonical_port = 2552},
//   };
//   FRAKTOR_RETURN_IF_ERROR(config.Validate());
//
// Every class that takes a config validates it first and returns the error of a bad one.
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
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/guardian_segments.h"

namespace fraktor::inline v0 {

struct ActorSystemConfig {
  static constexpr size_t kMaxSystemNameLength = 255;

  // Begins with a letter or digit, followed by letters, digits, `-` and `_`. At most 255 bytes,
  // because every path contains it.
  std::string system_name = "default";

  // The scheme of this system's paths: `pekko` or `pekko.tcp`.
  std::string scheme = "pekko";

  // The parent of actors that are spawned without naming one: /user, or /system for a system that
  // only a runtime uses.
  Guardian default_guardian = Guardian::kUser;

  // How long the path and uid of an actor with a name stay reserved after its end. Until then a
  // path with that uid means the actor that has ended (kUidReserved), and its reference still has a
  // path. At least one second. absl::InfiniteDuration() means until max_uid_reservations is
  // reached.
  absl::Duration uid_reservation = absl::Hours(5 * 24);

  // The largest number of reservations, of about 200 bytes each, plus the path. Above it the system
  // drops the oldest one and publishes an event UidReservationEvicted. A path of more than 1024
  // bytes is not reserved.
  size_t max_uid_reservations = 65'536;

  // Set if other systems can reach this one. Paths that leave the system then contain its host and
  // port.
  std::optional<RemotingConfig> remoting = std::nullopt;

  // Returns OK, or an error that names the bad option.
  absl::Status Validate() const;

  // Returns the address that the system's own paths begin with. Like all local paths it has no
  // authority.
  absl::StatusOr<ActorPathParts> LocalParts() const;

  // Returns the address by which other systems know this one. Without remoting, the local one.
  absl::StatusOr<ActorPathParts> CanonicalParts() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONFIG_ACTOR_SYSTEM_CONFIG_H_
