// What the queues cost, each beside what it is measured against:
// - the inbox: an intrusive list with one atomic exchange per push, on one thread and on two;
// - the work-stealing ring: itself without the order that parking needs.
// Every item is one message that goes through.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"

#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/queue/internal/work_stealing_ring.h"

namespace fraktor {

using utils_internal::Inbox;
using utils_internal::InboxChain;
using utils_internal::InboxNode;
using utils_internal::InboxPush;
using utils_internal::WorkStealingRing;

namespace {

// Nodes of one cache line, as messages are.
struct alignas(64) Message : InboxNode {
  uint64_t payload = 0;
};

struct alignas(64) LinkedMessage {
  std::atomic<LinkedMessage*> next{nullptr};
  uint64_t payload = 0;
};

// The reference: one exchange per push, none per pop. To give up its last node, so that it can be used again, Pop puts
// a stub in its place with a second exchange, as the inbox needs one to become empty. PopKeepingLast does not.
class ExchangeList {
 public:
  void Push(LinkedMessage* message) {
    message->next.store(nullptr, std::memory_order_relaxed);
    LinkedMessage* const previous = newest_.exchange(message, std::memory_order_acq_rel);
    previous->next.store(message, std::memory_order_release);
  }

  // Follows the links. The node before the answer is free; the answer itself stays in the list until the next pop.
  LinkedMessage* PopKeepingLast() {
    LinkedMessage* const next = oldest_->next.load(std::memory_order_acquire);
    if (next != nullptr) oldest_ = next;
    return next;
  }

  // The oldest node, free to be used again, or null.
  LinkedMessage* Pop() {
    LinkedMessage* oldest = oldest_;
    LinkedMessage* next = oldest->next.load(std::memory_order_acquire);
    if (oldest == &stub_) {
      if (next == nullptr) return nullptr;
      oldest_ = oldest = next;
      next = next->next.load(std::memory_order_acquire);
    }
    if (next != nullptr) {
      oldest_ = next;
      return oldest;
    }
    if (oldest != newest_.load(std::memory_order_acquire)) return nullptr;
    Push(&stub_);
    next = oldest->next.load(std::memory_order_acquire);
    if (next == nullptr) return nullptr;
    oldest_ = next;
    return oldest;
  }

 private:
  LinkedMessage stub_;
  alignas(64) std::atomic<LinkedMessage*> newest_{&stub_};
  alignas(64) LinkedMessage* oldest_{&stub_};
};

// One thread pushes a batch and then takes it. Batch 1 is a message to an actor that has nothing else to do; 64 is a
// busy one.

void BM_InboxPushPop(benchmark::State& state) {
  const auto batch = static_cast<size_t>(state.range(0));
  std::vector<Message> messages(batch);
  Inbox inbox;
  if (!inbox.TryClaim()) state.SkipWithError("a new inbox is not idle");
  uint64_t sum = 0;
  for (auto _ : state) {
    for (Message& message : messages) {
      if (inbox.Push(&message) != InboxPush::kQueued) state.SkipWithError("not held");
    }
    for (InboxNode* node = inbox.TakeAll().first; node != nullptr; node = node->next)
      sum += static_cast<Message*>(node)->payload;
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_InboxPushPop)->ArgName("batch")->Arg(1)->Arg(8)->Arg(64);

void BM_ExchangeListPushPop(benchmark::State& state) {
  const auto batch = static_cast<size_t>(state.range(0));
  std::vector<LinkedMessage> messages(batch);
  ExchangeList list;
  uint64_t sum = 0;
  for (auto _ : state) {
    for (LinkedMessage& message : messages) list.Push(&message);
    for (size_t i = 0; i < batch; ++i) sum += list.Pop()->payload;
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ExchangeListPushPop)->ArgName("batch")->Arg(1)->Arg(8)->Arg(64);

// The same without giving the last node back: exactly one exchange per message, which no queue of reusable nodes
// reaches at batch 1.
void BM_ExchangeListPushPopKeepingLast(benchmark::State& state) {
  const auto batch = static_cast<size_t>(state.range(0));
  std::vector<LinkedMessage> messages(2 * batch);
  ExchangeList list;
  uint64_t sum = 0;
  size_t half = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < batch; ++i) list.Push(&messages[half + i]);
    for (size_t i = 0; i < batch; ++i) sum += list.PopKeepingLast()->payload;
    half = batch - half;
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ExchangeListPushPopKeepingLast)->ArgName("batch")->Arg(1)->Arg(8)->Arg(64);

// A message wakes an idle owner, is handed over by the claim, and the owner goes idle again.
void BM_InboxWakeAndGoIdle(benchmark::State& state) {
  Message message;
  Inbox inbox;
  for (auto _ : state) {
    if (inbox.Push(&message) != InboxPush::kClaimed) state.SkipWithError("not idle");
    benchmark::DoNotOptimize(message.payload);
    if (!inbox.TryGoIdle()) state.SkipWithError("not empty");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_InboxWakeAndGoIdle);

void BM_InboxPushChain(benchmark::State& state) {
  const auto length = static_cast<size_t>(state.range(0));
  std::vector<Message> messages(length);
  Inbox inbox;
  InboxChain chain;
  if (!inbox.TryClaim()) state.SkipWithError("a new inbox is not idle");
  uint64_t sum = 0;
  for (auto _ : state) {
    for (Message& message : messages) chain.Add(&message);
    if (inbox.PushChain(chain) != InboxPush::kQueued) state.SkipWithError("not held");
    for (InboxNode* node = inbox.TakeAll().first; node != nullptr; node = node->next)
      sum += static_cast<Message*>(node)->payload;
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_InboxPushChain)->ArgName("length")->Arg(8)->Arg(64);

// One thread pushes rounds of messages, another takes them; the producer begins a round when the one before it has
// arrived.
constexpr size_t kRound = 1024;

template <typename Messages, typename Push, typename TakeSome>
void TwoThreads(benchmark::State& state, Messages& messages, Push push, TakeSome take_some) {
  std::atomic<uint64_t> taken{0};
  std::atomic<bool> ending{false};
  std::thread consumer([&] {
    uint64_t count = 0;
    while (!ending.load(std::memory_order_relaxed)) {
      const uint64_t more = take_some();
      if (more == 0) continue;
      count += more;
      taken.store(count, std::memory_order_release);
    }
  });
  uint64_t pushed = 0;
  for (auto _ : state) {
    for (auto& message : messages) push(&message);
    pushed += messages.size();
    while (taken.load(std::memory_order_acquire) != pushed) {
    }
  }
  ending.store(true, std::memory_order_relaxed);
  consumer.join();
  state.SetItemsProcessed(static_cast<int64_t>(pushed));
}

void BM_InboxTwoThreads(benchmark::State& state) {
  std::vector<Message> messages(kRound);
  Inbox inbox;
  if (!inbox.TryClaim()) state.SkipWithError("a new inbox is not idle");
  TwoThreads(
      state, messages, [&](Message* message) { benchmark::DoNotOptimize(inbox.Push(message)); },
      [&] {
        uint64_t count = 0;
        if (!inbox.HasNodes()) return count;
        for (InboxNode* node = inbox.TakeAll().first; node != nullptr; node = node->next) ++count;
        return count;
      });
}
BENCHMARK(BM_InboxTwoThreads)->UseRealTime();

void BM_ExchangeListTwoThreads(benchmark::State& state) {
  std::vector<LinkedMessage> messages(kRound);
  ExchangeList list;
  TwoThreads(
      state, messages, [&](LinkedMessage* message) { list.Push(message); },
      [&] {
        uint64_t count = 0;
        while (list.Pop() != nullptr) ++count;
        return count;
      });
}
BENCHMARK(BM_ExchangeListTwoThreads)->UseRealTime();

void BM_WorkStealingRingPushPop(benchmark::State& state) {
  auto ring = std::make_unique<WorkStealingRing<Message*>>();
  Message message;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring->TryPush(&message));
    benchmark::DoNotOptimize(ring->TryPop());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WorkStealingRingPushPop);

void BM_WorkStealingRingPushUnannouncedPop(benchmark::State& state) {
  auto ring = std::make_unique<WorkStealingRing<Message*>>();
  Message message;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring->TryPushUnannounced(&message));
    benchmark::DoNotOptimize(ring->TryPop());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WorkStealingRingPushUnannouncedPop);

// Two rings that steal from each other what one of them was filled with; an item is one that has changed rings or was
// taken.
void BM_WorkStealingRingStealHalf(benchmark::State& state) {
  auto victim = std::make_unique<WorkStealingRing<Message*>>();
  auto thief = std::make_unique<WorkStealingRing<Message*>>();
  Message message;
  for (int i = 0; i < 256; ++i) victim->TryPush(&message);
  for (auto _ : state) {
    Message* first = victim->StealHalfInto(*thief);
    benchmark::DoNotOptimize(first);
    for (Message* item = thief->TryPop(); item != nullptr; item = thief->TryPop()) victim->TryPushUnannounced(item);
    victim->TryPushUnannounced(first);
  }
  state.SetItemsProcessed(state.iterations() * 128);
}
BENCHMARK(BM_WorkStealingRingStealHalf);

}  // namespace
}  // namespace fraktor
