// InvokerTest: a fixture for tests of MessageInvoker. It has one worker, which the test drives: the
// test spawns actors (SpawnLogger), sends (Tell), runs one turn (Run), and compares the log.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_INVOKER_FIXTURE_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_INVOKER_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor::actor_internal {

struct Number {
  int value = 0;
};
struct Note {
  std::string text;
};
// System messages of the tests.
struct Suspend {};
struct Resume {};
struct StopNow {};
struct Mark {
  int value = 0;
};

// A message to a Doer: a function that the Doer calls.
struct Do {
  std::function<absl::Status(ActorContext&)> what;
};

class NoWaker : public WorkerWaker {
 public:
  void WakeWorker(WorkerIndex) override {}
};

// An actor made of a function.
class Scripted final : public ActorInstance {
 public:
  using Script = std::function<absl::Status(ActorContext&, Envelope&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override { return script_(context, message); }

 private:
  Script script_;
};

// An actor that calls the functions that it gets, and logs the numbers and the replies.
class Doer final : public ActorInstance {
 public:
  using Replied = std::function<absl::Status(ActorContext&, ActorRef, absl::StatusOr<Envelope*>)>;

  explicit Doer(std::vector<std::string>& log, std::string name = {}, Replied replied = {})
      : log_(log), name_(std::move(name)), replied_(std::move(replied)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Do>()) return message.As<Do>().what(context);
    log_.push_back(name_ + std::to_string(message.As<Number>().value));
    return absl::OkStatus();
  }

  absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) override {
    if (replied_) return replied_(context, ask, answer);
    log_.push_back(name_ + (answer.ok() ? "reply " + std::to_string((*answer)->As<Number>().value)
                                        : absl::StatusCodeToString(answer.status().code())));
    return absl::OkStatus();
  }

 private:
  std::vector<std::string>& log_;
  const std::string name_;
  const Replied replied_;
};

// An ask whose error a test reads.
class ErrorOfAsk final : public AskCompletion {
 public:
  explicit ErrorOfAsk(absl::Duration waits) : AskCompletion(MessageTypeOf<Number>(), waits) {}

  void TakeReply(Envelope& /*reply*/) noexcept override {}
  void Fail(absl::Status error) noexcept override { text = std::string(error.message()); }

  std::string text;
};

struct InvokerTestOptions {
  MiddlewareChain middleware = {};
  WorkerMetrics* metrics = nullptr;
  // Whether foreign threads may block until a mailbox has room.
  bool threaded = false;
};

// One worker, which the test drives. The lifecycle logs the events of its actors.
class InvokerTest : public testing::Test, protected ActorLifecycle {
 protected:
  explicit InvokerTest(const InvokerTestOptions& options = {})
      : mailboxes_(options.threaded),
        invoker_(*this, options.middleware),
        number_(DispatcherTable::Open(coordinator_).value()),
        worker_({.coordinator = coordinator_,
                 .lifecycle = *this,
                 .index = 0,
                 .dispatcher = number_,
                 .toolbox = toolbox_.get(),
                 .slots = &mailboxes_.slots(),
                 .promises = &mailboxes_.promises(),
                 .metrics = options.metrics}) {
    worker_.AdoptThread();
  }

  // Slots go back to the process idle and empty.
  ~InvokerTest() override {
    children_have_ended_ = true;
    for (ActorRef ref : spawned_) TellSystem(ref, MakeEnvelope<StopNow>(ActorRef()));
    RunAll();
    DispatcherTable::Close(number_);
  }

  using ActorLifecycle::Spawn;  // Not hidden by those below: newer compilers warn of that.
  // Spawns an actor with a mailbox of these options; null means the default ones.
  ActorRef Spawn(std::unique_ptr<ActorInstance> instance, const MailboxOptions* options = nullptr, uint8_t gate = 0) {
    instances_.push_back(std::move(instance));
    ActorSlot* const slot =
        mailboxes_
            .Register({.instance = instances_.back().get(), .dispatcher = number_, .options = options, .gate = gate})
            .value();
    MailboxRegistry::LetGo(*slot);
    spawned_.push_back(slot->ref());
    return spawned_.back();
  }
  ActorRef Spawn(Scripted::Script script, const MailboxOptions* options = nullptr) {
    return Spawn(std::make_unique<Scripted>(std::move(script)), options);
  }

  // Spawns an actor that logs the numbers that it gets.
  ActorRef SpawnLogger(const MailboxOptions* options = nullptr) {
    return Spawn(
        [this](ActorContext&, Envelope& message) {
          log_.push_back(std::to_string(message.As<Number>().value));
          return absl::OkStatus();
        },
        options);
  }

  ActorRef SpawnDoer(std::string name = {}, const MailboxOptions* options = nullptr, Doer::Replied replied = {}) {
    return Spawn(std::make_unique<Doer>(log_, std::move(name), std::move(replied)), options);
  }
  // Sends a function to a Doer, as a foreign thread. `what` returns a status or nothing.
  template <class What>
  static void Order(ActorRef doer, What what) {
    Tell(doer, Do{[what = std::move(what)](ActorContext& context) -> absl::Status {
           if constexpr (std::is_void_v<decltype(what(context))>) {
             what(context);
             return absl::OkStatus();
           } else {
             return what(context);
           }
         }});
  }

  static void StopIt(ActorRef ref) { TellSystem(ref, MakeEnvelope<StopNow>(ActorRef())); }
  static void ResumeIt(ActorRef ref) { TellSystem(ref, MakeEnvelope<Resume>(ActorRef())); }

  // Runs one turn of an actor whose mailbox the test holds, as WorkerExecutor does.
  InvokeResult RunHeld(ActorSlot& slot, uint32_t budget) {
    const WorkerScope scope(worker_);
    worker_.slice.Begin(budget, 0);
    const InvokeResult result = invoker_.Run(worker_, slot);
    worker_.outbox.Flush();
    if (result == InvokeResult::kYielded) worker_.Register(slot, ReadyQueueCoordinator::Placement::kYield);
    return result;
  }

  // Runs the next ready actor, which must be `ref`.
  InvokeResult Run(ActorRef ref, uint32_t budget = 64) {
    ReadyNode* node = nullptr;
    EXPECT_EQ(coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)), 1u);
    EXPECT_EQ(node, ref.slot());
    return RunHeld(*ref.slot(), budget);
  }

  void RunAll() {
    ReadyNode* node = nullptr;
    while (coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)) == 1) RunHeld(static_cast<ActorSlot&>(*node), 64);
  }

  bool AnythingReady() { return coordinator_.ReadyCountHint() > 0; }

  // Advances the time and fires the timers that are due.
  void Advance(absl::Duration duration) {
    ASSERT_TRUE(toolbox_->RunFor(duration).ok());
    RunAll();
  }

  absl::Status OnStart(ActorSlot&) override {
    log_.push_back("start");
    return start_status_;
  }
  void OnSystemMessage(Turn turn, Envelope& message) override {
    TurnState& state = turn.state();
    if (message.Is<Suspend>()) {
      state.gate |= static_cast<uint8_t>(Gate::kUserDefined);
    } else if (message.Is<Resume>()) {
      state.gate &= static_cast<uint8_t>(~kSuspendingGates);
      state.failures = 0;
    } else if (message.Is<StopNow>()) {
      state.gate |= static_cast<uint8_t>(Gate::kStopping);
    } else {
      log_.push_back("system " + std::to_string(message.As<Mark>().value));
    }
  }
  void OnFailure(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message) override {
    failures_.push_back(error);
    causes_.push_back(cause);
    failed_on_.push_back(ValueOf(message));
    if (on_failure_) on_failure_(turn.slot);
  }
  bool StopChildrenFirst(ActorSlot&) override { return children_have_ended_; }
  void OnEnding(Turn turn) override {
    log_.push_back("ending");
    if (on_ending_) on_ending_(ActorContext::Of(turn.slot));
    MailboxRegistry::Unregister(turn.slot);
  }
  void OnEnded(Turn turn) override {
    EXPECT_TRUE(turn.slot.mailbox.inbox.IsIdle());
    log_.push_back("ended");
    mailboxes_.Release(turn.slot);
  }
  void OnDeadLetter(NodeCache&, EnvelopePtr envelope, utils_internal::TableSlot*, DeadLetterReason reason) override {
    dead_.emplace_back(ValueOf(envelope.get()), reason);
    if (on_dead_letter_) on_dead_letter_(*envelope);
  }

  // Returns the value of a Number, -1 for another message, -2 for null.
  static int ValueOf(const Envelope* message) {
    if (message == nullptr) return -2;
    return message->Is<Number>() ? message->As<Number>().value : -1;
  }

  using Log = std::vector<std::string>;
  using Dead = std::vector<std::pair<int, DeadLetterReason>>;

  NoWaker waker_;
  MutexCoordinator coordinator_{1, waker_};
  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  MailboxRegistry mailboxes_;
  MessageInvoker invoker_;
  uint16_t number_;
  ActorWorker worker_;
  std::vector<std::unique_ptr<ActorInstance>> instances_;
  std::vector<ActorRef> spawned_;
  Log log_;
  std::vector<absl::Status> failures_;
  std::vector<FailureCause> causes_;
  std::vector<int> failed_on_;
  Dead dead_;
  // Further steps of the lifecycle, which a test can set.
  std::function<void(ActorSlot&)> on_failure_;
  std::function<void(ActorContext&)> on_ending_;
  std::function<void(const Envelope&)> on_dead_letter_;
  bool children_have_ended_ = true;
  absl::Status start_status_;
};

}  // namespace fraktor::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_INVOKER_FIXTURE_H_
