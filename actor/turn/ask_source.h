// The future of an answer, from the pool of nodes: an ask allocates nothing on the heap.
#ifndef FRAKTOR_ACTOR_TURN_ASK_SOURCE_H_
#define FRAKTOR_ACTOR_TURN_ASK_SOURCE_H_

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/pooled_memory.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_word.h"

namespace fraktor::inline v0 {

// Another message came than the one that was asked for.
absl::Status UnexpectedAnswer(const MessageType* question, const MessageType* wanted, const MessageType* came);

template <class R>
class AskSource final : public FutureSource<R>, public AskCompletion {
 public:
  using AskCompletion::AskCompletion;

  static void* operator new(size_t size) { return AllocatePooled(size); }
  static void operator delete(void* memory, size_t size) noexcept { FreePooled(memory, size); }

  bool IsReady() const override { return word_.IsReady(); }
  bool Poll(const Waker& waker) override { return word_.Poll(waker); }
  bool StopWaking() override { return word_.StopWaking(); }
  bool Cancel() override { return word_.Cancel(); }
  FutureResult<R> Take() override {
    if (word_.WasCancelled()) return future_internal::FutureCancelledError();
    return *std::move(result_);
  }
  void Drop() noexcept override {
    if (word_.ReleaseFuture()) delete this;
  }

  void Complete(absl::StatusOr<Envelope*> answer) noexcept override {
    result_.emplace(Read(std::move(answer)));
    if (word_.Complete().is_last) delete this;
  }

 private:
  ~AskSource() override = default;

  FutureResult<R> Read(absl::StatusOr<Envelope*> answer) const {
    if (!answer.ok()) return answer.status();
    if (R* const reply = (*answer)->TryAs<R>()) return std::move(*reply);
    if (const auto* error = (*answer)->TryAs<ErrorReply>()) return error->status;
    return UnexpectedAnswer(question, MessageTypeOf<R>(), (*answer)->type());
  }

  FutureWord<> word_;
  // Written before Complete(), read by the future's side when it is ready.
  std::optional<FutureResult<R>> result_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TURN_ASK_SOURCE_H_
