// BoundedRing: a bounded queue between any number of producers and consumers. It never blocks, and
// allocates only when it is made.
//
//   absl::StatusOr<std::unique_ptr<BoundedRing<Job>>> ring = BoundedRing<Job>::Create(1024);
//   if (!(*ring)->TryPush(std::move(job))) Refuse(std::move(job));      // full: `job` is unchanged
//   while (std::optional<Job> next = (*ring)->TryPop()) Do(*next);
//
// Elements come out in the order in which the pushes took their positions. Two pushes of one thread
// keep their order.
//
// Thread safety: any thread may call TryPush, TryPop and SizeHint.
//
// Progress: no operation waits for another thread, and an operation that finds its cell ready is
// lock-free. But a thread that is stopped in the middle of TryPush hides later elements: TryPop
// returns "empty" until that thread goes on. A thread that is stopped in the middle of TryPop makes
// TryPush return "full" when the ring comes round to its cell. So "empty" and "full" mean "not
// now". A caller that wants to sleep until then needs a signal of its own, sent after the push or
// pop has returned.
//
// Cost: one read-modify-write per operation.
#ifndef FRAKTOR_UTILS_QUEUE_BOUNDED_RING_H_
#define FRAKTOR_UTILS_QUEUE_BOUNDED_RING_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

// T may be move-only. Its move must not throw, since a position that was taken must be filled.
template <typename T, typename Atomics = StdAtomics>
class BoundedRing {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  static constexpr size_t kMinCapacity = 2;
  static constexpr size_t kMaxCapacity = size_t{1} << 24;

  // Makes a ring for `capacity` elements. Returns InvalidArgument unless that is a power of two
  // from kMinCapacity to kMaxCapacity.
  static absl::StatusOr<std::unique_ptr<BoundedRing>> Create(size_t capacity);

  BoundedRing(const BoundedRing&) = delete;
  BoundedRing& operator=(const BoundedRing&) = delete;

  // Destroys the remaining elements. No other call may run at the same time.
  ~BoundedRing() {
    while (TryPop().has_value()) {
    }
  }

  // Moves `value` into the ring. Returns false, and leaves `value` unchanged, if the ring is full.
  bool TryPush(T&& value);

  // Returns the oldest element, or nothing if the ring is empty.
  std::optional<T> TryPop();

  size_t capacity() const { return mask_ + 1; }

  // The approximate number of elements: exact only while no thread pushes or pops. For metrics.
  size_t SizeHint() const {
    const uint64_t popped = pop_position_.load(std::memory_order_relaxed);
    const uint64_t pushed = push_position_.load(std::memory_order_relaxed);
    return pushed > popped ? static_cast<size_t>(pushed - popped) : 0;
  }

 private:
  // Elements that can be copied as bytes are stored in a Plain, so that a checker sees the
  // accesses; other elements in raw storage.
  static constexpr bool kIsPlain = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>;

  struct RawStorage {
    void Put(T&& value) { new (&bytes) T(std::move(value)); }
    T Take() {
      T* const stored = std::launder(reinterpret_cast<T*>(&bytes));
      T value(std::move(*stored));
      stored->~T();
      return value;
    }
    alignas(T) std::byte bytes[sizeof(T)];
  };

  struct PlainStorage {
    void Put(T&& value) { stored = value; }
    T Take() { return stored; }
    typename Atomics::template Plain<T> stored{};
  };

  struct Cell {
    // The operation that may use this cell: p for the push at position p, p + 1 for the pop at p, p
    // + capacity for the next push, and so on. Push and pop store it with release when they are
    // done with the storage. That pairs with the acquire of the next operation.
    typename Atomics::template Atomic<uint64_t> turn{0};
    std::conditional_t<kIsPlain, PlainStorage, RawStorage> storage;
  };

  explicit BoundedRing(size_t capacity) : mask_(capacity - 1), cells_(new Cell[capacity]) {
    for (size_t i = 0; i < capacity; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  const uint64_t mask_;
  const std::unique_ptr<Cell[]> cells_;

  // The positions of the next push and the next pop. They only assign positions, so they are
  // relaxed; the turns of the cells order everything else. 64 bits do not wrap, so a position never
  // comes back and a late compare-exchange cannot succeed by mistake.
  alignas(64) typename Atomics::template Atomic<uint64_t> push_position_{0};
  alignas(64) typename Atomics::template Atomic<uint64_t> pop_position_{0};
};

// Definitions only from here on.

template <typename T, typename Atomics>
absl::StatusOr<std::unique_ptr<BoundedRing<T, Atomics>>> BoundedRing<T, Atomics>::Create(size_t capacity) {
  if (capacity < kMinCapacity || capacity > kMaxCapacity || (capacity & (capacity - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("capacity of a bounded ring: ", capacity, " is not a power of two from ", kMinCapacity, " to ",
                     kMaxCapacity, "; use ", std::bit_ceil(std::clamp(capacity, kMinCapacity, kMaxCapacity))));
  }
  return std::unique_ptr<BoundedRing>(new BoundedRing(capacity));
}

template <typename T, typename Atomics>
bool BoundedRing<T, Atomics>::TryPush(T&& value) {
  uint64_t position = push_position_.load(std::memory_order_relaxed);
  for (;;) {
    Cell& cell = cells_[position & mask_];
    const uint64_t turn = cell.turn.load(std::memory_order_acquire);
    const auto ahead = static_cast<int64_t>(turn - position);
    if (ahead < 0) return false;  // The pop of the previous round has not reached this cell.
    if (ahead > 0) {              // Another push took this position.
      position = push_position_.load(std::memory_order_relaxed);
      continue;
    }
    if (push_position_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed,
                                             std::memory_order_relaxed)) {
      cell.storage.Put(std::move(value));
      cell.turn.store(position + 1, std::memory_order_release);
      return true;
    }
  }
}

template <typename T, typename Atomics>
std::optional<T> BoundedRing<T, Atomics>::TryPop() {
  uint64_t position = pop_position_.load(std::memory_order_relaxed);
  for (;;) {
    Cell& cell = cells_[position & mask_];
    const uint64_t turn = cell.turn.load(std::memory_order_acquire);
    const auto ahead = static_cast<int64_t>(turn - (position + 1));
    if (ahead < 0) return std::nullopt;  // The push has not reached this cell.
    if (ahead > 0) {                     // Another pop took this position.
      position = pop_position_.load(std::memory_order_relaxed);
      continue;
    }
    if (pop_position_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed,
                                            std::memory_order_relaxed)) {
      std::optional<T> value(cell.storage.Take());
      cell.turn.store(position + mask_ + 1, std::memory_order_release);
      return value;
    }
  }
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_QUEUE_BOUNDED_RING_H_
