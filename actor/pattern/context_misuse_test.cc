// A context that is used outside of its actor's turns by functions that take one: actor_context.h.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/context/internal/misuse.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/timer/receive_timeout.h"
#include "fraktor/actor/timer/timers.h"

namespace fraktor {

using actor_internal::RefusedMisuse;

namespace {

struct Tick {};
struct Put {};
struct Leak;
using LeakyContext = TypedContext<Tick, Put, Leak>;
struct Leak {
  LeakyContext** context;
};

class Leaky : public Actor<Leaky, Tick, Put, Leak> {
 public:
  void On(Context&, const Tick&) {}
  void On(Context& context, const Put&) { EXPECT_TRUE(Stash(context).ok()); }
  void On(Context& context, const Leak& leak) { *leak.context = &context; }
};
// Counts what it handles.
struct Counting {
  explicit Counting(int* handled) : handled_(*handled) {}
  void On(Leaky::Context&, const Tick&) { ++handled_; }
  void On(Leaky::Context&, const Put&) { ++handled_; }
  void On(Leaky::Context&, const Leak&) {}

 private:
  int& handled_;
};
struct Quiet {
  void On(Leaky::Context&, const Tick&) {}
  void On(Leaky::Context&, const Put&) {}
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

// As in a program that was compiled with NDEBUG. The actor has a timer, a stashed message, a
// receive timeout and a stacked behaviour: a call that is not refused would find them, or change
// them.
TEST_F(ContextMisuse, IsRefusedAndChangesNothing) {
  const RefusedMisuse as_with_ndebug;
  ASSERT_NE(kept_, nullptr);
  int handled = 0;
  leaky_.Tell(Put{});
  kit_.Settle();
  kit_.RunIn(leaky_, [&](Leaky::Context& context) {
    EXPECT_TRUE(Timers(context).StartSingle("t", Tick{}, absl::Hours(1)).ok());
    EXPECT_TRUE(SetReceiveTimeout(context, absl::Hours(2)).ok());
    EXPECT_TRUE(context.BecomeStacked<Counting>(&handled).ok());
    EXPECT_EQ(StashSize(context), 1u);
  });
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
  auto other = kit_.Spawn<Leaky>();
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "nobody logs this"}, 0, [&] {
    misuse();
    std::thread(misuse).join();
    kit_.RunIn(other, [&](Leaky::Context&) { misuse(); });
  });
  // The actor is as it was, and its own turns may call all of them.
  leaky_.Tell(Tick{});
  kit_.Settle();
  EXPECT_EQ(handled, 1) << "the stacked behaviour handles the Tick; the stashed message is still stashed";
  kit_.RunIn(leaky_, [&](Leaky::Context& context) {
    EXPECT_TRUE(context.Unbecome());
    EXPECT_FALSE(context.Unbecome());
    EXPECT_EQ(StashSize(context), 1u);
    EXPECT_FALSE(StashIsFull(context));
    EXPECT_EQ(ReceiveTimeoutOf(context), absl::Hours(2));
    EXPECT_TRUE(Timers(context).IsActive("t"));
    EXPECT_TRUE(Timers(context).StartSingle("u", Tick{}, absl::Hours(1)).ok());
    EXPECT_EQ(Timers(context).size(), 2u);
    EXPECT_TRUE(IsLogOn(context, LogLevel::kError));
  });
}

}  // namespace
}  // namespace fraktor
