// Runs an actor: takes messages out of its mailbox and gives them to it, until the mailbox is empty
// or the worker's slice is over: so many messages, or so much time.
//
//   MessageInvoker invoker(lifecycle);
//   worker.slice.Begin(64, 0);
//   InvokeResult result = invoker.Run(worker, slot);
//   worker.outbox.Flush();
//
// The rules that it keeps:
// - System messages go before user messages, also before the next one of a long list. They count
//   against the budget: an actor with very many of them yields, and goes on with them in its next
//   turn.
// - A suspended actor gets system messages only. It is parked: user messages gather, and do not make it ready.
// - A message that was sent to an earlier actor of the slot is a dead letter.
// - A handler that returns an error, or throws, has failed: the actor is suspended and the failure goes to the
//   lifecycle, whose verdict comes back as a system message. The invoker waits for nobody.
// - Between "the mailbox is empty" and "the actor is idle" no message is lost: the inbox's word decides that.
#ifndef FRAKTOR_ACTOR_DISPATCH_MESSAGE_INVOKER_H_
#define FRAKTOR_ACTOR_DISPATCH_MESSAGE_INVOKER_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/slot/actor_lifecycle.h"
#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {

class MessageInvoker {
 public:
  // `lifecycle` must outlive the invoker.
  explicit MessageInvoker(ActorLifecycle& lifecycle, MiddlewareChain middleware = {})
      : lifecycle_(lifecycle),
        middleware_(std::move(middleware)),
        run_gate_(middleware_.empty() ? 0 : static_cast<uint8_t>(Gate::kIntercepted)) {}

  // Runs an actor whose mailbox the caller holds, as long as the worker's slice goes, but one
  // message at least. The caller holds the mailbox afterwards only if the answer is kYielded. The
  // actor that the worker is to run next is in its outbox.
  InvokeResult Run(ActorWorker& worker, ActorSlot& slot);

  // For the promises of asks: the asker's handlers.
  static void HandleAnswer(ActorWorker& worker, ActorSlot& slot, ActorRef ask, Envelope& answer);
  static void HandleAskFailure(ActorWorker& worker, ActorSlot& slot, ActorRef ask, absl::Status error);
  static void CallForReply(ActorWorker& worker, ActorSlot& slot, const MessageType* question, Envelope* answer,
                           absl::FunctionRef<absl::Status()> code);

  // In the actor's turn: the actor fails on `message`, or on none, because of `cause`.
  static void Fail(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, FailureCause cause,
                   Envelope* message);
  // Calls code of an actor. Something thrown becomes an error, and `cause`, unless it is null,
  // tells what was thrown: kThrown or kThrownUnknown. Otherwise `cause` stays as it is.
  static absl::Status Call(std::string_view what, absl::FunctionRef<absl::Status()> code,
                           FailureCause* cause = nullptr);

 private:
  // What came of one step of an actor that has something to heed.
  enum class Step : uint8_t { kGoOn, kHandled, kIdle, kParked, kEnded };

  void BeginTurn(ActorWorker& worker, ActorSlot& slot) const;
  static InvokeResult EndTurn(ActorWorker& worker, uint32_t handled, InvokeResult kind);
  static InvokeResult EndShortTurn(ActorWorker& worker, const ActorSlot& slot, uint32_t handled);
  static void WriteBack(const Turn& turn, ActorSlot& slot);
  static InvokeResult Yield(ActorWorker& worker, ActorSlot& slot, uint32_t handled);
  uint32_t HandleSystemMessages(ActorWorker& worker, ActorSlot& slot, uint32_t used);
  bool HandleSignal(ActorWorker& worker, ActorSlot& slot, Envelope& message);
  // Of those that also reach actors that wait for nothing of the scheduler.
  static bool HandleAnybodysSignal(ActorWorker& worker, ActorSlot& slot, Envelope& message);
  Step StepGated(ActorWorker& worker, ActorSlot& slot);
  Step Park(Turn& turn, ActorSlot& slot);
  static bool HasOrder(const ActorSlot& slot);
  static Envelope* NextOrdered(ActorWorker& worker, ActorSlot& slot);
  void Start(ActorWorker& worker, ActorSlot& slot);
  bool Handle(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
  bool HandleTraced(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
  bool HandleIntercepted(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
  void Suspend(ActorWorker& worker, ActorSlot& slot, const MiddlewareFlow& flow);
  bool HandleMarked(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
  static void ResumeHandlers(ActorWorker& worker, ActorSlot& slot);
  // Destroys the handlers that wait, in the actor's turn. The asks that they were to answer fail.
  void CancelHandlers(ActorWorker& worker, ActorSlot& slot);
  void End(ActorWorker& worker, ActorSlot& slot);
  static void DeadLetters(ActorWorker& worker, ActorSlot& slot, EnvelopeList list);
  // The same for an error that code of the actor has just returned or thrown: the turn knows the
  // cause.
  static void Fail(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, Envelope* message);

  ActorLifecycle& lifecycle_;
  const MiddlewareChain middleware_;
  const uint8_t run_gate_;
};

// For completions that call code of the asker, in its turn: what that throws or returns is a failure of the actor, on
// `answer` if there is one.
void CallForReply(const MessageType* question, Envelope* answer, absl::FunctionRef<absl::Status()> code);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_MESSAGE_INVOKER_H_
