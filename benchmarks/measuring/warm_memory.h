// Memory that the machine really has, for a program that is about to be measured.
//
//   WarmMemory memory;                 // while the program is set up
//   ...
//   memory.Release();                  // when the clock starts: what the program maps from here on is this memory
//
// A virtual machine returns to its host what is free for some seconds. Who maps it next waits for the host: twenty
// times as long as for the kernel, and several times as long as a program takes that lets two million messages pile up.
// That says nothing of the program. So the memory is used, and kept until the program needs it.
#ifndef FRAKTOR_BENCHMARKS_MEASURING_WARM_MEMORY_H_
#define FRAKTOR_BENCHMARKS_MEASURING_WARM_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>

namespace fraktor::inline v0 {

class WarmMemory {
 public:
  WarmMemory() : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) return;
#ifdef MADV_HUGEPAGE
    madvise(memory_, kBytes, MADV_HUGEPAGE);
#endif
    auto* const bytes = static_cast<volatile char*>(memory_);
    for (size_t at = 0; at < kBytes; at += kPageBytes) bytes[at] = 1;
  }
  ~WarmMemory() { Release(); }
  WarmMemory(const WarmMemory&) = delete;
  WarmMemory& operator=(const WarmMemory&) = delete;

  void Release() {
    if (memory_ != MAP_FAILED) munmap(memory_, kBytes);
    memory_ = MAP_FAILED;
  }

 private:
  // What a program with two million messages in a mailbox uses, or one with a million actors, and some more.
  static constexpr size_t kBytes = size_t{320} << 20;
  static constexpr size_t kPageBytes = 4096;

  void* memory_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_BENCHMARKS_MEASURING_WARM_MEMORY_H_
