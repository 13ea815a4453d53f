// How large things may be that come from a peer, and that we send: looked at before any memory is taken for them.
//
//   RemoteOptions options{.limits = {.max_frame_bytes = 1 << 20}};          // messages of almost 1 MiB
//   GrpcTransportOptions transport{.limits = {.max_frame_bytes = 2 << 20}}; // at least the largest of the three
//
// Both sides have to allow it: a peer cuts a stream that brings a frame above its own limits.
//
// Thread safety: values.
#ifndef FRAKTOR_REMOTE_WIRE_WIRE_LIMITS_H_
#define FRAKTOR_REMOTE_WIRE_WIRE_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

struct WireLimits {
  // Of a whole frame: of the control lane, of the ordinary one, of the large one.
  size_t max_control_frame_bytes = size_t{64} << 10;
  size_t max_frame_bytes = size_t{256} << 10;
  size_t max_large_frame_bytes = size_t{2} << 20;
  // Of one batch.
  size_t max_messages = 65'536;
  size_t max_refs = 16'384;
  size_t max_manifests = 1024;
  size_t max_nodes = 256;
  // Of one text.
  size_t max_path_bytes = 60'000;
  size_t max_manifest_bytes = 256;
  size_t max_name_bytes = 255;  // systems, hosts
  size_t max_reason_bytes = 1024;
  // In one control message.
  size_t max_system_messages = 1024;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WIRE_WIRE_LIMITS_H_
