// A handler that is a coroutine and has not come to its end: it waits for a future, and goes on in a later turn.
//
//   class Adding final : public AwaitingHandler {
//     bool Step() override { return running_.Resume(); }
//     absl::Status Finish(ActorContext& context) override { ... context.Reply(running_.TakeResult()) ... }
//     RunningTask<Sum> running_;
//   };
//   return RunHandler(context, std::make_unique<Adding>(...), AwaitMode::kExclusive);   // in Receive
//
// While it waits, its message is kept, and sender() is restored when it goes on. The actor takes no other user message
// meanwhile, unless the handler is interleaving. Whoever completes the future sends a system message with the number of
// the wait; it is only looked at in the actor's turn, and a late one finds nobody. Handlers go on in the order in which
// they were woken, and not while the actor waits for a verdict. They are destroyed in the actor's turn: at their end,
// before the old instance of a restart, or before PostStop.
#ifndef FRAKTOR_ACTOR_AWAIT_AWAITING_HANDLER_H_
#define FRAKTOR_ACTOR_AWAIT_AWAITING_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor::inline v0 {

class ActorContext;
class ActorSlot;
struct Turn;

enum class AwaitMode : uint8_t {
  kExclusive,     // No other user message until it is done.
  kInterleaving,  // Others are handled while it waits.
};

// An object whose members the code of handlers uses, such as a behaviour that can be replaced (behavior_stack.h). It is
// made with one user, and ends with its last one. The users are in turns of one actor, one at a time.
class HandlerOwner {
 public:
  HandlerOwner() = default;
  HandlerOwner(const HandlerOwner&) = delete;
  HandlerOwner& operator=(const HandlerOwner&) = delete;
  virtual ~HandlerOwner() = default;

  void AddUser() { ++users_; }
  void RemoveUser() {
    if (--users_ == 0) delete this;
  }

 private:
  size_t users_ = 1;
};

class AwaitingHandler : protected TaskDriver {
 public:
  AwaitingHandler() = default;
  AwaitingHandler(const AwaitingHandler&) = delete;
  AwaitingHandler& operator=(const AwaitingHandler&) = delete;
  // After the coroutine of the derived class, which may use the owner.
  virtual ~AwaitingHandler() {
    if (owner_ != nullptr) owner_->RemoveUser();
  }

  // Whether a waker is that of a handler of this actor, which is only woken, and only looks, in the actor's turns.
  static bool IsWakerOf(const ActorSlot* actor, const Waker& waker) {
    return waker.target == actor && waker.function == &Wake;
  }

  // From the pool of nodes.
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size) noexcept;

  // Goes on until it waits (false) or is done (true).
  virtual bool Step() = 0;
  // It is done: answers, or throws what the coroutine threw. An error is a failure of the actor.
  virtual absl::Status Finish(ActorContext& context) = 0;

 protected:
  Waker BeginWait() final;
  void EndWait(bool wake_is_owed) final;

 private:
  friend class HandlerQueue;

  static void Wake(void* slot, uint64_t generation, uint64_t wait) noexcept;

  std::unique_ptr<AwaitingHandler> next_;
  AwaitingHandler* previous_ = nullptr;
  AwaitingHandler* next_woken_ = nullptr;
  EnvelopePtr message_;
  HandlerOwner* owner_ = nullptr;  // Null if the code of the handler is the actor's own. This is one of its users.
  uint64_t wait_ = 0;              // 0: it does not wait, but runs.
  AwaitMode mode_ = AwaitMode::kExclusive;
  bool is_woken_ = false;
};

// The handlers of one actor that wait, be they few or very many: nothing here looks at all of them. One that goes on
// keeps its place, in the order in which they began, until it is done. The holder's; part of its SlotExtension.
class HandlerQueue {
 public:
  HandlerQueue();
  HandlerQueue(const HandlerQueue&) = delete;
  HandlerQueue& operator=(const HandlerQueue&) = delete;
  ~HandlerQueue();

  bool empty() const { return first_ == nullptr; }
  bool has_woken() const { return first_woken_ != nullptr; }

  // The handler becomes a user of `owner`, which may be null.
  void Add(std::unique_ptr<AwaitingHandler> handler, AwaitMode mode, EnvelopePtr message, HandlerOwner* owner);
  // The wait with that number is over. Others do not notice.
  void MarkWoken(uint64_t wait);
  // Lets the first that was woken go on, with its message as the current one. There is one. If it is done, or throws,
  // it is gone afterwards, and `message` is the caller's: an error is a failure of the actor on that.
  absl::Status ResumeWoken(ActorContext& context, Turn& turn, EnvelopePtr& message);
  // Ends all, the latest first. The messages end too.
  void Clear() noexcept;
  // The same where somebody may wait for their answers: those questions fail with what `why` says.
  void Clear(absl::FunctionRef<absl::Status(const Envelope& message)> why);
  bool HasExclusive() const { return exclusive_ != 0; }
  // For whoever describes what the actor is at: the type of the message of the first of them, or null.
  const MessageType* FirstType() const;

 private:
  struct Index;

  AwaitingHandler* Find(uint64_t wait) const;
  // The wait of a handler has another number now.
  void Renumber(AwaitingHandler& handler, uint64_t from);
  // Takes a handler out that runs. Its last wait was `wait`.
  std::unique_ptr<AwaitingHandler> Remove(AwaitingHandler& handler, uint64_t wait);

  std::unique_ptr<AwaitingHandler> first_;
  AwaitingHandler* last_ = nullptr;
  AwaitingHandler* first_woken_ = nullptr;
  AwaitingHandler* last_woken_ = nullptr;
  size_t size_ = 0;
  size_t exclusive_ = 0;
  // By the number of the wait, as soon as there are more than a few.
  std::unique_ptr<Index> index_;
};

// In Receive: begins a handler that may wait. An error is a failure of the actor.
absl::Status RunHandler(ActorContext& context, std::unique_ptr<AwaitingHandler> handler, AwaitMode mode);

// In the actor's turn, without a message: a task of its own, which interleaves. An error that it comes to is a failure
// of the actor.
absl::Status RunTask(ActorContext& context, Task<void> task);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_AWAIT_AWAITING_HANDLER_H_
