#include "fraktor/remote/wire/batch_reader.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/remote/wire/wire_error.h"

namespace fraktor::inline v0 {
namespace {

// One field of a message of the protocol compiler's, as it stands in the bytes.
struct Field {
  uint32_t number = 0;
  enum class Form : uint8_t { kVarint = 0, kFixed64 = 1, kSized = 2, kFixed32 = 5 } form = Form::kVarint;
  uint64_t value = 0;          // of kVarint, kFixed64 and kFixed32
  std::string_view text = {};  // of kSized
};

// False at the end, and where the bytes are no field: then the reader is not ok.
bool ReadField(ByteReader& reader, Field& field, bool& is_bad) {
  if (reader.rest().empty()) return false;
  const uint64_t tag = reader.Varint();
  field.number = static_cast<uint32_t>(tag >> 3);
  field.text = {};
  field.value = 0;
  is_bad = tag > UINT32_MAX || field.number == 0;
  switch (tag & 7) {
    case 0:
      field.form = Field::Form::kVarint;
      field.value = reader.Varint();
      break;
    case 1:
      field.form = Field::Form::kFixed64;
      field.value = reader.Fixed64();
      break;
    case 2:
      field.form = Field::Form::kSized;
      field.text = reader.Sized();
      break;
    case 5:
      field.form = Field::Form::kFixed32;
      field.value = reader.Fixed32();
      break;
    default:
      is_bad = true;
  }
  is_bad = is_bad || !reader.ok();
  return !is_bad;
}

// Calls `take` for each field that is known by number and form, and has it say whether it may be so.
template <class Take>
absl::Status ReadFields(std::string_view body, const char* what, Take take) {
  ByteReader reader(body);
  Field field;
  bool is_bad = false;
  while (ReadField(reader, field, is_bad)) {
    if (absl::Status taken = take(field); !taken.ok()) return taken;
  }
  if (is_bad) return MalformedFrame(absl::StrCat("a batch with ", what, " that cannot be read"));
  return absl::OkStatus();
}

constexpr char Tag(int field, int form) { return static_cast<char>(field << 3 | form); }

bool IsNumber(const Field& field) { return field.form == Field::Form::kVarint; }
bool IsText(const Field& field) { return field.form == Field::Form::kSized; }
bool IsUid(const Field& field) { return field.form == Field::Form::kFixed64; }

absl::Status TooLong(const char* what, size_t size, size_t most) {
  return TooLargeFrame(absl::StrCat("a batch with ", what, " of ", size, " bytes; the limit is ", most));
}
absl::Status TooMany(const char* what, size_t most) {
  return TooLargeFrame(absl::StrCat("a batch with more than ", most, " ", what));
}

absl::Status TakeText(const Field& field, const char* what, size_t most, std::string_view& to) {
  if (field.text.size() > most) return TooLong(what, field.text.size(), most);
  to = field.text;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchReader::Step> BatchReader::Next() {
  // Most of a batch are messages, and most of them are short.
  if (const std::string_view rest = reader_.rest(); rest.size() > 2 && rest[0] == Tag(4, 2)) {
    const auto length = static_cast<uint8_t>(rest[1]);
    if (length < 0x80 && length <= rest.size() - 2) return ReadMessage(reader_.Take(size_t{2} + length).substr(2));
  }
  Field field;
  bool is_bad = false;
  while (ReadField(reader_, field, is_bad)) {
    if (!IsText(field)) continue;
    switch (field.number) {
      case 1:
        return ReadNode(field.text);
      case 2:
        return ReadRef(field.text);
      case 3:
        return ReadManifest(field.text);
      case 4:
        return ReadMessage(field.text);
      default:
        break;
    }
  }
  if (is_bad) return MalformedFrame("a batch that ends in the middle of an entry, or has one that is none");
  return Step::kEnd;
}

absl::StatusOr<BatchReader::Step> BatchReader::ReadNode(std::string_view body) {
  if (++nodes_ > limits_.max_nodes) return TooMany("nodes", limits_.max_nodes);
  node_ = {};
  absl::Status read = ReadFields(body, "a node", [&](const Field& field) -> absl::Status {
    if (field.number == 1 && IsText(field))
      return TakeText(field, "a protocol", limits_.max_name_bytes, node_.protocol);
    if (field.number == 2 && IsText(field)) return TakeText(field, "a system", limits_.max_name_bytes, node_.system);
    if (field.number == 3 && IsText(field)) return TakeText(field, "a host", limits_.max_name_bytes, node_.host);
    if (field.number == 4 && IsNumber(field)) {
      if (field.value > UINT16_MAX) return MalformedFrame(absl::StrCat("a batch with port ", field.value));
      node_.port = static_cast<uint16_t>(field.value);
    }
    if (field.number == 5 && IsUid(field)) node_.uid = field.value;
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return Step::kNode;
}

absl::StatusOr<BatchReader::Step> BatchReader::ReadRef(std::string_view body) {
  if (++refs_ > limits_.max_refs) return TooMany("references", limits_.max_refs);
  ref_ = {};
  absl::Status read = ReadFields(body, "a reference", [&](const Field& field) -> absl::Status {
    if (field.number == 1 && IsNumber(field)) {
      if (field.value >= BatchHome::kFirstNode + nodes_) {
        return MalformedFrame(absl::StrCat("a batch with a reference to node ", field.value, " of ", nodes_));
      }
      ref_.home = static_cast<uint32_t>(field.value);
    }
    if (field.number == 2 && IsUid(field)) ref_.uid = field.value;
    if (field.number == 3 && IsText(field)) return TakeText(field, "a path", limits_.max_path_bytes, ref_.path);
    if (field.number == 4 && IsNumber(field)) ref_.is_selection = field.value != 0;
    if (field.number == 5 && IsNumber(field)) ref_.is_promise = field.value != 0;
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  if (ref_.uid == 0 && ref_.path.empty()) return MalformedFrame("a batch with a reference without uid and path");
  return Step::kRef;
}

absl::StatusOr<BatchReader::Step> BatchReader::ReadManifest(std::string_view body) {
  if (++manifests_ > limits_.max_manifests) return TooMany("manifests", limits_.max_manifests);
  manifest_ = {};
  absl::Status read = ReadFields(body, "a manifest", [&](const Field& field) -> absl::Status {
    if (field.number == 1 && IsText(field)) {
      return TakeText(field, "a manifest", limits_.max_manifest_bytes, manifest_.name);
    }
    if (field.number == 2 && IsNumber(field)) {
      if (field.value > UINT32_MAX)
        return MalformedFrame("a batch with a manifest whose version is no number of 32 bits");
      manifest_.version = static_cast<uint32_t>(field.value);
    }
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  if (manifest_.name.empty()) return MalformedFrame("a batch with a manifest without a name");
  return Step::kManifest;
}

// As a BatchWriter writes most of them: the fields in order, each once, and every number in a byte of its own. False if it
// is anything else, good or bad.
bool BatchReader::ReadUsualMessage(std::string_view body) {
  const size_t size = body.size();
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(body[at]); };
  if (size < 6 || body[0] != Tag(1, 0)) return false;
  const uint8_t to = byte(1);
  const bool has_sender = body[2] == Tag(2, 0);
  const uint8_t from = has_sender ? byte(3) : 0;
  const size_t rest = has_sender ? 4 : 2;
  if (size < rest + 4 || body[rest] != Tag(3, 0) || body[rest + 2] != Tag(4, 2)) return false;
  const uint8_t manifest = byte(rest + 1);
  const uint8_t length = byte(rest + 3);
  if (((to | from | manifest | length) & 0x80) != 0 || rest + 4 + length != size) return false;
  if (to == 0 || to > refs_ || from > refs_ || manifest == 0 || manifest > manifests_) return false;
  message_ = {.to = to, .from = from, .manifest = manifest, .payload = body.substr(rest + 4)};
  return true;
}

absl::StatusOr<BatchReader::Step> BatchReader::ReadMessage(std::string_view body) {
  if (++messages_ > limits_.max_messages) return TooMany("messages", limits_.max_messages);
  if (ReadUsualMessage(body)) return Step::kMessage;
  message_ = {};
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t manifest = 0;
  absl::Status read = ReadFields(body, "a message", [&](const Field& field) -> absl::Status {
    if (field.number == 1 && IsNumber(field)) to = field.value;
    if (field.number == 2 && IsNumber(field)) from = field.value;
    if (field.number == 3 && IsNumber(field)) manifest = field.value;
    if (field.number == 4 && IsText(field)) message_.payload = field.text;
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  if (to == 0 || to > refs_ || from > refs_ || manifest == 0 || manifest > manifests_) {
    return MalformedFrame(absl::StrCat("a batch with a message to ", to, " from ", from, " of manifest ", manifest,
                                       ", where there are ", refs_, " references and ", manifests_, " manifests"));
  }
  message_.to = static_cast<uint32_t>(to);
  message_.from = static_cast<uint32_t>(from);
  message_.manifest = static_cast<uint32_t>(manifest);
  return Step::kMessage;
}

}  // namespace fraktor::inline v0
