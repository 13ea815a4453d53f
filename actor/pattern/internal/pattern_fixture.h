// The fixture of the tests of patterns: a system in virtual time, and an actor that a test scripts.
#ifndef FRAKTOR_ACTOR_PATTERN_INTERNAL_PATTERN_FIXTURE_H_
#define FRAKTOR_ACTOR_PATTERN_INTERNAL_PATTERN_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::pattern_internal {

// Virtual time whose periodic timers fire only at every n-th period, and say so: a clock that lags.
class CoarseToolbox final : public PumpedToolbox {
 public:
  explicit CoarseToolbox(int held_up = 1)
      : PumpedToolbox(1, Limits{"coarse", 16, 1000, 1'000'000}, absl::UnixEpoch(), nullptr), held_up_(held_up) {}

  Cadence last_cadence() const { return last_cadence_; }

 protected:
  size_t PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) override {
    return timer_due ? ordinals.size() : 0;
  }
  absl::StatusOr<TimerId> ArmPeriodic(Instant first, absl::Duration period, Cadence cadence, TimerTask task) override {
    last_cadence_ = cadence;
    if (held_up_ == 1) return PumpedToolbox::ArmPeriodic(first, period, cadence, std::move(task));
    return PumpedToolbox::ArmPeriodic(first, held_up_ * period, cadence,
                                      [this, task = std::move(task)](const TimerFiring& firing) mutable {
                                        task({.id = firing.id,
                                              .deadline = firing.deadline,
                                              .periods = firing.periods * static_cast<uint64_t>(held_up_)});
                                      });
  }

 private:
  const int held_up_;
  Cadence last_cadence_ = Cadence::kFixedRate;
};

// A message with a function that runs in the actor's turn.
struct Do {
  std::function<absl::Status(ActorContext&)> what;
};

inline Task<void> WaitFor(ActorContext& context, absl::Duration duration) {
  auto delay = context.Delay(duration);
  const absl::Status over = co_await delay;
  EXPECT_TRUE(over.ok()) << over;
}

class WaitingHandler final : public actor_internal::AwaitingHandler {
 public:
  explicit WaitingHandler(Task<void> task) : running_(std::move(task), static_cast<TaskDriver&>(*this)) {}

  bool Step() override { return running_.Resume(); }
  absl::Status Finish(ActorContext&) override { return running_.TakeResult(); }

 private:
  RunningTask<void> running_;
};

// Makes the handler wait this long, while the actor handles no other message.
inline absl::Status HoldUp(ActorContext& context, absl::Duration duration) {
  return actor_internal::RunHandler(context, std::make_unique<WaitingHandler>(WaitFor(context, duration)),
                                    actor_internal::AwaitMode::kExclusive);
}

// The handlers of a scripted actor beside Do. The actor and its restarts share them.
struct Script {
  std::function<absl::Status(ActorContext&, Envelope&)> receive = nullptr;
  std::function<absl::Status(ActorContext&)> start = nullptr;
  std::function<void(ActorContext&)> stop = nullptr;
  std::function<void(ActorContext&, Envelope*)> pre_restart = nullptr;
};

class ScriptedActor final : public ActorInstance {
 public:
  explicit ScriptedActor(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Do>()) {
      const Do action = message.Take<Do>();
      return action.what(context);
    }
    return script_->receive == nullptr ? context.Unhandled(message) : script_->receive(context, message);
  }
  absl::Status PreStart(ActorContext& context) override {
    return script_->start == nullptr ? absl::OkStatus() : script_->start(context);
  }
  void PostStop(ActorContext& context) override {
    if (script_->stop != nullptr) script_->stop(context);
  }
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override {
    if (script_->pre_restart != nullptr) script_->pre_restart(context, message);
    return ActorInstance::PreRestart(context, reason, message);
  }

 private:
  const std::shared_ptr<Script> script_;
};

class KeptLog final : public LogSink {
 public:
  void Write(const LogRecord& record) override { lines.push_back(FormatLogRecord(record)); }

  std::vector<std::string> lines;
};

class PatternTest : public ::testing::Test {
 protected:
  using Log = std::vector<std::string>;

  PatternTest() : PatternTest(std::make_unique<CoarseToolbox>()) {}
  explicit PatternTest(std::unique_ptr<CoarseToolbox> toolbox) : toolbox_(std::move(toolbox)) {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.log_sink = &kept_log_;
    system_ = ActorSystem::Create(options).value();
  }

  void RunFor(absl::Duration duration) {
    const absl::Status ran = toolbox_->RunFor(duration);
    ASSERT_TRUE(ran.ok()) << ran;
  }
  void Settle() { RunFor(absl::ZeroDuration()); }

  ActorRef Spawn(Script script, const PropsOptions& options = {}) {
    return system_->TrySpawn(*MakeProps<ScriptedActor>(options, std::make_shared<Script>(std::move(script)))).value();
  }

  // Runs a function in the actor's turn now. An error is a failure of the actor.
  template <class What>
  void In(ActorRef actor, What what) {
    bool done = false;
    Tell(actor, Do{[&](ActorContext& context) -> absl::Status {
           done = true;
           if constexpr (std::is_void_v<decltype(what(context))>) {
             what(context);
             return absl::OkStatus();
           } else {
             return what(context);
           }
         }});
    Settle();
    EXPECT_TRUE(done) << "the actor did not run";
  }

  bool IsAlive(ActorRef actor) const { return actor.IsCurrent(); }
  // The sum for all actors.
  double MailboxDepth() {
    double depth = 0;
    for (const Metric& metric : system_->hub().Snapshot(toolbox_->Now()).metrics) {
      if (metric.name == kMailboxDepth) depth += metric.value;
    }
    return depth;
  }
  uint64_t dead_letters(DeadLetterReason reason) { return system_->dead_letters().count(reason); }
  // Adds a line with the seconds since the start: "2: tick".
  void Note(std::string_view text) {
    const double seconds = absl::ToDoubleSeconds(toolbox_->Now() - Instant());
    log_.push_back(absl::StrCat(seconds, ": ", std::string(text)));
  }
  Log Take() { return std::exchange(log_, {}); }

  const std::unique_ptr<CoarseToolbox> toolbox_;
  KeptLog kept_log_;
  Log log_;  // Actors write to it until they end.
  std::unique_ptr<ActorSystem> system_;
};

}  // namespace fraktor::inline v0::pattern_internal

#endif  // FRAKTOR_ACTOR_PATTERN_INTERNAL_PATTERN_FIXTURE_H_
