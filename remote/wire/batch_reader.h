// BatchReader: the messages of a batch and what they refer to, one after the other: see batch.proto.
//
//   BatchReader reader(frame.body, limits);
//   for (;;) {
//     FRAKTOR_ASSIGN_OR_RETURN(BatchReader::Step step, reader.Next());
//     if (step == BatchReader::Step::kEnd) break;
//     if (step == BatchReader::Step::kRef) refs.push_back(Resolve(reader.ref()));
//     if (step == BatchReader::Step::kMessage) Deliver(refs[reader.message().to - 1], reader.message().payload);
//   }
//
// Takes no memory of its own: texts and payloads are views of the body. Places that messages name have been met before,
// and limits are kept, whatever the bytes are. Fields that are not known are passed over.
//
// Thread safety: belongs to one thread.
#ifndef FRAKTOR_REMOTE_WIRE_BATCH_READER_H_
#define FRAKTOR_REMOTE_WIRE_BATCH_READER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/remote/wire/batch_writer.h"
#include "fraktor/remote/wire/wire_limits.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {

class BatchReader {
 public:
  enum class Step : uint8_t { kNode, kRef, kManifest, kMessage, kEnd };

  // `limits` must outlive it.
  BatchReader(std::string_view body, const WireLimits& limits) : reader_(body), limits_(limits) {}

  // kMalformed, kTooLarge.
  absl::StatusOr<Step> Next();

  // What the last step was about.
  const BatchNodeView& node() const { return node_; }
  const BatchRefView& ref() const { return ref_; }
  const BatchManifestView& manifest() const { return manifest_; }
  const BatchMessageView& message() const { return message_; }

 private:
  absl::StatusOr<Step> ReadNode(std::string_view body);
  absl::StatusOr<Step> ReadRef(std::string_view body);
  absl::StatusOr<Step> ReadManifest(std::string_view body);
  absl::StatusOr<Step> ReadMessage(std::string_view body);
  bool ReadUsualMessage(std::string_view body);

  ByteReader reader_;
  const WireLimits& limits_;
  size_t nodes_ = 0;
  size_t refs_ = 0;
  size_t manifests_ = 0;
  size_t messages_ = 0;
  BatchNodeView node_;
  BatchRefView ref_;
  BatchManifestView manifest_;
  BatchMessageView message_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WIRE_BATCH_READER_H_
