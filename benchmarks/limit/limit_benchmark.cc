// What the bare mechanism reaches, program by program. The product's benchmarks and the peers have programs of the same
// names: `<program>[/<parameter>]/w:<workers>`. A message is one int64.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"

#include "fraktor/benchmarks/limit/bare_runtime.h"
#include "fraktor/benchmarks/measuring/countdown.h"
#include "fraktor/benchmarks/measuring/latency_probe.h"
#include "fraktor/benchmarks/measuring/program_time.h"
#include "fraktor/benchmarks/measuring/warm_memory.h"

namespace fraktor::limit {
namespace {

using Clock = ProgramClock;

// One program runs at a time, so one is enough.
Countdown countdown;

// Waits without work for the processor: the machine has few of them, and the sender must not be one of the busy ones.
void SleepFor(std::chrono::nanoseconds duration) { std::this_thread::sleep_for(duration); }

void RetireAll(Port& port, const std::vector<Actor*>& actors) {
  for (Actor* const actor : actors) port.Retire(*actor);
}

// Runs a program: `setup` spawns its actors, `start` sets them off when the clock runs, and what remains is cleaned up.
// `items` is what it counts for.
template <typename Setup, typename Start>
void Measure(benchmark::State& state, int workers, int64_t items, Setup setup, Start start) {
  BareRuntime runtime(workers);
  Port port(runtime);
  for (auto _ : state) {
    WarmMemory memory;
    const std::vector<Actor*> actors = setup(port);
    runtime.AwaitIdle();
    memory.Release();
    const Clock::time_point begin = Clock::now();
    start(runtime, port, actors);
    countdown.Await();
    state.SetIterationTime(Seconds(Clock::now() - begin));
    runtime.AwaitIdle();
    RetireAll(port, actors);
  }
  state.SetItemsProcessed(state.iterations() * items);
}

void Ping(Actor& self, const Message& message, Port& port) {
  if (--self.count > 0) {
    port.Send(*self.peer, message.value);
  } else {
    countdown.Hit();
  }
}

void Pong(Actor& self, const Message& message, Port& port) { port.Send(*self.peer, message.value); }

std::vector<Actor*> SpawnPairs(Port& port, int64_t pairs, int64_t rounds, Handler ping) {
  std::vector<Actor*> actors;
  for (int64_t i = 0; i < pairs; ++i) {
    Actor& first = port.Spawn(ping, nullptr, rounds);
    Actor& second = port.Spawn(&Pong, &first);
    first.peer = &second;
    actors.push_back(&first);
    actors.push_back(&second);
  }
  return actors;
}

void MeasurePairs(benchmark::State& state, int64_t pairs, int workers) {
  constexpr int64_t kMessages = 4'000'000;
  const int64_t rounds = kMessages / pairs / 2;
  Measure(
      state, workers, rounds * pairs * 2,
      [&](Port& port) {
        countdown.Arm(pairs);
        return SpawnPairs(port, pairs, rounds, &Ping);
      },
      [](BareRuntime&, Port& port, const std::vector<Actor*>& actors) {
        for (size_t i = 1; i < actors.size(); i += 2) port.Send(*actors[i], 1);
      });
}

void PingPong(benchmark::State& state) { MeasurePairs(state, 1, static_cast<int>(state.range(0))); }
BENCHMARK(PingPong)->Name("ping_pong")->ArgName("w")->Arg(1)->Arg(2)->Apply(Once);

void Pairs(benchmark::State& state) { MeasurePairs(state, state.range(0), static_cast<int>(state.range(1))); }
BENCHMARK(Pairs)
    ->Name("pairs")
    ->ArgNames({"", "w"})
    ->Args({1, 2})
    ->Args({10, 2})
    ->Args({100, 1})
    ->Args({100, 2})
    ->Args({1000, 2})
    ->Apply(Once);

void PassOn(Actor& self, const Message& message, Port& port) {
  if (message.value > 0) {
    port.Send(*self.peer, message.value - 1);
  } else {
    countdown.Hit();
  }
}

void Ring(benchmark::State& state) {
  constexpr int64_t kHops = 4'000'000;
  const int64_t size = state.range(0);
  Measure(
      state, static_cast<int>(state.range(1)), kHops,
      [&](Port& port) {
        countdown.Arm(1);
        std::vector<Actor*> actors;
        for (int64_t i = 0; i < size; ++i) actors.push_back(&port.Spawn(&PassOn));
        for (int64_t i = 0; i < size; ++i) actors[i]->peer = actors[(i + 1) % size];
        return actors;
      },
      [](BareRuntime&, Port& port, const std::vector<Actor*>& actors) { port.Send(*actors[0], kHops); });
}
BENCHMARK(Ring)->Name("ring")->ArgNames({"", "w"})->Args({1000, 1})->Args({1000, 2})->Apply(Once);

void Consume(Actor& self, const Message&, Port&) {
  if (--self.count == 0) countdown.Hit();
}

void Produce(Actor& self, const Message&, Port& port) {
  for (int64_t i = 0; i < self.count; ++i) port.Send(*self.peer, i);
}

constexpr int64_t kFanInMessages = 2'000'000;

void FanIn(benchmark::State& state) {
  const int64_t producers = state.range(0);
  const int64_t share = kFanInMessages / producers;
  Measure(
      state, static_cast<int>(state.range(1)), share * producers,
      [&](Port& port) {
        countdown.Arm(1);
        std::vector<Actor*> actors = {&port.Spawn(&Consume, nullptr, share * producers)};
        for (int64_t i = 0; i < producers; ++i) actors.push_back(&port.Spawn(&Produce, actors[0], share));
        return actors;
      },
      [](BareRuntime&, Port& port, const std::vector<Actor*>& actors) {
        for (size_t i = 1; i < actors.size(); ++i) port.Send(*actors[i], 1);
      });
}
BENCHMARK(FanIn)
    ->Name("fan_in")
    ->ArgNames({"", "w"})
    ->Args({1, 2})
    ->Args({10, 2})
    ->Args({100, 2})
    ->Args({1000, 2})
    ->Apply(Once);

void FanInForeign(benchmark::State& state) {
  const int64_t producers = state.range(0);
  const int64_t share = kFanInMessages / producers;
  Measure(
      state, static_cast<int>(state.range(1)), share * producers,
      [&](Port& port) {
        countdown.Arm(1);
        return std::vector<Actor*>{&port.Spawn(&Consume, nullptr, share * producers)};
      },
      [&](BareRuntime& runtime, Port&, const std::vector<Actor*>& actors) {
        std::vector<std::thread> threads;
        for (int64_t i = 0; i < producers; ++i) {
          threads.emplace_back([&] {
            Port own(runtime);
            for (int64_t value = 0; value < share; ++value) own.Send(*actors[0], value);
          });
        }
        for (std::thread& thread : threads) thread.join();
      });
}
BENCHMARK(FanInForeign)->Name("fan_in_foreign")->ArgNames({"", "w"})->Args({2, 2})->Apply(Once);

void StopAtOnce(Actor& self, const Message&, Port&) {
  self.stopped = true;
  countdown.Hit();
}

void SpawnMany(Actor& self, const Message&, Port& port) {
  for (int64_t i = 0; i < self.count; ++i) port.Send(port.Spawn(&StopAtOnce), i);
}

void Spawn(benchmark::State& state) {
  constexpr int64_t kActors = 1'000'000;
  Measure(
      state, static_cast<int>(state.range(0)), kActors,
      [](Port& port) {
        countdown.Arm(kActors);
        return std::vector<Actor*>{&port.Spawn(&SpawnMany, nullptr, kActors)};
      },
      [](BareRuntime&, Port& port, const std::vector<Actor*>& actors) { port.Send(*actors[0], 1); });
}
BENCHMARK(Spawn)->Name("spawn")->ArgName("w")->Arg(2)->Apply(Once);

// A tree of actors, ten children each; a million leaves send their number up. Until it has started, a node's count is
// the number of leaves below it and its sum the number of its first leaf.
constexpr uint32_t kStart = 1;
constexpr int64_t kLeaves = 1'000'000;

void SkynetNode(Actor& self, const Message& message, Port& port) {
  constexpr int kChildren = 10;
  if (message.kind == kStart) {
    if (self.count == 1) {
      port.Send(*self.peer, self.sum);
      self.stopped = true;
      return;
    }
    const int64_t share = self.count / kChildren;
    const int64_t first = self.sum;
    self.count = 0;
    self.sum = 0;
    for (int i = 0; i < kChildren; ++i) {
      port.Send(port.Spawn(&SkynetNode, &self, share, first + i * share), 0, kStart);
    }
    return;
  }
  self.sum += message.value;
  if (++self.count == kChildren) {
    port.Send(*self.peer, self.sum);
    self.stopped = true;
  }
}

void KeepSum(Actor& self, const Message& message, Port&) {
  self.sum = message.value;
  countdown.Hit();
}

void Skynet(benchmark::State& state) {
  Measure(
      state, static_cast<int>(state.range(0)), kLeaves,
      [](Port& port) {
        countdown.Arm(1);
        return std::vector<Actor*>{&port.Spawn(&KeepSum)};
      },
      [&](BareRuntime&, Port& port, const std::vector<Actor*>& actors) {
        port.Send(port.Spawn(&SkynetNode, actors[0], kLeaves, 0), 0, kStart);
        countdown.Await();
        if (actors[0]->sum != kLeaves * (kLeaves - 1) / 2) state.SkipWithError("the leaves do not add up");
      });
}
BENCHMARK(Skynet)->Name("skynet")->ArgName("w")->Arg(2)->Apply(Once);

// A foreign thread sends one message per millisecond.
LatencyProbe* probe;
std::atomic<bool> busy;  // tells busy pairs to go on; nothing else depends on it, so relaxed

void Receive(Actor&, const Message& message, Port&) { probe->Receive(message.value); }

void BusyPing(Actor& self, const Message& message, Port& port) {
  if (busy.load(std::memory_order_relaxed)) port.Send(*self.peer, message.value);
}

void MeasureLatency(benchmark::State& state, int64_t pairs, int workers) {
  constexpr size_t kMessages = 500;
  constexpr std::chrono::milliseconds kPeriod(1);
  constexpr int kLastWaits = 2000;
  BareRuntime runtime(workers);
  Port port(runtime);
  LatencyProbe own(kMessages);
  probe = &own;
  busy.store(true, std::memory_order_relaxed);
  for (auto _ : state) {
    Actor& receiver = port.Spawn(&Receive);
    std::vector<Actor*> actors = SpawnPairs(port, pairs, 0, &BusyPing);
    runtime.AwaitIdle();
    for (size_t i = 0; i < actors.size(); i += 2) port.Send(*actors[i], 1);
    const double cpu_before = CpuSeconds();
    const Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < kMessages; ++i) {
      SleepFor(kPeriod);
      port.Send(receiver, LatencyProbe::Now());
    }
    for (int i = 0; i < kLastWaits && own.received() < kMessages; ++i) SleepFor(kPeriod);
    const double elapsed = Seconds(Clock::now() - begin);
    const double cpu = CpuSeconds() - cpu_before;
    state.SetIterationTime(elapsed);
    if (pairs == 0) state.counters["cores"] = cpu / elapsed;
    busy.store(false, std::memory_order_relaxed);
    runtime.AwaitIdle();
    own.Report(state, kMessages);
    port.Retire(receiver);
    RetireAll(port, actors);
  }
}

// Also says how much of a core the process burns when one message comes per millisecond.
void LatencyIdle(benchmark::State& state) { MeasureLatency(state, 0, static_cast<int>(state.range(0))); }
BENCHMARK(LatencyIdle)->Name("latency_idle")->ArgName("w")->Arg(2)->Apply(Once);

void LatencyBusy(benchmark::State& state) { MeasureLatency(state, state.range(0), static_cast<int>(state.range(1))); }
BENCHMARK(LatencyBusy)->Name("latency_busy")->ArgNames({"", "w"})->Args({2, 2})->Args({100, 2})->Apply(Once);

}  // namespace
}  // namespace fraktor::limit
