#include "fraktor/benchmarks/limit/bare_runtime.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor::limit {
namespace {

constexpr int kMessages = 20'000;

std::atomic<int64_t> handled;

void Count(Actor& self, const Message& message, Port&) {
  // Each sender's messages come in order: the value is sender << 32 | number, and `sum` remembers the only sender's
  // last.
  if (message.kind == 0) {
    EXPECT_EQ(message.value, self.sum + 1);
    self.sum = message.value;
  }
  ++self.count;
  handled.fetch_add(1, std::memory_order_release);
}

void AwaitHandled(int64_t count) {
  while (handled.load(std::memory_order_acquire) < count) sched_yield();
}

TEST(BareRuntime, KeepsTheOrderOfOneForeignSender) {
  handled = 0;
  BareRuntime runtime(2);
  Port port(runtime);
  Actor& actor = port.Spawn(&Count);
  for (int i = 1; i <= kMessages; ++i) port.Send(actor, i);
  AwaitHandled(kMessages);
  runtime.AwaitIdle();
  EXPECT_EQ(actor.count, kMessages);
  port.Retire(actor);
}

TEST(BareRuntime, LosesNothingOfManyForeignSenders) {
  handled = 0;
  BareRuntime runtime(2);
  Port port(runtime);
  Actor& actor = port.Spawn(&Count);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      Port own(runtime);
      for (int i = 0; i < kMessages; ++i) own.Send(actor, i, /*kind=*/1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  AwaitHandled(4 * kMessages);
  runtime.AwaitIdle();
  EXPECT_EQ(actor.count, 4 * kMessages);
  port.Retire(actor);
}

void Burst(Actor& self, const Message& message, Port& port) {
  for (int i = 1; i <= message.value; ++i) port.Send(*self.peer, i, self.count == 1 ? 0 : 1);
}

TEST(BareRuntime, KeepsTheOrderOfABurst) {
  handled = 0;
  BareRuntime runtime(2);
  Port port(runtime);
  Actor& sink = port.Spawn(&Count);
  Actor& source = port.Spawn(&Burst, &sink, 1);
  port.Send(source, kMessages);
  AwaitHandled(kMessages);
  runtime.AwaitIdle();
  EXPECT_EQ(sink.count, kMessages);
  port.Retire(sink);
  port.Retire(source);
}

void StopAfterOne(Actor& self, const Message&, Port&) {
  self.stopped = true;
  handled.fetch_add(1, std::memory_order_release);
}

void SpawnAndSend(Actor&, const Message& message, Port& port) {
  for (int i = 0; i < message.value; ++i) port.Send(port.Spawn(&StopAfterOne), i);
}

TEST(BareRuntime, RunsMoreActorsThanARingHolds) {
  for (int workers = 1; workers <= 3; ++workers) {
    handled = 0;
    BareRuntime runtime(workers);
    Port port(runtime);
    Actor& spawner = port.Spawn(&SpawnAndSend);
    port.Send(spawner, kMessages);
    AwaitHandled(kMessages);
    runtime.AwaitIdle();
    port.Retire(spawner);
  }
}

void Bounce(Actor& self, const Message& message, Port& port) {
  if (message.value == 0) {
    handled.fetch_add(1, std::memory_order_release);
  } else {
    port.Send(*self.peer, message.value - 1);
  }
}

TEST(BareRuntime, RunsManyPairsToTheirEnd) {
  constexpr int kPairs = 50;
  handled = 0;
  BareRuntime runtime(3);
  Port port(runtime);
  std::vector<Actor*> actors;
  for (int i = 0; i < kPairs; ++i) {
    actors.push_back(&port.Spawn(&Bounce));
    actors.push_back(&port.Spawn(&Bounce, actors.back()));
    actors[2 * i]->peer = actors.back();
  }
  for (int i = 0; i < kPairs; ++i) port.Send(*actors[2 * i], 1000);
  AwaitHandled(kPairs);
  runtime.AwaitIdle();
  for (Actor* actor : actors) port.Retire(*actor);
}

TEST(BareRuntime, WakesAnIdleWorkerForEachMessage) {
  handled = 0;
  BareRuntime runtime(2);
  Port port(runtime);
  Actor& actor = port.Spawn(&Count);
  for (int i = 1; i <= 200; ++i) {
    runtime.AwaitIdle();
    port.Send(actor, i);
    AwaitHandled(i);
  }
  runtime.AwaitIdle();
  port.Retire(actor);
}

}  // namespace
}  // namespace fraktor::limit
