// SpawnError: the exception that Spawn throws if it cannot spawn. TrySpawn returns the same status
// instead.
//
//   try {
//     system.Spawn<Account>("alice");
//   } catch (const SpawnError& error) {
//     std::cerr << error.status() << "\n";                 // AlreadyExists: the name is taken
//   }
//
// A SpawnError that leaves a handler is a failure of the actor, like any exception.
#ifndef FRAKTOR_ACTOR_CONTEXT_SPAWN_ERROR_H_
#define FRAKTOR_ACTOR_CONTEXT_SPAWN_ERROR_H_

#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

class SpawnError : public std::runtime_error {
 public:
  explicit SpawnError(const absl::Status& status)
      : std::runtime_error(std::string(status.message())), status_(status) {}
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

namespace spawn_internal {

template <class Ref>
Ref OrThrow(const absl::StatusOr<Ref>& spawned) {
  if (!spawned.ok()) throw SpawnError(spawned.status());
  return *spawned;
}

}  // namespace spawn_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_SPAWN_ERROR_H_
