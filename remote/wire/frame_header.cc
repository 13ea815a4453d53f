#include "fraktor/remote/wire/frame_header.h"

#include "absl/strings/str_cat.h"

#include "fraktor/remote/wire/wire_error.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint8_t kFraming = 1;

void StoreFixed64(char* bytes, uint64_t value) {
  for (size_t i = 0; i < sizeof(value); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

std::string_view NameOf(Lane lane) {
  switch (lane) {
    case Lane::kControl:
      return "control";
    case Lane::kOrdinary:
      return "ordinary";
    case Lane::kLarge:
      return "large";
  }
  return "unknown";
}

void WriteFrameHeader(const FrameHeader& header, char* bytes) {
  bytes[0] = static_cast<char>(kFraming);
  bytes[1] = static_cast<char>(header.kind);
  bytes[2] = static_cast<char>(header.lane);
  bytes[3] = 0;
  StoreFixed64(bytes + 4, header.origin_uid);
  StoreFixed64(bytes + 12, header.target_uid);
  StoreFixed64(bytes + 20, header.number);
}

std::string StartFrame(const FrameHeader& header, size_t body_bytes) {
  std::string frame;
  frame.reserve(kFrameHeaderBytes + body_bytes);
  frame.resize(kFrameHeaderBytes);
  WriteFrameHeader(header, frame.data());
  return frame;
}

size_t MaxFrameBytes(Lane lane, const WireLimits& limits) {
  switch (lane) {
    case Lane::kControl:
      return limits.max_control_frame_bytes;
    case Lane::kOrdinary:
      return limits.max_frame_bytes;
    case Lane::kLarge:
      return limits.max_large_frame_bytes;
  }
  return 0;
}

absl::StatusOr<FrameView> ReadFrame(std::string_view frame, const WireLimits& limits) {
  if (frame.size() < kFrameHeaderBytes) {
    return MalformedFrame(
        absl::StrCat("a frame of ", frame.size(), " bytes; the header alone has ", kFrameHeaderBytes));
  }
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(frame[at]); };
  if (byte(0) != kFraming) {
    return MakeError(absl::StatusCode::kInvalidArgument, WireErrorKind::kUnknownFraming,
                     absl::StrCat("a frame of framing ", byte(0), "; this node knows ", kFraming,
                                  " only; something else talks to this port, or a much newer version"));
  }
  if (byte(1) != static_cast<uint8_t>(FrameKind::kControl) && byte(1) != static_cast<uint8_t>(FrameKind::kBatch)) {
    return MalformedFrame(absl::StrCat("a frame of the unknown kind ", byte(1)));
  }
  if (byte(2) < static_cast<uint8_t>(Lane::kControl) || byte(2) > static_cast<uint8_t>(Lane::kLarge)) {
    return MalformedFrame(absl::StrCat("a frame of the unknown lane ", byte(2)));
  }
  FrameView view;
  view.header.kind = static_cast<FrameKind>(byte(1));
  view.header.lane = static_cast<Lane>(byte(2));
  view.header.origin_uid = LoadFixed64(frame.data() + 4);
  view.header.target_uid = LoadFixed64(frame.data() + 12);
  view.header.number = LoadFixed64(frame.data() + 20);
  view.body = frame.substr(kFrameHeaderBytes);
  const bool is_batch = view.header.kind == FrameKind::kBatch;
  if (is_batch && view.header.lane == Lane::kControl) return MalformedFrame("a batch on the control lane");
  if (is_batch && view.header.number == 0) return MalformedFrame("a batch without a number");
  // A control message has the limit of its own lane, whatever lane it comes on.
  const size_t most = MaxFrameBytes(is_batch ? view.header.lane : Lane::kControl, limits);
  if (frame.size() > most) {
    return TooLargeFrame(absl::StrCat("a frame of ", frame.size(), " bytes on the ", ToAbsl(NameOf(view.header.lane)),
                                      " lane; the limit is ", most));
  }
  return view;
}

}  // namespace fraktor::inline v0
