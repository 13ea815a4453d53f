// PromiseSlot: the memory of a reply promise: one cache line that belongs to the process. Promises
// use a slot one after the other. A promise is the sender of the message of an ask (see
// reply_promise.h).
//
// Promises have a table of their own, so the memory of a PromiseSlot is never that of an actor: a
// stale reference to an actor never leads to a promise, nor one to a promise to an actor.
//
// Any thread may read the generation. A thread that replies makes it stale (TryDeactivate), and
// does not touch the slot afterwards. Any thread may read asker(), target(), answering() and
// deadline_ns() if it checks the generation afterwards, since another promise may take the slot
// meanwhile. The release stores of Fill pair with the acquire loads, so a reader of a later
// promise's field sees a later generation too. The completion and the links belong to the turn of
// the asker, which frees the slot.
#ifndef FRAKTOR_ACTOR_SLOT_INTERNAL_PROMISE_SLOT_H_
#define FRAKTOR_ACTOR_SLOT_INTERNAL_PROMISE_SLOT_H_

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor::inline v0 {

namespace actor_internal {

class AskCompletion;

// A promise in 8 bytes: the number of its slot, and the generation.
struct alignas(8) PackedPromise {
  uint32_t slot = UINT32_MAX;
  uint32_t generation = 0;

  bool IsNoOne() const { return generation == 0; }
};

class alignas(64) PromiseSlot final : public utils_internal::TableSlot {
 public:
  // In `answering().slot`: the asker handles other messages while it waits.
  static constexpr uint32_t kFree = UINT32_MAX - 1;

  // The target of the ask: for texts, and for the search for circles of asks.
  struct Target {
    utils_internal::TableSlot* slot = nullptr;  // Null if that is no one, or a promise.
    uint32_t low_word = 0;   // The lower half of the reference's word: the generation of an actor of this process.
    bool is_remote = false;  // The slot is a RemoteSlot; otherwise an ActorSlot.
  };

  // Called by the thread that opens the promise, before the promise is activated. `answering` is
  // the ask that the asker handles now, if it can reply only after this one.
  [[gnu::always_inline]] void Fill(ActorRef asker, ActorRef target, PackedPromise answering, int64_t deadline_ns) {
    asker_.store(asker.any_slot(), std::memory_order_release);
    asker_generation_.store(asker.generation(), std::memory_order_release);
    // A promise has no mailbox: it is no one here.
    const bool is_promise = target.IsPromise();
    target_.store(is_promise ? 0 : reinterpret_cast<uintptr_t>(target.any_slot()) | (target.IsRemote() ? kIsRemote : 0),
                  std::memory_order_release);
    target_low_word_.store(is_promise ? 0 : static_cast<uint32_t>(target.word()), std::memory_order_release);
    answering_.store(std::bit_cast<uint64_t>(answering), std::memory_order_release);
    deadline_ns_.store(deadline_ns, std::memory_order_release);
  }

  // The asker, without the flags of its references.
  ActorRef asker() const {
    utils_internal::TableSlot* const slot = asker_.load(std::memory_order_acquire);
    return ActorRef(slot, asker_generation_.load(std::memory_order_acquire));
  }
  Target target() const {
    const uintptr_t slot = target_.load(std::memory_order_acquire);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a tagged pointer
    return {.slot = reinterpret_cast<utils_internal::TableSlot*>(slot & ~kIsRemote),
            .low_word = target_low_word_.load(std::memory_order_acquire),
            .is_remote = (slot & kIsRemote) != 0};
  }
  PackedPromise answering() const { return std::bit_cast<PackedPromise>(answering_.load(std::memory_order_acquire)); }
  int64_t deadline_ns() const { return deadline_ns_.load(std::memory_order_acquire); }

 private:
  // In `target_`, whose other bits are an address: the slot is a RemoteSlot.
  static constexpr uintptr_t kIsRemote = 1;

  // The atomics pair with themselves: see the top.
  std::atomic<uint32_t> asker_generation_{0};
  std::atomic<utils_internal::TableSlot*> asker_{nullptr};
  std::atomic<uintptr_t> target_{0};
  std::atomic<uint64_t> answering_{0};
  std::atomic<int64_t> deadline_ns_{0};
  std::atomic<uint32_t> target_low_word_{0};

 public:
  // The links to other asks of the asker, by the numbers of their slots: see open_asks.h.
  uint32_t previous = 0;
  uint32_t next = 0;
  uint32_t child = 0;
  // Takes the reply or the error. Null: the asker gets it by OnReply.
  AskCompletion* completion = nullptr;
};

static_assert(sizeof(PromiseSlot) == 64);

// Smaller chunks than those of actors: most systems have few asks open at a time.
inline constexpr size_t kPromiseChunkBytes = size_t{1} << 16;
using PromiseSlotTable = utils_internal::SlotTable<PromiseSlot, kPromiseChunkBytes>;
using PromiseSlotPool = utils_internal::SlotPool<PromiseSlot, kPromiseChunkBytes>;

// All promises of the process.
PromiseSlotTable& ProcessPromises();

}  // namespace actor_internal

inline actor_internal::PromiseSlot* ActorRef::promise_slot() const {
  assert(IsPromise());
  return static_cast<actor_internal::PromiseSlot*>(slot_);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SLOT_INTERNAL_PROMISE_SLOT_H_
