// StoreGate: counts the requests that a store has taken and not answered, and says when the last is answered after the
// store was closed.
//
//   if (!gate.Enter()) return ClosedError(...);
//   ... answer ...
//   if (gate.Leave()) Finish();            // closed, and this was the last
//   ...
//   if (gate.Close()) Finish();            // nothing was in flight
//
// Thread safety: all methods may be called from any thread.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_STORE_GATE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_STORE_GATE_H_

#include <atomic>
#include <cstdint>

namespace fraktor::inline v0 {

class StoreGate {
 public:
  // False if it is closed; otherwise a Leave has to follow.
  bool Enter() {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & kClosed) == 0) {
      if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  // True, once in all, if it is closed and nobody is left.
  bool Leave() { return word_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1); }

  // True if this call has closed it and nobody is inside; a later Leave says so otherwise.
  bool Close() { return word_.fetch_or(kClosed, std::memory_order_acq_rel) == 0; }

  bool is_closed() const { return (word_.load(std::memory_order_acquire) & kClosed) != 0; }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  // How many are inside, and whether it is closed. Everything that somebody did before Leave or Close is seen by the
  // one who is told that nobody is left: all are read-modify-writes of this word.
  std::atomic<uint64_t> word_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_STORE_GATE_H_
