// PendingOperations: the calls of an actor to a store that have no result yet.
//
//   absl::Status Receive(ActorContext& context, Envelope& message) override {
//     if (operations_.Resume(message)) return absl::OkStatus();
//     if (message.Is<Save>()) {
//       operations_.Await(context, store_.Save(...), [client](absl::StatusOr<Saved> saved) { Tell(client, ...); });
//     ...
//   void PostStop(ActorContext&) override { operations_.FailAll(absl::UnavailableError("...")); }
//
// A result that is there is handled at once. For a later result, the thread that completes it posts
// exactly one message to the actor, which handles it in its turn. A late message finds nothing:
// numbers of operations are never used again.
//
// Thread safety: in the actor's turns.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_PENDING_OPERATIONS_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_PENDING_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor::inline v0 {

namespace protocol_internal {

// To the actor that has begun the operation.
struct OperationReady {
  uint64_t number;
};

}  // namespace protocol_internal

// An actor that has ended has failed it.
template <>
inline constexpr bool kIsSuppressedDeadLetter<protocol_internal::OperationReady> = true;

class PendingOperations {
 public:
  PendingOperations() = default;
  PendingOperations(const PendingOperations&) = delete;
  PendingOperations& operator=(const PendingOperations&) = delete;

  // Calls `done` with the result, now or in a later turn.
  template <class T, class Done>
  void Await(ActorContext& context, Future<T> future, Done done) {
    if (future.IsReady()) {
      done(future.Take());
      return;
    }
    auto operation = std::make_unique<OperationOf<T, Done>>(std::move(future), std::move(done));
    const uint64_t number = NextNumber();
    if (operation->future.Poll(WakerOf(context, number))) {
      operation->Finish();
      return;
    }
    operations_.emplace(number, std::move(operation));
  }

  // Whether the message says that an operation is ready; it is handled then.
  bool Resume(const Envelope& message);

  // Gives all that wait, in the order in which they began, the error.
  void FailAll(const absl::Status& error);

  size_t size() const { return operations_.size(); }

 private:
  class Operation {
   public:
    virtual ~Operation() = default;
    virtual void Finish() = 0;
    virtual void Fail(const absl::Status& error) = 0;
  };
  template <class T, class Done>
  class OperationOf final : public Operation {
   public:
    OperationOf(Future<T> its_future, Done its_done) : future(std::move(its_future)), done(std::move(its_done)) {}
    void Finish() override { done(future.Take()); }
    void Fail(const absl::Status& error) override {
      future = Future<T>();
      done(FutureResult<T>(error));
    }

    Future<T> future;
    Done done;
  };

  static uint64_t NextNumber();
  static Waker WakerOf(ActorContext& context, uint64_t number);
  static void Wake(void* slot, uint64_t word, uint64_t number) noexcept;

  // Ordered, so that they fail in a known order.
  std::map<uint64_t, std::unique_ptr<Operation>> operations_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_PENDING_OPERATIONS_H_
