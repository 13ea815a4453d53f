// A bounded queue between any number of producers and consumers that never blocks and never allocates after it was
// made.
//
//   absl::StatusOr<std::unique_ptr<BoundedRing<Job>>> ring = BoundedRing<Job>::Create(1024);
//   if (!(*ring)->TryPush(std::move(job))) Refuse(std::move(job));      // full: `job` is as it was
//   while (std::optional<Job> next = (*ring)->TryPop()) Do(*next);
//
// Elements come out in the order in which pushes took their places; two pushes of one thread keep their order.
//
// Thread safety: TryPush, TryPop and SizeHint may be called by any thread.
//
// Progress: no operation waits for another thread, and those that find their cell ready are lock-free. But a thread
// that is stopped in the middle of TryPush hides what was pushed after it: TryPop answers "empty" until it goes on; one
// that is stopped in the middle of TryPop makes TryPush answer "full" when the ring comes round to its cell. So "empty"
// and "full" mean "not now"; who needs to sleep on them needs a signal of its own that is given after the push or pop
// has returned.
//
// Cost: one read-modify-write each.
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

// T may be move-only; its move must not throw, since a place that was taken must be filled.
template <typename T, typename Atomics = StdAtomics>
class BoundedRing {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  static constexpr size_t kMinCapacity = 2;
  static constexpr size_t kMaxCapacity = size_t{1} << 24;

  // A ring for `capacity` elements: a power of two from kMinCapacity to kMaxCapacity, else InvalidArgument.
  static absl::StatusOr<std::unique_ptr<BoundedRing>> Create(size_t capacity);

  BoundedRing(const BoundedRing&) = delete;
  BoundedRing& operator=(const BoundedRing&) = delete;

  // Destroys what is left. No other call may be under way.
  ~BoundedRing() {
    while (TryPop().has_value()) {
    }
  }

  // Moves `value` in, or answers false and leaves it alone if the ring is full.
  bool TryPush(T&& value);

  // The oldest element, or nothing if the ring is empty.
  std::optional<T> TryPop();

  size_t capacity() const { return mask_ + 1; }

  // How many elements there are, more or less: exact only while nobody pushes or pops. For metrics.
  size_t SizeHint() const {
    const uint64_t popped = pop_position_.load(std::memory_order_relaxed);
    const uint64_t pushed = push_position_.load(std::memory_order_relaxed);
    return pushed > popped ? static_cast<size_t>(pushed - popped) : 0;
  }

 private:
  // Elements that are as good as bytes are kept as a Plain, which lets a checker see them; others in raw storage.
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
    // Whose turn it is at this cell: p for the push at position p, p + 1 for the pop at p, p + capacity for the next
    // push, and so on. Push and pop release it when they are done with the storage; it pairs with the acquire of
    // whoever comes next.
    typename Atomics::template Atomic<uint64_t> turn{0};
    std::conditional_t<kIsPlain, PlainStorage, RawStorage> storage;
  };

  explicit BoundedRing(size_t capacity) : mask_(capacity - 1), cells_(new Cell[capacity]) {
    for (size_t i = 0; i < capacity; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  const uint64_t mask_;
  const std::unique_ptr<Cell[]> cells_;

  // Where the next push and the next pop are. They only give out places, so they are relaxed: the cells' turns order
  // everything else. 64 bits do not wrap, so a position never comes back and a late compare-exchange cannot succeed by
  // mistake.
  alignas(64) typename Atomics::template Atomic<uint64_t> push_position_{0};
  alignas(64) typename Atomics::template Atomic<uint64_t> pop_position_{0};
};

// Only definitions from here on.

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
    if (ahead < 0) return false;  // The pop of one round ago has not been here.
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
    if (ahead < 0) return std::nullopt;  // The push has not been here.
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
