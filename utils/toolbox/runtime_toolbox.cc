#include "fraktor/utils/toolbox/runtime_toolbox.h"

#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// Not in the header: if it is inlined under a sanitizer, GCC 12 warns that an absent initial_delay
// is read.
Instant RuntimeToolbox::FirstDeadline(const PeriodicOptions& options) const {
  return Now() + (options.initial_delay.has_value() ? *options.initial_delay : options.period);
}

}  // namespace fraktor::inline v0
