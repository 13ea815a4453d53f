#include "fraktor/remote/wire/control_codec.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/remote/wire/wire_error.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

absl::Status CheckText(const char* what, const std::string& text, size_t most) {
  if (text.size() <= most) return absl::OkStatus();
  return TooLargeFrame(
      absl::StrCat("a control message with ", what, " of ", text.size(), " bytes; the limit is ", most));
}

absl::Status CheckNode(const wire::Node& node, const WireLimits& limits) {
  FRAKTOR_RETURN_IF_ERROR(CheckText("a protocol", node.protocol(), limits.max_name_bytes));
  FRAKTOR_RETURN_IF_ERROR(CheckText("a system", node.system(), limits.max_name_bytes));
  FRAKTOR_RETURN_IF_ERROR(CheckText("a host", node.host(), limits.max_name_bytes));
  if (node.port() > UINT16_MAX) return MalformedFrame(absl::StrCat("a control message with port ", node.port()));
  if (node.system().empty() || node.host().empty())
    return MalformedFrame("a control message with a node without a name");
  return absl::OkStatus();
}

absl::Status CheckRef(const wire::Ref& ref, const WireLimits& limits) {
  if (ref.uid() == 0 && ref.path().empty()) {
    return MalformedFrame("a control message with a reference without uid and path");
  }
  return CheckText("a path", ref.path(), limits.max_path_bytes);
}

absl::Status CheckSystemMessage(const wire::SystemMessage& message, const WireLimits& limits) {
  if (message.number() == 0) return MalformedFrame("a system message without a number");
  switch (message.body_case()) {
    case wire::SystemMessage::kWatch:
      FRAKTOR_RETURN_IF_ERROR(CheckRef(message.watch().watchee(), limits));
      return CheckRef(message.watch().watcher(), limits);
    case wire::SystemMessage::kUnwatch:
      FRAKTOR_RETURN_IF_ERROR(CheckRef(message.unwatch().watchee(), limits));
      return CheckRef(message.unwatch().watcher(), limits);
    case wire::SystemMessage::kDeathNotice:
      FRAKTOR_RETURN_IF_ERROR(CheckRef(message.death_notice().watchee(), limits));
      return CheckRef(message.death_notice().watcher(), limits);
    case wire::SystemMessage::kStop:
      return CheckRef(message.stop().actor(), limits);
    case wire::SystemMessage::BODY_NOT_SET:
      return absl::OkStatus();  // Of a later version; it is counted all the same.
  }
  return absl::OkStatus();
}

absl::Status Check(const wire::ControlMessage& message, const WireLimits& limits) {
  switch (message.body_case()) {
    case wire::ControlMessage::kHandshakeRequest:
      FRAKTOR_RETURN_IF_ERROR(CheckNode(message.handshake_request().to(), limits));
      return CheckNode(message.handshake_request().from(), limits);
    case wire::ControlMessage::kHandshakeResponse:
      return CheckNode(message.handshake_response().from(), limits);
    case wire::ControlMessage::kHandshakeRefusal:
      FRAKTOR_RETURN_IF_ERROR(CheckText("a text", message.handshake_refusal().text(), limits.max_reason_bytes));
      return CheckNode(message.handshake_refusal().from(), limits);
    case wire::ControlMessage::kSystemMessages: {
      const auto& messages = message.system_messages().messages();
      if (static_cast<size_t>(messages.size()) > limits.max_system_messages) {
        return TooLargeFrame(absl::StrCat("a control message with ", messages.size(), " system messages; the limit is ",
                                          limits.max_system_messages));
      }
      for (const wire::SystemMessage& one : messages) FRAKTOR_RETURN_IF_ERROR(CheckSystemMessage(one, limits));
      return absl::OkStatus();
    }
    case wire::ControlMessage::kQuarantineNotice:
      return CheckText("a reason", message.quarantine_notice().reason(), limits.max_reason_bytes);
    case wire::ControlMessage::kFlush:
    case wire::ControlMessage::kFlushDone: {
      const uint32_t lane = message.has_flush() ? message.flush().lane() : message.flush_done().lane();
      if (lane < static_cast<uint32_t>(Lane::kControl) || lane > static_cast<uint32_t>(Lane::kLarge)) {
        return MalformedFrame(absl::StrCat("a flush of the unknown lane ", lane));
      }
      return absl::OkStatus();
    }
    default:
      return absl::OkStatus();
  }
}

}  // namespace

std::string EncodeControl(FrameHeader header, const wire::ControlMessage& message) {
  header.kind = FrameKind::kControl;
  const size_t size = message.ByteSizeLong();
  std::string frame = StartFrame(header, size);
  message.AppendToString(&frame);
  return frame;
}

absl::StatusOr<wire::ControlMessage> DecodeControl(std::string_view body, const WireLimits& limits) {
  // What the parser takes is within a small multiple of this.
  if (body.size() > limits.max_control_frame_bytes) {
    return TooLargeFrame(
        absl::StrCat("a control message of ", body.size(), " bytes; the limit is ", limits.max_control_frame_bytes));
  }
  wire::ControlMessage message;
  if (!message.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return MalformedFrame("a control message that cannot be read");
  }
  FRAKTOR_RETURN_IF_ERROR(Check(message, limits));
  return message;
}

}  // namespace fraktor::inline v0
