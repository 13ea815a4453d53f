// Slices: persistence ids cut into 1024 parts, by which several projections share the work on one journal.
//
//   absl::StatusOr<std::vector<SliceRange>> ranges = SliceRanges(4);        // one for each of four projections
//   const SliceRange mine = (*ranges)[2];
//   for (const std::string& id : batch->ids) {                              // of an IdQuery
//     if (mine.Contains(SliceOf(id))) Project(id);
//   }
//
// The slice of an id never changes: it is the remainder of the hash that the JVM has for strings, so what Pekko's
// projections have stored of their progress stays right.
//
// Thread safety: functions of values.
#ifndef FRAKTOR_PERSISTENCE_QUERY_SLICE_H_
#define FRAKTOR_PERSISTENCE_QUERY_SLICE_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

inline constexpr int kSlices = 1024;

// Both ends belong to it.
struct SliceRange {
  int min = 0;
  int max = kSlices - 1;

  bool Contains(int slice) const { return min <= slice && slice <= max; }
  friend bool operator==(const SliceRange&, const SliceRange&) = default;
};

// 0 to kSlices - 1. The id is UTF-8; each byte that is not counts as U+FFFD.
int SliceOf(std::string_view persistence_id);

// All slices, in `ranges` parts of the same size. InvalidArgument if 1024 cannot be cut like that.
absl::StatusOr<std::vector<SliceRange>> SliceRanges(int ranges);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_QUERY_SLICE_H_
