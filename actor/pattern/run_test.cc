// ActorContext::Run with a lambda.
#include <memory>
#include <stdexcept>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/internal/pattern_fixture.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"

namespace fraktor {

using pattern_internal::PatternTest;

namespace {

using RunTest = PatternTest;

TEST_F(RunTest, KeepsTheCapturesOfALambdaUntilItsCoroutineHasEnded) {
  const ActorRef actor = Spawn({});
  auto held = std::make_shared<int>(7);
  int seen = 0;
  In(actor, [&](ActorContext& context) {
    return context.Run([&seen, &context, held]() -> Task<void> {
      Future<void> delay = context.Delay(absl::Seconds(1));
      (co_await delay).IgnoreError();
      seen = *held;
    });
  });
  EXPECT_EQ(held.use_count(), 2);
  RunFor(absl::Seconds(1));
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(RunTest, FailsTheActorWithTheExceptionOfALambda) {
  bool has_restarted = false;
  const ActorRef failing = Spawn({.pre_restart = [&](ActorContext&, Envelope*) { has_restarted = true; }});
  In(failing, [&](ActorContext& context) {
    return context.Run([&context]() -> Task<void> {
      Future<void> delay = context.Delay(absl::Seconds(1));
      (co_await delay).IgnoreError();
      throw std::runtime_error("late");
    });
  });
  EXPECT_FALSE(has_restarted);
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(has_restarted);
}

}  // namespace
}  // namespace fraktor
