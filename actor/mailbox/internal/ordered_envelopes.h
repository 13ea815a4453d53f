// OrderedEnvelopes: the waiting messages of a mailbox with MessageOrder::kControlFirst or
// kPriority. MessageInvoker adds messages as it takes them out of the inbox, and pops the next one
// to handle.
//
// Messages of one rank, and control messages among themselves, stay in the order in which they were
// added. A message is ranked once, when it is added.
//
// If the priority function throws, the message is not lost: its rank is INT_MAX, behind all others,
// and priority_failures() counts it. Only the forced unwinding of a cancelled thread reaches the
// caller; the message is added all the same.
//
// Cost: kFifo and kControlFirst O(1), through the links of the envelopes; kPriority O(log n) and
// 24 bytes per message.
//
// It does not own the envelopes: its owner must end them.
//
// Thread safety: only the holder of the mailbox uses it.
#ifndef FRAKTOR_ACTOR_MAILBOX_INTERNAL_ORDERED_ENVELOPES_H_
#define FRAKTOR_ACTOR_MAILBOX_INTERNAL_ORDERED_ENVELOPES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0::actor_internal {

class OrderedEnvelopes {
 public:
  // Uses `order` and `priority`. The options must be valid.
  explicit OrderedEnvelopes(const MailboxOptions& options) : order_(options.order), priority_(options.priority) {}

  OrderedEnvelopes(const OrderedEnvelopes&) = delete;
  OrderedEnvelopes& operator=(const OrderedEnvelopes&) = delete;

  // Adds a message at its place. kPriority may throw std::bad_alloc; the caller then still owns the
  // message.
  void Add(Envelope* envelope);

  // Adds unstashed messages before all others, without ranking them. The messages of a later call
  // go before those of an earlier one.
  void AddFront(EnvelopeList list);

  // Removes and returns the next message, or null if there is none.
  Envelope* PopFront();

  // Removes and returns all messages, in the order of PopFront.
  EnvelopeList TakeAll();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // How often the priority function threw.
  uint64_t priority_failures() const { return priority_failures_; }

 private:
  struct Ranked {
    int priority;
    uint64_t sequence;  // Lasts for 600 years of a thousand million messages a second.
    Envelope* envelope;
  };
  // The order for std::push_heap and std::pop_heap, which put the greatest in front.
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

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MAILBOX_INTERNAL_ORDERED_ENVELOPES_H_
