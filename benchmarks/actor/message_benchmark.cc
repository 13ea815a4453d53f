// What an envelope costs: made and ended on one thread, and made by one thread and ended by another.
//
// Each is measured beside what it is compared with, in one run:
// - Envelope: MakeEnvelope and EndEnvelope with the thread's cache.
// - Malloc: the same bytes from malloc, and the same fields written.
// - FreeList: the least that a pool can be: a list of free nodes of one thread that never goes elsewhere.
// - LinkedMagazines: batches that are linked through the free nodes, traded between threads.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor {

using actor_internal::NodeCache;

namespace {

struct Number {
  int64_t value;
};

template <size_t kBytes>
struct Sized {
  int64_t value;
  std::array<unsigned char, kBytes - sizeof(int64_t)> more;
};

// What an envelope of one cache line has, without a class around it.
struct alignas(64) BareNode {
  BareNode* next;
  uintptr_t tag;
  uintptr_t sender[2];
  uint64_t target_word;
  int64_t value;
};
static_assert(sizeof(BareNode) == 64);

// The ways to get and give back a node with one number in it. All methods belong to one thread.

class Envelopes {
 public:
  void* Make(int64_t value) { return MakeEnvelope<Number>(cache_, ActorRef(), value).release(); }
  int64_t End(void* node) {
    auto* const envelope = static_cast<Envelope*>(node);
    const int64_t value = envelope->As<Number>().value;
    EndEnvelope(cache_, envelope);
    return value;
  }

 private:
  NodeCache& cache_ = NodeCache::OfThisThread();
};

template <class Allocator>
class BareNodes {
 public:
  void* Make(int64_t value) {
    return ::new (allocator_.Allocate()) BareNode{nullptr, reinterpret_cast<uintptr_t>(this), {0, 0}, 0, value};
  }
  int64_t End(void* node) {
    const int64_t value = static_cast<BareNode*>(node)->value;
    allocator_.Free(node);
    return value;
  }

 private:
  Allocator allocator_;
};

struct FromMalloc {
  void* Allocate() { return std::malloc(sizeof(BareNode)); }
  void Free(void* node) { std::free(node); }
};

struct FromFreeList {
  FromFreeList() = default;
  FromFreeList(const FromFreeList&) = delete;
  FromFreeList& operator=(const FromFreeList&) = delete;
  ~FromFreeList() {
    while (free != nullptr) std::free(std::exchange(free, free->next));
  }
  void* Allocate() {
    if (free == nullptr) return std::aligned_alloc(64, sizeof(BareNode));
    return std::exchange(free, free->next);
  }
  void Free(void* node) { free = ::new (node) BareNode{free, 0, {0, 0}, 0, 0}; }

  BareNode* free = nullptr;
};

// Two batches per thread and a depot, linked through the nodes.
class FromLinkedMagazines {
 public:
  FromLinkedMagazines() = default;
  FromLinkedMagazines(const FromLinkedMagazines&) = delete;
  FromLinkedMagazines& operator=(const FromLinkedMagazines&) = delete;
  ~FromLinkedMagazines() {
    Drop(current_);
    Drop(spare_);
  }

  void* Allocate() {
    if (current_ == nullptr) Refill();
    --size_;
    return std::exchange(current_, current_->next);
  }

  void Free(void* memory) {
    if (size_ == kBatch) {
      if (spare_ != nullptr) {
        MutexLock lock(depot().mutex);
        depot().full.push_back(spare_);
      }
      spare_ = std::exchange(current_, nullptr);
      size_ = 0;
    }
    auto* const node = static_cast<BareNode*>(memory);
    node->next = current_;
    current_ = node;
    ++size_;
  }

 private:
  static constexpr size_t kBatch = 256;
  struct Depot {
    Mutex mutex;
    std::vector<BareNode*> full;
  };
  static Depot& depot() {
    static Depot& depot = *new Depot();
    return depot;
  }

  void Refill() {
    size_ = kBatch;
    current_ = std::exchange(spare_, nullptr);
    if (current_ != nullptr) return;
    {
      MutexLock lock(depot().mutex);
      if (!depot().full.empty()) {
        current_ = depot().full.back();
        depot().full.pop_back();
        return;
      }
    }
    for (size_t i = 0; i < kBatch; ++i) {
      current_ = ::new (std::aligned_alloc(64, sizeof(BareNode))) BareNode{current_, 0, {0, 0}, 0, 0};
    }
  }
  static void Drop(BareNode* node) {
    while (node != nullptr) std::free(std::exchange(node, node->next));
  }

  BareNode* current_ = nullptr;
  BareNode* spare_ = nullptr;
  size_t size_ = 0;
};

using MallocNodes = BareNodes<FromMalloc>;
using FreeListNodes = BareNodes<FromFreeList>;
using LinkedMagazineNodes = BareNodes<FromLinkedMagazines>;

// One thread: a message is made and ended at once, as in a ping-pong.
template <class Nodes>
void MakeAndEnd(benchmark::State& state) {
  Nodes nodes;
  int64_t value = 0;
  for (auto _ : state) {
    void* node = nodes.Make(value);
    benchmark::DoNotOptimize(node);
    value = nodes.End(node) + 1;
  }
  benchmark::DoNotOptimize(value);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_TEMPLATE(MakeAndEnd, Envelopes);
BENCHMARK_TEMPLATE(MakeAndEnd, MallocNodes);
BENCHMARK_TEMPLATE(MakeAndEnd, FreeListNodes);
BENCHMARK_TEMPLATE(MakeAndEnd, LinkedMagazineNodes);

// One thread: `range` messages are made, then ended in the order in which they were made, as in a mailbox.
template <class Nodes>
void MakeManyThenEnd(benchmark::State& state) {
  Nodes nodes;
  std::vector<void*> made(static_cast<size_t>(state.range(0)));
  int64_t sum = 0;
  for (auto _ : state) {
    for (void*& node : made) node = nodes.Make(sum);
    for (void* node : made) sum += nodes.End(node);
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_TEMPLATE(MakeManyThenEnd, Envelopes)->Arg(64)->Arg(4096)->Arg(1 << 18);
BENCHMARK_TEMPLATE(MakeManyThenEnd, MallocNodes)->Arg(64)->Arg(4096)->Arg(1 << 18);
BENCHMARK_TEMPLATE(MakeManyThenEnd, FreeListNodes)->Arg(64)->Arg(4096)->Arg(1 << 18);
BENCHMARK_TEMPLATE(MakeManyThenEnd, LinkedMagazineNodes)->Arg(64)->Arg(4096)->Arg(1 << 18);

// The classes: in the node, in the larger node, on the heap, with a destructor, with a trace.
template <class M>
void MakeAndEndEnvelopeOf(benchmark::State& state) {
  NodeCache& cache = NodeCache::OfThisThread();
  const M message{};
  for (auto _ : state) {
    Envelope* envelope = MakeEnvelope<M>(cache, ActorRef(), message).release();
    benchmark::DoNotOptimize(envelope);
    EndEnvelope(cache, envelope);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_TEMPLATE(MakeAndEndEnvelopeOf, Number);
BENCHMARK_TEMPLATE(MakeAndEndEnvelopeOf, Sized<24>);
BENCHMARK_TEMPLATE(MakeAndEndEnvelopeOf, Sized<32>);
BENCHMARK_TEMPLATE(MakeAndEndEnvelopeOf, Sized<88>);
BENCHMARK_TEMPLATE(MakeAndEndEnvelopeOf, Sized<96>);
BENCHMARK_TEMPLATE(MakeAndEndEnvelopeOf, std::string);

void MakeAndEndByThreadLookup(benchmark::State& state) {
  for (auto _ : state) {
    EnvelopePtr envelope = MakeEnvelope<Number>(ActorRef(), int64_t{1});
    benchmark::DoNotOptimize(envelope.get());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(MakeAndEndByThreadLookup);

void MakeAndEndTraced(benchmark::State& state) {
  NodeCache& cache = NodeCache::OfThisThread();
  for (auto _ : state) {
    Envelope* envelope = MakeTracedEnvelope<Number>(cache, ActorRef(), MessageTrace{}, int64_t{1}).release();
    benchmark::DoNotOptimize(envelope);
    EndEnvelope(cache, envelope);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(MakeAndEndTraced);

// Two threads: this one makes messages, the other one ends them; nodes go back through the pool alone. Between them is
// a ring of batches, as cheap as can be, so that it is the pool that is measured.
constexpr size_t kBatch = 128;
constexpr size_t kRing = 32;

struct Ring {
  struct Slot {
    std::array<void*, kBatch> nodes;
  };
  std::array<Slot, kRing> slots;
  alignas(64) std::atomic<uint64_t> filled{0};  // release by the producer, acquire by the consumer: the nodes of a slot
  alignas(64) std::atomic<uint64_t> emptied{0};  // release by the consumer, acquire by the producer: the slot itself
  alignas(64) std::atomic<bool> done{false};     // release after the last slot was filled, acquire by the consumer
};

template <class Nodes>
void Consume(Ring& ring, int64_t& sum) {
  Nodes nodes;
  for (uint64_t at = 0;; ++at) {
    while (ring.filled.load(std::memory_order_acquire) == at) {
      if (ring.done.load(std::memory_order_acquire) && ring.filled.load(std::memory_order_acquire) == at) return;
      std::this_thread::yield();
    }
    for (void* node : ring.slots[at % kRing].nodes) sum += nodes.End(node);
    ring.emptied.store(at + 1, std::memory_order_release);
  }
}

template <class Nodes>
void MakeHereAndEndThere(benchmark::State& state) {
  auto ring = std::make_unique<Ring>();
  int64_t sum = 0;
  std::thread consumer([&] { Consume<Nodes>(*ring, sum); });
  {
    Nodes nodes;
    uint64_t at = 0;
    for (auto _ : state) {
      while (at - ring->emptied.load(std::memory_order_acquire) == kRing) std::this_thread::yield();
      for (void*& node : ring->slots[at % kRing].nodes) node = nodes.Make(1);
      ring->filled.store(++at, std::memory_order_release);
    }
    ring->done.store(true, std::memory_order_release);
    consumer.join();
  }
  if (sum != static_cast<int64_t>(state.iterations() * kBatch)) state.SkipWithError("messages were lost");
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatch));
}
BENCHMARK_TEMPLATE(MakeHereAndEndThere, Envelopes)->UseRealTime();
BENCHMARK_TEMPLATE(MakeHereAndEndThere, MallocNodes)->UseRealTime();
BENCHMARK_TEMPLATE(MakeHereAndEndThere, LinkedMagazineNodes)->UseRealTime();

}  // namespace
}  // namespace fraktor
