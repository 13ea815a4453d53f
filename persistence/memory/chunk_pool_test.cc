#include "fraktor/persistence/memory/chunk_pool.h"

#include <cstddef>
#include <cstring>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

constexpr size_t kChunksOfARegion = ChunkPool::kRegionBytes / ChunkPool::kChunkBytes;

TEST(ChunkPool, GivesEachChunkToOneAtATime) {
  ChunkPool pool;
  std::vector<ChunkPool::Chunk> chunks;
  for (size_t i = 0; i < kChunksOfARegion + 1; ++i) {
    chunks.push_back(pool.Take());
    std::memset(chunks.back().get(), static_cast<int>(i), ChunkPool::kChunkBytes);
  }
  EXPECT_EQ(pool.bytes(), 2 * ChunkPool::kRegionBytes);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const std::vector<char> expected(ChunkPool::kChunkBytes, static_cast<char>(i));
    EXPECT_EQ(std::memcmp(chunks[i].get(), expected.data(), expected.size()), 0) << i;
  }
}

TEST(ChunkPool, GivesWhatCameBackBeforeItAsksTheSystem) {
  ChunkPool pool;
  std::set<const char*> first;
  for (int round = 0; round < 3; ++round) {
    std::vector<ChunkPool::Chunk> chunks;
    for (size_t i = 0; i < kChunksOfARegion; ++i) chunks.push_back(pool.Take());
    std::set<const char*> now;
    for (const ChunkPool::Chunk& chunk : chunks) now.insert(chunk.get());
    EXPECT_EQ(now.size(), kChunksOfARegion);
    if (round == 0) first = now;
    EXPECT_EQ(now, first);
  }
  EXPECT_EQ(pool.bytes(), ChunkPool::kRegionBytes);
}

TEST(ChunkPool, HasNothingBeforeItIsAsked) { EXPECT_EQ(ChunkPool().bytes(), 0u); }

}  // namespace
}  // namespace fraktor
