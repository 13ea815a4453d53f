// Counts heap allocations to measure the memory of an actor in the registry.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/registry/internal/actor_path_registry.h"
#include "fraktor/utils/time/instant.h"

namespace {

size_t allocations = 0;
size_t live_bytes = 0;

// The size of a block is stored before the block.
constexpr size_t kHeader = alignof(std::max_align_t);

void* Allocate(size_t size) {
  ++allocations;
  live_bytes += size;
  void* const memory = std::malloc(kHeader + size);
  if (memory == nullptr) std::abort();
  *static_cast<size_t*>(memory) = size;
  return static_cast<char*>(memory) + kHeader;
}

void Free(void* block) {
  if (block == nullptr) return;
  void* const memory = static_cast<char*>(block) - kHeader;
  live_bytes -= *static_cast<size_t*>(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }

namespace fraktor {

using actor_internal::ActorPathRegistry;

namespace {

constexpr Pid kRoot{.slot = 0, .generation = 1};
constexpr Pid kUser{.slot = 1, .generation = 1};

std::unique_ptr<ActorPathRegistry> MakeRegistry(const ActorSystemConfig& config = {.system_name = "warehouse"}) {
  auto registry = *ActorPathRegistry::Create(config, {});
  EXPECT_TRUE(registry->RegisterRoot(kRoot).ok());
  EXPECT_TRUE(registry->Register(kUser, kRoot, "user").ok());
  return registry;
}

TEST(RegistryAllocation, AnAutomaticallyNamedActorStoresNoText) {  // PTH-10
  const auto registry = MakeRegistry();
  constexpr uint32_t kActors = 100'000;
  const size_t bytes_before = live_bytes;
  const size_t allocations_before = allocations;
  for (uint32_t i = 0; i < kActors; ++i) ASSERT_TRUE(registry->RegisterAuto({i + 2, 1}, kUser, i).ok());
  const double bytes = static_cast<double>(live_bytes - bytes_before) / kActors;
  const size_t times = allocations - allocations_before;
  std::printf("%.1f bytes and %.4f allocations per actor\n", bytes, static_cast<double>(times) / kActors);
  // An entry takes 32 bytes and the index at most 8 * 2 / 0.75. Allocations are chunks of 1024
  // entries, and the doublings of the index.
  EXPECT_LE(bytes, 32 + 22 + 1);
  EXPECT_LE(times, kActors / 1024 + 40);
  EXPECT_EQ(registry->PathOf({2 + 65, 1})->name(), "$bb");
}

TEST(RegistryAllocation, AskingForTheTextTakesOne) {
  const auto registry = MakeRegistry();
  ASSERT_TRUE(registry->Register({2, 1}, kUser, "a-rather-long-name-of-an-actor").ok());
  ASSERT_TRUE(registry->RegisterAuto({3, 1}, {2, 1}, 7).ok());
  size_t before = allocations;
  const absl::StatusOr<std::string> text = registry->TextOf({3, 1});
  EXPECT_EQ(allocations - before, 1u);
  before = allocations;
  const absl::StatusOr<ActorPath> path = registry->PathOf({3, 1});
  EXPECT_EQ(allocations - before, 1u);
  EXPECT_EQ(path->text(), *text);
  before = allocations;
  EXPECT_EQ(registry->Find(*path), (Pid{3, 1}));
  EXPECT_EQ(allocations - before, 0u);
}

TEST(RegistryAllocation, GivesBackWhatANameTook) {  // PTH-6
  const auto registry = MakeRegistry({.system_name = "warehouse", .max_uid_reservations = 10});
  const auto live_and_end = [&](uint32_t generation) {
    ASSERT_TRUE(registry->Register({2, generation}, kUser, "a-rather-long-name-of-an-actor").ok());
    ASSERT_TRUE(registry->Unregister({2, generation}, Instant()).ok());
    registry->TakeEvicted();
  };
  uint32_t generation = 1;
  while (generation <= 10) live_and_end(generation++);
  const size_t bytes_before = live_bytes;
  while (generation <= 10'000) live_and_end(generation++);
  // Reservations are in a deque, which allocates and frees its memory in blocks.
  EXPECT_LE(live_bytes, bytes_before + 1024);
}

}  // namespace
}  // namespace fraktor
