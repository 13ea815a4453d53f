// Whatever the bytes are: no crash, limits are kept, and what is accepted is the same after it was written again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/remote/wire/batch_reader.h"
#include "fraktor/remote/wire/batch_writer.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/remote/wire/frame_header.h"
#include "fraktor/remote/wire/wire_error.h"
#include "fraktor/remote/wire/wire_limits.h"
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

// Small, so that they are met.
constexpr WireLimits kLimits{.max_control_frame_bytes = 4096,
                             .max_frame_bytes = 2048,
                             .max_large_frame_bytes = 4096,
                             .max_messages = 16,
                             .max_refs = 8,
                             .max_manifests = 4,
                             .max_nodes = 2,
                             .max_path_bytes = 64,
                             .max_manifest_bytes = 16,
                             .max_name_bytes = 16,
                             .max_reason_bytes = 64,
                             .max_system_messages = 4};

void CheckError(const absl::Status& status) { FRAKTOR_FUZZ_CHECK(ErrorKindOf<WireErrorKind>(status).has_value()); }

// What has been read, written again, and how often anything was read.
struct Copy {
  BatchWriter writer;
  size_t entries = 0;
  bool is_whole = false;
};

Copy CopyBatch(std::string_view body) {
  Copy copy;
  BatchReader reader(body, kLimits);
  for (;;) {
    const absl::StatusOr<BatchReader::Step> step = reader.Next();
    if (!step.ok()) {
      CheckError(step.status());
      return copy;
    }
    ++copy.entries;
    switch (*step) {
      case BatchReader::Step::kNode:
        FRAKTOR_FUZZ_CHECK(reader.node().host.size() <= kLimits.max_name_bytes);
        copy.writer.AddNode(reader.node());
        break;
      case BatchReader::Step::kRef:
        FRAKTOR_FUZZ_CHECK(reader.ref().home < BatchHome::kFirstNode + copy.writer.nodes());
        FRAKTOR_FUZZ_CHECK(reader.ref().path.size() <= kLimits.max_path_bytes);
        copy.writer.AddRef(reader.ref());
        break;
      case BatchReader::Step::kManifest:
        FRAKTOR_FUZZ_CHECK(reader.manifest().name.size() <= kLimits.max_manifest_bytes);
        copy.writer.AddManifest(reader.manifest().name, reader.manifest().version);
        break;
      case BatchReader::Step::kMessage:
        FRAKTOR_FUZZ_CHECK(reader.message().to >= 1 && reader.message().to <= copy.writer.refs());
        FRAKTOR_FUZZ_CHECK(reader.message().from <= copy.writer.refs());
        FRAKTOR_FUZZ_CHECK(reader.message().manifest >= 1 && reader.message().manifest <= copy.writer.manifests());
        copy.writer.AddMessage(reader.message());
        break;
      case BatchReader::Step::kEnd:
        copy.is_whole = true;
        return copy;
    }
    FRAKTOR_FUZZ_CHECK(copy.writer.messages() <= kLimits.max_messages && copy.writer.refs() <= kLimits.max_refs);
    FRAKTOR_FUZZ_CHECK(copy.writer.nodes() <= kLimits.max_nodes && copy.writer.manifests() <= kLimits.max_manifests);
  }
}

void CheckBatch(const FrameView& view) {
  Copy first = CopyBatch(view.body);
  if (!first.is_whole) return;
  const std::string once = first.writer.Seal(view.header);
  Copy second = CopyBatch(std::string_view(once).substr(kFrameHeaderBytes));
  FRAKTOR_FUZZ_CHECK(second.is_whole && second.entries == first.entries);
  FRAKTOR_FUZZ_CHECK(second.writer.Seal(view.header) == once);
}

void CheckControl(const FrameView& view) {
  const absl::StatusOr<wire::ControlMessage> message = DecodeControl(view.body, kLimits);
  if (!message.ok()) {
    CheckError(message.status());
    return;
  }
  const std::string once = EncodeControl(view.header, *message);
  const absl::StatusOr<wire::ControlMessage> again =
      DecodeControl(std::string_view(once).substr(kFrameHeaderBytes), kLimits);
  // Written again it may be longer than the limit: numbers can be written shorter than they must.
  if (!again.ok()) return;
  FRAKTOR_FUZZ_CHECK(EncodeControl(view.header, *again) == once);
}

}  // namespace
}  // namespace fraktor

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fraktor;
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<FrameView> view = ReadFrame(frame, kLimits);
  if (!view.ok()) {
    CheckError(view.status());
    return 0;
  }
  FRAKTOR_FUZZ_CHECK(view->body.size() + kFrameHeaderBytes == size);
  if (view->header.kind == FrameKind::kBatch) {
    CheckBatch(*view);
  } else {
    CheckControl(*view);
  }
  return 0;
}
