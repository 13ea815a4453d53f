// Sleeps on a 32-bit word until it changes: the kernel's futex.
#ifndef FRAKTOR_UTILS_TOOLBOX_INTERNAL_FUTEX_H_
#define FRAKTOR_UTILS_TOOLBOX_INTERNAL_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {
namespace toolbox_internal {

// Sleeps while `word` is `expected`, until FutexWakeOne or `deadline` (on the clock of StdToolbox;
// InfiniteFuture means no limit). May also return without a reason, so the caller must check the
// word. Orders nothing by itself; the operations on the word do.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, Instant deadline);

// Wakes one thread that sleeps on `word`. Uses only the address, so the word may already be
// destroyed.
void FutexWakeOne(const std::atomic<uint32_t>& word);

}  // namespace toolbox_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_INTERNAL_FUTEX_H_
