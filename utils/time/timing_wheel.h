// TimingWheel: holds millions of timers. Arming and cancelling cost a few list operations,
// independent of the number of timers.
//
//   auto wheel = TimingWheel<std::string>::Make({.resolution = absl::Milliseconds(1), .start = clock.Now()}).value();
//   TimerId id = wheel->Insert(clock.Now() + absl::Seconds(5), "ask timed out").value();
//   wheel->Cancel(id);                                                            // true, once
//   wheel->Advance(clock.Now(), [](auto& due) { std::cout << due.payload; });     // fires the timers that are due
//   absl::Duration pause = wheel->NextDeadline() - clock.Now();
//
// The contract
// - A timer is never early, to the nanosecond: it fires in an Advance(now) with now >= its
//   deadline. It is late by less than one resolution plus the time until the owner calls Advance.
// - Timers fire in the order of their ticks, and within a tick in the order of insertion. A tick is
//   one resolution long; deadlines round up to a tick. A deadline in the past counts as the last
//   `now`. No order depends on an address or a hash, so a simulation that uses a wheel repeats
//   exactly.
// - Cancel returns true exactly once, and only if the timer has not fired. A periodic timer can be
//   cancelled while it fires: that firing goes on, and no other follows.
// - Advance fires the timers that were pending and due when it began. A timer that is armed during
//   an Advance waits for the next Advance, even without a delay, so a timer that arms itself again
//   cannot trap the caller. A clock that jumps far ahead costs one step per occupied slot, not one
//   per tick. A clock that goes back changes nothing.
// - A timer with the deadline InfiniteFuture is pending until it is cancelled, and never fires.
// - At most max_timers are pending; one more is rejected with ResourceExhausted. The wheel
//   allocates chunks of 1024 timers, reuses them, and frees them in its destructor, which drops the
//   pending timers without firing them.
//
// How it works: there are eleven levels of 64 slots. A timer is on the level of the highest six-bit
// digit in which its tick differs from the current tick. So all timers of one tick are always in
// one list, in order of insertion. A bit per slot and per level finds the next occupied slot with
// two instructions. When time enters a slot, the timers of the slot move to lower levels, at most
// once per level. Each slot also keeps a lower bound of its ticks, and its timers are distributed
// as seen from that tick: sparse timers skip the levels in between.
//
// The resolution trades lateness for work. Timers of one tick fire in one wake-up, and with a tick
// of 1 ms an hour is three levels deep instead of seven. 1 ms suits timeouts on a real clock, whose
// threads wake up about 50 us late anyway. With 1 ns every deadline is exact: that suits virtual
// time, where a wake-up costs nothing.
//
// Thread safety: none; the owner synchronizes. The wheel is re-entrant: it moves and destroys
// payloads only while it is consistent, so their destructors and the sink of Advance may call
// Insert and Cancel.
#ifndef FRAKTOR_UTILS_TIME_TIMING_WHEEL_H_
#define FRAKTOR_UTILS_TIME_TIMING_WHEEL_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0 {

// The moment from which a periodic timer counts its next period.
enum class Cadence : uint8_t {
  kFixedRate,   // from the previous deadline: first, first + period, first + 2 * period, ... Missed periods
                // become one firing that has their number.
  kFixedDelay,  // from the end of the previous firing: no period is ever missed
};

struct TimingWheelOptions {
  // From 1 ns to 1 hour. Deadlines round up to a multiple of it, counted from `start`.
  absl::Duration resolution = absl::Milliseconds(1);
  // From 1 to 2^28 - 1.
  int64_t max_timers = int64_t{1} << 22;
  // The first `now`.
  Instant start = Instant();
};

// Payload is any type whose move constructor does not throw. Tests set kGenerationBits, to see what
// happens when generations run out.
template <typename Payload, int kGenerationBits = 36>
class TimingWheel {
  static_assert(std::is_nothrow_move_constructible_v<Payload>);
  static_assert(kGenerationBits > 0 && kGenerationBits <= 36);

 public:
  // A timer that fires.
  struct Due {
    TimerId id;
    Instant deadline;      // as given to Insert; if periodic, the deadline of the first period that fires here
    uint64_t periods = 1;  // more than one if periods were missed
    bool periodic = false;
    Payload payload;
  };

  static absl::StatusOr<std::unique_ptr<TimingWheel>> Make(const TimingWheelOptions& options) {
    if (options.resolution < absl::Nanoseconds(1) || options.resolution > absl::Hours(1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("timing wheel: resolution is ", absl::FormatDuration(options.resolution), "; use 1ns to 1h"));
    }
    if (options.max_timers < 1 || options.max_timers > kMaxIndex) {
      return absl::InvalidArgumentError(
          absl::StrCat("timing wheel: max_timers is ", options.max_timers, "; use 1 to ", kMaxIndex));
    }
    return std::unique_ptr<TimingWheel>(new TimingWheel(options));
  }

  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;

  ~TimingWheel() {
    for (uint32_t index = 0; index < entries_; ++index) {
      Entry& entry = EntryAt(index);
      if (entry.state == State::kLinked) entry.payload.~Payload();
    }
  }

  // Arms a timer that fires once, with a payload made from `payload`. Returns ResourceExhausted if
  // max_timers are pending; `payload` is unchanged then.
  template <typename From>
  absl::StatusOr<TimerId> Insert(Instant deadline, From&& payload) {
    return Arm(deadline, 0, Cadence::kFixedRate, std::forward<From>(payload));
  }

  // Arms a timer that fires at `first` and then by `cadence`, until it is cancelled. Returns
  // InvalidArgument if the period is not positive. Fractions of a nanosecond round up. With an
  // infinite period the timer fires once and then stays pending. `payload` as in Insert.
  template <typename From>
  absl::StatusOr<TimerId> InsertPeriodic(Instant first, absl::Duration period, Cadence cadence, From&& payload) {
    if (period <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(
          absl::StrCat("timer: period is ", absl::FormatDuration(period), "; it must be positive"));
    }
    return Arm(first, (Instant() + period).nanoseconds(), cadence, std::forward<From>(payload));
  }

  // Returns true if the timer was pending: it does not fire (again). Returns false if it has fired,
  // was cancelled, or was never armed here.
  bool Cancel(TimerId id) {
    Entry* entry = Find(id);
    if (entry == nullptr) return false;
    if (entry->state == State::kTaken) return CancelTaken(*entry);
    Release(*entry);  // returns the payload, which is destroyed while the wheel is consistent
    return true;
  }

  // Like Cancel, for an owner that destroys the payload itself, for example outside its lock.
  // `cancelled` is the result of Cancel. A periodic timer that is firing has lent its payload to
  // the caller of TakeExpired, so the payload is not returned here.
  std::optional<Payload> Remove(TimerId id, bool& cancelled) {
    Entry* entry = Find(id);
    cancelled = entry != nullptr;
    if (!cancelled) return std::nullopt;
    if (entry->state == State::kTaken) {
      CancelTaken(*entry);
      return std::nullopt;
    }
    return Release(*entry);
  }

  // Fires the timers that are due at `now`: calls sink(Due&) for each, in order. Returns how many.
  // The sink must not call Advance.
  template <typename Sink>
  size_t Advance(Instant now, Sink&& sink) {
    size_t fired = 0;
    Expire(now);
    while (std::optional<Due> due = TakeExpired()) {
      ++fired;
      sink(*due);
      if (due->periodic) Rearm(*due, now);
    }
    return fired;
  }

  // Expire, TakeExpired and Rearm are the parts of Advance, for an owner that fires outside its
  // lock. Call Expire once, then TakeExpired until it returns nothing, and Rearm for each periodic
  // timer when its firing is over. Expired timers can be cancelled until they are taken.
  //
  // Expire moves time to `now`, and appends the timers that are due to the expired ones. Returns
  // whether there are expired timers.
  bool Expire(Instant now) {
    if (now > now_) now_ = now;
    const uint64_t target = std::max(FloorTick(now_), current_);
    while (occupied_levels_ != 0) {
      const int level = std::countr_zero(occupied_levels_);
      const int digit = std::countr_zero(occupied_slots_[level]);
      const uint64_t start = FirstTickOf(level, digit);
      if (start > target) break;
      Slot& slot = slots_[level * kSlotsPerLevel + digit];
      if (level == 0) {
        current_ = start;
        Splice(slot, expired_);
        MarkEmpty(level, digit);
      } else {
        current_ = std::min(slot.earliest, target);
        DealOut(slot, level, digit);
      }
    }
    current_ = target;
    return expired_.next != &expired_;
  }

  // Returns the next expired timer, if there is one. The payload of a periodic timer is lent:
  // return it with Rearm.
  std::optional<Due> TakeExpired() {
    if (expired_.next == &expired_) return std::nullopt;
    Entry& entry = *static_cast<Entry*>(expired_.next);
    const TimerId id = IdOf(entry);
    const Instant deadline = entry.deadline;
    if (entry.period_ns == 0) {
      return Due{.id = id, .deadline = deadline, .periods = 1, .periodic = false, .payload = Release(entry)};
    }
    Unlink(entry);
    entry.state = State::kTaken;
    uint64_t periods = 1;
    if (entry.cadence == Cadence::kFixedRate) {
      if (now_ > deadline) {
        periods += (static_cast<uint64_t>(now_.nanoseconds()) - static_cast<uint64_t>(deadline.nanoseconds())) /
                   static_cast<uint64_t>(entry.period_ns);
      }
      entry.deadline = Later(deadline, periods, entry.period_ns);
    }
    Payload payload = std::move(entry.payload);
    entry.payload.~Payload();
    return Due{.id = id, .deadline = deadline, .periods = periods, .periodic = true, .payload = std::move(payload)};
  }

  // Ends the firing of a periodic timer at `now`. Arms its next period, takes the payload from
  // `due` and returns true. Returns false if the timer was cancelled meanwhile or is not periodic;
  // the payload stays with the caller.
  bool Rearm(Due& due, Instant now) {
    Entry* entry = EntryOf(due.id);
    if (entry == nullptr) return false;
    if (entry->state == State::kTakenAndCancelled) Free(*entry);
    if (entry->state != State::kTaken) return false;
    if (entry->cadence == Cadence::kFixedDelay) entry->deadline = Later(std::max(now, now_), 1, entry->period_ns);
    new (&entry->payload) Payload(std::move(due.payload));
    entry->state = State::kLinked;
    entry->tick = CeilTick(entry->deadline);
    Place(*entry);
    return true;
  }

  // When to call Advance next: the earliest pending deadline, rounded up to its tick. It may be
  // earlier if the earliest timer was cancelled; an Advance at that time fires nothing and makes
  // the value exact. A time in the past if there are expired timers to take. InfiniteFuture if no
  // timer is pending.
  Instant NextDeadline() const {
    if (expired_.next != &expired_) return now_;
    if (occupied_levels_ == 0) return Instant::InfiniteFuture();
    const int level = std::countr_zero(occupied_levels_);
    const int digit = std::countr_zero(occupied_slots_[level]);
    return TickToInstant(slots_[level * kSlotsPerLevel + digit].earliest);
  }

  // The number of armed timers: waiting ones, expired ones that are not taken, and periodic ones
  // that are firing.
  size_t pending() const { return pending_; }

  // The latest time that Advance or Expire received.
  Instant now() const { return now_; }

 private:
  static constexpr int kDigitBits = 6;
  static constexpr int kSlotsPerLevel = 1 << kDigitBits;
  static constexpr int kLevels = (64 + kDigitBits - 1) / kDigitBits;
  static constexpr int kWheelSlots = kLevels * kSlotsPerLevel;
  static constexpr int kIndexBits = 28;
  static constexpr int64_t kMaxIndex = (int64_t{1} << kIndexBits) - 1;
  static constexpr int kChunkBits = 10;
  static constexpr uint64_t kNeverTick = ~uint64_t{0};

  enum class State : uint8_t {
    kFree,
    kLinked,             // in a slot, in expired_ or in never_; the payload exists
    kTaken,              // periodic and firing; the payload is lent
    kTakenAndCancelled,  // like kTaken, and Cancel has returned true
  };

  // Lists are circular and have the slot as sentinel, so a timer leaves its list without a search.
  struct Link {
    Link* previous = this;
    Link* next = this;
  };
  struct Slot : Link {
    uint64_t earliest = 0;  // no timer in the slot has an earlier tick; meaningless while the slot is empty
  };
  struct Entry : Link {
    Entry() {}   // NOLINT(modernize-use-equals-default): the union has no default
    ~Entry() {}  // NOLINT(modernize-use-equals-default): `state` tells whether the payload exists

    uint64_t tick = 0;
    Instant deadline;
    int64_t period_ns = 0;  // 0: fires once
    uint64_t generation = 1;
    uint32_t index = 0;
    State state = State::kFree;
    Cadence cadence = Cadence::kFixedRate;
    union {
      Payload payload;
    };
  };

  explicit TimingWheel(const TimingWheelOptions& options)
      : resolution_ns_(static_cast<uint64_t>((Instant() + options.resolution).nanoseconds())),
        max_timers_(static_cast<size_t>(options.max_timers)),
        start_(options.start),
        now_(options.start) {}

  // --- ticks ---

  uint64_t SinceStart(Instant instant) const {
    return static_cast<uint64_t>(instant.nanoseconds()) - static_cast<uint64_t>(start_.nanoseconds());
  }
  uint64_t FloorTick(Instant instant) const { return instant <= start_ ? 0 : SinceStart(instant) / resolution_ns_; }
  uint64_t CeilTick(Instant instant) const {
    if (instant <= start_) return 0;
    if (instant == Instant::InfiniteFuture()) return kNeverTick;
    return (SinceStart(instant) - 1) / resolution_ns_ + 1;
  }
  Instant TickToInstant(uint64_t tick) const {
    uint64_t since_start;
    int64_t sum;
    if (__builtin_mul_overflow(tick, resolution_ns_, &since_start) ||
        __builtin_add_overflow(start_.nanoseconds(), since_start, &sum)) {
      return Instant::InfiniteFuture();
    }
    return Instant::FromNanoseconds(sum);
  }
  static Instant Later(Instant instant, uint64_t periods, int64_t period_ns) {
    uint64_t distance;
    int64_t sum;
    if (__builtin_mul_overflow(periods, static_cast<uint64_t>(period_ns), &distance) ||
        __builtin_add_overflow(instant.nanoseconds(), distance, &sum)) {
      return Instant::InfiniteFuture();
    }
    return Instant::FromNanoseconds(sum);
  }

  // --- slots ---

  // The first tick of a slot that lies ahead of the current tick on its level.
  uint64_t FirstTickOf(int level, int digit) const {
    const int shift = level * kDigitBits;
    const int above = shift + kDigitBits;
    const uint64_t prefix = above >= 64 ? 0 : current_ >> above << above;
    return prefix | static_cast<uint64_t>(digit) << shift;
  }

  void MarkEmpty(int level, int digit) {
    occupied_slots_[level] &= ~(uint64_t{1} << digit);
    if (occupied_slots_[level] == 0) occupied_levels_ &= ~(uint32_t{1} << level);
  }

  static void Append(Link& list, Link& link) {
    link.previous = list.previous;
    link.next = &list;
    list.previous->next = &link;
    list.previous = &link;
  }

  // Appends the list `from`, which is not empty, to the list `to`.
  static void Splice(Link& from, Link& to) {
    from.next->previous = to.previous;
    from.previous->next = &to;
    to.previous->next = from.next;
    to.previous = from.previous;
    from.next = from.previous = &from;
  }

  void Place(Entry& entry) {
    if (entry.tick == kNeverTick) {
      Append(never_, entry);
      return;
    }
    if (entry.tick < current_) entry.tick = current_;
    const int level = (63 - std::countl_zero((entry.tick ^ current_) | 1)) / kDigitBits;
    const int digit = static_cast<int>(entry.tick >> (level * kDigitBits)) & (kSlotsPerLevel - 1);
    Slot& slot = slots_[level * kSlotsPerLevel + digit];
    if (slot.next == &slot) {
      slot.earliest = entry.tick;
      occupied_slots_[level] |= uint64_t{1} << digit;
      occupied_levels_ |= uint32_t{1} << level;
    } else if (entry.tick < slot.earliest) {
      slot.earliest = entry.tick;
    }
    Append(slot, entry);
  }

  void DealOut(Slot& slot, int level, int digit) {
    Link* link = slot.next;
    slot.next = slot.previous = &slot;
    MarkEmpty(level, digit);
    while (link != &slot) {
      Link* next = link->next;
      Place(*static_cast<Entry*>(link));
      link = next;
    }
  }

  void Unlink(Entry& entry) {
    entry.previous->next = entry.next;
    entry.next->previous = entry.previous;
    if (entry.previous != entry.next) return;
    // The list is empty now. The sentinels of expired_ and never_ lie after the wheel's slots and
    // have no bit.
    const ptrdiff_t index = static_cast<Slot*>(entry.previous) - slots_;
    if (index < kWheelSlots) {
      MarkEmpty(static_cast<int>(index / kSlotsPerLevel), static_cast<int>(index % kSlotsPerLevel));
    }
  }

  // --- entries ---

  Entry& EntryAt(uint32_t index) { return chunks_[index >> kChunkBits][index & ((1u << kChunkBits) - 1)]; }
  static TimerId IdOf(const Entry& entry) { return TimerId{entry.generation << kIndexBits | entry.index}; }

  // The entry with that index and generation, in any state.
  Entry* EntryOf(TimerId id) {
    const uint32_t index = static_cast<uint32_t>(id.value & ((uint64_t{1} << kIndexBits) - 1));
    if (index >= entries_) return nullptr;
    Entry& entry = EntryAt(index);
    return entry.generation == id.value >> kIndexBits ? &entry : nullptr;
  }

  // The same, if the timer can be cancelled.
  Entry* Find(TimerId id) {
    Entry* entry = EntryOf(id);
    if (entry == nullptr || entry->state == State::kFree || entry->state == State::kTakenAndCancelled) return nullptr;
    return entry;
  }

  bool Grow() {
    if (entries_ > kMaxIndex - (1 << kChunkBits)) return false;
    chunks_.push_back(std::make_unique<Entry[]>(size_t{1} << kChunkBits));
    const uint32_t first = entries_;
    entries_ += 1u << kChunkBits;
    for (uint32_t index = entries_; index-- > first;) {
      Entry& entry = EntryAt(index);
      entry.index = index;
      entry.next = free_;
      free_ = &entry;
    }
    return true;
  }

  template <typename From>
  absl::StatusOr<TimerId> Arm(Instant deadline, int64_t period_ns, Cadence cadence, From&& payload) {
    if (pending_ >= max_timers_ || (free_ == nullptr && !Grow())) return Exhausted();
    Entry& entry = *static_cast<Entry*>(free_);
    new (&entry.payload) Payload(std::forward<From>(payload));  // if this throws, nothing has changed
    free_ = entry.next;
    ++pending_;
    entry.deadline = deadline;
    entry.period_ns = period_ns;
    entry.cadence = cadence;
    entry.state = State::kLinked;
    entry.tick = CeilTick(deadline);
    Place(entry);
    return IdOf(entry);
  }

  // Takes a linked timer out of the wheel and returns its payload.
  Payload Release(Entry& entry) {
    Unlink(entry);
    Payload payload = std::move(entry.payload);
    entry.payload.~Payload();
    --pending_;
    Free(entry);
    return payload;
  }

  bool CancelTaken(Entry& entry) {
    entry.state = State::kTakenAndCancelled;
    --pending_;
    return true;
  }

  void Free(Entry& entry) {
    entry.state = State::kFree;
    // An entry whose generations have run out is never used again, so no id is ever issued twice.
    if (++entry.generation >> kGenerationBits != 0) return;
    entry.next = free_;
    free_ = &entry;
  }

  absl::Status Exhausted() const {
    return absl::ResourceExhaustedError(absl::StrCat("timing wheel: ", pending_,
                                                     " timers are pending and the limit is ", max_timers_,
                                                     "; cancel timers that are not needed or raise max_timers"));
  }

  const uint64_t resolution_ns_;
  const size_t max_timers_;
  const Instant start_;
  Instant now_;
  uint64_t current_ = 0;  // all earlier ticks have expired
  size_t pending_ = 0;

  uint32_t occupied_levels_ = 0;           // a bit per level that has an occupied slot
  uint64_t occupied_slots_[kLevels] = {};  // a bit per slot
  Slot slots_[kWheelSlots + 2];            // and the two lists below, which are not slots of the wheel
  Slot& expired_ = slots_[kWheelSlots];    // due and not yet taken
  Slot& never_ = slots_[kWheelSlots + 1];  // with the deadline InfiniteFuture
  Link* free_ = nullptr;                   // linked by `next`
  uint32_t entries_ = 0;
  std::vector<std::unique_ptr<Entry[]>> chunks_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TIME_TIMING_WHEEL_H_
