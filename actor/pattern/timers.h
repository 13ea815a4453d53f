// Timers of an actor: messages that it gets later, each under a key.
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
// A typed actor has timers for messages that it handles, and others do not compile; one without types (ActorContext) for
// any.
//
// The message comes like any other, from no one, behind what is in the mailbox then, and past any limit of it.
// - Starting a timer under a key that has one replaces it.
// - No message of a timer that was cancelled or replaced is received, also if it was in the mailbox already.
// - All timers of an actor are cancelled when it is restarted, and when it ends. PreRestart and
//   PostStop run after that and find none. Timers that a hook starts are cancelled after it.
// - PoisonPill and Kill do what they do if somebody sends them.
// - A periodic message is copied for each period. A single one may be move-only.
// - Never early; late by as much as the toolbox's resolution, and until the actor gets to it.
// - A fixed rate that was held up brings the missed messages at once, up to kMaxCatchUp. A fixed delay counts from the
//   message before, whenever that came, and misses none.
// - A periodic timer has at most kMaxCatchUp messages in the mailbox; what comes while so many wait is left out.
//
// Costs: an entry of a map and a place in the timing wheel per timer; a system message per firing.
//
// Thread safety: to be made and used in the actor's turns. It holds nothing: make one where it is needed.
#ifndef FRAKTOR_ACTOR_PATTERN_TIMERS_H_
#define FRAKTOR_ACTOR_PATTERN_TIMERS_H_

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/pattern/timer_period.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/utils/time/timing_wheel.h"

namespace fraktor::inline v0 {

// What does not depend on the actor's messages.
class TimersBase {
 public:
  // So many may be active at once, unless SetLimit says otherwise.
  static constexpr size_t kDefaultLimit = 1024;

  // False if there is none under the key.
  bool Cancel(std::string_view key);
  void CancelAll();

  // Whether a message may still come: of a single timer, until it has been received.
  bool IsActive(std::string_view key) const;
  size_t size() const;

  // For this actor, until it ends. Timers that are there stay.
  void SetLimit(size_t limit);

 protected:
  struct NewTimer {
    EnvelopePtr message = nullptr;
    bool is_intercepted = false;
    bool is_periodic = false;
    TimerPeriod period = {};  // Of a single one, the delay.
    Cadence cadence = Cadence::kFixedRate;
  };

  explicit TimersBase(ActorContext& context) : context_(context) {}

  absl::Status Start(std::string_view key, NewTimer timer);

 private:
  class Table;

  ActorContext& context_;
};

// `Timers(context)`: which Context it is need not be said.
template <class Context = ActorContext>
class Timers : public TimersBase {
 public:
  explicit Timers(Context& context) : TimersBase(context) {}

  // The message comes once, after `delay`; at once if that is not positive. Errors, which leave an earlier timer of the
  // key as it is: InvalidArgument beyond kMaxTimerDelay, ResourceExhausted if the actor has too many timers or the
  // toolbox has none left, FailedPrecondition if the scheduler has no timers at all.
  template <class M>
  absl::Status StartSingle(std::string_view key, M&& message, absl::Duration delay) {
    Check<M>();
    return Start(key, {.message = MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)),
                       .is_intercepted = kIsInterceptedMessage<std::decay_t<M>>,
                       .is_periodic = false,
                       .period = {.period = delay}});
  }

  // The message comes again and again. Errors as above, and InvalidArgument for a period that is not positive.
  template <class M>
  absl::Status StartFixedRate(std::string_view key, M&& message, const TimerPeriod& period) {
    return StartPeriodic(key, std::forward<M>(message), period, Cadence::kFixedRate);
  }
  template <class M>
  absl::Status StartFixedDelay(std::string_view key, M&& message, const TimerPeriod& period) {
    return StartPeriodic(key, std::forward<M>(message), period, Cadence::kFixedDelay);
  }

 private:
  // Does not compile if the context knows that its actor does not handle M.
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

#endif  // FRAKTOR_ACTOR_PATTERN_TIMERS_H_
