#include "fraktor/utils/toolbox/internal/futex.h"

#ifndef __linux__
#error "StdToolbox parks its threads with Linux futexes; bring the two functions of futex.h to this system"
#endif

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {
namespace toolbox_internal {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, Instant deadline) {
  timespec until = {};
  const timespec* timeout = nullptr;
  if (deadline != Instant::InfiniteFuture()) {
    const int64_t nanoseconds = std::max<int64_t>(deadline.nanoseconds(), 0);
    until.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
    until.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);  // NOLINT(google-runtime-int): its type
    timeout = &until;
  }
  // With a bitset the timeout is an absolute time of CLOCK_MONOTONIC.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void FutexWakeOne(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace toolbox_internal
}  // namespace fraktor::inline v0
