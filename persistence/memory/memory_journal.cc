#include "fraktor/persistence/memory/memory_journal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
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
#include "fraktor/utils/strings/string_view.h"
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

// The first chunk of an id is small, for the many ids of few events; each further one is twice as
// large, up to the pool's.
constexpr size_t kFirstChunkBytes = size_t{1} << 10;

// Entries of a tag that are looked at before the index is asked again.
constexpr size_t kEntriesAtOnce = 256;

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
  ++journal->opens_;
  FRAKTOR_RETURN_IF_ERROR(journal->CommitFrame(std::string(1, static_cast<char>(kOpened))));
  journal->next_offset_.store(journal->opens_ << 40 | 1, std::memory_order_relaxed);
  return journal;
}

MemoryJournal::MemoryJournal(const MemoryJournalOptions& options)
    : options_(options),
      board_(options.max_live_queries),
      random_(options.toolbox == nullptr ? Random(1) : options.toolbox->MakeRandom(options.random_stream)) {}

char* MemoryJournal::Id::Add(uint64_t sequence_nr, size_t bytes, ChunkPool& pool) {
  if (bytes > free_bytes) {
    const size_t usual = kFirstChunkBytes << std::min<size_t>(chunks.size(), 16);
    Chunk& chunk = chunks.emplace_back();
    if (usual >= ChunkPool::kChunkBytes && bytes <= ChunkPool::kChunkBytes) {
      free_bytes = ChunkPool::kChunkBytes;
      chunk.large = pool.Take();
      free = chunk.large.get();
    } else {
      free_bytes = std::max(bytes, std::min(usual, ChunkPool::kChunkBytes));
      // Not make_unique, which would clear it.
      chunk.small.reset(new char[free_bytes]);
      free = chunk.small.get();
    }
  }
  char* const record = free;
  records.push_back({sequence_nr, std::string_view(record, bytes)});
  chunks.back().last_sequence_nr = sequence_nr;
  free += bytes;
  free_bytes -= bytes;
  return record;
}

void MemoryJournal::Id::Trim() {
  while (!records.empty() && records.front().sequence_nr <= state.deleted_to) records.pop_front();
  // The last one is being filled.
  while (chunks.size() > 1 && chunks.front().last_sequence_nr <= state.deleted_to) chunks.pop_front();
}

MemoryJournal::Shard& MemoryJournal::ShardOf(std::string_view persistence_id) {
  return shards_[HashOf(persistence_id) >> kShardShift];
}

template <class T>
Future<T> MemoryJournal::Answer(FutureResult<T> result) {
  if (options_.toolbox == nullptr) return MakeReadyFuture<T>(std::move(result));
  absl::Duration delay;
  {
    MutexLock lock(index_mutex_);
    delay = random_.UniformDuration(options_.min_delay, options_.max_delay);
  }
  return ReadyAfter<T>(options_.toolbox, delay, std::move(result));
}

void MemoryJournal::LoadDisk() {
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
        next_offset_.store(++opens_ << 40 | 1, std::memory_order_relaxed);
        break;
      case kEvent: {
        const std::string_view persistence_id = reader.Sized();
        const uint64_t sequence_nr = reader.Varint();
        const std::string_view record = reader.Sized();
        if (!ApplyEvent(persistence_id, sequence_nr, record)) return false;
        break;
      }
      case kState: {
        const std::string persistence_id(reader.Sized());
        Shard& shard = ShardOf(persistence_id);
        MutexLock lock(shard.mutex);
        Id& id = Find(shard, persistence_id, ignored);
        id.state.epoch = reader.Varint();
        id.state.deleted_to = reader.Varint();
        id.Trim();
        break;
      }
      default:
        return false;
    }
  }
  return reader.ok();
}

bool MemoryJournal::ApplyEvent(std::string_view persistence_id, uint64_t sequence_nr, std::string_view record) {
  StoredEvent event;
  if (DecodeEventRecord(EventKeyCrc(persistence_id, sequence_nr), record, event) != RecordProblem::kNone) return false;
  Advances ignored;
  const std::string name(persistence_id);
  Shard& shard = ShardOf(name);
  MutexLock lock(shard.mutex);
  Id& id = Find(shard, name, ignored);
  id.state.highest_sequence_nr = sequence_nr;
  std::memcpy(id.Add(sequence_nr, record.size(), pool_), record.data(), record.size());
  MutexLock index_lock(index_mutex_);
  for (const std::string_view tag : event.tags()) tags_[std::string(tag)].push_back({event.offset, name, sequence_nr});
  next_offset_.store(event.offset + 1, std::memory_order_relaxed);
  return true;
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

absl::Status MemoryJournal::CheckOpen(std::string_view persistence_id) const {
  return closed_.load(std::memory_order_relaxed) ? ClosedError("the journal in memory", persistence_id)
                                                 : absl::OkStatus();
}

MemoryJournal::Id& MemoryJournal::Find(Shard& shard, const std::string& persistence_id, Advances& advances) {
  const auto [found, is_new] = shard.ids.try_emplace(persistence_id);
  if (is_new) {
    MutexLock lock(index_mutex_);
    const uint64_t offset = next_offset_.fetch_add(1, std::memory_order_relaxed);
    ids_by_offset_.emplace_back(offset, persistence_id);
    advances.emplace_back(JournalSubject::OfAllIds(), offset);
  }
  return found->second;
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
    std::optional<MutexLock> disk_lock;
    if (options_.disk != nullptr) disk_lock.emplace(disk_mutex_);
    Shard& shard = ShardOf(persistence_id);
    MutexLock lock(shard.mutex);
    FRAKTOR_RETURN_IF_ERROR(CheckOpen(persistence_id));
    const auto found = shard.ids.find(persistence_id);
    IdState state = found == shard.ids.end() ? IdState() : found->second.state;
    FRAKTOR_ASSIGN_OR_RETURN(state.epoch, NextEpoch(persistence_id, state.epoch, token));
    std::string frame;
    AppendStateChange(frame, persistence_id, state);
    FRAKTOR_RETURN_IF_ERROR(CommitFrame(frame));
    Find(shard, persistence_id, advances).state.epoch = state.epoch;
    opened = {.epoch = state.epoch, .highest_sequence_nr = state.highest_sequence_nr, .deleted_to = state.deleted_to};
  }
  Publish(advances);
  return opened;
}

Future<WriteResults> MemoryJournal::Write(std::vector<AtomicWrite> writes) {
  return Answer<WriteResults>(WriteNow(writes));
}

bool MemoryJournal::WriteAtOnce(std::span<const AtomicWrite> writes, absl::StatusOr<WriteResults>& answer) {
  if (options_.toolbox != nullptr) return false;
  if (writes.size() != 1 || options_.disk != nullptr || closed_.load(std::memory_order_relaxed)) {
    answer = WriteNow(writes);
    return true;
  }
  // The usual case, without what it does not need.
  Advances advances;
  std::string no_frame;
  absl::Status result = WriteOne(writes[0], no_frame, advances);
  if (!result.ok()) {
    answer = WriteResults{std::move(result)};
  } else if (!answer.ok() || !answer->empty()) {
    answer = WriteResults();
  }
  Publish(advances);
  return true;
}

absl::StatusOr<WriteResults> MemoryJournal::WriteNow(std::span<const AtomicWrite> writes) {
  WriteResults results;
  Advances advances;
  {
    std::optional<MutexLock> disk_lock;
    if (options_.disk != nullptr) disk_lock.emplace(disk_mutex_);
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
      absl::Status result = WriteOne(writes[i], frame, advances);
      if (result.ok()) continue;
      if (results.empty()) results.resize(writes.size());
      results[i] = std::move(result);
    }
    FRAKTOR_RETURN_IF_ERROR(CommitFrame(frame));
  }
  Publish(advances);
  return results;
}

absl::Status MemoryJournal::WriteOne(const AtomicWrite& write, std::string& frame, Advances& advances) {
  FRAKTOR_RETURN_IF_ERROR(CheckAtomicWrite(options_.limits, write));
  Shard& shard = ShardOf(write.persistence_id());
  MutexLock lock(shard.mutex);
  const auto found = shard.ids.find(write.persistence_id());
  const IdState state = found == shard.ids.end() ? IdState() : found->second.state;
  FRAKTOR_RETURN_IF_ERROR(CheckWriter(state, write));
  if (write.lowest_sequence_nr() <= state.highest_sequence_nr) {
    return IsStored(found->second, write) ? absl::OkStatus() : SequenceMismatch(state, write);
  }
  Id& id = found == shard.ids.end() ? Find(shard, write.persistence_id(), advances) : found->second;
  for (const PersistentRepr& event : write.events()) {
    const uint64_t offset =
        event.tags.empty() ? next_offset_.fetch_add(1, std::memory_order_relaxed) : IndexEvent(event, advances);
    const size_t bytes = EventRecordBytes(event);
    char* const record = id.Add(event.sequence_nr, bytes, pool_);
    if (options_.disk == nullptr) {
      WriteTrustedRecord(event, offset, record);
    } else {
      WriteEventRecord(event, EventKeyCrc(event.persistence_id, event.sequence_nr), offset, record);
      AppendEventChange(frame, event.persistence_id, event.sequence_nr, std::string_view(record, bytes));
    }
  }
  id.state.highest_sequence_nr = write.highest_sequence_nr();
  // Who waits has looked at the id, under this lock, before or will do so after.
  if (board_.MayHaveWaiters()) {
    advances.emplace_back(JournalSubject::OfId(write.persistence_id()), write.highest_sequence_nr());
  }
  return absl::OkStatus();
}

uint64_t MemoryJournal::IndexEvent(const PersistentRepr& event, Advances& advances) {
  MutexLock lock(index_mutex_);
  const uint64_t offset = next_offset_.fetch_add(1, std::memory_order_relaxed);
  for (const std::string& tag : event.tags) {
    tags_[tag].push_back({offset, event.persistence_id, event.sequence_nr});
    advances.emplace_back(JournalSubject::OfTag(tag), offset);
  }
  return offset;
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
  Shard& shard = ShardOf(page.persistence_id);
  MutexLock lock(shard.mutex);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen(page.persistence_id));
  EventBatch batch;
  batch.Finish(page.from_sequence_nr, true);
  const auto found = shard.ids.find(page.persistence_id);
  if (found == shard.ids.end()) return batch;
  const std::deque<StoredRecord>& records = found->second.records;
  auto next = std::lower_bound(records.begin(), records.end(), page.from_sequence_nr,
                               [](const StoredRecord& record, uint64_t number) { return record.sequence_nr < number; });
  StoredEvent event;
  event.persistence_id = batch.Keep(page.persistence_id);
  for (; next != records.end() && next->sequence_nr <= page.to_sequence_nr; ++next) {
    if (page.limits.ReachedBy(batch)) {
      batch.Finish(next->sequence_nr, false);
      return batch;
    }
    event.sequence_nr = next->sequence_nr;
    const RecordProblem problem = DecodeTrustedRecord(batch.Keep(next->bytes), event);
    FRAKTOR_RETURN_IF_ERROR(RecordError(problem, page.persistence_id, next->sequence_nr, next->bytes));
    batch.Add(event);
  }
  // After an empty page a query goes on behind what is deleted: below that there is nothing to wait
  // for.
  const uint64_t behind_deleted = std::max(page.from_sequence_nr, found->second.state.deleted_to + 1);
  batch.Finish(batch.empty() ? behind_deleted : batch.back().sequence_nr + 1, true);
  return batch;
}

Future<uint64_t> MemoryJournal::HighestSequenceNr(std::string persistence_id) {
  return Answer<uint64_t>(HighestNow(persistence_id));
}

absl::StatusOr<uint64_t> MemoryJournal::HighestNow(const std::string& persistence_id) {
  FRAKTOR_RETURN_IF_ERROR(CheckPersistenceId(options_.limits, persistence_id));
  Shard& shard = ShardOf(persistence_id);
  MutexLock lock(shard.mutex);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen(persistence_id));
  const auto found = shard.ids.find(persistence_id);
  return found == shard.ids.end() ? 0 : found->second.state.highest_sequence_nr;
}

Future<void> MemoryJournal::DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) {
  return Answer<void>(DeleteToNow(persistence_id, to_sequence_nr, epoch));
}

absl::Status MemoryJournal::DeleteToNow(const std::string& persistence_id, uint64_t to_sequence_nr, uint64_t epoch) {
  FRAKTOR_RETURN_IF_ERROR(CheckPersistenceId(options_.limits, persistence_id));
  std::optional<MutexLock> disk_lock;
  if (options_.disk != nullptr) disk_lock.emplace(disk_mutex_);
  Shard& shard = ShardOf(persistence_id);
  MutexLock lock(shard.mutex);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen(persistence_id));
  const auto found = shard.ids.find(persistence_id);
  IdState state = found == shard.ids.end() ? IdState() : found->second.state;
  FRAKTOR_RETURN_IF_ERROR(CheckDeletion(state, persistence_id, epoch));
  if (found == shard.ids.end()) return absl::OkStatus();
  state.deleted_to = std::max(state.deleted_to, std::min(to_sequence_nr, state.highest_sequence_nr));
  if (state.deleted_to == found->second.state.deleted_to) return absl::OkStatus();
  std::string frame;
  AppendStateChange(frame, persistence_id, state);
  FRAKTOR_RETURN_IF_ERROR(CommitFrame(frame));
  found->second.state = state;
  found->second.Trim();
  return absl::OkStatus();
}

Future<EventBatch> MemoryJournal::EventsByTag(TagPage page) { return Answer<EventBatch>(EventsByTagNow(page)); }

absl::StatusOr<EventBatch> MemoryJournal::EventsByTagNow(const TagPage& page) {
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  EventBatch batch;
  uint64_t next = page.from_offset;
  // Up to this offset, and from the front on, all events are deleted.
  std::optional<uint64_t> deleted_to;
  bool is_front = false;
  bool at_end = false;
  while (!at_end && !page.limits.ReachedBy(batch)) {
    const TagEntries some = EntriesOf(page.tag, next, kEntriesAtOnce);
    at_end = some.entries.size() < kEntriesAtOnce;
    is_front = is_front || some.from_front;
    for (const TagEntry& entry : some.entries) {
      at_end = at_end || entry.offset > page.to_offset;
      if (entry.offset > page.to_offset) break;
      if (page.limits.ReachedBy(batch)) {
        next = entry.offset;
        at_end = false;
        break;
      }
      absl::Status problem;
      is_front = !AddEvent(entry, batch, problem) && is_front;
      FRAKTOR_RETURN_IF_ERROR(problem);
      if (is_front) deleted_to = entry.offset;
      next = entry.offset + 1;
    }
  }
  batch.Finish(next, at_end);
  if (!deleted_to.has_value()) return batch;
  MutexLock lock(index_mutex_);
  std::deque<TagEntry>& all = tags_[page.tag];
  while (!all.empty() && all.front().offset <= *deleted_to) all.pop_front();
  return batch;
}

MemoryJournal::TagEntries MemoryJournal::EntriesOf(const std::string& tag, uint64_t from_offset, size_t max) {
  MutexLock lock(index_mutex_);
  const auto found = tags_.find(tag);
  if (found == tags_.end()) return {};
  const std::deque<TagEntry>& entries = found->second;
  const auto first = std::lower_bound(entries.begin(), entries.end(), from_offset,
                                      [](const TagEntry& entry, uint64_t offset) { return entry.offset < offset; });
  const auto count = std::min<std::ptrdiff_t>(entries.end() - first, static_cast<std::ptrdiff_t>(max));
  return {.entries = std::vector<TagEntry>(first, first + count), .from_front = first == entries.begin()};
}

bool MemoryJournal::AddEvent(const TagEntry& entry, EventBatch& batch, absl::Status& problem) {
  Shard& shard = ShardOf(entry.persistence_id);
  MutexLock lock(shard.mutex);
  const auto found = shard.ids.find(entry.persistence_id);
  if (found == shard.ids.end() || found->second.state.deleted_to >= entry.sequence_nr) return false;
  const std::deque<StoredRecord>& records = found->second.records;
  const auto record =
      std::lower_bound(records.begin(), records.end(), entry.sequence_nr,
                       [](const StoredRecord& candidate, uint64_t number) { return candidate.sequence_nr < number; });
  StoredEvent event;
  event.persistence_id = batch.Keep(entry.persistence_id);
  event.sequence_nr = entry.sequence_nr;
  const RecordProblem damage = DecodeTrustedRecord(batch.Keep(record->bytes), event);
  problem = RecordError(damage, entry.persistence_id, entry.sequence_nr, record->bytes);
  if (problem.ok()) batch.Add(event);
  return true;
}

Future<IdBatch> MemoryJournal::PersistenceIds(IdPage page) { return Answer<IdBatch>(PersistenceIdsNow(page)); }

absl::StatusOr<IdBatch> MemoryJournal::PersistenceIdsNow(const IdPage& page) {
  MutexLock lock(index_mutex_);
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
  if (subject.kind == JournalSubject::Kind::kId) {
    Shard& shard = ShardOf(subject.name);
    MutexLock lock(shard.mutex);
    const auto found = shard.ids.find(subject.name);
    return found == shard.ids.end() ? 0 : found->second.state.highest_sequence_nr;
  }
  MutexLock lock(index_mutex_);
  if (subject.kind == JournalSubject::Kind::kTag) {
    const auto found = tags_.find(subject.name);
    return found == tags_.end() || found->second.empty() ? 0 : found->second.back().offset;
  }
  return ids_by_offset_.empty() ? 0 : ids_by_offset_.back().first;
}

Future<uint64_t> MemoryJournal::AwaitAdvance(JournalSubject subject, uint64_t after) {
  Future<uint64_t> advance = board_.Wait(subject, after);
  // What came before the wait.
  board_.Publish(subject, NumberOf(subject));
  return advance;
}

Future<void> MemoryJournal::Close() {
  {
    MutexLock lock(disk_mutex_);
    closed_.store(true, std::memory_order_relaxed);
    if (options_.disk != nullptr) options_.disk->Sync();
  }
  board_.Close(ClosedError("the journal in memory"));
  return MakeReadyFuture();
}

}  // namespace fraktor::inline v0
