// Lets the measuring thread wait for what actors count down.
//
//   countdown.Arm(2);            // the measuring thread
//   countdown.Hit();             // an actor, and another one
//   countdown.Await();           // the measuring thread again
#ifndef FRAKTOR_BENCHMARKS_MEASURING_COUNTDOWN_H_
#define FRAKTOR_BENCHMARKS_MEASURING_COUNTDOWN_H_

#include <atomic>
#include <cstdint>

namespace fraktor::inline v0 {

class Countdown {
 public:
  void Arm(int64_t count) {
    done_.store(0, std::memory_order_relaxed);
    left_.store(count, std::memory_order_release);
  }

  void Hit() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }

  void Await() { done_.wait(0, std::memory_order_acquire); }

 private:
  std::atomic<int64_t> left_{0};  // the last to count sees what all before it did: acquire-release among themselves
  std::atomic<int> done_{0};      // store-release in Hit, load-acquire in Await
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_BENCHMARKS_MEASURING_COUNTDOWN_H_
