// How the size of a pool follows its load.
//
//   PoolOptions pressed{.size = 2, .resizer = PressureResizerOptions{.lower_bound = 2, .upper_bound = 15}};
//   PoolOptions exploring{.exploring_resizer = ExploringResizerOptions{.upper_bound = 64}};
//
// A pool has one of the two or none. After each `messages_per_resize` messages the pool checks its
// routees, in its own turn, and grows or shrinks within the bounds. A routee that leaves gets a
// PoisonPill 100 ms later.
//
// The load of a remote routee is not known here. A resizer judges a pool by the other routees, and
// keeps the size of a pool whose routees are all remote.
//
// Thread safety: options are values; a resizer belongs to its pool.
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

// Grows when all routees are under pressure, and shrinks when few are.
struct PressureResizerOptions {
  int lower_bound = 1;
  int upper_bound = 10;
  // A routee is under pressure when it is busy and this many messages wait for it. 0 means that a
  // busy routee is under pressure. More than 1 needs routees with bounded mailboxes: an unbounded
  // mailbox does not count its messages.
  int pressure_threshold = 1;
  // When all routees are under pressure, the pool grows by this part of its size, rounded up.
  double rampup_rate = 0.2;
  // When a smaller part than this is under pressure, the pool shrinks by `backoff_rate` of its
  // size, rounded up. 0 means never.
  double backoff_threshold = 0.3;
  double backoff_rate = 0.1;
  uint32_t messages_per_resize = 10;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// The state of a pool for a PressureResizer.
struct PoolPressure {
  int64_t size = 0;
  int64_t unknown = 0;  // Routees of `size` whose load is not known: remote actors.
  int64_t pressed = 0;  // Routees under pressure, of those whose load is known.
};
// The number of routees to add, or to remove if negative.
int64_t ChangeByPressure(const PressureResizerOptions& options, const PoolPressure& pool);

// Tries other sizes from time to time while all routees are busy, and moves towards the size with
// the highest throughput.
struct ExploringResizerOptions {
  int lower_bound = 1;
  int upper_bound = 10;
  // The shortest time between two changes of the size.
  absl::Duration action_interval = absl::Seconds(5);
  // The probability that a change explores another size instead of moving to the best known one.
  double chance_of_exploration = 0.4;
  // The probability that an exploration tries a smaller size.
  double chance_of_ramping_down_when_full = 0.2;
  // The largest step of an exploration, as a part of the size.
  double explore_step_size = 0.1;
  // A pool that has not been fully busy for this long shrinks to `downsize_ratio` of the largest
  // number of routees that were busy at once.
  absl::Duration downsize_after_underutilized_for = absl::Hours(72);
  double downsize_ratio = 0.8;
  // The number of known sizes around the present one that are compared.
  int optimization_range = 16;
  // The weight of the latest measurement against the earlier ones, from 0 to 1.
  double weight_of_latest_metric = 0.5;
  uint32_t messages_per_resize = 10;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// The measurements and decisions of an exploring resizer.
class ExploringResizer {
 public:
  ExploringResizer(const ExploringResizerOptions& options, Random random) : options_(options), random_(random) {}

  // The state of a pool at one time.
  struct Observation {
    Instant now;
    int64_t size = 0;
    int64_t unknown = 0;    // Routees of `size` whose load is not known: remote actors.
    int64_t busy = 0;       // Routees that handle a message, of those whose load is known.
    uint64_t messages = 0;  // Messages that the router has routed since its start.
    int64_t waiting = 0;    // Messages in mailboxes of routees, as far as they are counted.
  };
  // The number of routees to add, or to remove if negative. 0 before the interval is over.
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
  // The average time for a message, by the size of the pool.
  std::map<int64_t, double> seconds_per_message_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_RESIZER_H_
