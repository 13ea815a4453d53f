// MessageInvoker: runs an actor. It takes messages out of the mailbox and calls the actor with
// them, until the mailbox is empty or the worker's slice is over (a number of messages, or a time).
// The workers of one WorkerExecutor share an invoker; a worker calls Run for an actor whose mailbox
// it holds.
//
// Its rules:
// - System messages go before user messages, also before the next one of a long list. They count
//   against the budget: an actor with very many of them yields, and continues with them in its next
//   turn. If replies and wakes use up the budget of a turn, some of the waiting user messages are
//   handled before the next turn, at least one.
// - An actor starts (PreStart, or PostRestart of a new instance) before anything else reaches it.
// - A suspended actor gets system messages only. It is parked: user messages wait and do not
//   schedule it.
// - A message that was sent to an earlier actor of the slot is a dead letter.
// - A handler that returns an error, or throws, has failed: the actor is suspended and the failure
//   goes to the lifecycle. The decision of the supervisor comes back as a system message. The
//   invoker never waits for it.
// - Between "the mailbox is empty" and "the actor is idle" no message is lost: the word of the
//   inbox decides.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_MESSAGE_INVOKER_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_MESSAGE_INVOKER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0::actor_internal {

class MessageInvoker final : private HandlerEndListener {
 public:
  // `lifecycle` must outlive the invoker.
  explicit MessageInvoker(ActorLifecycle& lifecycle, MiddlewareChain middleware = {})
      : lifecycle_(lifecycle),
        middleware_(std::move(middleware)),
        run_gate_(middleware_.empty() ? 0 : static_cast<uint8_t>(Gate::kMiddleware)) {}

  // Runs an actor whose mailbox the caller holds, until the worker's slice is over, but for at
  // least one message. The caller still holds the mailbox only if the result is kYielded. The
  // outbox of the worker has the actor to run next.
  InvokeResult Run(ActorWorker& worker, ActorSlot& slot);

  // Reply promises call these in the asker's turn, to call the asker's code.
  static void HandleAnswer(Turn turn, ActorRef ask, Envelope& answer);
  static void HandleAskFailure(Turn turn, ActorRef ask, absl::Status error);
  static void CallForReply(Turn turn, const MessageType* asked, Envelope* answer,
                           absl::FunctionRef<absl::Status()> code);

  // Call it in the actor's turn. The actor fails on `message`, or on none, because of `cause`.
  static void Fail(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message);
  // Calls code of an actor. An exception becomes an error, and `cause`, unless it is null, becomes
  // kThrown or kThrownUnknown. Otherwise `cause` does not change.
  static absl::Status Call(std::string_view what, absl::FunctionRef<absl::Status()> code,
                           FailureCause* cause = nullptr);

 private:
  // The result of one step of an actor whose gate has a bit set.
  enum class Step : uint8_t { kGoOn, kHandled, kIdle, kParked, kEnded };

  void BeginTurn(Turn turn) const;
  static InvokeResult EndTurn(ActorWorker& worker, uint32_t handled, InvokeResult kind);
  static InvokeResult EndShortTurn(Turn turn, uint32_t handled);
  static void WriteBack(Turn turn);
  static InvokeResult Yield(Turn turn, uint32_t handled);
  uint32_t HandleSystemMessages(Turn turn, uint32_t used);
  void TellMiddleware(Turn turn, Envelope& message);
  uint32_t HandleUserShare(Turn turn);
  static bool HasOnlySignals(Turn turn);
  // Handles a system message of the scheduler that is no reply. Returns the number of messages that
  // it counts as; 0 if the message is another one. `used` messages of the budget are used already.
  uint32_t HandleSignal(Turn turn, Envelope& message, uint32_t used);
  // The same for the signals that also reach actors without an extension.
  static uint32_t HandleAnybodysSignal(Turn turn, Envelope& message);
  Step StepGated(Turn turn);
  Step HandleGated(Turn turn, Envelope* envelope);
  Step Park(Turn turn);
  static bool HasOrder(const ActorSlot& slot);
  static Envelope* NextOrdered(Turn turn);
  void Start(Turn turn);
  bool Handle(Turn turn, Envelope* envelope);
  bool HandleTraced(Turn turn, Envelope* envelope);
  bool HandleThroughMiddleware(Turn turn, Envelope* envelope);
  // Calls AfterReceive of the first `entered` middlewares, in reverse order. Returns `status`, or
  // the first failure of a middleware if `status` is OK.
  absl::Status CallAfter(TurnState& state, Envelope& message, size_t entered, absl::Status status) const;
  absl::Status OnHandlerEnd(TurnState& state, Envelope& message, absl::Status status) override;
  void Suspend(Turn turn, const MiddlewareFlow& flow);
  bool HandleFlagged(Turn turn, Envelope* envelope);
  static void ResumeHandlers(Turn turn);
  static void ResumeInNextTurn(Turn turn);
  // Destroys the waiting handlers, in the actor's turn. The asks that they would have answered
  // fail.
  void CancelHandlers(Turn turn);
  void End(Turn turn);
  static void DeadLetters(Turn turn, EnvelopeList list);
  // The same for an error that code of the actor has just returned or thrown. The turn knows the
  // cause.
  static void Fail(Turn turn, const absl::Status& error, Envelope* message);

  ActorLifecycle& lifecycle_;
  const MiddlewareChain middleware_;
  const uint8_t run_gate_;
};

// Completions of asks call it in the asker's turn, to call the asker's code. If the code throws or
// returns an error, the actor fails, on `answer` if there is one.
void CallForReply(const MessageType* asked, Envelope* answer, absl::FunctionRef<absl::Status()> code);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_MESSAGE_INVOKER_H_
