#include "fraktor/utils/future/with_timeout.h"

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {

using future_internal::FutureWord;

namespace {

// The timer completes the future, and the future cancels the timer when it is dropped before.
class SleepSource final : public FutureSource<void> {
 public:
  explicit SleepSource(RuntimeToolbox& toolbox) : toolbox_(toolbox) {}

  // Called once, when the future has its owner.
  absl::Status Arm(absl::Duration duration) {
    absl::StatusOr<TimerId> timer = toolbox_.ScheduleAfter(duration, Alarm(*this));
    if (!timer.ok()) return timer.status();
    timer_ = *timer;
    is_armed_ = true;
    return absl::OkStatus();
  }

  bool IsReady() const override { return word_.IsReady(); }
  bool Poll(const Waker& waker) override { return word_.Poll(waker); }
  bool StopWaking() override { return word_.StopWaking(); }
  bool EndWaitIfReady(bool& wake_is_owed) override { return word_.EndWaitIfReady(wake_is_owed); }
  bool Cancel() override {
    if (!word_.Cancel()) return false;
    LetGo();
    return true;
  }
  absl::Status Take() override { return word_.WasCancelled() ? future_internal::FutureCancelledError() : result_; }
  void Drop() noexcept override {
    // The word is complete if the timer has fired, or the toolbox has ended.
    if (word_.Cancel()) LetGo();
    if (word_.ReleaseEndedFuture()) delete this;
  }

 private:
  // The task of the timer. A toolbox that ends destroys it unrun.
  class Alarm {
   public:
    explicit Alarm(SleepSource& source) : source_(&source) {}
    Alarm(Alarm&& other) noexcept : source_(std::exchange(other.source_, nullptr)) {}
    Alarm& operator=(Alarm&&) = delete;
    ~Alarm() {
      if (source_ != nullptr) source_->Complete(future_internal::PromiseDroppedError());
    }
    void operator()() { std::exchange(source_, nullptr)->Complete(absl::OkStatus()); }

   private:
    SleepSource* source_;
  };

  ~SleepSource() override = default;

  // By the side of the timer, once.
  void Complete(absl::Status result) {
    result_ = std::move(result);
    if (word_.Complete().is_last) delete this;
  }
  // By the side of the future.
  void LetGo() {
    if (std::exchange(is_armed_, false)) toolbox_.CancelTimer(timer_);
  }

  RuntimeToolbox& toolbox_;
  FutureWord<> word_;
  TimerId timer_;
  bool is_armed_ = false;
  // The timer's side writes it before it completes the word; the future's side reads it afterwards.
  absl::Status result_;
};

}  // namespace

Future<void> SleepFor(RuntimeToolbox& toolbox, absl::Duration duration) {
  auto* const source = new SleepSource(toolbox);
  Future<void> future = Future<void>::FromSource(*source);
  if (absl::Status armed = source->Arm(duration); !armed.ok()) return MakeReadyFuture<void>(std::move(armed));
  return future;
}

absl::Status with_timeout_internal::NotInTime(absl::Duration timeout) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, FutureTimeoutKind::kNotInTime,
                   absl::StrCat("a future was not ready within ", absl::FormatDuration(timeout)));
}

}  // namespace fraktor::inline v0
