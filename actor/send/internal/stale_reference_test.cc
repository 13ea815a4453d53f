// Stale references: references whose actor or promise has ended.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor::actor_internal {

using utils_internal::InboxPush;

namespace {

constexpr auto kStopped = DeadLetterReason::kStopped;

class StaleReferenceTest : public InvokerTest {
 protected:
  // Returns a stale reference, and the actor that has taken over its slot.
  std::pair<ActorRef, ActorRef> SpawnHeir(const MailboxOptions* first_options = nullptr,
                                          const MailboxOptions* second_options = nullptr) {
    ActorRef first = SpawnDoer({}, first_options);
    StopIt(first);
    Run(first);
    ActorRef second = SpawnDoer({}, second_options);
    EXPECT_EQ(second.slot(), first.slot());
    log_.clear();
    return {first, second};
  }
};

// SCH-5
TEST_F(StaleReferenceTest, LeadsAForeignThreadToNobody) {
  const auto [stale, heir] = SpawnHeir();
  Tell(stale, Number{1});
  const absl::Status lost = TryTell(stale, Number{2});
  EXPECT_EQ(lost.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(lost.message().find("Number has no recipient: the actor has ended"), absl::string_view::npos) << lost;
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(kStopped), 2u);
  EnvelopePtr back = TellSystem(stale, MakeEnvelope<Mark>(ActorRef(), 3));
  EXPECT_NE(back, nullptr) << "a system message comes back";
  Signal(stale, {1});
  EXPECT_FALSE(AnythingReady());
  EXPECT_TRUE(heir.slot()->mailbox.inbox.IsIdle());
}

// SCH-5
TEST_F(StaleReferenceTest, LeadsAWorkerToNobody) {
  const auto [stale, heir] = SpawnHeir();
  ActorRef sender = SpawnDoer();
  Order(sender, [&, target = stale](ActorContext& context) {
    context.Tell(target, Number{1});
    EXPECT_EQ(context.TryTell(target, Number{2}).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(context.TryTell(ActorRef(), Number{3}).code(), absl::StatusCode::kNotFound);
  });
  Run(sender);
  EXPECT_EQ(dead_, Dead({{1, kStopped}, {2, kStopped}, {3, DeadLetterReason::kNoRecipient}}));
  EXPECT_FALSE(AnythingReady());
}

// SCH-5: the earlier actor, the later one, or both have bounded mailboxes.
TEST_F(StaleReferenceTest, LeadsToNobodyWhateverTheMailboxes) {
  const MailboxOptions bounded{.capacity = 1, .overflow = OverflowStrategy::kReject};
  const MailboxOptions keeping{.capacity = 1, .overflow = OverflowStrategy::kDropOldest};
  const std::vector<const MailboxOptions*> kinds{nullptr, &bounded, &keeping};
  ActorRef sender = SpawnDoer();
  for (const MailboxOptions* first : kinds) {
    for (const MailboxOptions* second : kinds) {
      const auto [stale, heir] = SpawnHeir(first, second);
      dead_.clear();
      Order(sender, [target = stale](ActorContext& context) {
        for (int i = 1; i <= 3; ++i) context.Tell(target, Number{i});
      });
      Run(sender);
      EXPECT_EQ(dead_, Dead({{1, kStopped}, {2, kStopped}, {3, kStopped}}));
      Tell(heir, Number{4});
      RunAll();
      EXPECT_EQ(log_, Log({"4"}));
      StopIt(heir);
      RunAll();
    }
  }
}

// SCH-5: the same for pids.
TEST_F(StaleReferenceTest, APidResolvesToNothing) {
  ActorRef first = SpawnDoer();
  EXPECT_EQ(first.slot()->RefAt(first.generation()), first);
  StopIt(first);
  Run(first);
  EXPECT_TRUE(first.slot()->RefAt(first.generation()).IsNoOne());
  ActorRef second = SpawnDoer();
  ASSERT_EQ(second.slot(), first.slot());
  EXPECT_TRUE(first.slot()->RefAt(first.generation()).IsNoOne());
  EXPECT_EQ(second.slot()->RefAt(second.generation()), second);
  MailboxRegistry others(/*threaded=*/false);
  EXPECT_FALSE(others.slots().Owns(second.slot())) << "of another system";
}

// SCH-5: the generation check of a message passes in time, but the push is late: no actor has the
// slot.
TEST_F(StaleReferenceTest, AMessageToAFreeSlotIsADeadLetter) {
  ActorRef first = SpawnDoer();
  StopIt(first);
  Run(first);
  EnvelopePtr late = MakeEnvelope<Number>(ActorRef(), 1);
  late->set_target_word(first.word());
  ASSERT_TRUE(first.slot()->mailbox.Post(late.release()));
  DispatcherTable::RegisterOrEmpty(*first.slot());
  // The mailbox is not idle, so a new actor gets another slot.
  ActorRef second = SpawnDoer();
  EXPECT_NE(second.slot(), first.slot());
  Run(first);
  EXPECT_EQ(dead_, Dead({{1, kStopped}}));
  EXPECT_TRUE(first.slot()->mailbox.inbox.IsIdle());
}

// SCH-5: an actor could not be spawned, and gives its slot back. The generation check of messages
// to an earlier actor of the slot passed in time, but their push was late. Another thread has found
// the new actor in the tree, and has sent to it.
TEST_F(StaleReferenceTest, MessagesToASlotThatIsGivenUpAreDeadLetters) {
  const MailboxOptions bounded{.capacity = 1, .overflow = OverflowStrategy::kBlockProducer};
  const MailboxOptions keeping{.capacity = 1, .overflow = OverflowStrategy::kDropOldest};
  for (const MailboxOptions* const options : {static_cast<const MailboxOptions*>(nullptr), &bounded, &keeping}) {
    const ActorRef first = SpawnDoer();
    StopIt(first);
    Run(first);
    dead_.clear();
    log_.clear();
    Doer instance(log_);
    ActorSlot* const slot =
        mailboxes_.Register({.instance = &instance, .dispatcher = number_, .options = options}).value();
    ASSERT_EQ(slot, first.slot());
    const ActorRef found = slot->ref();
    Tell(found, Number{1});
    for (const bool is_system : {false, true}) {
      EnvelopePtr late = MakeEnvelope<Number>(ActorRef(), is_system ? 2 : 3);
      late->set_target_word(first.word());
      if (is_system) {
        late->MarkAsSystem();
        EXPECT_EQ(slot->mailbox.PostSystem(late.release()), InboxPush::kQueued);
      } else {
        EXPECT_FALSE(slot->mailbox.Post(late.release()));
      }
    }
    slot->instance = nullptr;
    MailboxRegistry::Unregister(*slot);
    MailboxRegistry::TakeBack(*slot);
    mailboxes_.Release(*slot);
    RunAll();
    std::sort(dead_.begin(), dead_.end());
    EXPECT_EQ(dead_, Dead({{1, kStopped}, {2, kStopped}, {3, kStopped}}));
    EXPECT_TRUE(slot->mailbox.inbox.IsIdle());
    EXPECT_TRUE(log_.empty());
  }
}

// SCH-5: the next actor of a slot does not get a late system message.
TEST_F(StaleReferenceTest, ALateSystemMessageDoesNotStopTheNextActor) {
  const auto [stale, heir] = SpawnHeir();
  EnvelopePtr late = MakeEnvelope<StopNow>(ActorRef());
  late->set_target_word(stale.word());
  late->MarkAsSystem();
  ASSERT_EQ(heir.slot()->mailbox.PostSystem(late.release()), InboxPush::kClaimed);
  DispatcherTable::RegisterOrEmpty(*heir.slot());
  Tell(heir, Number{1});
  Run(heir);
  EXPECT_EQ(log_, Log({"1"}));
}

// SCH-5: a promise stays stale after its asker has ended, even if other actors are spawned and ask.
TEST_F(StaleReferenceTest, APromiseOfAnAskerThatEndedLeadsToNobody) {
  const auto open = [](ActorContext& context) {
    return *context.AskOnReply(ActorRef::NoOne(), Number{0}, absl::InfiniteDuration());
  };
  ActorRef asker = SpawnDoer();
  ActorRef ask;
  Order(asker, [&](ActorContext& context) { ask = open(context); });
  Run(asker);
  StopIt(asker);
  Run(asker);
  const ActorRef next = SpawnDoer();
  ActorRef next_ask;
  Order(next, [&](ActorContext& context) { next_ask = open(context); });
  Run(next);
  ASSERT_EQ(next_ask.promise_slot(), ask.promise_slot());
  log_.clear();
  dead_.clear();
  Tell(ask, Number{1});
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kLateReply), 1u);
  Order(SpawnDoer(), [=](ActorContext& context) { context.Tell(ask, Number{2}); });
  RunAll();
  EXPECT_EQ(dead_, Dead({{2, DeadLetterReason::kLateReply}}));
  EXPECT_TRUE(log_.empty());
  Tell(next_ask, Number{3});
  RunAll();
  EXPECT_EQ(log_, Log({"reply 3"}));
}

// SCH-5: the generation check of a system message passes in time, but the push is late: promises
// have been opened meanwhile.
TEST_F(StaleReferenceTest, ALateSystemMessageDoesNotReachAPromise) {
  class Completion final : public AskCompletion {
   public:
    using AskCompletion::AskCompletion;
    void TakeReply(Envelope& reply) noexcept override { answered = reply.As<Number>().value; }
    void Fail(absl::Status) noexcept override { failed = true; }
    int answered = 0;
    bool failed = false;
    // Code that takes this object for a SlotExtension reads from here on.
    std::array<uint64_t, 256> rest = {};
  };
  Completion completion(MessageTypeOf<Number>(), absl::InfiniteDuration());
  completion.rest.fill(UINT64_MAX);

  ActorRef first;
  ActorSlot* slot = nullptr;
  Doer instance(log_);
  {
    const WorkerScope scope(worker_);
    slot = mailboxes_.Register(worker_.slots(), {.instance = &instance, .dispatcher = number_}).value();
    MailboxRegistry::LetGo(*slot);
    first = slot->ref();
    MailboxRegistry::Unregister(*slot);
    worker_.slots().Release(slot);
  }
  const ActorRef asker = SpawnDoer();
  ActorRef ask;
  Order(asker, [&](ActorContext&) { ask = *OpenPromise(worker_, {.completion = &completion}); });
  Run(asker);

  EnvelopePtr late = MakeEnvelope<StopNow>(ActorRef());
  late->set_target_word(first.word());
  late->MarkAsSystem();
  ASSERT_EQ(slot->mailbox.PostSystem(late.release()), InboxPush::kClaimed);
  DispatcherTable::RegisterOrEmpty(*slot);
  Run(first);
  EXPECT_FALSE(completion.failed);

  Tell(ask, Number{7});
  RunAll();
  EXPECT_EQ(completion.answered, 7);
}

// SCH-5: a late sender reads nothing that is freed with the system.
TEST(LateReference, MayOutliveItsSystem) {
  const MailboxOptions bounded{.capacity = 1, .overflow = OverflowStrategy::kBlockProducer};
  std::vector<ActorRef> refs;
  {
    NoWaker waker;
    MutexCoordinator coordinator(1, waker);
    const uint16_t number = DispatcherTable::Open(coordinator).value();
    MailboxRegistry mailboxes(/*threaded=*/true);
    for (const MailboxOptions* options : {static_cast<const MailboxOptions*>(nullptr), &bounded}) {
      ActorSlot* const slot = mailboxes.Register({.dispatcher = number, .options = options}).value();
      MailboxRegistry::LetGo(*slot);
      refs.push_back(slot->ref());
    }
    DispatcherTable::Close(number);
    MailboxRegistry::Abandon(*refs[1].slot());
  }
  const uint64_t before = DispatcherTable::LateDeadLetters();
  for (ActorRef ref : refs) {
    Tell(ref, Number{1});
    EXPECT_TRUE(absl::IsUnavailable(TryTell(ref, Number{2})));
    EXPECT_NE(TellSystem(ref, MakeEnvelope<Mark>(ActorRef(), 3)), nullptr);
  }
  EXPECT_EQ(DispatcherTable::LateDeadLetters(), before + 4);
}

struct Farewell {
  std::shared_ptr<void> says;
};

// The workers of an actor have stopped, and a worker of another pool sends to it. That worker
// destroys the message, whose destructor sends too, in the middle of a send. No message may be
// lost.
TEST_F(StaleReferenceTest, AMessageThatAWorkerEndsMaySend) {
  NoWaker waker;
  MutexCoordinator stopped(1, waker);
  const uint16_t number = DispatcherTable::Open(stopped).value();
  MailboxRegistry other(/*threaded=*/false);
  Doer instance(log_);
  ActorSlot* const target = other.Register({.instance = &instance, .dispatcher = number}).value();
  MailboxRegistry::LetGo(*target);
  DispatcherTable::Close(number);

  ActorRef first = SpawnDoer("first ");
  ActorRef second = SpawnDoer("second ");
  ActorRef sender = SpawnDoer();
  Order(sender, [&](ActorContext& context) {
    context.Tell(target->ref(), Farewell{std::shared_ptr<void>(this, [=](void*) { Tell(first, Number{1}); })});
    context.Tell(second, Number{2});
  });
  RunAll();
  EXPECT_EQ(log_.size(), 2u);
  EXPECT_EQ(std::count(log_.begin(), log_.end(), "first 1"), 1);
  EXPECT_EQ(std::count(log_.begin(), log_.end(), "second 2"), 1);
  MailboxRegistry::Abandon(*target);
}

// SCH-9
TEST_F(StaleReferenceTest, ASystemThatShutsDownTakesNothingFromOutside) {
  ActorRef actor = SpawnDoer();
  mailboxes_.RefuseForeign();
  Tell(actor, Number{1});
  EXPECT_EQ(TryTell(actor, Number{2}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kShutdown), 2u);
  EXPECT_FALSE(AnythingReady());
  ActorRef inside = SpawnDoer();
  TellSystem(inside, MakeEnvelope<Mark>(ActorRef(), 1));
  Run(inside);
  EXPECT_EQ(log_, Log({"system 1"})) << "system messages pass";
}

}  // namespace
}  // namespace fraktor::actor_internal
