// QueueMailbox: the mailbox of an actor. System messages go first, then user messages, each in the
// order in which they were sent.
//
// A sender, on any thread, calls Post; if it returns true, the actor was idle and the sender
// schedules it. The worker that runs the actor is the holder of the mailbox. It takes the lists
// with Hold and handles the messages. Then it calls TryGoIdle of the inbox; if that fails, there
// are more messages, which it takes with MailLists::Take.
//
// Senders use one word, the inbox (utils/queue/internal/inbox.h), which also says whether the
// mailbox has a holder. The messages that the holder has taken out and not handled yet are in two
// private lists, which the holder can read, extend at the front, or turn into dead letters without
// other threads.
//
// Suspend: the holder parks the inbox. User messages then wait, and a system message schedules the
// actor. End: there is no closed state. The holder makes the references of the actor stale, drains
// the mailbox, and goes idle; a late message finds a stale word.
//
// Thread safety: any thread calls Post, PostChain and PostSystem. Only the holder uses the lists.
#ifndef FRAKTOR_ACTOR_MAILBOX_INTERNAL_QUEUE_MAILBOX_H_
#define FRAKTOR_ACTOR_MAILBOX_INTERNAL_QUEUE_MAILBOX_H_

#include <utility>

#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor::inline v0::actor_internal {

// The messages that the holder has taken out of the inbox, oldest first.
struct MailLists {
  EnvelopeList user;
  Envelope* system = nullptr;

  bool empty() const { return user.empty() && system == nullptr; }

  Envelope* PopSystem() {
    Envelope* const envelope = system;
    if (envelope != nullptr) system = Envelope::Of(envelope->next);
    return envelope;
  }
  // Adds a system message before the others.
  void PushSystem(Envelope* envelope) {
    envelope->next = system;
    system = envelope;
  }
  // Removes and returns the next message: system messages go before user messages.
  Envelope* PopFront() { return system != nullptr ? PopSystem() : user.PopFront(); }

  // Appends all messages of the inbox. Only the holder of the inbox may call it.
  void Take(utils_internal::Inbox& inbox) {
    EnvelopeList taken;
    Envelope* taken_system = nullptr;
    for (utils_internal::InboxNode* node = inbox.TakeNewestFirst(); node != nullptr;) {
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
  // Sends a user message. Returns true if the mailbox was idle: the caller holds it now and must
  // schedule the actor.
  [[gnu::always_inline]] bool Post(Envelope* envelope) {
    if (inbox.Push(envelope) != utils_internal::InboxPush::kClaimed) return false;
    lists.user = {envelope, envelope};
    return true;
  }

  // The same for several messages. The chain is empty afterwards.
  bool PostChain(utils_internal::InboxChain& chain) {
    if (inbox.PushChain(chain) != utils_internal::InboxPush::kClaimed) return false;
    const utils_internal::InboxList list = chain.TakeAll();
    lists.user = {Envelope::Of(list.first), Envelope::Of(list.last)};
    return true;
  }

  // The same for a system message, which a suspended actor gets too. With kQueued the holder
  // handles it.
  utils_internal::InboxPush PostSystem(Envelope* envelope) {
    const utils_internal::InboxPush pushed = inbox.PushSystem(envelope);
    if (pushed == utils_internal::InboxPush::kClaimed) lists.system = envelope;
    return pushed;
  }

  // Moves the lists to the holder, which works on them outside of the cache line that senders write
  // to.
  MailLists Hold() { return std::exchange(lists, {}); }

  // The messages that the holder has not taken yet, and whether there is a holder.
  utils_internal::Inbox inbox;
  // The lists of the holder, unless Hold has moved them.
  MailLists lists;
};

static_assert(sizeof(QueueMailbox) == 32);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MAILBOX_INTERNAL_QUEUE_MAILBOX_H_
