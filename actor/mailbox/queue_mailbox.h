// The mailbox of an actor: system messages first, then user messages, each in the order in which they were sent.
//
//   if (mailbox.Post(envelope)) Schedule(actor);             // any thread; true: the actor was idle
//
//   MailLists lists = mailbox.Hold();                        // the thread to which the actor was scheduled
//   for (;;) {
//     while (Envelope* next = lists.PopFront()) Handle(next);
//     if (mailbox.inbox.TryGoIdle()) return;
//     lists.Take(mailbox.inbox);
//   }
//
// Senders meet in one word, the inbox (utils/queue/inbox.h), which says who holds the mailbox. What the holder has
// taken out and not handled yet is in two private lists, so that it can be looked at, put back in front, or given to
// dead letters without anybody else.
//
// Suspend and resume: the holder parks the inbox; user messages gather, and a system message gets the actor scheduled.
// Close: there is no closed state. The holder makes its references stale, drains, and goes idle; what comes later finds
// a stale word.
//
// Thread safety: Post, PostChain and PostSystem from any thread; the lists are the holder's.
#ifndef FRAKTOR_ACTOR_MAILBOX_QUEUE_MAILBOX_H_
#define FRAKTOR_ACTOR_MAILBOX_QUEUE_MAILBOX_H_

#include <utility>

#include "fraktor/actor/mailbox/envelope_list.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/utils/queue/inbox.h"

namespace fraktor::inline v0 {

// What the holder has taken out of the inbox, oldest first.
struct MailLists {
  EnvelopeList user;
  Envelope* system = nullptr;

  bool empty() const { return user.empty() && system == nullptr; }

  Envelope* PopSystem() {
    Envelope* const envelope = system;
    if (envelope != nullptr) system = Envelope::Of(envelope->next);
    return envelope;
  }
  // System messages before user messages.
  Envelope* PopFront() { return system != nullptr ? PopSystem() : user.PopFront(); }

  // Takes everything out of the inbox, behind what is here. Only the holder of the inbox may.
  void Take(Inbox& inbox) {
    EnvelopeList taken;
    Envelope* taken_system = nullptr;
    for (InboxNode* node = inbox.TakeNewestFirst(); node != nullptr;) {
      Envelope* const envelope = Envelope::Of(node);
      node = node->next;
      if (envelope->is_system()) [[unlikely]] {
        envelope->next = taken_system;
        taken_system = envelope;
      } else {
        taken.PushFront(envelope);
      }
    }
    user.Append(taken);
    if (taken_system != nullptr) [[unlikely]]
      AppendSystem(taken_system);
  }

 private:
  void AppendSystem(Envelope* more) {
    if (system == nullptr) {
      system = more;
      return;
    }
    Envelope* last = system;
    while (last->next != nullptr) last = Envelope::Of(last->next);
    last->next = more;
  }
};

class QueueMailbox {
 public:
  // Sends a user message. True: the mailbox was idle and is the caller's, who has to schedule the actor.
  bool Post(Envelope* envelope) {
    if (inbox.Push(envelope) != InboxPush::kClaimed) return false;
    lists.user = {envelope, envelope};
    return true;
  }

  // The same for several. The chain is empty afterwards.
  bool PostChain(InboxChain& chain) {
    if (inbox.PushChain(chain) != InboxPush::kClaimed) return false;
    const InboxList list = chain.TakeAll();
    lists.user = {Envelope::Of(list.first), Envelope::Of(list.last)};
    return true;
  }

  // The same for a system message, which a suspended actor gets too. kQueued: somebody else sees to it.
  InboxPush PostSystem(Envelope* envelope) {
    const InboxPush pushed = inbox.PushSystem(envelope);
    if (pushed == InboxPush::kClaimed) lists.system = envelope;
    return pushed;
  }

  // For the holder: its lists, to work on outside of the cache line that senders write to.
  MailLists Hold() { return std::exchange(lists, {}); }

  // Who has it.
  Inbox inbox;
  // The holder's, unless it has them with itself.
  MailLists lists;
};

static_assert(sizeof(QueueMailbox) == 32);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_QUEUE_MAILBOX_H_
