#include "fraktor/cluster/membership/membership_session.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

absl::Status NoMemberAnyMore(const std::string& authority) {
  return absl::CancelledError(absl::StrCat("\"", authority, "\" has left the cluster, and will not be a member"));
}

absl::Status TermIsOver(const absl::Status& renewed) {
  return absl::DeadlineExceededError(
      renewed.ok() ? "its term was over before it was renewed"
                   : absl::StrCat("its term was over before it was renewed: ", renewed.message()));
}

}  // namespace

absl::Status MembershipSessionOptions::Validate() const {
  return CheckPositive({{"MembershipSessionOptions::join_pause", join_pause},
                        {"MembershipSessionOptions::tick_period", tick_period},
                        {"MembershipSessionOptions::answer_timeout", answer_timeout},
                        {"MembershipSessionOptions::hand_over_timeout", hand_over_timeout},
                        {"MembershipSessionOptions::farewell_timeout", farewell_timeout}});
}

absl::StatusOr<std::shared_ptr<MembershipSession>> MembershipSession::Make(Parts parts, MemberCandidate candidate,
                                                                           const MembershipSessionOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  auto session =
      std::shared_ptr<MembershipSession>(new MembershipSession(std::move(parts), std::move(candidate), options));
  FRAKTOR_ASSIGN_OR_RETURN(session->timer_, session->toolbox_.SchedulePeriodic(
                                                {.period = options.tick_period, .cadence = Cadence::kFixedDelay},
                                                [weak = session->weak_from_this()] {
                                                  const auto self = weak.lock();
                                                  if (self == nullptr) return;
                                                  self->executor_.Post([weak] {
                                                    if (const auto still = weak.lock()) still->Tick();
                                                  });
                                                }));
  return session;
}

MembershipSession::MembershipSession(Parts parts, MemberCandidate candidate, const MembershipSessionOptions& options)
    : options_(options),
      toolbox_(parts.toolbox),
      executor_(parts.executor),
      provider_(std::move(parts.provider)),
      duties_(std::move(parts.duties)),
      on_join_failed_(std::move(parts.on_join_failed)),
      on_lost_(std::move(parts.on_lost)),
      candidate_(std::move(candidate)),
      absence_(absl::UnavailableError(absl::StrCat("\"", candidate_.authority, "\" has not begun to join a cluster"))) {
}

MembershipSession::~MembershipSession() { toolbox_.CancelTimer(timer_); }

absl::Status MembershipSession::Join() {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kIdle) return absl::FailedPreconditionError("a membership session is begun once");
    state_ = State::kJoining;
  }
  executor_.Post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->SetAbsence(": it has asked to join, and waits for the answer");
    self->Tick();
  });
  return absl::OkStatus();
}

Future<void> MembershipSession::Joined() {
  MutexLock lock(mutex_);
  if (has_begun_) return MakeReadyFuture();
  if (state_ == State::kLeft) return MakeReadyFuture<void>(NoMemberAnyMore(candidate_.authority));
  auto [promise, future] = MakePromise<void>();
  until_joined_.push_back(std::move(promise));
  return std::move(future);
}

Future<void> MembershipSession::Leave() {
  auto [promise, future] = MakePromise<void>();
  std::vector<Promise<void>> joined;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kIdle || state_ == State::kLeft) {
      state_ = State::kLeft;
      joined.swap(until_joined_);
    } else {
      wants_to_leave_ = true;
      until_left_.push_back(std::move(promise));
    }
  }
  for (Promise<void>& waiting : joined) waiting.Set(NoMemberAnyMore(candidate_.authority));
  if (promise.valid()) return MakeReadyFuture();
  PostTick();
  return std::move(future);
}

void MembershipSession::Abandon() {
  std::vector<Promise<void>> left;
  std::vector<Promise<void>> joined;
  {
    MutexLock lock(mutex_);
    state_ = State::kLeft;
    has_begun_ = false;
    left.swap(until_left_);
    joined.swap(until_joined_);
  }
  const absl::Status why = absl::CancelledError(
      absl::StrCat("the node at \"", candidate_.authority, "\" has ended without having left the cluster"));
  for (Promise<void>& promise : joined) promise.Set(why);
  for (Promise<void>& promise : left) promise.Set(why);
}

MembershipSession::State MembershipSession::state() const {
  MutexLock lock(mutex_);
  return state_;
}

std::string MembershipSession::member_id() const {
  MutexLock lock(mutex_);
  return state_ == State::kMember || state_ == State::kHandingOver ? term_.member.id() : std::string();
}

absl::Status MembershipSession::WhyNoMember() const {
  MutexLock lock(mutex_);
  if (has_begun_) return absl::OkStatus();
  return state_ == State::kLeft ? NoMemberAnyMore(candidate_.authority) : absence_;
}

void MembershipSession::PostTick() {
  executor_.Post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Tick();
  });
}

bool MembershipSession::SetState(State state) {
  MutexLock lock(mutex_);
  if (state_ == State::kLeft) return false;
  state_ = state;
  return true;
}

template <class T, class Step>
Future<void> MembershipSession::After(Future<T> future, Step step) {
  return std::move(future).Then(executor_, [weak = weak_from_this(), step](FutureResult<T> result) {
    if (const auto self = weak.lock()) step(*self, std::move(result));
  });
}

void MembershipSession::Tick() {
  State state = State::kIdle;
  bool wants_to_leave = false;
  Instant valid_until;
  {
    MutexLock lock(mutex_);
    state = state_;
    wants_to_leave = wants_to_leave_;
    valid_until = term_.valid_until;
  }
  const Instant now = toolbox_.Now();
  switch (state) {
    case State::kIdle:
    case State::kLeft:
      return;
    case State::kEnding:
      if (now >= end_until_) {
        OnEnded();
      } else if (now >= answer_until_) {
        OnLeft();
      }
      return;
    case State::kJoining:
      // A Join that is under way is waited for, so that it can be taken back.
      if (wants_to_leave && (!asking_.valid() || now >= ask_again_at_)) {
        OnLeft();
      } else if (now >= ask_again_at_) {
        if (asking_.valid()) {
          OnJoinFailed(absl::DeadlineExceededError(
              absl::StrCat("no answer within ", absl::FormatDuration(options_.answer_timeout))));
        }
        BeginJoin(now);
      }
      return;
    case State::kMember:
    case State::kHandingOver:
      if (now >= valid_until || now >= hand_over_until_) {
        EndDuties(TermIsOver(renewed_));
        return;
      }
      if (wants_to_leave && state == State::kMember) Announce(now);
      if (now >= answer_until_) BeginHandOver();
      if (now >= ask_again_at_) Ask(now);
      return;
  }
}

void MembershipSession::BeginJoin(Instant now) {
  const absl::Status can_begin = duties_->CanBegin();
  if (can_begin.ok()) {
    Ask(now);
    return;
  }
  asking_ = {};
  OnJoinFailed(can_begin);
  ask_again_at_ = now + options_.join_pause;
}

// To join or to renew; a former question is not heard any more.
void MembershipSession::Ask(Instant now) {
  asked_at_ = now;
  ask_again_at_ = now + options_.answer_timeout;
  std::string id = member_id();
  if (id.empty()) {
    asking_ = After(provider_->Join(candidate_, now), [](MembershipSession& self, absl::StatusOr<MembershipTerm> term) {
      self.OnJoined(std::move(term));
    });
  } else {
    asking_ =
        After(provider_->Renew(std::move(id), now),
              [](MembershipSession& self, absl::StatusOr<MembershipTerm> term) { self.OnRenewed(std::move(term)); });
  }
}

void MembershipSession::OnJoined(absl::StatusOr<MembershipTerm> term) {
  asking_ = {};
  const Instant now = toolbox_.Now();
  if (term.ok() && term->valid_until - asked_at_ <= options_.min_term) {
    term = absl::InvalidArgumentError(absl::StrCat(
        "members are members for ", absl::FormatDuration(term->valid_until - asked_at_),
        ", which is not longer than MembershipSessionOptions::min_term (of a Cluster, "
        "PlacementOptions::membership_margin), ",
        absl::FormatDuration(options_.min_term), ": no grain could run; use a longer term or a shorter margin"));
  }
  if (!term.ok() || now >= term->valid_until) {
    OnJoinFailed(term.ok() ? absl::DeadlineExceededError("the term was over when the answer came") : term.status());
    ask_again_at_ = now + options_.join_pause;
    Tick();
    return;
  }
  ask_again_at_ = asked_at_ + (term->valid_until - asked_at_) / 3;
  join_failures_ = 0;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kLeft) return;
    state_ = State::kMember;
    term_ = *term;
  }
  duties_->Begin(*term);
  std::vector<Promise<void>> joined;
  {
    MutexLock lock(mutex_);
    has_begun_ = state_ != State::kLeft;
    joined.swap(until_joined_);
  }
  for (Promise<void>& promise : joined) promise.Set();
  Tick();
}

void MembershipSession::OnJoinFailed(const absl::Status& why) {
  ++join_failures_;
  SetAbsence(absl::StrCat(", after ", join_failures_, join_failures_ == 1 ? " attempt" : " attempts",
                          " to join: ", why.message()));
  const bool is_power_of_two = (join_failures_ & (join_failures_ - 1)) == 0;
  if (is_power_of_two && on_join_failed_ != nullptr) on_join_failed_(join_failures_, why);
}

void MembershipSession::SetAbsence(const std::string& why) {
  absl::Status absence;
  {
    MutexLock lock(mutex_);
    const bool was_member = term_.member.incarnation != 0;
    absence_ = absence =
        absl::UnavailableError(absl::StrCat("this node, \"", candidate_.authority, "\", is no member of the cluster ",
                                            was_member ? "any more" : "yet", why));
  }
  duties_->Await(absence);
}

void MembershipSession::OnRenewed(absl::StatusOr<MembershipTerm> term) {
  asking_ = {};
  renewed_ = term.status();
  if (term.ok()) {
    ask_again_at_ = asked_at_ + (term->valid_until - asked_at_) / 3;
    {
      MutexLock lock(mutex_);
      term_.valid_until = term->valid_until;
    }
    duties_->Renew(term->valid_until);
  } else if (ErrorKindOf<MembershipError>(term.status()) == MembershipError::kHasLeft) {
    EndDuties(term.status());
  }
  // Anything else is asked again when the timeout is over.
}

void MembershipSession::Announce(Instant now) {
  if (!SetState(State::kHandingOver)) return;
  hand_over_until_ = now + options_.hand_over_timeout;
  answer_until_ = now + options_.answer_timeout;
  // Whether or not the others hear that it is leaving: what it hands over they activate when they need it.
  changing_ = After(provider_->BeginLeaving(member_id()),
                    [](MembershipSession& self, const absl::Status&) { self.BeginHandOver(); });
}

void MembershipSession::BeginHandOver() {
  if (state() == State::kLeft) return;
  answer_until_ = Instant::InfiniteFuture();
  changing_ = After(duties_->HandOver(),
                    [](MembershipSession& self, const absl::Status&) { self.EndDuties(absl::OkStatus()); });
}

void MembershipSession::EndDuties(const absl::Status& why) {
  bool is_lost = false;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kLeft) return;
    is_lost = !why.ok() && !wants_to_leave_;
    state_ = State::kEnding;
    has_begun_ = false;
  }
  if (is_lost) {
    SetAbsence(absl::StrCat(", and joins again: ", why.message()));
    if (on_lost_ != nullptr) on_lost_(why);
  }
  asking_ = {};
  const Instant now = toolbox_.Now();
  // Who hands over has used up some of it, or all.
  end_until_ = hand_over_until_ == Instant::InfiniteFuture()
                   ? now + options_.hand_over_timeout
                   : std::max(hand_over_until_, now + options_.answer_timeout);
  hand_over_until_ = answer_until_ = Instant::InfiniteFuture();
  changing_ = After(duties_->End(), [](MembershipSession& self, const absl::Status&) { self.OnEnded(); });
}

void MembershipSession::OnEnded() {
  changing_ = {};  // an end that comes later is none of this life's
  end_until_ = Instant::InfiniteFuture();
  bool wants_to_leave = false;
  std::string id;
  {
    MutexLock lock(mutex_);
    wants_to_leave = wants_to_leave_;
    id = term_.member.id();
  }
  if (!wants_to_leave) {
    if (!SetState(State::kJoining)) return;
    ask_again_at_ = toolbox_.Now();
    Tick();
    return;
  }
  // A provider that cannot be told finds out when the term is over.
  answer_until_ = toolbox_.Now() + options_.answer_timeout;
  changing_ = After(provider_->Leave(std::move(id)), [](MembershipSession& self, const absl::Status& left) {
    // If the provider does not know it, the others will not hear it.
    left.ok() ? self.SayFarewell() : self.OnLeft();
  });
}

void MembershipSession::SayFarewell() {
  if (state() == State::kLeft) return;
  answer_until_ = toolbox_.Now() + options_.farewell_timeout;
  changing_ = After(duties_->SayFarewell(), [](MembershipSession& self, const absl::Status&) { self.OnLeft(); });
}

void MembershipSession::OnLeft() {
  changing_ = {};
  std::vector<Promise<void>> left;
  std::vector<Promise<void>> joined;
  {
    MutexLock lock(mutex_);
    state_ = State::kLeft;
    left.swap(until_left_);
    joined.swap(until_joined_);
  }
  for (Promise<void>& promise : joined) promise.Set(NoMemberAnyMore(candidate_.authority));
  for (Promise<void>& promise : left) promise.Set();
}

}  // namespace fraktor::inline v0
