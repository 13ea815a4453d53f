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

using Room = LimitWord::Room;

uint32_t GenerationOf(const Envelope& envelope) { return static_cast<uint32_t>(envelope.target_word()); }

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
  assert(line_.empty() && kept_.empty());
  push_timeout_ = options.push_timeout;
  word_.Open(generation, options.user_capacity(), options.overflow, options.control_reserve());
}

Admission MailboxLimits::Admit(Envelope* envelope, ActorRef sender, Producer producer) {
  uint64_t word = word_.Look();
  for (;;) {
    if (!LimitWord::IsFor(word, GenerationOf(*envelope))) return {.kind = AdmissionKind::kEnded};
    const OverflowStrategy strategy = word_.strategy();
    if (strategy == OverflowStrategy::kDropOldest) return Keep(envelope);
    if (envelope->type()->passes_limits()) [[unlikely]]
      return strategy == OverflowStrategy::kBlockProducer ? Pass(envelope) : Admission{.kind = AdmissionKind::kPass};
    const bool exempt = producer == Producer::kSelf && strategy == OverflowStrategy::kBlockProducer;
    if (exempt ? LimitWord::DepthOf(word) < LimitWord::kMaxDepth : word_.HasRoom(word)) {
      if (word_.TryCount(word)) return {.kind = AdmissionKind::kPush};
      continue;
    }
    if (word_.HasControlRoom(word) && envelope->type()->is_control()) {
      if (word_.TryCount(word)) return {.kind = AdmissionKind::kPush};
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
  if (!LimitWord::IsFor(word_.Look(), GenerationOf(*envelope))) return {.kind = AdmissionKind::kEnded};
  if (envelope->type()->passes_limits()) {
    ++kept_passing_;
  } else if (kept_size_ == word_.capacity()) {
    admission.victim = TakeOldest();
    Count(dropped_oldest_);
  } else {
    ++kept_size_;
    word_.Add();
  }
  kept_.PushBack(envelope);
  admission.ring = !std::exchange(bell_rings_, true);
  return admission;
}

// There is one that does not pass limits.
Envelope* MailboxLimits::TakeOldest() {
  EnvelopeList passing;
  Envelope* oldest = kept_.PopFront();
  for (; oldest->type()->passes_limits(); oldest = kept_.PopFront()) passing.PushBack(oldest);
  kept_.Prepend(passing);
  return oldest;
}

// Behind those in line, who may have sent something before it.
Admission MailboxLimits::Pass(Envelope* envelope) {
  std::list<Place> place;
  place.push_back({.envelope = envelope});
  MutexLock lock(mutex_);
  switch (word_.CountOrWait(GenerationOf(*envelope), true)) {
    case Room::kCounted:
      return {.kind = AdmissionKind::kPush};
    case Room::kEnded:
      return {.kind = AdmissionKind::kEnded};
    case Room::kNone:
      break;
  }
  Join(place);
  return {.kind = AdmissionKind::kHeld};
}

Admission MailboxLimits::Hold(Envelope* envelope, ActorRef sender, Producer producer) {
  const bool can_be_suspended = producer == Producer::kActor && !sender.IsNoOne();
  const bool is_control = IsControl(*envelope);
  std::list<Place> place;
  if (can_be_suspended) place.push_back({.envelope = envelope, .sender = sender, .is_control = is_control});

  MutexLock lock(mutex_);
  const bool waits = push_timeout_ > absl::ZeroDuration();
  const bool may_join = can_be_suspended && waits && held_ < word_.capacity();
  // Before anything changes, since it may throw.
  if (may_join) held_of_.try_emplace(sender, 0);
  const bool overtakes = is_control && control_in_line_ == 0;
  const Room room = word_.CountOrWait(GenerationOf(*envelope), may_join, overtakes);
  if (may_join && room == Room::kNone) {
    Join(place);
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
  const bool is_control = IsControl(envelope);
  place.push_back({.thread = &thread, .is_control = is_control});
  const auto mine = place.begin();

  MutexLock lock(mutex_);
  switch (word_.CountOrWait(GenerationOf(envelope), waits, is_control && control_in_line_ == 0)) {
    case Room::kCounted:
      return absl::OkStatus();
    case Room::kEnded:
      return EndedError(envelope);
    case Room::kNone:
      break;
  }
  if (waits) {
    Join(place);
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
    Leave(mine);
    StopWaitingIfLineIsEmpty();
  }
  Count(timed_out_);
  return absl::DeadlineExceededError(absl::StrCat(
      "a mailbox of ", word_.capacity(), " had no room for a ", ToAbsl(envelope.type()->name()), " within ",
      absl::FormatDuration(timeout), "; send less, or give it a larger MailboxOptions.capacity or push_timeout"));
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
    place = Leave(place);
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
  // Room for all of them, before anything changes, since it may throw.
  resume.reserve(std::min<uint64_t>(line_.size(), word_.capacity()));
  EnvelopeList let_in;
  for (uint64_t count = word_.CountWaiting(line_.size()); count > 0; --count) {
    const Place place = line_.front();
    Leave(line_.begin());
    if (place.thread != nullptr) {
      place.thread->Answer(BlockedThread::State::kLetIn);
      continue;
    }
    let_in.PushBack(place.envelope);
    if (!place.sender.IsNoOne() && ForgetHeld(place.sender)) resume.push_back(place.sender);
  }
  if (!let_in.empty()) push(let_in);
  StopWaitingIfLineIsEmpty();
  return resume;
}

Envelope* MailboxLimits::TakeKept(bool* more) {
  MutexLock lock(mutex_);
  Envelope* const envelope = kept_.PopFront();
  if (envelope != nullptr && envelope->type()->passes_limits()) {
    --kept_passing_;
  } else if (envelope != nullptr) {
    --kept_size_;
    word_.Subtract(1);
  }
  bell_rings_ = !kept_.empty();
  *more = bell_rings_;
  return envelope;
}

Leftovers MailboxLimits::Close() {
  Leftovers left;
  MutexLock lock(mutex_);
  left.resume.reserve(held_of_.size());
  word_.Close();
  word_.Subtract(kept_size_);
  left.dead_letters = std::exchange(kept_, {});
  left.kept = std::exchange(kept_size_, 0) + std::exchange(kept_passing_, 0);
  bell_rings_ = false;
  while (!line_.empty()) {
    const Place place = line_.front();
    Leave(line_.begin());
    if (place.thread != nullptr) {
      place.thread->Answer(BlockedThread::State::kEnded);
      continue;
    }
    left.dead_letters.PushBack(place.envelope);
    if (!place.sender.IsNoOne() && ForgetHeld(place.sender)) left.resume.push_back(place.sender);
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

void MailboxLimits::Join(std::list<Place>& from) {
  for (const Place& place : from) control_in_line_ += place.is_control ? 1 : 0;
  line_.splice(line_.end(), from);
}

std::list<MailboxLimits::Place>::iterator MailboxLimits::Leave(std::list<Place>::iterator place) {
  control_in_line_ -= place->is_control ? 1 : 0;
  return line_.erase(place);
}

void MailboxLimits::StopWaitingIfLineIsEmpty() {
  if (line_.empty()) word_.StopWaiting();
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
