// TempNames: the names of reply promises below /temp.
//
// A name consists of the name of the target and a number that is never used again: "greeter$a".
//
// A promise gets its name when its path is needed for the first time, so most asks cost nothing
// here. A name is known as long as its promise waits for a reply, and after that until at least
// kRemembered other promises have got names.
//
// Thread safety: thread-compatible, like a container. ActorNames holds its lock.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_TEMP_NAMES_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_TEMP_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

class TempNames {
 public:
  static constexpr uint64_t kRemembered = 1024;

  // The name of a promise; null if it has none. The flags of the reference do not matter.
  const std::string* Find(ActorRef promise) const;
  // The same, and gives it a name if it has none.
  const std::string& NameOf(ActorRef promise, std::string_view target_name);

  // The promise of that name, which may have ended; no one if the name is not known.
  ActorRef FindByName(std::string_view name) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    ActorRef promise;
    std::string name;
  };

  // Forgets promises that have ended, except the latest. Called so rarely that it costs a constant
  // time per name.
  void ForgetEnded();

  uint64_t next_number_ = 0;
  // ForgetEnded runs when there are this many entries.
  size_t forget_at_ = 2 * kRemembered;
  absl::flat_hash_map<uint64_t, Entry> entries_;  // By number.
  absl::flat_hash_map<ActorRef, uint64_t> numbers_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_TEMP_NAMES_H_
