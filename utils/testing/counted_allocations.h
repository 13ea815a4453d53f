// Counts the allocations of a test: by operator new and by malloc, from any library.
//
//   if (!kCountsAllocations) GTEST_SKIP() << kWhyNoAllocationsAreCounted;
//   EXPECT_EQ(AllocationsIn([&] { SendAMessage(); }), 0);
//
// This replaces malloc in the program that links it. It counts nothing under a sanitizer, which
// replaces malloc itself, and without glibc.
//
// Thread safety: any thread may call all functions. They count the allocations of all threads.
#ifndef FRAKTOR_UTILS_TESTING_COUNTED_ALLOCATIONS_H_
#define FRAKTOR_UTILS_TESTING_COUNTED_ALLOCATIONS_H_

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FRAKTOR_MALLOC_IS_TAKEN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FRAKTOR_MALLOC_IS_TAKEN 1
#endif
#endif

namespace fraktor::inline v0 {

#if defined(__GLIBC__) && !defined(FRAKTOR_MALLOC_IS_TAKEN)
inline constexpr bool kCountsAllocations = true;
#else
inline constexpr bool kCountsAllocations = false;
#endif
inline constexpr char kWhyNoAllocationsAreCounted[] =
    "malloc cannot be taken over here: it belongs to a sanitizer, or is not glibc's";

// The number of allocations since the program began.
int64_t AllocationCount();

template <class Work>
int64_t AllocationsIn(Work work) {
  const int64_t before = AllocationCount();
  work();
  return AllocationCount() - before;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_COUNTED_ALLOCATIONS_H_
