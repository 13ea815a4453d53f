// A list of messages on one thread: what a mailbox has taken out of its inbox, what a stash keeps.
//
//   EnvelopeList waiting;
//   waiting.PushBack(envelope);
//   while (Envelope* next = waiting.PopFront()) ...
//
// Through the links of the envelopes, so nothing is allocated. It does not own them: whoever has the list ends them.
#ifndef FRAKTOR_ACTOR_MAILBOX_ENVELOPE_LIST_H_
#define FRAKTOR_ACTOR_MAILBOX_ENVELOPE_LIST_H_

#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0 {

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

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_ENVELOPE_LIST_H_
