// MailboxLimits: the limit of a bounded mailbox and its back-pressure. It decides which user
// messages may enter, and applies the overflow policy to those that find no room.
//
// A sender (limited_sending.cc), on any thread, calls Admit for each message and does what the
// AdmissionKind says. The receiver, which is the worker that runs the actor, calls TakenOut when a
// counted message has left. If that returns true, the receiver calls Readmit and resumes the
// senders that it returns.
//
// The limits belong to a slot and live as long as the process. Each bounded actor of the slot
// configures them, and closes them when it ends. A sender may be late: its actor has ended, or
// another actor has the slot. The generation in the target word of the envelope tells, and the
// sender gets kEnded. Messages of an earlier actor that were counted and not taken out yet stay
// counted until they are taken out, because the count belongs to the slot. Nothing else of an
// earlier actor remains.
//
// Overflow policies. A policy is asked only about a message that finds no room. A built-in policy
// decides within Admit. For a policy of the user, Admit returns kAskPolicy, and the sender calls
// AskPolicy, which asks without the lock. OverflowNeeds names three kinds of mailboxes. Below,
// BlockProducer stands for all policies with kLine, and DropOldest for all with kQueue.
//
// BlockProducer. A message without room joins a line, and its sender is suspended at the end of its
// handler. While the line is not empty, the messages of all other senders join it too, so that none
// overtakes an earlier message of its sender. When the mailbox is down to half of its capacity, as
// many messages as fit are let in from the front of the line. The line takes as many messages as
// the mailbox; a further one is rejected. A message of an actor to itself is always let in, because
// the actor would wait for itself. A foreign thread has its place in the same line and blocks
// there.
//
// DropOldest. Senders put messages into a queue here, under the lock, from which the oldest can be
// removed. One wake-up message, the bell, goes through the inbox for any number of queued messages.
//
// Control messages of a mailbox with MessageOrder::kControlFirst find room beyond the capacity, up
// to MailboxOptions::reserve_for_control. With BlockProducer they overtake the line, unless it
// contains a control message. Beyond the reserve they are treated as other messages.
//
// Messages that pass limits are let in without being counted, and no sender is suspended for them:
// messages with kPassesMailboxLimits, and messages that the runtime puts into the mailbox of the
// actor that runs (AdmitOwn). They stay behind earlier messages: with BlockProducer they join the
// line if there is one, with DropOldest the queue, where they are never dropped. With BlockProducer
// those that an actor sends to itself join no line, because its other messages to itself join none
// either.
//
// Thread safety: any thread may call all methods, except that Configure and Close alternate and are
// called by one thread at a time. Methods that return envelopes give them to the caller.
//
// Cost: a message that finds room costs one compare-and-swap in Admit, which repeats only if others
// changed the word meanwhile, and one subtraction in TakenOut. DropOldest, and a message without
// room, take the mutex; a held message allocates its place in line.
#ifndef FRAKTOR_ACTOR_MAILBOX_INTERNAL_MAILBOX_LIMITS_H_
#define FRAKTOR_ACTOR_MAILBOX_INTERNAL_MAILBOX_LIMITS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/internal/limit_word.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

// A flag in the target word of a message in the queue of DropOldest: it passes limits, as messages
// with kPassesMailboxLimits do. TakeKept removes it.
inline constexpr uint64_t kPassesMark = uint64_t{1} << 39;

// The result of Admit for a message, and what the sender must do.
enum class AdmissionKind : uint8_t {
  // The caller still owns the envelope.
  kPush,        // It is counted: mark it as such and push it, before the next Admit for the same mailbox.
  kPass,        // It passes limits: push it without a mark.
  kDropped,     // DropNewest: end it, or publish it as dropped. The sender gets OK.
  kRejected,    // Reject, or a full line of BlockProducer: ResourceExhausted, or a dead letter (kMailboxFull).
  kDeadLetter,  // DeadLetter: a dead letter (kMailboxFull). The sender gets OK.
  kTimedOut,    // BlockProducer with a push timeout of zero: a dead letter (kPushTimedOut).
  kWouldBlock,  // BlockProducer, foreign thread: call AwaitRoom.
  kAskPolicy,   // The mailbox is full and has a policy of the user: call AskPolicy.
  kEnded,       // The actor has ended: a dead letter (kStopped).
  // The limits own the envelope.
  kKept,  // DropOldest: do what `ring` and `victim` say.
  kHeld,  // BlockProducer, actor: suspend the sender at the end of its handler, until Readmit or
          // Close returns it. When `push_timeout` is over, call TimeOut.
};

struct Admission {
  AdmissionKind kind = AdmissionKind::kEnded;
  // kKept: the caller must push a bell with the same target word, which it takes from the
  // reference, because the envelope may have ended already. The actor has no other bell under way,
  // and gets none until this one has ended, so the bell must not be lost.
  bool ring = false;
  // kKept: the oldest message, which was removed, or null. The caller publishes it as dropped
  // (kMailboxFull).
  Envelope* victim = nullptr;
  // kHeld: the sender had no message in this line before. It gets exactly one answer: Readmit or
  // Close returns it, or TimeOut returns messages. A sender adds one for each `first` and subtracts
  // one for each answer. It is suspended while the sum is not zero. This holds also if it waits at
  // several mailboxes, or is let in before its handler has ended.
  bool first = false;
  // kHeld and kWouldBlock: the longest time to wait.
  absl::Duration push_timeout = absl::ZeroDuration();
};

// The result of asking a policy of the user about a message.
struct PolicyAnswer {
  Admission admission = {};
  // kRejected: the reason. Empty if the policy gave none.
  std::string why = {};
};

// The messages and senders that waited when an actor ended.
struct Leftovers {
  EnvelopeList dead_letters = {};     // Kept and held messages (kStopped), the oldest first.
  size_t kept = 0;                    // The number of them that were in the mailbox; the others were in line.
  std::vector<ActorRef> resume = {};  // The senders that are suspended for held messages, in order.
};

// The numbers of answers of a mailbox since its actor was spawned, and its depth.
struct MailboxCounters {
  uint64_t dropped_oldest = 0;
  uint64_t dropped_newest = 0;
  uint64_t rejected = 0;
  uint64_t dead_lettered = 0;
  uint64_t held = 0;       // Messages of actors that had to wait in line.
  uint64_t blocked = 0;    // Messages for which a foreign thread had to wait.
  uint64_t timed_out = 0;  // Messages that found no room in time, also with a push timeout of zero.
  size_t depth = 0;        // Messages in the mailbox now, without those in line.
};

class MailboxLimits {
 public:
  // Makes closed limits: Admit returns kEnded.
  MailboxLimits() = default;
  ~MailboxLimits();

  MailboxLimits(const MailboxLimits&) = delete;
  MailboxLimits& operator=(const MailboxLimits&) = delete;

  // The holder of the mailbox calls it before anyone has a reference to the actor of `generation`.
  // The options must be valid and bounded.
  void Configure(uint32_t generation, const MailboxOptions& options);

  // For senders.

  // Decides about one user message, whose target word is set. `sender` is the actor to suspend if
  // there is no room, which is not always the sender in the envelope. A caller always passes the
  // same reference for the same actor. If `sender` is no one, the message is rejected instead of
  // held. May throw std::bad_alloc when it would hold a message; the caller owns the message then.
  Admission Admit(Envelope* envelope, ActorRef sender, Producer producer);

  // The receiver puts a message of the runtime into its own mailbox, behind all messages that are
  // in it or wait for room. No limit refuses it. Returns kPass, kKept, kHeld or kEnded. May throw
  // as Admit does.
  Admission AdmitOwn(Envelope* envelope);

  // Call it after kAskPolicy, with the same arguments. Asks the policy and applies its answer.
  // Never returns kAskPolicy. If the policy throws, or gives an answer that its needs() do not
  // allow, the message is rejected. May throw std::bad_alloc, as Admit does.
  PolicyAnswer AskPolicy(Envelope* envelope, ActorRef sender, Producer producer);

  // Call it after kWouldBlock. Blocks in line up to `timeout`; a timeout of zero does not wait. A
  // worker must not call it.
  // - OK: the message was counted; push it.
  // - DeadlineExceeded: no room in time; a dead letter (kPushTimedOut).
  // - Unavailable: the actor has ended; a dead letter (kStopped).
  absl::Status AwaitRoom(const Envelope& envelope, absl::Duration timeout);

  // Removes the messages of a suspended sender from the line after its push timeout, and returns
  // them in order: dead letters (kPushTimedOut). Empty if they were let in meanwhile.
  EnvelopeList TimeOut(ActorRef sender);

  // For the receiver.

  // A counted message of any actor of the slot has left the mailbox. Returns true if senders in
  // line may be let in: call Readmit.
  bool TakenOut() { return word_.TakenOut(); }

  // Lets in messages from the front of the line if at least half of the mailbox is empty. Counts
  // them and passes them to `push`, in order, which marks and pushes them. `push` runs under the
  // lock, so that no message overtakes them. It must not call these limits, and must not throw. It
  // is not called without messages. Foreign threads wake up and push their messages themselves.
  // Returns the senders that have no message in line any more, in order; the caller resumes them.
  std::vector<ActorRef> Readmit(absl::FunctionRef<void(EnvelopeList)> push);

  // DropOldest: the actor that runs has received a bell. Returns the oldest queued message, or
  // null. `more` becomes true if there are others: the bell stays valid and the caller must call
  // again. Otherwise the bell has ended.
  Envelope* TakeKept(bool* more);

  // The actor has ended. Senders get kEnded from now on, until the next Configure.
  Leftovers Close();

  // Each counter may be out of date at once, and they need not fit together.
  MailboxCounters counters() const;
  // For the holder of the mailbox.
  OverflowNeeds needs() const { return word_.needs(); }
  size_t depth() const { return word_.depth(); }
  // The number of user messages that fit. A late sender may get that of a later actor.
  size_t capacity() const { return word_.capacity(); }
  // The number of control messages that fit beyond that.
  size_t control_reserve() const { return word_.control_reserve(); }

 private:
  // A foreign thread that waits in line. Guarded by mutex_.
  struct BlockedThread;

  // A place in line: a message and the actor that is suspended for it, or a thread. No actor is
  // suspended for a message that passes limits.
  struct Place {
    Envelope* envelope = nullptr;
    ActorRef sender = {};
    BlockedThread* thread = nullptr;
    bool is_control = false;
  };

  // Handles a message without room. Not inlined, so that Admit stays small.
  ABSL_ATTRIBUTE_NOINLINE Admission Overflow(Envelope* envelope, ActorRef sender, Producer producer);
  OverflowCase CaseOf(const Envelope& envelope, ActorRef sender, Producer producer) const;
  // Applies the decision of a policy that has these needs.
  PolicyAnswer Apply(const OverflowPolicy& policy, OverflowNeeds needs, const OverflowDecision& decision,
                     Envelope* envelope, ActorRef sender, Producer producer);
  PolicyAnswer Rejected(std::string why);

  Admission Keep(Envelope* envelope);
  // The queue is full, and the policy has decided to drop the oldest message.
  PolicyAnswer Replace(const OverflowPolicy& policy, Envelope* envelope);
  // Returns whether `envelope` counts and the queue is full.
  bool IsFullFor(const Envelope& envelope) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !Passes(envelope) && kept_size_ >= word_.capacity();
  }
  static bool Passes(const Envelope& envelope) {
    return envelope.type()->passes_limits() || (envelope.target_word() & kPassesMark) != 0;
  }
  // Puts a message into the queue. If the queue is full, it takes the place of `victim`.
  Admission KeepLocked(Envelope* envelope, Envelope* victim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the oldest message that counts and that the policy lets go; null if there is none. If
  // the policy throws, sets `error` to the text.
  Envelope* TakeOldest(const OverflowPolicy& policy, const Envelope& arriving, std::string* error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves messages that pass limits from the front of kept_ to first_passing_. Call it after each
  // change of kept_. It moves each message at most once.
  void MoveFirstPassing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Admission Pass(Envelope* envelope);
  Admission Hold(Envelope* envelope, ActorRef sender, Producer producer);
  // Returns whether a message may use the reserve.
  bool IsControl(const Envelope& envelope) const {
    return envelope.type()->is_control() && word_.control_reserve() > 0;
  }
  // Moves the places of `from` to the end of the line, and removes a place from it.
  void Join(std::list<Place>& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Place>::iterator Leave(std::list<Place>::iterator place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call it after Leave.
  void StopWaitingIfLineIsEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A held message has left the line. Returns true if it was the last one of its sender.
  bool ForgetHeld(ActorRef sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether there is room, and whether the line is not empty. The latter changes under the mutex.
  alignas(64) LimitWord word_;

  // The policy if it is built in, and null if it is the user's. Built-in policies are never
  // destroyed, so a late sender may read that of a later actor. Relaxed; ordered by word_, as its
  // rules are.
  std::atomic<const OverflowPolicy*> built_in_{nullptr};

  // Relaxed: sums that order nothing.
  std::atomic<uint64_t> dropped_oldest_{0};
  std::atomic<uint64_t> dropped_newest_{0};
  std::atomic<uint64_t> rejected_{0};
  std::atomic<uint64_t> dead_lettered_{0};
  std::atomic<uint64_t> held_sum_{0};
  std::atomic<uint64_t> blocked_{0};
  std::atomic<uint64_t> timed_out_{0};
  // The size of line_, for policies. Relaxed: a hint; it pairs with nothing.
  std::atomic<size_t> waiting_{0};

  alignas(64) Mutex mutex_;
  absl::Duration push_timeout_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const OverflowPolicy> policy_ ABSL_GUARDED_BY(mutex_);  // The user's, or null.
  // BlockProducer: the line in the order of arrival, the number of messages of actors in it, and
  // the number of messages of each sender.
  std::list<Place> line_ ABSL_GUARDED_BY(mutex_);
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t control_in_line_ ABSL_GUARDED_BY(mutex_) = 0;  // Only if there is a reserve.
  absl::flat_hash_map<ActorRef, size_t> held_of_ ABSL_GUARDED_BY(mutex_);
  // DropOldest: the queue is first_passing_, and then kept_. The depth of the word contains these
  // messages too, except those that pass limits. first_passing_ contains only messages that pass
  // limits. kept_ begins with a message that may be dropped, so TakeOldest need not look for it
  // among very many that may not.
  EnvelopeList first_passing_ ABSL_GUARDED_BY(mutex_);
  EnvelopeList kept_ ABSL_GUARDED_BY(mutex_);
  size_t kept_size_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t kept_passing_ ABSL_GUARDED_BY(mutex_) = 0;
  bool bell_rings_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MAILBOX_INTERNAL_MAILBOX_LIMITS_H_
