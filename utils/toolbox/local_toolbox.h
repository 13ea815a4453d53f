// LocalToolbox: a toolbox without threads that its caller pumps. For unit tests, UI loops and
// embedded targets.
//
//   auto toolbox = LocalToolbox::Make({}).value();
//   Future<int> future = StartTheSystem(*toolbox);
//   ASSERT_TRUE(toolbox->RunUntilIdle().ok());            // runs everything that can run now
//   ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());    // and everything within the next hour of virtual time
//   ASSERT_TRUE(toolbox->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());  // not future.Wait()
//
// The last line pumps until a future is ready. Blocking on the future would hang, since nothing
// runs meanwhile.
//
// Timers that are due run first. Then the workers take turns in the order in which they were
// started. A loop in real time calls RunFor with the time that has passed since its previous call.
//
// Thread safety: one thread at a time may pump, use timers and start workers. Any thread may call
// Wake() of a worker, and Now(), at any time: that is how another thread hands work in
// (SerialExecutor does). `on_wake` tells the loop to pump.
#ifndef FRAKTOR_UTILS_TOOLBOX_LOCAL_TOOLBOX_H_
#define FRAKTOR_UTILS_TOOLBOX_LOCAL_TOOLBOX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "fraktor/utils/toolbox/pumped_toolbox.h"

namespace fraktor::inline v0 {

struct LocalToolboxOptions {
  std::string name = "local";
  // From 1 to 16384.
  int max_workers = 256;
  // From 1 to 2^28 - 1.
  int64_t max_timers = int64_t{1} << 22;
  // The most steps of one Run call.
  int64_t max_steps = 100'000'000;
  uint64_t seed = 1;
  // The value of WallNow at the start.
  absl::Time wall_start = absl::UnixEpoch();
  // Called whenever a Wake finds a worker parked, on the thread that wakes. That may be any thread,
  // and the call may come after the toolbox has ended if a Wake was running. It must not pump; it
  // posts an event to the loop that pumps.
  std::function<void()> on_wake = nullptr;
};

class LocalToolbox final : public PumpedToolbox {
 public:
  // Returns InvalidArgument if an option is outside of its limits.
  static absl::StatusOr<std::unique_ptr<LocalToolbox>> Make(const LocalToolboxOptions& options);

 protected:
  size_t PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) override;

 private:
  using PumpedToolbox::PumpedToolbox;

  uint64_t next_ordinal_ = 0;  // the worker whose turn it is, if it is awake
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_LOCAL_TOOLBOX_H_
