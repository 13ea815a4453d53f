#include "fraktor/actor/testkit/storm/shutdown_tasks.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/utils/future/with_timeout.h"

namespace fraktor::storm {

void ShutdownTasks::Add(ActorSystem& system, Random& random) {
  CoordinatedShutdown& shutdown = system.coordinated_shutdown();
  const std::vector<std::string> phases = shutdown.phases();
  const size_t phase = random.Uniform(phases.size());
  const uint64_t draw = random.Next();
  size_t entry = 0;
  {
    MutexLock lock(mutex_);
    if (entries_.size() == kMost) return;
    entry = entries_.size();
    entries_.emplace_back();
  }
  const absl::StatusOr<CoordinatedShutdown::TaskId> added =
      shutdown.AddTask(phases[phase], absl::StrCat("task ", entry),
                       [this, &system, entry, phase, draw] { return Run(system, entry, phase, draw); });
  if (!added.ok() && !absl::IsFailedPrecondition(added.status())) {
    ledger_.Violate("a shutdown takes tasks, or says why not", added.status().ToString());
  }
  MutexLock lock(mutex_);
  entries_[entry].id = added.value_or(0);
  entries_[entry].is_added = added.ok();
}

void ShutdownTasks::CancelOne(ActorSystem& system, Random& random) {
  size_t entry = 0;
  uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    if (entries_.empty()) return;
    entry = random.Uniform(entries_.size());
    if (!entries_[entry].is_added || entries_[entry].is_cancelled) return;
    id = entries_[entry].id;
  }
  if (!system.coordinated_shutdown().CancelTask(id)) return;
  MutexLock lock(mutex_);
  entries_[entry].is_cancelled = true;
}

Future<void> ShutdownTasks::Run(ActorSystem& system, size_t entry, size_t phase, uint64_t draw) {
  {
    MutexLock lock(mutex_);
    ++entries_[entry].runs;
    if (phase < latest_phase_) {
      ledger_.Violate("the phases of a shutdown run in their order",
                      absl::StrCat("a task of phase ", phase, " ran after one of phase ", latest_phase_));
    }
    latest_phase_ = phase;
  }
  switch (draw % 4) {
    case 0:
      return SleepFor(system.toolbox(), absl::Microseconds(static_cast<int64_t>(draw % 2000)));
    case 1:
      return MakeReadyFuture<void>(absl::UnavailableError("a task fails"));
    default:
      return MakeReadyFuture<void>(absl::OkStatus());
  }
}

void ShutdownTasks::CheckEnded() {
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    const int owed = entry.is_added && !entry.is_cancelled ? 1 : 0;
    if (entry.runs == owed) continue;
    ledger_.Violate("each task of a shutdown runs once",
                    absl::StrCat("a task ran ", entry.runs, " times; it was ", entry.is_added ? "" : "not ", "added",
                                 entry.is_cancelled ? " and cancelled" : ""));
  }
}

}  // namespace fraktor::storm
