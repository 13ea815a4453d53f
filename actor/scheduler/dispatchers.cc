#include "fraktor/actor/scheduler/dispatchers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

constexpr int kMostPinned = 10'000;

absl::Status In(const char* part, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("DispatchersOptions.", part, ": ", status.message()));
}

}  // namespace

absl::Status DispatchersOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(In("default_pool", default_pool.Validate()));
  FRAKTOR_RETURN_IF_ERROR(In("system_pool", system_pool.Validate()));
  FRAKTOR_RETURN_IF_ERROR(In("pinned", pinned.Validate()));
  if (pinned.workers != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("DispatchersOptions.pinned: workers is ", pinned.workers, "; a pinned actor has one thread"));
  }
  if (max_pinned < 0 || max_pinned > kMostPinned) {
    return absl::InvalidArgumentError(
        absl::StrCat("DispatchersOptions.max_pinned is ", max_pinned, "; it must be from 0 to ", kMostPinned));
  }
  return absl::OkStatus();
}

Dispatchers::Dispatchers(const DispatchersOptions& options) : options_(options) {}

Dispatchers::~Dispatchers() { Stop(); }

absl::Status Dispatchers::NotRunning() {
  return absl::FailedPreconditionError("the dispatchers do not run: actors are spawned between Start and Stop");
}

absl::Status Dispatchers::Start(const ExecutorServices& services) {
  FRAKTOR_RETURN_IF_ERROR(options_.Validate());
  FRAKTOR_ASSIGN_OR_RETURN(default_, WorkerExecutor::Start(options_.default_pool, services));
  FRAKTOR_ASSIGN_OR_RETURN(system_, WorkerExecutor::Start(options_.system_pool, services));
  services_.emplace(services);
  MutexLock lock(mutex_);
  running_ = true;
  return absl::OkStatus();
}

void Dispatchers::Stop() {
  std::vector<std::unique_ptr<WorkerExecutor>> pinned;
  {
    MutexLock lock(mutex_);
    running_ = false;
    pinned = std::move(pinned_);
    pinned_.clear();
    std::move(ending_.begin(), ending_.end(), std::back_inserter(pinned));
    ending_.clear();
  }
  // All stop before one goes: actors of one tell those of another.
  if (default_ != nullptr) default_->Stop();
  if (system_ != nullptr) system_->Stop();
  for (const std::unique_ptr<WorkerExecutor>& executor : pinned) executor->Stop();
  pinned.clear();
  default_.reset();
  system_.reset();
}

bool Dispatchers::AwaitQuiet(absl::Duration timeout) {
  if (default_ == nullptr || system_ == nullptr) return true;
  const Instant deadline = services_->toolbox.Now() + timeout;
  const auto left = [&] { return std::max(deadline - services_->toolbox.Now(), absl::ZeroDuration()); };
  // One may have given another something to do meanwhile: all must be quiet when looked at again.
  for (;;) {
    if (!default_->AwaitQuiet(left()) || !system_->AwaitQuiet(left())) return false;
    MutexLock lock(mutex_);
    for (const std::unique_ptr<WorkerExecutor>& executor : pinned_) {
      if (!executor->AwaitQuiet(left())) return false;
    }
    if (default_->IsQuiet() && system_->IsQuiet()) return true;
    if (left() <= absl::ZeroDuration()) return false;
  }
}

absl::StatusOr<uint16_t> Dispatchers::NumberFor(DispatcherChoice choice) {
  if (choice == DispatcherChoice::kPinned) return StartPinned();
  const WorkerExecutor* const executor = (choice == DispatcherChoice::kSystem ? system_ : default_).get();
  if (executor == nullptr) return NotRunning();
  return executor->number();
}

absl::StatusOr<uint16_t> Dispatchers::StartPinned() {
  MutexLock lock(mutex_);
  if (!running_) return NotRunning();
  std::erase_if(ending_, [](const std::unique_ptr<WorkerExecutor>& executor) { return executor->IsStopped(); });
  if (pinned_.size() >= static_cast<size_t>(options_.max_pinned)) {
    return absl::ResourceExhaustedError(absl::StrCat("there are ", pinned_.size(),
                                                     " pinned actors; raise DispatchersOptions.max_pinned, or do "
                                                     "without a thread for each"));
  }
  WorkerExecutorOptions options = options_.pinned;
  absl::StrAppend(&options.name, "-", pinned_started_++);
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<WorkerExecutor> executor, WorkerExecutor::Start(options, *services_));
  const uint16_t number = executor->number();
  pinned_.push_back(std::move(executor));
  return number;
}

void Dispatchers::EndPinned(uint16_t number) {
  MutexLock lock(mutex_);
  const auto found = std::find_if(pinned_.begin(), pinned_.end(), [number](const auto& executor) {
    return executor->number() == number;
  });
  if (found == pinned_.end()) return;
  (*found)->ForgetNumber();
  (*found)->StopSoon();
  ending_.push_back(std::move(*found));
  pinned_.erase(found);
}

size_t Dispatchers::pinned_count() const {
  MutexLock lock(mutex_);
  return pinned_.size();
}

}  // namespace fraktor::inline v0
