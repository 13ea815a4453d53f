#include "fraktor/remote/grpc/thread_rest.h"

#include <atomic>
#include <thread>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

TEST(ThreadRest, LastsUntilItIsEndedAndIsForOneThread) {
  ThreadRest rest(absl::Hours(24));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(rest.is_taken());
    std::atomic<bool> is_over = false;
    std::thread resting([&] {
      EXPECT_TRUE(rest.Try());
      is_over = true;
    });
    while (!rest.is_taken()) std::this_thread::yield();
    EXPECT_FALSE(rest.Try());
    EXPECT_FALSE(is_over);
    rest.End();
    resting.join();
  }
}

TEST(ThreadRest, EndsByItselfAfterItsLongestTime) {
  ThreadRest rest(absl::Milliseconds(1));
  EXPECT_TRUE(rest.Try());
  EXPECT_FALSE(rest.is_taken());
  EXPECT_TRUE(rest.Try());
}

TEST(ThreadRest, IsNotShortenedByAnEndBeforeIt) {
  ThreadRest rest(absl::Hours(24));
  rest.End();
  std::atomic<bool> is_over = false;
  std::thread resting([&] {
    rest.Try();
    is_over = true;
  });
  while (!rest.is_taken()) std::this_thread::yield();
  // Were it over at once, it would be so soon: that the test misses it can only let it pass.
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(is_over);
  rest.End();
  resting.join();
}

}  // namespace
}  // namespace fraktor
