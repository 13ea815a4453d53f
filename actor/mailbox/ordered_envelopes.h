// What a mailbox with an order of its own has taken out of its inbox and not handed out yet.
//
//   OrderedEnvelopes waiting(options);                      // MessageOrder::kControlFirst or kPriority
//   waiting.Add(envelope);                                  // in the order in which they were sent
//   while (Envelope* next = waiting.PopFront()) ...         // control messages first, or the lowest rank
//
// Messages of one rank, and control messages among themselves, stay in the order in which they were added. A message is
// ranked once, when it is added.
//
// A priority function that throws does not cost the message: it is ranked INT_MAX, behind all others, and counted in
// priority_failures(). Only the forced unwinding of a cancelled thread goes on to the caller, with the message added
// all the same.
//
// Costs: kFifo and kControlFirst O(1), through the links of the envelopes; kPriority O(log n) and 24 bytes per message.
//
// It does not own the envelopes: whoever has it ends them.
//
// Thread safety: for the holder of the mailbox alone.
#ifndef FRAKTOR_ACTOR_MAILBOX_ORDERED_ENVELOPES_H_
#define FRAKTOR_ACTOR_MAILBOX_ORDERED_ENVELOPES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fraktor/actor/mailbox/envelope_list.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0 {

class OrderedEnvelopes {
 public:
  // Takes `order` and `priority` of options that were found valid.
  explicit OrderedEnvelopes(const MailboxOptions& options) : order_(options.order), priority_(options.priority) {}

  OrderedEnvelopes(const OrderedEnvelopes&) = delete;
  OrderedEnvelopes& operator=(const OrderedEnvelopes&) = delete;

  // Puts a message where it belongs. kPriority may throw std::bad_alloc: the message is the caller's still.
  void Add(Envelope* envelope);

  // Puts messages before everything else, whatever they are: for what was stashed. Of two calls the later is in front.
  void AddFront(EnvelopeList list);

  // The next message, or null if there is none.
  Envelope* PopFront();

  // Everything, in the order in which PopFront would give it.
  EnvelopeList TakeAll();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // How often the priority function threw.
  uint64_t priority_failures() const { return priority_failures_; }

 private:
  struct Ranked {
    int priority;
    uint64_t sequence;  // 600 years of a thousand million messages a second
    Envelope* envelope;
  };
  // For the heap functions of the library, which put the greatest in front.
  static bool GoesAfter(const Ranked& a, const Ranked& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.sequence > b.sequence;
  }

  void AddRanked(Envelope* envelope, int priority);
  int Rank(const Envelope& envelope);

  const MessageOrder order_;
  const MessagePriority priority_;
  EnvelopeList front_;          // Unstashed.
  EnvelopeList control_;        // Only kControlFirst.
  EnvelopeList others_;         // All but kPriority.
  std::vector<Ranked> ranked_;  // A heap; only kPriority.
  uint64_t next_sequence_ = 0;
  size_t size_ = 0;
  uint64_t priority_failures_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_ORDERED_ENVELOPES_H_
