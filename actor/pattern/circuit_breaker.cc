#include "fraktor/actor/pattern/circuit_breaker.h"

#include <algorithm>
#include <cmath>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0 {

std::string_view NameOf(CircuitState state) {
  switch (state) {
    case CircuitState::kClosed:
      return "closed";
    case CircuitState::kOpen:
      return "open";
    case CircuitState::kHalfOpen:
      return "half_open";
  }
  return "unknown";
}

absl::Status CircuitBreakerOptions::Validate() const {
  if (max_failures < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("CircuitBreakerOptions.max_failures is ", max_failures, "; it is 1 or more"));
  }
  if (call_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("CircuitBreakerOptions.call_timeout is ",
                                                   absl::FormatDuration(call_timeout), "; it must be positive"));
  }
  if (reset_timeout <= absl::ZeroDuration() || reset_timeout == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("CircuitBreakerOptions.reset_timeout is ",
                                                   absl::FormatDuration(reset_timeout),
                                                   "; it must be positive and finite"));
  }
  if (!(backoff_factor >= 1.0) || !std::isfinite(backoff_factor)) {
    return absl::InvalidArgumentError(
        absl::StrCat("CircuitBreakerOptions.backoff_factor is ", backoff_factor, "; it is 1 or more"));
  }
  if (max_reset_timeout < reset_timeout) {
    return absl::InvalidArgumentError(
        absl::StrCat("CircuitBreakerOptions.max_reset_timeout is ", absl::FormatDuration(max_reset_timeout),
                     "; it is not less than reset_timeout, ", absl::FormatDuration(reset_timeout)));
  }
  return absl::OkStatus();
}

class CircuitBreaker::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(RuntimeToolbox& toolbox, CircuitBreakerOptions options)
      : toolbox_(toolbox), options_(std::move(options)), next_reset_(options_.reset_timeout) {}

  absl::StatusOr<Permit> Enter() {
    News news;
    absl::StatusOr<Permit> permit = Admit(news);
    Tell(news);
    return permit;
  }

  void End(uint64_t epoch, bool is_trial, CallOutcome outcome, absl::Duration took) {
    News news;
    {
      MutexLock lock(mutex_);
      news.listeners = listeners_;
      news.calls.push_back({outcome, took});
      if (epoch == epoch_) Count(outcome == CallOutcome::kSuccess, is_trial, news);
    }
    Tell(news);
  }

  // The result of the call was dropped.
  void Forget(uint64_t epoch, bool is_trial) {
    MutexLock lock(mutex_);
    if (epoch == epoch_ && is_trial) trial_is_out_ = false;
  }

  // Counts as a call that began and ended now.
  void Report(bool success) {
    News news;
    {
      MutexLock lock(mutex_);
      news.listeners = listeners_;
      HalfOpenIfDue(toolbox_.Now(), news);
      if (state_ != CircuitState::kOpen) Count(success, true, news);
    }
    Tell(news);
  }

  bool IsFailure(const absl::Status& status) const {
    if (options_.is_failure != nullptr) return !status.ok() && options_.is_failure(status);
    if (status.ok()) return false;
    const auto& harmless = options_.harmless_codes;
    return std::find(harmless.begin(), harmless.end(), status.code()) == harmless.end();
  }

  // An open breaker becomes half-open by time alone, even if nobody calls and no timer fires.
  CircuitState state() {
    News news;
    CircuitState state;
    {
      MutexLock lock(mutex_);
      news.listeners = listeners_;
      HalfOpenIfDue(toolbox_.Now(), news);
      state = state_;
    }
    Tell(news);
    return state;
  }
  int failures() {
    MutexLock lock(mutex_);
    return failures_;
  }
  absl::Duration remaining() {
    MutexLock lock(mutex_);
    return Remaining(toolbox_.Now());
  }
  void AddListener(std::shared_ptr<CircuitBreakerListener> listener) {
    MutexLock lock(mutex_);
    listeners_.push_back(std::move(listener));
  }

  RuntimeToolbox& toolbox() { return toolbox_; }
  const CircuitBreakerOptions& options() const { return options_; }

 private:
  // The events for listeners, which run when the lock is free.
  struct News {
    struct Call {
      CallOutcome outcome;
      absl::Duration took;
    };
    struct Transition {
      CircuitState from;
      CircuitState to;
    };
    std::vector<std::shared_ptr<CircuitBreakerListener>> listeners;
    std::vector<Call> calls;
    std::vector<Transition> transitions;
  };

  static void Tell(const News& news) {
    for (const auto& listener : news.listeners) {
      for (const News::Call& call : news.calls) listener->OnCall(call.outcome, call.took);
      for (const News::Transition& transition : news.transitions) {
        listener->OnTransition(transition.from, transition.to);
      }
    }
  }

  absl::StatusOr<Permit> Admit(News& news) {
    const Instant now = toolbox_.Now();
    MutexLock lock(mutex_);
    news.listeners = listeners_;
    HalfOpenIfDue(now, news);
    if (state_ == CircuitState::kClosed) return Permit(shared_from_this(), epoch_, false, now);
    if (state_ == CircuitState::kHalfOpen && !trial_is_out_) {
      trial_is_out_ = true;
      return Permit(shared_from_this(), epoch_, true, now);
    }
    news.calls.push_back({CallOutcome::kRejected, absl::ZeroDuration()});
    const absl::Duration left = Remaining(now);
    return MakeError(
        absl::StatusCode::kUnavailable, CircuitBreakerErrorKind::kOpen,
        absl::StrCat("circuit breaker \"", options_.name, "\" ",
                     state_ == CircuitState::kOpen
                         ? absl::StrCat("is open, for ", absl::FormatDuration(left), " more; try again then")
                         : std::string("is half-open, and its trial call is under way; try again soon")),
        {{"remaining_ns", absl::ToInt64Nanoseconds(left)}});
  }

  absl::Duration Remaining(Instant now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_ == CircuitState::kOpen && open_until_ > now ? open_until_ - now : absl::ZeroDuration();
  }

  void Count(bool success, bool is_trial, News& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (state_ == CircuitState::kClosed) {
      failures_ = success ? 0 : failures_ + 1;
      if (failures_ >= options_.max_failures) Open(news);
    } else if (state_ == CircuitState::kHalfOpen && is_trial) {
      if (success) {
        failures_ = 0;
        next_reset_ = options_.reset_timeout;
        MoveTo(CircuitState::kClosed, news);
      } else {
        Open(news);
      }
    }
  }

  void Open(News& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    MoveTo(CircuitState::kOpen, news);
    open_until_ = toolbox_.Now() + next_reset_;
    // The timer tells listeners; without it the next call changes the state. The breaker may be
    // gone when it fires.
    toolbox_
        .ScheduleAt(open_until_,
                    [core = weak_from_this()] {
                      if (const std::shared_ptr<Core> alive = core.lock()) alive->state();
                    })
        .status()
        .IgnoreError();
    next_reset_ = std::min(next_reset_ * options_.backoff_factor, options_.max_reset_timeout);
  }

  void HalfOpenIfDue(Instant now, News& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (state_ == CircuitState::kOpen && now >= open_until_) MoveTo(CircuitState::kHalfOpen, news);
  }

  void MoveTo(CircuitState to, News& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    news.transitions.push_back({state_, to});
    state_ = to;
    ++epoch_;
    trial_is_out_ = false;
  }

  RuntimeToolbox& toolbox_;
  const CircuitBreakerOptions options_;

  Mutex mutex_;
  CircuitState state_ ABSL_GUARDED_BY(mutex_) = CircuitState::kClosed;
  // The number of the state: a call counts only in the state in which it began.
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  bool trial_is_out_ ABSL_GUARDED_BY(mutex_) = false;
  Instant open_until_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_reset_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<CircuitBreakerListener>> listeners_ ABSL_GUARDED_BY(mutex_);
};

CircuitBreaker::Permit::Permit(std::shared_ptr<Core> core, uint64_t epoch, bool is_trial, Instant begin)
    : core_(std::move(core)), epoch_(epoch), is_trial_(is_trial), begin_(begin) {}

CircuitBreaker::Permit::~Permit() {
  if (core_ != nullptr) core_->Forget(epoch_, is_trial_);
}

void CircuitBreaker::Permit::End(const absl::Status& status) {
  const bool is_late = core_->toolbox().Now() - begin_ >= core_->options().call_timeout;
  EndAs(is_late ? CallOutcome::kTimeout : OutcomeOf(status));
}

CallOutcome CircuitBreaker::Permit::OutcomeOf(const absl::Status& status) const {
  return core_->IsFailure(status) ? CallOutcome::kFailure : CallOutcome::kSuccess;
}

absl::Status CircuitBreaker::Permit::LateError() const {
  const CircuitBreakerOptions& options = core_->options();
  return MakeError(absl::StatusCode::kDeadlineExceeded, FutureTimeoutKind::kNotInTime,
                   absl::StrCat("the call through circuit breaker \"", options.name, "\" has not answered within ",
                                absl::FormatDuration(options.call_timeout),
                                "; look at what it calls, or raise CircuitBreakerOptions::call_timeout"));
}

void CircuitBreaker::Permit::EndAs(CallOutcome outcome) {
  const std::shared_ptr<Core> core = std::move(core_);
  core_ = nullptr;
  core->End(epoch_, is_trial_, outcome, core->toolbox().Now() - begin_);
}

CircuitBreaker::CircuitBreaker(std::shared_ptr<Core> core) : core_(std::move(core)) {}

CircuitBreaker::~CircuitBreaker() = default;

absl::StatusOr<std::unique_ptr<CircuitBreaker>> CircuitBreaker::Make(RuntimeToolbox& toolbox,
                                                                     CircuitBreakerOptions options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  return std::unique_ptr<CircuitBreaker>(new CircuitBreaker(std::make_shared<Core>(toolbox, std::move(options))));
}

absl::StatusOr<CircuitBreaker::Permit> CircuitBreaker::Enter() { return core_->Enter(); }
RuntimeToolbox& CircuitBreaker::toolbox() const { return core_->toolbox(); }
absl::Duration CircuitBreaker::call_timeout() const { return core_->options().call_timeout; }
void CircuitBreaker::Succeed() { core_->Report(true); }
void CircuitBreaker::Fail() { core_->Report(false); }
CircuitState CircuitBreaker::state() const { return core_->state(); }
int CircuitBreaker::failures() const { return core_->failures(); }
absl::Duration CircuitBreaker::remaining() const { return core_->remaining(); }
void CircuitBreaker::AddListener(std::shared_ptr<CircuitBreakerListener> listener) {
  core_->AddListener(std::move(listener));
}

}  // namespace fraktor::inline v0
