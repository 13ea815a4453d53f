#include "fraktor/actor/timer/receive_timeout.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/cell_attachment.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/actor/timer/timer_period.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorWorker;
using actor_internal::AttachmentOf;
using actor_internal::CellAttachment;
using actor_internal::EnqueueIntercepted;
using actor_internal::FindAttachment;
using actor_internal::MessageInvoker;
using actor_internal::WatchActivity;

namespace {

// System messages of the actor to itself: the handler that set the timeout has ended; the time may
// be over.
struct ReceiveTimeoutBegins {
  uint64_t serial;
};
struct ReceiveTimeoutDue {
  uint64_t serial;
};

// One timer is armed at a time. When it fires, it is armed again for the rest since the last
// message. So messages touch no timer.
class ReceiveTimeoutState final : public CellAttachment {
 public:
  ~ReceiveTimeoutState() override { Disarm(); }

  absl::Status Set(ActorContext& context, absl::Duration timeout) {
    ActorWorker& worker = ActorContext::worker();
    if (worker.toolbox == nullptr)
      return absl::FailedPreconditionError(
          "receive timeout: the worker has no toolbox, and so no timers; run the actor in an ActorSystem");
    const uint64_t serial = serial_ + 1;
    FRAKTOR_ASSIGN_OR_RETURN(const TimerId armed, Schedule(*worker.toolbox, context.self(), serial, timeout));
    Disarm();
    toolbox_ = worker.toolbox;
    armed_ = armed;
    serial_ = serial;
    timeout_ = timeout;
    Touch();
    WatchActivity(context, true);
    // The time counts from the end of the handler.
    TellSystem(context.self(), MakeEnvelope<ReceiveTimeoutBegins>(worker.cache(), ActorRef(), serial_));
    return absl::OkStatus();
  }

  void Cancel(ActorContext& context) {
    Disarm();
    ++serial_;
    timeout_ = absl::InfiniteDuration();
    WatchActivity(context, false);
  }

  absl::Duration timeout() const { return timeout_; }

  void OnActivity(ActorContext& /*context*/) override { Touch(); }
  void OnRestart(ActorContext& /*context*/) override {
    if (is_on()) Touch();
  }
  void BeforeStop(ActorContext& context) override { Cancel(context); }
  void OnStop(ActorContext& context) override { Cancel(context); }

  bool OnSystemMessage(ActorContext& context, Envelope& message) override {
    if (const auto* begins = message.TryAs<ReceiveTimeoutBegins>()) {
      if (is_on() && begins->serial == serial_) Touch();
      return true;
    }
    const auto* due = message.TryAs<ReceiveTimeoutDue>();
    if (due == nullptr) return false;
    if (!is_on() || due->serial != serial_) return true;
    armed_ = {};
    const absl::Duration idle = toolbox_->Now() - last_;
    if (idle < timeout_) {
      ArmAgain(context, timeout_ - idle);
      return true;
    }
    queued_activity_ = activity_;
    queued_serial_ = serial_;
    // One ReceiveTimeout in the mailbox is enough.
    if (queued_ != nullptr) return true;
    EnvelopePtr timed_out = MakeEnvelope<ReceiveTimeout>(ActorContext::worker().cache(), ActorRef(), timeout_);
    queued_ = timed_out.get();
    EnqueueIntercepted(context, std::move(timed_out));
    return true;
  }

  bool OnInterceptedMessage(ActorContext& context, Envelope*& envelope) override {
    if (envelope != queued_) return false;
    queued_ = nullptr;
    if (!is_on() || queued_serial_ != serial_) {
      const EnvelopePtr dropped(std::exchange(envelope, nullptr));
      return true;
    }
    if (queued_activity_ != activity_) {
      const EnvelopePtr dropped(std::exchange(envelope, nullptr));
      ArmAgain(context, timeout_ - (toolbox_->Now() - last_));
      return true;
    }
    envelope->As<ReceiveTimeout>().after = timeout_;
    envelope->set_target_word(ActorContext::worker().turn_state.word);
    Touch();
    ArmAgain(context, timeout_);
    return true;
  }

 private:
  static absl::StatusOr<TimerId> Schedule(RuntimeToolbox& toolbox, ActorRef self, uint64_t serial,
                                          absl::Duration after) {
    return toolbox.ScheduleAfter(
        after, [self, serial] { TellSystem(self, MakeEnvelope<ReceiveTimeoutDue>(ActorRef(), serial)); });
  }

  bool is_on() const { return timeout_ < absl::InfiniteDuration(); }

  void Touch() {
    last_ = toolbox_->Now();
    ++activity_;
  }

  void Disarm() {
    if (toolbox_ != nullptr) toolbox_->CancelTimer(std::exchange(armed_, {}));
  }

  void ArmAgain(ActorContext& context, absl::Duration after) {
    absl::StatusOr<TimerId> armed = Schedule(*toolbox_, context.self(), serial_, after);
    if (armed.ok()) {
      armed_ = *armed;
      return;
    }
    // A failure is better than an actor that silently has no timeout.
    Cancel(context);
    MessageInvoker::Fail(
        ActorContext::worker().turn(),
        absl::Status(armed.status().code(),
                     absl::StrCat("the receive timeout could not be armed again: ", armed.status().message())),
        FailureCause::kReturned, nullptr);
  }

  RuntimeToolbox* toolbox_ = nullptr;  // Set by the first timeout.
  absl::Duration timeout_ = absl::InfiniteDuration();
  TimerId armed_;
  uint64_t serial_ = 0;    // The number of the latest timeout.
  uint64_t activity_ = 0;  // Counts the messages that are activity.
  Instant last_;
  // A ReceiveTimeout in the mailbox, and the counts when it was due.
  const Envelope* queued_ = nullptr;
  uint64_t queued_serial_ = 0;
  uint64_t queued_activity_ = 0;
};

}  // namespace

absl::Status SetReceiveTimeout(ActorContext& context, absl::Duration timeout) {
  FRAKTOR_RETURN_IF_ERROR(context.CheckTurn("SetReceiveTimeout"));
  if (timeout == absl::InfiniteDuration()) {
    CancelReceiveTimeout(context);
    return absl::OkStatus();
  }
  if (timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("receive timeout: the delay is ", absl::FormatDuration(timeout),
                                                   "; it must be positive, or infinite for none"));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckTimerDelay("receive timeout", timeout));
  return AttachmentOf<ReceiveTimeoutState>(context).Set(context, timeout);
}

void CancelReceiveTimeout(ActorContext& context) {
  if (!context.CheckTurn("CancelReceiveTimeout").ok()) return;
  if (auto* const state = FindAttachment<ReceiveTimeoutState>(context)) state->Cancel(context);
}

absl::Duration ReceiveTimeoutOf(ActorContext& context) {
  if (!context.CheckTurn("ReceiveTimeoutOf").ok()) return absl::InfiniteDuration();
  const auto* const state = FindAttachment<ReceiveTimeoutState>(context);
  return state == nullptr ? absl::InfiniteDuration() : state->timeout();
}

}  // namespace fraktor::inline v0
