#include "fraktor/utils/toolbox/local_toolbox.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "fraktor/utils/toolbox/pumped_toolbox.h"

namespace fraktor::inline v0 {

absl::StatusOr<std::unique_ptr<LocalToolbox>> LocalToolbox::Make(const LocalToolboxOptions& options) {
  Limits limits{.name = options.name,
                .max_workers = options.max_workers,
                .max_timers = options.max_timers,
                .max_steps = options.max_steps};
  absl::Status checked = CheckLimits(limits);
  if (!checked.ok()) return checked;
  std::function<void(uint64_t)> on_woken;
  if (options.on_wake) on_woken = [on_wake = options.on_wake](uint64_t) { on_wake(); };
  return std::unique_ptr<LocalToolbox>(
      new LocalToolbox(options.seed, std::move(limits), options.wall_start, std::move(on_woken)));
}

size_t LocalToolbox::PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) {
  if (timer_due) return ordinals.size();
  auto turn = std::lower_bound(ordinals.begin(), ordinals.end(), next_ordinal_);
  if (turn == ordinals.end()) turn = ordinals.begin();
  next_ordinal_ = *turn + 1;
  return static_cast<size_t>(turn - ordinals.begin());
}

}  // namespace fraktor::inline v0
