// Grains as programs. `activate/grains` brings 10^5 grains to life on three nodes of one process, each by its first
// message; an item is a grain. `activate/spawns` spawns as many plain actors on one node and sends each a message.
//
// `call/grain` asks a grain on another node, over gRPC on this machine, one question after the other: p50_us, p99_us.
// `call/remote_ask` asks a plain actor there in the same way. `calls/*` are the same with 64 questions under way; an item
// is an answer. `calls/in_turn` asks both in turn, over the same connection: `ratio` is the median over the rounds of
// what a grain takes against a plain actor, `cpu_ratio` the same of processor time.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/benchmarks/measuring/countdown.h"
#include "fraktor/benchmarks/measuring/program_time.h"
#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/embedded/embedded_store.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/remote/grpc/grpc_node.h"
#include "fraktor/remote/grpc/grpc_security.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {

struct Answer {
  int64_t value = 0;
};
struct Question {
  using Reply = Answer;
  int64_t value = 0;
};
struct Wake {};

template <>
struct Codec<Answer> : FieldCodec<Answer, &Answer::value> {
  static constexpr std::string_view kManifest = "bench.answer";
};
template <>
struct Codec<Question> : FieldCodec<Question, &Question::value> {
  static constexpr std::string_view kManifest = "bench.question";
};

namespace {

constexpr int64_t kGrains = 100'000;
constexpr int64_t kWindow = 20'000;
constexpr int64_t kCalls = 10'000;
constexpr int64_t kManyCalls = 100'000;
constexpr size_t kUnderWay = 64;
constexpr int kRounds = 11;
constexpr int64_t kCallsOfRound = 20'000;

Countdown& Awake() {
  static Countdown& countdown = *new Countdown;
  return countdown;
}

class Sleeper : public Actor<Sleeper, Wake> {
 public:
  static constexpr std::string_view kGrainKind = "sleeper";
  Sleeper() = default;
  explicit Sleeper(const GrainContext&) {}
  void On(Context&, const Wake&) { Awake().Hit(); }
};

class Oracle : public Actor<Oracle, Question> {
 public:
  static constexpr std::string_view kGrainKind = "oracle";
  Oracle() = default;
  explicit Oracle(const GrainContext&) {}
  Answer On(Context&, const Question& question) { return {.value = question.value + 1}; }
};

ActorSystemOptions Quiet(std::string_view name, int workers) {
  ActorSystemOptions options;
  options.config.system_name = std::string(name);
  options.workers = workers;
  options.log_level = LogLevel::kError;
  return options;
}

void ActivateGrains(benchmark::State& state) {
  const auto toolbox = StdToolbox::Make({}).value();
  const auto membership = std::make_shared<MemoryMembership>(*toolbox);
  const auto store = std::make_shared<MemoryPlacementStore>(*toolbox);
  const auto peers = std::make_shared<LocalGrainPeers>();
  std::vector<std::unique_ptr<ActorSystem>> systems;
  for (int i = 0; i < 3; ++i) {
    ActorSystemOptions options = Quiet(absl::StrCat("node", i), 1);
    options.toolbox = toolbox.get();
    systems.push_back(ActorSystem::Create(options).value());
    Cluster::Start(*systems.back(), {.authority = absl::StrCat("n", i, ":1"),
                                     .kinds = {GrainKindOf<Sleeper>()},
                                     .membership = membership,
                                     .lock = store,
                                     .storage = store,
                                     .peers = peers})
        .value();
  }
  Cluster& cluster = *Cluster::Of(*systems[0]);
  // All have joined when a grain of each has answered.
  while (membership->topology()->members().size() < 3) {
    Awake().Arm(1);
    cluster.Grain<Sleeper>("first").Tell(Wake{});
    Awake().Await();
  }
  std::vector<GrainRef<Sleeper>> grains;
  for (int64_t i = 0; i < kGrains; ++i) grains.push_back(cluster.Grain<Sleeper>(absl::StrCat("g", i)));
  for (auto _ : state) {
    const ProgramClock::time_point begin = ProgramClock::now();
    for (int64_t from = 0; from < kGrains; from += kWindow) {
      Awake().Arm(kWindow);
      for (int64_t i = from; i < from + kWindow; ++i) grains[i].Tell(Wake{});
      Awake().Await();
    }
    state.SetIterationTime(Seconds(ProgramClock::now() - begin));
  }
  state.SetItemsProcessed(state.iterations() * kGrains);
  for (std::unique_ptr<ActorSystem>& system : systems) system.reset();
}

void SpawnActors(benchmark::State& state) {
  const auto system = ActorSystem::Create(Quiet("plain", 2)).value();
  for (auto _ : state) {
    const ProgramClock::time_point begin = ProgramClock::now();
    for (int64_t from = 0; from < kGrains; from += kWindow) {
      Awake().Arm(kWindow);
      for (int64_t i = from; i < from + kWindow; ++i) system->Spawn<Sleeper>().Tell(Wake{});
      Awake().Await();
    }
    state.SetIterationTime(Seconds(ProgramClock::now() - begin));
  }
  state.SetItemsProcessed(state.iterations() * kGrains);
}

// Two nodes over gRPC: the first asks, and has the store; the second runs the grain and the plain actor.
class Pair {
 public:
  Pair() {
    CodecSetup codecs;
    codecs.Add<Answer, Question>().Add(ClusterCodecs()).Add(EmbeddedCodecs());
    for (std::unique_ptr<ActorSystem>* system : {&asking_, &serving_}) {
      GrpcNodeOptions node{.name = "pair", .transport = {.security = GrpcSecurity::InsecureLoopback()}};
      node.system = Quiet("pair", 2);
      node.system.codecs = codecs.Build().value();
      *system = StartGrpcNode(std::move(node)).value();
    }
    if (!EmbeddedStore::Start(*asking_, {.is_new = true}).ok()) std::abort();
    const auto here = EmbeddedClient::Make(*asking_).value();
    cluster_ = Cluster::Start(*asking_, {.membership = here, .lock = here, .storage = here}).value();
    const auto there = EmbeddedClient::Make(*serving_, {.authority = cluster_->authority()}).value();
    const Cluster& serving =
        *Cluster::Start(*serving_,
                        {.kinds = {GrainKindOf<Oracle>()}, .membership = there, .lock = there, .storage = there})
             .value();
    serving_->Spawn<Oracle>("oracle");
    grain_.emplace(cluster_->Grain<Oracle>("delphi"));
    plain_ = asking_->Resolve(absl::StrCat("pekko://pair@", serving.authority(), "/user/oracle")).value();
  }

  Future<Answer> AskGrain() { return grain_->Ask(*asking_, Question{1}, absl::Seconds(30)); }
  Future<Answer> AskPlain() { return asking_->Ask<Answer>(plain_, Question{1}, absl::Seconds(30)); }

 private:
  std::unique_ptr<ActorSystem> serving_;
  std::unique_ptr<ActorSystem> asking_;
  Cluster* cluster_ = nullptr;
  std::optional<GrainRef<Oracle>> grain_;
  ActorRef plain_;
};

using Asking = Future<Answer> (Pair::*)();

void WarmUp(Pair& pair, Asking ask) {
  // The kind may not be known yet.
  while (!(pair.*ask)().Wait().ok()) {
  }
  for (int i = 0; i < 1000; ++i) (pair.*ask)().Wait().value();
}

void Call(benchmark::State& state, Asking ask) {
  Pair pair;
  WarmUp(pair, ask);
  for (auto _ : state) {
    std::vector<double> times;
    double sum = 0;
    for (int64_t i = 0; i < kCalls; ++i) {
      const ProgramClock::time_point begin = ProgramClock::now();
      (pair.*ask)().Wait().value();
      times.push_back(Seconds(ProgramClock::now() - begin));
      sum += times.back();
    }
    std::sort(times.begin(), times.end());
    state.SetIterationTime(sum);
    state.counters["p50_us"] = 1e6 * times[times.size() / 2];
    state.counters["p99_us"] = 1e6 * times[times.size() * 99 / 100];
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}

struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;
};

Cost CallMany(Pair& pair, Asking ask, int64_t calls) {
  std::deque<Future<Answer>> under_way;
  const ProgramClock::time_point begin = ProgramClock::now();
  const double cpu_begin = CpuSeconds();
  for (int64_t i = 0; i < calls; ++i) {
    if (under_way.size() == kUnderWay) {
      under_way.front().Wait().value();
      under_way.pop_front();
    }
    under_way.push_back((pair.*ask)());
  }
  for (Future<Answer>& answer : under_way) answer.Wait().value();
  return {.seconds = Seconds(ProgramClock::now() - begin), .cpu_seconds = CpuSeconds() - cpu_begin};
}

void Calls(benchmark::State& state, Asking ask) {
  Pair pair;
  WarmUp(pair, ask);
  for (auto _ : state) state.SetIterationTime(CallMany(pair, ask, kManyCalls).seconds);
  state.SetItemsProcessed(state.iterations() * kManyCalls);
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void CallsInTurn(benchmark::State& state) {
  Pair pair;
  WarmUp(pair, &Pair::AskGrain);
  WarmUp(pair, &Pair::AskPlain);
  CallMany(pair, &Pair::AskGrain, kCallsOfRound);
  CallMany(pair, &Pair::AskPlain, kCallsOfRound);
  for (auto _ : state) {
    std::vector<double> grains;
    std::vector<double> plain;
    std::vector<double> ratios;
    std::vector<double> cpu_ratios;
    double sum = 0;
    for (int round = 0; round < kRounds; ++round) {
      const Cost of_plain = CallMany(pair, &Pair::AskPlain, kCallsOfRound);
      const Cost of_grain = CallMany(pair, &Pair::AskGrain, kCallsOfRound);
      plain.push_back(kCallsOfRound / of_plain.seconds);
      grains.push_back(kCallsOfRound / of_grain.seconds);
      ratios.push_back(of_grain.seconds / of_plain.seconds);
      cpu_ratios.push_back(of_grain.cpu_seconds / of_plain.cpu_seconds);
      sum += of_plain.seconds + of_grain.seconds;
    }
    state.SetIterationTime(sum);
    state.counters["ratio"] = MedianOf(ratios);
    state.counters["cpu_ratio"] = MedianOf(cpu_ratios);
    state.counters["grains_per_second"] = MedianOf(grains);
    state.counters["plain_per_second"] = MedianOf(plain);
  }
  state.SetItemsProcessed(state.iterations() * kRounds * 2 * kCallsOfRound);
}

BENCHMARK(ActivateGrains)->Name("activate/grains")->Apply(Once);
BENCHMARK(SpawnActors)->Name("activate/spawns")->Apply(Once);
BENCHMARK_CAPTURE(Call, grain, &Pair::AskGrain)->Name("call/grain")->Apply(Once);
BENCHMARK_CAPTURE(Call, remote_ask, &Pair::AskPlain)->Name("call/remote_ask")->Apply(Once);
BENCHMARK_CAPTURE(Calls, grain, &Pair::AskGrain)->Name("calls/grain")->Apply(Once);
BENCHMARK_CAPTURE(Calls, remote_ask, &Pair::AskPlain)->Name("calls/remote_ask")->Apply(Once);
BENCHMARK(CallsInTurn)->Name("calls/in_turn")->Apply(Once);

}  // namespace
}  // namespace fraktor
