// Any bytes from another node lead to a message or to an error with a kind. An accepted message has
// the same bytes after one round of decoding and encoding.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/protocol_codecs.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

using utils_internal::TableSlot;

namespace {

#define FRAKTOR_FUZZ_CHECK(condition)                                                \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

// Takes anything for the one actor that there is.
class OneRef final : public ActorRefCodec {
 public:
  absl::Status Write(ActorRef, std::string& out) override {
    out += "it";
    return absl::OkStatus();
  }
  absl::StatusOr<ActorRef> Read(std::string_view) override {
    alignas(64) static char memory[64];
    return ActorRef(reinterpret_cast<TableSlot*>(memory), 5);
  }
};

void Check(std::string_view manifest, std::string_view bytes) {
  static const auto* const kRegistry =
      new std::shared_ptr<const CodecRegistry>(CodecSetup().Add(ProtocolCodecs()).Build().value());
  const CodecRegistry& registry = **kRegistry;
  OneRef refs;
  const CodecContext context{.refs = &refs};
  const absl::StatusOr<EnvelopePtr> envelope = registry.Decode({manifest, 0, bytes}, {}, context);
  if (!envelope.ok()) {
    FRAKTOR_FUZZ_CHECK(ErrorKindOf<SerializationErrorKind>(envelope.status()).has_value());
    return;
  }
  // Views and tags are looked at.
  if (const auto* const page = (*envelope)->TryAs<ReplayedMessages>()) {
    for (const StoredEvent& event : page->events) event.ToRepr();
  }
  std::string once;
  const absl::StatusOr<const MessageCodec*> codec = registry.Encode(**envelope, once, context);
  FRAKTOR_FUZZ_CHECK(codec.ok());
  const absl::StatusOr<EnvelopePtr> again =
      registry.Decode({(*codec)->manifest(), (*codec)->version(), once}, {}, context);
  FRAKTOR_FUZZ_CHECK(again.ok());
  std::string twice;
  FRAKTOR_FUZZ_CHECK(registry.Encode(**again, twice, context).ok());
  FRAKTOR_FUZZ_CHECK(once == twice);
}

}  // namespace
}  // namespace fraktor

// An input is the rest of the manifest after "fraktor.persistence.", a new line, and the bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  if (line == std::string_view::npos || line > 100) return 0;
  fraktor::Check("fraktor.persistence." + std::string(input.substr(0, line)), input.substr(line + 1));
  return 0;
}
