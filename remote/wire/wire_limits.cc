#include "fraktor/remote/wire/wire_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {
namespace {

absl::Status AtLeast(const char* option, size_t value, size_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("WireLimits.", option, " is ", value, "; peers could not talk at all: use at least ", least));
}

}  // namespace

absl::Status WireLimits::Validate() const {
  for (const absl::Status& status :
       {AtLeast("max_control_frame_bytes", max_control_frame_bytes, 4096),
        AtLeast("max_frame_bytes", max_frame_bytes, 1024),
        AtLeast("max_large_frame_bytes", max_large_frame_bytes, 1024), AtLeast("max_messages", max_messages, 1),
        AtLeast("max_refs", max_refs, 2), AtLeast("max_manifests", max_manifests, 1),
        AtLeast("max_nodes", max_nodes, 1), AtLeast("max_path_bytes", max_path_bytes, 64),
        AtLeast("max_manifest_bytes", max_manifest_bytes, 16), AtLeast("max_name_bytes", max_name_bytes, 16),
        AtLeast("max_reason_bytes", max_reason_bytes, 64), AtLeast("max_system_messages", max_system_messages, 1)}) {
    if (!status.ok()) return status;
  }
  // What belongs together has to fit into one frame.
  const size_t path_frame = max_path_bytes + 1024;
  if (max_control_frame_bytes < path_frame) {
    return absl::InvalidArgumentError(absl::StrCat("WireLimits.max_control_frame_bytes is ", max_control_frame_bytes,
                                                   "; a watch by a path of max_path_bytes would not fit: use at least ",
                                                   path_frame));
  }
  const size_t message_frame = max_manifest_bytes + 512;
  if (std::min(max_frame_bytes, max_large_frame_bytes) < message_frame) {
    return absl::InvalidArgumentError(absl::StrCat(
        "WireLimits.max_frame_bytes is ", max_frame_bytes, " and max_large_frame_bytes ", max_large_frame_bytes,
        "; beside a manifest there would be no room: use at least ", message_frame));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
