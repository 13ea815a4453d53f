// ActivationStorage: says which node runs a grain; what is stored here decides. An extension point.
//
//   Future<LoadedActivation> loading = storage.Load(key);
//   Future<void> storing = storage.Store(key, entry, /*expected_token=*/loaded.exists ? loaded.entry.token : 0);
//
// Store is a compare-and-set on tokens: it is accepted only if what is stored is still what the caller has seen, and
// the new token is higher. So records of a key follow each other in the order of their tokens, and a node that fell
// asleep between Load and Store cannot overwrite what happened meanwhile. A storage that knows the locks too also
// refuses a token that does not hold the lock now (kFenced), in the same transaction: then a late Store fails even if
// the record was removed in between.
//
// Fits what compares revisions: in etcd, a transaction that compares the record's value or revision and the lock's key.
//
// Thread safety: any thread. Every call returns at once and answers by a future. The storage must outlive its calls,
// not its futures.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_STORAGE_H_
#define FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_STORAGE_H_

#include <cstdint>

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class ActivationStorage {
 public:
  virtual ~ActivationStorage() = default;

  virtual Future<LoadedActivation> Load(GrainKey key) = 0;

  // `expected_token` is that of the entry that the caller has seen, 0 for none. kConflict if there is another one,
  // kFenced for a token that is not higher, or does not hold the lock. The same owner and token again: OK, nothing
  // changes. Any other error: it may be stored all the same.
  virtual Future<void> Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) = 0;

  // Only the entry with this token. OK also if there is none, or another one.
  virtual Future<void> Remove(GrainKey key, uint64_t token) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_STORAGE_H_
