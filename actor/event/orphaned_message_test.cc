#include "fraktor/actor/event/orphaned_message.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

class Desk : public Actor<Desk, std::string> {
 public:
  explicit Desk(std::string name) : name_(std::move(name)) {}
  std::string On(Context&, const std::string& text) { return name_ + " says " + text; }

 private:
  const std::string name_;
};

class OrphanedMessages : public testing::Test {
 protected:
  // Asks so that the ask is in the mailbox when the actor ends, before it is handled.
  Future<std::string> AskTooLate(ActorRef desk) {
    Tell(desk, PoisonPill{});
    return kit_.system().Ask<std::string>(desk, std::string("hello"), absl::Seconds(5));
  }
  double DeadLetters() {
    const MetricsSnapshot snapshot = kit_.system().hub().Snapshot(kit_.system().toolbox().Now());
    return snapshot.Find(kDeadLettersTotal, {{"reason", "stopped"}})->value;
  }

  TestKit kit_;
  const ActorRef former_ = kit_.Spawn<Desk>("former").untyped();
  const ActorRef successor_ = kit_.Spawn<Desk>("successor").untyped();
};

TEST_F(OrphanedMessages, AreAnsweredByWhoeverTakesThemAndAreNoDeadLetters) {
  const EventSubscription orphans =
      kit_.system().events().Listen<OrphanedMessage>([this](const OrphanedMessage& orphan) {
        EXPECT_EQ(orphan.recipient, former_);
        ActorContext::worker().Send(successor_, orphan.message.release());
      });
  Future<std::string> answer = AskTooLate(former_);
  kit_.Settle();
  ASSERT_TRUE(answer.IsReady());
  EXPECT_EQ(answer.Take().value(), "successor says hello");
  EXPECT_EQ(DeadLetters(), 0);
}

TEST_F(OrphanedMessages, AreDeadLettersIfNobodyTakesThem) {
  int offered = 0;
  const EventSubscription orphans =
      kit_.system().events().Listen<OrphanedMessage>([&](const OrphanedMessage&) { ++offered; });
  Future<std::string> answer = AskTooLate(former_);
  kit_.Settle();
  EXPECT_EQ(offered, 1);
  ASSERT_TRUE(answer.IsReady());
  EXPECT_FALSE(answer.Take().ok());
  EXPECT_EQ(DeadLetters(), 1);
}

TEST_F(OrphanedMessages, AreQuestionsOnly) {
  int offered = 0;
  const EventSubscription orphans =
      kit_.system().events().Listen<OrphanedMessage>([&](const OrphanedMessage&) { ++offered; });
  Tell(former_, PoisonPill{});
  Tell(former_, std::string("hello"));
  kit_.Settle();
  EXPECT_EQ(offered, 0);
  EXPECT_EQ(DeadLetters(), 1);
}

}  // namespace
}  // namespace fraktor
