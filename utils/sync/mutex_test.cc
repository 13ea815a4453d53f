#include "fraktor/utils/sync/mutex.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/sync/internal/no_wait_lock.h"

namespace fraktor {

using utils_internal::NoWaitLock;

namespace {

TEST(Mutex, KeepsThreadsApart) {
  Mutex mutex;
  int sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) {
        MutexLock lock(mutex);
        ++sum;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(mutex);
  EXPECT_EQ(sum, 40'000);
}

TEST(Mutex, TryLockFailsWhileAnotherThreadHoldsIt) {
  Mutex mutex;
  mutex.Lock();
  bool taken = false;
  std::thread([&] {
    if (mutex.TryLock()) {
      taken = true;
      mutex.Unlock();
    }
  }).join();
  mutex.Unlock();
  EXPECT_FALSE(taken);
}

TEST(MutexLock, IsReleasedWhileAConditionVariableWaits) {
  Mutex mutex;
  std::condition_variable_any changed;
  bool set = false;
  std::thread setter([&] {
    MutexLock lock(mutex);
    set = true;
    changed.notify_one();
  });
  {
    MutexLock lock(mutex);
    changed.wait(lock, [&] {
      mutex.AssertHeld();
      return set;
    });
    EXPECT_TRUE(set);
  }
  setter.join();
}

TEST(NoWaitLock, LetsOneInAndSendsOthersAway) {
  NoWaitLock lock;
  int64_t sum = 0;
  std::vector<std::thread> threads;
  std::atomic<int64_t> counted{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) {
        if (!lock.TryLock()) continue;
        ++sum;
        lock.Unlock();
        counted.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, counted.load());
  // Twice, to see that Unlock leaves the lock free.
  for (int i = 0; i < 2; ++i) {
    if (!lock.TryLock()) FAIL() << "nobody has it";
    bool again = false;
    std::thread([&] {
      if (!lock.TryLock()) return;
      again = true;
      lock.Unlock();
    }).join();
    lock.Unlock();
    EXPECT_FALSE(again);
  }
}

}  // namespace
}  // namespace fraktor
