#include "fraktor/cluster/grain/last_moment.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

// Remembers who has asked, and does not answer.
class Silent final : public ActorInstance {
 public:
  explicit Silent(ActorRef* asker) : asker_(*asker) {}
  absl::Status Receive(ActorContext& context, Envelope&) override {
    asker_ = context.sender();
    return absl::OkStatus();
  }

 private:
  ActorRef& asker_;
};

class LastMomentTest : public testing::Test {
 protected:
  // Of a question with this timeout, that is asked now.
  absl::Duration Left(absl::Duration timeout) {
    const Instant now = kit_.system().toolbox().Now();
    Future<std::string> asking = kit_.system().Ask<std::string>(silent_, std::string("?"), timeout);
    kit_.Settle();
    return LastMoment(asker_, now) - now;
  }

  TestKit kit_;
  ActorRef asker_;
  const ActorRef silent_ = kit_.Spawn(*MakeProps<Silent>({}, &asker_));
};

TEST_F(LastMomentTest, IsATenthBeforeTheTimeoutButNotMoreThanAMoment) {
  EXPECT_EQ(Left(absl::Milliseconds(200)), absl::Milliseconds(180));
  EXPECT_EQ(Left(absl::Seconds(1)), absl::Milliseconds(900));
  EXPECT_EQ(Left(absl::Minutes(1)), absl::Minutes(1) - absl::Milliseconds(100));
}

TEST_F(LastMomentTest, IsNeverIfNobodyWaitsOrNobodyKnowsForHowLong) {
  const Instant now = kit_.system().toolbox().Now();
  EXPECT_EQ(LastMoment(ActorRef(), now), Instant::InfiniteFuture());
  EXPECT_EQ(LastMoment(silent_, now), Instant::InfiniteFuture());
  EXPECT_EQ(Left(absl::Hours(24 * 366)), absl::InfiniteDuration());
}

// It does not come later than the timeout, whenever it is asked for.
TEST_F(LastMomentTest, IsOverWhenTheTimeoutIs) {
  const Instant begun = kit_.system().toolbox().Now();
  Left(absl::Seconds(1));
  EXPECT_LE(LastMoment(asker_, begun + absl::Seconds(1)), begun + absl::Seconds(1));
}

}  // namespace
}  // namespace fraktor
