#include "fraktor/actor/mailbox/internal/ordered_envelopes.h"

#include <cxxabi.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace fraktor::inline v0::actor_internal {

void OrderedEnvelopes::Add(Envelope* envelope) {
  switch (order_) {
    case MessageOrder::kPriority:
      try {
        AddRanked(envelope, Rank(*envelope));
      } catch (abi::__forced_unwind&) {
        AddRanked(envelope, INT_MAX);
        throw;  // The thread is being cancelled, which must go on.
      }
      return;
    case MessageOrder::kControlFirst:
      if (envelope->type()->is_control()) {
        control_.PushBack(envelope);
        break;
      }
      [[fallthrough]];
    case MessageOrder::kFifo:
      others_.PushBack(envelope);
      break;
  }
  ++size_;
}

void OrderedEnvelopes::AddFront(EnvelopeList list) {
  if (list.empty()) return;
  for (const Envelope* envelope = list.first; envelope != nullptr; envelope = Envelope::Of(envelope->next)) ++size_;
  front_.Prepend(list);
}

Envelope* OrderedEnvelopes::PopFront() {
  if (size_ == 0) return nullptr;
  --size_;
  if (Envelope* const envelope = front_.PopFront()) return envelope;
  if (Envelope* const envelope = control_.PopFront()) return envelope;
  if (Envelope* const envelope = others_.PopFront()) return envelope;
  std::pop_heap(ranked_.begin(), ranked_.end(), GoesAfter);
  Envelope* const envelope = ranked_.back().envelope;
  ranked_.pop_back();
  return envelope;
}

EnvelopeList OrderedEnvelopes::TakeAll() {
  EnvelopeList all;
  while (Envelope* const envelope = PopFront()) all.PushBack(envelope);
  return all;
}

void OrderedEnvelopes::AddRanked(Envelope* envelope, int priority) {
  ranked_.push_back({priority, next_sequence_, envelope});
  std::push_heap(ranked_.begin(), ranked_.end(), GoesAfter);
  ++next_sequence_;
  ++size_;
}

int OrderedEnvelopes::Rank(const Envelope& envelope) {
  try {
    return priority_(envelope);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    ++priority_failures_;
    return INT_MAX;
  }
}

}  // namespace fraktor::inline v0::actor_internal
