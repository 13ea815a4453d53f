// WorkStealingRing: the run queue of a worker. A bounded first-in first-out ring that one thread
// fills and empties, and from which other threads steal half.
//
//   WorkStealingRing<Cell*> mine;
//   if (!mine.TryPush(cell)) injection.Push(cell);              // full: the caller moves work to the shared queue
//   Cell* next = mine.TryPop();                                 // null: empty
//   if (next == nullptr) next = other.StealHalfInto(mine);      // returns one to run now, and adds the rest to `mine`
//
// Thread safety: only the owner, one thread at a time, may call TryPush, TryPushUnannounced, TryPop
// and PopHalf, and only the owner of `thief` may call StealHalfInto. Any thread may call
// StealHalfInto of another ring, IsEmptyForParking and SizeHint.
//
// Progress: TryPush is wait-free. TryPop, PopHalf and StealHalfInto are lock-free: they repeat only
// if another thread took elements meanwhile.
//
// How a worker avoids sleeping while there is work. A worker without work
//   1. announces that it sleeps, with a sequentially consistent read-modify-write on the idle count,
//   2. checks every ring again with IsEmptyForParking(), and the injection queue,
//   3. sleeps only if all were empty.
// A worker that makes work calls TryPush, then loads the idle count sequentially consistently, and
// wakes a sleeper if the count is not zero. TryPush stores the tail, and IsEmptyForParking loads
// it, sequentially consistently. So there is one order of these four operations: either the check
// in step 2 comes after the store and sees the work, or the load comes after step 1 and sees the
// sleeper. No fence is needed.
#ifndef FRAKTOR_UTILS_QUEUE_INTERNAL_WORK_STEALING_RING_H_
#define FRAKTOR_UTILS_QUEUE_INTERNAL_WORK_STEALING_RING_H_

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::utils_internal {

// T is a pointer type. Null stands for "none" and cannot be pushed.
template <typename T, size_t kCapacity = 256, typename Atomics = StdAtomics>
class WorkStealingRing {
  static_assert(std::is_pointer_v<T>);
  static_assert(kCapacity >= 2 && (kCapacity & (kCapacity - 1)) == 0, "the capacity is a power of two");

 public:
  static constexpr size_t kHalf = kCapacity / 2;
  // The most items of one steal. A thief copies items before it takes them, and the copy is in vain
  // if the owner pops an item meanwhile. So the copy out of the owner's cache must take less time
  // than a turn of an actor.
  static constexpr uint64_t kMostStolen = 128;
  using HalfBuffer = std::array<T, kHalf>;

  WorkStealingRing() = default;
  WorkStealingRing(const WorkStealingRing&) = delete;
  WorkStealingRing& operator=(const WorkStealingRing&) = delete;

  // Methods for the owner.

  // Appends `item`. Returns false if the ring is full. Earlier writes of the caller are visible to
  // the thread that gets the item.
  bool TryPush(T item) { return PushWith(item, std::memory_order_seq_cst); }

  // The same without the order that parking needs, and without its cost. For an owner that
  // certainly pops again before it sleeps, or that calls TryPush afterwards. A worker that is about
  // to sleep may miss such an item; the owner does not.
  bool TryPushUnannounced(T item) { return PushWith(item, std::memory_order_release); }

  // Returns the oldest item, or null.
  T TryPop();

  // Moves the older half of the items, rounded up and at most kHalf, into `items` and returns how
  // many. For an owner whose ring is full.
  size_t PopHalf(HalfBuffer& items);

  // Methods for any thread.

  // Takes the older half of this ring's items, rounded up, but at most `most` (1 to kMostStolen).
  // Returns the oldest item, and appends the rest to `thief` as far as there is room. Takes fewer
  // items if other threads take at the same time. Returns null if this ring was empty. `thief` is
  // another ring, which the caller owns. Its new items are announced like those of TryPush.
  T StealHalfInto(WorkStealingRing& thief, uint64_t most = kMostStolen);

  // False if the ring has an item whose TryPush comes earlier in the single order of sequentially
  // consistent operations.
  bool IsEmptyForParking() const {
    const uint64_t tail = tail_.load(std::memory_order_seq_cst);
    return head_.load(std::memory_order_acquire) >= tail;
  }

  // The approximate number of items: exact only while no thread pushes or takes. For metrics, and
  // for comparing rings.
  size_t SizeHint() const {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    return tail > head ? static_cast<size_t>(tail - head) : 0;
  }

 private:
  typename Atomics::template Atomic<T>& CellAt(uint64_t position) { return cells_[position & (kCapacity - 1)]; }

  bool PushWith(T item, std::memory_order order);

  // Why taking is safe. Each taker reads the cells first, and then moves head from h to h + n by
  // compare-exchange; only that makes the items its own. Positions are 64 bits wide and never wrap,
  // so head has each value at most once (no ABA), and at most one taker can move it on from h. The
  // owner overwrites the cell of position p only after it has loaded a head beyond p. If a taker
  // has read such a newer item, then head had left h before, and its compare-exchange fails. If the
  // compare-exchange succeeds, it comes before that newer head, its release pairs with the owner's
  // acquire load of head, and so the reads come before the overwriting. A torn half is never used.

  // The position of the oldest item. Takers move it with release, when they are done with the
  // cells. The owner loads it with acquire before it overwrites a cell. Takers load it with acquire
  // so that the tail that they load next is not older.
  alignas(64) typename Atomics::template Atomic<uint64_t> head_{0};
  // The position after the newest item. Only the owner stores it. The release publishes the cells
  // and the objects that the items point to, and pairs with the acquire of thieves. The top of this
  // file says when it is sequentially consistent.
  alignas(64) typename Atomics::template Atomic<uint64_t> tail_{0};
  // Relaxed: head and tail order the accesses. Atomic because a thief may read a cell while the
  // owner writes it; the thief then discards the value.
  alignas(64) std::array<typename Atomics::template Atomic<T>, kCapacity> cells_{};
};

// Definitions only from here on.

template <typename T, size_t kCapacity, typename Atomics>
inline bool WorkStealingRing<T, kCapacity, Atomics>::PushWith(T item, std::memory_order order) {
  assert(item != nullptr);
  const uint64_t tail = tail_.load(std::memory_order_relaxed);  // Only this thread stores it.
  if (tail - head_.load(std::memory_order_acquire) >= kCapacity) return false;
  CellAt(tail).store(item, std::memory_order_relaxed);
  tail_.store(tail + 1, order);
  return true;
}

template <typename T, size_t kCapacity, typename Atomics>
inline T WorkStealingRing<T, kCapacity, Atomics>::TryPop() {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);  // Only this thread stores it.
  uint64_t head = head_.load(std::memory_order_relaxed);
  while (head != tail) {
    const T item = CellAt(head).load(std::memory_order_relaxed);  // Written by this thread: nothing to acquire.
    if (head_.compare_exchange_weak(head, head + 1, std::memory_order_release, std::memory_order_relaxed)) return item;
  }
  return nullptr;
}

template <typename T, size_t kCapacity, typename Atomics>
size_t WorkStealingRing<T, kCapacity, Atomics>::PopHalf(HalfBuffer& items) {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);  // Only this thread stores it.
  uint64_t head = head_.load(std::memory_order_relaxed);
  for (;;) {
    const auto count = static_cast<size_t>(tail - head - (tail - head) / 2);
    if (count == 0) return 0;
    for (size_t i = 0; i < count; ++i) items[i] = CellAt(head + i).load(std::memory_order_relaxed);
    if (head_.compare_exchange_weak(head, head + count, std::memory_order_release, std::memory_order_relaxed))
      return count;
  }
}

template <typename T, size_t kCapacity, typename Atomics>
T WorkStealingRing<T, kCapacity, Atomics>::StealHalfInto(WorkStealingRing& thief, uint64_t most) {
  assert(this != &thief && most >= 1 && most <= kMostStolen);
  const uint64_t thief_tail = thief.tail_.load(std::memory_order_relaxed);  // Only the caller stores it.
  const uint64_t room = kCapacity - (thief_tail - thief.head_.load(std::memory_order_acquire));
  if (most > room) most = room + 1;
  uint64_t head = head_.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    const uint64_t size = tail - head;  // Too large if head has moved on meanwhile; the exchange fails then.
    if (size == 0) return nullptr;
    uint64_t count = size - size / 2;
    if (count > most) count = most;
    const T first = CellAt(head).load(std::memory_order_relaxed);
    for (uint64_t i = 1; i < count; ++i) {
      // Written beyond the thief's tail, where no other thread reads before the tail is stored.
      thief.CellAt(thief_tail + i - 1)
          .store(CellAt(head + i).load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    const uint64_t expected = head;
    if (!head_.compare_exchange_weak(head, head + count, std::memory_order_acq_rel, std::memory_order_acquire)) {
      // Another taker was faster. Copying fewer items takes less time, down to one item, as in
      // TryPop.
      if (head != expected && count > 1) most = count / 2;
      continue;
    }
    if (count > 1) thief.tail_.store(thief_tail + count - 1, std::memory_order_seq_cst);
    return first;
  }
}

}  // namespace fraktor::inline v0::utils_internal

#endif  // FRAKTOR_UTILS_QUEUE_INTERNAL_WORK_STEALING_RING_H_
