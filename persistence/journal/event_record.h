// How an event is stored: its key and its record.
//
//   std::string key = EventKey("account-7", 12);           // sorts by id, then number
//   std::string record;
//   AppendEventBody(event, record);
//   SealRecord(EventKeyCrc("account-7", 12), offset, record);
//   StoredEvent stored;
//   RecordProblem problem = DecodeEventRecord(EventKeyCrc("account-7", 12), record, stored);
//
// A record is: version byte, fields, offset, checksum. The checksum covers the key too, so that a
// record that has come under another key is found out. The body, which is everything before the
// offset, depends on the event alone: the same event sent twice has the same body.
//
// Thread safety: free functions.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_EVENT_RECORD_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_EVENT_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/persistent_repr.h"

namespace fraktor::inline v0 {

// The first byte of every record. Readers refuse a higher one.
inline constexpr uint8_t kRecordVersion = 1;
// Offset and checksum.
inline constexpr size_t kRecordTrailerBytes = 12;

// be16(length) | id: what all keys of one id begin with, and no key of another. The id has at most
// 65535 bytes.
std::string IdPrefix(std::string_view persistence_id);
std::string EventKey(std::string_view persistence_id, uint64_t sequence_nr);
// False unless `key` is one that EventKey makes.
bool ParseEventKey(std::string_view key, std::string_view& persistence_id, uint64_t& sequence_nr);

// The checksum of the key, which a record's checksum begins with: for one event, and for many of
// one prefix.
uint32_t EventKeyCrc(std::string_view persistence_id, uint64_t sequence_nr);
uint32_t ExtendEventKeyCrc(uint32_t prefix_crc, uint64_t sequence_nr);

// Appends the record without its trailer.
void AppendEventBody(const PersistentRepr& event, std::string& record);
// Appends the trailer to what AppendEventBody wrote from `begin` on.
void SealRecord(uint32_t key_crc, uint64_t offset, std::string& record, size_t begin = 0);
// The same at once, to where there is room for EventRecordBytes(event).
size_t EventRecordBytes(const PersistentRepr& event);
void WriteEventRecord(const PersistentRepr& event, uint32_t key_crc, uint64_t offset, char* record);
// The same for a record that stays in the memory of this process: it has room for a checksum, but
// none.
void WriteTrustedRecord(const PersistentRepr& event, uint64_t offset, char* record);
// The body of a whole record; empty if it is too short to be one.
std::string_view BodyOfRecord(std::string_view record);

enum class RecordProblem {
  kNone,
  kChecksum,  // not what was written
  kNewer,     // a version that this build does not know
};

// Reads a record into `event`, whose views point into `record`; does not touch its id and number.
RecordProblem DecodeEventRecord(uint32_t key_crc, std::string_view record, StoredEvent& event);
// The same without a look at the checksum.
RecordProblem DecodeTrustedRecord(std::string_view record, StoredEvent& event);

// The error for a record that could not be read: kCorrupt or kNewerSchema, with what to do.
absl::Status RecordError(RecordProblem problem, std::string_view persistence_id, uint64_t sequence_nr,
                         std::string_view record);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_EVENT_RECORD_H_
