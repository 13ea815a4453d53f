// How the size of a pool follows its load.
//
//   PoolOptions pressed{.size = 2, .resizer = PressureResizerOptions{.lower_bound = 2, .upper_bound = 15}};
//   PoolOptions exploring{.exploring_resizer = ExploringResizerOptions{.upper_bound = 64}};
//
// A pool has one of the two or none. Every so many messages the pool looks at its routees, in its own turn, and grows or
// shrinks within the bounds. What leaves is told PoisonPill a moment later.
//
// Thread safety: options are values; a resizer is its pool's.
#ifndef FRAKTOR_ACTOR_ROUTER_RESIZER_H_
#define FRAKTOR_ACTOR_ROUTER_RESIZER_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {

// Grows when all routees are under pressure, shrinks when few are.
struct PressureResizerOptions {
  int lower_bound = 1;
  int upper_bound = 10;
  // A routee is under pressure when it is busy and so many messages wait for it; 0: when it is busy. More than 1 needs
  // routees with bounded mailboxes: how many wait in others is not known.
  int pressure_threshold = 1;
  // When all are under pressure the pool grows by this part of its size, rounded up.
  double rampup_rate = 0.2;
  // When a smaller part than this is under pressure, it shrinks by `backoff_rate` of its size, rounded up. 0: never.
  double backoff_threshold = 0.3;
  double backoff_rate = 0.1;
  uint32_t messages_per_resize = 10;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// How many routees more, or less, where `pressed` of `size` are under pressure.
int64_t ChangeByPressure(const PressureResizerOptions& options, int64_t size, int64_t pressed);

// Tries other sizes now and then while all routees are busy, and goes to the one by which most messages were handled.
struct ExploringResizerOptions {
  int lower_bound = 1;
  int upper_bound = 10;
  // How often the size may change.
  absl::Duration action_interval = absl::Seconds(5);
  // How often another size is tried, instead of the best one that is known.
  double chance_of_exploration = 0.4;
  // How often that is a smaller one.
  double chance_of_ramping_down_when_full = 0.2;
  // By which part of the size, at most.
  double explore_step_size = 0.1;
  // A pool that was never fully busy for so long shrinks to `downsize_ratio` of what was busy at most.
  absl::Duration downsize_after_underutilized_for = absl::Hours(72);
  double downsize_ratio = 0.8;
  // So many sizes around the present one are compared.
  int optimization_range = 16;
  // Of the latest measurement, against those before.
  double weight_of_latest_metric = 0.5;
  uint32_t messages_per_resize = 10;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// What an exploring resizer knows.
class ExploringResizer {
 public:
  ExploringResizer(const ExploringResizerOptions& options, Random random) : options_(options), random_(random) {}

  // What a pool has seen.
  struct Observation {
    Instant now;
    int64_t size = 0;
    int64_t busy = 0;       // Routees that are at something.
    uint64_t messages = 0;  // That were sent on, since the beginning.
    int64_t waiting = 0;    // For routees, as far as is known.
  };
  // How many routees more, or less. Nothing before the interval is over.
  int64_t Change(const Observation& seen);

 private:
  void Learn(const Observation& seen);
  int64_t Explore(int64_t size);
  int64_t Optimize(int64_t size) const;

  const ExploringResizerOptions options_;
  Random random_;
  bool has_seen_ = false;
  Observation last_;
  Instant idle_since_ = Instant::InfiniteFuture();
  int64_t most_busy_ = 0;
  // How long a message took, on average, by the size of the pool.
  std::map<int64_t, double> seconds_per_message_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_RESIZER_H_
