#include "fraktor/persistence/memory/chunk_pool.h"

#include <sys/mman.h>

#include <cstddef>
#include <new>

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::align_val_t kRegionAlignment{ChunkPool::kRegionBytes};

// A wish: if the system has none, or is told not to, they are of the usual size.
void AskForHugePages([[maybe_unused]] char* region) {
#if defined(MADV_HUGEPAGE)
  madvise(region, ChunkPool::kRegionBytes, MADV_HUGEPAGE);
#endif
}

}  // namespace

void ChunkPool::FreeRegion::operator()(char* region) const { ::operator delete(region, kRegionAlignment); }

ChunkPool::Chunk ChunkPool::Take() {
  MutexLock lock(mutex_);
  if (!free_.empty()) {
    char* const chunk = free_.back();
    free_.pop_back();
    return Chunk(chunk, Return(this));
  }
  if (rest_bytes_ == 0) {
    regions_.emplace_back(static_cast<char*>(::operator new(kRegionBytes, kRegionAlignment)));
    rest_ = regions_.back().get();
    rest_bytes_ = kRegionBytes;
    AskForHugePages(rest_);
    // All of its chunks can come back without an allocation that may fail.
    free_.reserve(regions_.size() * (kRegionBytes / kChunkBytes));
  }
  char* const chunk = rest_;
  rest_ += kChunkBytes;
  rest_bytes_ -= kChunkBytes;
  return Chunk(chunk, Return(this));
}

void ChunkPool::Put(char* chunk) {
  MutexLock lock(mutex_);
  free_.push_back(chunk);
}

size_t ChunkPool::bytes() const {
  MutexLock lock(mutex_);
  return regions_.size() * kRegionBytes;
}

}  // namespace fraktor::inline v0
