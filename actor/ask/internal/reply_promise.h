// The reply promise of an ask: the reference that the asked message has as its sender. The first
// message that is sent to it is the reply.
//
//   const PromiseOptions options{.timeout = absl::Seconds(1), .target = server};
//   absl::StatusOr<ActorRef> ask = OpenPromise(worker, options);
//   worker.Send(server, MakeEnvelope<Question>(worker.cache(), *ask).release());
//
// ActorInstance::OnReply of the asker gets the reply in a later turn, or an error.
//
// A promise is a PromiseSlot, which has no mailbox. The first reply makes its generation stale, by
// one exchange, and goes to the asker as a system message, in the same envelope. So an ask costs
// two messages and no more. Later replies, and replies to an ask that has timed out or was
// withdrawn, are dead letters.
//
// The slot of a promise belongs to the asker, which frees it in its turn: when the reply has
// arrived, when the ask has timed out, or when the asker ends. A thread that replies claims the
// promise and does not touch its slot from then on.
//
// The other parts of an ask: ask_completion.h (the object that receives the reply),
// ask_deadlines.h, ask_circle.h, ask_diagnosis.h (the error text of a timeout), open_promise.h
// (reads promises), promise_watch.h.
//
// Called by: ActorContext, ActorSystem, routers and grains, which ask, and the invoker, which
// receives replies.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_REPLY_PROMISE_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_REPLY_PROMISE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0 {

class RuntimeToolbox;

namespace actor_internal {

class ActorLifecycle;

// A system message to the actor that waits in place of a thread: that thread has opened a promise
// for it.
class PromiseOpened {
 public:
  PromiseOpened(ActorRef promise, AskCompletion* completion) : promise_(promise), completion_(completion) {}
  PromiseOpened(PromiseOpened&& other) noexcept
      : promise_(other.promise_), completion_(std::exchange(other.completion_, nullptr)) {}
  // Fails the completion if the message has not arrived.
  ~PromiseOpened();

  ActorRef promise() const { return promise_; }
  // The caller owns the completion from now on.
  AskCompletion* TakeCompletion() { return std::exchange(completion_, nullptr); }

 private:
  const ActorRef promise_;
  AskCompletion* completion_;
};

struct PromiseOptions {
  // InfiniteDuration: the ask never times out.
  absl::Duration timeout = absl::InfiniteDuration();
  ActorRef target = {};
  // Null: ActorInstance::OnReply gets the reply.
  AskCompletion* completion = nullptr;
};

// In the asker's turn. ResourceExhausted if the process has no slot left, or no timer; kAskCircle
// if the target waits for this very turn. The caller still has the completion then.
absl::StatusOr<ActorRef> OpenPromise(ActorWorker& worker, const PromiseOptions& options);

// Any thread, for an asker that is no actor: the actor `asker` waits in its place. That actor
// learns of the promise before any reply can arrive. Unavailable if the actor has ended.
absl::StatusOr<ActorRef> OpenPromiseFor(ActorRef asker, PromiseSlotPool& promises, RuntimeToolbox& toolbox,
                                        const PromiseOptions& options);

// Any thread. OK if the message can be asked. InvalidArgument if the timeout is not positive,
// kAskTimeout if `to` is no one or has ended.
absl::Status CheckAsk(const ActorLifecycle& lifecycle, ActorRef to, const AskCompletion& completion);

// In the asker's turn: opens a promise for `completion`, and sends the message with the promise as
// its sender. The errors are those of OpenPromise and CheckAsk. The caller still has the
// completion then.
absl::Status SendAsk(ActorWorker& worker, ActorRef to, EnvelopePtr message, AskCompletion& completion);

// In the asker's turn, for each system message: true if it was a reply to a promise, which is free
// afterwards.
bool ReceiveReply(Turn turn, Envelope& message);

// In the turn of an actor for which a promise was opened.
void ReceiveOpened(Turn turn, PromiseOpened& opened);

// In the last turn of an asker: ends all of its asks.
void CloseAsks(Turn turn);
// The same without a worker, when the workers have stopped.
void AbandonAsks(ActorSlot& slot);

}  // namespace actor_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_REPLY_PROMISE_H_
