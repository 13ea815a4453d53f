// Whole programs of actors. //benchmarks/limit has programs of the same names on the bare mechanism, and the peers have
// them too: `<program>[/<parameter>]/w:<workers>`. A message is one int64.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/benchmarks/measuring/countdown.h"
#include "fraktor/benchmarks/measuring/latency_probe.h"
#include "fraktor/benchmarks/measuring/program_time.h"
#include "fraktor/benchmarks/measuring/warm_memory.h"

namespace fraktor {

using actor_internal::ActorTree;

namespace {

using Clock = ProgramClock;

// One program runs at a time, so one is enough.
Countdown countdown;

// A system with so many workers.
class World {
 public:
  explicit World(int workers, bool observed = false)
      : system_(ActorSystem::Create(Options(workers, observed)).value()) {}

  template <class T, class... Args>
  ActorRef Spawn(Args&&... args) {
    return system_->TrySpawn(*MakeProps<T>({}, std::forward<Args>(args)...)).value();
  }
  template <class T>
  ActorRef Spawn() {
    return system_->TrySpawn(PropsOf<T>()).value();
  }

  void AwaitIdle() { system_->scheduler().dispatchers().AwaitQuiet(absl::InfiniteDuration()); }
  ActorTree& tree() { return system_->tree(); }
  ActorSystem& system() { return *system_; }

 private:
  static ActorSystemOptions Options(int workers, bool observed) {
    ActorSystemOptions options;
    options.workers = workers;
    options.scheduler.observability.enabled = observed;
    return options;
  }

  std::unique_ptr<ActorSystem> system_;
};

// Runs a program: `setup` spawns its actors, `start` sets them off when the clock runs. `items` is what it counts for.
template <typename Setup, typename Start>
void MeasureIn(World& world, benchmark::State& state, int64_t items, Setup setup, Start start) {
  for (auto _ : state) {
    WarmMemory memory;
    const std::vector<ActorRef> actors = setup(world);
    world.AwaitIdle();
    memory.Release();
    const Clock::time_point begin = Clock::now();
    start(actors);
    countdown.Await();
    state.SetIterationTime(Seconds(Clock::now() - begin));
    world.AwaitIdle();
  }
  state.SetItemsProcessed(state.iterations() * items);
}

template <typename Setup, typename Start>
void Measure(benchmark::State& state, int workers, int64_t items, Setup setup, Start start) {
  World world(workers);
  MeasureIn(world, state, items, setup, start);
}

class Pong final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    context.Tell(context.sender(), message.As<int64_t>());
    return absl::OkStatus();
  }
};

class Ping final : public ActorInstance {
 public:
  Ping(ActorRef peer, int64_t rounds) : peer_(peer), left_(rounds) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (left_-- > 0) {
      context.Tell(peer_, message.As<int64_t>());
    } else {
      countdown.Hit();
    }
    return absl::OkStatus();
  }

 private:
  const ActorRef peer_;
  int64_t left_;
};

void MeasurePairs(benchmark::State& state, World& world, int64_t pairs) {
  constexpr int64_t kMessages = 4'000'000;
  const int64_t rounds = kMessages / pairs / 2;
  MeasureIn(
      world, state, rounds * pairs * 2,
      [&](World& in) {
        countdown.Arm(pairs);
        std::vector<ActorRef> pings;
        for (int64_t i = 0; i < pairs; ++i) pings.push_back(in.Spawn<Ping>(in.Spawn<Pong>(), rounds));
        return pings;
      },
      [](const std::vector<ActorRef>& pings) {
        for (const ActorRef ping : pings) Tell(ping, int64_t{1});
      });
}

void PingPong(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)));
  MeasurePairs(state, world, 1);
}
BENCHMARK(PingPong)->Name("ping_pong")->ArgName("w")->Arg(1)->Arg(2)->Apply(Once);

void Pairs(benchmark::State& state) {
  World world(static_cast<int>(state.range(1)));
  MeasurePairs(state, world, state.range(0));
}
BENCHMARK(Pairs)
    ->Name("pairs")
    ->ArgNames({"", "w"})
    ->Args({1, 2})
    ->Args({10, 2})
    ->Args({100, 1})
    ->Args({100, 2})
    ->Args({1000, 2})
    ->Apply(Once);

// What counting and sampling cost: the two differ in nothing else.
void ObservedPingPong(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)), /*observed=*/true);
  MeasurePairs(state, world, 1);
}
BENCHMARK(ObservedPingPong)->Name("observed_ping_pong")->ArgName("w")->Arg(2)->Apply(Once);

void UnobservedPingPong(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)), /*observed=*/false);
  MeasurePairs(state, world, 1);
}
BENCHMARK(UnobservedPingPong)->Name("unobserved_ping_pong")->ArgName("w")->Arg(2)->Apply(Once);

// The same in turn within one process, many times, and each first as often as the other: what else the machine does
// meets both alike. `ratio` is the median of how long a round takes without, divided by how long the one beside it
// takes with.
void Observability(benchmark::State& state) {
  constexpr int kRounds = 401;
  constexpr int64_t kBounces = 10'000;
  const auto workers = static_cast<int>(state.range(0));
  World plain(workers, /*observed=*/false);
  World observed(workers, /*observed=*/true);
  const auto measure = [&](World& world) {
    countdown.Arm(1);
    const ActorRef ping = world.Spawn<Ping>(world.Spawn<Pong>(), kBounces);
    world.AwaitIdle();
    const double begin = CpuSeconds();
    Tell(ping, int64_t{1});
    countdown.Await();
    const double seconds = CpuSeconds() - begin;
    world.AwaitIdle();
    return seconds;
  };
  for (auto _ : state) {
    std::vector<double> ratios;
    double seconds = 0;
    for (int i = 0; i < kRounds; ++i) {
      double without = i % 2 == 0 ? measure(plain) : 0;
      const double with = measure(observed);
      if (i % 2 != 0) without = measure(plain);
      ratios.push_back(without / with);
      seconds += with;
    }
    std::sort(ratios.begin(), ratios.end());
    state.counters["ratio"] = ratios[kRounds / 2];
    state.SetIterationTime(seconds);
  }
  state.SetItemsProcessed(state.iterations() * kRounds * kBounces * 2);
}
BENCHMARK(Observability)->Name("observability")->ArgName("w")->Arg(1)->Arg(2)->Apply(Once);

struct Next {
  ActorRef actor;
};

class Link final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* hops = message.TryAs<int64_t>()) {
      if (*hops > 0) {
        context.Tell(next_, *hops - 1);
      } else {
        countdown.Hit();
      }
    } else {
      next_ = message.As<Next>().actor;
    }
    return absl::OkStatus();
  }

 private:
  ActorRef next_;
};

void Ring(benchmark::State& state) {
  constexpr int64_t kHops = 4'000'000;
  const int64_t size = state.range(0);
  Measure(
      state, static_cast<int>(state.range(1)), kHops,
      [&](World& world) {
        countdown.Arm(1);
        std::vector<ActorRef> links;
        for (int64_t i = 0; i < size; ++i) links.push_back(world.Spawn<Link>());
        for (int64_t i = 0; i < size; ++i) Tell(links[i], Next{links[(i + 1) % size]});
        return links;
      },
      [](const std::vector<ActorRef>& links) { Tell(links[0], int64_t{kHops}); });
}
BENCHMARK(Ring)->Name("ring")->ArgNames({"", "w"})->Args({1000, 1})->Args({1000, 2})->Apply(Once);

class Consumer final : public ActorInstance {
 public:
  explicit Consumer(int64_t messages) : left_(messages) {}

  absl::Status Receive(ActorContext&, Envelope&) override {
    if (--left_ == 0) countdown.Hit();
    return absl::OkStatus();
  }

 private:
  int64_t left_;
};

class Producer final : public ActorInstance {
 public:
  Producer(ActorRef consumer, int64_t messages) : consumer_(consumer), messages_(messages) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    for (int64_t i = 0; i < messages_; ++i) context.Tell(consumer_, i);
    return absl::OkStatus();
  }

 private:
  const ActorRef consumer_;
  const int64_t messages_;
};

constexpr int64_t kFanInMessages = 2'000'000;

void FanIn(benchmark::State& state) {
  const int64_t producers = state.range(0);
  const int64_t share = kFanInMessages / producers;
  Measure(
      state, static_cast<int>(state.range(1)), share * producers,
      [&](World& world) {
        countdown.Arm(1);
        const ActorRef consumer = world.Spawn<Consumer>(share * producers);
        std::vector<ActorRef> actors;
        for (int64_t i = 0; i < producers; ++i) actors.push_back(world.Spawn<Producer>(consumer, share));
        return actors;
      },
      [](const std::vector<ActorRef>& actors) {
        for (const ActorRef producer : actors) Tell(producer, int64_t{1});
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
      [&](World& world) {
        countdown.Arm(1);
        return std::vector<ActorRef>{world.Spawn<Consumer>(share * producers)};
      },
      [&](const std::vector<ActorRef>& actors) {
        std::vector<std::thread> threads;
        for (int64_t i = 0; i < producers; ++i) {
          threads.emplace_back([&] {
            for (int64_t value = 0; value < share; ++value) Tell(actors[0], value);
          });
        }
        for (std::thread& thread : threads) thread.join();
      });
}
BENCHMARK(FanInForeign)->Name("fan_in_foreign")->ArgNames({"", "w"})->Args({2, 2})->Apply(Once);

class Mayfly final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Stop();
    countdown.Hit();
    return absl::OkStatus();
  }
};

class Spawner final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    ActorTree& tree = ActorTree::Of(context);
    const int64_t actors = message.As<int64_t>();
    for (int64_t i = 0; i < actors; ++i) {
      const absl::StatusOr<ActorRef> child = tree.Spawn(context, PropsOf<Mayfly>());
      if (!child.ok()) return child.status();
      context.Tell(*child, i);
    }
    return absl::OkStatus();
  }
};

void Spawn(benchmark::State& state) {
  constexpr int64_t kActors = 1'000'000;
  Measure(
      state, static_cast<int>(state.range(0)), kActors,
      [](World& world) {
        countdown.Arm(kActors);
        return std::vector<ActorRef>{world.Spawn<Spawner>()};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{kActors}); });
}
BENCHMARK(Spawn)->Name("spawn")->ArgName("w")->Arg(2)->Apply(Once);

// A tree of actors, ten children each; a million leaves send their number up.
constexpr int64_t kLeaves = 1'000'000;

struct Grow {
  int64_t first;
  int64_t leaves;
};

class SkynetNode final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    constexpr int kChildren = 10;
    if (const auto* grow = message.TryAs<Grow>()) {
      parent_ = context.sender();
      if (grow->leaves == 1) {
        context.Tell(parent_, grow->first);
        context.Stop();
        return absl::OkStatus();
      }
      const int64_t share = grow->leaves / kChildren;
      ActorTree& tree = ActorTree::Of(context);
      for (int i = 0; i < kChildren; ++i) {
        const absl::StatusOr<ActorRef> child = tree.Spawn(context, PropsOf<SkynetNode>());
        if (!child.ok()) return child.status();
        context.Tell(*child, Grow{grow->first + i * share, share});
      }
      return absl::OkStatus();
    }
    sum_ += message.As<int64_t>();
    if (++answers_ == kChildren) {
      context.Tell(parent_, sum_);
      context.Stop();
    }
    return absl::OkStatus();
  }

 private:
  ActorRef parent_;
  int64_t sum_ = 0;
  int answers_ = 0;
};

std::atomic<int64_t> skynet_sum;  // written before the countdown's release, read after its acquire

class SkynetRoot final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (context.sender().IsNoOne()) {
      const absl::StatusOr<ActorRef> child = ActorTree::Of(context).Spawn(context, PropsOf<SkynetNode>());
      if (!child.ok()) return child.status();
      context.Tell(*child, Grow{0, kLeaves});
    } else {
      skynet_sum.store(message.As<int64_t>(), std::memory_order_relaxed);
      countdown.Hit();
    }
    return absl::OkStatus();
  }
};

void Skynet(benchmark::State& state) {
  Measure(
      state, static_cast<int>(state.range(0)), kLeaves,
      [](World& world) {
        countdown.Arm(1);
        return std::vector<ActorRef>{world.Spawn<SkynetRoot>()};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{1}); });
  if (skynet_sum.load(std::memory_order_relaxed) != kLeaves * (kLeaves - 1) / 2) {
    state.SkipWithError("the leaves do not add up");
  }
}
BENCHMARK(Skynet)->Name("skynet")->ArgName("w")->Arg(2)->Apply(Once);

class Asker final : public ActorInstance {
 public:
  explicit Asker(ActorRef server) : server_(server) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    left_ = message.As<int64_t>();
    return Ask(context);
  }
  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) override {
    if (!answer.ok()) return answer.status();
    if (--left_ > 0) return Ask(context);
    countdown.Hit();
    return absl::OkStatus();
  }

 private:
  absl::Status Ask(ActorContext& context) { return context.AskOnReply(server_, left_, absl::Seconds(60)).status(); }

  const ActorRef server_;
  int64_t left_ = 0;
};

void Ask(benchmark::State& state) {
  constexpr int64_t kAsks = 2'000'000;
  Measure(
      state, static_cast<int>(state.range(0)), kAsks,
      [](World& world) {
        countdown.Arm(1);
        return std::vector<ActorRef>{world.Spawn<Asker>(world.Spawn<Pong>())};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{kAsks}); });
}
BENCHMARK(Ask)->Name("ask")->ArgName("w")->Arg(1)->Arg(2)->Apply(Once);

class Silent final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

// Has so many asks open all the time, and asks others that are due before them.
class AskerAmongOpen final : public ActorInstance {
 public:
  AskerAmongOpen(ActorRef server, ActorRef silent, int64_t open) : server_(server), silent_(silent), open_(open) {}

  absl::Status PreStart(ActorContext& context) override {
    for (int64_t i = 0; i < open_; ++i) {
      if (auto ask = context.AskOnReply(silent_, i, absl::Hours(1)); !ask.ok()) return ask.status();
    }
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    left_ = message.As<int64_t>();
    return Ask(context);
  }
  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) override {
    if (!answer.ok()) return answer.status();
    if (--left_ > 0) return Ask(context);
    countdown.Hit();
    return absl::OkStatus();
  }

 private:
  absl::Status Ask(ActorContext& context) { return context.AskOnReply(server_, left_, absl::Seconds(60)).status(); }

  const ActorRef server_;
  const ActorRef silent_;
  const int64_t open_;
  int64_t left_ = 0;
};

void AskAmongOpen(benchmark::State& state) {
  constexpr int64_t kAsks = 500'000;
  Measure(
      state, static_cast<int>(state.range(1)), kAsks,
      [&](World& world) {
        countdown.Arm(1);
        return std::vector<ActorRef>{
            world.Spawn<AskerAmongOpen>(world.Spawn<Pong>(), world.Spawn<Silent>(), state.range(0))};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{kAsks}); });
}
BENCHMARK(AskAmongOpen)->Name("ask_among_open")->ArgNames({"", "w"})->Args({100'000, 1})->Apply(Once);

// The same programs by typed actors.
class TypedPong : public Actor<TypedPong, int64_t> {
 public:
  int64_t On(Context&, int64_t ball) { return ball; }
};

class TypedPing : public Actor<TypedPing, int64_t> {
 public:
  TypedPing(RefOf<TypedPong> peer, int64_t rounds) : peer_(peer), left_(rounds) {}

  void On(Context& context, int64_t ball) {
    if (left_-- > 0) {
      context.Tell(peer_, ball);
    } else {
      countdown.Hit();
    }
  }

 private:
  const RefOf<TypedPong> peer_;
  int64_t left_;
};

void TypedPingPong(benchmark::State& state) {
  constexpr int64_t kRounds = 2'000'000;
  Measure(
      state, static_cast<int>(state.range(0)), kRounds * 2,
      [](World& world) {
        countdown.Arm(1);
        ActorSystem& system = world.system();
        return std::vector<ActorRef>{
            system.Spawn<TypedPing>("", system.Spawn<TypedPong>(), int64_t{kRounds}).untyped()};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{1}); });
}
BENCHMARK(TypedPingPong)->Name("typed_ping_pong")->ArgName("w")->Arg(1)->Arg(2)->Apply(Once);

class TypedConsumer : public Actor<TypedConsumer, int64_t> {
 public:
  explicit TypedConsumer(int64_t messages) : left_(messages) {}
  void On(Context&, int64_t) {
    if (--left_ == 0) countdown.Hit();
  }

 private:
  int64_t left_;
};

class TypedProducer : public Actor<TypedProducer, int64_t> {
 public:
  TypedProducer(RefOf<TypedConsumer> consumer, int64_t messages) : consumer_(consumer), messages_(messages) {}
  void On(Context& context, int64_t) {
    for (int64_t i = 0; i < messages_; ++i) context.Tell(consumer_, i);
  }

 private:
  const RefOf<TypedConsumer> consumer_;
  const int64_t messages_;
};

void TypedFanIn(benchmark::State& state) {
  const int64_t producers = state.range(0);
  const int64_t share = kFanInMessages / producers;
  Measure(
      state, static_cast<int>(state.range(1)), share * producers,
      [&](World& world) {
        countdown.Arm(1);
        const auto consumer = world.system().Spawn<TypedConsumer>("", share * producers);
        std::vector<ActorRef> actors;
        for (int64_t i = 0; i < producers; ++i) {
          actors.push_back(world.system().Spawn<TypedProducer>("", consumer, share).untyped());
        }
        return actors;
      },
      [](const std::vector<ActorRef>& actors) {
        for (const ActorRef producer : actors) Tell(producer, int64_t{1});
      });
}
BENCHMARK(TypedFanIn)->Name("typed_fan_in")->ArgNames({"", "w"})->Args({100, 2})->Apply(Once);

class TypedMayfly : public Actor<TypedMayfly, int64_t> {
 public:
  void On(Context& context, int64_t) {
    context.Stop();
    countdown.Hit();
  }
};

class TypedSpawner : public Actor<TypedSpawner, int64_t> {
 public:
  void On(Context& context, int64_t actors) {
    for (int64_t i = 0; i < actors; ++i) context.Tell(context.Spawn<TypedMayfly>(), i);
  }
};

void TypedSpawn(benchmark::State& state) {
  constexpr int64_t kActors = 1'000'000;
  Measure(
      state, static_cast<int>(state.range(0)), kActors,
      [](World& world) {
        countdown.Arm(kActors);
        return std::vector<ActorRef>{world.system().Spawn<TypedSpawner>().untyped()};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{kActors}); });
}
BENCHMARK(TypedSpawn)->Name("typed_spawn")->ArgName("w")->Arg(2)->Apply(Once);

// By a coroutine.
class TypedAsker : public Actor<TypedAsker, int64_t> {
 public:
  explicit TypedAsker(RefOf<TypedPong> server) : server_(server) {}

  Task<> On(Context& context, int64_t asks) {
    for (int64_t i = 0; i < asks; ++i) {
      auto asking = context.Ask<int64_t>(server_, i, absl::Seconds(60));
      absl::StatusOr<int64_t> answer = co_await asking;
      if (!answer.ok()) throw std::runtime_error(answer.status().ToString());
    }
    countdown.Hit();
  }

 private:
  const RefOf<TypedPong> server_;
};

void TypedAsk(benchmark::State& state) {
  constexpr int64_t kAsks = 2'000'000;
  Measure(
      state, static_cast<int>(state.range(0)), kAsks,
      [](World& world) {
        countdown.Arm(1);
        ActorSystem& system = world.system();
        return std::vector<ActorRef>{system.Spawn<TypedAsker>("", system.Spawn<TypedPong>()).untyped()};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{kAsks}); });
}
BENCHMARK(TypedAsk)->Name("typed_ask")->ArgName("w")->Arg(1)->Arg(2)->Apply(Once);

// By a member function.
class TypedCallbackAsker : public Actor<TypedCallbackAsker, int64_t> {
 public:
  explicit TypedCallbackAsker(RefOf<TypedPong> server) : server_(server) {}

  absl::Status On(Context& context, int64_t asks) {
    left_ = asks;
    return Ask(context);
  }
  absl::Status OnAnswer(Context& context, absl::StatusOr<int64_t> answer) {
    if (!answer.ok()) return answer.status();
    if (--left_ > 0) return Ask(context);
    countdown.Hit();
    return absl::OkStatus();
  }

 private:
  absl::Status Ask(Context& context) {
    return context.AskOnReply<&TypedCallbackAsker::OnAnswer>(server_, left_, absl::Seconds(60));
  }

  const RefOf<TypedPong> server_;
  int64_t left_ = 0;
};

void TypedAskCallback(benchmark::State& state) {
  constexpr int64_t kAsks = 2'000'000;
  Measure(
      state, static_cast<int>(state.range(0)), kAsks,
      [](World& world) {
        countdown.Arm(1);
        ActorSystem& system = world.system();
        return std::vector<ActorRef>{system.Spawn<TypedCallbackAsker>("", system.Spawn<TypedPong>()).untyped()};
      },
      [](const std::vector<ActorRef>& actors) { Tell(actors[0], int64_t{kAsks}); });
}
BENCHMARK(TypedAskCallback)->Name("typed_ask_callback")->ArgName("w")->Arg(1)->Arg(2)->Apply(Once);

// All that an actor costs which has nothing to do: with an object of 32 bytes.
class Idle final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override {
    ++state_[0];
    return absl::OkStatus();
  }

 private:
  int64_t state_[3] = {};
};
static_assert(sizeof(Idle) == 32);

class Nursery final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    for (int64_t i = message.As<int64_t>(); i > 0; --i) {
      const absl::StatusOr<ActorRef> child = ActorTree::Of(context).Spawn(context, PropsOf<Idle>());
      if (!child.ok()) return child.status();
    }
    countdown.Hit();
    return absl::OkStatus();
  }
};

int64_t ResidentBytes() {
  int64_t pages = 0;
  std::FILE* const statm = std::fopen("/proc/self/statm", "r");
  if (statm == nullptr || std::fscanf(statm, "%*d %ld", &pages) != 1) pages = 0;
  if (statm != nullptr) std::fclose(statm);
  return pages * 4096;
}

void IdleActors(benchmark::State& state) {
  const int64_t actors = state.range(0);
  World world(1);
  countdown.Arm(1);
  const ActorRef nursery = world.Spawn<Nursery>();
  Tell(nursery, int64_t{1});
  countdown.Await();
  world.AwaitIdle();
  const int64_t before = ResidentBytes();
  for (auto _ : state) {
    countdown.Arm(1);
    const Clock::time_point begin = Clock::now();
    Tell(nursery, int64_t{actors});
    countdown.Await();
    state.SetIterationTime(Seconds(Clock::now() - begin));
    world.AwaitIdle();
  }
  state.counters["bytes_per_actor"] = static_cast<double>(ResidentBytes() - before) / static_cast<double>(actors);
}
BENCHMARK(IdleActors)->Name("idle_actors")->Arg(1'000'000)->Apply(Once);

// A foreign thread sends one message per millisecond.
LatencyProbe* probe;
std::atomic<bool> busy;  // tells busy pairs to go on; nothing else depends on it, so relaxed

class Receiver final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope& message) override {
    probe->Receive(message.As<int64_t>());
    return absl::OkStatus();
  }
};

class BusyPing final : public ActorInstance {
 public:
  explicit BusyPing(ActorRef peer) : peer_(peer) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (busy.load(std::memory_order_relaxed)) context.Tell(peer_, message.As<int64_t>());
    return absl::OkStatus();
  }

 private:
  const ActorRef peer_;
};

void MeasureLatency(benchmark::State& state, int64_t pairs, int workers) {
  constexpr size_t kMessages = 500;
  constexpr std::chrono::milliseconds kPeriod(1);
  constexpr int kLastWaits = 2000;
  World world(workers);
  LatencyProbe own(kMessages);
  probe = &own;
  busy.store(true, std::memory_order_relaxed);
  for (auto _ : state) {
    const ActorRef receiver = world.Spawn<Receiver>();
    std::vector<ActorRef> pings;
    for (int64_t i = 0; i < pairs; ++i) pings.push_back(world.Spawn<BusyPing>(world.Spawn<Pong>()));
    world.AwaitIdle();
    for (const ActorRef ping : pings) Tell(ping, int64_t{1});
    const double cpu_before = CpuSeconds();
    const Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < kMessages; ++i) {
      std::this_thread::sleep_for(kPeriod);
      Tell(receiver, LatencyProbe::Now());
    }
    for (int i = 0; i < kLastWaits && own.received() < kMessages; ++i) std::this_thread::sleep_for(kPeriod);
    const double elapsed = Seconds(Clock::now() - begin);
    state.SetIterationTime(elapsed);
    if (pairs == 0) state.counters["cores"] = (CpuSeconds() - cpu_before) / elapsed;
    busy.store(false, std::memory_order_relaxed);
    world.AwaitIdle();
    own.Report(state, kMessages);
  }
}

// Also says how much of a core the process burns when one message comes per millisecond.
void LatencyIdle(benchmark::State& state) { MeasureLatency(state, 0, static_cast<int>(state.range(0))); }
BENCHMARK(LatencyIdle)->Name("latency_idle")->ArgName("w")->Arg(2)->Apply(Once);

void LatencyBusy(benchmark::State& state) { MeasureLatency(state, state.range(0), static_cast<int>(state.range(1))); }
BENCHMARK(LatencyBusy)->Name("latency_busy")->ArgNames({"", "w"})->Args({2, 2})->Args({100, 2})->Apply(Once);

}  // namespace
}  // namespace fraktor
