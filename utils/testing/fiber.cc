#include "fraktor/utils/testing/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#if defined(__x86_64__) && defined(__ELF__) && !defined(FRAKTOR_FIBER_USES_UCONTEXT)
#define FRAKTOR_FIBER_ASSEMBLY 1
#else
#define FRAKTOR_FIBER_ASSEMBLY 0
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FRAKTOR_FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FRAKTOR_FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FRAKTOR_FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FRAKTOR_FIBER_TSAN 1
#endif

#if defined(FRAKTOR_FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(FRAKTOR_FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if FRAKTOR_FIBER_ASSEMBLY
// void fraktor_fiber_switch(void** save, void* resume): saves the callee-saved registers on the
// current stack, and restores them from the other one.
asm(R"(
.pushsection .text
.globl fraktor_fiber_switch
.hidden fraktor_fiber_switch
.type fraktor_fiber_switch, @function
.p2align 4
fraktor_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size fraktor_fiber_switch, .-fraktor_fiber_switch
.popsection
)");
extern "C" void fraktor_fiber_switch(void** save, void* resume);
#endif

namespace fraktor::inline v0 {

struct Fiber::Context {
  Entry entry = nullptr;
  void* argument = nullptr;
  char* mapping = nullptr;  // null for the stack that the program started with
  std::size_t mapping_bytes = 0;
#if FRAKTOR_FIBER_ASSEMBLY
  void* stack_pointer = nullptr;
#else
  ucontext_t registers;
#endif
  // The exceptions that are being handled. The C++ runtime keeps them per thread; a fiber needs its
  // own.
  void* caught_exceptions[2] = {nullptr, nullptr};
#if defined(FRAKTOR_FIBER_ASAN)
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
#endif
#if defined(FRAKTOR_FIBER_TSAN)
  void* tsan_fiber = nullptr;
#endif

  static void Main();
  static void FinishSwitch(Context& to);
};

namespace {

// The fibers of the current switch. A fresh stack has no other way to know them.
struct Switching {
  void* from = nullptr;
  void* to = nullptr;
};
thread_local Switching switching;

std::size_t PageBytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

void Fiber::Context::FinishSwitch([[maybe_unused]] Context& to) {
#if defined(FRAKTOR_FIBER_ASAN)
  auto* from = static_cast<Context*>(switching.from);
  // Also reports the bounds of the stack that was left, which is how those of the program's own
  // stack become known.
  __sanitizer_finish_switch_fiber(to.fake_stack, &from->stack_bottom, &from->stack_bytes);
#endif
}

void Fiber::Context::Main() {
  auto& self = *static_cast<Context*>(switching.to);
  FinishSwitch(self);
  self.entry(self.argument);
  std::fputs("Fiber: the entry function returned; it must switch to another fiber instead\n", stderr);
  std::abort();
}

Fiber::Fiber() : context_(std::make_unique<Context>()) {
#if defined(FRAKTOR_FIBER_TSAN)
  context_->tsan_fiber = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(std::size_t stack_bytes, Entry entry, void* argument) : Fiber() {
  const std::size_t page = PageBytes();
  const std::size_t usable = (stack_bytes + page - 1) / page * page;
  void* mapping =
      mmap(nullptr, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, page, PROT_NONE) != 0) {
    std::perror("Fiber: cannot map a stack");
    std::abort();
  }
  context_->entry = entry;
  context_->argument = argument;
  context_->mapping = static_cast<char*>(mapping);
  context_->mapping_bytes = usable + page;
  char* bottom = context_->mapping + page;
#if FRAKTOR_FIBER_ASSEMBLY
  // The stack frame that fraktor_fiber_switch pops: six registers, then the return address. Main
  // starts with the stack as a call would leave it (16 n + 8). Above it lies a null return address
  // that ends backtraces.
  auto* top = reinterpret_cast<std::uintptr_t*>(bottom + usable) - 1;
  top[0] = 0;
  top[-1] = reinterpret_cast<std::uintptr_t>(&Context::Main);
  for (int i = 2; i <= 7; ++i) top[-i] = 0;
  context_->stack_pointer = top - 7;
#else
  getcontext(&context_->registers);
  context_->registers.uc_stack.ss_sp = bottom;
  context_->registers.uc_stack.ss_size = usable;
  context_->registers.uc_link = nullptr;
  makecontext(&context_->registers, &Context::Main, 0);
#endif
#if defined(FRAKTOR_FIBER_ASAN)
  context_->stack_bottom = bottom;
  context_->stack_bytes = usable;
#endif
#if defined(FRAKTOR_FIBER_TSAN)
  context_->tsan_fiber = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (context_ == nullptr || context_->mapping == nullptr) return;
#if defined(FRAKTOR_FIBER_TSAN)
  __tsan_destroy_fiber(context_->tsan_fiber);
#endif
#if defined(FRAKTOR_FIBER_ASAN)
  // Another mapping may reuse the memory: forget the frames that were marked on it.
  __asan_unpoison_memory_region(context_->mapping, context_->mapping_bytes);
#endif
  munmap(context_->mapping, context_->mapping_bytes);
}

#if defined(FRAKTOR_FIBER_ASAN)
namespace {

// Tells the leak checker to look for pointers from `start` to the end of its mapping.
void RegisterRestOfMapping(const void* start) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return;
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  char line[512];
  unsigned long first = 0;  // NOLINT(google-runtime-int): as %lx wants it
  unsigned long end = 0;    // NOLINT(google-runtime-int)
  while (std::fgets(line, sizeof(line), maps) != nullptr) {
    if (std::sscanf(line, "%lx-%lx", &first, &end) != 2 || address < first || address >= end) continue;
    __lsan_register_root_region(start, end - address);
    break;
  }
  std::fclose(maps);
}

}  // namespace
#endif

void Fiber::Abandon([[maybe_unused]] std::unique_ptr<Fiber> fiber) {
#if defined(FRAKTOR_FIBER_ASAN)
  if (fiber == nullptr || fiber->context_->mapping == nullptr) return;
#if FRAKTOR_FIBER_ASSEMBLY
  const void* stack = fiber->context_->stack_pointer;
#else
  const void* stack = fiber->context_->mapping + PageBytes();
#endif
  const char* top = fiber->context_->mapping + fiber->context_->mapping_bytes;
  __lsan_register_root_region(stack, static_cast<std::size_t>(top - static_cast<const char*>(stack)));
  // AddressSanitizer keeps local variables here, if it looks for uses after return.
  if (fiber->context_->fake_stack != nullptr) RegisterRestOfMapping(fiber->context_->fake_stack);
  // Reachable as long as the program runs; never destroyed.
  static thread_local auto& abandoned = *new std::vector<std::unique_ptr<Fiber>>();
  abandoned.push_back(std::move(fiber));
#endif
}

void SwitchFiber(Fiber& from, Fiber& to) {
  Fiber::Context& leaving = *from.context_;
  Fiber::Context& entering = *to.context_;
  void* exceptions = abi::__cxa_get_globals();
  std::memcpy(leaving.caught_exceptions, exceptions, sizeof(leaving.caught_exceptions));
  std::memcpy(exceptions, entering.caught_exceptions, sizeof(entering.caught_exceptions));
  switching = {.from = &leaving, .to = &entering};
#if defined(FRAKTOR_FIBER_ASAN)
  __sanitizer_start_switch_fiber(&leaving.fake_stack, entering.stack_bottom, entering.stack_bytes);
#endif
#if defined(FRAKTOR_FIBER_TSAN)
  __tsan_switch_to_fiber(entering.tsan_fiber, 0);
#endif
#if FRAKTOR_FIBER_ASSEMBLY
  fraktor_fiber_switch(&leaving.stack_pointer, entering.stack_pointer);
#else
  swapcontext(&leaving.registers, &entering.registers);
#endif
  Fiber::Context::FinishSwitch(leaving);
}

}  // namespace fraktor::inline v0
