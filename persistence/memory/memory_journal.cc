#include "fraktor/persistence/memory/memory_journal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/delayed.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/memory/memory_disk.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {
namespace {

// What a frame on the disk is made of.
enum Change : uint8_t {
  kOpened = 1,  // by Open: counts
  kEvent = 2,   // id, number, record
  kState = 3,   // id, epoch, deleted_to
};

// A frame has a length and a checksum before it, an event some numbers beside its bytes.
constexpr size_t kFrameHeaderBytes = 8;
constexpr size_t kMaxEventOverhead = 128;

void AppendEventChange(std::string& frame, std::string_view id, uint64_t sequence_nr, std::string_view record) {
  frame.push_back(static_cast<char>(kEvent));
  AppendSized(frame, id);
  AppendVarint(frame, sequence_nr);
  AppendSized(frame, record);
}

void AppendStateChange(std::string& frame, std::string_view id, const IdState& state) {
  frame.push_back(static_cast<char>(kState));
  AppendSized(frame, id);
  AppendVarint(frame, state.epoch);
  AppendVarint(frame, state.deleted_to);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryJournal>> MemoryJournal::Open(const MemoryJournalOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckJournalLimits(options.limits));
  if (options.min_delay < absl::ZeroDuration() || options.max_delay < options.min_delay) {
    return absl::InvalidArgumentError(
        absl::StrCat("MemoryJournalOptions: delays from ", absl::FormatDuration(options.min_delay), " to ",
                     absl::FormatDuration(options.max_delay), "; the first must not be negative nor above the second"));
  }
  if (options.max_delay > absl::ZeroDuration() && options.toolbox == nullptr) {
    return absl::InvalidArgumentError("MemoryJournalOptions: a delay needs a toolbox");
  }
  auto journal = absl::WrapUnique(new MemoryJournal(options));
  if (options.disk != nullptr) journal->LoadDisk();
  MutexLock lock(journal->mutex_);
  ++journal->opens_;
  FRAKTOR_RETURN_IF_ERROR(journal->CommitFrame(std::string(1, static_cast<char>(kOpened))));
  journal->next_offset_ = journal->opens_ << 40 | 1;
  return journal;
}

MemoryJournal::MemoryJournal(const MemoryJournalOptions& options)
    : options_(options),
      board_(options.max_live_queries),
      random_(options.toolbox == nullptr ? Random(1) : options.toolbox->MakeRandom(options.random_stream)) {}

template <class T>
Future<T> MemoryJournal::Answer(FutureResult<T> result) {
  if (options_.toolbox == nullptr) return MakeReadyFuture<T>(std::move(result));
  absl::Duration delay;
  {
    MutexLock lock(mutex_);
    delay = random_.UniformDuration(options_.min_delay, options_.max_delay);
  }
  return ReadyAfter<T>(options_.toolbox, delay, std::move(result));
}

void MemoryJournal::LoadDisk() {
  MutexLock lock(mutex_);
  const std::string contents = options_.disk->contents();
  std::string_view rest = contents;
  while (!rest.empty()) {
    ByteReader reader(rest);
    const uint32_t size = reader.Fixed32();
    const uint32_t crc = reader.Fixed32();
    const std::string_view frame = reader.Take(size);
    if (!reader.ok() || ExtendCrc32c(0, frame) != crc || !ApplyFrame(frame)) break;
    rest = reader.rest();
  }
  dropped_bytes_ = rest.size();
  options_.disk->Truncate(contents.size() - rest.size());
}

bool MemoryJournal::ApplyFrame(std::string_view frame) {
  Advances ignored;
  ByteReader reader(frame);
  while (reader.ok() && !reader.rest().empty()) {
    switch (reader.Byte()) {
      case kOpened:
        next_offset_ = ++opens_ << 40 | 1;
        break;
      case kEvent: {
        const std::string persistence_id(reader.Sized());
        const uint64_t sequence_nr = reader.Varint();
        const std::string_view record = reader.Sized();
        StoredEvent event;
        if (DecodeEventRecord(EventKeyCrc(persistence_id, sequence_nr), record, event) != RecordProblem::kNone) {
          return false;
        }
        Id& id = Find(persistence_id, ignored);
        id.state.highest_sequence_nr = sequence_nr;
        id.records.push_back({sequence_nr, std::string(record)});
        for (const std::string_view tag : event.tags()) {
          tags_[std::string(tag)].push_back({event.offset, persistence_id, sequence_nr});
        }
        next_offset_ = event.offset + 1;
        break;
      }
      case kState: {
        Id& id = Find(std::string(reader.Sized()), ignored);
        id.state.epoch = reader.Varint();
        id.state.deleted_to = reader.Varint();
        DeleteRecords(id);
        break;
      }
      default:
        return false;
    }
  }
  return reader.ok();
}

absl::Status MemoryJournal::CommitFrame(const std::string& frame) {
  if (options_.disk == nullptr || frame.empty()) return absl::OkStatus();
  std::string bytes;
  bytes.reserve(frame.size() + kFrameHeaderBytes);
  AppendFixed32(bytes, static_cast<uint32_t>(frame.size()));
  AppendFixed32(bytes, ExtendCrc32c(0, frame));
  bytes.append(frame);
  FRAKTOR_RETURN_IF_ERROR(options_.disk->Append(bytes));
  if (options_.sync) options_.disk->Sync();
  return absl::OkStatus();
}

absl::Status MemoryJournal::CheckOpen() const {
  return closed_ ? ClosedError("the journal in memory") : absl::OkStatus();
}

MemoryJournal::Id& MemoryJournal::Find(const std::string& persistence_id, Advances& advances) {
  const auto [found, is_new] = ids_.try_emplace(persistence_id);
  if (is_new) {
    found->second.prefix_crc = ExtendCrc32c(0, IdPrefix(persistence_id));
    ids_by_offset_.emplace_back(next_offset_, persistence_id);
    advances.emplace_back(JournalSubject::OfAllIds(), next_offset_);
    ++next_offset_;
  }
  return found->second;
}

void MemoryJournal::DeleteRecords(Id& id) {
  while (!id.records.empty() && id.records.front().sequence_nr <= id.state.deleted_to) {
    // The front of a tag's entries goes with the event; one in the middle is skipped by readers until it is the front.
    id.records.pop_front();
  }
}

Future<WriterOpened> MemoryJournal::OpenWriter(std::string persistence_id, std::optional<uint64_t> token) {
  return Answer<WriterOpened>(OpenWriterNow(persistence_id, token));
}

absl::StatusOr<WriterOpened> MemoryJournal::OpenWriterNow(const std::string& persistence_id,
                                                          std::optional<uint64_t> token) {
  FRAKTOR_RETURN_IF_ERROR(CheckPersistenceId(options_.limits, persistence_id));
  Advances advances;
  WriterOpened opened;
  {
    MutexLock lock(mutex_);
    FRAKTOR_RETURN_IF_ERROR(CheckOpen());
    const auto found = ids_.find(persistence_id);
    IdState state = found == ids_.end() ? IdState() : found->second.state;
    FRAKTOR_ASSIGN_OR_RETURN(state.epoch, NextEpoch(persistence_id, state.epoch, token));
    std::string frame;
    AppendStateChange(frame, persistence_id, state);
    FRAKTOR_RETURN_IF_ERROR(CommitFrame(frame));
    Find(persistence_id, advances).state.epoch = state.epoch;
    opened = {.epoch = state.epoch, .highest_sequence_nr = state.highest_sequence_nr};
  }
  Publish(advances);
  return opened;
}

Future<WriteResults> MemoryJournal::Write(std::vector<AtomicWrite> writes) {
  return Answer<WriteResults>(WriteNow(writes));
}

absl::StatusOr<WriteResults> MemoryJournal::WriteNow(const std::vector<AtomicWrite>& writes) {
  WriteResults results;
  Advances advances;
  {
    MutexLock lock(mutex_);
    FRAKTOR_RETURN_IF_ERROR(CheckOpen());
    if (options_.disk != nullptr) {
      // Asked before anything changes: a frame that did not fit would have to be taken back.
      size_t bytes = kFrameHeaderBytes;
      for (const AtomicWrite& write : writes) {
        for (const PersistentRepr& event : write.events()) {
          bytes += event.ByteSize() + event.persistence_id.size() + kMaxEventOverhead + 10 * event.tags.size();
        }
      }
      if (!options_.disk->HasRoom(bytes)) {
        return MakeError(
            absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
            absl::StrCat("the memory disk has no room for ", writes.size(), " atomic writes (", bytes,
                         " bytes), the first to \"", writes.empty() ? "" : writes[0].persistence_id(), "\" at ",
                         writes.empty() ? 0 : writes[0].lowest_sequence_nr(), "; raise its capacity"));
      }
    }
    std::string frame;
    for (size_t i = 0; i < writes.size(); ++i) {
      const absl::Status result = WriteOne(writes[i], frame, advances);
      if (!result.ok() && results.empty()) results.resize(writes.size());
      if (!result.ok()) results[i] = result;
    }
    FRAKTOR_RETURN_IF_ERROR(CommitFrame(frame));
  }
  Publish(advances);
  return results;
}

absl::Status MemoryJournal::WriteOne(const AtomicWrite& write, std::string& frame, Advances& advances) {
  FRAKTOR_RETURN_IF_ERROR(CheckAtomicWrite(options_.limits, write));
  const auto found = ids_.find(write.persistence_id());
  const IdState state = found == ids_.end() ? IdState() : found->second.state;
  FRAKTOR_RETURN_IF_ERROR(CheckWriter(state, write));
  if (write.lowest_sequence_nr() <= state.highest_sequence_nr) {
    return IsStored(found->second, write) ? absl::OkStatus() : SequenceMismatch(state, write);
  }
  Id& id = found == ids_.end() ? Find(write.persistence_id(), advances) : found->second;
  for (const PersistentRepr& event : write.events()) {
    const uint64_t offset = next_offset_++;
    std::string record;
    record.reserve(event.ByteSize() + 64);
    AppendEventBody(event, record);
    SealRecord(ExtendEventKeyCrc(id.prefix_crc, event.sequence_nr), offset, record);
    if (options_.disk != nullptr) AppendEventChange(frame, event.persistence_id, event.sequence_nr, record);
    id.records.push_back({event.sequence_nr, std::move(record)});
    for (const std::string& tag : event.tags) {
      tags_[tag].push_back({offset, event.persistence_id, event.sequence_nr});
      advances.emplace_back(JournalSubject::OfTag(tag), offset);
    }
  }
  id.state.highest_sequence_nr = write.highest_sequence_nr();
  if (board_.HasWaiters()) {
    advances.emplace_back(JournalSubject::OfId(write.persistence_id()), write.highest_sequence_nr());
  }
  return absl::OkStatus();
}

bool MemoryJournal::IsStored(const Id& id, const AtomicWrite& write) {
  std::string body;
  for (const PersistentRepr& event : write.events()) {
    const auto found =
        std::lower_bound(id.records.begin(), id.records.end(), event.sequence_nr,
                         [](const StoredRecord& record, uint64_t number) { return record.sequence_nr < number; });
    if (found == id.records.end() || found->sequence_nr != event.sequence_nr) return false;
    body.clear();
    AppendEventBody(event, body);
    if (BodyOfRecord(found->bytes) != body) return false;
  }
  return true;
}

void MemoryJournal::Publish(const Advances& advances) {
  if (advances.empty() || !board_.HasWaiters()) return;
  for (const auto& [subject, number] : advances) board_.Publish(subject, number);
}

Future<EventBatch> MemoryJournal::Replay(ReplayPage page) { return Answer<EventBatch>(ReplayNow(page)); }

absl::StatusOr<EventBatch> MemoryJournal::ReplayNow(const ReplayPage& page) {
  FRAKTOR_RETURN_IF_ERROR(CheckPersistenceId(options_.limits, page.persistence_id));
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  EventBatch batch;
  batch.Finish(page.from_sequence_nr, true);
  const auto found = ids_.find(page.persistence_id);
  if (found == ids_.end()) return batch;
  const std::deque<StoredRecord>& records = found->second.records;
  auto next = std::lower_bound(records.begin(), records.end(), page.from_sequence_nr,
                               [](const StoredRecord& record, uint64_t number) { return record.sequence_nr < number; });
  const uint32_t prefix_crc = found->second.prefix_crc;
  StoredEvent event;
  event.persistence_id = batch.Keep(page.persistence_id);
  for (; next != records.end() && next->sequence_nr <= page.to_sequence_nr; ++next) {
    if (page.limits.ReachedBy(batch)) {
      batch.Finish(next->sequence_nr, false);
      return batch;
    }
    event.sequence_nr = next->sequence_nr;
    const RecordProblem problem =
        DecodeEventRecord(ExtendEventKeyCrc(prefix_crc, next->sequence_nr), batch.Keep(next->bytes), event);
    FRAKTOR_RETURN_IF_ERROR(RecordError(problem, page.persistence_id, next->sequence_nr, next->bytes));
    batch.Add(event);
  }
  batch.Finish(batch.empty() ? page.from_sequence_nr : batch.back().sequence_nr + 1, true);
  return batch;
}

Future<uint64_t> MemoryJournal::HighestSequenceNr(std::string persistence_id) {
  return Answer<uint64_t>(HighestNow(persistence_id));
}

absl::StatusOr<uint64_t> MemoryJournal::HighestNow(const std::string& persistence_id) {
  FRAKTOR_RETURN_IF_ERROR(CheckPersistenceId(options_.limits, persistence_id));
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  const auto found = ids_.find(persistence_id);
  return found == ids_.end() ? 0 : found->second.state.highest_sequence_nr;
}

Future<void> MemoryJournal::DeleteTo(std::string persistence_id, uint64_t to_sequence_nr) {
  return Answer<void>(DeleteToNow(persistence_id, to_sequence_nr));
}

absl::Status MemoryJournal::DeleteToNow(const std::string& persistence_id, uint64_t to_sequence_nr) {
  FRAKTOR_RETURN_IF_ERROR(CheckPersistenceId(options_.limits, persistence_id));
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  const auto found = ids_.find(persistence_id);
  if (found == ids_.end()) return absl::OkStatus();
  IdState state = found->second.state;
  state.deleted_to = std::max(state.deleted_to, std::min(to_sequence_nr, state.highest_sequence_nr));
  if (state.deleted_to == found->second.state.deleted_to) return absl::OkStatus();
  std::string frame;
  AppendStateChange(frame, persistence_id, state);
  FRAKTOR_RETURN_IF_ERROR(CommitFrame(frame));
  found->second.state = state;
  DeleteRecords(found->second);
  return absl::OkStatus();
}

Future<EventBatch> MemoryJournal::EventsByTag(TagPage page) { return Answer<EventBatch>(EventsByTagNow(page)); }

absl::StatusOr<EventBatch> MemoryJournal::EventsByTagNow(const TagPage& page) {
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  EventBatch batch;
  batch.Finish(page.from_offset, true);
  const auto found = tags_.find(page.tag);
  if (found == tags_.end()) return batch;
  std::deque<TagEntry>& entries = found->second;
  const auto is_deleted = [this](const TagEntry& entry) {
    mutex_.AssertHeld();
    return ids_.at(entry.persistence_id).state.deleted_to >= entry.sequence_nr;
  };
  while (!entries.empty() && is_deleted(entries.front())) entries.pop_front();
  auto next = std::lower_bound(entries.begin(), entries.end(), page.from_offset,
                               [](const TagEntry& entry, uint64_t offset) { return entry.offset < offset; });
  uint64_t resume_at = page.from_offset;
  for (; next != entries.end() && next->offset <= page.to_offset; ++next) {
    if (page.limits.ReachedBy(batch)) {
      batch.Finish(next->offset, false);
      return batch;
    }
    resume_at = next->offset + 1;
    if (is_deleted(*next)) continue;
    const std::deque<StoredRecord>& records = ids_.at(next->persistence_id).records;
    const auto record =
        std::lower_bound(records.begin(), records.end(), next->sequence_nr,
                         [](const StoredRecord& candidate, uint64_t number) { return candidate.sequence_nr < number; });
    StoredEvent event;
    event.persistence_id = batch.Keep(next->persistence_id);
    event.sequence_nr = next->sequence_nr;
    const RecordProblem problem =
        DecodeEventRecord(EventKeyCrc(next->persistence_id, next->sequence_nr), batch.Keep(record->bytes), event);
    FRAKTOR_RETURN_IF_ERROR(RecordError(problem, next->persistence_id, next->sequence_nr, record->bytes));
    batch.Add(event);
  }
  batch.Finish(resume_at, true);
  return batch;
}

Future<IdBatch> MemoryJournal::PersistenceIds(IdPage page) { return Answer<IdBatch>(PersistenceIdsNow(page)); }

absl::StatusOr<IdBatch> MemoryJournal::PersistenceIdsNow(const IdPage& page) {
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  IdBatch batch;
  batch.resume_at = page.from_offset;
  auto next = std::lower_bound(ids_by_offset_.begin(), ids_by_offset_.end(), page.from_offset,
                               [](const auto& entry, uint64_t offset) { return entry.first < offset; });
  for (; next != ids_by_offset_.end(); ++next) {
    if (batch.ids.size() >= page.max_ids) {
      batch.at_end = false;
      break;
    }
    batch.ids.push_back(next->second);
    batch.resume_at = next->first + 1;
  }
  return batch;
}

uint64_t MemoryJournal::NumberOf(const JournalSubject& subject) {
  MutexLock lock(mutex_);
  switch (subject.kind) {
    case JournalSubject::Kind::kId: {
      const auto found = ids_.find(subject.name);
      return found == ids_.end() ? 0 : found->second.state.highest_sequence_nr;
    }
    case JournalSubject::Kind::kTag: {
      const auto found = tags_.find(subject.name);
      return found == tags_.end() || found->second.empty() ? 0 : found->second.back().offset;
    }
    case JournalSubject::Kind::kAllIds:
      return ids_by_offset_.empty() ? 0 : ids_by_offset_.back().first;
  }
  return 0;
}

Future<uint64_t> MemoryJournal::AwaitAdvance(JournalSubject subject, uint64_t after) {
  Future<uint64_t> advance = board_.Wait(subject, after);
  // What came before the wait.
  board_.Publish(subject, NumberOf(subject));
  return advance;
}

Future<void> MemoryJournal::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    if (options_.disk != nullptr) options_.disk->Sync();
  }
  board_.Close(ClosedError("the journal in memory"));
  return MakeReadyFuture();
}

}  // namespace fraktor::inline v0
