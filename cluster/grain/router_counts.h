// RouterCounts: what the router of a node counts, for the metrics of its node (cluster_metrics.h).
//
//   ++counts.retried_calls;                            // in a turn of the router
//   if (KindCounts* const kind = counts.Find("account")) ++kind->started;
//
// Thread safety: one thread at a time changes it, that of the router's turn; any thread reads.
#ifndef FRAKTOR_CLUSTER_GRAIN_ROUTER_COUNTS_H_
#define FRAKTOR_CLUSTER_GRAIN_ROUTER_COUNTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace fraktor::inline v0 {

// A number that one thread at a time changes: without a read-modify-write.
class RouterCount {
 public:
  RouterCount& operator+=(uint64_t n) {
    count_.store(value() + n, std::memory_order_relaxed);
    return *this;
  }
  RouterCount& operator-=(uint64_t n) { return *this += -n; }
  RouterCount& operator++() { return *this += 1; }
  RouterCount& operator--() { return *this -= 1; }
  void Reset() { count_.store(0, std::memory_order_relaxed); }

  uint64_t value() const { return count_.load(std::memory_order_relaxed); }

 private:
  // Statistics; pairs with nothing.
  std::atomic<uint64_t> count_{0};
};

// Of the grains of a kind.
struct KindCounts {
  RouterCount active;
  // Their actors could be made, or could not, or could not start.
  RouterCount started;
  RouterCount failed;
};

struct RouterCounts {
  // Those that the node hosts: they do not change after the start.
  std::map<std::string, KindCounts, std::less<>> kinds;
  // Calls that wait now.
  RouterCount waiting_calls;
  // Calls that have not left this node, or were not handled, and were sent again.
  RouterCount retried_calls;
  // Calls that ended with an error, or, if nobody has asked, as a dead letter.
  RouterCount refused_calls;
  // The same, but by a call filter of this node: these are not among those above.
  RouterCount calls_refused_by_filter;
  // Attempts to find a grain.
  RouterCount failed_lookups;

  // Null if the node does not host it.
  KindCounts* Find(std::string_view kind) {
    const auto found = kinds.find(kind);
    return found == kinds.end() ? nullptr : &found->second;
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_ROUTER_COUNTS_H_
