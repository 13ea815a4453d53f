#include "fraktor/cluster/testing/threaded_test_cluster.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

size_t ThreadedTestCluster::AddNode() {
  const size_t node = nodes_.size();
  nodes_.emplace_back();
  ports_.push_back(0);
  systems_.emplace_back();
  Restart(node);
  return node;
}

void ThreadedTestCluster::Restart(size_t node) {
  systems_[node] = Begin(ports_[node]);
  nodes_[node] = Node{.system = systems_[node].get(),
                      .cluster = BeginNode(*systems_[node], store_authority()),
                      .authority = absl::StrCat("localhost:", ports_[node])};
}

std::string ThreadedTestCluster::store_authority() const { return absl::StrCat("localhost:", store_port_); }

// It ends without having left.
void ThreadedTestCluster::Crash(size_t node) {
  nodes_[node].cluster = nullptr;
  nodes_[node].system = nullptr;
  systems_[node].reset();
}

void ThreadedTestCluster::CrashStore() {
  EndStore();
  store_.reset();
}

void ThreadedTestCluster::RestartStore() {
  store_ = Begin(store_port_);
  BeginStore(*store_);
}

void ThreadedTestCluster::EndAll() {
  for (std::unique_ptr<ActorSystem>& system : systems_) system.reset();
  store_.reset();
}

bool ThreadedTestCluster::AwaitNode(FutureNode& future, absl::Duration within) {
  return future_internal::BlockUntilReady(future, within);
}

bool ThreadedTestCluster::AwaitTrue(absl::FunctionRef<bool()> condition, absl::Duration within) {
  RuntimeToolbox& toolbox = nodes_.back().system->toolbox();
  for (const Instant end = toolbox.Now() + within; !condition();) {
    if (toolbox.Now() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace fraktor::inline v0
