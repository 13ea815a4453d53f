#include "fraktor/persistence/protocol/protocol_codecs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

// An event on its way to the journal. Each event repeats what all events of an atomic write share:
// so the bytes of a message bound the memory that its sender can make the receiver take.
void EncodeRepr(const PersistentRepr& event, Encoder& out) {
  out.Value(event.persistence_id);
  out.Value(event.sequence_nr);
  out.Fixed64(event.writer.high);
  out.Fixed64(event.writer.low);
  out.Value(event.epoch);
  out.Value(event.timestamp);
  out.Value(event.manifest);
  out.Value(event.manifest_version);
  out.Value(event.payload);
  out.Value(event.tags);
  out.Value(event.metadata);
}

// Id, number, writer, epoch, time, manifest, version, payload, tags, metadata.
constexpr size_t kMinReprBytes = 25;

PersistentRepr DecodeRepr(Decoder& in) {
  PersistentRepr event;
  event.persistence_id = in.Value<std::string>();
  event.sequence_nr = in.Value<uint64_t>();
  event.writer.high = in.Fixed64();
  event.writer.low = in.Fixed64();
  event.epoch = in.Value<uint64_t>();
  event.timestamp = in.Value<absl::Time>();
  event.manifest = in.Value<std::string>();
  event.manifest_version = in.Value<uint32_t>();
  event.payload = in.Value<std::string>();
  event.tags = in.Value<std::vector<std::string>>();
  event.metadata = in.Value<std::string>();
  return event;
}

void EncodeWrites(const AtomicWrites& writes, Encoder& out) {
  out.Varint(writes.size());
  for (const AtomicWrite& write : writes) {
    out.Varint(write.events().size());
    for (const PersistentRepr& event : write.events()) EncodeRepr(event, out);
  }
}

AtomicWrites DecodeWrites(Decoder& in) {
  AtomicWrites writes;
  const size_t count = in.Count(1 + kMinReprBytes);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    AtomicWrite::Events events;
    const size_t event_count = in.Count(kMinReprBytes);
    for (size_t j = 0; j < event_count && in.ok(); ++j) events.push_back(DecodeRepr(in));
    if (!in.ok()) break;
    absl::StatusOr<AtomicWrite> write = AtomicWrite::Make(std::move(events));
    if (write.ok()) {
      writes.push_back(*std::move(write));
    } else {
      in.Fail(write.status());
    }
  }
  return writes;
}

// AtomicWrite::known_stored on the wire: an entry among the deferred ones, for the writes from its
// position on. Journals of older nodes do not know the number. They answer the entry like any
// other, with a LoopMessageSuccess whose token no persistent actor waits for. So the format has not
// changed, and both kinds of nodes read it. A writer of an older node sends no such entry: its
// writes are taken without the check.
constexpr uint64_t kKnownStoredMark = uint64_t{1} << 63;

std::vector<DeferredEntry> WithKnownStored(const WriteMessages& request) {
  std::vector<DeferredEntry> entries;
  auto next = request.deferred.begin();
  uint64_t known = 0;
  for (size_t i = 0; i < request.writes.size(); ++i) {
    while (next != request.deferred.end() && next->position < i) entries.push_back(*next++);
    // A lower number is true as well.
    const uint64_t its = std::min(request.writes[i].known_stored(), kKnownStoredMark - 1);
    if (its == known) continue;
    known = its;
    entries.push_back({.position = i, .token = kKnownStoredMark | known});
  }
  entries.insert(entries.end(), next, request.deferred.end());
  return entries;
}

void TakeKnownStored(WriteMessages& request) {
  uint64_t known = 0;
  auto next = request.deferred.begin();
  for (size_t i = 0; i < request.writes.size(); ++i) {
    for (; next != request.deferred.end() && next->position <= i; ++next) {
      if ((next->token & kKnownStoredMark) != 0) known = next->token & ~kKnownStoredMark;
    }
    request.writes[i].set_known_stored(known);
  }
  std::erase_if(request.deferred, [](const DeferredEntry& entry) { return (entry.token & kKnownStoredMark) != 0; });
}

// RecoverySuccess::last_sent_nr on the wire. A client asks for it by a mark in the highest number
// of ReplayMessages. A journal on an older node takes the mark for a part of the number, replays up
// to its last event, and returns the number with the mark, which the client removes. A journal
// sends the last number only to a client that asks. So the format has not changed for older nodes.
constexpr uint64_t kAsksForLastSentMark = uint64_t{1} << 63;
constexpr uint64_t kHasLastSentMark = uint64_t{1} << 62;

// Events on their way back: one piece of bytes, which the batch keeps and its views point into.
void AppendStored(const StoredEvent& event, bool has_same_id, std::string& bytes) {
  // The id of the one before: the usual case.
  bytes.push_back(has_same_id ? '\1' : '\0');
  if (!has_same_id) AppendSized(bytes, event.persistence_id);
  AppendVarint(bytes, event.sequence_nr);
  AppendVarint(bytes, event.offset);
  AppendVarint(bytes, event.epoch);
  AppendFixed64(bytes, event.writer.high);
  AppendFixed64(bytes, event.writer.low);
  AppendFixed64(bytes, static_cast<uint64_t>(event.timestamp_ns));
  AppendVarint(bytes, event.manifest_version);
  AppendVarint(bytes, event.tag_count);
  AppendSized(bytes, event.manifest);
  AppendSized(bytes, event.payload);
  AppendSized(bytes, event.metadata);
  AppendSized(bytes, event.tag_bytes);
}

bool HasTags(std::string_view bytes, uint64_t count) {
  // Each has a length, so a wrong count is found out before anybody reserves room for so many.
  if (count > bytes.size()) return false;
  ByteReader reader(bytes);
  for (uint64_t i = 0; i < count; ++i) reader.Sized();
  return reader.ok() && reader.rest().empty();
}

bool ReadStored(ByteReader& reader, StoredEvent& event) {
  const uint8_t has_same_id = reader.Byte();
  if (has_same_id > 1) return false;
  if (has_same_id == 0) event.persistence_id = reader.Sized();
  event.sequence_nr = reader.Varint();
  event.offset = reader.Varint();
  event.epoch = reader.Varint();
  event.writer.high = reader.Fixed64();
  event.writer.low = reader.Fixed64();
  event.timestamp_ns = static_cast<int64_t>(reader.Fixed64());
  const uint64_t version = reader.Varint();
  const uint64_t tag_count = reader.Varint();
  event.manifest_version = static_cast<uint32_t>(version);
  event.tag_count = static_cast<uint32_t>(tag_count);
  event.manifest = reader.Sized();
  event.payload = reader.Sized();
  event.metadata = reader.Sized();
  event.tag_bytes = reader.Sized();
  return reader.ok() && event.manifest_version == version && HasTags(event.tag_bytes, tag_count);
}

// The flag, three numbers, writer and time, two more, four lengths.
constexpr size_t kMinStoredBytes = 34;

void EncodeBatch(const EventBatch& batch, Encoder& out) {
  std::string bytes;
  bytes.reserve(batch.byte_size() + batch.size() * kMinStoredBytes);
  std::string_view last_id;
  for (const StoredEvent& event : batch) {
    const bool is_first = bytes.empty();
    AppendStored(event, !is_first && event.persistence_id == last_id, bytes);
    last_id = event.persistence_id;
  }
  out.Value(batch.at_end());
  out.Varint(batch.resume_at());
  out.Varint(batch.size());
  out.Bytes(bytes);
}

EventBatch DecodeBatch(Decoder& in) {
  EventBatch batch;
  const bool at_end = in.Bool();
  const uint64_t resume_at = in.Varint();
  const size_t count = in.Count(kMinStoredBytes);
  const std::string_view bytes = in.Bytes();
  if (!in.ok()) return batch;
  batch.Finish(resume_at, at_end);
  batch.Reserve(count);
  ByteReader reader(batch.Keep(bytes));
  // Also the id of the one before.
  StoredEvent event;
  for (size_t i = 0; i < count; ++i) {
    if (!ReadStored(reader, event)) {
      in.Fail("an event that cannot be read");
      return {};
    }
    batch.Add(event);
  }
  if (!reader.rest().empty()) in.Fail("more events than it says");
  return batch;
}

}  // namespace

// Parts of messages.

template <>
struct Codec<DeferredEntry> : FieldCodec<DeferredEntry, &DeferredEntry::position, &DeferredEntry::token> {
  static constexpr std::string_view kManifest = "fraktor.persistence.deferred_entry";
};
template <>
struct Codec<PageLimits> : FieldCodec<PageLimits, &PageLimits::max_events, &PageLimits::max_bytes> {
  static constexpr std::string_view kManifest = "fraktor.persistence.page_limits";
};
template <>
struct Codec<SnapshotMetadata>
    : FieldCodec<SnapshotMetadata, &SnapshotMetadata::persistence_id, &SnapshotMetadata::sequence_nr,
                 &SnapshotMetadata::timestamp, &SnapshotMetadata::metadata> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot_metadata";
};
template <>
struct Codec<Snapshot>
    : FieldCodec<Snapshot, &Snapshot::metadata, &Snapshot::manifest, &Snapshot::manifest_version, &Snapshot::payload> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot";
};
template <>
struct Codec<SnapshotSelectionCriteria>
    : FieldCodec<SnapshotSelectionCriteria, &SnapshotSelectionCriteria::max_sequence_nr,
                 &SnapshotSelectionCriteria::max_timestamp, &SnapshotSelectionCriteria::min_sequence_nr,
                 &SnapshotSelectionCriteria::min_timestamp> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot_criteria";
};

// The version of requests that name the epoch of an owner. Version 0 had none: it is read as
// kNoEpoch.
constexpr uint32_t kVersionWithEpoch = 1;

// Requests to a journal.

template <>
struct Codec<OpenWriter> : FieldCodec<OpenWriter, &OpenWriter::persistence_id, &OpenWriter::token, &OpenWriter::client,
                                      &OpenWriter::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.open_writer";
};
template <>
struct Codec<WriteMessages> {
  static constexpr std::string_view kManifest = "fraktor.persistence.write";
  static void Encode(const WriteMessages& request, Encoder& out) {
    EncodeWrites(request.writes, out);
    out.Value(WithKnownStored(request));
    out.Value(request.client);
    out.Value(request.instance_id);
    out.Value(request.batch);
  }
  static WriteMessages Decode(Decoder& in) {
    WriteMessages request;
    request.writes = DecodeWrites(in);
    request.deferred = in.Value<std::vector<DeferredEntry>>();
    size_t lowest = 0;
    for (const DeferredEntry& entry : request.deferred) {
      if (entry.position < lowest || entry.position > request.writes.size()) in.Fail("deferred entries out of order");
      lowest = entry.position;
    }
    if (in.ok()) TakeKnownStored(request);
    request.client = in.Value<ActorRef>();
    request.instance_id = in.Value<uint64_t>();
    request.batch = in.Value<uint64_t>();
    return request;
  }
};
template <>
struct Codec<ReplayMessages> {
  static constexpr std::string_view kManifest = "fraktor.persistence.replay";
  static void Encode(const ReplayMessages& request, Encoder& out) {
    const bool asks = request.asks_for_last_sent && request.knows_highest;
    out.Value(request.persistence_id);
    out.Value(request.from_sequence_nr);
    out.Value(request.to_sequence_nr);
    out.Value(request.max_events);
    out.Value(request.limits);
    out.Value(request.knows_highest);
    out.Value(asks ? request.highest_sequence_nr | kAsksForLastSentMark : request.highest_sequence_nr);
    out.Value(request.client);
    out.Value(request.instance_id);
  }
  static ReplayMessages Decode(Decoder& in) {
    ReplayMessages request;
    request.persistence_id = in.Value<std::string>();
    request.from_sequence_nr = in.Value<uint64_t>();
    request.to_sequence_nr = in.Value<uint64_t>();
    request.max_events = in.Value<uint64_t>();
    request.limits = in.Value<PageLimits>();
    request.knows_highest = in.Value<bool>();
    const auto highest = in.Value<uint64_t>();
    request.asks_for_last_sent = request.knows_highest && (highest & kAsksForLastSentMark) != 0;
    request.highest_sequence_nr = request.asks_for_last_sent ? highest & ~kAsksForLastSentMark : highest;
    request.client = in.Value<ActorRef>();
    request.instance_id = in.Value<uint64_t>();
    return request;
  }
};
template <>
struct Codec<DeleteMessagesTo>
    : FieldCodec<DeleteMessagesTo, &DeleteMessagesTo::persistence_id, &DeleteMessagesTo::to_sequence_nr,
                 &DeleteMessagesTo::client, &DeleteMessagesTo::instance_id, &DeleteMessagesTo::epoch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete";
  static constexpr uint32_t kVersion = kVersionWithEpoch;
};
template <>
struct Codec<GetHighestSequenceNr> : FieldCodec<GetHighestSequenceNr, &GetHighestSequenceNr::persistence_id,
                                                &GetHighestSequenceNr::client, &GetHighestSequenceNr::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.get_highest";
};

// Answers of a journal.

template <>
struct Codec<WriterIsOpen> : FieldCodec<WriterIsOpen, &WriterIsOpen::epoch, &WriterIsOpen::highest_sequence_nr,
                                        &WriterIsOpen::instance_id, &WriterIsOpen::deleted_to> {
  static constexpr std::string_view kManifest = "fraktor.persistence.writer_is_open";
  // 0 did not have deleted_to.
  static constexpr uint32_t kVersion = 1;
};
template <>
struct Codec<OpenWriterFailure>
    : FieldCodec<OpenWriterFailure, &OpenWriterFailure::cause, &OpenWriterFailure::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.open_writer_failure";
};
template <>
struct Codec<WriteMessagesSuccessful>
    : FieldCodec<WriteMessagesSuccessful, &WriteMessagesSuccessful::instance_id, &WriteMessagesSuccessful::batch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.write_successful";
};
template <>
struct Codec<WriteMessagesFailed>
    : FieldCodec<WriteMessagesFailed, &WriteMessagesFailed::cause, &WriteMessagesFailed::write_count,
                 &WriteMessagesFailed::instance_id, &WriteMessagesFailed::batch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.write_failed";
};
template <>
struct Codec<WriteMessageSuccess> : FieldCodec<WriteMessageSuccess, &WriteMessageSuccess::sequence_nr,
                                               &WriteMessageSuccess::instance_id, &WriteMessageSuccess::batch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.event_stored";
};
template <>
struct Codec<WriteMessageRejected>
    : FieldCodec<WriteMessageRejected, &WriteMessageRejected::sequence_nr, &WriteMessageRejected::cause,
                 &WriteMessageRejected::instance_id, &WriteMessageRejected::batch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.event_rejected";
};
template <>
struct Codec<WriteMessageFailure>
    : FieldCodec<WriteMessageFailure, &WriteMessageFailure::sequence_nr, &WriteMessageFailure::cause,
                 &WriteMessageFailure::instance_id, &WriteMessageFailure::batch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.event_failed";
};
template <>
struct Codec<LoopMessageSuccess> : FieldCodec<LoopMessageSuccess, &LoopMessageSuccess::token,
                                              &LoopMessageSuccess::instance_id, &LoopMessageSuccess::batch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.looped";
};
template <>
struct Codec<ReplayedMessages> {
  static constexpr std::string_view kManifest = "fraktor.persistence.replayed";
  static void Encode(const ReplayedMessages& page, Encoder& out) {
    EncodeBatch(page.events, out);
    out.Value(page.is_last);
    out.Value(page.instance_id);
  }
  static ReplayedMessages Decode(Decoder& in) {
    ReplayedMessages page;
    page.events = DecodeBatch(in);
    page.is_last = in.Value<bool>();
    page.instance_id = in.Value<uint64_t>();
    return page;
  }
};
template <>
struct Codec<RecoverySuccess> {
  static constexpr std::string_view kManifest = "fraktor.persistence.recovery_success";
  static void Encode(const RecoverySuccess& success, Encoder& out) {
    const bool has_last = success.last_sent_nr.has_value();
    out.Value(has_last ? success.highest_sequence_nr | kHasLastSentMark : success.highest_sequence_nr);
    out.Value(success.instance_id);
    if (has_last) out.Value(*success.last_sent_nr);
  }
  static RecoverySuccess Decode(Decoder& in) {
    RecoverySuccess success;
    const auto highest = in.Value<uint64_t>();
    success.highest_sequence_nr = highest & ~(kAsksForLastSentMark | kHasLastSentMark);
    success.instance_id = in.Value<uint64_t>();
    if ((highest & kHasLastSentMark) != 0) success.last_sent_nr = in.Value<uint64_t>();
    return success;
  }
};
template <>
struct Codec<ReplayMessagesFailure>
    : FieldCodec<ReplayMessagesFailure, &ReplayMessagesFailure::cause, &ReplayMessagesFailure::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.replay_failure";
};
template <>
struct Codec<DeleteMessagesSuccess>
    : FieldCodec<DeleteMessagesSuccess, &DeleteMessagesSuccess::to_sequence_nr, &DeleteMessagesSuccess::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_success";
};
template <>
struct Codec<DeleteMessagesFailure>
    : FieldCodec<DeleteMessagesFailure, &DeleteMessagesFailure::cause, &DeleteMessagesFailure::to_sequence_nr,
                 &DeleteMessagesFailure::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_failure";
};
template <>
struct Codec<HighestSequenceNrSuccess>
    : FieldCodec<HighestSequenceNrSuccess, &HighestSequenceNrSuccess::highest_sequence_nr,
                 &HighestSequenceNrSuccess::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.highest_success";
};
template <>
struct Codec<HighestSequenceNrFailure>
    : FieldCodec<HighestSequenceNrFailure, &HighestSequenceNrFailure::cause, &HighestSequenceNrFailure::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.highest_failure";
};

// Requests to a snapshot store.

template <>
struct Codec<LoadSnapshot>
    : FieldCodec<LoadSnapshot, &LoadSnapshot::persistence_id, &LoadSnapshot::criteria, &LoadSnapshot::to_sequence_nr,
                 &LoadSnapshot::client, &LoadSnapshot::instance_id, &LoadSnapshot::epoch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.load_snapshot";
  static constexpr uint32_t kVersion = kVersionWithEpoch;
};
template <>
struct Codec<SaveSnapshot> : FieldCodec<SaveSnapshot, &SaveSnapshot::snapshot, &SaveSnapshot::client,
                                        &SaveSnapshot::instance_id, &SaveSnapshot::epoch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.save_snapshot";
  static constexpr uint32_t kVersion = kVersionWithEpoch;
};
template <>
struct Codec<DeleteSnapshot> : FieldCodec<DeleteSnapshot, &DeleteSnapshot::metadata, &DeleteSnapshot::client,
                                          &DeleteSnapshot::instance_id, &DeleteSnapshot::epoch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_snapshot";
  static constexpr uint32_t kVersion = kVersionWithEpoch;
};
template <>
struct Codec<DeleteSnapshots>
    : FieldCodec<DeleteSnapshots, &DeleteSnapshots::persistence_id, &DeleteSnapshots::criteria,
                 &DeleteSnapshots::client, &DeleteSnapshots::instance_id, &DeleteSnapshots::epoch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_snapshots";
  static constexpr uint32_t kVersion = kVersionWithEpoch;
};

// Large snapshots, in parts. A node of an older version has none of these manifests.

template <>
struct Codec<SnapshotTransferId>
    : FieldCodec<SnapshotTransferId, &SnapshotTransferId::sender, &SnapshotTransferId::number> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot_transfer";
};
template <>
struct Codec<SaveSnapshotPart>
    : FieldCodec<SaveSnapshotPart, &SaveSnapshotPart::transfer, &SaveSnapshotPart::offset,
                 &SaveSnapshotPart::total_bytes, &SaveSnapshotPart::bytes, &SaveSnapshotPart::head,
                 &SaveSnapshotPart::client, &SaveSnapshotPart::epoch> {
  static constexpr std::string_view kManifest = "fraktor.persistence.save_snapshot_part";
};
template <>
struct Codec<LoadSnapshotInParts>
    : FieldCodec<LoadSnapshotInParts, &LoadSnapshotInParts::request, &LoadSnapshotInParts::client,
                 &LoadSnapshotInParts::number, &LoadSnapshotInParts::max_bytes> {
  static constexpr std::string_view kManifest = "fraktor.persistence.load_snapshot_in_parts";
};
template <>
struct Codec<GetSnapshotPart>
    : FieldCodec<GetSnapshotPart, &GetSnapshotPart::metadata, &GetSnapshotPart::total_bytes, &GetSnapshotPart::offset,
                 &GetSnapshotPart::max_bytes, &GetSnapshotPart::client, &GetSnapshotPart::number> {
  static constexpr std::string_view kManifest = "fraktor.persistence.get_snapshot_part";
};
template <>
struct Codec<SnapshotPartsTaken> : FieldCodec<SnapshotPartsTaken, &SnapshotPartsTaken::transfer,
                                              &SnapshotPartsTaken::received_bytes, &SnapshotPartsTaken::has_room> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot_parts_taken";
};
template <>
struct Codec<SnapshotPartsSaved> : FieldCodec<SnapshotPartsSaved, &SnapshotPartsSaved::transfer,
                                              &SnapshotPartsSaved::cause, &SnapshotPartsSaved::metadata> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot_parts_saved";
};
template <>
struct Codec<LoadInPartsTaken> : FieldCodec<LoadInPartsTaken, &LoadInPartsTaken::number> {
  static constexpr std::string_view kManifest = "fraktor.persistence.load_in_parts_taken";
};
template <>
struct Codec<SnapshotOffer> : FieldCodec<SnapshotOffer, &SnapshotOffer::number, &SnapshotOffer::head,
                                         &SnapshotOffer::total_bytes, &SnapshotOffer::to_sequence_nr> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot_offer";
};
template <>
struct Codec<SnapshotPart> : FieldCodec<SnapshotPart, &SnapshotPart::number, &SnapshotPart::offset,
                                        &SnapshotPart::bytes, &SnapshotPart::cause> {
  static constexpr std::string_view kManifest = "fraktor.persistence.snapshot_part";
};

// Answers of a snapshot store.

template <>
struct Codec<LoadSnapshotResult>
    : FieldCodec<LoadSnapshotResult, &LoadSnapshotResult::found, &LoadSnapshotResult::snapshot,
                 &LoadSnapshotResult::to_sequence_nr, &LoadSnapshotResult::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.load_snapshot_result";
};
template <>
struct Codec<LoadSnapshotFailed>
    : FieldCodec<LoadSnapshotFailed, &LoadSnapshotFailed::cause, &LoadSnapshotFailed::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.load_snapshot_failed";
};
template <>
struct Codec<SaveSnapshotSuccess>
    : FieldCodec<SaveSnapshotSuccess, &SaveSnapshotSuccess::metadata, &SaveSnapshotSuccess::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.save_snapshot_success";
};
template <>
struct Codec<SaveSnapshotFailure> : FieldCodec<SaveSnapshotFailure, &SaveSnapshotFailure::metadata,
                                               &SaveSnapshotFailure::cause, &SaveSnapshotFailure::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.save_snapshot_failure";
};
template <>
struct Codec<DeleteSnapshotSuccess>
    : FieldCodec<DeleteSnapshotSuccess, &DeleteSnapshotSuccess::metadata, &DeleteSnapshotSuccess::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_snapshot_success";
};
template <>
struct Codec<DeleteSnapshotFailure> : FieldCodec<DeleteSnapshotFailure, &DeleteSnapshotFailure::metadata,
                                                 &DeleteSnapshotFailure::cause, &DeleteSnapshotFailure::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_snapshot_failure";
};
template <>
struct Codec<DeleteSnapshotsSuccess>
    : FieldCodec<DeleteSnapshotsSuccess, &DeleteSnapshotsSuccess::criteria, &DeleteSnapshotsSuccess::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_snapshots_success";
};
template <>
struct Codec<DeleteSnapshotsFailure>
    : FieldCodec<DeleteSnapshotsFailure, &DeleteSnapshotsFailure::criteria, &DeleteSnapshotsFailure::cause,
                 &DeleteSnapshotsFailure::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.delete_snapshots_failure";
};

const CodecSetup& ProtocolCodecs() {
  static const CodecSetup& codecs =
      (*new CodecSetup)
          .Add<OpenWriter, WriteMessages, ReplayMessages, DeleteMessagesTo, GetHighestSequenceNr>()
          .Add<WriterIsOpen, OpenWriterFailure, WriteMessagesSuccessful, WriteMessagesFailed, WriteMessageSuccess,
               WriteMessageRejected, WriteMessageFailure, LoopMessageSuccess>()
          .Add<ReplayedMessages, RecoverySuccess, ReplayMessagesFailure>()
          .Add<DeleteMessagesSuccess, DeleteMessagesFailure, HighestSequenceNrSuccess, HighestSequenceNrFailure>()
          .Add<LoadSnapshot, SaveSnapshot, DeleteSnapshot, DeleteSnapshots>()
          .Add<LoadSnapshotResult, LoadSnapshotFailed, SaveSnapshotSuccess, SaveSnapshotFailure>()
          .Add<DeleteSnapshotSuccess, DeleteSnapshotFailure, DeleteSnapshotsSuccess, DeleteSnapshotsFailure>()
          .Add<SaveSnapshotPart, LoadSnapshotInParts, GetSnapshotPart>()
          .Add<SnapshotPartsTaken, SnapshotPartsSaved, LoadInPartsTaken, SnapshotOffer, SnapshotPart>();
  return codecs;
}

}  // namespace fraktor::inline v0
