// AskSource: the state of the future that an ask returns. It receives the reply as the
// AskCompletion of the ask, and lives in the node pool, so an ask allocates nothing on the heap.
//
// Called by: ActorContext::Ask, ActorSystem::Ask and TypedContext::Ask. Thread: a future belongs to
// one thread at a time; the reply arrives in a turn of the asker.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_ASK_SOURCE_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_ASK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/internal/pooled_memory.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/internal/future_word.h"
#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::actor_internal {

// The error of an ask whose reply has another type than the asker wanted.
absl::Status UnexpectedReply(const MessageType* asked, const MessageType* wanted, const MessageType* came);
// The error of an ask whose reply is an ErrorReply with this status. Internal if the status is OK,
// which is a mistake of the sender.
absl::Status ErrorOfReply(const MessageType* asked, const absl::Status& status);

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

// The reply type that a message declares: `using Reply = ...`.
template <class Q>
using ReplyOf = typename ask_internal::ReplyOfQuestion<std::decay_t<Q>>::Type;

// Compiles only if the message declares a reply type.
template <class Q>
constexpr void CheckDeclaresReply() {
  static_assert(
      !std::is_same_v<ReplyOf<Q>, ask_internal::NoReply>,
      "this message declares no reply type: declare `using Reply = Answer;` in it, or call Ask<Answer>(...) or "
      "AskAndWait<Answer>(...)");
}

// The kind of asker.
enum class AskedBy : uint8_t {
  kActor,   // An actor. Its handler must not block: the reply arrives in a later turn.
  kSystem,  // A thread. An actor of the system waits in its place.
};

// Reads a reply: an R, or the error in place of one.
template <class R>
FutureResult<R> ReadReply(const MessageType* asked, Envelope& envelope) {
  if (R* const reply = envelope.TryAs<R>()) [[likely]]
    return std::move(*reply);
  if (const auto* error = envelope.TryAs<ErrorReply>()) return ErrorOfReply(asked, error->status);
  return UnexpectedReply(asked, MessageTypeOf<R>(), envelope.type());
}

// The usual `explain` of ActorContext::Ask: leaves the error as it is.
struct AsItIs {
  absl::Status operator()(absl::Status error) const { return error; }
};

template <class R, AskedBy kBy, class Explain = AsItIs>
class AskSource final : public FutureSource<R>, public AskCompletion {
 public:
  // `asker` is the slot of the asking actor; null for a thread.
  AskSource(const MessageType* asked, absl::Duration waits, const ActorSlot* asker = nullptr, Explain explain = {})
      : AskCompletion(asked, waits), asker_(asker), explain_(std::move(explain)) {}

  static void* operator new(size_t size) { return AllocatePooled(size); }
  static void operator delete(void* memory, size_t size) noexcept { FreePooled(memory, size); }

  bool IsReady() const override { return word_.IsReady(); }
  bool Poll(const Waker& waker) override {
    // A handler of the asker waits, and the reply arrives in a turn of the same actor: no other
    // thread takes part.
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
    if (kBy == AskedBy::kSystem || worker == nullptr || worker->turn_state.running() == nullptr) return nullptr;
    return "Wait for the reply of context.Ask would never return, because the reply arrives after this handler has "
           "returned: co_await it, or use PipeTo; an actor of DispatcherChoice::kPinned may wait for the reply of "
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

  void TakeReply(Envelope& reply) noexcept override {
    result_.emplace(ReadReply<R>(asked_type, reply));
    if (word_.Complete().is_last) delete this;
  }
  void Fail(absl::Status error) noexcept override {
    result_.emplace(Explained(std::move(error)));
    if (word_.Complete().is_last) delete this;
  }

 private:
  ~AskSource() override = default;

  // An `explain` that throws, or returns OK, leaves the error as it is: a StatusOr must not be made
  // of OK.
  absl::Status Explained(absl::Status error) const noexcept {
    if constexpr (std::is_same_v<Explain, AsItIs>) {
      return error;
    } else {
      try {
        absl::Status explained = explain_(error);
        return explained.ok() ? error : explained;
      } catch (...) {
        return error;
      }
    }
  }

  const ActorSlot* const asker_;
  [[no_unique_address]] const Explain explain_;
  // Without kTellsOfCancel: WithdrawAsk tells the promise that the future is gone.
  future_internal::FutureWord<utils_internal::StdAtomics, /*kTellsOfCancel=*/false> word_;
  // Written before Complete(), and read by the owner of the future after it is ready.
  std::optional<FutureResult<R>> result_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_ASK_SOURCE_H_
