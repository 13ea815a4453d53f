// Nodes with real threads, over a loopback: the order of messages, answers, the end.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/transport/loopback_transport.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

// Says how many it has got in order, and whether one was out of it.
class Counter : public Actor<Counter, int64_t, std::string> {
 public:
  void On(Context&, const int64_t& number) {
    is_in_order_ = is_in_order_ && number == count_ + 1;
    ++count_;
  }
  std::string On(Context&, const std::string&) { return absl::StrCat(is_in_order_ ? "in order " : "not ", count_); }

 private:
  int64_t count_ = 0;
  bool is_in_order_ = true;
};

// Sends numbers, a few at a time, and asks in between how far the other is.
struct SendAll {
  using Reply = std::string;
  int64_t count = 0;
};
class Sender : public Actor<Sender, SendAll> {
 public:
  explicit Sender(ActorRef to) : to_(to) {}
  Task<std::string> On(Context& context, SendAll run) {
    absl::StatusOr<std::string> seen = std::string();
    for (int64_t i = 1; i <= run.count; ++i) {
      context.Tell(to_, i);
      if (i % 100 != 0 && i != run.count) continue;
      auto asking = context.Ask<std::string>(to_, std::string("how many"), kPatience);
      seen = co_await asking;
      if (!seen.ok()) co_return seen.status();
    }
    co_return *seen;
  }

 private:
  ActorRef to_;
};

class ThreadedNode {
 public:
  ThreadedNode(LoopbackNetwork& network, std::string_view name, uint16_t port)
      : toolbox_(StdToolbox::Make({.name = std::string(name)}).value()) {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.workers = 2;
    options.config.system_name = std::string(name);
    options.config.remoting = RemotingConfig{.canonical_hostname = "localhost", .canonical_port = port};
    system_ = ActorSystem::Create(options).value();
    const PathAuthority address = PathAuthority::Create("pekko", "localhost", port).value();
    remoting_ = Remoting::Start(*system_, network.MakeTransport(address, *toolbox_).value()).value();
  }

  ActorSystem& system() { return *system_; }
  std::string Path(std::string_view path) const {
    return absl::StrCat(remoting_->address().ToString(), std::string(path));
  }

 private:
  std::unique_ptr<StdToolbox> toolbox_;
  std::unique_ptr<ActorSystem> system_;
  Remoting* remoting_;
};

TEST(RemotingWithThreads, KeepsTheOrderOfEachPairAndAnswersEverybody) {
  constexpr int kPairs = 8;
  constexpr int64_t kMessages = 1000;
  LoopbackNetwork network;
  ThreadedNode a(network, "a", 1);
  ThreadedNode b(network, "b", 2);
  std::vector<Future<std::string>> results;
  for (int i = 0; i < kPairs; ++i) {
    ThreadedNode& from = i % 2 == 0 ? a : b;
    ThreadedNode& to = i % 2 == 0 ? b : a;
    const std::string name = absl::StrCat("counter-", i);
    to.system().Spawn<Counter>(name);
    auto sender = from.system().Spawn<Sender>("", from.system().Resolve(to.Path(absl::StrCat("/user/", name))).value());
    results.push_back(from.system().Ask(sender, SendAll{kMessages}, kPatience));
  }
  for (Future<std::string>& result : results) {
    const absl::StatusOr<std::string> seen = result.Wait();
    ASSERT_TRUE(seen.ok()) << seen.status();
    EXPECT_EQ(*seen, absl::StrCat("in order ", kMessages));
  }
}

TEST(RemotingWithThreads, EndsWhileOthersSendToIt) {
  LoopbackNetwork network;
  ThreadedNode a(network, "a", 1);
  auto b = std::make_unique<ThreadedNode>(network, "b", 2);
  b->system().Spawn<Counter>("counter");
  const ActorRef there = a.system().Resolve(b->Path("/user/counter")).value();
  EXPECT_TRUE(a.system().AskAndWait<std::string>(there, std::string("?"), kPatience).ok());
  std::atomic<bool> stop{false};
  std::thread sending([&] {
    for (int64_t i = 1; !stop.load(); ++i) {
      Tell(there, i);
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  b.reset();
  stop.store(true);
  sending.join();
}

}  // namespace
}  // namespace fraktor
