#include "fraktor/actor/pattern/backoff_supervisor.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/timer/timer_period.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorTree;
using actor_internal::FailAsk;

namespace {

// The messages of the supervisor's timers.
struct StartChild {};
// Resets the count unless there was another restart meanwhile.
struct ResetIfQuiet {
  int64_t restarts;
};

// One random generator for all supervisors of a system: separate ones would all give the same
// pauses.
class BackoffChance {
 public:
  explicit BackoffChance(ActorSystem& system) : random_(system.toolbox().MakeRandom(kStream)) {}
  double Next() {
    MutexLock lock(mutex_);
    return random_.UniformDouble();
  }

 private:
  static constexpr uint64_t kStream = 0x6261636b6f6666;

  Mutex mutex_;
  Random random_ ABSL_GUARDED_BY(mutex_);
};

absl::Status BadOption(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("BackoffSupervisorOptions.", name, " ", what));
}

}  // namespace

template <>
inline constexpr bool kIsSuppressedDeadLetter<StartChild> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<ResetIfQuiet> = true;

absl::Status BackoffSupervisorOptions::Validate() const {
  if (child == nullptr) return BadOption("child", "is not set");
  if (min_backoff <= absl::ZeroDuration() || min_backoff == absl::InfiniteDuration()) {
    return BadOption("min_backoff",
                     absl::StrCat("is ", absl::FormatDuration(min_backoff), "; it must be positive and finite"));
  }
  if (max_backoff < min_backoff || max_backoff == absl::InfiniteDuration()) {
    return BadOption("max_backoff", absl::StrCat("is ", absl::FormatDuration(max_backoff),
                                                 "; it must be finite and not less than min_backoff, ",
                                                 absl::FormatDuration(min_backoff)));
  }
  if (!(jitter >= 0.0 && jitter <= 1.0)) return BadOption("jitter", absl::StrCat("is ", jitter, "; it is from 0 to 1"));
  if (auto_reset.has_value() && *auto_reset <= absl::ZeroDuration()) {
    return BadOption("auto_reset", absl::StrCat("is ", absl::FormatDuration(*auto_reset), "; it must be positive"));
  }
  if (max_restarts < -1) {
    return BadOption("max_restarts", absl::StrCat("is ", max_restarts, "; it is -1 (any number), 0 or more"));
  }
  if (while_away != nullptr && !handler_while_away.IsNoOne()) {
    return BadOption("while_away", "is set, and handler_while_away too; set one of them");
  }
  return absl::OkStatus();
}

absl::Duration BackoffAfter(const BackoffSupervisorOptions& options, int64_t restarts, double chance) {
  // Grows step by step up to the limit, so that the pause cannot overflow.
  absl::Duration pause = options.min_backoff;
  for (int64_t i = 0; i < restarts && pause < options.max_backoff; ++i) {
    pause = std::min(2 * pause, options.max_backoff);
  }
  return pause * (1.0 + options.jitter * chance);
}

namespace {

class BackoffSupervisor final : public ActorInstance {
 public:
  explicit BackoffSupervisor(std::shared_ptr<const BackoffSupervisorOptions> options) : options_(std::move(options)) {}

  absl::Status PreStart(ActorContext& context) override { return Start(context); }

  SupervisionDirective OnChildFailure(ActorContext&, const Failure& failure) override {
    const SupervisionDirective decided =
        options_->decider == nullptr ? SupervisorStrategy::DecideByDefault(failure) : options_->decider(failure);
    if (options_->trigger == BackoffTrigger::kOnStop || decided != SupervisionDirective::kRestart) return decided;
    is_restarting_ = true;
    return SupervisionDirective::kStop;
  }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* terminated = message.TryAs<Terminated>(); terminated != nullptr && terminated->actor == child_) {
      return OnChildEnded(context);
    }
    if (message.Is<StartChild>()) return child_.IsNoOne() ? Start(context) : absl::OkStatus();
    if (const auto* reset = message.TryAs<ResetIfQuiet>()) {
      if (reset->restarts == restarts_) restarts_ = 0;
      return absl::OkStatus();
    }
    if (message.Is<GetCurrentChild>()) {
      context.Reply(CurrentChild{child_});
    } else if (message.Is<GetRestartCount>()) {
      context.Reply(RestartCount{restarts_});
    } else if (message.Is<ResetBackoff>()) {
      restarts_ = 0;
    } else {
      Pass(context, message);
    }
    return absl::OkStatus();
  }

 private:
  // The keys of the timers. Their messages arrive although the mailbox is full.
  static constexpr std::string_view kStart = "start";
  static constexpr std::string_view kReset = "reset";

  absl::Status Start(ActorContext& context) {
    FRAKTOR_ASSIGN_OR_RETURN(child_, context.TrySpawn(*options_->child, options_->child_name));
    last_child_ = child_;
    FRAKTOR_RETURN_IF_ERROR(context.Watch(child_));
    const absl::Duration quiet = options_->auto_reset.value_or(options_->min_backoff);
    if (restarts_ == 0 || quiet == absl::InfiniteDuration()) return absl::OkStatus();
    return Timers(context).StartSingle(kReset, ResetIfQuiet{restarts_}, std::min(quiet, kMaxTimerDelay));
  }

  absl::Status OnChildEnded(ActorContext& context) {
    child_ = ActorRef();
    const bool ends_with_it = options_->trigger == BackoffTrigger::kOnFailure && !is_restarting_;
    is_restarting_ = false;
    if (is_final_ || ends_with_it) {
      context.Stop();
      return absl::OkStatus();
    }
    if (options_->max_restarts >= 0 && restarts_ >= options_->max_restarts) {
      ActorTree::Of(context).log().Log(
          LogLevel::kError, context.self(),
          ToStd(absl::StrCat("stops: its child has been restarted ", restarts_, " times in a row")));
      context.Stop();
      return absl::OkStatus();
    }
    Timers(context).Cancel(kReset);
    const absl::Duration pause =
        BackoffAfter(*options_, restarts_++, context.system().Extension<BackoffChance>().Next());
    starts_at_ = context.system().toolbox().Now() + pause;
    return Timers(context).StartSingle(kStart, StartChild{}, std::min(pause, kMaxTimerDelay));
  }

  // Passes on a message that is not for the supervisor.
  void Pass(ActorContext& context, const Envelope& message) {
    if (!child_.IsNoOne() && message.sender() == child_) {
      context.Forward(context.parent());
      return;
    }
    const bool is_away = child_.IsNoOne() || is_restarting_;
    if (options_->is_final_stop != nullptr && options_->is_final_stop(message)) {
      is_final_ = true;
      if (child_.IsNoOne()) context.Stop();
    }
    if (!is_away) {
      context.Forward(child_);
    } else if (options_->while_away != nullptr) {
      options_->while_away(context);
    } else if (!options_->handler_while_away.IsNoOne()) {
      context.Forward(options_->handler_while_away);
    } else {
      // Fails the ask with the details before Forward makes the message a dead letter, whose error
      // says less.
      FailAsk(message, [&] { return IsAway(context, message); });
      context.Forward(last_child_);
    }
  }

  absl::Status IsAway(ActorContext& context, const Envelope& message) const {
    const absl::Duration left = starts_at_ - context.system().toolbox().Now();
    return absl::UnavailableError(
        absl::StrCat(ToAbsl(message.type()->name()), " gets no reply: ", context.Path(), "/", options_->child_name,
                     is_final_        ? " has ended, and does not start again"
                     : is_restarting_ ? " has failed, and starts again after a pause"
                                      : absl::StrCat(" is away, and starts again in ",
                                                     absl::FormatDuration(std::max(left, absl::ZeroDuration()))),
                     "; ask again then, or set BackoffSupervisorOptions.while_away"));
  }

  const std::shared_ptr<const BackoffSupervisorOptions> options_;
  ActorRef child_;
  // Stays set after the child has ended: its path is the recipient of dead letters.
  ActorRef last_child_;
  Instant starts_at_;
  int64_t restarts_ = 0;
  // The child has failed, is being stopped, and will start again.
  bool is_restarting_ = false;
  bool is_final_ = false;
};

}  // namespace

absl::StatusOr<PropsPtr> MakeBackoffProps(BackoffSupervisorOptions options, const PropsOptions& props) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  return MakeProps<BackoffSupervisor>(props, std::make_shared<const BackoffSupervisorOptions>(std::move(options)));
}

}  // namespace fraktor::inline v0
