#include "fraktor/utils/toolbox/worker.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {
namespace {

thread_local bool is_worker_thread = false;

}  // namespace

bool IsWorkerThread() { return is_worker_thread; }

namespace internal_toolbox {

WorkerThreadScope::WorkerThreadScope(bool is_worker) : outer_(is_worker_thread) { is_worker_thread = is_worker; }
WorkerThreadScope::~WorkerThreadScope() { is_worker_thread = outer_; }

namespace {
constexpr size_t kMaxNameBytes = 100;
constexpr int kMaxIdleRounds = 1'000'000;
constexpr int kMaxCpu = 1023;  // what cpu_set_t can say
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
  if (options.cpu.has_value() && (*options.cpu < 0 || *options.cpu > kMaxCpu)) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker \"", options.name, "\": cpu is ", *options.cpu, "; use 0 to ", kMaxCpu, " or none"));
  }
  return absl::OkStatus();
}

}  // namespace internal_toolbox
}  // namespace fraktor::inline v0
