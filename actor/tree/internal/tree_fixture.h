// For tests of ActorTree: TestSystem is a scheduler with a tree on any toolbox, Probe an actor that
// does what the test says and logs its life into a TestLog.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_FIXTURE_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/testing/sanitized.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::actor_internal {

using TestSupervisor = std::function<SupervisionDirective(ActorRef, const absl::Status&)>;

// An actor whose decider is a function of the test, if the test has set one.
class SupervisedByTest : public ActorInstance {
 public:
  SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure) override {
    return supervisor == nullptr ? ActorInstance::OnChildFailure(context, failure)
                                 : supervisor(failure.child, failure.error);
  }

  // The decider of all actors of the running system. Null: the default decision.
  static inline TestSupervisor supervisor;
};

// The parent of all actors that a test spawns. It stops a child instead of escalating.
class TestGuardian final : public SupervisedByTest {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
  SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure) override {
    const SupervisionDirective directive = SupervisedByTest::OnChildFailure(context, failure);
    return directive == SupervisionDirective::kEscalate ? SupervisionDirective::kStop : directive;
  }
};

struct TestSystemOptions {
  ReadyQueueSchedulerOptions scheduler = {};
  bool with_hub = true;
  TestSupervisor supervisor = nullptr;
  const Logger* log = nullptr;
};

// A scheduler with a tree, which end in the right order.
class TestSystem {
 public:
  explicit TestSystem(const TestSystemOptions& options = {}) : TestSystem(LocalToolbox::Make({}).value(), options) {}
  TestSystem(std::unique_ptr<RuntimeToolbox> toolbox, const TestSystemOptions& options)
      : toolbox_(std::move(toolbox)),
        scheduler_(ReadyQueueScheduler::Make(options.scheduler, *toolbox_).value()),
        tree_(std::make_unique<ActorTree>(ActorTreeOptions{.mailboxes = scheduler_->mailboxes(),
                                                           .dispatchers = scheduler_->dispatchers(),
                                                           .hub = options.with_hub ? &scheduler_->hub() : nullptr,
                                                           .dead_letters = &dead_letters_,
                                                           .log = options.log})) {
    SupervisedByTest::supervisor = options.supervisor;
    const absl::Status started = scheduler_->Start(*tree_);
    EXPECT_TRUE(started.ok()) << started;
    guardian_ = tree_->SpawnRoot(PropsOf<TestGuardian>()).value();
    ExpectForeignChildren(guardian_);
  }
  ~TestSystem() { End(); }

  void End() {
    if (scheduler_ == nullptr) return;
    scheduler_->ForceStop();
    tree_.reset();
    scheduler_.reset();
  }

  // Runs all actors until no message is left.
  void Settle() {
    if (!toolbox_->has_threads()) {
      const absl::Status idle = static_cast<PumpedToolbox&>(*toolbox_).RunUntilIdle();
      ASSERT_TRUE(idle.ok()) << idle;
    }
    ASSERT_TRUE(scheduler_->dispatchers().AwaitQuiet(absl::InfiniteDuration()));
  }

  ActorRef Spawn(const ActorProps& props) {
    const absl::StatusOr<ActorRef> root = tree_->SpawnChildOf(guardian_, props);
    EXPECT_TRUE(root.ok()) << root.status();
    return root.ok() ? *root : ActorRef();
  }

  bool IsAlive(ActorRef actor) const { return actor.IsCurrent(); }
  uint64_t dead_letters(DeadLetterReason reason) const { return dead_letters_.count(reason); }
  uint64_t dead_letters() const { return dead_letters_.total(); }

  EventStream& events() { return stream_; }
  ActorTree& tree() { return *tree_; }
  ReadyQueueScheduler& scheduler() { return *scheduler_; }
  Dispatchers& dispatchers() { return scheduler_->dispatchers(); }
  RuntimeToolbox& toolbox() { return *toolbox_; }

 private:
  EventStream stream_;
  DeadLetters dead_letters_{stream_};
  std::unique_ptr<RuntimeToolbox> toolbox_;
  std::unique_ptr<ReadyQueueScheduler> scheduler_;
  std::unique_ptr<ActorTree> tree_;
  ActorRef guardian_;
};

inline std::unique_ptr<RuntimeToolbox> Threads() { return StdToolbox::Make({}).value(); }

// The lines that actors have logged, in order.
class TestLog {
 public:
  void Add(std::string line) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> Take() {
    MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

// A message with a function that runs in the actor's turn.
struct Do {
  std::function<absl::Status(ActorContext&)> what;
};

struct ProbeHooks {
  std::function<absl::Status(ActorContext&)> start = nullptr;
  std::function<void(ActorContext&)> stop = nullptr;
};

// Logs its life and the strings that it receives: "name starts", "name: text", "name stops".
class Probe final : public SupervisedByTest {
 public:
  Probe(TestLog* log, std::string name, ProbeHooks hooks) : log_(*log), name_(std::move(name)), hooks_(hooks) {}

  absl::Status PreStart(ActorContext& context) override {
    log_.Add(name_ + " starts");
    return hooks_.start == nullptr ? absl::OkStatus() : hooks_.start(context);
  }
  void PostStop(ActorContext& context) override {
    log_.Add(name_ + " stops");
    if (hooks_.stop != nullptr) hooks_.stop(context);
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* action = message.TryAs<Do>()) return action->what(context);
    log_.Add(name_ + ": " + message.As<std::string>());
    return absl::OkStatus();
  }

 private:
  TestLog& log_;
  const std::string name_;
  const ProbeHooks hooks_;
};

inline PropsPtr ProbeProps(TestLog& log, std::string name, ProbeHooks hooks = {}, const PropsOptions& options = {}) {
  return MakeProps<Probe>(options, &log, std::move(name), std::move(hooks));
}

inline void TellText(ActorRef to, const char* text) { Tell(to, std::string(text)); }

// Lets an actor spawn a child, and runs all actors until no message is left.
inline absl::StatusOr<ActorRef> SpawnUnder(TestSystem& system, ActorRef parent, const ActorProps& props) {
  absl::StatusOr<ActorRef> child = absl::UnknownError("the parent did not run");
  Tell(parent, Do{[&child, &props](ActorContext& context) {
         child = ActorTree::Of(context).Spawn(context, props);
         return absl::OkStatus();
       }});
  system.Settle();
  return child;
}

}  // namespace fraktor::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_FIXTURE_H_
