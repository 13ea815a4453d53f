// SimToolbox: a toolbox in which a seed decides everything that is left open, so that a run with a rare schedule can be
// run again.
//
//   auto toolbox = SimToolbox::Make({.seed = SimToolbox::SeedFromEnvironment(17).value()}).value();
//   StartTheSystem(*toolbox);
//   ASSERT_TRUE(toolbox->RunFor(absl::Minutes(10)).ok()) << toolbox->ReplayLine();
//   ASSERT_TRUE(toolbox->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());   // not future.Wait()
//
// One thread, virtual time. Each step goes to one of the workers that are awake or to the next timer that is due, drawn
// by the seed; timers of one instant keep their order among themselves. Time moves when nothing can run. Every step,
// choice, start, wake-up and timer goes into the trace, and so does what higher layers record: the same seed gives the
// same trace hash, in every process, on every machine.
//
// A run that does not come to rest within max_steps is an error that names the seed; the line that replays it goes to
// stderr as well.
//
// Thread safety: all of it belongs to one thread. A worker that sleeps and is woken by another thread ends the program
// with a message: such a run could never be repeated.
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
  // Steps that one Run call may take.
  int64_t max_steps = 10'000'000;
  // WallNow at the start.
  absl::Time wall_start = absl::UnixEpoch();
};

class SimToolbox final : public PumpedToolbox {
 public:
  // InvalidArgument if an option is out of its limits.
  static absl::StatusOr<std::unique_ptr<SimToolbox>> Make(const SimToolboxOptions& options);

  // What the environment variable FRAKTOR_SIM_SEED says, or `fallback` if it is not set. InvalidArgument if it is no
  // number.
  static absl::StatusOr<uint64_t> SeedFromEnvironment(uint64_t fallback);

  // A decision of the schedule: 0 to n - 1, drawn by the seed, and recorded. 0, without a draw, if n < 2.
  uint64_t Choose(uint64_t n) override;
  bool chooses() const override { return true; }

  SimTrace& trace() { return trace_; }

  // FRAKTOR_SIM_SEED=17 replays "simulation": 1234 steps, 600s, 5678 events, trace 0x0123456789abcdef
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
