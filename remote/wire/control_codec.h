// Control messages as frames, and back.
//
//   wire::ControlMessage message;
//   message.mutable_heartbeat()->set_number(7);
//   std::string frame = EncodeControl({.origin_uid = ours, .target_uid = theirs}, message);
//   FRAKTOR_ASSIGN_OR_RETURN(wire::ControlMessage read, DecodeControl(view.body, limits));
//
// What has been read is as the protocol says: texts within their limits, ports that are ports, no empty bodies but of a
// kind that this version does not know, which have body_case() == BODY_NOT_SET and are to be passed over.
//
// Thread safety: free functions.
#ifndef FRAKTOR_REMOTE_WIRE_CONTROL_CODEC_H_
#define FRAKTOR_REMOTE_WIRE_CONTROL_CODEC_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/remote/wire/control.pb.h"
#include "fraktor/remote/wire/frame_header.h"
#include "fraktor/remote/wire/wire_limits.h"

namespace fraktor::inline v0 {

// `kind` is set; a frame on another lane than the control one is allowed, for handshakes and flushes.
std::string EncodeControl(FrameHeader header, const wire::ControlMessage& message);

// kMalformed, kTooLarge.
absl::StatusOr<wire::ControlMessage> DecodeControl(std::string_view body, const WireLimits& limits);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WIRE_CONTROL_CODEC_H_
