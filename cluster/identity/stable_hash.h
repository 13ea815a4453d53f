// StableHash64: a number for a text that is the same in every process, on every machine and in every version.
//
//   uint64_t hash = StableHash64("10.0.0.7:2552");
//
// Members of a cluster decide by it without talking to each other, so it never changes: vectors in identity_test
// guard it. Not for tables that strangers fill: collisions can be made on purpose. Not for secrets.
//
// Thread safety: a function of its arguments.
#ifndef FRAKTOR_CLUSTER_IDENTITY_STABLE_HASH_H_
#define FRAKTOR_CLUSTER_IDENTITY_STABLE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {

// Eight bytes at a time, lowest first, the last padded with zeros; the length is in the beginning, so that padding is
// not mistaken for text.
inline uint64_t StableHash64(std::string_view text, uint64_t seed = 0) {
  uint64_t hash = MixBits(seed + 0x9e3779b97f4a7c15 * (text.size() + 1));
  while (text.size() >= 8) {
    hash = MixBits(hash ^ LoadFixed64(text.data()));
    text.remove_prefix(8);
  }
  if (!text.empty()) {
    uint64_t tail = 0;
    for (size_t i = 0; i < text.size(); ++i) tail |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
    hash = MixBits(hash ^ tail);
  }
  return hash;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_STABLE_HASH_H_
