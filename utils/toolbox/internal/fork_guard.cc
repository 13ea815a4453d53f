#include "fraktor/utils/toolbox/internal/fork_guard.h"

#include <pthread.h>

#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::toolbox_internal {
namespace {

// Both are relaxed. The handler of the fork runs on the only thread of the child. It reads a count
// that another thread may have changed a moment before the fork: a thread that is starting or being
// joined counts.
std::atomic<int> threads{0};
std::atomic<bool> is_forked{false};

void OnForkInChild() {
  if (threads.load(std::memory_order_relaxed) > 0) is_forked.store(true, std::memory_order_relaxed);
}

}  // namespace

bool IsForkedFromThreads() { return is_forked.load(std::memory_order_relaxed); }

absl::Status ForkedError(std::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      ToAbsl(what),
      ": this process is the child of a fork(), and the threads that would do the work are in the parent only; call "
      "exec or _exit in the child, or fork before the first actor system is made"));
}

void CountThreadStart() {
  // If this fails for lack of memory, children are not warned.
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, &OnForkInChild);
  threads.fetch_add(1, std::memory_order_relaxed);
}

void CountThreadEnd() { threads.fetch_sub(1, std::memory_order_relaxed); }

void KeepForEver(void* object) {
  static std::vector<void*>& kept = *new std::vector<void*>();
  kept.push_back(object);
}

}  // namespace fraktor::inline v0::toolbox_internal
