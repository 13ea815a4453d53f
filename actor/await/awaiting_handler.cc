#include "fraktor/actor/await/awaiting_handler.h"

#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/message/pooled_memory.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/send/promise_sending.h"
#include "fraktor/actor/slot/scheduler_signals.h"

namespace fraktor::inline v0 {
namespace {

// So many handlers are found by looking at each.
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

// Says for as long as it lives what the turn is in.
class InTask {
 public:
  InTask(Turn& turn, AwaitMode mode)
      : turn_(turn),
        in_task_(std::exchange(turn.in_task, true)),
        takes_no_other_(std::exchange(turn.takes_no_other, mode == AwaitMode::kExclusive)) {}
  ~InTask() {
    turn_.in_task = in_task_;
    turn_.takes_no_other = takes_no_other_;
  }
  InTask(const InTask&) = delete;
  InTask& operator=(const InTask&) = delete;

 private:
  Turn& turn_;
  const bool in_task_;
  const bool takes_no_other_;
};

}  // namespace

void* AwaitingHandler::operator new(size_t size) { return AllocatePooled(size); }

void AwaitingHandler::operator delete(void* memory, size_t size) noexcept { FreePooled(memory, size); }

Waker AwaitingHandler::BeginWait() {
  ActorSlot& slot = *ActorWorker::Current()->turn.running();
  wait_ = ++SlotExtension::Of(slot).waits;
  is_woken_ = false;
  // By two wide stores: the future copies it so a moment later, and would have to wait until narrow ones are in the cache.
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
  // In the turn of the actor itself, while it takes an answer: who takes it looks at the queue afterwards.
  const ActorWorker* const worker = ActorWorker::Current();
  if (worker != nullptr && worker->turn.takes_answer && worker->turn.running() == &actor && worker->turn.word == word) {
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
                       HandlerOwner* owner) {
  handler->mode_ = mode;
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
    // One that runs may still be found under its last number.
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

absl::Status HandlerQueue::ResumeWoken(ActorContext& context, Turn& turn, EnvelopePtr& message) {
  AwaitingHandler& handler = *first_woken_;
  first_woken_ = handler.next_woken_;
  if (first_woken_ == nullptr) last_woken_ = nullptr;
  handler.is_woken_ = false;
  const uint64_t wait = handler.wait_;
  Envelope* const outer = std::exchange(turn.current, handler.message_.get());
  HandlerOwner* const outer_owner = std::exchange(turn.owner, handler.owner_);
  // It is done, or has thrown.
  const auto end = [&] {
    std::unique_ptr<AwaitingHandler> ended = Remove(handler, wait);
    message = std::move(ended->message_);
    return ended;
  };
  const auto restore = [&] {
    // The handler may have put its message aside.
    if (turn.current == nullptr) static_cast<void>(message.release());
    turn.current = outer;
    turn.owner = outer_owner;
  };
  std::unique_ptr<AwaitingHandler> ended;
  try {
    bool is_done = false;
    {
      const InTask in_task(turn, handler.mode_);
      is_done = handler.Step();
    }
    if (!is_done) {
      if (turn.current == nullptr) static_cast<void>(handler.message_.release());
      turn.current = outer;
      turn.owner = outer_owner;
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
  // The latest first, as frames go; without recursion over their links.
  while (last_ != nullptr) {
    AwaitingHandler* const latest = last_;
    last_ = latest->previous_;
    (last_ == nullptr ? first_ : last_->next_).reset();
  }
  // At the end: one that goes may wake another.
  first_woken_ = last_woken_ = nullptr;
  size_ = exclusive_ = 0;
}

void HandlerQueue::Clear(absl::FunctionRef<absl::Status(const Envelope& message)> why) {
  for (const AwaitingHandler* handler = first_.get(); handler != nullptr; handler = handler->next_.get()) {
    if (const Envelope* const message = handler->message_.get()) FailAsk(*message, [&] { return why(*message); });
  }
  Clear();
}

const MessageType* HandlerQueue::FirstType() const {
  return first_ == nullptr || first_->message_ == nullptr ? nullptr : first_->message_->type();
}

absl::Status RunHandler(ActorContext& context, std::unique_ptr<AwaitingHandler> handler, AwaitMode mode) {
  Turn& turn = ActorWorker::Current()->turn;
  bool is_done = false;
  {
    const InTask in_task(turn, mode);
    is_done = handler->Step();
  }
  if (is_done) return handler->Finish(context);
  // Kept until the handler is done. Null if the handler has put it aside already.
  EnvelopePtr message;
  if (turn.current != nullptr && !turn.current->is_system()) message.reset(std::exchange(turn.current, nullptr));
  if (mode == AwaitMode::kExclusive) turn.Set(Gate::kAwaiting);
  SlotExtension::Of(*turn.running()).handlers.Add(std::move(handler), mode, std::move(message), turn.owner);
  return absl::OkStatus();
}

absl::Status RunTask(ActorContext& context, Task<void> task) {
  Turn& turn = ActorWorker::Current()->turn;
  auto handler = std::make_unique<TaskHandler>(std::move(task));
  bool is_done = false;
  {
    const InTask in_task(turn, AwaitMode::kInterleaving);
    is_done = handler->Step();
  }
  if (is_done) return handler->Finish(context);
  SlotExtension::Of(*turn.running()).handlers.Add(std::move(handler), AwaitMode::kInterleaving, nullptr, turn.owner);
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
