#include "fraktor/remote/association/runtime_codecs.h"

#include <memory>

#include "absl/strings/cord.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Typed errors, and what else a status carries.
constexpr uint64_t kMaxPayloads = 16;

}  // namespace

void Codec<ErrorReply>::Encode(const ErrorReply& reply, Encoder& out) {
  out.Value(static_cast<int32_t>(reply.status.raw_code()));
  out.Bytes(ToStd(reply.status.message()));
  uint64_t payloads = 0;
  reply.status.ForEachPayload([&](auto, const absl::Cord&) { ++payloads; });
  payloads = payloads < kMaxPayloads ? payloads : kMaxPayloads;
  out.Varint(payloads);
  reply.status.ForEachPayload([&](auto url, const absl::Cord& payload) {
    if (payloads == 0) return;
    --payloads;
    out.Bytes(std::string_view(url.data(), url.size()));
    out.Bytes(std::string(payload));
  });
}

ErrorReply Codec<ErrorReply>::Decode(Decoder& in) {
  const auto code = in.Value<int32_t>();
  const std::string text(in.Bytes());
  // Whatever came, it is no success, and a code that this build does not know is kUnknown.
  ErrorReply reply{absl::Status(code <= 0 || code > static_cast<int32_t>(absl::StatusCode::kUnauthenticated)
                                    ? absl::StatusCode::kUnknown
                                    : static_cast<absl::StatusCode>(code),
                                text)};
  const uint64_t payloads = in.Varint();
  if (payloads > kMaxPayloads) in.Fail("an error with too many payloads");
  for (uint64_t i = 0; i < payloads && in.ok(); ++i) {
    const std::string url(in.Bytes());
    reply.status.SetPayload(url, absl::Cord(std::string(in.Bytes())));
  }
  return reply;
}

const CodecRegistry& RuntimeCodecs() {
  static const std::shared_ptr<const CodecRegistry>& codecs = *new std::shared_ptr<const CodecRegistry>(
      CodecSetup()
          .Add<PoisonPill, Kill, Identify, ActorIdentity, ErrorReply, RemoteSpawn, RemoteSpawned>()
          .Build()
          .value());
  return *codecs;
}

}  // namespace fraktor::inline v0
