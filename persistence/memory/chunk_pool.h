// ChunkPool: where a journal in memory keeps what it is told.
//
//   ChunkPool pool;
//   ChunkPool::Chunk chunk = pool.Take();   // 64 KiB, not cleared
//   std::memcpy(chunk.get(), record.data(), record.size());
//   chunk.reset();                          // back to the pool, for the next one
//
// Chunks are cut from regions that are as large as a huge page of the system, and the system is
// asked to make each one huge: fresh memory is what a journal writes to, and its pages, one by one,
// cost more than the events in them. A region stays with the pool until the pool ends: it has as
// much memory as there were chunks at most, and a part of a region.
//
// Thread safety: all of it. The pool outlives its chunks.
#ifndef FRAKTOR_PERSISTENCE_MEMORY_CHUNK_POOL_H_
#define FRAKTOR_PERSISTENCE_MEMORY_CHUNK_POOL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class ChunkPool {
 public:
  static constexpr size_t kChunkBytes = size_t{64} << 10;
  static constexpr size_t kRegionBytes = size_t{2} << 20;

  class Return {
   public:
    explicit Return(ChunkPool* pool = nullptr) : pool_(pool) {}
    void operator()(char* chunk) const { pool_->Put(chunk); }

   private:
    ChunkPool* pool_;
  };
  using Chunk = std::unique_ptr<char, Return>;

  ChunkPool() = default;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  Chunk Take();

  // What it has from the system.
  size_t bytes() const;

 private:
  struct FreeRegion {
    void operator()(char* region) const;
  };

  void Put(char* chunk);

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<char, FreeRegion>> regions_ ABSL_GUARDED_BY(mutex_);
  std::vector<char*> free_ ABSL_GUARDED_BY(mutex_);
  // Of the last region: what has not been cut yet.
  char* rest_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t rest_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_MEMORY_CHUNK_POOL_H_
