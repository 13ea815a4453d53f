#include "fraktor/actor/dispatch/dispatchers.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::ActorSlot;
using actor_internal::ExecutorServices;
using actor_internal::kForeign;
using actor_internal::WorkerExecutor;
using actor_internal::WorkerExecutorOptions;

namespace {

constexpr int kMostPinned = 10'000;
// The workers of the default pool, unless the options say otherwise.
constexpr int kDefaultWorkers = 2;

absl::Status In(const char* part, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("DispatchersOptions.", part, ": ", status.message()));
}

// Names of threads and metrics must differ. Threads of pinned actors have numbered names.
absl::Status CheckNames(const DispatchersOptions& options) {
  const std::string numbered = absl::StrCat(options.pinned.name, "-");
  for (auto pool = options.named.begin(); pool != options.named.end(); ++pool) {
    const std::string& name = pool->name;
    const auto has_name = [&](const DispatcherOptions& other) { return other.name == name; };
    if (std::any_of(options.named.begin(), pool, has_name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("two dispatchers have the name \"", name, "\"; each needs a name of its own"));
    }
    if (has_name(options.default_pool) || has_name(options.system_pool) || has_name(options.pinned) ||
        absl::StartsWith(name, numbered)) {
      return absl::InvalidArgumentError(absl::StrCat("a dispatcher has the name \"", name,
                                                     "\", which belongs to a pool of the system; choose another"));
    }
  }
  return absl::OkStatus();
}

// Guests run only actors of the default pool.
WorkerExecutorOptions WithoutGuests(WorkerExecutorOptions pool) {
  pool.takes_guests = false;
  return pool;
}

}  // namespace

absl::Status DispatchersOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(In("default_pool", default_pool.Validate()));
  FRAKTOR_RETURN_IF_ERROR(In("system_pool", system_pool.Validate()));
  FRAKTOR_RETURN_IF_ERROR(In("pinned", pinned.Validate()));
  if (pinned.workers.value_or(1) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("DispatchersOptions.pinned: workers is ", *pinned.workers, "; a pinned actor has one thread"));
  }
  if (max_pinned < 0 || max_pinned > kMostPinned) {
    return absl::InvalidArgumentError(
        absl::StrCat("DispatchersOptions.max_pinned is ", max_pinned, "; it must be from 0 to ", kMostPinned));
  }
  for (const DispatcherOptions& pool : named) {
    if (absl::Status valid = pool.Validate(); !valid.ok()) {
      return absl::Status(valid.code(), absl::StrCat("dispatcher \"", pool.name, "\": ", valid.message()));
    }
  }
  return CheckNames(*this);
}

Dispatchers::Dispatchers(const DispatchersOptions& options) : options_(options) {}

Dispatchers::~Dispatchers() { Stop(); }

absl::Status Dispatchers::NotRunning() {
  return absl::FailedPreconditionError(
      "the dispatchers do not run; an actor can be spawned only while its system runs");
}

void Dispatchers::SetStallListener(std::function<void(std::string_view worker, const WorkerStall& stall)> listener) {
  stall_listener_ = std::move(listener);
}

WorkerExecutorOptions Dispatchers::Watched(const WorkerExecutorOptions& pool) const {
  WorkerExecutorOptions watched = pool;
  if (watched.watch.on_stall == nullptr && stall_listener_ != nullptr && !pool.may_block) {
    watched.watch.on_stall = [listener = stall_listener_, name = pool.name](const WorkerStall& stall) {
      listener(stall.worker == kForeign ? absl::StrCat(name, "-guest") : absl::StrCat(name, "-", stall.worker), stall);
    };
  }
  return watched;
}

absl::Status Dispatchers::Start(const ExecutorServices& services) {
  FRAKTOR_RETURN_IF_ERROR(options_.Validate());
  WorkerExecutorOptions default_pool = Watched(options_.default_pool);
  if (!default_pool.workers.has_value()) default_pool.workers = kDefaultWorkers;
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<WorkerExecutor> users, WorkerExecutor::Start(default_pool, services));
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<WorkerExecutor> own,
                           WorkerExecutor::Start(WithoutGuests(Watched(options_.system_pool)), services));
  Executors named;
  std::vector<uint16_t> numbers;
  for (const DispatcherOptions& pool : options_.named) {
    FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<WorkerExecutor> executor,
                             WorkerExecutor::Start(WithoutGuests(Watched(pool)), services));
    numbers.push_back(executor->number());
    named.push_back(std::move(executor));
  }
  default_ = std::move(users);
  system_ = std::move(own);
  named_ = std::move(named);
  named_numbers_ = std::move(numbers);
  default_number_ = default_->number();
  system_number_ = system_->number();
  services_.emplace(services);
  MutexLock lock(mutex_);
  running_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

void Dispatchers::Stop() {
  Executors pinned;
  {
    MutexLock lock(mutex_);
    running_.store(false, std::memory_order_relaxed);
    pinned = std::move(pinned_);
    pinned_.clear();
    std::move(ending_.begin(), ending_.end(), std::back_inserter(pinned));
    ending_.clear();
  }
  // A pool that stops lets its workers end the runs that they are in. So the order decides which
  // actors still run while such a handler needs them:
  // - Pools whose handlers may block stop first. Such a handler may wait for a reply from an actor
  //   of another pool, which must still run.
  // - The default pool stops last. Late messages for pinned actors that have ended go there
  //   (StopSoonFor), and the senders, on other pools, get Terminated or an error from there.
  // A handler that waits for an actor of a pool that has stopped before gets no reply. It goes on
  // at its timeout.
  Executors order = pinned;
  order.insert(order.end(), named_.begin(), named_.end());
  for (const std::shared_ptr<WorkerExecutor>& executor : {system_, default_}) {
    if (executor != nullptr) order.push_back(executor);
  }
  std::stable_partition(order.begin(), order.end(), [](const auto& executor) { return executor->options().may_block; });
  // Without threads no handler blocks, and a wait for one pool would run the actors of the others.
  if (services_.has_value() && !services_->toolbox.has_threads()) {
    for (const std::shared_ptr<WorkerExecutor>& executor : order) executor->StopSoon();
  }
  for (const std::shared_ptr<WorkerExecutor>& executor : order) executor->Stop();
  // All have stopped before the first is destroyed: actors of one pool send to those of another.
  order.clear();
  pinned.clear();
  named_.clear();
  default_.reset();
  system_.reset();
}

Dispatchers::Executors Dispatchers::Snapshot() const {
  Executors all = {default_, system_};
  all.insert(all.end(), named_.begin(), named_.end());
  MutexLock lock(mutex_);
  all.insert(all.end(), pinned_.begin(), pinned_.end());
  all.insert(all.end(), ending_.begin(), ending_.end());
  return all;
}

bool Dispatchers::IsBeingRun(const ActorSlot& slot) const {
  if (!running_.load(std::memory_order_acquire)) return false;
  for (const std::shared_ptr<WorkerExecutor>& executor : Snapshot()) {
    if (executor != nullptr && executor->IsRunning(slot)) return true;
  }
  return false;
}

bool Dispatchers::AwaitQuiet(absl::Duration timeout) {
  if (default_ == nullptr || system_ == nullptr) return true;
  const RuntimeToolbox& toolbox = services_->toolbox;
  const auto is_quiet = [&](const std::shared_ptr<WorkerExecutor>& executor) {
    return executor->IsStopped() || (toolbox.has_threads() ? executor->IsQuiet() : executor->AwaitQuiet(timeout));
  };
  const Instant deadline = toolbox.Now() + timeout;
  for (;;) {
    // Without the lock, which a pinned actor that ends meanwhile needs.
    const Executors all = Snapshot();
    const auto count_runs = [&] {
      uint64_t runs = 0;
      for (const std::shared_ptr<WorkerExecutor>& executor : all) runs += executor->runs();
      return runs;
    };
    const uint64_t runs = count_runs();
    const bool was_quiet = std::all_of(all.begin(), all.end(), is_quiet);
    // A pool that was still busy may have sent to one that was checked before. If no run has ended
    // since then, every pool was quiet when the last one was checked, and the second check sees
    // everything that was sent.
    if (was_quiet && std::all_of(all.begin(), all.end(), is_quiet) && count_runs() == runs && Snapshot() == all) {
      return true;
    }
    const absl::Duration left = deadline - toolbox.Now();
    if (left <= absl::ZeroDuration() || !toolbox.has_threads()) return false;
    for (const std::shared_ptr<WorkerExecutor>& executor : all) {
      // The executor of a pinned actor that has ended returns false at once.
      executor->AwaitQuiet(std::max(deadline - toolbox.Now(), absl::ZeroDuration()));
    }
  }
}

absl::StatusOr<uint16_t> Dispatchers::NumberFor(const DispatcherSelector& selector) {
  const DispatcherChoice choice = selector.choice();
  if (choice == DispatcherChoice::kPinned) return StartPinned();
  if (!running_.load(std::memory_order_acquire)) return NotRunning();
  if (choice == DispatcherChoice::kAutomatic) [[likely]]
    return default_number_;
  if (choice == DispatcherChoice::kSystem) return system_number_;
  if (choice == DispatcherChoice::kDefault) return default_number_;
  if (selector.is_named()) return NumberOfNamed(selector.name());
  return absl::InvalidArgumentError(
      absl::StrCat("the option dispatcher is ", static_cast<int>(choice), ", which is no DispatcherChoice"));
}

absl::StatusOr<uint16_t> Dispatchers::NumberOfNamed(std::string_view name) const {
  std::string known;
  for (size_t i = 0; i < options_.named.size(); ++i) {
    if (options_.named[i].name == name) return named_numbers_[i];
    absl::StrAppend(&known, known.empty() ? "" : ", ", "\"", options_.named[i].name, "\"");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no dispatcher has the name \"", ToAbsl(name), "\"; ActorSystemOptions.dispatchers has ",
                   known.empty() ? "none; the pools of the system are chosen by DispatcherChoice" : known));
}

absl::StatusOr<uint16_t> Dispatchers::StartPinned() {
  MutexLock lock(mutex_);
  if (!running_.load(std::memory_order_relaxed)) return NotRunning();
  std::erase_if(ending_, [](const std::shared_ptr<WorkerExecutor>& executor) { return executor->IsStopped(); });
  if (pinned_.size() >= static_cast<size_t>(options_.max_pinned)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are as many pinned actors as DispatchersOptions.max_pinned says, ", options_.max_pinned,
                     "; raise it, or do without a thread for each"));
  }
  WorkerExecutorOptions options = WithoutGuests(options_.pinned);
  options.may_block = true;
  absl::StrAppend(&options.name, "-", pinned_started_++);
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<WorkerExecutor> executor, WorkerExecutor::Start(options, *services_));
  const uint16_t number = executor->number();
  pinned_.push_back(std::move(executor));
  return number;
}

void Dispatchers::EndPinned(uint16_t number) {
  MutexLock lock(mutex_);
  const auto found = std::find_if(pinned_.begin(), pinned_.end(),
                                  [number](const auto& executor) { return executor->number() == number; });
  if (found == pinned_.end()) return;
  (*found)->StopSoonFor(default_number_);
  ending_.push_back(std::move(*found));
  pinned_.erase(found);
}

size_t Dispatchers::pinned_count() const {
  MutexLock lock(mutex_);
  return pinned_.size();
}

}  // namespace fraktor::inline v0
