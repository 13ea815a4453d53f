// TerminationSignal: calls a function when the process gets SIGTERM, on an ordinary thread.
//
//   std::unique_ptr<TerminationSignal> signal = TerminationSignal::Listen(toolbox, [&] { system.Terminate(); }).value();
//
// The first SIGTERM is taken; then the usual disposition is back, so that a second one ends the process. When the last
// listener has gone, the disposition is what it was before the first. Several listeners, of several systems, all hear it.
//
// Thread safety: any thread may listen. The destructor waits for a call that is under way, so it must not be in one.
#ifndef FRAKTOR_ACTOR_SYSTEM_TERMINATION_SIGNAL_H_
#define FRAKTOR_ACTOR_SYSTEM_TERMINATION_SIGNAL_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"

#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class SerialExecutor;

class TerminationSignal {
 public:
  // At one time in the process.
  static constexpr size_t kMaxListeners = 16;

  // FailedPrecondition on a toolbox without threads, ResourceExhausted if there are too many listeners or the system
  // gives no descriptor or thread.
  static absl::StatusOr<std::unique_ptr<TerminationSignal>> Listen(RuntimeToolbox& toolbox,
                                                                   std::function<void()> on_signal);
  ~TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;
  TerminationSignal& operator=(const TerminationSignal&) = delete;

  // Ends the process as SIGTERM does where nobody listens.
  [[noreturn]] static void EndProcess();

 private:
  explicit TerminationSignal(size_t place) : place_(place) {}

  const size_t place_;
  // Release by the destructor, before it wakes the thread; acquire by the thread.
  std::atomic<bool> is_ending_{false};
  std::unique_ptr<SerialExecutor> executor_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_TERMINATION_SIGNAL_H_
