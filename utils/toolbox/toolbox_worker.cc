#include "fraktor/utils/toolbox/toolbox_worker.h"

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {
namespace {

thread_local bool is_worker_thread = false;

}  // namespace

bool IsWorkerThread() { return is_worker_thread; }

bool DrivesVirtualTime() {
  // Relaxed, as all accesses: the count orders nothing when another thread takes over a toolbox.
  return toolbox_internal::VirtualTimeDriver::OfThisThread()->load(std::memory_order_relaxed) > 0;
}

namespace toolbox_internal {

VirtualTimeDriver::Count& VirtualTimeDriver::OfThisThread() {
  static thread_local Count count = std::make_shared<std::atomic<int>>(0);
  return count;
}

VirtualTimeDriver::VirtualTimeDriver() : count_(OfThisThread()) { count_->fetch_add(1, std::memory_order_relaxed); }

VirtualTimeDriver::~VirtualTimeDriver() { count_->fetch_sub(1, std::memory_order_relaxed); }

void VirtualTimeDriver::MoveToThisThread() {
  const Count& here = OfThisThread();
  if (count_ == here) return;
  count_->fetch_sub(1, std::memory_order_relaxed);
  count_ = here;
  count_->fetch_add(1, std::memory_order_relaxed);
}

WorkerThreadScope::WorkerThreadScope(bool is_worker) : outer_(is_worker_thread) { is_worker_thread = is_worker; }
WorkerThreadScope::~WorkerThreadScope() { is_worker_thread = outer_; }

namespace {
constexpr size_t kMaxNameBytes = 100;
constexpr int kMaxIdleRounds = 1'000'000;
constexpr int kMaxCpu = 1023;  // the limit of cpu_set_t
constexpr int kLeastNice = -20;
constexpr int kMostNice = 19;
}  // namespace

absl::Status CheckWorkerOptions(const WorkerOptions& options) {
  if (options.name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker: the name has ", options.name.size(), " bytes; use at most ", kMaxNameBytes));
  }
  if (options.idle_rounds < 0 || options.idle_rounds > kMaxIdleRounds) {
    return absl::InvalidArgumentError(absl::StrCat("worker \"", options.name, "\": idle_rounds is ",
                                                   options.idle_rounds, "; use 0 to ", kMaxIdleRounds));
  }
  for (const int cpu : options.cpus) {
    if (cpu >= 0 && cpu <= kMaxCpu) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("worker \"", options.name, "\": cpus has ", cpu, "; use 0 to ", kMaxCpu));
  }
  if (options.nice.has_value() && (*options.nice < kLeastNice || *options.nice > kMostNice)) {
    return absl::InvalidArgumentError(absl::StrCat("worker \"", options.name, "\": nice is ", *options.nice, "; use ",
                                                   kLeastNice, " to ", kMostNice));
  }
  return absl::OkStatus();
}

}  // namespace toolbox_internal
}  // namespace fraktor::inline v0
