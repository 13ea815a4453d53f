#include "fraktor/cluster/grain/grain_call.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

// References in a message are numbers; the references themselves are beside it.
class RefsBeside final : public ActorRefCodec {
 public:
  explicit RefsBeside(std::vector<ActorRef>& refs) : refs_(refs) {}

  absl::Status Write(ActorRef ref, std::string& out) override {
    refs_.push_back(ref);
    AppendVarint(out, refs_.size());
    return absl::OkStatus();
  }
  absl::StatusOr<ActorRef> Read(std::string_view bytes) override {
    ByteReader reader(bytes);
    const uint64_t place = reader.Varint();
    if (!reader.ok() || !reader.rest().empty() || place == 0 || place > refs_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("a reference to place ", place, " of ", refs_.size()));
    }
    return refs_[place - 1];
  }

 private:
  std::vector<ActorRef>& refs_;
};

}  // namespace

void Codec<GrainCallFrame>::Encode(const GrainCallFrame& frame, Encoder& out) {
  out.Bytes(frame.key.kind());
  out.Bytes(frame.key.identity());
  out.Value(frame.is_redirected);
  out.Value(frame.hops);
  out.Value(frame.router);
  out.Value(frame.timeout);
  out.Bytes(frame.manifest);
  out.Value(frame.version);
  out.Bytes(frame.bytes);
  out.Value(frame.refs);
}

GrainCallFrame Codec<GrainCallFrame>::Decode(Decoder& in) {
  GrainCallFrame frame;
  const std::string_view kind = in.Bytes();
  const std::string_view identity = in.Bytes();
  frame.key = GrainKey(kind, identity);
  frame.is_redirected = in.Value<bool>();
  frame.hops = in.Value<uint32_t>();
  frame.router = in.Value<ActorRef>();
  frame.timeout = in.Value<absl::Duration>();
  frame.manifest = in.Bytes();
  frame.version = in.Value<uint32_t>();
  frame.bytes = in.Bytes();
  frame.refs = in.Value<std::vector<ActorRef>>();
  return frame;
}

CodecSetup ClusterCodecs() {
  CodecSetup codecs;
  codecs.Add<GrainCallFrame, LocateGrain, GrainLocated, GrainGone>();
  return codecs;
}

// Messages of the runtime, such as the Identify of singletons, travel whether or not somebody has added them.
absl::StatusOr<GrainCallFrame> EncodeCall(const GrainCall& call, const CodecRegistry& codecs) {
  GrainCallFrame frame{.key = call.key,
                       .is_redirected = call.is_redirected,
                       .hops = call.hops,
                       .router = call.router,
                       .timeout = call.timeout};
  RefsBeside refs(frame.refs);
  const MessageType* const type = call.message->type();
  const bool is_runtimes = codecs.FindType(type) == nullptr && RuntimeCodecs().FindType(type) != nullptr;
  FRAKTOR_ASSIGN_OR_RETURN(
      const MessageCodec* codec,
      (is_runtimes ? RuntimeCodecs() : codecs).Encode(*call.message, frame.bytes, {.refs = &refs}));
  frame.manifest = std::string(codec->manifest());
  frame.version = codec->version();
  return frame;
}

absl::StatusOr<GrainCall> DecodeCall(GrainCallFrame& frame, ActorRef sender, const CodecRegistry& codecs) {
  RefsBeside refs(frame.refs);
  const bool is_runtimes =
      codecs.FindManifest(frame.manifest) == nullptr && RuntimeCodecs().FindManifest(frame.manifest) != nullptr;
  FRAKTOR_ASSIGN_OR_RETURN(EnvelopePtr message,
                           (is_runtimes ? RuntimeCodecs() : codecs)
                               .Decode({.manifest = frame.manifest, .version = frame.version, .bytes = frame.bytes},
                                       sender, {.refs = &refs, .max_bytes = frame.bytes.size()}));
  return GrainCall{.key = std::move(frame.key),
                   .message = std::move(message),
                   .is_redirected = frame.is_redirected,
                   .hops = frame.hops,
                   .router = frame.router,
                   .wait_until = Instant::InfinitePast(),
                   .timeout = frame.timeout};
}

}  // namespace fraktor::inline v0
