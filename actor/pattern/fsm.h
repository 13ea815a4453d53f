// Fsm: an actor that is a finite state machine. It has named states with a handler each, data,
// transitions that other actors can subscribe to, and timeouts.
//
//   enum class DoorState { kClosed, kOpen };
//   struct DoorData { int opened = 0; };
//
//   class Door final : public Fsm<DoorState, DoorData> {
//    public:
//     Door() {
//       StartWith(DoorState::kClosed, {});
//       When(DoorState::kClosed, [this](ActorContext&, Envelope& message) {
//         if (!message.Is<Push>()) return Unhandled();
//         return GoTo(DoorState::kOpen).Using({data().opened + 1}).Replying(Opened{});
//       });
//       When(DoorState::kOpen, [this](ActorContext&, Envelope& message) {
//         return message.Is<FsmStateTimeout>() ? GoTo(DoorState::kClosed) : Stay();
//       }, /*timeout=*/absl::Seconds(5));
//     }
//   };
//
//   ActorRef door = system.TrySpawn(PropsOf<Door>(), "door").value();
//   absl::StatusOr<Opened> opened = system.AskAndWait<Opened>(door, Push{}, absl::Seconds(1));
//
// The rules:
// - PreStart makes a transition from the first state to itself: transition handlers and subscribers
//   receive it. An actor that overrides PreStart or PostStop calls the ones here too.
// - GoTo makes a transition, also to the present state. Stay makes none.
// - Within OnTransition, data() is the old data and next_data() the new one; elsewhere next_data()
//   is null.
// - Any message ends the timeout of the state, and the result of its handler begins a new one, also
//   if that is Stay: the timeout of the state, or once that of ForMax. Subscriptions do not.
// - Named timers are those of timers.h, under any key. They are independent of the timeout of a
//   state.
// - Stop ends the actor. OnTermination runs once, with the data of Stop. If the actor ends
//   otherwise, or is restarted, the reason is kShutdown. All timers are cancelled before. An
//   exception of OnTermination is logged, and the actor ends all the same.
// - GoTo to a state without a handler ends the actor. The reason is kFailure, and is logged.
// - A message that the handlers of the state and WhenUnhandled reject is unhandled
//   (ActorContext::Unhandled), and the machine stays.
//
// An actor subscribes by sending SubscribeTransitions. It gets an FsmCurrentState at once, and an
// FsmTransition for each transition. A subscriber that has ended is removed.
//
// Thread safety: the turns of the actor, and its constructor.
#ifndef FRAKTOR_ACTOR_PATTERN_FSM_H_
#define FRAKTOR_ACTOR_PATTERN_FSM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/table/indexed_set.h"

namespace fraktor::inline v0 {

// The message to the handler of a state when the timeout of the state has passed.
struct FsmStateTimeout {};

struct SubscribeTransitions {
  ActorRef subscriber;
};
struct UnsubscribeTransitions {
  ActorRef subscriber;
};

// Messages to subscribers: the present state first, and then each transition.
template <class State>
struct FsmCurrentState {
  ActorRef fsm;
  State state;
};
template <class State>
struct FsmTransition {
  ActorRef fsm;
  State from;
  State to;
};

// The reason of the end of a machine.
struct FsmReason {
  enum class Kind : uint8_t { kNormal, kShutdown, kFailure };

  static FsmReason Normal() { return {}; }
  static FsmReason Shutdown() { return {.kind = Kind::kShutdown}; }
  // `error` is logged. If the message is an ask and the handler has not replied, the asker gets it.
  static FsmReason Failure(absl::Status error) { return {.kind = Kind::kFailure, .error = std::move(error)}; }

  Kind kind = Kind::kNormal;
  absl::Status error = {};
};

namespace fsm_internal {

inline constexpr std::string_view kStateTimeoutKey = "\x01state timeout";

std::string NumberOfState(int64_t number);
absl::Status NoSuchState(ActorContext& context, std::string_view state);
absl::Status NotStarted(ActorContext& context);
void LogFailure(ActorContext& context, const absl::Status& error);
// Logs the exception of OnTermination. Called in a handler that catches everything.
void LogThrown(ActorContext& context);
void SendReply(ActorRef to, EnvelopePtr reply);
// Replies with the error if the message of this turn is an ask.
void FailAsk(ActorContext& context, const absl::Status& error);
bool HasEnded(ActorRef actor);

// The subscribers of an FSM. `kHasEnded` tells whether a subscriber has ended. A test counts its
// calls, and the comparisons of another Ref.
template <class Ref, bool (*kHasEnded)(Ref)>
class Subscribers {
 public:
  explicit Subscribers(size_t max_size) : max_size_(max_size) {}

  // Returns false if `max_size` living subscribers are there already, which takes linear time.
  // Otherwise the cost does not depend on the number of subscribers, on average over many calls.
  bool Add(Ref subscriber) {
    if (subscribers_.Contains(subscriber)) return true;
    if (subscribers_.size() >= forget_at_) ForgetEnded();
    return subscribers_.size() < max_size_ && subscribers_.Insert(subscriber);
  }
  bool Erase(Ref subscriber) { return subscribers_.Erase(subscriber); }
  // Removes the subscribers that have ended, in linear time.
  void ForgetEnded() {
    subscribers_.Keep([](Ref subscriber) { return !kHasEnded(subscriber); });
    forget_at_ = std::clamp(2 * subscribers_.size(), kFirstForget, max_size_);
  }

  bool empty() const { return subscribers_.empty(); }
  auto begin() const { return subscribers_.begin(); }
  auto end() const { return subscribers_.end(); }

 private:
  static constexpr size_t kFirstForget = 16;

  const size_t max_size_;
  IndexedSet<Ref> subscribers_;
  // At this size a new subscriber makes the FSM remove those that have ended. The size doubles with
  // the number of living subscribers, so the cost of a subscription does not depend on their
  // number.
  size_t forget_at_ = kFirstForget;
};

}  // namespace fsm_internal

// State has ==; it is usually an enum. Data is moved, and copied only for the log.
template <class State, class Data>
class Fsm : public ActorInstance {
 public:
  // Further subscribers are refused: their messages are unhandled.
  static constexpr size_t kMaxSubscribers = 10'000;

  // The result of a handler.
  class Next {
   public:
    // Sets the new data.
    Next Using(Data data) && {
      data_.emplace(std::move(data));
      return std::move(*this);
    }
    // Replaces the timeout of the state this time; InfiniteDuration for none.
    Next ForMax(absl::Duration timeout) && {
      timeout_ = timeout;
      return std::move(*this);
    }
    // Replies to the sender when the result is accepted.
    template <class M>
    Next Replying(M&& message) && {
      replies_.push_back(MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)));
      return std::move(*this);
    }

   private:
    friend class Fsm;
    enum class Kind : uint8_t { kUnhandled, kStay, kGoTo, kStop };
    Next(Kind kind, State state) : kind_(kind), state_(std::move(state)) {}

    Kind kind_;
    State state_;
    std::optional<Data> data_;
    std::optional<absl::Duration> timeout_;
    FsmReason reason_;
    std::vector<EnvelopePtr> replies_;
  };

  using Handler = std::function<Next(ActorContext& context, Envelope& message)>;
  using TransitionHandler = std::function<void(ActorContext& context, const State& from, const State& to)>;
  using TerminationHandler =
      std::function<void(ActorContext& context, const FsmReason& reason, const State& state, const Data& data)>;

  // The log entry of one message.
  struct LogEntry {
    State state;               // The state in which the message came.
    std::string_view event;    // The type of the message.
    std::optional<Data> data;  // The data before the message; null if Data cannot be copied.
  };

  absl::Status PreStart(ActorContext& context) override {
    if (!state_.has_value()) return fsm_internal::NotStarted(context);
    Next first(Next::Kind::kGoTo, *state_);
    first.timeout_ = std::exchange(first_timeout_, std::nullopt);
    return Apply(context, std::move(first));
  }

  void PostStop(ActorContext& context) override {
    if (state_.has_value() && !is_terminated_) Terminate(context, FsmReason::Shutdown());
  }

  absl::Status Receive(ActorContext& context, Envelope& message) final {
    if (const auto* subscribe = message.TryAs<SubscribeTransitions>()) return Subscribe(context, *subscribe, message);
    if (const auto* unsubscribe = message.TryAs<UnsubscribeTransitions>()) {
      subscribers_.Erase(unsubscribe->subscriber);
      return absl::OkStatus();
    }
    Timers(context).Cancel(fsm_internal::kStateTimeoutKey);
    Log(message);
    Next next = Unhandled();
    // The loop uses an index because a handler may add others.
    for (size_t i = 0; i < handlers_.size() && next.kind_ == Next::Kind::kUnhandled; ++i) {
      if (handlers_[i].state == *state_) next = handlers_[i].handler(context, message);
    }
    if (next.kind_ == Next::Kind::kUnhandled && when_unhandled_ != nullptr) next = when_unhandled_(context, message);
    if (next.kind_ == Next::Kind::kUnhandled) {
      FRAKTOR_RETURN_IF_ERROR(context.Unhandled(message));
      next.kind_ = Next::Kind::kStay;
    }
    return Apply(context, std::move(next));
  }

  const State& state() const { return *state_; }
  const Data& data() const { return *data_; }

 protected:
  // Sets the first state. Call it in the constructor. `timeout` replaces that of the state once.
  void StartWith(State state, Data data, std::optional<absl::Duration> timeout = std::nullopt) {
    state_.emplace(std::move(state));
    data_.emplace(std::move(data));
    first_timeout_ = timeout;
  }

  // Adds a handler for a state, and the timeout of the state. With several handlers, the first one
  // that does not return Unhandled decides. The last timeout that is not infinite counts.
  void When(State state, Handler handler, absl::Duration timeout = absl::InfiniteDuration()) {
    handlers_.push_back({.state = std::move(state), .handler = std::move(handler), .timeout = timeout});
  }
  // Replaces the timeout that When has set, from the next message on.
  void SetStateTimeout(const State& state, absl::Duration timeout) {
    for (StateHandler& each : handlers_) {
      if (each.state == state) each.timeout = timeout;
    }
  }
  // Handles messages of all states that their own handlers reject.
  void WhenUnhandled(Handler handler) { when_unhandled_ = std::move(handler); }
  // Adds a transition handler. They run in order.
  void OnTransition(TransitionHandler handler) { on_transition_.push_back(std::move(handler)); }
  void OnTermination(TerminationHandler handler) { on_termination_ = std::move(handler); }

  // The results of handlers.
  Next GoTo(State state) const { return Next(Next::Kind::kGoTo, std::move(state)); }
  Next Stay() const { return Next(Next::Kind::kStay, *state_); }
  Next Unhandled() const { return Next(Next::Kind::kUnhandled, *state_); }
  Next Stop(FsmReason reason = FsmReason::Normal()) const {
    Next next(Next::Kind::kStop, *state_);
    next.reason_ = std::move(reason);
    return next;
  }

  // In OnTransition the new data; elsewhere null.
  const Data* next_data() const { return next_data_; }

  // Keeps the last `depth` messages with the states in which they came. The default is 0.
  void KeepLog(size_t depth) {
    log_depth_ = depth;
    log_.clear();
    log_start_ = 0;
  }
  // The oldest is first.
  std::vector<LogEntry> GetLog() const {
    std::vector<LogEntry> entries;
    entries.reserve(log_.size());
    for (size_t i = 0; i < log_.size(); ++i) {
      const LogEntry& entry = log_[(log_start_ + i) % log_.size()];
      entries.push_back({.state = entry.state, .event = entry.event, .data = CopyOf(entry.data)});
    }
    return entries;
  }

  // For error texts.
  virtual std::string NameOf(const State& state) const {
    if constexpr (std::is_enum_v<State>) {
      return fsm_internal::NumberOfState(static_cast<int64_t>(state));
    } else if constexpr (std::is_convertible_v<const State&, std::string_view>) {
      return std::string(std::string_view(state));
    } else {
      return "that";
    }
  }

 private:
  struct StateHandler {
    State state;
    Handler handler;
    absl::Duration timeout;
  };

  static std::optional<Data> CopyOf(const std::optional<Data>& data) {
    if constexpr (std::is_copy_constructible_v<Data>) {
      return data;
    } else {
      return std::nullopt;
    }
  }

  bool Exists(const State& state) const {
    return std::any_of(handlers_.begin(), handlers_.end(),
                       [&](const StateHandler& each) { return each.state == state; });
  }

  absl::Duration TimeoutOf(const State& state) const {
    absl::Duration timeout = absl::InfiniteDuration();
    for (const StateHandler& each : handlers_) {
      if (each.state == state && each.timeout < absl::InfiniteDuration()) timeout = each.timeout;
    }
    return timeout;
  }

  absl::Status Apply(ActorContext& context, Next next) {
    const bool is_stop = next.kind_ == Next::Kind::kStop;
    if (!is_stop && !Exists(next.state_)) {
      const absl::Status error = fsm_internal::NoSuchState(context, NameOf(next.state_));
      fsm_internal::FailAsk(context, error);
      Terminate(context, FsmReason::Failure(error));
      context.Stop();
      return absl::OkStatus();
    }
    for (EnvelopePtr& reply : next.replies_) fsm_internal::SendReply(context.sender(), std::move(reply));
    if (is_stop) {
      if (next.reason_.kind == FsmReason::Kind::kFailure && next.replies_.empty()) {
        fsm_internal::FailAsk(context, next.reason_.error);
      }
      if (next.data_.has_value()) data_ = std::move(next.data_);
      Terminate(context, next.reason_);
      context.Stop();
      return absl::OkStatus();
    }
    if (next.kind_ == Next::Kind::kGoTo) {
      // A handler may throw.
      struct Forget {
        const Data*& data;
        ~Forget() { data = nullptr; }
      };
      const Forget forget{next_data_};
      next_data_ = next.data_.has_value() ? &*next.data_ : &*data_;
      for (size_t i = 0; i < on_transition_.size(); ++i) on_transition_[i](context, *state_, next.state_);
      Publish(context, next.state_);
    }
    state_ = std::move(next.state_);
    if (next.data_.has_value()) data_ = std::move(next.data_);
    const absl::Duration timeout = next.timeout_.value_or(TimeoutOf(*state_));
    if (timeout == absl::InfiniteDuration()) return absl::OkStatus();
    return Timers(context).StartSingle(fsm_internal::kStateTimeoutKey, FsmStateTimeout{}, timeout);
  }

  absl::Status Subscribe(ActorContext& context, const SubscribeTransitions& subscribe, Envelope& message) {
    const ActorRef subscriber = subscribe.subscriber;
    if (fsm_internal::HasEnded(subscriber)) return absl::OkStatus();
    if (!subscribers_.Add(subscriber)) return context.Unhandled(message);
    context.Tell(subscriber, FsmCurrentState<State>{.fsm = context.self(), .state = *state_});
    return absl::OkStatus();
  }

  void Publish(ActorContext& context, const State& to) {
    if (subscribers_.empty()) return;
    subscribers_.ForgetEnded();
    for (const ActorRef subscriber : subscribers_) {
      context.Tell(subscriber, FsmTransition<State>{.fsm = context.self(), .from = *state_, .to = to});
    }
  }

  void Terminate(ActorContext& context, const FsmReason& reason) {
    is_terminated_ = true;
    Timers(context).CancelAll();
    if (reason.kind == FsmReason::Kind::kFailure) fsm_internal::LogFailure(context, reason.error);
    if (on_termination_ == nullptr) return;
    try {
      on_termination_(context, reason, *state_, *data_);
    } catch (...) {
      // The machine ends all the same.
      fsm_internal::LogThrown(context);
    }
  }

  void Log(const Envelope& message) {
    if (log_depth_ == 0) return;
    LogEntry entry{.state = *state_, .event = message.type()->name(), .data = CopyOf(data_)};
    if (log_.size() < log_depth_) {
      log_.push_back(std::move(entry));
    } else {
      log_[log_start_] = std::move(entry);
      log_start_ = (log_start_ + 1) % log_depth_;
    }
  }

  // Handlers keep their addresses while they run, also if one of them adds others.
  std::deque<StateHandler> handlers_;
  Handler when_unhandled_;
  std::deque<TransitionHandler> on_transition_;
  TerminationHandler on_termination_;
  // Empty before StartWith.
  std::optional<State> state_;
  std::optional<Data> data_;
  std::optional<absl::Duration> first_timeout_;
  const Data* next_data_ = nullptr;
  bool is_terminated_ = false;
  fsm_internal::Subscribers<ActorRef, &fsm_internal::HasEnded> subscribers_{kMaxSubscribers};
  size_t log_depth_ = 0;
  size_t log_start_ = 0;  // The index of the oldest entry, once the log is full.
  std::vector<LogEntry> log_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_FSM_H_
