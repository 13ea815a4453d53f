// AwaitingHandler: a handler that is a coroutine. It waits for a future, and resumes in a later
// turn of its actor.
//
// A waiting handler keeps its message, and sender() is restored when it resumes. The actor handles
// no other user message meanwhile, unless the handler interleaves. The thread that completes the
// future sends the actor a system message with the number of the wait. The actor reads it in its
// turn; a number that is out of date wakes no handler. Handlers resume in the order in which they
// were woken, and not while the actor waits for the verdict of its supervisor. They are destroyed
// in the actor's turn: when they are done, before the old instance of a restart is destroyed, or
// before PostStop.
//
// Called by: typed actors and ActorContext::Run, which begin handlers, and the invoker, which
// resumes them. Thread: the actor's turn, except for Wake.
#ifndef FRAKTOR_ACTOR_AWAIT_INTERNAL_AWAITING_HANDLER_H_
#define FRAKTOR_ACTOR_AWAIT_INTERNAL_AWAITING_HANDLER_H_

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

namespace actor_internal {

class ActorSlot;
class HandlerEndListener;
struct TurnState;

enum class AwaitMode : uint8_t {
  kExclusive,     // The actor handles no other user message until the handler is done.
  kInterleaving,  // The actor handles other messages while the handler waits.
};

// An object whose members handlers use, such as a behaviour that can be replaced
// (behavior_stack.h). It is created with one user, and deleted with its last one. All users are in
// turns of one actor, one at a time.
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
  // Runs after the derived class has destroyed its coroutine, which may use the owner.
  virtual ~AwaitingHandler() {
    if (owner_ != nullptr) owner_->RemoveUser();
  }

  // True if the waker belongs to a handler of this actor, which is woken and polls only in the
  // actor's turns.
  static bool IsWakerOf(const ActorSlot* actor, const Waker& waker) {
    return waker.target == actor && waker.function == &Wake;
  }

  // Handlers live in the node pool.
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size) noexcept;

  // Runs the coroutine until it waits (false) or is done (true).
  virtual bool Step() = 0;
  // Called when the coroutine is done: replies, or throws what the coroutine has thrown. An error
  // is a failure of the actor.
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
  // Null if the handler is the actor's own code. This handler is one of its users.
  HandlerOwner* owner_ = nullptr;
  // Waits for the end of the handler of `message_`; null if nobody does.
  HandlerEndListener* end_listener_ = nullptr;
  uint64_t wait_ = 0;  // The number of the wait; 0 while the handler runs.
  AwaitMode mode_ = AwaitMode::kExclusive;
  bool is_woken_ = false;
};

// The waiting handlers of one actor, in the order in which they began. The cost of each call does
// not depend on their number, except for Clear. A handler that resumes keeps its place until it is
// done. Part of the SlotExtension; used by the holder of the mailbox only.
class HandlerQueue {
 public:
  HandlerQueue();
  HandlerQueue(const HandlerQueue&) = delete;
  HandlerQueue& operator=(const HandlerQueue&) = delete;
  ~HandlerQueue();

  bool empty() const { return first_ == nullptr; }
  bool has_woken() const { return first_woken_ != nullptr; }

  // Returns the number of the wait of the first woken handler, which must exist.
  uint64_t FirstWoken() const { return first_woken_->wait_; }

  // Adds a handler that waits. It becomes a user of `owner`, which may be null. `listener` may be
  // null.
  void Add(std::unique_ptr<AwaitingHandler> handler, AwaitMode mode, EnvelopePtr message, HandlerOwner* owner,
           HandlerEndListener* listener = nullptr);
  // Wakes the handler whose wait has that number. Does nothing if there is none.
  void MarkWoken(uint64_t wait);
  // Resumes the first woken handler, which must exist, with its message as the current one. A
  // handler that is done, or throws, is removed; the caller gets its `message`, and an error is a
  // failure of the actor on that message. If the caller gets a `listener`, which is null otherwise,
  // it calls the listener for the message.
  absl::Status ResumeWoken(ActorContext& context, TurnState& state, EnvelopePtr& message,
                           HandlerEndListener*& listener);
  // Destroys all handlers, the latest first, and their messages.
  void Clear() noexcept;
  // The same in the actor's turn, but first fails the asks among their messages with the error that
  // `why` returns. The listeners hear Cancelled when all handlers are destroyed.
  void Clear(absl::FunctionRef<absl::Status(const Envelope& message)> why);
  bool HasExclusive() const { return exclusive_ != 0; }
  // For status reports: the message type of the first handler; null for a task, or without
  // handlers.
  const MessageType* FirstType() const;

 private:
  struct Index;

  AwaitingHandler* Find(uint64_t wait) const;
  // Updates the index after the wait of a handler has got another number.
  void Renumber(AwaitingHandler& handler, uint64_t from);
  // Removes a handler that runs. Its last wait was `wait`.
  std::unique_ptr<AwaitingHandler> Remove(AwaitingHandler& handler, uint64_t wait);

  std::unique_ptr<AwaitingHandler> first_;
  AwaitingHandler* last_ = nullptr;
  AwaitingHandler* first_woken_ = nullptr;
  AwaitingHandler* last_woken_ = nullptr;
  size_t size_ = 0;
  size_t exclusive_ = 0;
  // The handlers by the number of their wait. Null while there are few.
  std::unique_ptr<Index> index_;
};

// Called in Receive: runs a handler, which may wait. An error is a failure of the actor.
absl::Status RunHandler(ActorContext& context, std::unique_ptr<AwaitingHandler> handler, AwaitMode mode);

// Called in the actor's turn: runs a task of the actor, which has no message and interleaves. An
// error of the task is a failure of the actor.
absl::Status RunTask(ActorContext& context, Task<void> task);

}  // namespace actor_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_AWAIT_INTERNAL_AWAITING_HANDLER_H_
