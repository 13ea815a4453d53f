#include "fraktor/actor/send/internal/system_core.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/internal/fork_guard.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0::actor_internal {

using toolbox_internal::IsForkedFromThreads;

namespace {

struct FreeCores {
  Mutex mutex;
  std::vector<SystemCore*> cores ABSL_GUARDED_BY(mutex);
};

// The cores that have a lifecycle, the oldest first.
struct Listening {
  Mutex mutex;
  std::vector<SystemCore*> cores ABSL_GUARDED_BY(mutex);
};

thread_local int non_blocking = 0;
// True while this thread publishes a dead letter, and so holds the lock of a core.
thread_local bool is_publishing = false;

FreeCores& Free() {
  static FreeCores& free = *new FreeCores;
  return free;
}

Listening& AllListening() {
  static Listening& listening = *new Listening;
  return listening;
}

SystemCore* OldestListening() {
  Listening& listening = AllListening();
  MutexLock lock(listening.mutex);
  return listening.cores.empty() ? nullptr : listening.cores.front();
}

}  // namespace

NonBlockingScope::NonBlockingScope() { ++non_blocking; }
NonBlockingScope::~NonBlockingScope() { --non_blocking; }

SystemCore& SystemCore::Acquire(bool threaded) {
  SystemCore* core = nullptr;
  {
    FreeCores& free = Free();
    MutexLock lock(free.mutex);
    if (!free.cores.empty()) {
      core = free.cores.back();
      free.cores.pop_back();
    }
  }
  if (core == nullptr) core = new SystemCore;  // NOLINT: of the process.
  for (std::atomic<uint64_t>& lost : core->lost_) lost.store(0, std::memory_order_relaxed);
  core->SetMetrics(nullptr);
  core->threaded_.store(threaded, std::memory_order_relaxed);
  core->open_.store(true, std::memory_order_relaxed);
  return *core;
}

void SystemCore::Release(SystemCore& core) {
  core.Close();
  core.SetMetrics(nullptr);
  core.SetToolbox(nullptr);
  FreeCores& free = Free();
  MutexLock lock(free.mutex);
  free.cores.push_back(&core);
}

SystemCore* SystemCore::Of(const ActorSlot& slot) { return static_cast<SystemCore*>(ActorSlotTable::OwnerOf(&slot)); }

SystemCore* SystemCore::Of(ActorRef ref) {
  if (ref.IsRemote()) return &CoreOfRemotes();
  return ref.IsPromise() ? static_cast<SystemCore*>(PromiseSlotTable::OwnerOf(ref.promise_slot())) : Of(*ref.slot());
}

bool SystemCore::MayBlockFor(const ActorSlot& slot) {
  const SystemCore* const core = Of(slot);
  return core != nullptr && core->threaded_.load(std::memory_order_relaxed) && !IsWorkerThread() && non_blocking == 0 &&
         !IsForkedFromThreads();
}

void SystemCore::SetLifecycle(ActorLifecycle* lifecycle) {
  {
    MutexLock lock(lifecycle_mutex_);
    lifecycle_ = lifecycle;
  }
  Listening& listening = AllListening();
  MutexLock lock(listening.mutex);
  std::erase(listening.cores, this);
  if (lifecycle != nullptr) listening.cores.push_back(this);
}

std::string SystemCore::PathOf(ActorRef actor) {
  SystemCore* const core = actor.IsNoOne() ? nullptr : Of(actor);
  // A subscriber to dead letters runs under the lock already, perhaps that of another core.
  if (core == nullptr || is_publishing) return "";
  MutexLock lock(core->lifecycle_mutex_);
  return core->lifecycle_ == nullptr ? "" : core->lifecycle_->PathOf(actor);
}

namespace {

std::string Describe(ActorRef ref) {
  const std::string place =
      ref.IsRemote()    ? absl::StrCat("remote, uid ", ref.word() & ~ActorRef::kRemote)
      : ref.IsPromise() ? absl::StrCat("a reply promise, generation ", ref.generation())
                        : absl::StrCat("slot ", ActorSlotTable::IndexOf(ref.slot()), ", generation ", ref.generation());
  const ActorWorker* const worker = ActorWorker::Current();
  const std::string path = worker != nullptr ? worker->lifecycle.PathOf(ref)
                           : ref.IsRemote()  ? ""  // A node has no system.
                                             : SystemCore::PathOf(ref);
  return path.empty() ? absl::StrCat("an actor (", place, ")") : absl::StrCat(path, " (", place, ")");
}

// Runs before main, so that a program with a system can print its references.
[[maybe_unused]] const bool describes = (SetActorRefDescriber(&Describe), true);

}  // namespace

void SystemCore::SetToolbox(const RuntimeToolbox* toolbox) {
  MutexLock lock(toolbox_mutex_);
  toolbox_ = toolbox;
}

std::optional<Instant> SystemCore::Now() const {
  MutexLock lock(toolbox_mutex_);
  if (toolbox_ == nullptr) return std::nullopt;
  return toolbox_->Now();
}

void SystemCore::LoseForeign(ActorRef to, EnvelopePtr envelope, DeadLetterReason reason) {
  SystemCore* const core = to.IsNoOne() ? OldestListening() : Of(to);
  if (core == nullptr) {
    DispatcherTable::CountLateDeadLetter();
    return;
  }
  const auto count = [core, reason] {
    core->lost_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
    if (ForeignMetrics* const metrics = core->metrics()) metrics->CountDeadLetter(reason);
  };
  // A subscriber to dead letters may send a message that is lost too: that one is only counted.
  if (is_publishing) {
    count();
    return;
  }
  is_publishing = true;
  const absl::Cleanup published = [] { is_publishing = false; };
  MutexLock lock(core->lifecycle_mutex_);
  if (core->lifecycle_ != nullptr && core->lifecycle_->PublishOrphan(to.any_slot(), envelope, reason)) return;
  count();
  if (core->lifecycle_ != nullptr) {
    core->lifecycle_->OnDeadLetter(NodeCache::OfThisThread(), std::move(envelope), to.any_slot(), reason);
  }
}

}  // namespace fraktor::inline v0::actor_internal
