// Counts the allocations of futures, by the operator new of this binary.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/executor.h"

namespace {
int allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fraktor {
namespace {

template <class Fn>
int CountAllocations(Fn fn) {
  const int before = allocations;
  fn();
  return allocations - before;
}

// Holds one piece of work in place, without a queue that would allocate.
class OneSlotExecutor final : public Executor {
 public:
  void Post(absl::AnyInvocable<void() &&> work) override { work_ = std::move(work); }
  void Run() { std::exchange(work_, nullptr)(); }

 private:
  absl::AnyInvocable<void() &&> work_;
};

Task<int> Await(Future<int>* future) {
  absl::StatusOr<int> value = co_await *future;
  co_return *value;
}

TEST(FutureAllocations, AreOneForAPairFromItsMakingToItsEnd) {
  const auto nothing = [](void*, uint64_t, uint64_t) noexcept {};
  EXPECT_EQ(CountAllocations([&] {
              auto [promise, future] = MakePromise<int>();
              EXPECT_FALSE(future.Poll(Waker{.function = nothing}));
              promise.Set(1);
              EXPECT_TRUE(future.Poll(Waker{.function = nothing}));
              EXPECT_EQ(*future.Take(), 1);
            }),
            1);
  EXPECT_EQ(CountAllocations([] { EXPECT_EQ(*MakeReadyFuture<int>(1).Take(), 1); }), 1);
}

TEST(FutureAllocations, AreOneMoreForAMap) {
  EXPECT_EQ(CountAllocations([] { EXPECT_EQ(*MakeReadyFuture<int>(1).Map([](int n) { return n; }).Take(), 1); }), 2);
}

TEST(FutureAllocations, AreTwoMoreForAThen) {
  OneSlotExecutor executor;
  EXPECT_EQ(CountAllocations([&] {
              Future<int> then = MakeReadyFuture<int>(1).Then(executor, [](absl::StatusOr<int> n) { return *n; });
              executor.Run();
              EXPECT_EQ(*then.Take(), 1);
            }),
            3);
}

TEST(FutureAllocations, AreThreeForAStartedTask) {
  OneSlotExecutor executor;
  Future<int> ready = MakeReadyFuture<int>(1);
  EXPECT_EQ(CountAllocations([&] {
              Future<int> result = Await(&ready).Start(executor);  // the frame, the run, and the future of the result
              executor.Run();
              EXPECT_EQ(*result.Take(), 1);
            }),
            3);
}

}  // namespace
}  // namespace fraktor
