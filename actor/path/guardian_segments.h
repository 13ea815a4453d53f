// The first segments of paths: the fixed top-level names of an actor system.
//
//   GuardianSegments::NameOf(Guardian::kUser)  // "user"
//   GuardianSegments::Find("temp")             // Guardian::kTemp
//
// Every actor lives below one of them. A user's actors are below /user, the runtime's own below /system, refs that wait
// for an answer below /temp, and what peers have deployed here below /remote.
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
  // The text of the first segment: "user", "system", "temp", "deadLetters", "remote".
  // "unknown" for a number that is none of them.
  static std::string_view NameOf(Guardian guardian);

  // The guardian of that name; none if there is none.
  static std::optional<Guardian> Find(std::string_view segment);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_GUARDIAN_SEGMENTS_H_
