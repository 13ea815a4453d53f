// IdCache: what a journal knows of the ids that were written last. Bounded: the ones that were not used for long go.
//
//   IdCache cache(65'536);
//   if (CachedId* id = cache.Find("account-7")) ...           // good until the next Insert
//   CachedId& id = cache.Insert("account-7", loaded);
//
// Two halves: when the younger is full it becomes the older one, and the former older one is dropped. An id that is
// used moves to the younger. So at least max / 2 of the ids used last are there, at no cost but two lookups.
//
// Thread safety: none; it belongs to the commit queue's worker.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_ID_CACHE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_ID_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "fraktor/persistence/journal/writer_rules.h"

namespace fraktor::inline v0 {

struct CachedId {
  IdState state = {};
  // Up to here the deleted events are really gone.
  uint64_t purged_to = 0;
  // Whether there is a record of it in the database.
  bool is_known = false;
  // Whether one of its events ever had a tag.
  bool has_tags = false;
  // The commit that changed it last.
  uint64_t changed_in = 0;
};

class IdCache {
 public:
  explicit IdCache(size_t max_ids) : half_(std::max<size_t>(1, max_ids / 2)) {}

  // Null if it is not there.
  CachedId* Find(const std::string& persistence_id) {
    const auto young = young_.find(persistence_id);
    if (young != young_.end()) return &young->second;
    const auto old = old_.find(persistence_id);
    if (old == old_.end()) return nullptr;
    const CachedId found = old->second;
    old_.erase(old);
    return &Insert(persistence_id, found);
  }

  CachedId& Insert(const std::string& persistence_id, const CachedId& id) {
    if (young_.size() >= half_) {
      old_ = std::move(young_);
      young_.clear();
    }
    return young_.insert_or_assign(persistence_id, id).first->second;
  }

  void Clear() {
    young_.clear();
    old_.clear();
  }

  size_t size() const { return young_.size() + old_.size(); }

 private:
  const size_t half_;
  absl::flat_hash_map<std::string, CachedId> young_;
  absl::flat_hash_map<std::string, CachedId> old_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_ID_CACHE_H_
