#include "fraktor/actor/mailbox/internal/queue_mailbox.h"

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor::actor_internal {

using utils_internal::InboxChain;
using utils_internal::InboxPush;

namespace {

struct Item {
  int number;
  int sender = 0;
};

Envelope* User(int number, int sender = 0) { return MakeEnvelope<Item>(ActorRef(), number, sender).release(); }
Envelope* System(int number) {
  EnvelopePtr envelope = MakeEnvelope<Item>(ActorRef(), number);
  envelope->MarkAsSystem();
  return envelope.release();
}

std::string Name(EnvelopePtr envelope) {
  return (envelope->is_system() ? "s" : "u") + std::to_string(envelope->As<Item>().number);
}

using Names = std::vector<std::string>;

Names PopAll(MailLists& lists) {
  Names names;
  while (Envelope* const envelope = lists.PopFront()) names.push_back(Name(EnvelopePtr(envelope)));
  EXPECT_TRUE(lists.empty());
  return names;
}

TEST(QueueMailbox, TellsTheFirstSenderThatItWasIdle) {
  QueueMailbox mailbox;
  EXPECT_TRUE(mailbox.Post(User(1)));
  EXPECT_FALSE(mailbox.Post(User(2)));
  MailLists lists = mailbox.Hold();
  lists.Take(mailbox.inbox);
  EXPECT_EQ(PopAll(lists), Names({"u1", "u2"}));
  EXPECT_TRUE(mailbox.inbox.TryGoIdle());
  EXPECT_TRUE(mailbox.Post(User(3)));
  lists = mailbox.Hold();
  EXPECT_EQ(PopAll(lists), Names({"u3"}));
  EXPECT_TRUE(mailbox.lists.empty()) << "the holder has them";
}

// A56
TEST(QueueMailbox, GivesSystemMessagesFirst) {
  QueueMailbox mailbox;
  EXPECT_TRUE(mailbox.Post(User(1)));
  EXPECT_EQ(mailbox.PostSystem(System(1)), InboxPush::kQueued);
  mailbox.Post(User(2));
  EXPECT_EQ(mailbox.PostSystem(System(2)), InboxPush::kQueued);
  EXPECT_TRUE(mailbox.inbox.HasSystem());
  MailLists lists = mailbox.Hold();
  lists.Take(mailbox.inbox);
  EXPECT_FALSE(mailbox.inbox.HasSystem());
  EXPECT_EQ(PopAll(lists), Names({"s1", "s2", "u1", "u2"}));
}

TEST(QueueMailbox, KeepsTheOrderOverSeveralTakes) {
  QueueMailbox mailbox;
  EXPECT_EQ(mailbox.PostSystem(System(1)), InboxPush::kClaimed);
  MailLists lists = mailbox.Hold();
  EXPECT_EQ(lists.user.first, nullptr);
  mailbox.Post(User(1));
  mailbox.PostSystem(System(2));
  lists.Take(mailbox.inbox);
  mailbox.PostSystem(System(3));
  mailbox.PostSystem(System(4));
  mailbox.Post(User(2));
  lists.Take(mailbox.inbox);
  EXPECT_EQ(PopAll(lists), Names({"s1", "s2", "s3", "s4", "u1", "u2"}));
}

TEST(QueueMailbox, TakesAChainAtOnce) {
  QueueMailbox mailbox;
  InboxChain chain;
  for (int i = 1; i <= 3; ++i) chain.Add(User(i));
  EXPECT_TRUE(mailbox.PostChain(chain));
  EXPECT_TRUE(chain.empty());
  for (int i = 4; i <= 5; ++i) chain.Add(User(i));
  EXPECT_FALSE(mailbox.PostChain(chain));
  EXPECT_TRUE(chain.empty());
  MailLists lists = mailbox.Hold();
  lists.Take(mailbox.inbox);
  EXPECT_EQ(PopAll(lists), Names({"u1", "u2", "u3", "u4", "u5"}));
}

// SCH-8: user messages wait while the mailbox is parked; a system message schedules the actor.
TEST(QueueMailbox, SuspendsByParking) {
  QueueMailbox mailbox;
  ASSERT_TRUE(mailbox.Post(User(1)));
  ASSERT_TRUE(mailbox.inbox.TryPark()) << "with a message in its list";
  EXPECT_FALSE(mailbox.Post(User(2)));
  EXPECT_TRUE(mailbox.inbox.IsParked());
  EXPECT_EQ(mailbox.PostSystem(System(1)), InboxPush::kUnparked);
  EXPECT_EQ(mailbox.PostSystem(System(2)), InboxPush::kQueued) << "one is enough";
  MailLists lists = mailbox.Hold();
  lists.Take(mailbox.inbox);
  EXPECT_EQ(PopAll(lists), Names({"s1", "s2", "u1", "u2"}));
}

// SCH-8: a mailbox does not park if a system message has come meanwhile.
TEST(QueueMailbox, DoesNotParkOverASystemMessage) {
  QueueMailbox mailbox;
  ASSERT_TRUE(mailbox.Post(User(1)));
  mailbox.PostSystem(System(1));
  EXPECT_FALSE(mailbox.inbox.TryPark());
  MailLists lists = mailbox.Hold();
  lists.Take(mailbox.inbox);
  EXPECT_TRUE(mailbox.inbox.TryPark());
  EXPECT_EQ(mailbox.PostSystem(System(2)), InboxPush::kUnparked);
  lists.Take(mailbox.inbox);
  EXPECT_EQ(PopAll(lists), Names({"s1", "s2", "u1"}));
}

// A58: an actor that ends drains its mailbox until it is idle. A later message finds it idle.
TEST(QueueMailbox, IsDrainedWhenItCloses) {
  QueueMailbox mailbox;
  ASSERT_TRUE(mailbox.Post(User(1)));
  mailbox.Post(User(2));
  mailbox.PostSystem(System(1));
  Names drained;
  MailLists lists = mailbox.Hold();
  int late = 3;
  while (!mailbox.inbox.TryGoIdle()) {
    lists.Take(mailbox.inbox);
    for (const std::string& name : PopAll(lists)) drained.push_back(name);
    if (late < 5) mailbox.Post(User(late++));  // A late sender.
  }
  EXPECT_EQ(drained, Names({"s1", "u1", "u2", "u3", "u4"}));
  EXPECT_TRUE(mailbox.inbox.IsIdle());
  EXPECT_TRUE(mailbox.Post(User(9)));
  lists = mailbox.Hold();
  EXPECT_EQ(PopAll(lists), Names({"u9"}));
}

// A55: the messages of one thread arrive in order, and none is lost between empty and idle.
TEST(QueueMailbox, LosesNothingAndKeepsTheOrderOfEachThread) {
  constexpr int kThreads = 3;
  constexpr int kMessages = 5000;
  QueueMailbox mailbox;
  // Passes claims to the one consumer: the release of the claimer pairs with its acquire.
  std::atomic<bool> scheduled{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kMessages; ++i) {
        if (mailbox.Post(User(i, t))) scheduled.store(true, std::memory_order_release);
      }
    });
  }
  std::vector<int> next(kThreads, 0);
  for (int received = 0; received < kThreads * kMessages;) {
    if (!scheduled.exchange(false, std::memory_order_acquire)) {
      std::this_thread::yield();
      continue;
    }
    MailLists lists = mailbox.Hold();
    do {
      lists.Take(mailbox.inbox);
      while (Envelope* const envelope = lists.PopFront()) {
        const EnvelopePtr ended(envelope);
        const Item item = ended->As<Item>();
        EXPECT_EQ(item.number, next[static_cast<size_t>(item.sender)]++);
        ++received;
      }
    } while (!mailbox.inbox.TryGoIdle());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(mailbox.inbox.IsIdle());
}

}  // namespace
}  // namespace fraktor::actor_internal
