// SimToolbox: a toolbox in which a seed makes every choice, so that a run with a rare schedule can
// be repeated.
//
//   auto toolbox = SimToolbox::Make({.seed = SimToolbox::SeedFromEnvironment(17).value()}).value();
//   Future<int> future = StartTheSystem(*toolbox);
//   ASSERT_TRUE(toolbox->RunFor(absl::Minutes(10)).ok()) << toolbox->ReplayLine();
//   ASSERT_TRUE(toolbox->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());  // not future.Wait()
//
// It has one thread and virtual time. The seed decides for each step whether it goes to one of the
// awake workers or to the next timer that is due; timers of one instant keep their order. Time
// moves when nothing can run. The trace contains every step, choice, start, wake-up and timer, and
// the events that higher layers record. The same seed gives the same trace hash, in every process
// and on every machine.
//
// A run that does not come to rest within max_steps is an error that names the seed. The line that
// replays it is also written to stderr.
//
// Thread safety: one thread. If another thread wakes a parked worker, the program ends with a
// message, since such a run could never be repeated.
#ifndef FRAKTOR_UTILS_TOOLBOX_SIM_TOOLBOX_H_
#define FRAKTOR_UTILS_TOOLBOX_SIM_TOOLBOX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/sim_trace.h"

namespace fraktor::inline v0 {

struct SimToolboxOptions {
  std::string name = "simulation";
  uint64_t seed = 1;
  // From 1 to 16384.
  int max_workers = 256;
  // From 1 to 2^28 - 1.
  int64_t max_timers = int64_t{1} << 22;
  // The most steps of one Run call.
  int64_t max_steps = 10'000'000;
  // The value of WallNow at the start.
  absl::Time wall_start = absl::UnixEpoch();
};

class SimToolbox final : public PumpedToolbox {
 public:
  // Returns InvalidArgument if an option is outside of its limits.
  static absl::StatusOr<std::unique_ptr<SimToolbox>> Make(const SimToolboxOptions& options);

  // Returns the value of the environment variable FRAKTOR_SIM_SEED, or `fallback` if it is not set.
  // Returns InvalidArgument if the value is not a number.
  static absl::StatusOr<uint64_t> SeedFromEnvironment(uint64_t fallback);

  // A choice of the schedule: 0 to n - 1, drawn by the seed and recorded. If n < 2 it is 0, without
  // a draw.
  uint64_t Choose(uint64_t n) override;
  bool chooses() const override { return true; }

  SimTrace& trace() { return trace_; }

  // For example: FRAKTOR_SIM_SEED=17 replays "simulation": 1234 steps, 600s, 5678 events, trace
  // 0x0123456789abcdef
  std::string ReplayLine() const;

 protected:
  size_t PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) override;
  void OnStarted(uint64_t ordinal) override;
  void OnArmed(uint64_t ordinal, Instant deadline) override;
  void OnCancelled(uint64_t ordinal) override;
  void OnTurn(const Turn& turn) override;
  std::string OnRestless() override;

 private:
  SimToolbox(uint64_t seed, Limits limits, absl::Time wall_start);

  void OnWoken(uint64_t ordinal);

  const std::thread::id thread_;
  Random schedule_;
  SimTrace trace_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_SIM_TOOLBOX_H_
