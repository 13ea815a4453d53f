// Mutations: breaks of the stores on purpose, which show whether the tests would notice a real one.
//
// Only a build with --define=fraktor_mutations=1 has them, and the environment variable
// FRAKTOR_MUTATION names the one that is active. In every other build IsMutated is the constant
// false, and compilers remove what depends on it. `tools/mutate persistence` runs them all;
// tools/endurance/rooms.json lists them.
//
// Thread safety: any thread.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_MUTATION_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_MUTATION_H_

#if defined(FRAKTOR_MUTATIONS)
#include <cstdlib>
#include <string>
#endif
#include <string_view>

namespace fraktor::inline v0 {

#if defined(FRAKTOR_MUTATIONS)
inline bool IsMutated(std::string_view name) {
  static const std::string active = [] {
    const char* const text = std::getenv("FRAKTOR_MUTATION");
    return std::string(text == nullptr ? "" : text);
  }();
  return active == name;
}
#else
constexpr bool IsMutated(std::string_view /*name*/) { return false; }
#endif

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_MUTATION_H_
