// Nodes in processes of their own, which are killed, stopped, and started again.
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/child_process.h"
#include "fraktor/remote/grpc/grpc_transport.h"

namespace fraktor {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

std::string NodeProgram() {
  const char* const folder = std::getenv("TEST_SRCDIR");
  const char* const workspace = std::getenv("TEST_WORKSPACE");
  if (folder == nullptr || workspace == nullptr) return BesideThisProgram("node_program");
  return absl::StrCat(folder, "/", workspace, "/remote/grpc/node_program");
}

// A node of another process.
class Child {
 public:
  explicit Child(uint16_t port = 0) : process_(ChildProcess::Start({NodeProgram(), absl::StrCat(port)}).value()) {
    const std::string line = process_.ReadLine().value();
    int picked = 0;
    EXPECT_TRUE(line.substr(0, 6) == "ready " && absl::SimpleAtoi(line.substr(6), &picked)) << line;
    port_ = static_cast<uint16_t>(picked);
  }
  uint16_t port() const { return port_; }
  ChildProcess& process() { return process_; }
  std::string Path(std::string_view path) const {
    return absl::StrCat("pekko://child@localhost:", port_, std::string(path));
  }

 private:
  ChildProcess process_;
  uint16_t port_ = 0;
};

// The node of this process.
class Node {
 public:
  Node() {
    std::unique_ptr<Transport> transport =
        GrpcTransport::Listen({.security = GrpcSecurity::InsecureLoopback()}).value();
    TestKitOptions options;
    options.threads = 2;
    options.patience = kPatience;
    options.system.config.system_name = "parent";
    options.system.config.remoting =
        RemotingConfig{.canonical_hostname = "localhost", .canonical_port = transport->port()};
    kit = std::make_unique<TestKit>(options);
    RemoteOptions remote;
    remote.tick = absl::Milliseconds(20);
    remote.handshake_retry = absl::Milliseconds(100);
    remote.max_backoff = absl::Milliseconds(200);
    remote.heartbeat_interval = absl::Milliseconds(100);
    remote.detector.acceptable_pause = absl::Seconds(1);
    remote.detector.first_interval = absl::Milliseconds(100);
    remote.shutdown_flush = absl::Milliseconds(200);
    remote.quarantine_stop = absl::Milliseconds(100);
    remoting = Remoting::Start(kit->system(), std::move(transport), remote).value();
  }

  ActorRef Desk(const Child& child) { return kit->system().Resolve(child.Path("/user/desk")).value(); }
  // Asks until there is an answer: what is sent while there is no link may be lost.
  void Reach(ActorRef desk) {
    while (!kit->system().AskAndWait<std::string>(desk, std::string("?"), absl::Milliseconds(500)).ok()) {
    }
  }

  std::unique_ptr<TestKit> kit;
  Remoting* remoting;
};

size_t Count(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}
size_t Files() { return Count("/proc/self/fd"); }
size_t Threads() { return Count("/proc/self/task"); }

enum class End { kKilled, kStopped };

// One life of a child that is watched, its end, and the next one at the same address.
void RunLives(Node& node, End how) {
  auto first = std::make_unique<Child>();
  const ActorRef desk = node.Desk(*first);
  node.Reach(desk);
  auto probe = node.kit->Probe();
  probe.Watch(desk);
  first->process().Signal(how == End::kKilled ? SIGKILL : SIGSTOP);
  // The detector's time is about a second.
  probe.ExpectTerminated(desk);
  first->process().Signal(SIGKILL);
  EXPECT_EQ(first->process().Wait(), -SIGKILL);
  const uint16_t port = first->port();
  first = nullptr;
  Child second(port);
  node.Reach(desk);
  // It is watched afresh.
  probe.Watch(desk);
  second.process().CloseInput();
  probe.ExpectTerminated(desk);
  EXPECT_EQ(second.process().Wait(), 0);
}

TEST(NodeProcess, IsReportedWhenItIsKilledAndReachedWhenItIsStartedAgain) {
  Node node;
  RunLives(node, End::kKilled);
}

TEST(NodeProcess, IsReportedWhenItIsStoppedAndReachedWhenItIsStartedAgain) {
  Node node;
  RunLives(node, End::kStopped);
}

// Whether there are at most so many of both, at once or after a while: gRPC's threads leave when their work is done.
bool GoesBackTo(size_t files, size_t threads) {
  const absl::Time end = absl::Now() + absl::Seconds(5);
  while (Files() > files || Threads() > threads) {
    if (absl::Now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// gRPC keeps some threads and files for the process, more of them the busier the machine is: that comes to an end. What
// each life would leave behind does not.
TEST(NodeProcess, LeavesNoFileAndNoThreadBehind) {
  size_t files = 0;
  size_t threads = 0;
  for (int round = 0; round < 10; ++round) {
    {
      Node node;
      RunLives(node, round % 2 == 0 ? End::kKilled : End::kStopped);
    }
    if (round > 0 && GoesBackTo(files, threads)) return;
    files = Files();
    threads = Threads();
  }
  FAIL() << "there are ever more: " << files << " files and " << threads << " threads";
}

}  // namespace
}  // namespace fraktor
