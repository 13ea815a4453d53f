#include "fraktor/persistence/journal/event_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

// The first chunk is small, for the many batches of few events.
constexpr size_t kFirstChunkBytes = size_t{4} << 10;
constexpr size_t kChunkBytes = size_t{64} << 10;

}  // namespace

std::vector<std::string_view> StoredEvent::tags() const {
  std::vector<std::string_view> tags;
  tags.reserve(tag_count);
  ByteReader reader(tag_bytes);
  for (uint32_t i = 0; i < tag_count; ++i) tags.push_back(reader.Sized());
  return tags;
}

PersistentRepr StoredEvent::ToRepr() const {
  PersistentRepr repr;
  repr.persistence_id = std::string(persistence_id);
  repr.sequence_nr = sequence_nr;
  repr.writer = writer;
  repr.epoch = epoch;
  repr.timestamp = absl::FromUnixNanos(timestamp_ns);
  repr.manifest = std::string(manifest);
  repr.manifest_version = manifest_version;
  repr.payload = std::string(payload);
  for (const std::string_view tag : tags()) repr.tags.emplace_back(tag);
  repr.metadata = std::string(metadata);
  return repr;
}

std::string_view EventBatch::Keep(std::string_view bytes) {
  if (bytes.size() > free_bytes_) {
    const size_t size = std::max(bytes.size(), chunks_.empty() ? kFirstChunkBytes : kChunkBytes);
    // Not make_unique, which would clear it.
    chunks_.emplace_back(new char[size]);
    free_ = chunks_.back().get();
    free_bytes_ = size;
  }
  char* const kept = free_;
  if (!bytes.empty()) std::memcpy(kept, bytes.data(), bytes.size());
  free_ += bytes.size();
  free_bytes_ -= bytes.size();
  byte_size_ += bytes.size();
  return std::string_view(kept, bytes.size());
}

}  // namespace fraktor::inline v0
