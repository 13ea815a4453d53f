#include "fraktor/actor/mailbox/internal/mailbox_limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor::actor_internal {

using utils_internal::Inbox;
using utils_internal::InboxList;
using utils_internal::InboxNode;
using utils_internal::InboxPush;
using utils_internal::TableSlot;

namespace {

constexpr uint32_t kGeneration = 1;
// The flag in references to bounded actors: the generation is not the whole word.
constexpr uint64_t kLimited = uint64_t{1} << 32;

struct Load {
  int producer;
  int number;
};
struct Command : ControlMessage {
  int number = 0;
};

// Returns a reference that differs from others. The slot is never read.
ActorRef Actor(uintptr_t number) {
  return {reinterpret_cast<TableSlot*>(number * 128), 1};  // NOLINT(performance-no-int-to-ptr)
}

EnvelopePtr Message(int number, int producer = 0, uint32_t generation = kGeneration) {
  EnvelopePtr envelope = MakeEnvelope<Load>(ActorRef(), producer, number);
  envelope->set_target_word(generation | kLimited);
  return envelope;
}

EnvelopePtr ControlOf(int number) {
  EnvelopePtr envelope = MakeEnvelope<Command>(ActorRef(), Command{{}, number});
  envelope->set_target_word(kGeneration | kLimited);
  return envelope;
}

int NumberOf(const Envelope& envelope) {
  return envelope.Is<Command>() ? envelope.As<Command>().number : envelope.As<Load>().number;
}

std::vector<int> NumbersOf(EnvelopeList list) {
  std::vector<int> numbers;
  while (Envelope* const envelope = list.PopFront()) numbers.push_back(NumberOf(*EnvelopePtr(envelope)));
  return numbers;
}

using Numbers = std::vector<int>;
using Refs = std::vector<ActorRef>;

// One mailbox, whose inbox is a list.
class Mailbox {
 public:
  explicit Mailbox(const MailboxOptions& options) {
    EXPECT_TRUE(options.Validate().ok()) << options.Validate();
    limits.Configure(kGeneration, options);
  }
  ~Mailbox() {
    End();
    NumbersOf(inbox);
  }

  // Sends a message as an actor, or as another producer.
  Admission Send(int number, uintptr_t actor, Producer producer = Producer::kActor, uint32_t generation = kGeneration) {
    return SendIt(Message(number, static_cast<int>(actor), generation), actor, producer);
  }
  AdmissionKind KindOfControl(int number, uintptr_t actor, Producer producer = Producer::kActor) {
    return SendIt(ControlOf(number), actor, producer).kind;
  }
  Admission SendIt(EnvelopePtr envelope, uintptr_t actor, Producer producer) {
    Admission admission = limits.Admit(envelope.get(), Actor(actor), producer);
    switch (admission.kind) {
      case AdmissionKind::kPush:
        inbox.PushBack(envelope.release());
        break;
      case AdmissionKind::kKept:
      case AdmissionKind::kHeld:
        (void)envelope.release();
        break;
      default:
        break;
    }
    return admission;
  }
  // Sends a message, and asks the policy of the user if there is no room.
  PolicyAnswer Ask(int number, uintptr_t actor, Producer producer = Producer::kActor) {
    EnvelopePtr envelope = Message(number, static_cast<int>(actor));
    PolicyAnswer answer;
    answer.admission = limits.Admit(envelope.get(), Actor(actor), producer);
    if (answer.admission.kind == AdmissionKind::kAskPolicy) {
      answer = limits.AskPolicy(envelope.get(), Actor(actor), producer);
    }
    switch (answer.admission.kind) {
      case AdmissionKind::kPush:
        inbox.PushBack(envelope.release());
        break;
      case AdmissionKind::kKept:
      case AdmissionKind::kHeld:
        (void)envelope.release();
        break;
      default:
        break;
    }
    return answer;
  }
  // Puts a message of the runtime into the mailbox, as its actor does.
  AdmissionKind KindOfOwn(int number, uint32_t generation = kGeneration) {
    EnvelopePtr envelope = Message(number, 0, generation);
    const AdmissionKind kind = limits.AdmitOwn(envelope.get()).kind;
    if (kind == AdmissionKind::kPass) inbox.PushBack(envelope.release());
    if (kind == AdmissionKind::kKept || kind == AdmissionKind::kHeld) (void)envelope.release();
    return kind;
  }
  AdmissionKind KindOf(int number, uintptr_t actor, Producer producer = Producer::kActor) {
    return Send(number, actor, producer).kind;
  }

  // Handles the next message and returns its number. Adds the resumed senders to `resumed`.
  int Receive() {
    EnvelopePtr envelope(inbox.PopFront());
    if (envelope == nullptr) return -1;
    if (limits.TakenOut()) Readmit();
    return NumberOf(*envelope);
  }
  void Readmit() {
    for (ActorRef sender : limits.Readmit([this](EnvelopeList list) { inbox.Append(list); })) resumed.push_back(sender);
  }
  Numbers ReceiveAll() {
    Numbers numbers;
    while (!inbox.empty()) numbers.push_back(Receive());
    return numbers;
  }

  Numbers End() {
    Leftovers left = limits.Close();
    for (ActorRef sender : left.resume) resumed.push_back(sender);
    return NumbersOf(left.dead_letters);
  }

  MailboxLimits limits;
  EnvelopeList inbox;
  Refs resumed;
};

MailboxOptions Bounded(size_t capacity, OverflowStrategy overflow) {
  return {.capacity = capacity, .overflow = overflow};
}

// SCH-4: actors use a slot, and its limits, one after the other.
TEST(MailboxLimits, CountAnewForEachActor) {
  constexpr uint32_t kNext = kGeneration + 2;
  const MailboxOptions options = Bounded(1, OverflowStrategy::kReject);
  Mailbox mailbox(options);
  ASSERT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  ASSERT_EQ(mailbox.KindOf(2, 1), AdmissionKind::kRejected);
  ASSERT_EQ(mailbox.limits.counters().rejected, 1u);
  ASSERT_EQ(mailbox.Receive(), 1);
  mailbox.End();
  mailbox.limits.Configure(kNext, options);
  EXPECT_EQ(mailbox.limits.counters().rejected, 0u);
  ASSERT_EQ(mailbox.Send(3, 1, Producer::kActor, kNext).kind, AdmissionKind::kPush);
  ASSERT_EQ(mailbox.Send(4, 1, Producer::kActor, kNext).kind, AdmissionKind::kRejected);
  EXPECT_EQ(mailbox.limits.counters().rejected, 1u);
}

// SCH-4
TEST(MailboxLimits, RejectWhatIsTooMuch) {
  for (size_t capacity : {size_t{1}, size_t{2}, size_t{1000}}) {
    Mailbox mailbox(Bounded(capacity, OverflowStrategy::kReject));
    for (size_t i = 0; i < capacity; ++i) {
      ASSERT_EQ(mailbox.KindOf(static_cast<int>(i), 1), AdmissionKind::kPush);
      ASSERT_EQ(mailbox.limits.depth(), i + 1);
    }
    EXPECT_EQ(mailbox.KindOf(-2, 1), AdmissionKind::kRejected);
    EXPECT_EQ(mailbox.KindOf(-2, 1, Producer::kForeignThread), AdmissionKind::kRejected);
    EXPECT_EQ(mailbox.KindOf(-2, 1, Producer::kSelf), AdmissionKind::kRejected);
    EXPECT_EQ(mailbox.Receive(), 0);
    EXPECT_EQ(mailbox.KindOf(-3, 1), AdmissionKind::kPush);
    EXPECT_EQ(mailbox.KindOf(-4, 1), AdmissionKind::kRejected);
    EXPECT_EQ(mailbox.limits.counters().rejected, 4u);
    EXPECT_EQ(mailbox.limits.counters().depth, capacity);
  }
}

// SCH-4
TEST(MailboxLimits, DropTheNewest) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kDropNewest));
  EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(2, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(3, 1), AdmissionKind::kDropped);
  EXPECT_EQ(mailbox.limits.counters().dropped_newest, 1u);
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{1, 2}));
  EXPECT_EQ(mailbox.limits.depth(), 0u);
}

// SCH-4
TEST(MailboxLimits, MakeDeadLetters) {
  Mailbox mailbox(Bounded(1, OverflowStrategy::kDeadLetter));
  EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(2, 1), AdmissionKind::kDeadLetter);
  EXPECT_EQ(mailbox.limits.counters().dead_lettered, 1u);
}

// A policy that calls a function.
class Scripted : public OverflowPolicy {
 public:
  using Decision = std::function<OverflowDecision(const OverflowCase&)>;
  using Replacement = std::function<bool(const Envelope&, const Envelope&)>;

  Scripted(OverflowNeeds needs, Decision decide, Replacement may_replace = nullptr)
      : needs_(needs), decide_(std::move(decide)), may_replace_(std::move(may_replace)) {}

  std::string_view name() const noexcept override { return "Scripted"; }
  OverflowNeeds needs() const noexcept override { return needs_; }
  OverflowDecision Decide(const OverflowCase& full) const override { return decide_(full); }
  bool MayReplace(const Envelope& arriving, const Envelope& queued) const override {
    return may_replace_ == nullptr || may_replace_(arriving, queued);
  }

 private:
  const OverflowNeeds needs_;
  const Decision decide_;
  const Replacement may_replace_;
};

MailboxOptions WithPolicy(size_t capacity, OverflowNeeds needs, Scripted::Decision decide,
                          Scripted::Replacement may_replace = nullptr) {
  return {.capacity = capacity,
          .overflow_policy = std::make_shared<Scripted>(needs, std::move(decide), std::move(may_replace))};
}

// SCH-4: a policy of the user is asked only if there is no room, and gets all data of the message.
TEST(MailboxLimits, AskThePolicyOfTheUserAboutAMessageWithoutRoom) {
  int asked = 0;
  Mailbox mailbox(WithPolicy(2, OverflowNeeds::kCount, [&](const OverflowCase& full) {
    ++asked;
    EXPECT_EQ(NumberOf(full.message), 10 + asked);
    EXPECT_EQ(full.depth, 2u);
    EXPECT_EQ(full.capacity, 2u);
    EXPECT_EQ(full.waiting, 0u);
    EXPECT_FALSE(full.is_control);
    EXPECT_EQ(full.sending_actor, Actor(7));
    if (asked == 1) return OverflowDecision::Reject("it is too late");
    if (asked == 2) return OverflowDecision::DropNewest();
    return OverflowDecision::DeadLetter();
  }));
  EXPECT_EQ(mailbox.Ask(1, 7).admission.kind, AdmissionKind::kPush);
  EXPECT_EQ(mailbox.Ask(2, 7).admission.kind, AdmissionKind::kPush);
  EXPECT_EQ(asked, 0);
  const PolicyAnswer rejected = mailbox.Ask(11, 7);
  EXPECT_EQ(rejected.admission.kind, AdmissionKind::kRejected);
  EXPECT_EQ(rejected.why, "it is too late");
  EXPECT_EQ(mailbox.Ask(12, 7).admission.kind, AdmissionKind::kDropped);
  EXPECT_EQ(mailbox.Ask(13, 7).admission.kind, AdmissionKind::kDeadLetter);
  EXPECT_EQ(asked, 3);
  const MailboxCounters counters = mailbox.limits.counters();
  EXPECT_EQ(counters.rejected, 1u);
  EXPECT_EQ(counters.dropped_newest, 1u);
  EXPECT_EQ(counters.dead_lettered, 1u);
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{1, 2}));
}

// SCH-4: a policy that throws rejects the message, which the sender still owns.
TEST(MailboxLimits, RejectIfThePolicyOfTheUserThrows) {
  Mailbox mailbox(WithPolicy(1, OverflowNeeds::kCount, [](const OverflowCase& full) -> OverflowDecision {
    if (NumberOf(full.message) == 2) throw std::runtime_error("no idea");
    throw 42;
  }));
  mailbox.Ask(1, 7);
  const PolicyAnswer first = mailbox.Ask(2, 7);
  EXPECT_EQ(first.admission.kind, AdmissionKind::kRejected);
  EXPECT_EQ(first.why, "the overflow policy Scripted threw an exception (no idea); it must not throw");
  const PolicyAnswer second = mailbox.Ask(3, 7);
  EXPECT_EQ(second.admission.kind, AdmissionKind::kRejected);
  EXPECT_EQ(second.why, "the overflow policy Scripted threw something that is no std::exception; it must not throw");
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{1}));
}

// SCH-4
TEST(MailboxLimits, RejectIfThePolicyOfTheUserAnswersWhatItDidNotAskFor) {
  Mailbox hold(WithPolicy(1, OverflowNeeds::kCount, [](const OverflowCase&) { return OverflowDecision::Hold(); }));
  hold.Ask(1, 7);
  EXPECT_EQ(hold.Ask(2, 7).why, "the overflow policy Scripted answered hold, but its needs() are not kLine");
  Mailbox drop(WithPolicy(1, OverflowNeeds::kLine, [](const OverflowCase&) { return OverflowDecision::DropOldest(); }));
  drop.Ask(1, 7);
  EXPECT_EQ(drop.Ask(2, 7).why, "the overflow policy Scripted answered drop_oldest, but its needs() are not kQueue");
}

// SCH-4
TEST(MailboxLimits, HoldProducersIfThePolicyOfTheUserSaysSo) {
  std::vector<size_t> waiting;
  Mailbox mailbox(WithPolicy(2, OverflowNeeds::kLine, [&](const OverflowCase& full) {
    waiting.push_back(full.waiting);
    return NumberOf(full.message) < 100 ? OverflowDecision::Hold() : OverflowDecision::Reject();
  }));
  mailbox.Ask(1, 7);
  mailbox.Ask(2, 7);
  EXPECT_EQ(mailbox.Ask(3, 7).admission.kind, AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.Ask(4, 8).admission.kind, AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.Ask(100, 7).admission.kind, AdmissionKind::kRejected);
  EXPECT_EQ(mailbox.Ask(5, 9, Producer::kSelf).admission.kind, AdmissionKind::kPush) << "it would wait for itself";
  EXPECT_EQ(waiting, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{1, 2, 5, 3, 4}));
  EXPECT_EQ(mailbox.resumed, (Refs{Actor(7), Actor(8)}));
}

// SCH-4: the oldest message that the policy lets go makes room.
TEST(MailboxLimits, ReplaceTheMessageThatThePolicyOfTheUserChooses) {
  Mailbox mailbox(WithPolicy(
      3, OverflowNeeds::kQueue, [](const OverflowCase&) { return OverflowDecision::DropOldest(); },
      [](const Envelope& arriving, const Envelope& queued) {
        if (NumberOf(arriving) == 666) throw std::runtime_error("no idea");
        return arriving.As<Load>().producer == queued.As<Load>().producer;
      }));
  EXPECT_TRUE(mailbox.Ask(1, 7).admission.ring);
  mailbox.Ask(2, 8);
  mailbox.Ask(3, 8);
  const PolicyAnswer replaced = mailbox.Ask(4, 8);
  EXPECT_EQ(replaced.admission.kind, AdmissionKind::kKept);
  ASSERT_NE(replaced.admission.victim, nullptr);
  EXPECT_EQ(NumberOf(*EnvelopePtr(replaced.admission.victim)), 2);
  EXPECT_EQ(mailbox.Ask(5, 9).admission.kind, AdmissionKind::kDropped) << "none of its own to go";
  const PolicyAnswer thrown = mailbox.Ask(666, 8);
  EXPECT_EQ(thrown.admission.kind, AdmissionKind::kRejected);
  EXPECT_EQ(thrown.why, "the overflow policy Scripted threw an exception (no idea); it must not throw");
  EXPECT_EQ(mailbox.limits.depth(), 3u);
  Numbers left;
  for (bool more = true; more;) {
    EnvelopePtr kept(mailbox.limits.TakeKept(&more));
    left.push_back(NumberOf(*kept));
  }
  EXPECT_EQ(left, (Numbers{1, 3, 4}));
  EXPECT_EQ(mailbox.limits.depth(), 0u);
}

// SCH-4: a late sender gets kEnded, and the policy ends with its actor.
TEST(MailboxLimits, LetThePolicyOfTheUserGoWhenTheActorEnds) {
  auto policy = std::make_shared<Scripted>(OverflowNeeds::kCount, [](const OverflowCase&) {
    ADD_FAILURE() << "nobody is there to ask for";
    return OverflowDecision::Reject();
  });
  const std::weak_ptr<Scripted> lives = policy;
  Mailbox mailbox({.capacity = 1, .overflow_policy = std::move(policy)});
  mailbox.Ask(1, 7);
  EnvelopePtr late = Message(2);
  EXPECT_EQ(mailbox.limits.Admit(late.get(), Actor(7), Producer::kActor).kind, AdmissionKind::kAskPolicy);
  mailbox.End();
  EXPECT_TRUE(lives.expired());
  EXPECT_EQ(mailbox.limits.AskPolicy(late.get(), Actor(7), Producer::kActor).admission.kind, AdmissionKind::kEnded);
}

MailboxOptions ControlFirst(size_t capacity, size_t reserve, OverflowStrategy overflow) {
  return {
      .capacity = capacity, .overflow = overflow, .reserve_for_control = reserve, .order = MessageOrder::kControlFirst};
}

// SCH-4, A65
TEST(MailboxLimits, HaveRoomForControlMessagesWhenTheyAreFull) {
  const std::pair<OverflowStrategy, AdmissionKind> answers[] = {
      {OverflowStrategy::kReject, AdmissionKind::kRejected},
      {OverflowStrategy::kDropNewest, AdmissionKind::kDropped},
      {OverflowStrategy::kDeadLetter, AdmissionKind::kDeadLetter},
      {OverflowStrategy::kBlockProducer, AdmissionKind::kHeld}};
  for (const auto& [overflow, answer] : answers) {
    Mailbox mailbox(ControlFirst(2, 3, overflow));
    EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
    EXPECT_EQ(mailbox.KindOf(2, 1), AdmissionKind::kPush);
    EXPECT_EQ(mailbox.KindOf(3, 1), answer) << ToString(overflow);
    for (int number = 4; number <= 6; ++number) {
      EXPECT_EQ(mailbox.KindOfControl(number, 2), AdmissionKind::kPush) << ToString(overflow) << " " << number;
    }
    EXPECT_EQ(mailbox.KindOfControl(7, 2), answer) << "a flood of control messages is bounded, too";
    EXPECT_EQ(mailbox.limits.depth(), 5u);
    // Messages that leave make room again.
    EXPECT_EQ(mailbox.Receive(), 1);
    const AdmissionKind kind = mailbox.KindOfControl(8, 3);
    if (overflow == OverflowStrategy::kBlockProducer) {
      EXPECT_EQ(kind, AdmissionKind::kRejected) << "a control message is in line before it, and the line is full";
    } else {
      EXPECT_EQ(kind, AdmissionKind::kPush) << ToString(overflow);
    }
  }
}

// A65: control messages use the room of the others as well, and only mailboxes that put them first
// have a reserve.
TEST(MailboxLimits, CountControlMessagesAsTheOthers) {
  Mailbox mailbox(ControlFirst(2, 1, OverflowStrategy::kReject));
  EXPECT_EQ(mailbox.KindOfControl(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOfControl(2, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(3, 1), AdmissionKind::kRejected);
  EXPECT_EQ(mailbox.KindOfControl(4, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOfControl(5, 1), AdmissionKind::kRejected);

  Mailbox without(ControlFirst(1, 0, OverflowStrategy::kReject));
  EXPECT_EQ(without.KindOf(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(without.KindOfControl(2, 1), AdmissionKind::kRejected);

  Mailbox fifo(Bounded(1, OverflowStrategy::kReject));
  EXPECT_EQ(fifo.KindOf(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(fifo.KindOfControl(2, 1), AdmissionKind::kRejected);
}

// A65: in line, they overtake the others but not each other.
TEST(MailboxLimits, KeepTheOrderOfControlMessagesThatWait) {
  Mailbox mailbox(ControlFirst(2, 2, OverflowStrategy::kBlockProducer));
  for (int number = 1; number <= 2; ++number) ASSERT_EQ(mailbox.KindOf(number, 1), AdmissionKind::kPush);
  ASSERT_EQ(mailbox.KindOf(3, 1), AdmissionKind::kHeld);
  for (int number = 4; number <= 5; ++number) ASSERT_EQ(mailbox.KindOfControl(number, 2), AdmissionKind::kPush);
  ASSERT_EQ(mailbox.KindOfControl(6, 2), AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(mailbox.KindOfControl(7, 2), AdmissionKind::kRejected) << "the line is as long as the capacity";
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{2, 4, 5, 3, 6}));
  EXPECT_EQ(mailbox.resumed, (Refs{Actor(1), Actor(2)}));

  // A control message that has timed out does not delay others any more.
  for (int number = 1; number <= 2; ++number) ASSERT_EQ(mailbox.KindOf(number, 1), AdmissionKind::kPush);
  for (int number = 3; number <= 4; ++number) ASSERT_EQ(mailbox.KindOfControl(number, 2), AdmissionKind::kPush);
  ASSERT_EQ(mailbox.KindOfControl(5, 2), AdmissionKind::kHeld);
  ASSERT_EQ(mailbox.KindOf(6, 3), AdmissionKind::kHeld);
  EXPECT_EQ(NumbersOf(mailbox.limits.TimeOut(Actor(2))), Numbers{5});
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(mailbox.KindOfControl(7, 2), AdmissionKind::kPush) << "past 6, which is in line";
  EXPECT_EQ(mailbox.End(), Numbers{6});
}

// SCH-4, A65
TEST(MailboxLimits, BlockAThreadWithAControlMessageBeyondTheReserve) {
  Mailbox mailbox(ControlFirst(1, 1, OverflowStrategy::kBlockProducer));
  ASSERT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  ASSERT_EQ(mailbox.KindOfControl(2, 1, Producer::kForeignThread), AdmissionKind::kPush);
  ASSERT_EQ(mailbox.KindOfControl(3, 1, Producer::kForeignThread), AdmissionKind::kWouldBlock);
  absl::Status status = absl::UnknownError("not answered");
  std::thread foreign([&] { status = mailbox.limits.AwaitRoom(*ControlOf(3), absl::InfiniteDuration()); });
  while (mailbox.limits.counters().blocked == 0) std::this_thread::yield();
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{1, 2}));
  foreign.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(mailbox.limits.depth(), 1u);
}

// SCH-4
TEST(MailboxLimits, KeepTheReserveFree) {
  Mailbox mailbox({.capacity = 3, .overflow = OverflowStrategy::kReject, .reserve_for_system = 2});
  EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(2, 1), AdmissionKind::kRejected);
}

// SCH-4
TEST(MailboxLimits, TakeTheLargestCapacity) {
  Mailbox mailbox(Bounded(MailboxOptions::kMaxCapacity, OverflowStrategy::kReject));
  EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  Mailbox oldest(Bounded(MailboxOptions::kMaxCapacity, OverflowStrategy::kDropOldest));
  EXPECT_EQ(oldest.KindOf(1, 1), AdmissionKind::kKept);
}

// SCH-4
TEST(MailboxLimits, DropTheOldest) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kDropOldest));
  Admission first = mailbox.Send(1, 1);
  EXPECT_EQ(first.kind, AdmissionKind::kKept);
  EXPECT_TRUE(first.ring);
  EXPECT_EQ(first.victim, nullptr);
  Admission second = mailbox.Send(2, 1, Producer::kForeignThread);
  EXPECT_FALSE(second.ring);
  EXPECT_EQ(second.victim, nullptr);
  Admission third = mailbox.Send(3, 1, Producer::kSelf);
  EXPECT_EQ(third.kind, AdmissionKind::kKept);
  EXPECT_FALSE(third.ring);
  ASSERT_NE(third.victim, nullptr);
  EXPECT_EQ(EnvelopePtr(third.victim)->As<Load>().number, 1);
  EXPECT_EQ(mailbox.limits.counters().dropped_oldest, 1u);
  EXPECT_EQ(mailbox.limits.depth(), 2u);

  bool more = false;
  EXPECT_EQ(EnvelopePtr(mailbox.limits.TakeKept(&more))->As<Load>().number, 2);
  EXPECT_TRUE(more);
  EXPECT_FALSE(mailbox.Send(4, 1).ring) << "the bell still rings";
  EXPECT_EQ(EnvelopePtr(mailbox.limits.TakeKept(&more))->As<Load>().number, 3);
  EXPECT_TRUE(more);
  EXPECT_EQ(EnvelopePtr(mailbox.limits.TakeKept(&more))->As<Load>().number, 4);
  EXPECT_FALSE(more);
  EXPECT_EQ(mailbox.limits.depth(), 0u);
  EXPECT_TRUE(mailbox.Send(5, 1).ring) << "the next message needs a bell";
}

// SCH-4
TEST(MailboxLimits, DropTheOldestOfOne) {
  Mailbox mailbox(Bounded(1, OverflowStrategy::kDropOldest));
  mailbox.Send(1, 1);
  Admission second = mailbox.Send(2, 1);
  ASSERT_NE(second.victim, nullptr);
  EXPECT_EQ(EnvelopePtr(second.victim)->As<Load>().number, 1);
  bool more = true;
  EXPECT_EQ(EnvelopePtr(mailbox.limits.TakeKept(&more))->As<Load>().number, 2);
  EXPECT_FALSE(more);
  EXPECT_EQ(mailbox.limits.TakeKept(&more), nullptr);
  EXPECT_FALSE(more);
}

// SCH-4: a message of the runtime takes no room, and is never dropped.
TEST(MailboxLimits, KeepMessagesOfTheRuntimeBehindEarlierOnes) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kDropOldest));
  EXPECT_EQ(mailbox.KindOfOwn(1, kGeneration + 2), AdmissionKind::kEnded);
  mailbox.Send(1, 1);
  mailbox.Send(2, 1);
  EXPECT_EQ(mailbox.KindOfOwn(3), AdmissionKind::kKept);
  EXPECT_EQ(mailbox.limits.depth(), 2u);
  for (const auto& [number, dropped] : {std::pair(4, 1), std::pair(5, 2)}) {
    const Admission admission = mailbox.Send(number, 1);
    ASSERT_NE(admission.victim, nullptr);
    EXPECT_EQ(NumberOf(*EnvelopePtr(admission.victim)), dropped);
  }
  EXPECT_EQ(mailbox.KindOfOwn(6), AdmissionKind::kKept);
  for (const int number : {3, 4}) {
    bool more = false;
    const EnvelopePtr taken(mailbox.limits.TakeKept(&more));
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(NumberOf(*taken), number);
    EXPECT_EQ(taken->target_word(), kGeneration | kLimited) << "without a mark";
    EXPECT_TRUE(more);
  }
  EXPECT_EQ(mailbox.limits.depth(), 1u);
  EXPECT_EQ(mailbox.KindOfOwn(7), AdmissionKind::kKept);
  const Leftovers left = mailbox.limits.Close();
  EXPECT_EQ(left.kept, 3u);
  EXPECT_EQ(NumbersOf(left.dead_letters), (Numbers{5, 6, 7}));
  EXPECT_EQ(mailbox.limits.depth(), 0u);
  EXPECT_EQ(mailbox.KindOfOwn(8), AdmissionKind::kEnded);
  // The next actor begins anew.
  mailbox.limits.Configure(kGeneration + 2, Bounded(2, OverflowStrategy::kDropOldest));
  EXPECT_EQ(mailbox.KindOfOwn(9, kGeneration + 2), AdmissionKind::kKept);
  bool more = true;
  EXPECT_EQ(NumberOf(*EnvelopePtr(mailbox.limits.TakeKept(&more))), 9);
  EXPECT_FALSE(more);
  EXPECT_EQ(mailbox.limits.depth(), 0u);
}

// SCH-4
TEST(MailboxLimits, LetMessagesOfTheRuntimeWaitBehindTheLine) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kBlockProducer));
  mailbox.Send(1, 1);
  mailbox.Send(2, 1);
  EXPECT_EQ(mailbox.KindOfOwn(10), AdmissionKind::kPass) << "the mailbox is full, and nobody waits";
  EXPECT_EQ(mailbox.limits.depth(), 2u);
  EXPECT_EQ(mailbox.KindOf(3, 1), AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.KindOfOwn(11), AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.limits.depth(), 2u);
  // The inbox of this test does not know which messages are counted.
  EXPECT_EQ(NumberOf(*EnvelopePtr(mailbox.inbox.PopFront())), 1);
  EXPECT_TRUE(mailbox.limits.TakenOut());
  mailbox.Readmit();
  EXPECT_EQ(mailbox.resumed, (Refs{Actor(1)}));
  EXPECT_EQ(mailbox.limits.depth(), 2u);
  EXPECT_EQ(mailbox.KindOfOwn(12), AdmissionKind::kHeld) << "11 still waits";
  const Leftovers left = mailbox.limits.Close();
  EXPECT_EQ(left.kept, 0u);
  EXPECT_EQ(NumbersOf(left.dead_letters), (Numbers{11, 12}));
  EXPECT_TRUE(left.resume.empty()) << "no actor is suspended for them";
  EXPECT_EQ(NumbersOf(std::exchange(mailbox.inbox, {})), (Numbers{2, 10, 3}));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(mailbox.limits.TakenOut());

  Mailbox reject(Bounded(1, OverflowStrategy::kReject));
  reject.Send(1, 1);
  EXPECT_EQ(reject.KindOfOwn(2), AdmissionKind::kPass);
  EXPECT_EQ(reject.limits.depth(), 1u);
}

// SCH-4: very many Terminated wait in a full mailbox. No message to it looks through all of them;
// otherwise this test would not end.
TEST(MailboxLimits, FindTheOldestMessageBehindManyThatAreNotDropped) {
  constexpr int kMany = 300'000;
  Mailbox mailbox(Bounded(2, OverflowStrategy::kDropOldest));
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(mailbox.KindOfOwn(-1), AdmissionKind::kKept);
  for (int i = 0; i < kMany; ++i) {
    const EnvelopePtr dropped(mailbox.Send(i, 1).victim);
    ASSERT_EQ(dropped == nullptr ? -1 : NumberOf(*dropped), i < 2 ? -1 : i - 2);
  }
  const Leftovers left = mailbox.limits.Close();
  EXPECT_EQ(left.kept, size_t{kMany} + 2);
  const Numbers numbers = NumbersOf(left.dead_letters);
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), -1), kMany);
  EXPECT_EQ(numbers.back(), kMany - 1);
}

// SCH-4, A55
TEST(MailboxLimits, HoldMessagesInLineAndLetThemInAtHalfOfTheCapacity) {
  Mailbox mailbox({.capacity = 4, .overflow = OverflowStrategy::kBlockProducer, .push_timeout = absl::Seconds(3)});
  for (int number = 1; number <= 4; ++number) ASSERT_EQ(mailbox.KindOf(number, 1), AdmissionKind::kPush);
  const Admission held = mailbox.Send(5, 1);
  EXPECT_EQ(held.kind, AdmissionKind::kHeld);
  EXPECT_TRUE(held.first);
  EXPECT_EQ(held.push_timeout, absl::Seconds(3));
  EXPECT_TRUE(mailbox.Send(6, 2).first);
  EXPECT_FALSE(mailbox.Send(7, 1).first);
  EXPECT_EQ(mailbox.limits.counters().held, 3u);
  EXPECT_EQ(mailbox.limits.depth(), 4u);

  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_TRUE(mailbox.resumed.empty());
  EXPECT_EQ(mailbox.KindOf(8, 3), AdmissionKind::kHeld) << "there is room, but others were first";
  EXPECT_EQ(mailbox.limits.depth(), 3u);

  EXPECT_EQ(mailbox.Receive(), 2);
  EXPECT_EQ(mailbox.limits.depth(), 4u) << "5 and 6 were let in";
  EXPECT_EQ(mailbox.resumed, Refs{Actor(2)}) << "7 of actor 1 is in line still";

  EXPECT_EQ(mailbox.Receive(), 3);
  EXPECT_EQ(mailbox.Receive(), 4);
  EXPECT_EQ(mailbox.resumed, (Refs{Actor(2), Actor(1), Actor(3)}));
  EXPECT_TRUE(mailbox.Send(9, 1).kind == AdmissionKind::kHeld) << "full again with 5, 6, 7, 8";
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{5, 6, 7, 8, 9}));
  EXPECT_EQ(mailbox.limits.depth(), 0u);
  EXPECT_EQ(mailbox.KindOf(10, 1), AdmissionKind::kPush) << "nobody waits any more";
}

// SCH-4
TEST(MailboxLimits, LetInOneByOneIfThereIsRoomForOne) {
  Mailbox mailbox(Bounded(1, OverflowStrategy::kBlockProducer));
  EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(2, 2), AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.KindOf(3, 3), AdmissionKind::kRejected) << "one is the limit of the line too";
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(mailbox.resumed, Refs{Actor(2)});
  EXPECT_EQ(mailbox.Receive(), 2);
  EXPECT_EQ(mailbox.Receive(), -1);
}

// SCH-4: a handler overshoots by at most the capacity.
TEST(MailboxLimits, RejectBeyondTheLine) {
  Mailbox mailbox(Bounded(3, OverflowStrategy::kBlockProducer));
  for (int number = 1; number <= 3; ++number) ASSERT_EQ(mailbox.KindOf(number, 1), AdmissionKind::kPush);
  for (int number = 4; number <= 6; ++number) ASSERT_EQ(mailbox.KindOf(number, 1), AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.KindOf(7, 1), AdmissionKind::kRejected);
  EXPECT_EQ(mailbox.KindOf(8, 2), AdmissionKind::kRejected);
  EXPECT_EQ(mailbox.limits.counters().rejected, 2u);
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(mailbox.resumed, Refs{Actor(1)});
}

// SCH-4
TEST(MailboxLimits, RejectWhomNobodyCanSuspend) {
  Mailbox mailbox(Bounded(1, OverflowStrategy::kBlockProducer));
  EXPECT_EQ(mailbox.KindOf(1, 0), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(2, 0), AdmissionKind::kRejected);
}

// SCH-4
TEST(MailboxLimits, LetAnActorSendToItself) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kBlockProducer));
  EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  for (int number = 2; number <= 5; ++number)
    ASSERT_EQ(mailbox.KindOf(number, 9, Producer::kSelf), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(6, 1), AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.KindOf(7, 9, Producer::kSelf), AdmissionKind::kPush) << "also past those who wait";
  EXPECT_EQ(mailbox.limits.depth(), 6u);
  for (int i = 0; i < 4; ++i) mailbox.Receive();
  EXPECT_TRUE(mailbox.resumed.empty());
  mailbox.Receive();
  EXPECT_EQ(mailbox.resumed, Refs{Actor(1)});
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{7, 6}));
}

// SCH-4, A62
TEST(MailboxLimits, NeverWaitWithAPushTimeoutOfZero) {
  Mailbox mailbox({.capacity = 1, .overflow = OverflowStrategy::kBlockProducer, .push_timeout = absl::ZeroDuration()});
  EXPECT_EQ(mailbox.KindOf(1, 1), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.KindOf(2, 1), AdmissionKind::kTimedOut);
  EXPECT_EQ(mailbox.KindOf(3, 1, Producer::kForeignThread), AdmissionKind::kTimedOut);
  EXPECT_EQ(mailbox.KindOf(4, 1, Producer::kSelf), AdmissionKind::kPush);
  EXPECT_EQ(mailbox.limits.counters().timed_out, 2u);
  EXPECT_EQ(mailbox.limits.counters().held, 0u);
}

// SCH-4, A62
TEST(MailboxLimits, GiveBackTheMessagesOfASenderWhoseTimeIsUp) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kBlockProducer));
  mailbox.Send(1, 1);
  mailbox.Send(2, 1);
  EXPECT_EQ(mailbox.KindOf(3, 1), AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.KindOf(4, 2), AdmissionKind::kHeld);
  EXPECT_EQ(NumbersOf(mailbox.limits.TimeOut(Actor(1))), Numbers{3});
  EXPECT_EQ(NumbersOf(mailbox.limits.TimeOut(Actor(1))), Numbers{}) << "once only";
  EXPECT_EQ(mailbox.KindOf(5, 1), AdmissionKind::kHeld) << "there is a place in line again";
  EXPECT_EQ(mailbox.KindOf(6, 1), AdmissionKind::kRejected);
  EXPECT_EQ(NumbersOf(mailbox.limits.TimeOut(Actor(2))), Numbers{4});
  EXPECT_EQ(mailbox.limits.counters().timed_out, 2u);
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(mailbox.resumed, Refs{Actor(1)});
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{2, 5}));
}

// SCH-4: when the line is empty, all senders find room again.
TEST(MailboxLimits, AreOpenAgainWhenEverybodyInLineHasGivenUp) {
  Mailbox mailbox(Bounded(4, OverflowStrategy::kBlockProducer));
  for (int number = 1; number <= 4; ++number) mailbox.Send(number, 1);
  mailbox.Send(5, 1);
  mailbox.Send(6, 1);
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(NumbersOf(mailbox.limits.TimeOut(Actor(1))), (Numbers{5, 6}));
  EXPECT_EQ(mailbox.KindOf(7, 2), AdmissionKind::kPush);
}

// SCH-4
TEST(MailboxLimits, LetInNobodyWithoutNeed) {
  Mailbox mailbox(Bounded(4, OverflowStrategy::kBlockProducer));
  mailbox.Readmit();
  for (int number = 1; number <= 5; ++number) mailbox.Send(number, 1);
  mailbox.Readmit();
  EXPECT_EQ(mailbox.limits.depth(), 4u);
  EXPECT_EQ(mailbox.Receive(), 1);
  mailbox.Readmit();
  EXPECT_EQ(mailbox.limits.depth(), 3u) << "more than half full";
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{2, 3, 4, 5}));
  mailbox.Readmit();
  EXPECT_EQ(mailbox.resumed, Refs{Actor(1)});
}

// SCH-4, A58: a stopped target resumes its senders.
TEST(MailboxLimits, GiveBackEverythingWhenTheActorEnds) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kBlockProducer));
  for (int number = 1; number <= 4; ++number) mailbox.Send(number, static_cast<uintptr_t>(number));
  EXPECT_EQ(mailbox.End(), (Numbers{3, 4}));
  EXPECT_EQ(mailbox.resumed, (Refs{Actor(3), Actor(4)}));
  EXPECT_EQ(NumbersOf(mailbox.limits.TimeOut(Actor(3))), Numbers{});
  EXPECT_FALSE(mailbox.limits.TakenOut()) << "nobody waits any more";

  Mailbox oldest(Bounded(2, OverflowStrategy::kDropOldest));
  oldest.Send(1, 1);
  oldest.Send(2, 1);
  EXPECT_EQ(oldest.End(), (Numbers{1, 2}));
  EXPECT_EQ(oldest.limits.depth(), 0u);
  bool more = true;
  EXPECT_EQ(oldest.limits.TakeKept(&more), nullptr);
}

// SCH-4
TEST(MailboxLimits, AnswerALateSenderThatTheActorHasEnded) {
  for (OverflowStrategy overflow :
       {OverflowStrategy::kDropOldest, OverflowStrategy::kDropNewest, OverflowStrategy::kBlockProducer,
        OverflowStrategy::kReject, OverflowStrategy::kDeadLetter}) {
    MailboxLimits never;
    EXPECT_EQ(never.Admit(Message(1).get(), Actor(1), Producer::kActor).kind, AdmissionKind::kEnded);
    Mailbox mailbox(Bounded(1, overflow));
    mailbox.End();
    for (Producer producer : {Producer::kActor, Producer::kSelf, Producer::kForeignThread}) {
      EXPECT_EQ(mailbox.KindOf(1, 1, producer), AdmissionKind::kEnded);
      mailbox.limits.Configure(kGeneration + 2, Bounded(1, overflow));
      EXPECT_EQ(mailbox.KindOf(2, 1, producer), AdmissionKind::kEnded) << "not meant for the next actor either";
      mailbox.End();
    }
    EXPECT_EQ(mailbox.limits.AwaitRoom(*Message(3), absl::Seconds(1)).code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(mailbox.limits.depth(), 0u);
  }
}

// SCH-4: the depth belongs to the slot, not to the generation.
TEST(MailboxLimits, CountTheMessagesThatAnEarlierActorLeft) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kReject));
  mailbox.Send(1, 1);
  mailbox.Send(2, 1);
  EXPECT_EQ(mailbox.KindOf(3, 1), AdmissionKind::kRejected);
  mailbox.End();
  EXPECT_EQ(mailbox.limits.depth(), 2u);
  mailbox.limits.Configure(kGeneration + 2, Bounded(3, OverflowStrategy::kBlockProducer));
  EXPECT_EQ(mailbox.Send(4, 1, Producer::kActor, kGeneration + 2).kind, AdmissionKind::kPush);
  EXPECT_EQ(mailbox.Send(5, 1, Producer::kActor, kGeneration + 2).kind, AdmissionKind::kHeld);
  EXPECT_EQ(mailbox.ReceiveAll(), (Numbers{1, 2, 4, 5}));
  EXPECT_EQ(mailbox.limits.depth(), 0u);
}

// SCH-4: a mailbox that drops the oldest has its whole capacity, even if an earlier actor left
// messages.
TEST(MailboxLimits, KeepAsManyAsTheCapacityAfterAnotherActor) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kReject));
  mailbox.Send(1, 1);
  mailbox.End();
  mailbox.limits.Configure(kGeneration + 2, Bounded(2, OverflowStrategy::kDropOldest));
  EXPECT_TRUE(mailbox.Send(2, 1, Producer::kActor, kGeneration + 2).ring);
  EXPECT_EQ(mailbox.Send(3, 1, Producer::kActor, kGeneration + 2).victim, nullptr);
  EXPECT_EQ(mailbox.limits.depth(), 3u);
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(mailbox.End(), (Numbers{2, 3}));
  mailbox.limits.Configure(kGeneration + 4, Bounded(2, OverflowStrategy::kDropOldest));
  EXPECT_TRUE(mailbox.Send(4, 1, Producer::kActor, kGeneration + 4).ring) << "the bell of another actor is none";
}

// Returns when `count` threads wait in line.
void AwaitBlocked(const MailboxLimits& limits, uint64_t count) {
  while (limits.counters().blocked < count) std::this_thread::yield();
}

// SCH-4, A62
TEST(MailboxLimits, BlockAForeignThreadUntilThereIsRoom) {
  for (absl::Duration timeout : {absl::Hours(1), absl::InfiniteDuration()}) {
    Mailbox mailbox(
        {.capacity = 2, .overflow = OverflowStrategy::kBlockProducer, .push_timeout = absl::InfiniteDuration()});
    mailbox.Send(1, 1);
    mailbox.Send(2, 1);
    absl::Status status = absl::UnknownError("not answered");
    std::thread foreign([&] {
      EnvelopePtr envelope = Message(3);
      const Admission admission = mailbox.limits.Admit(envelope.get(), ActorRef(), Producer::kForeignThread);
      EXPECT_EQ(admission.kind, AdmissionKind::kWouldBlock);
      EXPECT_EQ(admission.push_timeout, absl::InfiniteDuration());
      status = mailbox.limits.AwaitRoom(*envelope, timeout);
    });
    AwaitBlocked(mailbox.limits, 1);
    EXPECT_EQ(mailbox.KindOf(4, 1), AdmissionKind::kHeld) << "behind the thread";
    EXPECT_EQ(mailbox.Receive(), 1);
    foreign.join();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(mailbox.limits.depth(), 2u) << "2, and what the thread may push now";
    EXPECT_TRUE(mailbox.resumed.empty());
    EXPECT_EQ(mailbox.Receive(), 2);
    EXPECT_EQ(mailbox.resumed, Refs{Actor(1)});
  }
}

// SCH-4, A62
TEST(MailboxLimits, LetAForeignThreadGoWhenItsTimeIsUp) {
  Mailbox mailbox(Bounded(1, OverflowStrategy::kBlockProducer));
  mailbox.Send(1, 1);
  const absl::Status status = mailbox.limits.AwaitRoom(*Message(2), absl::Milliseconds(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("mailbox of 1"), std::string::npos) << status;
  EXPECT_NE(status.message().find("1ms"), std::string::npos) << status;
  EXPECT_EQ(mailbox.limits.counters().timed_out, 1u);
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(mailbox.limits.depth(), 0u);
  EXPECT_EQ(mailbox.KindOf(3, 1), AdmissionKind::kPush);

  Mailbox larger(Bounded(4, OverflowStrategy::kBlockProducer));
  for (int number = 1; number <= 4; ++number) larger.Send(number, 1);
  EXPECT_FALSE(larger.limits.AwaitRoom(*Message(5), absl::Milliseconds(1)).ok());
  EXPECT_EQ(larger.Receive(), 1);
  EXPECT_EQ(larger.KindOf(6, 1), AdmissionKind::kPush) << "it has left the line";
}

// SCH-4, A62
TEST(MailboxLimits, NeverBlockAForeignThreadWithATimeoutOfZero) {
  Mailbox mailbox(Bounded(1, OverflowStrategy::kBlockProducer));
  EXPECT_TRUE(mailbox.limits.AwaitRoom(*Message(1), absl::ZeroDuration()).ok());
  EXPECT_EQ(mailbox.limits.depth(), 1u);
  EXPECT_EQ(mailbox.limits.AwaitRoom(*Message(2), absl::ZeroDuration()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(mailbox.limits.counters().blocked, 0u);
  EXPECT_EQ(mailbox.limits.counters().timed_out, 1u);
  EXPECT_FALSE(mailbox.limits.TakenOut()) << "nobody was left in line";
}

// SCH-4
TEST(MailboxLimits, FreeForeignThreadsWhenTheActorEnds) {
  Mailbox mailbox(Bounded(1, OverflowStrategy::kBlockProducer));
  mailbox.Send(1, 1);
  std::array<absl::Status, 3> statuses;
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] { status = mailbox.limits.AwaitRoom(*Message(2), absl::InfiniteDuration()); });
  }
  AwaitBlocked(mailbox.limits, 3);
  EXPECT_EQ(mailbox.KindOf(3, 2), AdmissionKind::kHeld) << "threads take no place of a held message";
  EXPECT_EQ(mailbox.End(), Numbers{3});
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(mailbox.limits.depth(), 1u);
}

// A55: a message that is sent while the line is let in does not overtake it.
TEST(MailboxLimits, LetNobodyInBeforeThoseWhoWereLetInArePushed) {
  Mailbox mailbox(Bounded(2, OverflowStrategy::kBlockProducer));
  for (int number = 1; number <= 3; ++number) mailbox.Send(number, 1);
  EnvelopePtr(mailbox.inbox.PopFront());
  EnvelopePtr(mailbox.inbox.PopFront());
  EXPECT_TRUE(mailbox.limits.TakenOut());
  EXPECT_TRUE(mailbox.limits.TakenOut());
  std::atomic<bool> started{false};
  std::atomic<bool> pushed{false};
  bool was_pushed_before = false;
  std::thread other;
  mailbox.limits.Readmit([&](EnvelopeList list) {
    other = std::thread([&] {
      started.store(true);
      EnvelopePtr later = Message(4, 1);
      EXPECT_EQ(mailbox.limits.Admit(later.get(), Actor(1), Producer::kActor).kind, AdmissionKind::kPush);
      was_pushed_before = pushed.load();
    });
    while (!started.load()) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();  // Gives an error time to show.
    mailbox.inbox.Append(list);
    pushed.store(true);
  });
  other.join();
  EXPECT_TRUE(was_pushed_before);
}

// Several threads send, and one receives through a real inbox, as a worker does.
class Traffic {
 public:
  static constexpr int kActors = 3;
  static constexpr int kForeign = 2;
  static constexpr int kProducers = kActors + kForeign;

  Traffic(const MailboxOptions& options, int messages) : capacity_(options.user_capacity()), messages_(messages) {
    limits_.Configure(kGeneration, options);
    for (auto& suspended : suspended_) suspended.store(0);
  }

  void Run() {
    ASSERT_TRUE(inbox_.TryClaim());
    std::vector<std::thread> threads;
    for (int producer = 0; producer < kProducers; ++producer) {
      threads.emplace_back([this, producer] { Produce(producer); });
    }
    Receive();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(limits_.depth(), 0u);
    EXPECT_LE(deepest_.load(), capacity_);
    const Leftovers left = limits_.Close();
    EXPECT_TRUE(left.dead_letters.empty());
    EXPECT_TRUE(left.resume.empty());
    EXPECT_EQ(received_ + refused_.load(), int64_t{messages_} * kProducers);
  }

  MailboxCounters counters() const { return limits_.counters(); }
  int64_t refused() const { return refused_.load(); }
  int64_t received() const { return received_; }

 private:
  struct Bell {};

  void Push(Envelope* envelope) {
    const uint64_t depth = limits_.depth();
    uint64_t deepest = deepest_.load(std::memory_order_relaxed);
    while (depth > deepest && !deepest_.compare_exchange_weak(deepest, depth, std::memory_order_relaxed)) {
    }
    // The receiver claims the inbox first and never gives it up.
    EXPECT_EQ(inbox_.Push(envelope), InboxPush::kQueued);
  }

  void Produce(int producer) {
    const bool foreign = producer >= kActors;
    for (int number = 0; number < messages_; ++number) {
      EnvelopePtr envelope = Message(number, producer);
      const Admission admission = limits_.Admit(envelope.get(), foreign ? ActorRef() : RefOf(producer),
                                                foreign ? Producer::kForeignThread : Producer::kActor);
      switch (admission.kind) {
        case AdmissionKind::kPush:
          Push(envelope.release());
          break;
        case AdmissionKind::kWouldBlock: {
          const absl::Status status = limits_.AwaitRoom(*envelope, absl::InfiniteDuration());
          EXPECT_TRUE(status.ok()) << status;
          Push(envelope.release());
          break;
        }
        case AdmissionKind::kHeld: {
          (void)envelope.release();
          std::atomic<int>& suspended = suspended_[static_cast<size_t>(producer)];
          if (admission.first) suspended.fetch_add(1);
          // A handler ends after two messages.
          if (number % 2 == 0) break;
          while (suspended.load() > 0) std::this_thread::yield();
          break;
        }
        case AdmissionKind::kKept:
          (void)envelope.release();
          if (admission.victim != nullptr) {
            EnvelopePtr victim(admission.victim);
            refused_.fetch_add(1);
          }
          if (admission.ring) Push(MakeEnvelope<Bell>(ActorRef()).release());
          break;
        default:
          refused_.fetch_add(1);
          break;
      }
    }
    left_.fetch_sub(1);
  }

  void Receive() {
    for (;;) {
      // Read before the take, which then gets everything that producers pushed before they left.
      const bool last = left_.load() == 0;
      InboxList list = inbox_.TakeAll();
      if (list.first == nullptr) {
        if (last) return;
        std::this_thread::yield();
        continue;
      }
      for (InboxNode* node = list.first; node != nullptr;) {
        EnvelopePtr envelope(Envelope::Of(node));
        node = node->next;
        if (envelope->Is<Bell>()) {
          HandleBell();
        } else {
          Handle(*envelope);
          if (limits_.TakenOut()) Readmit();
        }
      }
    }
  }

  void HandleBell() {
    EXPECT_EQ(bells_++, 0) << "one bell at a time";
    for (bool more = true; more;) {
      EnvelopePtr envelope(limits_.TakeKept(&more));
      if (!more) --bells_;
      if (envelope != nullptr) Handle(*envelope);
    }
  }

  void Handle(const Envelope& envelope) {
    const Load& load = envelope.As<Load>();
    int& next = next_[static_cast<size_t>(load.producer)];
    EXPECT_GE(load.number, next) << "of producer " << load.producer;
    next = load.number + 1;
    ++received_;
  }

  void Readmit() {
    for (ActorRef sender : limits_.Readmit([this](EnvelopeList list) {
           while (Envelope* const envelope = list.PopFront()) Push(envelope);
         })) {
      for (int producer = 0; producer < kActors; ++producer) {
        if (RefOf(producer) == sender) suspended_[static_cast<size_t>(producer)].fetch_sub(1);
      }
    }
  }

  static ActorRef RefOf(int producer) { return Actor(static_cast<uintptr_t>(producer) + 1); }

  const uint64_t capacity_;
  const int messages_;
  MailboxLimits limits_;
  Inbox inbox_;
  std::array<std::atomic<int>, kActors> suspended_;
  std::atomic<int> left_{kProducers};
  std::atomic<uint64_t> deepest_{0};
  std::atomic<int64_t> refused_{0};
  // Only the receiver uses these.
  std::array<int, kProducers> next_{};
  int64_t received_ = 0;
  int bells_ = 0;
};

constexpr int kTraffic = 2000;

// SCH-4, A55
TEST(MailboxLimitsStress, BlockingLosesNothingAndKeepsTheOrder) {
  for (size_t capacity : {size_t{2}, size_t{3}, size_t{64}}) {
    Traffic traffic({.capacity = capacity, .overflow = OverflowStrategy::kBlockProducer}, kTraffic);
    traffic.Run();
    EXPECT_EQ(static_cast<uint64_t>(traffic.refused()), traffic.counters().rejected);
    EXPECT_EQ(traffic.counters().timed_out, 0u);
  }
}

// SCH-4
TEST(MailboxLimitsStress, ACapacityOfOneIsOne) {
  Traffic traffic(Bounded(1, OverflowStrategy::kBlockProducer), kTraffic);
  traffic.Run();
}

// SCH-4
TEST(MailboxLimitsStress, RejectingIsExact) {
  for (size_t capacity : {size_t{1}, size_t{5}}) {
    Traffic traffic(Bounded(capacity, OverflowStrategy::kReject), kTraffic);
    traffic.Run();
    EXPECT_EQ(static_cast<uint64_t>(traffic.refused()), traffic.counters().rejected);
  }
}

// SCH-4: senders race for the last place.
TEST(MailboxLimitsStress, TheCountNeverExceedsTheCapacity) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 50000;
  for (size_t capacity : {size_t{1}, size_t{2}}) {
    MailboxLimits limits;
    limits.Configure(kGeneration, Bounded(capacity, OverflowStrategy::kReject));
    std::atomic<size_t> inside{0};
    std::atomic<size_t> most{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        EnvelopePtr envelope = Message(1);
        for (int round = 0; round < kRounds; ++round) {
          if (limits.Admit(envelope.get(), Actor(1), Producer::kActor).kind != AdmissionKind::kPush) continue;
          const size_t now = std::max(inside.fetch_add(1) + 1, limits.depth());
          size_t known = most.load();
          while (now > known && !most.compare_exchange_weak(known, now)) {
          }
          inside.fetch_sub(1);
          EXPECT_FALSE(limits.TakenOut());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(limits.depth(), 0u);
    EXPECT_LE(most.load(), capacity);
    limits.Close();
  }
}

// SCH-4
TEST(MailboxLimitsStress, DroppingTheOldestIsExact) {
  for (size_t capacity : {size_t{1}, size_t{5}}) {
    Traffic traffic(Bounded(capacity, OverflowStrategy::kDropOldest), kTraffic);
    traffic.Run();
    EXPECT_EQ(static_cast<uint64_t>(traffic.refused()), traffic.counters().dropped_oldest);
  }
}

// SCH-4: actors of all strategies use one slot, one after the other, and senders are late or time
// out. Each message has one end, and no sender is left waiting.
TEST(MailboxLimitsStress, ActorsMayEndAtAnyMoment) {
  constexpr int kGenerations = 100;
  constexpr int kSenders = 3;
  constexpr std::array<OverflowStrategy, 5> kStrategies = {
      OverflowStrategy::kBlockProducer, OverflowStrategy::kDropOldest, OverflowStrategy::kReject,
      OverflowStrategy::kBlockProducer, OverflowStrategy::kDropNewest};
  MailboxLimits limits;
  Inbox inbox;
  ASSERT_TRUE(inbox.TryClaim());
  std::atomic<uint32_t> generation{0};
  std::atomic<int> left{kSenders};
  std::atomic<int64_t> made{0};
  std::atomic<int64_t> ended{0};
  std::array<std::atomic<int>, kSenders> suspended{};
  struct Bell {};

  std::vector<std::thread> senders;
  for (int sender = 0; sender < kSenders; ++sender) {
    senders.emplace_back([&, sender] {
      const bool foreign = sender == 0;
      const ActorRef self = Actor(static_cast<uintptr_t>(sender) + 1);
      std::atomic<int>& my_suspended = suspended[static_cast<size_t>(sender)];
      uint32_t seen = 0;
      for (int number = 0; seen < kGenerations * 2; ++number) {
        // Usually the present actor, which may end before Admit.
        if (number % 7 != 0) seen = generation.load(std::memory_order_relaxed);
        EnvelopePtr envelope = Message(number, sender, seen);
        made.fetch_add(1, std::memory_order_relaxed);
        Admission admission = limits.Admit(envelope.get(), self, foreign ? Producer::kForeignThread : Producer::kActor);
        if (admission.kind == AdmissionKind::kWouldBlock &&
            limits.AwaitRoom(*envelope, number % 3 == 0 ? absl::Microseconds(1) : absl::InfiniteDuration()).ok()) {
          admission.kind = AdmissionKind::kPush;
        }
        switch (admission.kind) {
          case AdmissionKind::kPush:
            inbox.Push(envelope.release());
            break;
          case AdmissionKind::kKept:
            if (admission.victim != nullptr) {
              EnvelopePtr victim(admission.victim);
              ended.fetch_add(1, std::memory_order_relaxed);
            }
            if (admission.ring) {
              EnvelopePtr bell = MakeEnvelope<Bell>(ActorRef());
              bell->set_target_word(seen | kLimited);  // The limits own the envelope.
              inbox.Push(bell.release());
            }
            (void)envelope.release();
            break;
          case AdmissionKind::kHeld:
            (void)envelope.release();
            if (admission.first) my_suspended.fetch_add(1);
            if (number % 2 == 0) {
              EnvelopeList late = limits.TimeOut(self);
              if (!late.empty()) my_suspended.fetch_sub(1);
              ended.fetch_add(static_cast<int64_t>(NumbersOf(late).size()), std::memory_order_relaxed);
            }
            while (my_suspended.load() > 0) std::this_thread::yield();
            break;
          default:
            ended.fetch_add(1, std::memory_order_relaxed);
            break;
        }
      }
      left.fetch_sub(1);
    });
  }

  const auto resume = [&](const Refs& refs) {
    for (ActorRef ref : refs) {
      for (size_t sender = 0; sender < kSenders; ++sender) {
        if (Actor(sender + 1) == ref) suspended[sender].fetch_sub(1);
      }
    }
  };
  const auto receive = [&](uint32_t now) {
    int64_t count = 0;
    for (InboxNode* node = inbox.TakeAll().first; node != nullptr;) {
      EnvelopePtr envelope(Envelope::Of(node));
      node = node->next;
      if (envelope->Is<Bell>()) {
        if (static_cast<uint32_t>(envelope->target_word()) != now) continue;
        for (bool more = true; more;) {
          if (EnvelopePtr kept{limits.TakeKept(&more)}) ++count;
        }
        continue;
      }
      ++count;
      if (limits.TakenOut()) {
        resume(limits.Readmit([&](EnvelopeList list) {
          while (Envelope* const let_in = list.PopFront()) inbox.Push(let_in);
        }));
      }
    }
    ended.fetch_add(count, std::memory_order_relaxed);
    return count;
  };
  for (uint32_t n = 0; n < kGenerations; ++n) {
    const uint32_t now = n * 2 + 1;
    limits.Configure(now, Bounded(1 + n % 4, kStrategies[n % kStrategies.size()]));
    generation.store(now);
    // Each strategy lets messages through, otherwise the test would not end.
    for (int64_t count = 0; count < 1 + n % 9;) {
      const int64_t got = receive(now);
      if (got == 0) std::this_thread::yield();
      count += got;
    }
    Leftovers rest = limits.Close();
    resume(rest.resume);
    ended.fetch_add(static_cast<int64_t>(NumbersOf(rest.dead_letters).size()), std::memory_order_relaxed);
  }
  generation.store(kGenerations * 2);
  while (left.load() > 0) {
    receive(0);
    std::this_thread::yield();
  }
  for (std::thread& sender : senders) sender.join();
  receive(0);
  EXPECT_EQ(ended.load(), made.load());
  EXPECT_EQ(limits.depth(), 0u);
}

}  // namespace
}  // namespace fraktor::actor_internal
