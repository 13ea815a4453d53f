// A context that is used outside of its actor's turns by functions that take one: actor_context.h.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/context/misuse.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/pattern/receive_timeout.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/pattern/timers.h"
#include "fraktor/actor/testkit/test_kit.h"

namespace fraktor {
namespace {

struct Tick {};
struct Leak {
  TypedContext<Tick, Leak>** context;
};

class Leaky : public Actor<Leaky, Tick, Leak> {
 public:
  void On(Context&, const Tick&) { ++ticks_; }
  void On(Context& context, const Leak& leak) { *leak.context = &context; }

 private:
  int ticks_ = 0;
};
struct Quiet {
  void On(Leaky::Context&, const Tick&) {}
  void On(Leaky::Context&, const Leak&) {}
};

class ContextMisuse : public testing::Test {
 protected:
  ContextMisuse() : leaky_(kit_.SpawnNamed<Leaky>("leaky")) {
    leaky_.Tell(Leak{&kept_});
    kit_.Settle();
  }

  TestKit kit_;
  RefOf<Leaky> leaky_;
  Leaky::Context* kept_ = nullptr;
};

TEST_F(ContextMisuse, IsNamedWhereItEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ASSERT_NE(kept_, nullptr);
#ifndef NDEBUG
  EXPECT_DEATH(static_cast<void>(Stash(*kept_)), "Stash of the context of pekko://.*/user/leaky was called outside of");
  EXPECT_DEATH(static_cast<void>(Timers(*kept_).Cancel("t")), "Timers::Cancel of the context of pekko://.*/user/leaky");
  EXPECT_DEATH(kept_->Become<Quiet>(), "Become of the context of pekko://.*/user/leaky was called outside of");
  EXPECT_DEATH(Log(*kept_, LogLevel::kInfo, "text"), "Log of the context of pekko://.*/user/leaky was called outside");
#endif
}

// As in a program that was compiled with NDEBUG.
TEST_F(ContextMisuse, IsRefusedAndChangesNothing) {
  const RefusedMisuse as_with_ndebug;
  ASSERT_NE(kept_, nullptr);
  const auto misuse = [&] {
    const std::vector<std::pair<std::string, absl::Status>> refused = {
        {"Stash", Stash(*kept_)},
        {"Timers::Start", Timers(*kept_).StartSingle("t", Tick{}, absl::Seconds(1))},
        {"SetReceiveTimeout", SetReceiveTimeout(*kept_, absl::Seconds(1))},
        {"BecomeStacked", kept_->BecomeStacked<Quiet>()}};
    for (const auto& [call, status] : refused) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_EQ(std::string(status.message()).rfind(call + " of the context of ", 0), 0u) << status;
    }
    kept_->Become<Quiet>();
    EXPECT_FALSE(kept_->Unbecome());
    UnstashAll(*kept_);
    EXPECT_FALSE(UnstashOne(*kept_));
    EXPECT_EQ(StashSize(*kept_), 0u);
    EXPECT_TRUE(StashIsFull(*kept_));
    SetStashCapacity(*kept_, 0);
    EXPECT_FALSE(Timers(*kept_).Cancel("t"));
    Timers(*kept_).CancelAll();
    EXPECT_FALSE(Timers(*kept_).IsActive("t"));
    EXPECT_EQ(Timers(*kept_).size(), 0u);
    Timers(*kept_).SetLimit(0);
    CancelReceiveTimeout(*kept_);
    EXPECT_EQ(ReceiveTimeoutOf(*kept_), absl::InfiniteDuration());
    EXPECT_FALSE(IsLogOn(*kept_, LogLevel::kError));
    Log(*kept_, LogLevel::kError, "nobody logs this");
  };
  misuse();
  std::thread(misuse).join();
  auto other = kit_.Spawn<Leaky>();
  kit_.RunIn(other, [&](Leaky::Context&) { misuse(); });
  // The actor is as it was: its own turns may do all that.
  kit_.RunIn(leaky_, [&](Leaky::Context& context) {
    EXPECT_FALSE(context.Unbecome());
    EXPECT_FALSE(StashIsFull(context));
    EXPECT_TRUE(Timers(context).StartSingle("t", Tick{}, absl::Seconds(1)).ok());
    EXPECT_EQ(Timers(context).size(), 1u);
    EXPECT_TRUE(IsLogOn(context, LogLevel::kError));
  });
}

}  // namespace
}  // namespace fraktor
