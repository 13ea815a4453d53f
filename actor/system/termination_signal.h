// TerminationSignal: calls a function when the process gets SIGTERM, on an ordinary thread.
//
//   auto signal = TerminationSignal::Listen(toolbox, [&] { system.Terminate(); }).value();
//
// The first SIGTERM calls the functions of all listeners, also of several systems, and restores the
// default disposition, so that a second SIGTERM ends the process. The end of the last listener
// restores the disposition from before the first.
//
// Thread safety: any thread may listen. The destructor waits for a running call, so the function
// must not call it.
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
  // How many listeners a process may have at a time.
  static constexpr size_t kMaxListeners = 16;

  // Errors: FailedPrecondition on a toolbox without threads; ResourceExhausted beyond
  // kMaxListeners, or if the operating system has no descriptor or thread left.
  static absl::StatusOr<std::unique_ptr<TerminationSignal>> Listen(RuntimeToolbox& toolbox,
                                                                   std::function<void()> on_signal);
  ~TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;
  TerminationSignal& operator=(const TerminationSignal&) = delete;

  // Ends the process by SIGTERM with the default disposition.
  [[noreturn]] static void EndProcess();

 private:
  explicit TerminationSignal(size_t place);

  const size_t place_;
  // Release in the destructor, before it wakes the thread: pairs with the acquire of the thread.
  std::atomic<bool> is_ending_{false};
  std::unique_ptr<SerialExecutor> executor_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_TERMINATION_SIGNAL_H_
