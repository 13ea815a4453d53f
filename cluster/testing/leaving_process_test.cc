// A node in a process of its own that leaves its cluster, and is gone at once: calls that are asked meanwhile are answered.
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/cluster/testing/grpc_test_cluster.h"
#include "fraktor/remote/grpc/child_process.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

std::string Program() {
  const char* const folder = std::getenv("TEST_SRCDIR");
  const char* const workspace = std::getenv("TEST_WORKSPACE");
  if (folder == nullptr || workspace == nullptr) return BesideThisProgram("leaving_node_program");
  return absl::StrCat(folder, "/", workspace, "/cluster/testing/leaving_node_program");
}

// CLU-12
TEST(LeavingProcess, LosesNoCallAndNoAnswer) {
  GrpcTestCluster cluster(CounterCluster());
  cluster.AddNodes(1);
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    ChildProcess node = ChildProcess::Start({Program(), cluster.store_authority()}).value();
    ASSERT_EQ(node.ReadLine().value_or("nothing"), "ready");
    // Those that it runs.
    std::vector<std::string> there;
    for (int g = 0; there.size() < 32; ++g) {
      const std::string identity = absl::StrCat("r", round, "g", g);
      ASSERT_TRUE(AddTo(cluster, 0, identity, 1).ok());
      if (cluster[0].driver().Local(GrainKey(Counter::kGrainKind, identity)) == nullptr) there.push_back(identity);
    }
    std::deque<Future<Count>> answers;
    const auto take = [&] {
      const absl::StatusOr<Count> count = cluster.Await(std::move(answers.front()));
      answers.pop_front();
      ASSERT_TRUE(count.ok()) << count.status();
    };
    const auto ask = [&](int i) {
      answers.push_back(cluster[0]
                            .Grain<Counter>(there[static_cast<size_t>(i) % there.size()])
                            .Ask(cluster.system(0), Add{1}, absl::Seconds(20)));
      if (answers.size() >= 64) take();
    };
    int i = 0;
    for (; i < 2000 && !HasFailure(); ++i) ask(i);
    node.WriteLine("leave");
    // Until all of them are here.
    while (cluster[0].topology()->members().size() > 1 && !HasFailure()) ask(i++);
    for (const int end = i + 1000; i < end && !HasFailure(); ++i) ask(i);
    while (!answers.empty() && !HasFailure()) take();
    EXPECT_EQ(node.Wait(), 0);
  }
}

}  // namespace
}  // namespace fraktor
