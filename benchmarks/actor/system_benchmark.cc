// What actors cost in a whole system, through the API that programs use: bytes of an idle one, and memory of many that
// come and go.
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"

namespace fraktor {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// A line of /proc/self/status, in bytes.
int64_t MemoryBytes(std::string_view line) {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return 0;
  char text[256];
  int64_t kilobytes = 0;
  while (std::fgets(text, sizeof text, status) != nullptr) {
    if (std::string_view(text).substr(0, line.size()) == line) std::sscanf(text + line.size(), ": %ld", &kilobytes);
  }
  std::fclose(status);
  return kilobytes * 1024;
}

struct Poke {};

// 32 bytes each.
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

class TypedIdle : public Actor<TypedIdle, Poke> {
 public:
  void On(Context&, const Poke&) { ++state_[0]; }

 private:
  int64_t state_[3] = {};
};

struct Spawned {
  absl::Status status;
};

// Spawns so many children and answers.
struct Spawn {
  int64_t children;
  const ActorProps* props;
};
class Nursery final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const Spawn spawn = message.As<Spawn>();
    absl::Status status;
    for (int64_t i = 0; i < spawn.children && status.ok(); ++i) status = context.TrySpawn(*spawn.props).status();
    context.Reply(Spawned{status});
    return absl::OkStatus();
  }
};

std::unique_ptr<ActorSystem> MakeSystem() {
  ActorSystemOptions options;
  options.config.system_name = "bench";
  options.workers = 1;
  return ActorSystem::Create(options).value();
}

bool SpawnChildren(ActorSystem& system, ActorRef nursery, int64_t children, const ActorProps& props) {
  const absl::StatusOr<Spawned> done =
      system.AskAndWait<Spawned>(nursery, Spawn{children, &props}, absl::InfiniteDuration());
  return done.ok() && done->status.ok();
}

void MeasureIdle(benchmark::State& state, const ActorProps& props) {
  const int64_t actors = state.range(0);
  const std::unique_ptr<ActorSystem> system = MakeSystem();
  const ActorRef nursery = system->TrySpawn(PropsOf<Nursery>()).value();
  if (!SpawnChildren(*system, nursery, 1, props)) state.SkipWithError("no children");
  const int64_t before = MemoryBytes("VmRSS");
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    if (!SpawnChildren(*system, nursery, actors, props)) state.SkipWithError("no children");
    state.SetIterationTime(Seconds(Clock::now() - begin));
  }
  state.counters["bytes_per_actor"] = static_cast<double>(MemoryBytes("VmRSS") - before) / static_cast<double>(actors);
}

void IdleUntyped(benchmark::State& state) { MeasureIdle(state, PropsOf<Idle>()); }
void IdleTyped(benchmark::State& state) { MeasureIdle(state, TypedPropsOf<TypedIdle>()); }
BENCHMARK(IdleUntyped)->Name("system_idle_actors/untyped")->Arg(1'000'000)->UseManualTime()->Iterations(1);
BENCHMARK(IdleTyped)->Name("system_idle_actors/typed")->Arg(1'000'000)->UseManualTime()->Iterations(1);

// Two waves of actors that come and go. What the second adds to the most memory that the first has ever had, as a share
// of that.
void Waves(benchmark::State& state) {
  const int64_t actors = state.range(0);
  const std::unique_ptr<ActorSystem> system = MakeSystem();
  int64_t high_water[2] = {};
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    for (int64_t& mark : high_water) {
      const ActorRef nursery = system->TrySpawn(PropsOf<Nursery>()).value();
      if (!SpawnChildren(*system, nursery, actors, PropsOf<Idle>())) state.SkipWithError("no children");
      system->Stop(nursery);
      // Asked after the stop, it is answered when all children have gone, as a dead letter.
      while (system->Resolve(system->PathOf(nursery)).ok()) {
        system->AskAndWait<Spawned>(nursery, Spawn{0, nullptr}, absl::Seconds(10)).status().IgnoreError();
      }
      mark = MemoryBytes("VmHWM");
    }
    state.SetIterationTime(Seconds(Clock::now() - begin));
  }
  state.SetItemsProcessed(state.iterations() * 2 * actors);
  state.counters["growth"] = static_cast<double>(high_water[1] - high_water[0]) / static_cast<double>(high_water[0]);
}
BENCHMARK(Waves)->Name("waves")->Arg(1'000'000)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace fraktor
