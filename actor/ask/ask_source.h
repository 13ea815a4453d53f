// The future of an answer, from the pool of nodes: an ask allocates nothing on the heap.
#ifndef FRAKTOR_ACTOR_ASK_ASK_SOURCE_H_
#define FRAKTOR_ACTOR_ASK_ASK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/reply_promise.h"
#include "fraktor/actor/await/awaiting_handler.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/pooled_memory.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/promise_sending.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_word.h"
#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

// Another message came than the one that was asked for.
absl::Status UnexpectedAnswer(const MessageType* question, const MessageType* wanted, const MessageType* came);

namespace ask_internal {

struct NoReply {};
template <class Q>
struct ReplyOfQuestion {
  using Type = NoReply;
};
template <class Q>
requires requires { typename Q::Reply; }
struct ReplyOfQuestion<Q> {
  using Type = typename Q::Reply;
};

}  // namespace ask_internal

// Which message answers a question: what it declares as its Reply.
template <class Q>
using ReplyOf = typename ask_internal::ReplyOfQuestion<std::decay_t<Q>>::Type;

// Does not compile unless it declares one.
template <class Q>
constexpr void CheckDeclaresReply() {
  static_assert(!std::is_same_v<ReplyOf<Q>, ask_internal::NoReply>,
                "this message does not say what its answer is: declare `using Reply = Answer;` in it, or ask for it by "
                "Ask<Answer>(...) or AskAndWait<Answer>(...)");
}

// Who hears of the answer.
enum class AskedBy : uint8_t {
  kActor,  // In a later turn of the actor that asks: a handler that waits for it on its thread would wait for itself.
  kSystem,
};

// What an answer to a question says: an R, or why it is none.
template <class R>
FutureResult<R> ReadAnswer(const MessageType* question, Envelope& answer) {
  if (R* const reply = answer.TryAs<R>()) [[likely]]
    return std::move(*reply);
  if (const auto* error = answer.TryAs<ErrorReply>()) return error->status;
  return UnexpectedAnswer(question, MessageTypeOf<R>(), answer.type());
}

// How a question that is not answered says why, as of ActorContext::Ask: as it is.
struct AsItIs {
  absl::Status operator()(absl::Status error) const { return error; }
};

template <class R, AskedBy kBy, class Explain = AsItIs>
class AskSource final : public FutureSource<R>, public AskCompletion {
 public:
  // `asker` is the actor that asks, if it is one.
  AskSource(const MessageType* asked, absl::Duration waits, const ActorSlot* asker = nullptr, Explain explain = {})
      : AskCompletion(asked, waits), asker_(asker), explain_(std::move(explain)) {}

  static void* operator new(size_t size) { return AllocatePooled(size); }
  static void operator delete(void* memory, size_t size) noexcept { FreePooled(memory, size); }

  bool IsReady() const override { return word_.IsReady(); }
  bool Poll(const Waker& waker) override {
    // A handler of the asker waits, and the answer comes in a turn of the asker too.
    if (kBy == AskedBy::kActor && AwaitingHandler::IsWakerOf(asker_, waker)) return word_.PollInTurns(waker);
    return word_.Poll(waker);
  }
  bool StopWaking() override { return word_.StopWaking(); }
  bool Cancel() override {
    if (!word_.Cancel()) return false;
    WithdrawAsk(promise);
    return true;
  }
  bool EndWaitIfReady(bool& wake_is_owed) override { return word_.EndWaitIfReady(wake_is_owed); }
  const char* AwaitsThisThread() const override {
    const ActorWorker* const worker = ActorWorker::Current();
    if (kBy == AskedBy::kSystem || worker == nullptr || worker->turn.running() == nullptr) return nullptr;
    return "Wait for the answer of context.Ask, which comes when this handler has returned, would have no end: "
           "co_await it, or use PipeTo; an actor of DispatcherChoice::kPinned may wait for that of "
           "context.system().Ask";
  }
  FutureResult<R> Take() override {
    if (word_.WasCancelled()) return future_internal::FutureCancelledError();
    return *std::move(result_);
  }
  FutureResult<R> TakeAndDrop() override {
    FutureResult<R> result = Take();
    Drop();
    return result;
  }
  void Drop() noexcept override {
    if (word_.Cancel()) [[unlikely]]
      WithdrawAsk(promise);
    if (word_.ReleaseEndedFuture()) delete this;
  }

  void Answer(Envelope& answer) noexcept override {
    result_.emplace(ReadAnswer<R>(question, answer));
    if (word_.Complete().is_last) delete this;
  }
  void Fail(absl::Status error) noexcept override {
    result_.emplace(explain_(std::move(error)));
    if (word_.Complete().is_last) delete this;
  }

 private:
  ~AskSource() override = default;

  const ActorSlot* const asker_;
  [[no_unique_address]] const Explain explain_;
  // The promise side learns of a future that has gone by WithdrawAsk.
  FutureWord<StdAtomics, /*kTellsOfCancel=*/false> word_;
  // Written before Complete(), read by the future's side when it is ready.
  std::optional<FutureResult<R>> result_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ASK_ASK_SOURCE_H_
