// EnvelopeList: a list of messages, such as those that a mailbox has taken out of its inbox, or
// those of a stash. The list uses the links of the envelopes and allocates nothing. It does not own
// the envelopes: the owner of the list must end them.
//
// Thread safety: one thread at a time.
#ifndef FRAKTOR_ACTOR_MAILBOX_INTERNAL_ENVELOPE_LIST_H_
#define FRAKTOR_ACTOR_MAILBOX_INTERNAL_ENVELOPE_LIST_H_

#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0::actor_internal {

// `last` is meaningless while `first` is null.
struct EnvelopeList {
  Envelope* first = nullptr;
  Envelope* last = nullptr;

  bool empty() const { return first == nullptr; }

  Envelope* PopFront() {
    Envelope* const envelope = first;
    if (envelope != nullptr) first = Envelope::Of(envelope->next);
    return envelope;
  }
  void PushBack(Envelope* envelope) {
    envelope->next = nullptr;
    if (first == nullptr) {
      first = envelope;
    } else {
      last->next = envelope;
    }
    last = envelope;
  }
  void PushFront(Envelope* envelope) {
    envelope->next = first;
    if (first == nullptr) last = envelope;
    first = envelope;
  }
  void Append(EnvelopeList other) {
    if (other.first == nullptr) return;
    if (first == nullptr) {
      first = other.first;
    } else {
      last->next = other.first;
    }
    last = other.last;
  }
  // Puts the other list before this one.
  void Prepend(EnvelopeList other) {
    other.Append(*this);
    *this = other;
  }
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MAILBOX_INTERNAL_ENVELOPE_LIST_H_
