// LocalToolbox: a toolbox without threads, pumped by its caller: for a unit test, a UI loop, an embedded target.
//
//   auto toolbox = LocalToolbox::Make({}).value();
//   StartTheSystem(*toolbox);
//   ASSERT_TRUE(toolbox->RunUntilIdle().ok());            // everything that can happen now
//   ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());    // and everything within the next hour
//
// A future is not waited for by blocking, since nothing would go on meanwhile, but by pumping:
//   ASSERT_TRUE(toolbox->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());
//
// Timers that are due come first; then workers take turns in the order in which they were started. A loop that lives in
// real time calls RunFor with the time that has passed since it called last.
//
// Thread safety: pumping, timers and starting workers belong to one thread at a time. Wake() of a worker and Now() may
// be called from any thread at any time: that is how another thread hands work in (SerialExecutor does). `on_wake`
// tells the loop that it should pump.
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
  // Steps that one Run call may take.
  int64_t max_steps = 100'000'000;
  uint64_t seed = 1;
  // WallNow at the start.
  absl::Time wall_start = absl::UnixEpoch();
  // Called whenever a Wake finds a worker parked, on the thread that wakes, which may be any, also after the toolbox is
  // gone if a Wake was under way. Must not pump; it posts an event to the loop that will.
  std::function<void()> on_wake = nullptr;
};

class LocalToolbox final : public PumpedToolbox {
 public:
  // InvalidArgument if an option is out of its limits.
  static absl::StatusOr<std::unique_ptr<LocalToolbox>> Make(const LocalToolboxOptions& options);

 protected:
  size_t PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) override;

 private:
  using PumpedToolbox::PumpedToolbox;

  uint64_t next_ordinal_ = 0;  // whose turn it is, if awake
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_LOCAL_TOOLBOX_H_
