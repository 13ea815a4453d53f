// What routing costs: an actor sends bursts to some others, itself or through a router, in one thread.
// `route/<how>/<routees>`; `direct` is the same program without a router, to compare with. An item is one message that
// was sent and handled.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/router.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

constexpr int64_t kBurst = 256;

struct Burst {};
struct Item {
  uint64_t number = 0;
  uint64_t RoutingKey() const { return number; }
};

class Sink final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope& message) override {
    sum_ += message.As<Item>().number;
    benchmark::DoNotOptimize(sum_);
    return absl::OkStatus();
  }

 private:
  uint64_t sum_ = 0;
};

// Sends to all in turn.
class Driver final : public ActorInstance {
 public:
  explicit Driver(std::vector<ActorRef> to) : to_(std::move(to)) {}
  absl::Status Receive(ActorContext& context, Envelope&) override {
    for (int64_t i = 0; i < kBurst; ++i) {
      context.Tell(to_[next_], Item{number_++});
      if (++next_ == to_.size()) next_ = 0;
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<ActorRef> to_;
  size_t next_ = 0;
  uint64_t number_ = 0;
};

void Measure(benchmark::State& state, const RouterStrategy* strategy) {
  const auto routees = static_cast<size_t>(state.range(0));
  const auto toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  options.log_level = LogLevel::kOff;
  options.scheduler.observability.enabled = false;
  const auto system = ActorSystem::Create(options).value();
  std::vector<ActorRef> to;
  for (size_t i = 0; i < routees; ++i) to.push_back(system->TrySpawn(PropsOf<Sink>()).value());
  if (strategy != nullptr) {
    to = {system->TrySpawn(**MakeGroup({.strategy = *strategy, .routees = to})).value()};
  }
  const ActorRef driver = system->TrySpawn(*MakeProps<Driver>({}, to)).value();
  toolbox->RunUntilIdle().IgnoreError();
  for (auto _ : state) {
    Tell(driver, Burst{});
    toolbox->RunUntilIdle().IgnoreError();
  }
  const bool to_all = strategy != nullptr && strategy->kind() == RoutingKind::kBroadcast;
  state.SetItemsProcessed(state.iterations() * kBurst * (to_all ? static_cast<int64_t>(routees) : 1));
}

void Direct(benchmark::State& state) { Measure(state, nullptr); }
void RoundRobin(benchmark::State& state) {
  const RouterStrategy strategy = RouterStrategy::RoundRobin();
  Measure(state, &strategy);
}
void RandomRouting(benchmark::State& state) {
  const RouterStrategy strategy = RouterStrategy::Random();
  Measure(state, &strategy);
}
void SmallestMailbox(benchmark::State& state) {
  const RouterStrategy strategy = RouterStrategy::SmallestMailbox();
  Measure(state, &strategy);
}
void ConsistentHashing(benchmark::State& state) {
  const RouterStrategy strategy = RouterStrategy::ConsistentHashing();
  Measure(state, &strategy);
}
void Broadcasting(benchmark::State& state) {
  const RouterStrategy strategy = RouterStrategy::Broadcasting();
  Measure(state, &strategy);
}

BENCHMARK(Direct)->Name("route/direct")->Arg(8)->Arg(64);
BENCHMARK(RoundRobin)->Name("route/round_robin")->Arg(8)->Arg(64);
BENCHMARK(RandomRouting)->Name("route/random")->Arg(8)->Arg(64);
BENCHMARK(SmallestMailbox)->Name("route/smallest_mailbox")->Arg(8)->Arg(64);
BENCHMARK(ConsistentHashing)->Name("route/consistent_hashing")->Arg(8)->Arg(64);
BENCHMARK(Broadcasting)->Name("route/broadcast")->Arg(8)->Arg(64);

}  // namespace
}  // namespace fraktor
