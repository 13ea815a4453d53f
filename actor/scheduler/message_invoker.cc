#include "fraktor/actor/scheduler/message_invoker.h"

#include <cxxabi.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/scheduler/actor_context.h"
#include "fraktor/actor/scheduler/actor_instance.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

InvokeResult MessageInvoker::InvokeBatch(ActorWorker& worker, ActorSlot& slot, uint32_t max_messages) {
  Turn& turn = worker.turn;
  turn.slot = &slot;
  turn.generation = slot.generation();
  turn.user = slot.user;
  turn.system = slot.system;
  turn.failures = slot.failures;
  turn.gate = slot.gate;
  slot.user.first = nullptr;

  // The senders' word is looked at when the list at hand has been worked off, the hint in between.
  bool fresh = true;
  for (;;) {
    if (turn.system != nullptr || (fresh ? slot.inbox.HasSystem() : slot.system_hint.load(std::memory_order_relaxed)))
        [[unlikely]] {
      HandleSystemMessages(worker, slot);
      fresh = false;
      continue;
    }
    if (turn.gated()) [[unlikely]] {
      const Gated gated = HandleGate(worker, slot);
      if (gated == Gated::kGoOn) continue;
      turn.slot = nullptr;
      if (gated == Gated::kEnded) return InvokeResult::Stopped();
      return InvokeResult::Suspended(SuspendReason::kAwaitExternal, ResumeCondition::ExternalSignal({}));
    }
    Envelope* const envelope = turn.user.PopFront();
    if (envelope == nullptr) {
      if (slot.inbox.TryGoIdle()) {
        turn.slot = nullptr;
        return InvokeResult::Completed(false);
      }
      Refill(turn);
      fresh = false;
      continue;
    }
    if (static_cast<uint32_t>(envelope->target_word()) == turn.generation) [[likely]] {
      turn.current = envelope;
      absl::Status status = Receive(slot, *envelope);
      worker.outbox.EndHandler(!turn.user.empty() || slot.inbox.HasNodes());
      if (!status.ok()) [[unlikely]] {
        ++turn.failures;
        lifecycle_.OnFailure(worker, slot, std::move(status), *envelope);
      }
      turn.current = nullptr;
      EndEnvelope(worker.cache(), envelope);
    } else {
      lifecycle_.OnDeadLetter(worker.cache(), EnvelopePtr(envelope), &slot, DeadLetterReason::kStopped);
    }
    if (--max_messages == 0 && !turn.gated()) {
      slot.user = turn.user;
      slot.system = turn.system;
      slot.failures = turn.failures;
      slot.gate = turn.gate;
      turn.slot = nullptr;
      return InvokeResult::Yielded();
    }
  }
}

absl::Status MessageInvoker::Receive(ActorSlot& slot, Envelope& message) {
  try {
    return slot.instance->Receive(ActorContext::Of(slot), message);
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("a handler of ", ToAbsl(message.type()->name()), " threw: ", e.what()));
  } catch (...) {
    return absl::InternalError("a handler threw something that is no std::exception");
  }
}

void MessageInvoker::Refill(Turn& turn) {
  turn.slot->system_hint.store(false, std::memory_order_relaxed);
  EnvelopeList user;
  Envelope* system = nullptr;
  for (InboxNode* node = turn.slot->inbox.TakeNewestFirst(); node != nullptr;) {
    Envelope* const envelope = Envelope::Of(node);
    node = node->next;
    if (envelope->is_system()) [[unlikely]] {
      envelope->next = system;
      system = envelope;
    } else {
      user.PushFront(envelope);
    }
  }
  turn.user.Append(user);
  if (turn.system == nullptr) {
    turn.system = system;
  } else {
    Envelope* last = turn.system;
    while (last->next != nullptr) last = Envelope::Of(last->next);
    last->next = system;
  }
}

void MessageInvoker::HandleSystemMessages(ActorWorker& worker, ActorSlot& slot) {
  Turn& turn = worker.turn;
  if (turn.system == nullptr) Refill(turn);
  while (turn.system != nullptr) {
    Envelope* const envelope = turn.system;
    turn.system = Envelope::Of(envelope->next);
    turn.current = envelope;
    if (static_cast<uint32_t>(envelope->target_word()) == turn.generation) {
      lifecycle_.OnSystemMessage(worker, slot, *envelope);
      worker.outbox.EndHandler(true);
      EndEnvelope(worker.cache(), envelope);
    } else {
      lifecycle_.OnDeadLetter(worker.cache(), EnvelopePtr(envelope), &slot, DeadLetterReason::kStopped);
    }
    turn.current = nullptr;
  }
  // What a system message opened or closed must be in the slot when the actor goes idle.
  slot.system = nullptr;
  slot.failures = turn.failures;
  slot.gate = turn.gate;
}

MessageInvoker::Gated MessageInvoker::HandleGate(ActorWorker& worker, ActorSlot& slot) {
  Turn& turn = worker.turn;
  if ((turn.gate & static_cast<uint8_t>(Gate::kStopping)) != 0 && lifecycle_.MayEnd(worker, slot)) {
    End(worker, slot);
    return Gated::kEnded;
  }
  slot.user = turn.user;
  slot.failures = turn.failures;
  slot.gate = turn.gate;
  slot.system = nullptr;
  if (slot.inbox.TryPark()) return Gated::kParked;
  slot.user.first = nullptr;
  Refill(turn);
  return Gated::kGoOn;
}

void MessageInvoker::End(ActorWorker& worker, ActorSlot& slot) {
  Turn& turn = worker.turn;
  lifecycle_.OnEnding(worker, slot);
  worker.outbox.EndHandler(false);
  slot.gate = 0;
  slot.failures = 0;
  slot.system = nullptr;
  DeadLetters(worker, slot, std::exchange(turn.user, {}));
  while (!slot.inbox.TryGoIdle()) {
    Refill(turn);
    EnvelopeList left;
    left.first = std::exchange(turn.system, nullptr);
    DeadLetters(worker, slot, left);
    DeadLetters(worker, slot, std::exchange(turn.user, {}));
  }
  lifecycle_.OnEnded(worker, slot);
}

void MessageInvoker::DeadLetters(ActorWorker& worker, ActorSlot& slot, EnvelopeList list) {
  while (Envelope* const envelope = list.PopFront()) {
    lifecycle_.OnDeadLetter(worker.cache(), EnvelopePtr(envelope), &slot, DeadLetterReason::kStopped);
  }
}

}  // namespace fraktor::inline v0
