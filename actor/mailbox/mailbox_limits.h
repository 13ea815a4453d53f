// Who may put a user message into a bounded mailbox, and what becomes of the one that finds no room.
//
// A sender, on any thread, asks for each message:
//
//   Admission admission = limits.Admit(envelope, self, Producer::kActor);
//   switch (admission.kind) {
//     case AdmissionKind::kPush: Push(envelope); break;                       // it was counted
//     case AdmissionKind::kHeld: SuspendAtEndOfHandler(); break;              // the line has it
//     case AdmissionKind::kKept: if (admission.ring) Push(bell); ... break;   // DropOldest
//     case AdmissionKind::kAskPolicy: limits.AskPolicy(envelope, self, Producer::kActor); ... break;
//     ...                                                                     // the others: the envelope is still ours
//   }
//
// The receiver says that a counted message has left, and lets in who waits:
//
//   if (limits.TakenOut()) {
//     for (ActorRef sender : limits.Readmit([&](EnvelopeList list) { PushAll(list); })) Resume(sender);
//   }
//
// Belongs to a slot and lives as long as the process. One bounded actor after the other configures it and closes it
// when it ends. A sender may come late, when its actor has ended or the slot is in use by another: the generation in
// the envelope's target word tells, and it is answered kEnded. Nothing of an earlier actor is ever held for a later one
// but the messages that were counted and not taken out yet: they stay counted until somebody does, since the count
// belongs to the slot.
//
// Overflow policies. Only a message without room is put to one. A built-in policy decides within
// Admit. A policy of the user is asked by AskPolicy, without the lock: Admit answers kAskPolicy.
// The mailbox is of one of three kinds, which OverflowNeeds names; below, BlockProducer stands for
// all policies with kLine, and DropOldest for all with kQueue.
//
// BlockProducer. A message without room joins a line, and its sender is suspended when its handler has ended. While
// anybody is in line, everybody else's messages join it too, so that none overtakes an earlier one of its sender. When
// the mailbox is down to half of its capacity, those in front are let in, as many as fit. As many messages as the
// mailbox has room for may be in line; a handler that sends more is rejected. What an actor sends to itself is let in
// in any case: it could wait for itself only. A foreign thread has its place in the same line, and waits there itself.
//
// DropOldest. Senders put messages into a queue here, under the lock, where the oldest can be taken out, and ring a
// bell: one message through the inbox for any number of kept ones.
//
// Control messages, in a mailbox of MessageOrder::kControlFirst, find room beyond the capacity, up
// to the reserve that MailboxOptions::reserve_for_control is. With BlockProducer they overtake
// those in line, but no control message that is in line itself. Beyond the reserve they are treated
// as the others.
//
// Messages that pass limits (kPassesMailboxLimits) are let in without being counted, and nobody is suspended for them.
// They stay behind what was sent before: with BlockProducer they join the line, with DropOldest the queue, where they are
// never the oldest that has to go.
//
// Thread safety: all methods may be called from any thread, but Configure and Close by one at a time, and Close before
// the next Configure. Methods that hand out envelopes give them to the caller.
//
// Cost: a message that finds room is one compare-and-swap in Admit, which repeats only if others changed the word
// meanwhile, and one subtraction in TakenOut. DropOldest and what finds no room takes the mutex; held messages allocate
// their place in line.
#ifndef FRAKTOR_ACTOR_MAILBOX_MAILBOX_LIMITS_H_
#define FRAKTOR_ACTOR_MAILBOX_MAILBOX_LIMITS_H_

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

#include "fraktor/actor/mailbox/envelope_list.h"
#include "fraktor/actor/mailbox/limit_word.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// What became of a message, and what the sender has to do.
enum class AdmissionKind : uint8_t {
  // The caller has the envelope.
  kPush,        // It was counted: mark it as such and push it, before the next Admit for the same mailbox.
  kPass,        // It passes limits: push it without a mark.
  kDropped,     // DropNewest: end it, or publish it as dropped; the sender is told OK.
  kRejected,    // Reject, and BlockProducer if its line is full: ResourceExhausted, or a dead letter (kMailboxFull).
  kDeadLetter,  // DeadLetter: a dead letter (kMailboxFull); the sender is told OK.
  kTimedOut,    // BlockProducer with a push timeout of zero: a dead letter (kPushTimedOut).
  kWouldBlock,  // BlockProducer, foreign thread: AwaitRoom.
  kAskPolicy,   // The mailbox is full and has a policy of the user: AskPolicy.
  kEnded,       // The actor has ended: a dead letter (kStopped).
  // The limits have the envelope.
  kKept,  // DropOldest. `ring` and `victim` say what to do.
  kHeld,  // BlockProducer, actor: suspend the sender at the end of its handler, until Readmit or Close lists it, or
          // `push_timeout` is over: then TimeOut.
};

struct Admission {
  AdmissionKind kind = AdmissionKind::kEnded;
  // kKept: the caller must push a bell for the same target word (taken from the reference: the envelope may have ended
  // already). No other bell of this actor is on its way, and none comes until this one has ended, so it must not get
  // lost.
  bool ring = false;
  // kKept: the oldest message, which had to go, or null. The caller publishes it as dropped (kMailboxFull).
  Envelope* victim = nullptr;
  // kHeld: the sender had nothing in this line before. Then it is answered exactly once: it is listed by Readmit or
  // Close, or TimeOut gives messages back. So a sender that counts these up, and the answers down, is suspended while
  // the sum is not zero, also if it waits at several mailboxes or is let in before its handler has ended.
  bool first = false;
  // kHeld and kWouldBlock: how long at most.
  absl::Duration push_timeout = absl::ZeroDuration();
};

// The result of asking a policy of the user about a message.
struct PolicyAnswer {
  Admission admission = {};
  // kRejected: the reason. Empty if the policy gave none.
  std::string why = {};
};

// What was in the way when an actor ended.
struct Leftovers {
  EnvelopeList dead_letters = {};     // Kept and held messages (kStopped), the oldest first.
  size_t kept = 0;                    // How many of them were in the mailbox; the others were in line.
  std::vector<ActorRef> resume = {};  // Senders who are suspended for held messages, in order.
};

// What a mailbox has answered since its slot was made, and how full it is.
struct MailboxCounters {
  uint64_t dropped_oldest = 0;
  uint64_t dropped_newest = 0;
  uint64_t rejected = 0;
  uint64_t dead_lettered = 0;
  uint64_t held = 0;       // Messages of actors that had to wait in line.
  uint64_t blocked = 0;    // Messages for which a foreign thread had to wait.
  uint64_t timed_out = 0;  // Held or blocked in vain, or not at all with a push timeout of zero.
  size_t depth = 0;        // Counted or kept now; those in line are not.
};

class MailboxLimits {
 public:
  // Closed: all are answered kEnded.
  MailboxLimits() = default;
  ~MailboxLimits();

  MailboxLimits(const MailboxLimits&) = delete;
  MailboxLimits& operator=(const MailboxLimits&) = delete;

  // For the holder of the mailbox, before the actor of `generation` can be reached. The options must be valid and
  // bounded.
  void Configure(uint32_t generation, const MailboxOptions& options);

  // For senders.

  // Asks for one user message, whose target word is set. `sender` is the actor that is to be suspended if need be,
  // which is not always the envelope's; always named by the same reference. If it is no one, nothing is held for it:
  // without room it is rejected.
  // May throw std::bad_alloc when it would hold a message, which is the caller's then.
  Admission Admit(Envelope* envelope, ActorRef sender, Producer producer);

  // After kAskPolicy, with the same arguments: asks the policy and does what it answers. Never
  // answers kAskPolicy itself. If the policy throws, or answers what it did not name in needs(),
  // the message is rejected. May throw std::bad_alloc, as Admit does.
  PolicyAnswer AskPolicy(Envelope* envelope, ActorRef sender, Producer producer);

  // After kWouldBlock: waits in line, up to `timeout`, with zero not at all. Never on a worker.
  // - OK: the message was counted; push it.
  // - DeadlineExceeded: no room in time; a dead letter (kPushTimedOut).
  // - Unavailable: the actor has ended; a dead letter (kStopped).
  absl::Status AwaitRoom(const Envelope& envelope, absl::Duration timeout);

  // Takes the messages of a suspended sender out of the line, because its time is up: dead letters (kPushTimedOut), in
  // order. Empty if it has none there any more, since it was let in meanwhile.
  EnvelopeList TimeOut(ActorRef sender);

  // For the receiver.

  // A counted message has left the mailbox, for whatever actor of the slot it was. True if somebody may be let in:
  // Readmit.
  bool TakenOut() { return word_.TakenOut(); }

  // Lets in those in front of the line if the mailbox is half empty or more: counts their messages and hands them to
  // `push`, in order, to be marked and pushed. `push` runs under the lock, so that nobody overtakes those messages; it
  // must not call these limits, nor throw. It is not called if there are none. Foreign threads wake up and push
  // themselves.
  // Returns the senders who have nothing in line any more, in order, to be resumed.
  std::vector<ActorRef> Readmit(absl::FunctionRef<void(EnvelopeList)> push);

  // DropOldest, for a bell of the actor that runs: the oldest kept message, or null. `more`: there are others, and the
  // bell goes on ringing, so the caller must come again. Otherwise the bell has ended.
  Envelope* TakeKept(bool* more);

  // The actor has ended. From now on everybody is answered kEnded, until the next Configure.
  Leftovers Close();

  // Each one is what was true a moment ago; together they need not fit.
  MailboxCounters counters() const;
  // For the holder of the mailbox.
  OverflowNeeds needs() const { return word_.needs(); }
  size_t depth() const { return word_.depth(); }
  // How many user messages there is room for. For senders: of a later actor if theirs has ended meanwhile.
  size_t capacity() const { return word_.capacity(); }
  // How many control messages there is room for beyond that.
  size_t control_reserve() const { return word_.control_reserve(); }

 private:
  // Where a foreign thread waits. Guarded by mutex_, as is everything on which a thread waits.
  struct BlockedThread;

  // A place in line: a message and the actor that waits for it, or a thread. Nobody waits for one that passes limits.
  struct Place {
    Envelope* envelope = nullptr;
    ActorRef sender = {};
    BlockedThread* thread = nullptr;
    bool is_control = false;
  };

  // For a message without room. Not inlined, so that Admit stays small.
  ABSL_ATTRIBUTE_NOINLINE Admission Overflow(Envelope* envelope, ActorRef sender, Producer producer);
  OverflowCase CaseOf(const Envelope& envelope, ActorRef sender, Producer producer) const;
  // Does what a policy with these needs has decided.
  PolicyAnswer Apply(const OverflowPolicy& policy, OverflowNeeds needs, const OverflowDecision& decision,
                     Envelope* envelope, ActorRef sender, Producer producer);
  PolicyAnswer Rejected(std::string why);

  Admission Keep(Envelope* envelope);
  // The queue is full, and the policy has decided to drop the oldest message.
  PolicyAnswer Replace(const OverflowPolicy& policy, Envelope* envelope);
  // Whether `envelope` needs a place in a queue that has none left.
  bool IsFullFor(const Envelope& envelope) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !envelope.type()->passes_limits() && kept_size_ >= word_.capacity();
  }
  // Puts a message into the queue. If the queue is full, it takes the place of `victim`.
  Admission KeepLocked(Envelope* envelope, Envelope* victim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out the oldest message that counts and that may be replaced; null if there is none.
  // `error` is the text of what the policy threw.
  Envelope* TakeOldest(const OverflowPolicy& policy, const Envelope& arriving, std::string* error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Admission Pass(Envelope* envelope);
  Admission Hold(Envelope* envelope, ActorRef sender, Producer producer);
  // Whether a message may use the reserve.
  bool IsControl(const Envelope& envelope) const {
    return envelope.type()->is_control() && word_.control_reserve() > 0;
  }
  // Takes places of `from` to the end of the line, and a place out of it.
  void Join(std::list<Place>& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Place>::iterator Leave(std::list<Place>::iterator place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After a place was left.
  void StopWaitingIfLineIsEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A held message has left the line. True if it was the last of its sender.
  bool ForgetHeld(ActorRef sender) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether there is room, and whether anybody is in line: that is set and cleared with the mutex.
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
  // BlockProducer. Whoever is in line, in the order of arrival; how many of them are messages of actors, and how many
  // each sender has there.
  std::list<Place> line_ ABSL_GUARDED_BY(mutex_);
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t control_in_line_ ABSL_GUARDED_BY(mutex_) = 0;  // Only if there is a reserve.
  absl::flat_hash_map<ActorRef, size_t> held_of_ ABSL_GUARDED_BY(mutex_);
  // DropOldest. They are in the word's depth too, but for those that pass limits.
  EnvelopeList kept_ ABSL_GUARDED_BY(mutex_);
  size_t kept_size_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t kept_passing_ ABSL_GUARDED_BY(mutex_) = 0;
  bool bell_rings_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_MAILBOX_LIMITS_H_
