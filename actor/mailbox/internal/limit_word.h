// LimitWord: the atomic word of a bounded mailbox. It holds the number of counted messages, the
// generation of the actor, and whether a sender waits for room. MailboxLimits uses it to let
// senders and the receiver communicate without a lock.
//
// A sender calls Look, and TryCount while the word is for its actor and has room. If there is no
// room, it takes the mutex of MailboxLimits and calls CountOrWait; on kNone it joins the line. The
// receiver calls TakenOut for each message. If that returns true, it takes the mutex, lets in as
// many as CountWaiting returns, and calls StopWaiting if the line is empty.
//
// It is one word, so that no wake-up is lost. A sender joins the line by setting kWaiting on a word
// that has no room. The receiver learns in its subtraction whether a sender waits. All changes of
// one word have one order: if the sender's change is first, the receiver sees kWaiting; if the
// receiver's is first, the sender's compare-and-swap fails, and it looks again. With two words each
// side could miss the other. The word contains the generation, so a late sender never counts for
// another actor.
//
// Thread safety: any thread calls Look, HasRoom, TryCount and TakenOut. All other methods that
// change the word need the mutex.
#ifndef FRAKTOR_ACTOR_MAILBOX_INTERNAL_LIMIT_WORD_H_
#define FRAKTOR_ACTOR_MAILBOX_INTERNAL_LIMIT_WORD_H_

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>

#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::actor_internal {

template <typename Atomics = utils_internal::StdAtomics>
class BasicLimitWord {
 public:
  enum class Room : uint8_t { kCounted, kNone, kEnded };

  // depth | waiting | open | generation.
  static constexpr uint64_t kMaxDepth = (uint64_t{1} << 30) - 1;
  static_assert(MailboxOptions::kMaxCapacity + MailboxOptions::kMaxControlReserve < kMaxDepth,
                "messages of an actor to itself may go past the capacity");

  static uint64_t DepthOf(uint64_t word) { return word & kMaxDepth; }
  static bool IsOpen(uint64_t word) { return (word & kOpen) != 0; }
  static bool IsFor(uint64_t word, uint32_t generation) {
    return IsOpen(word) && word >> kGenerationShift == generation;
  }

  // Opens the closed word for the next actor. Counted messages stay counted. Only control messages
  // may use `control_reserve`, the room beyond the capacity.
  void Open(uint32_t generation, uint64_t capacity, OverflowNeeds needs, uint64_t control_reserve = 0) {
    rules_.store(control_reserve << kReserveShift | capacity << kNeedsBits | static_cast<uint64_t>(needs),
                 std::memory_order_relaxed);
    uint64_t word = word_.load(std::memory_order_relaxed);
    assert(!IsOpen(word));
    while (!word_.compare_exchange_weak(word, uint64_t{generation} << kGenerationShift | kOpen | DepthOf(word),
                                        std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  // Closes the word. Senders that have seen the open word fail to count, keep or wait from now on.
  void Close() { word_.fetch_and(~(kOpen | kWaiting), std::memory_order_relaxed); }

  // For senders.

  uint64_t Look() const { return word_.load(std::memory_order_acquire); }
  // Returns whether there is room for a message that must not overtake waiting ones. `word` comes
  // from Look or TryCount and is open.
  bool HasRoom(uint64_t word) const { return (word & kWaiting) == 0 && DepthOf(word) < capacity(); }
  // The same for a control message. It may overtake other messages that wait, but a caller without
  // the mutex cannot know whether a control message is among them.
  bool HasControlRoom(uint64_t word) const {
    return (word & kWaiting) == 0 && DepthOf(word) < capacity() + control_reserve();
  }
  // Counts a message if the word has not changed. Otherwise `word` becomes the present word, as
  // after another Look. Relaxed: the caller has seen the generation, and with it the rules, by
  // Look.
  bool TryCount(uint64_t& word) {
    return word_.compare_exchange_weak(word, word + 1, std::memory_order_relaxed, std::memory_order_relaxed);
  }

  // Needs the mutex. Counts a message if there is room and no message waits. Otherwise sets
  // kWaiting if `waits`. `overtakes` is for a control message while no control message waits: it
  // may use the reserve and overtake all others.
  Room CountOrWait(uint32_t generation, bool waits, bool overtakes = false) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      if (!IsFor(word, generation)) return Room::kEnded;
      const bool has_room = overtakes ? DepthOf(word) < capacity() + control_reserve() : HasRoom(word);
      const uint64_t otherwise = waits ? word | kWaiting : word;
      if (word_.compare_exchange_weak(word, has_room ? word + 1 : otherwise, std::memory_order_relaxed,
                                      std::memory_order_relaxed)) {
        return has_room ? Room::kCounted : Room::kNone;
      }
    }
  }
  // Needs the mutex. The line is empty.
  void StopWaiting() { word_.fetch_and(~kWaiting, std::memory_order_relaxed); }
  // Need the mutex. Change the count without looking at the capacity.
  void Add() { word_.fetch_add(1, std::memory_order_relaxed); }
  void Subtract(uint64_t messages) { word_.fetch_sub(messages, std::memory_order_relaxed); }

  // For the receiver.

  // A counted message has left. Returns true if senders in line may be let in.
  bool TakenOut() {
    const uint64_t before = word_.fetch_sub(1, std::memory_order_acquire);
    assert(DepthOf(before) > 0);
    return (before & kWaiting) != 0 && DepthOf(before) - 1 <= capacity() / 2;
  }
  // Needs the mutex. Counts as many of `in_line` messages as may be let in, and returns their
  // number. It is 0 unless half of the mailbox is empty. kWaiting stays set: other senders wait for
  // the mutex meanwhile.
  uint64_t CountWaiting(uint64_t in_line) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    uint64_t count = 0;
    do {
      if ((word & kWaiting) == 0 || DepthOf(word) > capacity() / 2) return 0;
      count = std::min(in_line, capacity() - DepthOf(word));
    } while (!word_.compare_exchange_weak(word, word + count, std::memory_order_relaxed, std::memory_order_relaxed));
    return count;
  }

  // The rules. The caller has the mutex, or has seen an open word by Look or TakenOut. If that
  // actor has ended, these may be the rules of a later one.
  uint64_t capacity() const {
    return rules_.load(std::memory_order_relaxed) >> kNeedsBits & ((uint64_t{1} << kCapacityBits) - 1);
  }
  uint64_t control_reserve() const { return rules_.load(std::memory_order_relaxed) >> kReserveShift; }
  OverflowNeeds needs() const {
    return static_cast<OverflowNeeds>(rules_.load(std::memory_order_relaxed) & ((1 << kNeedsBits) - 1));
  }
  // The result may be out of date at once.
  uint64_t depth() const { return DepthOf(word_.load(std::memory_order_relaxed)); }
  bool is_open() const { return IsOpen(word_.load(std::memory_order_relaxed)); }

 private:
  static constexpr uint64_t kWaiting = uint64_t{1} << 30;  // The line is not empty.
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static constexpr int kGenerationShift = 32;
  // reserve | capacity | needs.
  static constexpr int kNeedsBits = 8;
  static constexpr int kCapacityBits = 32;
  static constexpr int kReserveShift = kNeedsBits + kCapacityBits;

  // The release in Open pairs with the acquire in Look and TakenOut: a thread that has seen the
  // generation may read the rules. Everything else is relaxed, because the word guards no other
  // data. All changes are read-modify-writes, which continue the release sequence of Open.
  typename Atomics::template Atomic<uint64_t> word_{0};
  // Changes only while the word is closed. Relaxed: word_ orders it.
  typename Atomics::template Atomic<uint64_t> rules_{0};
};

using LimitWord = BasicLimitWord<>;

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MAILBOX_INTERNAL_LIMIT_WORD_H_
