// The reference that an ask gives as the sender of its message: whoever answers, answers to it, once.
//
//   ActorRef ask = OpenPromise(worker, absl::Seconds(1));          // in the asker's turn
//   worker.Send(server, MakeEnvelope<Question>(cache, ask).release());
//   ...
//   asker.OnReply(context, ask, reply)                             // in a later turn of the asker, or a failure
//
// A promise is a PromiseSlot, which has no mailbox. The first answer makes its generation stale, by one exchange, and goes to the
// asker as a system message: with the same envelope, so an ask costs two messages and no more. Answers that come later,
// and answers to an ask that has timed out or was withdrawn, are dead letters.
//
// The slot of a promise belongs to the asker, who frees it in its turn: when the answer has
// arrived, when the time is over, or when the asker ends. A thread that answers claims the promise
// and does not touch its slot from then on.
//
// The timeouts of one actor share one timer, which is armed for the earliest and looks for the next when it fires. It
// is not cancelled when an answer comes: asks that are answered touch no timer.
//
// A question that has waited long enough is over at once: later answers are dead letters. Before the asker hears of it,
// the target is asked what it is at, for the text of the error. It says so by system messages, also while it is
// suspended or one of its handlers waits; one that is in the middle of a handler cannot, and after kReportGrace the
// error says only what can be seen from outside.
#ifndef FRAKTOR_ACTOR_ASK_REPLY_PROMISE_H_
#define FRAKTOR_ACTOR_ASK_REPLY_PROMISE_H_

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/slot/promise_slot.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class ActorLifecycle;
class RuntimeToolbox;
struct BusinessReport;
struct DescribeBusiness;

// Who gets the answer of a promise, once; it goes by itself then.
class AskCompletion {
 public:
  // What was asked, for the text of a timeout.
  AskCompletion(const MessageType* asked, absl::Duration waits) : question(asked), timeout(waits) {}

  // One of these, once. In the asker's turn: the answer, which ends after the call, or why there is none.
  virtual void Answer(Envelope& answer) noexcept = 0;
  virtual void Fail(absl::Status error) noexcept = 0;
  // The asker has ended, and there will be no turn of it any more: Fail, if nothing else is said.
  virtual void Abandon() noexcept;

  const MessageType* const question;
  const absl::Duration timeout;
  // The promise of the ask, from when the message is sent. The thread that asks writes it, and the
  // owner of the future reads it, to withdraw the ask.
  ActorRef promise;

 protected:
  ~AskCompletion() = default;
};

// To the actor that waits in place of somebody who is no actor: a promise that was opened for it on another thread.
class PromiseOpened {
 public:
  PromiseOpened(ActorRef promise, AskCompletion* completion) : promise_(promise), completion_(completion) {}
  PromiseOpened(PromiseOpened&& other) noexcept
      : promise_(other.promise_), completion_(std::exchange(other.completion_, nullptr)) {}
  // If it does not arrive, there will be no answer.
  ~PromiseOpened();

  ActorRef promise() const { return promise_; }
  // It is the caller's from now on.
  AskCompletion* TakeCompletion() { return std::exchange(completion_, nullptr); }

 private:
  const ActorRef promise_;
  AskCompletion* completion_;
};

// So long a question that has timed out waits for its target to say what it is at.
inline constexpr absl::Duration kReportGrace = absl::Milliseconds(20);

struct PromiseOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  ActorRef target = {};
  // Null: ActorInstance::OnReply.
  AskCompletion* completion = nullptr;
};

// In the turn of the actor that asks. An infinite timeout waits for ever. ResourceExhausted if the process has no slot
// left, or no timer; kAskCircle if the target waits for this very turn. Then the completion is still the caller's.
absl::StatusOr<ActorRef> OpenPromise(ActorWorker& worker, const PromiseOptions& options);

// The same on any thread, for somebody who is no actor: `asker` waits in his place. It hears of the promise before any
// answer can be there. Unavailable if it has ended.
absl::StatusOr<ActorRef> OpenPromiseFor(ActorRef asker, PromiseSlotPool& promises, RuntimeToolbox& toolbox,
                                        const PromiseOptions& options);

// Why a question has no answer, whoever asks it: InvalidArgument if it waits for no time, kAskTimeout if it goes to no
// one or to somebody who has ended.
absl::Status CheckQuestion(const ActorLifecycle& lifecycle, ActorRef to, const AskCompletion& completion);

// In the turn of the actor that asks: opens a promise for `completion`, and sends the question with it as the sender.
// The errors of OpenPromise and CheckQuestion; then the completion is still the caller's.
absl::Status SendQuestion(ActorWorker& worker, ActorRef to, EnvelopePtr question, AskCompletion& completion);

// The actor that waits for the answer of a promise, and the one that is to give it, as long as nobody has answered; no
// one otherwise. Any thread.
ActorRef AskerOf(ActorRef promise);
ActorRef TargetOf(ActorRef promise);
// Until when the answer is waited for; the infinite past if somebody has answered. Any thread.
Instant DeadlineOf(ActorRef promise);

// In the asker's turn, when an answer has arrived as a system message: true if it was one. The promise is free
// afterwards.
bool ReceiveAnswer(ActorWorker& worker, ActorSlot& slot, Envelope& message);

// In the asker's turn: a promise was opened for it.
void ReceiveOpened(ActorWorker& worker, ActorSlot& slot, PromiseOpened& opened);

// In the asker's turn, when its timer for `deadline` has fired: questions that have waited long enough fail.
void ExpireAsks(ActorWorker& worker, ActorSlot& slot, Instant deadline);

// In the asker's turn: the target of a question that has waited long enough has said what it is at, or has not in time.
void ReceiveReport(ActorWorker& worker, ActorSlot& slot, const BusinessReport& report);
void EndInquiry(ActorWorker& worker, ActorSlot& slot, uint64_t inquiry);
// In the turn of an actor that is asked what it is at.
void SendReport(ActorWorker& worker, ActorSlot& slot, const DescribeBusiness& inquiry);

// In the asker's turn: ActorLifecycle::OnPromiseEnded is called when the promise is over. False if it is already, or is
// none of this actor's.
bool WatchPromise(ActorSlot& asker, ActorRef promise, ActorRef watcher);

// The asker ends.
void CloseAsks(ActorWorker& worker, ActorSlot& slot);
// The same without a worker, when none runs any more: nobody waits for the answers.
void AbandonAsks(ActorSlot& slot);

// How an actor gets the reply to an ask that has no completion, or the error: ActorInstance::OnReply.
struct OnReplyFunctions {
  void (*reply)(ActorWorker& worker, ActorSlot& slot, ActorRef ask, Envelope& reply);
  void (*error)(ActorWorker& worker, ActorSlot& slot, ActorRef ask, absl::Status error);
};

// Called once, before main: actor/dispatch/message_invoker.cc installs them.
void InstallOnReply(OnReplyFunctions functions);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ASK_REPLY_PROMISE_H_
