#include "fraktor/cluster/grain/grain_call.h"

#include <cstddef>
#include <cstdint>
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
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// What a thread keeps for the next call.
constexpr size_t kMaxKeptBytes = size_t{1} << 16;

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

absl::Status Codec<GrainCall>::Encode(const GrainCall& call, Encoder& out) {
  if (call.codec == nullptr || call.message == nullptr) {
    return absl::FailedPreconditionError("a call leaves its process by a router or a gate only");
  }
  // Taken away while a codec of a user runs, which may send something itself.
  static thread_local std::string kept;
  std::string bytes = std::exchange(kept, {});
  bytes.clear();
  std::vector<ActorRef> refs;
  RefsBeside beside(refs);
  FRAKTOR_RETURN_IF_ERROR(call.codec->Encode(call.message->payload(), bytes, {.refs = &beside}));
  out.Bytes(call.key.kind());
  out.Bytes(call.key.identity());
  out.Value(call.is_redirected);
  out.Value(call.hops);
  out.Value(!call.router.IsNoOne());
  out.Value(call.timeout);
  out.Value(call.returns);
  out.Value(refs);
  out.Bytes(call.codec->manifest());
  out.Value(call.codec->version());
  out.Raw(bytes);
  if (bytes.capacity() <= kMaxKeptBytes) kept = std::move(bytes);
  return absl::OkStatus();
}

GrainCall ReadCallHead(Decoder& in, bool& has_router) {
  GrainCall call;
  if (in.version() < 1) {
    in.Fail("a call of an earlier version; update all nodes of the cluster");
    return call;
  }
  const std::string_view kind = in.Bytes();
  const std::string_view identity = in.Bytes();
  call.key = GrainKey(kind, identity);
  call.is_redirected = in.Value<bool>();
  call.hops = in.Value<uint32_t>();
  has_router = in.Value<bool>();
  call.timeout = in.Value<absl::Duration>();
  if (in.version() >= 2) call.returns = in.Value<uint32_t>();
  call.refs = in.Value<std::vector<ActorRef>>();
  return call;
}

GrainCall Codec<GrainCall>::Decode(Decoder& in) {
  bool has_router = false;
  GrainCall call = ReadCallHead(in, has_router);
  call.closed = std::string(in.Raw(in.rest().size()));
  return call;
}

CodecSetup ClusterCodecs() {
  CodecSetup codecs;
  codecs.Add<GrainCall, LocateGrain, GrainLocated, GrainGone, GrainFarewell, FarewellHeard>();
  return codecs;
}

// Messages of the runtime, such as the Identify of singletons, travel whether or not somebody has added them.
const MessageCodec* CodecOfCall(const GrainCall& call, const CodecRegistry& codecs) {
  const MessageCodec* const codec = codecs.FindType(call.message->type());
  return codec != nullptr ? codec : RuntimeCodecs().FindType(call.message->type());
}

absl::StatusOr<EnvelopePtr> OpenMessage(std::string_view closed, std::vector<ActorRef>& refs, ActorRef sender,
                                        const CallOpening& opening) {
  ByteReader reader(closed);
  const std::string_view manifest = reader.Sized();
  const uint64_t version = reader.Varint();
  if (!reader.ok() || version > UINT32_MAX) return absl::InvalidArgumentError("a call whose message is cut off");
  const MessageCodec* codec = opening.codecs->FindManifest(manifest);
  if (codec == nullptr) codec = RuntimeCodecs().FindManifest(manifest);
  if (codec == nullptr) return CodecRegistry::UnknownManifest(manifest);
  if (opening.refuses_harmful && IsHarmful(codec->type())) [[unlikely]] {
    return absl::PermissionDeniedError(absl::StrCat("a grain gets no ", ToAbsl(codec->type()->name()),
                                                    " from another node: peers are not trusted here"));
  }
  RefsBeside beside(refs);
  return codec->Decode(static_cast<uint32_t>(version), reader.rest(), sender,
                       {.refs = &beside, .max_bytes = reader.rest().size()});
}

std::string_view ManifestOfClosed(const GrainCall& call) {
  ByteReader reader(call.closed);
  const std::string_view manifest = reader.Sized();
  return reader.ok() ? manifest : std::string_view();
}

}  // namespace fraktor::inline v0
