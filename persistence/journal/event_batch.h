// EventBatch: a bounded piece of what a journal has, in memory of its own.
//
//   for (const StoredEvent& event : batch) Apply(event.manifest, event.payload);   // views into the batch
//   if (!batch.at_end()) page.from_sequence_nr = batch.resume_at();                // ask for the next piece
//
// A replay of a million events hands over a thousand batches; none of its events costs an
// allocation of its own.
//
// Thread safety: a value with one owner. Views are good for as long as the batch, also after it has
// been moved.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_EVENT_BATCH_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_EVENT_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "fraktor/persistence/journal/persistent_repr.h"

namespace fraktor::inline v0 {

// An event as it is stored. The views belong to the batch that it is in.
struct StoredEvent {
  std::string_view persistence_id = {};
  uint64_t sequence_nr = 0;
  // Where it is among all events of the journal: rises in the order in which they were committed,
  // with gaps.
  uint64_t offset = 0;
  uint64_t epoch = 0;
  WriterId writer = {};
  int64_t timestamp_ns = 0;  // since 1970
  uint32_t manifest_version = 0;
  uint32_t tag_count = 0;
  std::string_view manifest = {};
  std::string_view payload = {};
  std::string_view metadata = {};
  // The tags in order, each as its length (a varint) and its bytes: AppendSized of
  // fraktor/utils/bytes/bytes.h for each. A store that keeps them otherwise appends them to a
  // string so, sets tag_count, and gives what EventBatch::Keep of that string returns. tags() reads
  // them.
  std::string_view tag_bytes = {};

  std::vector<std::string_view> tags() const;
  // A copy that stands for itself.
  PersistentRepr ToRepr() const;
};

class EventBatch {
 public:
  EventBatch() = default;
  EventBatch(EventBatch&&) = default;
  EventBatch& operator=(EventBatch&&) = default;

  size_t size() const { return events_.size(); }
  bool empty() const { return events_.empty(); }
  const StoredEvent& operator[](size_t i) const { return events_[i]; }
  const StoredEvent& back() const { return events_.back(); }
  std::vector<StoredEvent>::const_iterator begin() const { return events_.begin(); }
  std::vector<StoredEvent>::const_iterator end() const { return events_.end(); }

  // Whether the range had nothing more when it was read. A batch that is not at the end may be
  // empty.
  bool at_end() const { return at_end_; }
  // Where the next page begins: a sequence number for a replay, an offset for a tag.
  uint64_t resume_at() const { return resume_at_; }
  // Bytes of records.
  size_t byte_size() const { return byte_size_; }

  // For stores. Keeps a copy of bytes for as long as the batch lives.
  std::string_view Keep(std::string_view bytes);
  void Add(const StoredEvent& event) { events_.push_back(event); }
  void Reserve(size_t events) { events_.reserve(events); }
  void Finish(uint64_t resume_at, bool at_end) {
    resume_at_ = resume_at;
    at_end_ = at_end;
  }

 private:
  std::vector<StoredEvent> events_;
  // Memory that does not move; the last one is being filled.
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  size_t free_bytes_ = 0;
  size_t byte_size_ = 0;
  uint64_t resume_at_ = 0;
  bool at_end_ = true;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_EVENT_BATCH_H_
