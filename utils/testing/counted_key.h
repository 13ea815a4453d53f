// CountedKey: a key that counts comparisons. Tests instantiate a table with it to prove that the
// work of an operation does not grow with the size of the table. The result does not depend on the
// speed of the machine.
//
// Thread safety: one thread.
#ifndef FRAKTOR_UTILS_TESTING_COUNTED_KEY_H_
#define FRAKTOR_UTILS_TESTING_COUNTED_KEY_H_

#include <cstdint>
#include <utility>

namespace fraktor::inline v0 {

struct CountedKey {
  uint64_t value = 0;

  // The comparisons since a test has set it to 0.
  static inline uint64_t comparisons = 0;

  // As ActorRef: the reference without its flags.
  CountedKey Plain() const { return *this; }

  friend bool operator==(const CountedKey& a, const CountedKey& b) {
    ++comparisons;
    return a.value == b.value;
  }
  template <class H>
  friend H AbslHashValue(H state, const CountedKey& key) {
    return H::combine(std::move(state), key.value);
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_COUNTED_KEY_H_
