#include "fraktor/actor/send/internal/foreign_burst.h"

#include <string>

#include "gtest/gtest.h"

#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::actor_internal {
namespace {

class ForeignBurstTest : public InvokerTest {
 protected:
  void SetUp() override { mailboxes_.core().SetLifecycle(this); }
  void TearDown() override { mailboxes_.core().SetLifecycle(nullptr); }

  static void Send(ForeignBurst& burst, ActorRef to, int number) {
    burst.Send(to, MakeEnvelope<Number>(ActorRef(), number));
  }
};

TEST_F(ForeignBurstTest, KeepsTheOrderAndIsPushedAtItsEnd) {
  const ActorRef one = SpawnLogger();
  const ActorRef other = SpawnLogger();
  {
    ForeignBurst burst;
    Send(burst, one, 1);
    Send(burst, one, 2);
    EXPECT_TRUE(one.slot()->mailbox.inbox.IsIdle());
    Send(burst, other, 3);
    EXPECT_FALSE(one.slot()->mailbox.inbox.IsIdle()) << "it does not wait for messages to others";
    Send(burst, one, 4);
  }
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2", "4", "3"}));
}

TEST_F(ForeignBurstTest, HoldsNoMoreBackThanAChain) {
  const ActorRef logger = SpawnLogger();
  ForeignBurst burst;
  Log all;
  for (int i = 0; i < static_cast<int>(ForeignBurst::kChainLimit); ++i) {
    EXPECT_TRUE(logger.slot()->mailbox.inbox.IsIdle());
    Send(burst, logger, i);
    all.push_back(std::to_string(i));
  }
  RunAll();
  EXPECT_EQ(log_, all);
}

TEST_F(ForeignBurstTest, MakesDeadLettersForActorsThatHaveEnded) {
  const ActorRef gone = SpawnLogger();
  StopIt(gone);
  RunAll();
  ForeignBurst burst;
  Send(burst, gone, 1);
  Send(burst, gone, 2);
  Send(burst, ActorRef(), 3);
  EXPECT_EQ(
      dead_,
      Dead({{1, DeadLetterReason::kStopped}, {2, DeadLetterReason::kStopped}, {3, DeadLetterReason::kNoRecipient}}));
}

TEST_F(ForeignBurstTest, MakesDeadLettersWhenTheSystemTakesNothingMore) {
  const ActorRef logger = SpawnLogger();
  ForeignBurst burst;
  Send(burst, logger, 1);
  mailboxes_.core().Close();
  burst.Flush();
  EXPECT_EQ(dead_, Dead({{1, DeadLetterReason::kShutdown}}));
}

TEST_F(ForeignBurstTest, HeedsTheLimitOfAMailbox) {
  MailboxOptions two;
  two.capacity = 2;
  two.overflow = OverflowStrategy::kDropNewest;
  const ActorRef limited = SpawnLogger(&two);
  ForeignBurst burst;
  for (int i = 1; i <= 3; ++i) Send(burst, limited, i);
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2"}));
}

}  // namespace
}  // namespace fraktor::actor_internal
