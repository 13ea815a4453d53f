// SystemTimers: sends a message to any actor, or calls a function, later or periodically.
//
//   SystemTimers& timers = SystemTimers::Of(system);
//   Cancellable reminder = timers.StartSingle(absl::Seconds(5), greeter, Greet{"again"}).value();
//   timers.StartFixedRate({.period = absl::Seconds(1)}, [&gauge] { gauge.Update(); }).value();
//   const bool is_off = reminder.Cancel();              // true once, and only if it has not happened yet
//
// Timers (timers.h) are better for an actor's own messages: they end with the actor, and a
// cancelled timer never delivers.
//
// - A delivery is never early, and late by up to the resolution of the toolbox.
// - A fixed rate counts from the time when a delivery was due, and makes up for missed ones, up to
//   kMaxCatchUp at once. A fixed delay counts from the end of the previous run.
// - A periodic timer ends when the function throws, which is logged, or when the actor has ended.
//   It goes on across restarts of the actor.
// - Functions run on a worker, between actors. They must be short and must not block. To do more,
//   send a message.
// - The end of the system cancels all timers, refuses new ones, and waits for functions that are
//   running: none runs after WhenTerminated is ready or Shutdown has returned. A function may call
//   Terminate; its run is then the last one.
//
// Thread safety: any thread, also from a running function. Several threads may use copies of a
// Cancellable at once. It may outlive the system, and then cancels nothing. With a toolbox without
// threads, everything belongs to the thread that pumps it.
#ifndef FRAKTOR_ACTOR_TIMER_SYSTEM_TIMERS_H_
#define FRAKTOR_ACTOR_TIMER_SYSTEM_TIMERS_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/timer/timer_period.h"
#include "fraktor/utils/time/timing_wheel.h"

namespace fraktor::inline v0 {

// The handle of one system timer.
class Cancellable {
 public:
  // Refers to no entry.
  Cancellable() = default;

  // True if this call prevents all further runs. False if the only run has happened or is
  // happening, or the timer has ended or was cancelled before.
  bool Cancel();
  // Whether a Cancel returned true, or the system ended first.
  bool IsCancelled() const;

 private:
  friend class SystemTimers;
  struct Task;
  class Core;
  explicit Cancellable(std::shared_ptr<Task> task) : task_(std::move(task)) {}

  std::shared_ptr<Task> task_;
};

struct SystemTimerOptions {
  // The sender of the messages.
  ActorRef sender = {};
  // Called once by the thread that cancels the timer, also when the system ends first. The system
  // logs an exception of it.
  absl::AnyInvocable<void()> on_cancel = nullptr;
};

// Each system has one: see Of.
class SystemTimers {
 public:
  explicit SystemTimers(ActorSystem& system);
  ~SystemTimers();
  SystemTimers(const SystemTimers&) = delete;
  SystemTimers& operator=(const SystemTimers&) = delete;

  static SystemTimers& Of(ActorSystem& system) { return system.Extension<SystemTimers>(); }

  // All calls return InvalidArgument for a delay or period above kMaxTimerDelay, or a period that
  // is not positive; ResourceExhausted if the toolbox has no timer left; FailedPrecondition when
  // the system ends. A delay that is not positive means at once, but never within the call.

  absl::StatusOr<Cancellable> StartSingle(absl::Duration delay, absl::AnyInvocable<void()> function,
                                          SystemTimerOptions options = {}) {
    return Once(delay, FunctionAction(std::move(function)), std::move(options));
  }
  absl::StatusOr<Cancellable> StartFixedRate(const TimerPeriod& period, absl::AnyInvocable<void()> function,
                                             SystemTimerOptions options = {}) {
    return Periodically(period, Cadence::kFixedRate, FunctionAction(std::move(function)), std::move(options));
  }
  absl::StatusOr<Cancellable> StartFixedDelay(const TimerPeriod& period, absl::AnyInvocable<void()> function,
                                              SystemTimerOptions options = {}) {
    return Periodically(period, Cadence::kFixedDelay, FunctionAction(std::move(function)), std::move(options));
  }

  // A message that is sent once may be move-only. A periodic one is copied.
  template <class M>
  absl::StatusOr<Cancellable> StartSingle(absl::Duration delay, ActorRef to, M&& message,
                                          SystemTimerOptions options = {}) {
    return Once(delay, SingleMessageAction(to, Make(options.sender, std::forward<M>(message)), kIsIntercepted<M>),
                std::move(options));
  }
  template <class M>
  absl::StatusOr<Cancellable> StartFixedRate(const TimerPeriod& period, ActorRef to, M&& message,
                                             SystemTimerOptions options = {}) {
    return Repeat(period, Cadence::kFixedRate, to, std::forward<M>(message), std::move(options));
  }
  template <class M>
  absl::StatusOr<Cancellable> StartFixedDelay(const TimerPeriod& period, ActorRef to, M&& message,
                                              SystemTimerOptions options = {}) {
    return Repeat(period, Cadence::kFixedDelay, to, std::forward<M>(message), std::move(options));
  }

  // The same for typed references: a message that the actor does not handle does not compile.
  template <class Ref, class M>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::StatusOr<Cancellable> StartSingle(absl::Duration delay, const Ref& to, M&& message,
                                          SystemTimerOptions options = {}) {
    Ref::template Check<M>();
    return StartSingle(delay, to.untyped(), std::forward<M>(message), std::move(options));
  }
  template <class Ref, class M>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::StatusOr<Cancellable> StartFixedRate(const TimerPeriod& period, const Ref& to, M&& message,
                                             SystemTimerOptions options = {}) {
    Ref::template Check<M>();
    return StartFixedRate(period, to.untyped(), std::forward<M>(message), std::move(options));
  }
  template <class Ref, class M>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::StatusOr<Cancellable> StartFixedDelay(const TimerPeriod& period, const Ref& to, M&& message,
                                              SystemTimerOptions options = {}) {
    Ref::template Check<M>();
    return StartFixedDelay(period, to.untyped(), std::forward<M>(message), std::move(options));
  }

 private:
  // The action of a timer. It returns false if it must not run again.
  using Action = absl::AnyInvocable<bool()>;

  template <class M>
  static constexpr bool kIsIntercepted = kIsInterceptedMessage<std::decay_t<M>>;

  template <class M>
  static EnvelopePtr Make(ActorRef sender, M&& message) {
    return MakeEnvelope<std::decay_t<M>>(sender, std::forward<M>(message));
  }
  template <class M>
  absl::StatusOr<Cancellable> Repeat(const TimerPeriod& period, Cadence cadence, ActorRef to, M&& message,
                                     SystemTimerOptions options) {
    static_assert(std::is_copy_constructible_v<std::decay_t<M>>,
                  "a message that is repeated is copied each time: give it a copy constructor");
    return Periodically(period, cadence,
                        MessageAction(to, Make(options.sender, std::forward<M>(message)), kIsIntercepted<M>),
                        std::move(options));
  }

  static Action FunctionAction(absl::AnyInvocable<void()> function);
  static Action SingleMessageAction(ActorRef to, EnvelopePtr message, bool is_intercepted);
  static Action MessageAction(ActorRef to, EnvelopePtr message, bool is_intercepted);
  absl::StatusOr<Cancellable> Once(absl::Duration delay, Action action, SystemTimerOptions options);
  absl::StatusOr<Cancellable> Periodically(const TimerPeriod& period, Cadence cadence, Action action,
                                           SystemTimerOptions options);

  const std::shared_ptr<Cancellable::Core> core_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TIMER_SYSTEM_TIMERS_H_
