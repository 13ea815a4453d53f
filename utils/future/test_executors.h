// Executors for the tests of this folder.
#ifndef FRAKTOR_UTILS_FUTURE_TEST_EXECUTORS_H_
#define FRAKTOR_UTILS_FUTURE_TEST_EXECUTORS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor {

// Runs posted work when the test says so, on the test's thread. Rejects work when it is closed. Any
// thread may call Post.
class ManualExecutor final : public Executor {
 public:
  using Work = absl::AnyInvocable<void() &&>;

  void Post(Work work) override {
    MutexLock lock(mutex_);
    if (!is_closed_) queue_.push_back(std::move(work));
  }

  bool RunOne() {
    Work work;
    {
      MutexLock lock(mutex_);
      if (queue_.empty()) return false;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    std::move(work)();
    return true;
  }

  size_t RunAll() {
    size_t count = 0;
    while (RunOne()) ++count;
    return count;
  }

  size_t size() {
    MutexLock lock(mutex_);
    return queue_.size();
  }

  void Close() {
    MutexLock lock(mutex_);
    is_closed_ = true;
  }

 private:
  Mutex mutex_;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// One thread that runs posted work until the executor is destroyed. The destructor runs the
// remaining work first.
class ThreadExecutor final : public Executor {
 public:
  ThreadExecutor() : thread_([this] { Loop(); }) {}
  ~ThreadExecutor() override {
    {
      MutexLock lock(mutex_);
      is_stopping_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }

  void Post(absl::AnyInvocable<void() &&> work) override {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_one();
  }

  std::thread::id thread_id() const { return thread_.get_id(); }

 private:
  void Loop() {
    for (;;) {
      absl::AnyInvocable<void() &&> work;
      {
        MutexLock lock(mutex_);
        changed_.wait(lock, [this] {
          mutex_.AssertHeld();
          return is_stopping_ || !queue_.empty();
        });
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      std::move(work)();
    }
  }

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<absl::AnyInvocable<void() &&>> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fraktor

#endif  // FRAKTOR_UTILS_FUTURE_TEST_EXECUTORS_H_
