#include "fraktor/actor/registry/internal/path_index.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fraktor::inline v0::path_internal {

void PathIndex::Place(const Bucket& bucket) {
  const size_t mask = buckets_.size() - 1;
  size_t i = bucket.tag & mask;
  while (buckets_[i].slot_plus_one != 0) i = (i + 1) & mask;
  buckets_[i] = bucket;
}

void PathIndex::Grow() {
  std::vector<Bucket> old(buckets_.size() * 2);
  std::swap(old, buckets_);
  for (const Bucket& bucket : old) {
    if (bucket.slot_plus_one != 0) Place(bucket);
  }
}

void PathIndex::Insert(uint64_t hash, uint32_t slot) {
  if ((size_ + 1) * 4 > buckets_.size() * 3) Grow();
  Place({.tag = static_cast<uint32_t>(hash), .slot_plus_one = slot + 1});
  ++size_;
}

bool PathIndex::Erase(uint64_t hash, uint32_t slot) {
  const auto tag = static_cast<uint32_t>(hash);
  const size_t mask = buckets_.size() - 1;
  size_t hole = tag & mask;
  while (buckets_[hole].slot_plus_one != slot + 1 || buckets_[hole].tag != tag) {
    if (buckets_[hole].slot_plus_one == 0) return false;
    hole = (hole + 1) & mask;
  }
  // An entry that a probe would not find across the hole moves into it, and its bucket becomes the
  // hole.
  for (size_t i = (hole + 1) & mask; buckets_[i].slot_plus_one != 0; i = (i + 1) & mask) {
    const size_t home = buckets_[i].tag & mask;
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      buckets_[hole] = buckets_[i];
      hole = i;
    }
  }
  buckets_[hole] = Bucket();
  --size_;
  return true;
}

}  // namespace fraktor::inline v0::path_internal
