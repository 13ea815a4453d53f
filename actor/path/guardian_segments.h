// GuardianSegments: the fixed top-level names of an actor system, which are the first segments of
// paths.
//
//   std::string_view name = GuardianSegments::NameOf(Guardian::kUser);           // "user"
//   std::optional<Guardian> guardian = GuardianSegments::Find("temp");           // Guardian::kTemp
//
// Every actor lives below one of them: actors of users below /user, actors of the runtime below
// /system, references that wait for a reply below /temp, and actors that peers deployed here below
// /remote.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_GUARDIAN_SEGMENTS_H_
#define FRAKTOR_ACTOR_PATH_GUARDIAN_SEGMENTS_H_

#include <optional>
#include <string_view>

namespace fraktor::inline v0 {

enum class Guardian { kUser, kSystem, kTemp, kDeadLetters, kRemote };

class GuardianSegments {
 public:
  // The first segment: "user", "system", "temp", "deadLetters" or "remote". "unknown" for any other
  // number.
  static std::string_view NameOf(Guardian guardian);

  // The guardian with this name. None for other names.
  static std::optional<Guardian> Find(std::string_view segment);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_GUARDIAN_SEGMENTS_H_
