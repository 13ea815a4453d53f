#include "fraktor/actor/await/internal/awaiting_handler.h"

#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/message/internal/pooled_memory.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// Up to this many handlers are searched one by one, without an index.
constexpr size_t kFewHandlers = 8;

class TaskHandler final : public AwaitingHandler {
 public:
  explicit TaskHandler(Task<void> task) : running_(std::move(task), static_cast<TaskDriver&>(*this)) {}

  bool Step() override { return running_.Resume(); }
  absl::Status Finish(ActorContext&) override {
    if (std::exception_ptr thrown = running_.exception()) std::rethrow_exception(thrown);
    return running_.TakeResult();
  }

 private:
  RunningTask<void> running_;
};

// Marks the turn as running a coroutine, for as long as it lives.
class InTask {
 public:
  InTask(TurnState& state, AwaitMode mode)
      : turn_state_(state),
        in_task_(std::exchange(state.in_task, true)),
        takes_no_other_(std::exchange(state.takes_no_other, mode == AwaitMode::kExclusive)) {}
  ~InTask() {
    turn_state_.in_task = in_task_;
    turn_state_.takes_no_other = takes_no_other_;
  }
  InTask(const InTask&) = delete;
  InTask& operator=(const InTask&) = delete;

 private:
  TurnState& turn_state_;
  const bool in_task_;
  const bool takes_no_other_;
};

}  // namespace

void* AwaitingHandler::operator new(size_t size) { return AllocatePooled(size); }

void AwaitingHandler::operator delete(void* memory, size_t size) noexcept { FreePooled(memory, size); }

Waker AwaitingHandler::BeginWait() {
  ActorSlot& slot = *ActorWorker::Current()->turn_state.running();
  wait_ = ++SlotExtension::Of(slot).waits;
  is_woken_ = false;
  // Writes the waker by two wide stores: the future copies it by wide loads a moment later, which
  // would stall on narrower stores.
  using Half = uint64_t __attribute__((vector_size(16)));
  const Half halves[] = {{reinterpret_cast<uint64_t>(&Wake), reinterpret_cast<uint64_t>(&slot)}, {slot.word(), wait_}};
  Waker waker;
  static_assert(sizeof(waker) == sizeof(halves));
  std::memcpy(&waker, halves, sizeof(waker));
  return waker;
}

void AwaitingHandler::EndWait(bool /*wake_is_owed*/) { wait_ = 0; }

void AwaitingHandler::Wake(void* slot, uint64_t word, uint64_t wait) noexcept {
  ActorSlot& actor = *static_cast<ActorSlot*>(slot);
  // In a turn of the same actor that receives a reply: the receiver of the reply resumes woken
  // handlers afterwards.
  const ActorWorker* const worker = ActorWorker::Current();
  if (worker != nullptr && worker->turn_state.takes_answer && worker->turn_state.running() == &actor &&
      worker->turn_state.word == word) {
    actor.extension->handlers.MarkWoken(wait);
    return;
  }
  TellSystem(ActorRef(&actor, word), MakeEnvelope<HandlerWoken>(ActorRef(), wait));
}

struct HandlerQueue::Index {
  absl::flat_hash_map<uint64_t, AwaitingHandler*> by_wait;
};

HandlerQueue::HandlerQueue() = default;
HandlerQueue::~HandlerQueue() { Clear(); }

void HandlerQueue::Add(std::unique_ptr<AwaitingHandler> handler, AwaitMode mode, EnvelopePtr message,
                       HandlerOwner* owner, HandlerEndListener* listener) {
  handler->mode_ = mode;
  handler->end_listener_ = listener;
  handler->message_ = std::move(message);
  if (owner != nullptr) {
    owner->AddUser();
    handler->owner_ = owner;
  }
  handler->previous_ = last_;
  AwaitingHandler* const added = handler.get();
  (last_ == nullptr ? first_ : last_->next_) = std::move(handler);
  last_ = added;
  ++size_;
  if (mode == AwaitMode::kExclusive) ++exclusive_;
  if (index_ != nullptr) {
    index_->by_wait[added->wait_] = added;
  } else if (size_ > kFewHandlers) {
    index_ = std::make_unique<Index>();
    for (AwaitingHandler* each = first_.get(); each != nullptr; each = each->next_.get()) {
      if (each->wait_ != 0) index_->by_wait[each->wait_] = each;
    }
  }
}

AwaitingHandler* HandlerQueue::Find(uint64_t wait) const {
  if (index_ != nullptr) {
    const auto found = index_->by_wait.find(wait);
    // The index may still have a running handler under its last number.
    return found == index_->by_wait.end() || found->second->wait_ != wait ? nullptr : found->second;
  }
  AwaitingHandler* handler = first_.get();
  while (handler != nullptr && handler->wait_ != wait) handler = handler->next_.get();
  return handler;
}

void HandlerQueue::MarkWoken(uint64_t wait) {
  AwaitingHandler* const handler = Find(wait);
  if (handler == nullptr || handler->is_woken_) return;
  handler->is_woken_ = true;
  handler->next_woken_ = nullptr;
  (last_woken_ == nullptr ? first_woken_ : last_woken_->next_woken_) = handler;
  last_woken_ = handler;
}

void HandlerQueue::Renumber(AwaitingHandler& handler, uint64_t from) {
  index_->by_wait.erase(from);
  index_->by_wait[handler.wait_] = &handler;
}

std::unique_ptr<AwaitingHandler> HandlerQueue::Remove(AwaitingHandler& handler, uint64_t wait) {
  std::unique_ptr<AwaitingHandler>& holder = handler.previous_ == nullptr ? first_ : handler.previous_->next_;
  std::unique_ptr<AwaitingHandler> removed = std::move(holder);
  holder = std::move(removed->next_);
  (holder == nullptr ? last_ : holder->previous_) = removed->previous_;
  --size_;
  if (removed->mode_ == AwaitMode::kExclusive) --exclusive_;
  if (index_ != nullptr) {
    index_->by_wait.erase(wait);
    index_->by_wait.erase(removed->wait_);
    if (size_ == 0) index_.reset();
  }
  return removed;
}

absl::Status HandlerQueue::ResumeWoken(ActorContext& context, TurnState& state, EnvelopePtr& message,
                                       HandlerEndListener*& listener) {
  AwaitingHandler& handler = *first_woken_;
  first_woken_ = handler.next_woken_;
  if (first_woken_ == nullptr) last_woken_ = nullptr;
  handler.is_woken_ = false;
  const uint64_t wait = handler.wait_;
  Envelope* const outer = std::exchange(state.current, handler.message_.get());
  HandlerOwner* const outer_owner = std::exchange(state.owner, handler.owner_);
  HandlerEndListener* const outer_listener = std::exchange(state.end_listener, handler.end_listener_);
  // Removes the handler, which is done or has thrown.
  const auto end = [&] {
    std::unique_ptr<AwaitingHandler> ended = Remove(handler, wait);
    message = std::move(ended->message_);
    return ended;
  };
  const auto restore = [&] {
    // The handler may have stashed its message.
    if (state.current == nullptr) static_cast<void>(message.release());
    state.current = outer;
    state.owner = outer_owner;
    listener = std::exchange(state.end_listener, outer_listener);
  };
  std::unique_ptr<AwaitingHandler> ended;
  try {
    bool is_done = false;
    {
      const InTask in_task(state, handler.mode_);
      is_done = handler.Step();
    }
    if (!is_done) {
      if (state.current == nullptr) static_cast<void>(handler.message_.release());
      state.current = outer;
      state.owner = outer_owner;
      handler.end_listener_ = std::exchange(state.end_listener, outer_listener);
      if (index_ != nullptr && handler.wait_ != wait) Renumber(handler, wait);
      return absl::OkStatus();
    }
    ended = end();
    absl::Status finished = ended->Finish(context);
    restore();
    return finished;
  } catch (...) {
    if (ended == nullptr) ended = end();
    restore();
    throw;
  }
}

void HandlerQueue::Clear() noexcept {
  index_.reset();
  // The latest first, like stack frames, and without recursion over the links.
  while (last_ != nullptr) {
    AwaitingHandler* const latest = last_;
    last_ = latest->previous_;
    (last_ == nullptr ? first_ : last_->next_).reset();
  }
  // Last: the destructor of a handler may wake another one.
  first_woken_ = last_woken_ = nullptr;
  size_ = exclusive_ = 0;
}

void HandlerQueue::Clear(absl::FunctionRef<absl::Status(const Envelope& message)> why) {
  for (const AwaitingHandler* handler = first_.get(); handler != nullptr; handler = handler->next_.get()) {
    if (const Envelope* const message = handler->message_.get()) FailAsk(*message, [&] { return why(*message); });
  }
  // The frames of the handlers may refer to the messages.
  std::vector<std::pair<HandlerEndListener*, EnvelopePtr>> cancelled;
  for (AwaitingHandler* handler = first_.get(); handler != nullptr; handler = handler->next_.get()) {
    if (handler->end_listener_ == nullptr) continue;
    cancelled.emplace_back(handler->end_listener_, std::move(handler->message_));
  }
  Clear();
  for (const auto& [listener, message] : cancelled) {
    listener
        ->OnHandlerEnd(ActorWorker::Current()->turn_state, *message,
                       absl::CancelledError("the actor stops or restarts while its handler waits"))
        .IgnoreError();
  }
}

const MessageType* HandlerQueue::FirstType() const {
  return first_ == nullptr || first_->message_ == nullptr ? nullptr : first_->message_->type();
}

absl::Status RunHandler(ActorContext& context, std::unique_ptr<AwaitingHandler> handler, AwaitMode mode) {
  TurnState& state = ActorWorker::Current()->turn_state;
  bool is_done = false;
  {
    const InTask in_task(state, mode);
    is_done = handler->Step();
  }
  if (is_done) return handler->Finish(context);
  // The handler keeps its message until it is done. Null if it has stashed the message already.
  EnvelopePtr message;
  if (state.current != nullptr && !state.current->is_system()) message.reset(std::exchange(state.current, nullptr));
  if (mode == AwaitMode::kExclusive) state.Set(Gate::kAwaiting);
  SlotExtension::Of(*state.running())
      .handlers.Add(std::move(handler), mode, std::move(message), state.owner,
                    std::exchange(state.end_listener, nullptr));
  return absl::OkStatus();
}

absl::Status RunTask(ActorContext& context, Task<void> task) {
  TurnState& state = ActorWorker::Current()->turn_state;
  auto handler = std::make_unique<TaskHandler>(std::move(task));
  bool is_done = false;
  {
    const InTask in_task(state, AwaitMode::kInterleaving);
    is_done = handler->Step();
  }
  if (is_done) return handler->Finish(context);
  SlotExtension::Of(*state.running()).handlers.Add(std::move(handler), AwaitMode::kInterleaving, nullptr, state.owner);
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0::actor_internal
