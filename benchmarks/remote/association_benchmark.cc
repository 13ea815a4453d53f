// What it costs to send to another node, without a real transport: encoding, frames, decoding, over a loopback within
// the process. `one_way` sends int64 in windows, `round_trip` one question at a time. An item is one message, or one
// question with its answer.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/transport/loopback_transport.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr int64_t kWindow = 10'000;

class Sink : public Actor<Sink, int64_t, std::string> {
 public:
  void On(Context&, const int64_t& number) { sum_ += number; }
  std::string On(Context&, const std::string&) { return "done"; }

 private:
  int64_t sum_ = 0;
};

struct SendWindow {
  using Reply = std::string;
};
struct AskOnce {
  using Reply = std::string;
};
class Driver : public Actor<Driver, SendWindow, AskOnce> {
 public:
  explicit Driver(ActorRef to) : to_(to) {}
  Task<std::string> On(Context& context, SendWindow) {
    for (int64_t i = 0; i < kWindow; ++i) context.Tell(to_, i);
    auto asking = context.Ask<std::string>(to_, std::string("all?"), kPatience);
    absl::StatusOr<std::string> done = co_await asking;
    co_return done;
  }
  Task<std::string> On(Context& context, AskOnce) {
    std::string last;
    for (int i = 0; i < 100; ++i) {
      auto asking = context.Ask<std::string>(to_, std::string("?"), kPatience);
      absl::StatusOr<std::string> done = co_await asking;
      if (!done.ok()) co_return done.status();
      last = *done;
    }
    co_return last;
  }

 private:
  ActorRef to_;
};

class Node {
 public:
  Node(LoopbackNetwork& network, std::string_view name, uint16_t port)
      : toolbox_(StdToolbox::Make({.name = std::string(name)}).value()) {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.workers = 1;
    options.log_level = LogLevel::kError;
    options.config.system_name = std::string(name);
    options.config.remoting = RemotingConfig{.canonical_hostname = "localhost", .canonical_port = port};
    system = ActorSystem::Create(options).value();
    const PathAuthority address = PathAuthority::Create("pekko", "localhost", port).value();
    remoting = Remoting::Start(*system, network.MakeTransport(address, *toolbox_).value()).value();
  }

 private:
  std::unique_ptr<StdToolbox> toolbox_;

 public:
  std::unique_ptr<ActorSystem> system;
  Remoting* remoting;
};

template <class Message>
void Run(benchmark::State& state, int64_t items) {
  LoopbackNetwork network;
  Node a(network, "a", 1);
  Node b(network, "b", 2);
  b.system->Spawn<Sink>("sink");
  const ActorRef sink = a.system->Resolve(absl::StrCat(b.remoting->address().ToString(), "/user/sink")).value();
  auto driver = a.system->Spawn<Driver>("driver", sink);
  if (!a.system->AskAndWait(driver, Message{}, kPatience).ok()) state.SkipWithError("no answer");
  for (auto _ : state) {
    if (!a.system->AskAndWait(driver, Message{}, kPatience).ok()) state.SkipWithError("no answer");
  }
  state.SetItemsProcessed(state.iterations() * items);
}

void OneWay(benchmark::State& state) { Run<SendWindow>(state, kWindow); }
void RoundTrip(benchmark::State& state) { Run<AskOnce>(state, 100); }
BENCHMARK(OneWay)->Name("association/one_way")->UseRealTime();
BENCHMARK(RoundTrip)->Name("association/round_trip")->UseRealTime();

}  // namespace
}  // namespace fraktor
