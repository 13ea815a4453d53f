// BatchWriter: puts user messages into a frame, one behind the other: see batch.proto.
//
//   BatchWriter batch;
//   uint32_t to = batch.AddRef({.home = BatchHome::kReceiver, .uid = 42});
//   uint32_t manifest = batch.AddManifest("shop.Order", 1);
//   batch.AddMessage({.to = to, .from = 0, .manifest = manifest, .payload = bytes});
//   std::string frame = batch.Seal({.kind = FrameKind::kBatch, ...});             // and it is empty again
//
// Nobody but the caller knows what is in the tables already: it keeps the places that it was given until the batch is
// sealed, and whether there is room.
//
// Thread safety: belongs to one thread at a time.
#ifndef FRAKTOR_REMOTE_WIRE_BATCH_WRITER_H_
#define FRAKTOR_REMOTE_WIRE_BATCH_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fraktor/remote/wire/frame_header.h"

namespace fraktor::inline v0 {

struct BatchNodeView {
  std::string_view protocol = {};
  std::string_view system = {};
  std::string_view host = {};
  uint16_t port = 0;
  uint64_t uid = 0;
};

// Where an actor lives: with one of the two, or at the nth of the batch's nodes.
struct BatchHome {
  static constexpr uint32_t kReceiver = 0;
  static constexpr uint32_t kSender = 1;
  static constexpr uint32_t kFirstNode = 2;
};

struct BatchRefView {
  uint32_t home = BatchHome::kReceiver;
  uint64_t uid = 0;
  std::string_view path = {};
  bool is_selection = false;
  bool is_promise = false;
};

struct BatchManifestView {
  std::string_view name = {};
  uint32_t version = 0;
};

// Places in the tables, from 1 on; 0 for none.
struct BatchMessageView {
  uint32_t to = 0;
  uint32_t from = 0;
  uint32_t manifest = 0;
  std::string_view payload = {};
};

class BatchWriter {
 public:
  // So many bytes one of them takes at most, besides its texts and its payload.
  static constexpr size_t kMaxEntryBytes = 48;

  BatchWriter() { Clear(); }

  // What home it is for refs.
  uint32_t AddNode(const BatchNodeView& node);
  // Its place, from 1 on.
  uint32_t AddRef(const BatchRefView& ref);
  uint32_t AddManifest(std::string_view name, uint32_t version);
  void AddMessage(const BatchMessageView& message);

  bool empty() const { return messages_ == 0; }
  size_t messages() const { return messages_; }
  size_t refs() const { return refs_; }
  size_t manifests() const { return manifests_; }
  size_t nodes() const { return nodes_; }
  // Of the frame, so far.
  size_t bytes() const { return frame_.size(); }

  std::string Seal(const FrameHeader& header);
  void Clear();

  // How far it is; Rollback takes back what has been added since.
  struct Mark {
    size_t bytes = 0;
    size_t messages = 0;
    size_t refs = 0;
    size_t manifests = 0;
    size_t nodes = 0;
  };
  Mark mark() const { return {frame_.size(), messages_, refs_, manifests_, nodes_}; }
  void Rollback(const Mark& mark);

 private:
  void AddShortMessage(const BatchMessageView& message);

  std::string frame_;
  size_t messages_ = 0;
  size_t refs_ = 0;
  size_t manifests_ = 0;
  size_t nodes_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WIRE_BATCH_WRITER_H_
