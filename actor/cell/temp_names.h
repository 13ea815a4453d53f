// TempNames: the names of reply promises below /temp.
//
// A name is that of the target and a number that is never used again: "greeter$a".
//
// A promise gets its name when somebody asks for its path for the first time, so most asks cost
// nothing here. A name stays known as long as its promise waits, and afterwards for a while: until
// kRemembered others have got names, at least.
//
// Thread safety: thread-compatible, as a container is.
#ifndef FRAKTOR_ACTOR_CELL_TEMP_NAMES_H_
#define FRAKTOR_ACTOR_CELL_TEMP_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

class TempNames {
 public:
  static constexpr uint64_t kRemembered = 1024;

  // The name of a promise; null if it has none yet. References to it with and without flags are the
  // same.
  const std::string* Find(ActorRef promise) const;
  // The same, and gives it a name if it has none.
  const std::string& NameOf(ActorRef promise, std::string_view target_name);

  // The promise of that name, which may be over; no one if the name is not known.
  ActorRef FindByName(std::string_view name) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    ActorRef promise;
    std::string name;
  };

  // Forgets promises that are over, except the latest. Called so seldom that it costs a constant
  // time for each name.
  void ForgetEnded();

  uint64_t next_number_ = 0;
  // When there are so many entries, ForgetEnded is called.
  size_t forget_at_ = 2 * kRemembered;
  absl::flat_hash_map<uint64_t, Entry> entries_;  // By number.
  absl::flat_hash_map<ActorRef, uint64_t> numbers_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_TEMP_NAMES_H_
