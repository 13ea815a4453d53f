// The part that WithTimeout and WithStop share, as far as their own tests do not cover it.
#include "fraktor/utils/future/internal/race_source.h"

#include <optional>
#include <semaphore>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {

using future_internal::RaceSource;

namespace {

// A future that is never ready, because its result depends on the thread that waits.
class OwnThread final : public FutureSource<int> {
 public:
  static Future<int> Make() { return Future<int>::FromSource(*new OwnThread); }

  bool IsReady() const override { return false; }
  bool Poll(const Waker&) override { return false; }
  bool StopWaking() override { return true; }
  bool Cancel() override { return true; }
  const char* AwaitsThisThread() const override { return "it depends on this thread"; }
  FutureResult<int> Take() override { return 0; }
  void Drop() noexcept override { delete this; }
};

TEST(RaceSource, RefusesAWaitThatOnlyTheInnerFutureCouldEnd) {
  const absl::Status refused = absl::FailedPreconditionError("it depends on this thread");
  const auto toolbox = LocalToolbox::Make({}).value();
  std::stop_source stop;
  EXPECT_EQ(WithStop(OwnThread::Make(), stop.get_token()).Wait().status(), refused);
  EXPECT_EQ(WithTimeout(*toolbox, OwnThread::Make(), absl::InfiniteDuration()).Wait().status(), refused);
}

// The wait begins before the timer fires, on another thread.
TEST(RaceSource, LetsAWaitBeginThatATimerEnds) {
  std::binary_semaphore go_on{0};
  const auto toolbox = StdToolbox::Make({}).value();
  // All timers of a toolbox wait for the one that fires.
  ASSERT_TRUE(toolbox->ScheduleAfter(absl::ZeroDuration(), [&] { go_on.acquire(); }).ok());
  Future<int> whole = WithTimeout(*toolbox, OwnThread::Make(), absl::Microseconds(1));
  EXPECT_FALSE(whole.IsReady());
  EXPECT_EQ(whole.WaitFor(absl::Microseconds(1)), std::nullopt) << "it is not refused";
  go_on.release();
  EXPECT_TRUE(absl::IsDeadlineExceeded(whole.Wait().status()));
}

TEST(RaceSource, TakesTheErrorOfAToolboxWithoutTimers) {
  const auto toolbox = LocalToolbox::Make({.max_timers = 1}).value();
  auto [promise, future] = MakePromise<int>();
  Future<void> pause = SleepFor(*toolbox, absl::Hours(1));
  Future<int> whole = WithTimeout(*toolbox, std::move(future), absl::Seconds(1));
  ASSERT_TRUE(whole.IsReady());
  EXPECT_TRUE(absl::IsResourceExhausted(whole.Take().status()));
}

}  // namespace
}  // namespace fraktor
