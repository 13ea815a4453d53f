// CheckPositive: options that are durations or counts, and must be more than nothing.
//
//   FRAKTOR_RETURN_IF_ERROR(CheckPositive({{"ClusterOptions::max_wait", options.max_wait}}));
//   FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"PlacementOptions::max_stops", options.max_stops}}));
//
// Thread safety: a function of its arguments.
#ifndef FRAKTOR_CLUSTER_IDENTITY_CHECK_POSITIVE_H_
#define FRAKTOR_CLUSTER_IDENTITY_CHECK_POSITIVE_H_

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

struct NamedDuration {
  std::string_view name;
  absl::Duration value;
};

// InvalidArgument that names the first that is not, and what it is.
inline absl::Status CheckPositive(std::initializer_list<NamedDuration> options) {
  for (const NamedDuration& option : options) {
    if (option.value > absl::ZeroDuration()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(ToAbsl(option.name), " is ", absl::FormatDuration(option.value), "; it must be positive"));
  }
  return absl::OkStatus();
}

struct NamedCount {
  std::string_view name;
  size_t value;
};

// The same for counts and limits.
inline absl::Status CheckCounts(std::initializer_list<NamedCount> options) {
  for (const NamedCount& option : options) {
    if (option.value > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(ToAbsl(option.name), " is 0; it must be positive"));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_CHECK_POSITIVE_H_
