// How many messages a bounded mailbox has counted, for which actor, under which rules, and whether anybody waits for
// room: what senders and the receiver of a MailboxLimits tell each other without a lock.
//
//   uint64_t word = limit.Look();                                         // a sender
//   while (LimitWord::IsFor(word, generation) && limit.HasRoom(word)) {
//     if (limit.TryCount(word)) return Push();
//   }
//   MutexLock lock(mutex);
//   if (limit.CountOrWait(generation, true) == LimitWord::Room::kNone) line.push_back(me);
//
//   if (limit.TakenOut()) {                                               // the receiver
//     MutexLock lock(mutex);
//     LetIn(limit.CountWaiting(line.size()));
//     if (line.empty()) limit.StopWaiting();
//   }
//
// One word, so that no wake-up is lost. A sender goes in line by setting kWaiting on a word that has no room; the
// receiver finds out in the subtraction itself whether somebody waits. All changes of one word have one order: if the
// sender's comes first, the receiver sees kWaiting; if the receiver's does, the sender's compare-and-swap fails, and it
// looks again. With a count and a flag apart, each could miss the other. As the generation is in it, a sender that was
// late never counts for another actor.
//
// Thread safety: Look, HasRoom, TryCount and TakenOut from any thread; what changes the word otherwise, with a mutex.
#ifndef FRAKTOR_ACTOR_MAILBOX_LIMIT_WORD_H_
#define FRAKTOR_ACTOR_MAILBOX_LIMIT_WORD_H_

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>

#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

template <typename Atomics = StdAtomics>
class BasicLimitWord {
 public:
  enum class Room : uint8_t { kCounted, kNone, kEnded };

  // depth | waiting | open | generation.
  static constexpr uint64_t kMaxDepth = (uint64_t{1} << 30) - 1;
  static_assert(MailboxOptions::kMaxCapacity + MailboxOptions::kMaxControlReserve < kMaxDepth,
                "what an actor sends to itself may go past the capacity");

  static uint64_t DepthOf(uint64_t word) { return word & kMaxDepth; }
  static bool IsOpen(uint64_t word) { return (word & kOpen) != 0; }
  static bool IsFor(uint64_t word, uint32_t generation) {
    return IsOpen(word) && word >> kGenerationShift == generation;
  }

  // For the next actor, while it is closed. Counted messages stay counted. `control_reserve` is the
  // room beyond the capacity that control messages alone may use.
  void Open(uint32_t generation, uint64_t capacity, OverflowNeeds needs, uint64_t control_reserve = 0) {
    rules_.store(control_reserve << kReserveShift | capacity << kNeedsBits | static_cast<uint64_t>(needs),
                 std::memory_order_relaxed);
    uint64_t word = word_.load(std::memory_order_relaxed);
    assert(!IsOpen(word));
    while (!word_.compare_exchange_weak(word, uint64_t{generation} << kGenerationShift | kOpen | DepthOf(word),
                                        std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  // From here on no sender finds the word that it has seen: none counts, keeps or waits any more.
  void Close() { word_.fetch_and(~(kOpen | kWaiting), std::memory_order_relaxed); }

  // For senders.

  uint64_t Look() const { return word_.load(std::memory_order_acquire); }
  // Whether a word of Look or TryCount that is open has room for a message that must not overtake those that wait.
  bool HasRoom(uint64_t word) const { return (word & kWaiting) == 0 && DepthOf(word) < capacity(); }
  // The same for a control message. It may overtake others that wait, but only the mutex tells
  // whether a control message is among them.
  bool HasControlRoom(uint64_t word) const {
    return (word & kWaiting) == 0 && DepthOf(word) < capacity() + control_reserve();
  }
  // Counts a message if the word is still the same; otherwise it is as after another Look. Who goes on has seen the
  // same generation by Look, and with it the rules.
  bool TryCount(uint64_t& word) {
    return word_.compare_exchange_weak(word, word + 1, std::memory_order_relaxed, std::memory_order_relaxed);
  }

  // With the mutex. Counts a message if there is room and no message waits. Otherwise `waits`
  // decides whether the word says from now on that one does. `overtakes` is for a control message
  // while no control message waits: it may use the reserve, past all others.
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
  // With the mutex: nobody is in line any more.
  void StopWaiting() { word_.fetch_and(~kWaiting, std::memory_order_relaxed); }
  // With the mutex: one more, or so many less, whatever the capacity says.
  void Add() { word_.fetch_add(1, std::memory_order_relaxed); }
  void Subtract(uint64_t messages) { word_.fetch_sub(messages, std::memory_order_relaxed); }

  // For the receiver.

  // A counted message has left. True if somebody may be let in.
  bool TakenOut() {
    const uint64_t before = word_.fetch_sub(1, std::memory_order_acquire);
    assert(DepthOf(before) > 0);
    return (before & kWaiting) != 0 && DepthOf(before) - 1 <= capacity() / 2;
  }
  // With the mutex: counts for as many of `in_line` as may be let in, and says how many they are. None unless half of
  // the mailbox is empty. kWaiting stays: who sends meanwhile waits for the mutex.
  uint64_t CountWaiting(uint64_t in_line) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    uint64_t count = 0;
    do {
      if ((word & kWaiting) == 0 || DepthOf(word) > capacity() / 2) return 0;
      count = std::min(in_line, capacity() - DepthOf(word));
    } while (!word_.compare_exchange_weak(word, word + count, std::memory_order_relaxed, std::memory_order_relaxed));
    return count;
  }

  // With the mutex, or of an actor whose open word was seen by Look or TakenOut. Of a later one if that has ended.
  uint64_t capacity() const {
    return rules_.load(std::memory_order_relaxed) >> kNeedsBits & ((uint64_t{1} << kCapacityBits) - 1);
  }
  uint64_t control_reserve() const { return rules_.load(std::memory_order_relaxed) >> kReserveShift; }
  OverflowNeeds needs() const {
    return static_cast<OverflowNeeds>(rules_.load(std::memory_order_relaxed) & ((1 << kNeedsBits) - 1));
  }
  // What was true a moment ago.
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

  // Relaxed, as it guards no data, but for the rules: Open releases them with the generation, and who has seen the
  // generation with acquire may read them. All changes are read-modify-writes, so that the release reaches past them.
  typename Atomics::template Atomic<uint64_t> word_{0};
  // Changes only while the word is closed. Relaxed; ordered by word_.
  typename Atomics::template Atomic<uint64_t> rules_{0};
};

using LimitWord = BasicLimitWord<>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_LIMIT_WORD_H_
