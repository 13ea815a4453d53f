#include "fraktor/actor/mailbox/mailbox_limits.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Longer waits have no end: the sum with the clock's time could overflow.
constexpr absl::Duration kForEver = absl::Hours(24 * 365);

void Count(std::atomic<uint64_t>& sum, uint64_t by = 1) { sum.fetch_add(by, std::memory_order_relaxed); }

absl::Status EndedError(const Envelope& envelope) {
  return absl::UnavailableError(absl::StrCat("the actor ended before its full mailbox had room for a ",
                                             ToAbsl(envelope.type()->name()), "; look the actor up again"));
}

}  // namespace

struct MailboxLimits::BlockedThread {
  enum class State : uint8_t { kInLine, kLetIn, kEnded };

  // Called with the mutex held: the thread cannot leave with the condition variable meanwhile.
  void Answer(State answer) {
    state = answer;
    answered.notify_one();
  }

  State state = State::kInLine;
  std::condition_variable_any answered;
};

MailboxLimits::~MailboxLimits() {
  MutexLock lock(mutex_);
  assert(line_.empty() && kept_.empty());
}

void MailboxLimits::Configure(uint32_t generation, const MailboxOptions& options) {
  assert(options.Validate().ok() && options.bounded());
  MutexLock lock(mutex_);
  assert((word_.load(std::memory_order_relaxed) & kOpen) == 0);
  assert(line_.empty() && kept_.empty());
  push_timeout_ = options.push_timeout;
  rules_.store(RulesOf(options), std::memory_order_relaxed);
  uint64_t word = word_.load(std::memory_order_relaxed);
  while (!word_.compare_exchange_weak(word, uint64_t{generation} << kGenerationShift | kOpen | DepthOf(word),
                                      std::memory_order_release, std::memory_order_relaxed)) {
  }
}

Admission MailboxLimits::Admit(Envelope* envelope, ActorRef sender, Producer producer) {
  uint64_t word = word_.load(std::memory_order_acquire);
  for (;;) {
    if (!IsFor(word, *envelope)) return {.kind = AdmissionKind::kEnded};
    const uint64_t rules = rules_.load(std::memory_order_relaxed);
    const OverflowStrategy strategy = StrategyOf(rules);
    if (strategy == OverflowStrategy::kDropOldest) return Keep(envelope);
    const bool exempt = producer == Producer::kSelf && strategy == OverflowStrategy::kBlockProducer;
    const bool has_room =
        exempt ? DepthOf(word) < kMaxDepth : DepthOf(word) < CapacityOf(rules) && (word & kWaiting) == 0;
    if (has_room) {
      if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire, std::memory_order_acquire)) {
        return {.kind = AdmissionKind::kPush};
      }
      continue;
    }
    switch (strategy) {
      case OverflowStrategy::kDropOldest:
        break;  // Seen to above.
      case OverflowStrategy::kBlockProducer:
        return Hold(envelope, sender, producer);
      case OverflowStrategy::kDropNewest:
        Count(dropped_newest_);
        return {.kind = AdmissionKind::kDropped};
      case OverflowStrategy::kReject:
        break;
      case OverflowStrategy::kDeadLetter:
        Count(dead_lettered_);
        return {.kind = AdmissionKind::kDeadLetter};
    }
    Count(rejected_);
    return {.kind = AdmissionKind::kRejected};
  }
}

Admission MailboxLimits::Keep(Envelope* envelope) {
  Admission admission{.kind = AdmissionKind::kKept};
  MutexLock lock(mutex_);
  if (!IsFor(word_.load(std::memory_order_relaxed), *envelope)) return {.kind = AdmissionKind::kEnded};
  if (kept_size_ == CapacityOf(rules_.load(std::memory_order_relaxed))) {
    admission.victim = kept_.PopFront();
    Count(dropped_oldest_);
  } else {
    ++kept_size_;
    word_.fetch_add(1, std::memory_order_relaxed);
  }
  kept_.PushBack(envelope);
  admission.ring = !std::exchange(bell_rings_, true);
  return admission;
}

Admission MailboxLimits::Hold(Envelope* envelope, ActorRef sender, Producer producer) {
  const bool can_be_suspended = producer == Producer::kActor && !sender.IsNoOne();
  std::list<Place> place;
  if (can_be_suspended) place.push_back({.envelope = envelope, .sender = sender});

  MutexLock lock(mutex_);
  const bool waits = push_timeout_ > absl::ZeroDuration();
  const bool may_join = can_be_suspended && waits && held_ < CapacityOf(rules_.load(std::memory_order_relaxed));
  // Before anything changes, since it may throw.
  if (may_join) held_of_.try_emplace(sender, 0);
  const Room room = CountOr(may_join ? kWaiting : 0, *envelope);
  if (may_join && room == Room::kNone) {
    line_.splice(line_.end(), place);
    ++held_;
    const bool first = ++held_of_[sender] == 1;
    Count(held_sum_);
    return {.kind = AdmissionKind::kHeld, .first = first, .push_timeout = push_timeout_};
  }
  if (may_join && held_of_[sender] == 0) held_of_.erase(sender);
  if (room == Room::kCounted) return {.kind = AdmissionKind::kPush};
  if (room == Room::kEnded) return {.kind = AdmissionKind::kEnded};
  if (!waits) {
    Count(timed_out_);
    return {.kind = AdmissionKind::kTimedOut};
  }
  if (producer == Producer::kForeignThread) return {.kind = AdmissionKind::kWouldBlock, .push_timeout = push_timeout_};
  Count(rejected_);
  return {.kind = AdmissionKind::kRejected};
}

absl::Status MailboxLimits::AwaitRoom(const Envelope& envelope, absl::Duration timeout) {
  using State = BlockedThread::State;
  const bool waits = timeout > absl::ZeroDuration();
  BlockedThread thread;
  std::list<Place> place;
  place.push_back({.thread = &thread});
  const auto mine = place.begin();

  MutexLock lock(mutex_);
  switch (CountOr(waits ? kWaiting : 0, envelope)) {
    case Room::kCounted:
      return absl::OkStatus();
    case Room::kEnded:
      return EndedError(envelope);
    case Room::kNone:
      break;
  }
  if (waits) {
    line_.splice(line_.end(), place);
    Count(blocked_);
    const auto is_answered = [&] {
      mutex_.AssertHeld();
      return thread.state != State::kInLine;
    };
    if (timeout >= kForEver) {
      thread.answered.wait(lock, is_answered);
    } else {
      thread.answered.wait_for(lock, absl::ToChronoNanoseconds(timeout), is_answered);
    }
    if (thread.state == State::kLetIn) return absl::OkStatus();
    if (thread.state == State::kEnded) return EndedError(envelope);
    line_.erase(mine);
    StopWaitingIfLineIsEmpty();
  }
  Count(timed_out_);
  return absl::DeadlineExceededError(
      absl::StrCat("a mailbox of ", CapacityOf(rules_.load(std::memory_order_relaxed)), " had no room for a ",
                   ToAbsl(envelope.type()->name()), " within ", absl::FormatDuration(timeout),
                   "; send less, or give it a larger MailboxOptions.capacity or push_timeout"));
}

EnvelopeList MailboxLimits::TimeOut(ActorRef sender) {
  EnvelopeList late;
  MutexLock lock(mutex_);
  if (held_of_.erase(sender) == 0) return late;
  uint64_t count = 0;
  for (auto place = line_.begin(); place != line_.end();) {
    if (place->envelope == nullptr || place->sender != sender) {
      ++place;
      continue;
    }
    late.PushBack(place->envelope);
    place = line_.erase(place);
    ++count;
  }
  held_ -= count;
  Count(timed_out_, count);
  StopWaitingIfLineIsEmpty();
  return late;
}

std::vector<ActorRef> MailboxLimits::Readmit(absl::FunctionRef<void(EnvelopeList)> push) {
  std::vector<ActorRef> resume;
  MutexLock lock(mutex_);
  const uint64_t rules = rules_.load(std::memory_order_relaxed);
  uint64_t word = word_.load(std::memory_order_relaxed);
  uint64_t count = 0;
  do {
    if ((word & kWaiting) == 0 || DepthOf(word) > HalfOf(rules)) return resume;
    count = std::min<uint64_t>(line_.size(), CapacityOf(rules) - DepthOf(word));
    resume.reserve(count);
    // kWaiting stays until they are pushed: who sends meanwhile comes here and waits for the mutex.
  } while (!word_.compare_exchange_weak(word, word + count, std::memory_order_relaxed, std::memory_order_relaxed));
  EnvelopeList let_in;
  for (; count > 0; --count) {
    const Place place = line_.front();
    line_.pop_front();
    if (place.thread != nullptr) {
      place.thread->Answer(BlockedThread::State::kLetIn);
      continue;
    }
    let_in.PushBack(place.envelope);
    if (ForgetHeld(place.sender)) resume.push_back(place.sender);
  }
  if (!let_in.empty()) push(let_in);
  StopWaitingIfLineIsEmpty();
  return resume;
}

Envelope* MailboxLimits::TakeKept(bool* more) {
  MutexLock lock(mutex_);
  Envelope* const envelope = kept_.PopFront();
  if (envelope != nullptr) {
    --kept_size_;
    word_.fetch_sub(1, std::memory_order_relaxed);
  }
  bell_rings_ = !kept_.empty();
  *more = bell_rings_;
  return envelope;
}

Leftovers MailboxLimits::Close() {
  Leftovers left;
  MutexLock lock(mutex_);
  left.resume.reserve(held_of_.size());
  // From here on no sender finds the word that it has seen: none counts, keeps or waits any more.
  word_.fetch_and(~(kOpen | kWaiting), std::memory_order_relaxed);
  word_.fetch_sub(kept_size_, std::memory_order_relaxed);
  left.dead_letters = std::exchange(kept_, {});
  left.kept = std::exchange(kept_size_, 0);
  bell_rings_ = false;
  while (!line_.empty()) {
    const Place place = line_.front();
    line_.pop_front();
    if (place.thread != nullptr) {
      place.thread->Answer(BlockedThread::State::kEnded);
      continue;
    }
    left.dead_letters.PushBack(place.envelope);
    if (ForgetHeld(place.sender)) left.resume.push_back(place.sender);
  }
  return left;
}

MailboxCounters MailboxLimits::counters() const {
  return {.dropped_oldest = dropped_oldest_.load(std::memory_order_relaxed),
          .dropped_newest = dropped_newest_.load(std::memory_order_relaxed),
          .rejected = rejected_.load(std::memory_order_relaxed),
          .dead_lettered = dead_lettered_.load(std::memory_order_relaxed),
          .held = held_sum_.load(std::memory_order_relaxed),
          .blocked = blocked_.load(std::memory_order_relaxed),
          .timed_out = timed_out_.load(std::memory_order_relaxed),
          .depth = depth()};
}

MailboxLimits::Room MailboxLimits::CountOr(uint64_t flag, const Envelope& envelope) {
  const uint64_t capacity = CapacityOf(rules_.load(std::memory_order_relaxed));
  uint64_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    if (!IsFor(word, envelope)) return Room::kEnded;
    const bool has_room = (word & kWaiting) == 0 && DepthOf(word) < capacity;
    if (word_.compare_exchange_weak(word, has_room ? word + 1 : word | flag, std::memory_order_relaxed,
                                    std::memory_order_relaxed)) {
      return has_room ? Room::kCounted : Room::kNone;
    }
  }
}

void MailboxLimits::StopWaitingIfLineIsEmpty() {
  if (line_.empty()) word_.fetch_and(~kWaiting, std::memory_order_relaxed);
}

bool MailboxLimits::ForgetHeld(ActorRef sender) {
  --held_;
  const auto found = held_of_.find(sender);
  assert(found != held_of_.end());
  if (--found->second > 0) return false;
  held_of_.erase(found);
  return true;
}

}  // namespace fraktor::inline v0
