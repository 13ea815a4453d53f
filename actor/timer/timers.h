// Timers: delayed messages of an actor to itself, each under a key.
//
//   class Clock : public Actor<Clock, Tick> {
//    public:
//     absl::Status PreStart(Context& context) {
//       return Timers(context).StartFixedRate("tick", Tick{}, {.period = absl::Seconds(1)});
//     }
//     void On(Context& context, const Tick&) {
//       if (++ticks_ == 10) Timers(context).Cancel("tick");
//     }
//
//    private:
//     int ticks_ = 0;
//   };
//
// A typed actor has timers for messages that it handles; others do not compile. An untyped actor
// (ActorContext) has timers for any message.
//
// A timer message has no sender. It arrives behind the messages in the mailbox, and no limit of the
// mailbox applies to it.
// - Starting a timer under a key that has one replaces it.
// - The actor never receives a message of a cancelled or replaced timer, even if the message was in
//   the mailbox already.
// - A restart and the end of the actor cancel all timers. PreRestart and PostStop run after that
//   and find none. Timers that a hook starts are cancelled after it.
// - PoisonPill and Kill have their usual effect.
// - A periodic message is copied for each period. A single one may be move-only.
// - A message is never early. It is late by up to the resolution of the toolbox, and until the
//   actor handles it.
// - A fixed rate that lags delivers the missed messages at once, up to kMaxCatchUp. A fixed delay
//   counts from the previous message, and misses none.
// - A periodic timer has at most kMaxCatchUp messages in the mailbox, and skips further ones.
//
// Cost: an entry of a map and a place in the timing wheel per timer; a system message per firing.
//
// Thread safety: the turns of the actor. The object has no state of its own: make one where you
// need it.
#ifndef FRAKTOR_ACTOR_TIMER_TIMERS_H_
#define FRAKTOR_ACTOR_TIMER_TIMERS_H_

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/timer/timer_period.h"
#include "fraktor/utils/time/timing_wheel.h"

namespace fraktor::inline v0 {

// The part that does not depend on the messages of the actor.
class TimersBase {
 public:
  // The number of timers that may be active at once, unless SetLimit changes it.
  static constexpr size_t kDefaultLimit = 1024;

  // False if the key has no timer.
  bool Cancel(std::string_view key);
  void CancelAll();

  // Whether a message may still come. For a single timer, until the message is received.
  bool IsActive(std::string_view key) const;
  size_t size() const;

  // For this actor, until it ends. Timers that are active already stay.
  void SetLimit(size_t limit);

 protected:
  struct NewTimer {
    EnvelopePtr message = nullptr;
    bool is_intercepted = false;
    bool is_periodic = false;
    TimerPeriod period = {};  // For a single timer, the delay.
    Cadence cadence = Cadence::kFixedRate;
  };

  explicit TimersBase(ActorContext& context) : context_(context) {}

  absl::Status Start(std::string_view key, NewTimer timer);

 private:
  class Table;

  ActorContext& context_;
};

// `Timers(context)` deduces the Context.
template <class Context = ActorContext>
class Timers : public TimersBase {
 public:
  explicit Timers(Context& context) : TimersBase(context) {}

  // Delivers the message once, after `delay`; at once if that is not positive. On an error an
  // earlier timer of the key stays: InvalidArgument above kMaxTimerDelay, ResourceExhausted if the
  // actor has too many timers or the toolbox has none left, FailedPrecondition if the worker
  // has no toolbox.
  template <class M>
  absl::Status StartSingle(std::string_view key, M&& message, absl::Duration delay) {
    Check<M>();
    return Start(key, {.message = MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)),
                       .is_intercepted = kIsInterceptedMessage<std::decay_t<M>>,
                       .is_periodic = false,
                       .period = {.period = delay}});
  }

  // Delivers the message periodically. Errors as above, and InvalidArgument for a period that is
  // not positive.
  template <class M>
  absl::Status StartFixedRate(std::string_view key, M&& message, const TimerPeriod& period) {
    return StartPeriodic(key, std::forward<M>(message), period, Cadence::kFixedRate);
  }
  template <class M>
  absl::Status StartFixedDelay(std::string_view key, M&& message, const TimerPeriod& period) {
    return StartPeriodic(key, std::forward<M>(message), period, Cadence::kFixedDelay);
  }

 private:
  // Does not compile if the actor of the context does not handle M.
  template <class M>
  static constexpr void Check() {
    if constexpr (requires { Context::template CheckOwn<M>(); }) Context::template CheckOwn<M>();
  }

  template <class M>
  absl::Status StartPeriodic(std::string_view key, M&& message, const TimerPeriod& period, Cadence cadence) {
    Check<M>();
    static_assert(std::is_copy_constructible_v<std::decay_t<M>>,
                  "a periodic message is copied each time: give it a copy constructor, or hold what cannot be copied "
                  "by std::shared_ptr");
    return Start(key, {.message = MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)),
                       .is_intercepted = kIsInterceptedMessage<std::decay_t<M>>,
                       .is_periodic = true,
                       .period = period,
                       .cadence = cadence});
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TIMER_TIMERS_H_
