// PathIndex: finds the slots of the actors that may have a path, by the hash of the path, in one
// probe. Internal to the registry.
//
// A flat table of 8-byte buckets with linear probing. A bucket holds 32 bits of the hash and the
// slot. The table is never more than 3/4 full and never shrinks. Different paths may share these
// bits, so the caller of Find accepts or rejects each slot. Erase moves later buckets back, so that
// no tombstones pile up.
//
// Thread safety: thread-compatible.
#ifndef FRAKTOR_ACTOR_REGISTRY_INTERNAL_PATH_INDEX_H_
#define FRAKTOR_ACTOR_REGISTRY_INTERNAL_PATH_INDEX_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fraktor::inline v0::path_internal {

class PathIndex {
 public:
  PathIndex() : PathIndex(0) {}
  // Has room for `expected` slots before it grows.
  explicit PathIndex(size_t expected) : buckets_(std::bit_ceil(std::max(kMinBuckets, expected + expected / 3 + 1))) {}

  size_t size() const { return size_; }
  size_t bucket_count() const { return buckets_.size(); }

  template <class Accept>
  std::optional<uint32_t> Find(uint64_t hash, Accept accept) const {
    const auto tag = static_cast<uint32_t>(hash);
    const size_t mask = buckets_.size() - 1;
    for (size_t i = tag & mask; buckets_[i].slot_plus_one != 0; i = (i + 1) & mask) {
      if (buckets_[i].tag == tag && accept(buckets_[i].slot_plus_one - 1)) return buckets_[i].slot_plus_one - 1;
    }
    return std::nullopt;
  }

  // The pair must not be in the index yet. `slot` must be below 2^32 - 1.
  void Insert(uint64_t hash, uint32_t slot);

  // Returns false if the pair is not in the index.
  bool Erase(uint64_t hash, uint32_t slot);

 private:
  static constexpr size_t kMinBuckets = 16;

  struct Bucket {
    uint32_t tag = 0;
    uint32_t slot_plus_one = 0;  // 0 means that the bucket is empty
  };

  void Place(const Bucket& bucket);
  void Grow();

  std::vector<Bucket> buckets_;  // their number is a power of two
  size_t size_ = 0;
};

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_REGISTRY_INTERNAL_PATH_INDEX_H_
