// WatcherTable: the nodes that want to hear of new topologies, each until a time. A watcher repeats
// its request before that time.
//
// Called by: EmbeddedStore. Thread safety: thread-compatible; the store uses it in its turns.
#ifndef FRAKTOR_CLUSTER_EMBEDDED_WATCHER_TABLE_H_
#define FRAKTOR_CLUSTER_EMBEDDED_WATCHER_TABLE_H_

#include <cstddef>

#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// `Ref` is ActorRef; a test uses a key that counts comparisons.
template <class Ref>
class WatcherTable {
 public:
  struct Watcher {
    Ref ref;
    Instant until;
  };

  // One watcher more is refused.
  static constexpr size_t kMaxWatchers = 20'000;

  // Keeps the watcher until that time. Takes constant time. Returns false if the table is full.
  bool Keep(Ref ref, Instant until) {
    if (Watcher* const known = watchers_.Find(ref)) {
      known->until = until;
      return true;
    }
    return watchers_.size() < kMaxWatchers && watchers_.Insert({.ref = ref, .until = until});
  }

  // Removes the watchers whose time has come. Takes linear time.
  void Expire(Instant now) {
    watchers_.Keep([now](const Watcher& watcher) { return now < watcher.until; });
  }

  size_t size() const { return watchers_.size(); }
  auto begin() const { return watchers_.begin(); }
  auto end() const { return watchers_.end(); }

 private:
  struct RefOfWatcher {
    Ref operator()(const Watcher& watcher) const { return watcher.ref; }
  };

  IndexedSet<Watcher, 1, RefOfWatcher> watchers_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_EMBEDDED_WATCHER_TABLE_H_
