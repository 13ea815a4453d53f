#include "fraktor/persistence/journal/event_record.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

enum Flag : uint8_t {
  kHasWriter = 1,
  kHasTags = 2,
  kHasMetadata = 4,
};

size_t TagBytes(const PersistentRepr& event) {
  size_t bytes = 0;
  for (const std::string& tag : event.tags) bytes += SizedBytes(tag.size());
  return bytes;
}

// As PutBody writes it.
size_t BodyBytes(const PersistentRepr& event) {
  size_t bytes = 2 + sizeof(uint64_t) + VarintBytes(event.epoch) + VarintBytes(event.manifest_version) +
                 SizedBytes(event.manifest.size()) + event.payload.size();
  if (!event.writer.is_none()) bytes += 2 * sizeof(uint64_t);
  if (!event.tags.empty()) bytes += VarintBytes(event.tags.size()) + SizedBytes(TagBytes(event));
  if (!event.metadata.empty()) bytes += SizedBytes(event.metadata.size());
  return bytes;
}

char* PutBody(const PersistentRepr& event, char* at) {
  uint8_t flags = 0;
  if (!event.writer.is_none()) flags |= kHasWriter;
  if (!event.tags.empty()) flags |= kHasTags;
  if (!event.metadata.empty()) flags |= kHasMetadata;
  *at++ = static_cast<char>(kRecordVersion);
  *at++ = static_cast<char>(flags);
  at = PutFixed64(at, static_cast<uint64_t>(absl::ToUnixNanos(event.timestamp)));
  at = PutVarint(at, event.epoch);
  if (!event.writer.is_none()) at = PutFixed64(PutFixed64(at, event.writer.high), event.writer.low);
  at = PutSized(PutVarint(at, event.manifest_version), event.manifest);
  if (!event.tags.empty()) {
    at = PutVarint(PutVarint(at, event.tags.size()), TagBytes(event));
    for (const std::string& tag : event.tags) at = PutSized(at, tag);
  }
  if (!event.metadata.empty()) at = PutSized(at, event.metadata);
  return PutBytes(at, event.payload);
}

}  // namespace

std::string IdPrefix(std::string_view persistence_id) {
  std::string prefix;
  prefix.reserve(persistence_id.size() + 10);
  AppendSorted16(prefix, static_cast<uint16_t>(persistence_id.size()));
  prefix.append(persistence_id);
  return prefix;
}

std::string EventKey(std::string_view persistence_id, uint64_t sequence_nr) {
  std::string key = IdPrefix(persistence_id);
  AppendSorted64(key, sequence_nr);
  return key;
}

bool ParseEventKey(std::string_view key, std::string_view& persistence_id, uint64_t& sequence_nr) {
  ByteReader reader(key);
  persistence_id = reader.Take(reader.Sorted16());
  sequence_nr = reader.Sorted64();
  return reader.ok() && reader.rest().empty();
}

uint32_t ExtendEventKeyCrc(uint32_t prefix_crc, uint64_t sequence_nr) {
  char number[8];
  PutSorted64(number, sequence_nr);
  return ExtendCrc32c(prefix_crc, std::string_view(number, sizeof(number)));
}

uint32_t EventKeyCrc(std::string_view persistence_id, uint64_t sequence_nr) {
  return ExtendEventKeyCrc(ExtendCrc32c(0, IdPrefix(persistence_id)), sequence_nr);
}

void AppendEventBody(const PersistentRepr& event, std::string& record) {
  const size_t begin = record.size();
  record.resize(begin + BodyBytes(event));
  PutBody(event, record.data() + begin);
}

size_t EventRecordBytes(const PersistentRepr& event) { return BodyBytes(event) + kRecordTrailerBytes; }

void WriteEventRecord(const PersistentRepr& event, uint32_t key_crc, uint64_t offset, char* record) {
  char* const end = PutFixed64(PutBody(event, record), offset);
  PutFixed32(end, ExtendCrc32c(key_crc, std::string_view(record, static_cast<size_t>(end - record))));
}

void WriteTrustedRecord(const PersistentRepr& event, uint64_t offset, char* record) {
  PutFixed32(PutFixed64(PutBody(event, record), offset), 0);
}

void SealRecord(uint32_t key_crc, uint64_t offset, std::string& record, size_t begin) {
  AppendFixed64(record, offset);
  AppendFixed32(record, ExtendCrc32c(key_crc, std::string_view(record).substr(begin)));
}

std::string_view BodyOfRecord(std::string_view record) {
  return record.size() < kRecordTrailerBytes ? std::string_view()
                                             : record.substr(0, record.size() - kRecordTrailerBytes);
}

RecordProblem DecodeEventRecord(uint32_t key_crc, std::string_view record, StoredEvent& event) {
  if (record.size() < kRecordTrailerBytes + 2) return RecordProblem::kChecksum;
  const std::string_view covered = record.substr(0, record.size() - 4);
  if (ExtendCrc32c(key_crc, covered) != LoadFixed32(record.data() + covered.size())) return RecordProblem::kChecksum;
  return DecodeTrustedRecord(record, event);
}

RecordProblem DecodeTrustedRecord(std::string_view record, StoredEvent& event) {
  if (record.size() < kRecordTrailerBytes + 2) return RecordProblem::kChecksum;
  ByteReader reader(BodyOfRecord(record));
  if (reader.Byte() > kRecordVersion) return RecordProblem::kNewer;
  const uint8_t flags = reader.Byte();
  event.timestamp_ns = static_cast<int64_t>(reader.Fixed64());
  event.epoch = reader.Varint();
  event.writer = {};
  if ((flags & kHasWriter) != 0) {
    event.writer.high = reader.Fixed64();
    event.writer.low = reader.Fixed64();
  }
  event.manifest_version = static_cast<uint32_t>(reader.Varint());
  event.manifest = reader.Sized();
  event.tag_count = (flags & kHasTags) != 0 ? static_cast<uint32_t>(reader.Varint()) : 0;
  event.tag_bytes = (flags & kHasTags) != 0 ? reader.Sized() : std::string_view();
  event.metadata = (flags & kHasMetadata) != 0 ? reader.Sized() : std::string_view();
  event.payload = reader.rest();
  event.offset = LoadFixed64(record.data() + record.size() - kRecordTrailerBytes);
  return reader.ok() ? RecordProblem::kNone : RecordProblem::kChecksum;
}

absl::Status RecordError(RecordProblem problem, std::string_view persistence_id, uint64_t sequence_nr,
                         std::string_view record) {
  if (problem == RecordProblem::kNone) return absl::OkStatus();
  if (problem == RecordProblem::kNewer) {
    return EventError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kNewerSchema, persistence_id,
                      sequence_nr,
                      absl::StrCat("its record has version ", static_cast<int>(static_cast<uint8_t>(record[0])),
                                   "; this program knows versions up to ", static_cast<int>(kRecordVersion),
                                   ". Read it with the newer program that wrote it"));
  }
  return EventError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, persistence_id, sequence_nr,
                    absl::StrCat("its record of ", record.size(),
                                 " bytes has a wrong checksum. Restore it from a backup; `journal verify` lists all "
                                 "that are damaged, and `journal export --skip-corrupt` saves the others"));
}

}  // namespace fraktor::inline v0
