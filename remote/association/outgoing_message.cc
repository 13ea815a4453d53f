#include "fraktor/remote/association/outgoing_message.h"

#include <algorithm>
#include <memory>

#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/remote/wire/frame_header.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

// What a thread keeps for the next message.
constexpr size_t kMaxKeptBytes = size_t{1} << 20;
// So many of the last references are looked at, whether one is there already.
constexpr size_t kLookBack = 8;

}  // namespace

OutgoingMessage::Buffers& OutgoingMessage::OfThisThread() {
  thread_local Buffers buffers;
  return buffers;
}

OutgoingMessage::OutgoingMessage(const LocalNode& node) : node_(node), buffers_(&OfThisThread()) {
  if (buffers_->is_used) [[unlikely]] {
    own_ = std::make_unique<Buffers>();
    buffers_ = own_.get();
  }
  buffers_->is_used = true;
}

OutgoingMessage::~OutgoingMessage() {
  if (buffers_->payload.capacity() > kMaxKeptBytes || buffers_->refs.capacity() * sizeof(ActorRef) > kMaxKeptBytes) {
    *buffers_ = {};
  }
  buffers_->is_used = false;
}

void OutgoingMessage::Encode(const Envelope& message, uint32_t base) {
  ++attempts_;
  base_ = base;
  buffers_->payload.clear();
  buffers_->refs.clear();
  const WireLimits& limits = node_.options.limits;
  const size_t max_frame = node_.options.large_destinations.empty()
                               ? limits.max_frame_bytes
                               : std::max(limits.max_frame_bytes, limits.max_large_frame_bytes);
  codec_ = node_.codecs.FindType(message.type());
  if (codec_ == nullptr) codec_ = RuntimeCodecs().FindType(message.type());
  if (codec_ == nullptr) {
    status_ = CodecRegistry::NotRegistered(message.type());
    return;
  }
  status_ = codec_->Encode(message.payload(), buffers_->payload,
                           {.refs = this, .max_bytes = max_frame - kFrameHeaderBytes - limits.max_manifest_bytes});
}

absl::Status OutgoingMessage::Write(ActorRef ref, std::string& out) {
  std::vector<ActorRef>& refs = buffers_->refs;
  size_t place = refs.size();
  const size_t first = place > kLookBack ? place - kLookBack : 0;
  for (size_t i = first; i < refs.size(); ++i) {
    if (refs[i] == ref) place = i;
  }
  if (place == refs.size()) {
    if (refs.size() + 2 >= node_.options.limits.max_refs) {
      return absl::InvalidArgumentError("there are more references in it than WireLimits.max_refs allows");
    }
    refs.push_back(ref);
  }
  AppendVarint(out, base_ + place + 1);
  return absl::OkStatus();
}

absl::StatusOr<ActorRef> OutgoingMessage::Read(std::string_view) {
  return absl::UnimplementedError("this side writes");
}

}  // namespace fraktor::inline v0
