// IdCache: the states of the persistence ids that a journal has used last.
//
//   IdCache cache(65'536);
//   if (CachedId* id = cache.Find("account-7")) ...    // valid until the next Find, Insert, Trim or Clear
//   CachedId& id = cache.Insert("account-7", loaded);  // and change it; the change goes into the open group
//   ...                                                // the group is committed
//   cache.Trim();
//
// While a group of operations is open, the cache is ahead of the database: it has the changes of
// the group, and the database does not. So Find and Insert never evict. Only Trim does, and the
// caller calls it between two groups. If a commit fails, the caller calls Clear: the database alone
// knows what is stored then.
//
// The cache has two generations. When the younger one is full, Trim makes it the older one and
// drops the former older one. Find moves an id to the younger one. So at least max_ids / 2 of the
// ids used last are there, and at most max_ids and twice the ids of one group.
//
// Thread safety: none; the worker of the commit queue owns it.
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
  // Up to this number the deleted events are removed from the database.
  uint64_t purged_to = 0;
  // Whether the database, or the open group, has a record of the id.
  bool is_known = false;
  // Whether an event of the id ever had a tag.
  bool has_tags = false;
  // The group that wrote to the id or opened it last.
  uint64_t changed_in = 0;
};

class IdCache {
 public:
  explicit IdCache(size_t max_ids) : half_(std::max<size_t>(1, max_ids / 2)) {}

  // Null if the id is not in the cache.
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
    return young_.insert_or_assign(persistence_id, id).first->second;
  }

  // Evicts the ids that were not used for longest. Must not be called while a group is open: a
  // state that the group has changed would be read from the database as it was before.
  void Trim() {
    if (young_.size() < half_) return;
    old_ = std::move(young_);
    young_.clear();
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
