// For any bytes: no crash, an error with a kind, and an accepted message has the same bytes after
// one round.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

#define FRAKTOR_FUZZ_CHECK(condition)                                                \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

struct Tree {
  std::vector<Tree> branches = {};
  std::map<std::string, std::optional<int32_t>> leaves = {};
};

struct Flat {
  bool flag = false;
  int8_t small = 0;
  uint64_t large = 0;
  float part = 0;
  absl::Duration pause = {};
  absl::Time when = {};
  ActorRef nobody = {};
  std::vector<bool> bits = {};
};

}  // namespace

template <>
struct Codec<Tree> : FieldCodec<Tree, &Tree::branches, &Tree::leaves> {
  static constexpr std::string_view kManifest = "t";
  static constexpr uint32_t kVersion = 3;
};
template <>
struct Codec<Flat> : FieldCodec<Flat, &Flat::flag, &Flat::small, &Flat::large, &Flat::part, &Flat::pause, &Flat::when,
                                &Flat::nobody, &Flat::bits> {
  static constexpr std::string_view kManifest = "f";
};

namespace {

void Check(std::string_view manifest, uint32_t version, std::string_view bytes) {
  static const auto* const kRegistry = new std::shared_ptr<const CodecRegistry>(
      CodecSetup().Add<Tree, Flat>().AddAs<google::protobuf::Struct>("s").Build().value());
  const CodecRegistry& registry = **kRegistry;
  const absl::StatusOr<EnvelopePtr> envelope = registry.Decode({manifest, version, bytes});
  if (!envelope.ok()) {
    FRAKTOR_FUZZ_CHECK(ErrorKindOf<SerializationErrorKind>(envelope.status()).has_value());
    return;
  }
  std::string once;
  const absl::StatusOr<const MessageCodec*> codec = registry.Encode(**envelope, once);
  FRAKTOR_FUZZ_CHECK(codec.ok());
  const absl::StatusOr<EnvelopePtr> again = registry.Decode({(*codec)->manifest(), (*codec)->version(), once});
  FRAKTOR_FUZZ_CHECK(again.ok());
  std::string twice;
  FRAKTOR_FUZZ_CHECK(registry.Encode(**again, twice).ok());
  FRAKTOR_FUZZ_CHECK(once == twice);
}

}  // namespace
}  // namespace fraktor

// The first byte is the manifest, the second the version.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  fraktor::Check(input.substr(0, 1), data[1] - '0', input.substr(2));
  return 0;
}
