#include <cstddef>
#include <cstdlib>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/test_executors.h"

namespace fraktor {
namespace {

int frames_alive = 0;
int frames_made = 0;
size_t bytes_alive = 0;

void* Allocate(size_t size) {
  ++frames_alive;
  ++frames_made;
  bytes_alive += size;
  return std::malloc(size);
}
void Free(void* frame, size_t size) noexcept {
  --frames_alive;
  bytes_alive -= size;
  std::free(frame);
}
constexpr TaskFrames kCounted = {.allocate = &Allocate, .free = &Free};

Task<int> One() { co_return 1; }
Task<int> Two() {
  Task<int> one = One();
  absl::StatusOr<int> value = co_await one;
  co_return *value + 1;
}

// A single test: the allocator stays installed for the life of the process.
TEST(TaskFrames, ComeFromWhatWasInstalledBeforeTheFirstTask) {
  ASSERT_TRUE(InstallTaskFrames(kCounted));
  EXPECT_FALSE(InstallTaskFrames(kCounted));
  ManualExecutor executor;
  Future<int> result = Two().Start(executor);
  EXPECT_EQ(frames_alive, 1);
  executor.RunAll();
  EXPECT_EQ(result.Take().value(), 2);
  EXPECT_EQ(frames_made, 2);
  EXPECT_EQ(frames_alive, 0);
  EXPECT_EQ(bytes_alive, 0u);
}

}  // namespace
}  // namespace fraktor
