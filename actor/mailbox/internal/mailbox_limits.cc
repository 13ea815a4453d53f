#include "fraktor/actor/mailbox/internal/mailbox_limits.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// A longer wait counts as infinite, because its sum with the time of the clock could overflow.
constexpr absl::Duration kForEver = absl::Hours(24 * 365);

void Count(std::atomic<uint64_t>& sum, uint64_t by = 1) { sum.fetch_add(by, std::memory_order_relaxed); }

using Room = LimitWord::Room;

uint32_t GenerationOf(const Envelope& envelope) { return static_cast<uint32_t>(envelope.target_word()); }

absl::Status EndedError(const Envelope& envelope) {
  return absl::UnavailableError(absl::StrCat("the actor ended before its full mailbox had room for a ",
                                             ToAbsl(envelope.type()->name()), "; look the actor up again"));
}

// Returns the error text for the exception that is being handled.
std::string Thrown(const OverflowPolicy& policy) {
  const std::string threw = absl::StrCat("the overflow policy ", ToAbsl(policy.name()), " threw ");
  try {
    throw;
  } catch (const std::exception& error) {
    return absl::StrCat(threw, "an exception (", error.what(), "); it must not throw");
  } catch (...) {
    return absl::StrCat(threw, "something that is no std::exception; it must not throw");
  }
}

OverflowDecision DecisionOf(const OverflowPolicy& policy, const OverflowCase& full) {
  try {
    return policy.Decide(full);
  } catch (...) {
    return OverflowDecision::Reject(Thrown(policy));
  }
}

}  // namespace

struct MailboxLimits::BlockedThread {
  enum class State : uint8_t { kInLine, kLetIn, kEnded };

  // Needs the mutex, so that the thread does not destroy the condition variable meanwhile.
  void Answer(State answer) {
    state = answer;
    answered.notify_one();
  }

  State state = State::kInLine;
  std::condition_variable_any answered;
};

MailboxLimits::~MailboxLimits() {
  MutexLock lock(mutex_);
  assert(line_.empty() && first_passing_.empty() && kept_.empty());
}

void MailboxLimits::Configure(uint32_t generation, const MailboxOptions& options) {
  assert(options.Validate().ok() && options.bounded());
  MutexLock lock(mutex_);
  assert(line_.empty() && first_passing_.empty() && kept_.empty());
  push_timeout_ = options.push_timeout;
  policy_ = options.overflow_policy;
  built_in_.store(policy_ == nullptr ? BuiltInPolicy(options.overflow) : nullptr, std::memory_order_relaxed);
  // Relaxed: the counters pair with nothing. A late sender to the actor before may still add one.
  for (std::atomic<uint64_t>* const sum :
       {&dropped_oldest_, &dropped_newest_, &rejected_, &dead_lettered_, &held_sum_, &blocked_, &timed_out_}) {
    sum->store(0, std::memory_order_relaxed);
  }
  word_.Open(generation, options.user_capacity(), options.policy().needs(), options.control_reserve());
}

Admission MailboxLimits::Admit(Envelope* envelope, ActorRef sender, Producer producer) {
  uint64_t word = word_.Look();
  for (;;) {
    if (!LimitWord::IsFor(word, GenerationOf(*envelope))) return {.kind = AdmissionKind::kEnded};
    const OverflowNeeds needs = word_.needs();
    if (needs == OverflowNeeds::kQueue) return Keep(envelope);
    if (envelope->type()->passes_limits()) [[unlikely]] {
      if (needs == OverflowNeeds::kLine && producer != Producer::kSelf) return Pass(envelope);
      return {.kind = AdmissionKind::kPass};
    }
    const bool exempt = producer == Producer::kSelf && needs == OverflowNeeds::kLine;
    if (exempt ? LimitWord::DepthOf(word) < LimitWord::kMaxDepth : word_.HasRoom(word)) {
      if (word_.TryCount(word)) return {.kind = AdmissionKind::kPush};
      continue;
    }
    if (word_.HasControlRoom(word) && envelope->type()->is_control()) {
      if (word_.TryCount(word)) return {.kind = AdmissionKind::kPush};
      continue;
    }
    return Overflow(envelope, sender, producer);
  }
}

Admission MailboxLimits::AdmitOwn(Envelope* envelope) {
  if (!LimitWord::IsFor(word_.Look(), GenerationOf(*envelope))) return {.kind = AdmissionKind::kEnded};
  switch (word_.needs()) {
    case OverflowNeeds::kCount:
      break;
    case OverflowNeeds::kLine:
      return Pass(envelope);
    case OverflowNeeds::kQueue:
      envelope->set_target_word(envelope->target_word() | kPassesMark);
      return Keep(envelope);
  }
  return {.kind = AdmissionKind::kPass};
}

Admission MailboxLimits::Overflow(Envelope* envelope, ActorRef sender, Producer producer) {
  const OverflowPolicy* const policy = built_in_.load(std::memory_order_relaxed);
  if (policy == nullptr) return {.kind = AdmissionKind::kAskPolicy};
  const OverflowDecision decision = policy->Decide(CaseOf(*envelope, sender, producer));
  return Apply(*policy, policy->needs(), decision, envelope, sender, producer).admission;
}

PolicyAnswer MailboxLimits::AskPolicy(Envelope* envelope, ActorRef sender, Producer producer) {
  std::shared_ptr<const OverflowPolicy> policy;
  OverflowNeeds needs = OverflowNeeds::kCount;
  {
    MutexLock lock(mutex_);
    if (!LimitWord::IsFor(word_.Look(), GenerationOf(*envelope))) return {.admission = {.kind = AdmissionKind::kEnded}};
    policy = policy_;
    needs = word_.needs();
  }
  const OverflowDecision decision = DecisionOf(*policy, CaseOf(*envelope, sender, producer));
  return Apply(*policy, needs, decision, envelope, sender, producer);
}

OverflowCase MailboxLimits::CaseOf(const Envelope& envelope, ActorRef sender, Producer producer) const {
  return {.message = envelope,
          .producer = producer,
          .sending_actor = sender,
          .is_control = IsControl(envelope),
          .depth = word_.depth(),
          .capacity = word_.capacity(),
          .waiting = waiting_.load(std::memory_order_relaxed)};
}

PolicyAnswer MailboxLimits::Apply(const OverflowPolicy& policy, OverflowNeeds needs, const OverflowDecision& decision,
                                  Envelope* envelope, ActorRef sender, Producer producer) {
  switch (decision.answer()) {
    case OverflowAnswer::kReject:
      return Rejected(decision.why());
    case OverflowAnswer::kDropNewest:
      Count(dropped_newest_);
      return {.admission = {.kind = AdmissionKind::kDropped}};
    case OverflowAnswer::kDeadLetter:
      Count(dead_lettered_);
      return {.admission = {.kind = AdmissionKind::kDeadLetter}};
    case OverflowAnswer::kDropOldest:
      if (needs == OverflowNeeds::kQueue) return Replace(policy, envelope);
      break;
    case OverflowAnswer::kHold:
      if (needs == OverflowNeeds::kLine) return {.admission = Hold(envelope, sender, producer)};
      break;
  }
  return Rejected(absl::StrCat("the overflow policy ", ToAbsl(policy.name()), " answered ",
                               ToAbsl(NameOf(decision.answer())), ", but its needs() are not ",
                               decision.answer() == OverflowAnswer::kHold ? "kLine" : "kQueue"));
}

PolicyAnswer MailboxLimits::Rejected(std::string why) {
  Count(rejected_);
  return {.admission = {.kind = AdmissionKind::kRejected}, .why = std::move(why)};
}

Admission MailboxLimits::Keep(Envelope* envelope) {
  MutexLock lock(mutex_);
  if (!LimitWord::IsFor(word_.Look(), GenerationOf(*envelope))) return {.kind = AdmissionKind::kEnded};
  Envelope* victim = nullptr;
  if (IsFullFor(*envelope)) {
    const OverflowPolicy* const policy = built_in_.load(std::memory_order_relaxed);
    if (policy == nullptr) return {.kind = AdmissionKind::kAskPolicy};
    // DropOldest is the only built-in policy with a queue, so it need not be asked.
    std::string error;
    victim = TakeOldest(*policy, *envelope, &error);
  }
  return KeepLocked(envelope, victim);
}

PolicyAnswer MailboxLimits::Replace(const OverflowPolicy& policy, Envelope* envelope) {
  std::string error;
  MutexLock lock(mutex_);
  if (!LimitWord::IsFor(word_.Look(), GenerationOf(*envelope))) return {.admission = {.kind = AdmissionKind::kEnded}};
  Envelope* victim = nullptr;
  if (IsFullFor(*envelope)) {
    victim = TakeOldest(policy, *envelope, &error);
    if (!error.empty()) return Rejected(std::move(error));
    if (victim == nullptr) {
      Count(dropped_newest_);
      return {.admission = {.kind = AdmissionKind::kDropped}};
    }
  }
  return {.admission = KeepLocked(envelope, victim)};
}

Admission MailboxLimits::KeepLocked(Envelope* envelope, Envelope* victim) {
  if (Passes(*envelope)) {
    ++kept_passing_;
  } else if (victim != nullptr) {
    Count(dropped_oldest_);
  } else {
    ++kept_size_;
    word_.Add();
  }
  kept_.PushBack(envelope);
  MoveFirstPassing();
  return {.kind = AdmissionKind::kKept, .ring = !std::exchange(bell_rings_, true), .victim = victim};
}

Envelope* MailboxLimits::TakeOldest(const OverflowPolicy& policy, const Envelope& arriving, std::string* error) {
  EnvelopeList skipped;
  Envelope* oldest = nullptr;
  try {
    while ((oldest = kept_.PopFront()) != nullptr) {
      if (!Passes(*oldest) && policy.MayReplace(arriving, *oldest)) break;
      skipped.PushBack(oldest);
    }
  } catch (...) {
    kept_.PushFront(std::exchange(oldest, nullptr));
    kept_.Prepend(std::exchange(skipped, {}));  // Before the text, which may throw too.
    *error = Thrown(policy);
  }
  kept_.Prepend(skipped);
  MoveFirstPassing();
  return oldest;
}

void MailboxLimits::MoveFirstPassing() {
  while (!kept_.empty() && Passes(*kept_.first)) first_passing_.PushBack(kept_.PopFront());
}

// The message joins the line if there is one, because an earlier message of its sender may be
// there.
Admission MailboxLimits::Pass(Envelope* envelope) {
  // If there is room and no line, the message needs neither the lock nor a place. Readmit pushes
  // the messages of a line before it ends the line, so none of them is overtaken.
  if (word_.HasRoom(word_.Look())) return {.kind = AdmissionKind::kPass};
  std::list<Place> place;
  place.push_back({.envelope = envelope});
  MutexLock lock(mutex_);
  if (!LimitWord::IsFor(word_.Look(), GenerationOf(*envelope))) return {.kind = AdmissionKind::kEnded};
  if (line_.empty()) return {.kind = AdmissionKind::kPass};
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
  // Before any change, because it may throw.
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
  const auto found = held_of_.find(sender);
  if (found == held_of_.end()) return late;
  const size_t count = found->second;
  held_of_.erase(found);
  // The sender that has waited longest is the first whose time is up, so its messages are in front.
  size_t left = count;
  for (auto place = line_.begin(); left > 0;) {
    if (place->envelope == nullptr || place->sender != sender) {
      ++place;
      continue;
    }
    late.PushBack(place->envelope);
    place = Leave(place);
    --left;
  }
  held_ -= count;
  Count(timed_out_, count);
  StopWaitingIfLineIsEmpty();
  return late;
}

std::vector<ActorRef> MailboxLimits::Readmit(absl::FunctionRef<void(EnvelopeList)> push) {
  std::vector<ActorRef> resume;
  MutexLock lock(mutex_);
  // Before any change, because it may throw.
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
  Envelope* envelope = first_passing_.PopFront();
  if (envelope != nullptr) {
    --kept_passing_;
    envelope->set_target_word(envelope->target_word() & ~kPassesMark);
  } else if ((envelope = kept_.PopFront()) != nullptr) {
    --kept_size_;
    word_.Subtract(1);
    MoveFirstPassing();
  }
  bell_rings_ = !first_passing_.empty() || !kept_.empty();
  *more = bell_rings_;
  return envelope;
}

Leftovers MailboxLimits::Close() {
  Leftovers left;
  std::shared_ptr<const OverflowPolicy> ended;  // Destroyed without the lock.
  MutexLock lock(mutex_);
  left.resume.reserve(held_of_.size());
  word_.Close();
  ended = std::exchange(policy_, nullptr);
  word_.Subtract(kept_size_);
  left.dead_letters = std::exchange(first_passing_, {});
  left.dead_letters.Append(std::exchange(kept_, {}));
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
  waiting_.store(line_.size(), std::memory_order_relaxed);
}

std::list<MailboxLimits::Place>::iterator MailboxLimits::Leave(std::list<Place>::iterator place) {
  control_in_line_ -= place->is_control ? 1 : 0;
  waiting_.store(line_.size() - 1, std::memory_order_relaxed);
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

}  // namespace fraktor::inline v0::actor_internal
