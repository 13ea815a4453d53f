// Runs an actor: takes messages out of its mailbox and gives them to it, until the mailbox is empty or the budget used.
//
//   MessageInvoker invoker(lifecycle);
//   InvokeResult result = invoker.InvokeBatch(worker, slot, 64);
//
// The rules that it keeps:
// - System messages go before user messages, also before the next one of a long list.
// - A suspended actor gets system messages only. It is parked: user messages gather, and do not make it ready.
// - A message that was sent to an earlier actor of the slot is a dead letter.
// - A handler that returns an error, or throws, has failed: the actor is suspended and the failure goes to the
//   lifecycle, whose verdict comes back as a system message. The invoker waits for nobody.
// - Between "the mailbox is empty" and "the actor is idle" no message is lost: the inbox's word decides that.
#ifndef FRAKTOR_ACTOR_TURN_MESSAGE_INVOKER_H_
#define FRAKTOR_ACTOR_TURN_MESSAGE_INVOKER_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ready/invoke_result.h"
#include "fraktor/actor/turn/actor_slot.h"
#include "fraktor/actor/turn/actor_worker.h"
#include "fraktor/actor/turn/invoker_middleware.h"

namespace fraktor::inline v0 {

// What happens to actors besides messages: the actor system's part. Called in the actor's own turn.
class ActorLifecycle {
 public:
  virtual ~ActorLifecycle() = default;

  // The first turn of an actor that was put up with Gate::kStarting. An error is a failure of the actor.
  virtual absl::Status OnStart(ActorWorker& worker, ActorSlot& slot) = 0;

  // A system message. It may suspend, resume or stop the actor through the turn.
  virtual void OnSystemMessage(ActorWorker& worker, ActorSlot& slot, Envelope& message) = 0;

  // A handler failed on `message`, or the start, where it is null. The actor is suspended.
  virtual void OnFailure(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, Envelope* message) = 0;

  // The actor is to stop, and handles no further user message. True if nothing is left to wait for: then its end
  // follows. False as long as children live; the lifecycle is asked again after each system message.
  virtual bool MayEnd(ActorWorker& worker, ActorSlot& slot) = 0;

  // The actor is about to go: hooks run here, and its references are made stale.
  virtual void OnEnding(ActorWorker& worker, ActorSlot& slot) = 0;

  // The mailbox is empty and idle. The slot is the lifecycle's, to give back or keep.
  virtual void OnEnded(ActorWorker& worker, ActorSlot& slot) = 0;

  // Takes the envelope over. Also called outside of turns.
  virtual void OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, ActorSlot* slot, DeadLetterReason reason) = 0;
};

class MessageInvoker {
 public:
  // `lifecycle` must outlive the invoker.
  explicit MessageInvoker(ActorLifecycle& lifecycle, MiddlewareChain middleware = {})
      : lifecycle_(lifecycle),
        middleware_(std::move(middleware)),
        run_gate_(middleware_.empty() ? 0 : static_cast<uint8_t>(Gate::kIntercepted)) {}

  // Runs an actor whose mailbox the caller holds. The caller holds it afterwards only if the answer is kYielded. What
  // the worker is to run next is in its outbox.
  InvokeResult::Kind Run(ActorWorker& worker, ActorSlot& slot, uint32_t max_messages);

  // The same with all that is known of the outcome, and without anything left in the outbox.
  InvokeResult InvokeBatch(ActorWorker& worker, ActorSlot& slot, uint32_t max_messages);

  // What the actor is doing, for the holder of its mailbox.
  static ActorState StateOf(const ActorSlot& slot);

  // For the promises of asks: the asker's handlers.
  static void HandleAnswer(ActorWorker& worker, ActorSlot& slot, ActorRef ask, Envelope& answer);
  static void HandleAskFailure(ActorWorker& worker, ActorSlot& slot, ActorRef ask, absl::Status error);

 private:
  // What came of one step of an actor that has something to heed.
  enum class Step : uint8_t { kGoOn, kHandled, kIdle, kParked, kEnded };

  void BeginTurn(ActorWorker& worker, ActorSlot& slot) const;
  static InvokeResult::Kind EndTurn(ActorWorker& worker, uint32_t handled, InvokeResult::Kind kind);
  static void WriteBack(const Turn& turn, ActorSlot& slot);
  void HandleSystemMessages(ActorWorker& worker, ActorSlot& slot);
  bool HandleSignal(ActorWorker& worker, ActorSlot& slot, Envelope& message);
  Step StepGated(ActorWorker& worker, ActorSlot& slot);
  Step Park(Turn& turn, ActorSlot& slot);
  static bool HasOrder(const ActorSlot& slot);
  static Envelope* NextOrdered(ActorWorker& worker, ActorSlot& slot);
  void Start(ActorWorker& worker, ActorSlot& slot);
  bool Handle(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
  bool HandleTraced(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
  bool HandleIntercepted(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
  void Suspend(ActorWorker& worker, ActorSlot& slot, const MiddlewareFlow& flow);
  static void Fail(ActorWorker& worker, ActorSlot& slot, absl::Status error, Envelope* message);
  void End(ActorWorker& worker, ActorSlot& slot);
  static void DeadLetters(ActorWorker& worker, ActorSlot& slot, EnvelopeList list);
  static InvokeResult WhyParked(ActorWorker& worker);

  ActorLifecycle& lifecycle_;
  const MiddlewareChain middleware_;
  const uint8_t run_gate_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TURN_MESSAGE_INVOKER_H_
