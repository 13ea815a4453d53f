// The beginning of every frame: who sends it, for whom it is, and its number on its lane.
//
//   std::string frame = StartFrame({.kind = FrameKind::kBatch, .lane = Lane::kOrdinary, ...});
//   frame += body;
//   FRAKTOR_ASSIGN_OR_RETURN(FrameView view, ReadFrame(bytes, limits));
//   view.header.origin_uid ... view.body
//
//    0  1  the framing: 1
//    1  1  what the body is: 1 a ControlMessage, 2 a Batch
//    2  1  the lane
//    3  1  0, for later
//    4  8  the uid of the sending system
//   12  8  the uid of the system that it is for; 0 if that is not known yet
//   20  8  the number of the frame among those of its lane, from 1 on; 0 in control frames
//   28     the body
//
// Numbers have the lowest byte first. Who receives a frame for another uid, from a uid that it does not know, or with a
// number that is not above the last one of the lane, drops it: so nothing reaches a later life of a node, nothing comes
// twice, and nothing overtakes.
//
// Thread safety: values and free functions.
#ifndef FRAKTOR_REMOTE_WIRE_FRAME_HEADER_H_
#define FRAKTOR_REMOTE_WIRE_FRAME_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/remote/wire/wire_limits.h"

namespace fraktor::inline v0 {

// Streams that do not wait for each other.
enum class Lane : uint8_t { kControl = 1, kOrdinary = 2, kLarge = 3 };
inline constexpr size_t kLaneCount = 3;
// 0 to 2.
inline constexpr size_t IndexOf(Lane lane) { return static_cast<size_t>(lane) - 1; }
std::string_view NameOf(Lane lane);

enum class FrameKind : uint8_t { kControl = 1, kBatch = 2 };

struct FrameHeader {
  FrameKind kind = FrameKind::kControl;
  Lane lane = Lane::kControl;
  uint64_t origin_uid = 0;
  uint64_t target_uid = 0;
  uint64_t number = 0;
};

inline constexpr size_t kFrameHeaderBytes = 28;

// The header, with room for `body_bytes` more.
std::string StartFrame(const FrameHeader& header, size_t body_bytes = 0);
// Puts a header over the first bytes of a frame that were left for it.
void WriteFrameHeader(const FrameHeader& header, char* bytes);

struct FrameView {
  FrameHeader header = {};
  std::string_view body = {};
};

size_t MaxFrameBytes(Lane lane, const WireLimits& limits);

// kMalformed, kTooLarge, kUnknownFraming. The body has not been looked at.
absl::StatusOr<FrameView> ReadFrame(std::string_view frame, const WireLimits& limits);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WIRE_FRAME_HEADER_H_
