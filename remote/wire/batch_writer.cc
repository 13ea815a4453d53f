#include "fraktor/remote/wire/batch_writer.h"

#include <algorithm>
#include <utility>

#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

// The tag of a field: its number and how it is written.
constexpr char Varint(int field) { return static_cast<char>(field << 3); }
constexpr char Fixed64(int field) { return static_cast<char>(field << 3 | 1); }
constexpr char Sized(int field) { return static_cast<char>(field << 3 | 2); }

constexpr size_t kMaxReserved = size_t{64} << 10;
// A message below this, with its numbers, has a length of one byte.
constexpr size_t kShort = 0x80 - 8;

constexpr size_t NumberBytes(uint64_t value) { return value == 0 ? 0 : 1 + VarintBytes(value); }
size_t TextBytes(std::string_view text) { return text.empty() ? 0 : 1 + SizedBytes(text.size()); }
constexpr size_t UidBytes(uint64_t uid) { return uid == 0 ? 0 : 9; }

void AppendNumber(std::string& out, int field, uint64_t value) {
  if (value == 0) return;
  out.push_back(Varint(field));
  AppendVarint(out, value);
}
void AppendText(std::string& out, int field, std::string_view text) {
  if (text.empty()) return;
  out.push_back(Sized(field));
  AppendSized(out, text);
}
void AppendUid(std::string& out, int field, uint64_t uid) {
  if (uid == 0) return;
  out.push_back(Fixed64(field));
  AppendFixed64(out, uid);
}
void Open(std::string& out, int field, size_t bytes) {
  out.push_back(Sized(field));
  AppendVarint(out, bytes);
}

}  // namespace

uint32_t BatchWriter::AddNode(const BatchNodeView& node) {
  Open(frame_, 1,
       TextBytes(node.protocol) + TextBytes(node.system) + TextBytes(node.host) + NumberBytes(node.port) +
           UidBytes(node.uid));
  AppendText(frame_, 1, node.protocol);
  AppendText(frame_, 2, node.system);
  AppendText(frame_, 3, node.host);
  AppendNumber(frame_, 4, node.port);
  AppendUid(frame_, 5, node.uid);
  return BatchHome::kFirstNode + static_cast<uint32_t>(nodes_++);
}

uint32_t BatchWriter::AddRef(const BatchRefView& ref) {
  Open(frame_, 2,
       NumberBytes(ref.home) + UidBytes(ref.uid) + TextBytes(ref.path) + NumberBytes(ref.is_selection) +
           NumberBytes(ref.is_promise));
  AppendNumber(frame_, 1, ref.home);
  AppendUid(frame_, 2, ref.uid);
  AppendText(frame_, 3, ref.path);
  AppendNumber(frame_, 4, ref.is_selection ? 1 : 0);
  AppendNumber(frame_, 5, ref.is_promise ? 1 : 0);
  return static_cast<uint32_t>(++refs_);
}

uint32_t BatchWriter::AddManifest(std::string_view name, uint32_t version) {
  Open(frame_, 3, TextBytes(name) + NumberBytes(version));
  AppendText(frame_, 1, name);
  AppendNumber(frame_, 2, version);
  return static_cast<uint32_t>(++manifests_);
}

void BatchWriter::AddMessage(const BatchMessageView& message) {
  ++messages_;
  // A number that is 0 is left out.
  if (message.to - 1 < 0x7f && message.from < 0x80 && message.manifest - 1 < 0x7f && !message.payload.empty() &&
      message.payload.size() < kShort) {
    AddShortMessage(message);
    return;
  }
  Open(
      frame_, 4,
      NumberBytes(message.to) + NumberBytes(message.from) + NumberBytes(message.manifest) + TextBytes(message.payload));
  AppendNumber(frame_, 1, message.to);
  AppendNumber(frame_, 2, message.from);
  AppendNumber(frame_, 3, message.manifest);
  AppendText(frame_, 4, message.payload);
}

// The same bytes, in one piece.
void BatchWriter::AddShortMessage(const BatchMessageView& message) {
  char bytes[kShort + 10];
  char* at = bytes + 2;
  *at++ = Varint(1);
  *at++ = static_cast<char>(message.to);
  if (message.from != 0) {
    *at++ = Varint(2);
    *at++ = static_cast<char>(message.from);
  }
  *at++ = Varint(3);
  *at++ = static_cast<char>(message.manifest);
  *at++ = Sized(4);
  *at++ = static_cast<char>(message.payload.size());
  at = PutBytes(at, message.payload);
  bytes[0] = Sized(4);
  bytes[1] = static_cast<char>(at - bytes - 2);
  frame_.append(bytes, static_cast<size_t>(at - bytes));
}

std::string BatchWriter::Seal(const FrameHeader& header) {
  WriteFrameHeader(header, frame_.data());
  std::string sealed = std::move(frame_);
  // The next one will often be as large.
  frame_ = std::string();
  frame_.reserve(std::min(sealed.size(), kMaxReserved));
  Clear();
  return sealed;
}

void BatchWriter::Rollback(const Mark& mark) {
  frame_.resize(mark.bytes);
  messages_ = mark.messages;
  refs_ = mark.refs;
  manifests_ = mark.manifests;
  nodes_ = mark.nodes;
}

void BatchWriter::Clear() {
  frame_.clear();
  frame_.resize(kFrameHeaderBytes);
  messages_ = refs_ = manifests_ = nodes_ = 0;
}

}  // namespace fraktor::inline v0
