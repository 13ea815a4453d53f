// FaultDice: what the faulty stores have in common: what a request suffers, drawn from a stream of the toolbox, and
// answers that come later, or another one instead.
//
//   const auto fate = dice_.Draw(&JournalFaults::fail_open, true, "open \"account-7\"");
//   return dice_.Answer<WriterOpened>(fate, [&] { return journal_.OpenWriter(id, token); });
//
// `Faults` has `lose_answer`, `disk_full`, `min_delay` and `max_delay`, a probability for each kind of failure, and
// Validate(). While they are not valid, every request fails with what that says.
//
// Thread safety: all methods may be called from any thread.
#ifndef FRAKTOR_PERSISTENCE_TESTING_FAULT_DICE_H_
#define FRAKTOR_PERSISTENCE_TESTING_FAULT_DICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/delayed.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// For Validate() of faults. `name` is that of the field: "JournalFaults::fail_write".
inline absl::Status CheckProbability(std::string_view name, double value) {
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(ToAbsl(name), " is ", value, "; a probability is from 0 to 1"));
}
inline absl::Status CheckDelays(std::string_view faults, absl::Duration min_delay, absl::Duration max_delay) {
  if (min_delay >= absl::ZeroDuration() && max_delay >= min_delay && max_delay < absl::InfiniteDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ToAbsl(faults), ": delays from ", absl::FormatDuration(min_delay), " to ", absl::FormatDuration(max_delay),
      "; min_delay must not be negative, and max_delay not below it nor infinite"));
}

template <class Faults>
class FaultDice {
 public:
  // What happens to one request.
  struct Fate {
    absl::Status failure;      // instead of asking the store
    absl::Status lost_answer;  // instead of its answer
    absl::Duration delay;
  };
  struct Counts {
    uint64_t failed = 0;
    uint64_t answers_lost = 0;
  };

  // `name` is that of the store, in texts. The others must outlive it.
  FaultDice(std::string name, RuntimeToolbox& toolbox, Executor& executor, const Faults& faults, uint64_t random_stream)
      : name_(std::move(name)),
        toolbox_(toolbox),
        executor_(executor),
        faults_(faults),
        validity_(faults.Validate()),
        random_(toolbox.MakeRandom(random_stream)) {}

  // For requests from now on.
  void SetFaults(const Faults& faults) {
    MutexLock lock(mutex_);
    faults_ = faults;
    validity_ = faults.Validate();
  }
  Counts counts() const {
    MutexLock lock(mutex_);
    return counts_;
  }

  // Whether one of several things in a request goes wrong.
  bool Happens(double Faults::*probability) {
    MutexLock lock(mutex_);
    return validity_.ok() && random_.Bernoulli(faults_.*probability);
  }

  Fate Draw(double Faults::*failure, bool stores, std::string_view what) {
    MutexLock lock(mutex_);
    Fate fate;
    if (!validity_.ok()) {
      fate.failure = validity_;
      ++counts_.failed;
      return fate;
    }
    // As many draws for each request, so that one fault does not change the others.
    const bool fails = random_.Bernoulli(faults_.*failure);
    const bool loses = random_.Bernoulli(faults_.lose_answer);
    fate.delay = random_.UniformDuration(faults_.min_delay, faults_.max_delay);
    if (stores && faults_.disk_full) {
      fate.failure = MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
                               absl::StrCat(ToAbsl(what), ": the disk is full, says the ", name_));
    } else if (fails) {
      fate.failure = MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kIo,
                               absl::StrCat(ToAbsl(what), ": the ", name_, " fails"));
    } else if (stores && loses) {
      fate.lost_answer = MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kIo,
                                   absl::StrCat(ToAbsl(what), ": the ", name_, " has lost the answer"));
    }
    if (!fate.failure.ok()) ++counts_.failed;
    if (!fate.lost_answer.ok()) ++counts_.answers_lost;
    return fate;
  }

  // What `ask()` answers, or what fate has instead, late.
  template <class T, class Ask>
  Future<T> Answer(const Fate& fate, Ask ask) {
    Future<T> answer = fate.failure.ok() ? ask() : MakeReadyFuture<T>(fate.failure);
    if constexpr (std::is_void_v<T>) {
      return AnswerLateStatus(&toolbox_, std::move(answer), fate.delay, fate.lost_answer).Start(executor_);
    } else {
      return AnswerLate<T>(&toolbox_, std::move(answer), fate.delay, fate.lost_answer, nullptr).Start(executor_);
    }
  }
  // The same; `lost` makes the error of a lost answer from `fate.lost_answer` and from what the
  // store has answered.
  template <class T>
  using LostAnswer = absl::Status (*)(absl::Status lost, const FutureResult<T>& answered);
  template <class T, class Ask>
  Future<T> Answer(const Fate& fate, Ask ask, LostAnswer<T> lost) {
    Future<T> answer = fate.failure.ok() ? ask() : MakeReadyFuture<T>(fate.failure);
    return AnswerLate<T>(&toolbox_, std::move(answer), fate.delay, fate.lost_answer, lost).Start(executor_);
  }

 private:
  template <class T>
  static Task<T> AnswerLate(RuntimeToolbox* toolbox, Future<T> answer, absl::Duration delay, absl::Status instead,
                            LostAnswer<T> lost) {
    FutureResult<T> result = co_await answer;
    if (delay > absl::ZeroDuration()) {
      Future<void> pause = ReadyAfter<void>(toolbox, delay, absl::OkStatus());
      const absl::Status paused = co_await pause;
      if (!paused.ok()) co_return paused;
    }
    if (!instead.ok() && lost != nullptr) instead = lost(instead, result);
    if (!instead.ok()) co_return instead;
    co_return std::move(result);
  }
  // Task<void> cannot say that it failed, so this one is of a status.
  static Task<absl::Status> AnswerLateStatus(RuntimeToolbox* toolbox, Future<void> answer, absl::Duration delay,
                                             absl::Status instead) {
    const absl::Status result = co_await answer;
    if (delay > absl::ZeroDuration()) {
      Future<void> pause = ReadyAfter<void>(toolbox, delay, absl::OkStatus());
      const absl::Status paused = co_await pause;
      if (!paused.ok()) co_return paused;
    }
    co_return instead.ok() ? result : instead;
  }

  const std::string name_;
  RuntimeToolbox& toolbox_;
  Executor& executor_;
  mutable Mutex mutex_;
  Faults faults_ ABSL_GUARDED_BY(mutex_);
  absl::Status validity_ ABSL_GUARDED_BY(mutex_);
  Random random_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_FAULT_DICE_H_
