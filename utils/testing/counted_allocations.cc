#include "fraktor/utils/testing/counted_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {
std::atomic<int64_t> allocations{0};  // A sum that orders nothing.
}  // namespace

#if defined(__GLIBC__) && !defined(FRAKTOR_MALLOC_IS_TAKEN)
// The functions of glibc behind the names that are replaced below.
extern "C" void* __libc_malloc(size_t size);                      // NOLINT
extern "C" void* __libc_memalign(size_t alignment, size_t size);  // NOLINT
extern "C" void* __libc_calloc(size_t count, size_t size);        // NOLINT
extern "C" void* __libc_realloc(void* memory, size_t size);       // NOLINT

extern "C" void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
extern "C" void* calloc(size_t count, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
#endif

namespace fraktor::inline v0 {

int64_t AllocationCount() { return allocations.load(std::memory_order_relaxed); }

}  // namespace fraktor::inline v0
