#include "fraktor/actor/scheduler/worker_executor.h"

#include <atomic>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/scheduler/actor_context.h"
#include "fraktor/actor/scheduler/actor_instance.h"
#include "fraktor/actor/scheduler/actor_slot.h"
#include "fraktor/actor/scheduler/dispatcher_table.h"
#include "fraktor/actor/scheduler/mailbox_registry.h"
#include "fraktor/actor/scheduler/mailing.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

struct Ball {
  int bounces = 0;
};
struct StopNow {};

// The least of a lifecycle: actors stop when they are told to, and their slots go back.
class TestLifecycle : public ActorLifecycle {
 public:
  explicit TestLifecycle(bool threaded) : mailboxes(threaded) {}

  ActorRef Spawn(const WorkerExecutor& executor, std::unique_ptr<ActorInstance> instance) {
    ActorSlot* const slot =
        mailboxes.Register({.instance = instance.release(), .dispatcher = executor.number()}).value();
    alive.fetch_add(1);
    const ActorRef ref = slot->ref();
    MailboxRegistry::LetGo(*slot);
    return ref;
  }

  absl::Status OnStart(ActorWorker&, ActorSlot&) override { return absl::OkStatus(); }

  void OnSystemMessage(ActorWorker& worker, ActorSlot&, Envelope&) override {
    worker.turn.gate |= static_cast<uint8_t>(Gate::kStopping);
  }
  void OnFailure(ActorWorker&, ActorSlot&, const absl::Status& error, Envelope*) override { ADD_FAILURE() << error; }
  bool MayEnd(ActorWorker&, ActorSlot&) override { return true; }
  void OnEnding(ActorWorker&, ActorSlot& slot) override {
    delete std::exchange(slot.instance, nullptr);
    MailboxRegistry::Unregister(slot);
  }
  void OnEnded(ActorWorker&, ActorSlot& slot) override {
    mailboxes.Release(slot);
    if (alive.fetch_sub(1) == 1) all_ended.release();
  }
  void OnDeadLetter(NodeCache&, EnvelopePtr, ActorSlot*, DeadLetterReason) override { dead_letters.fetch_add(1); }

  std::atomic<int> alive{0};
  std::atomic<int> dead_letters{0};
  std::binary_semaphore all_ended{0};
  MailboxRegistry mailboxes;
};

// Sends the ball back until it has bounced often enough.
class Player final : public ActorInstance {
 public:
  Player(std::atomic<int>& games, std::counting_semaphore<>& over, int bounces)
      : games_(games), over_(over), bounces_(bounces) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const int bounces = message.As<Ball>().bounces;
    if (bounces < bounces_) {
      context.Tell(partner.IsNoOne() ? context.sender() : partner, Ball{bounces + 1});
    } else {
      games_.fetch_add(1);
      over_.release();
    }
    return absl::OkStatus();
  }

  ActorRef partner;

 private:
  std::atomic<int>& games_;
  std::counting_semaphore<>& over_;
  const int bounces_;
};

enum class Kind { kStd, kLocal, kSim };

std::string NameOf(const testing::TestParamInfo<Kind>& kind) {
  return kind.param == Kind::kStd ? "Std" : kind.param == Kind::kLocal ? "Local" : "Sim";
}

// SCH-12 in small: pairs of actors that play, on each toolbox and with both coordinators.
class WorkerExecutorTest : public testing::TestWithParam<Kind> {
 protected:
  WorkerExecutorTest() {
    switch (GetParam()) {
      case Kind::kStd:
        toolbox_ = StdToolbox::Make({}).value();
        break;
      case Kind::kLocal:
        toolbox_ = LocalToolbox::Make({}).value();
        break;
      case Kind::kSim:
        toolbox_ = SimToolbox::Make({.seed = 5}).value();
        break;
    }
  }

  ExecutorServices Services() { return {*toolbox_, lifecycle_, lifecycle_.mailboxes}; }

  // Lets the workers run until `semaphore` can be taken.
  template <class Semaphore>
  void Await(Semaphore& semaphore) {
    if (GetParam() == Kind::kStd) {
      semaphore.acquire();
    } else {
      ASSERT_TRUE(static_cast<PumpedToolbox&>(*toolbox_).RunUntilIdle().ok());
      ASSERT_TRUE(semaphore.try_acquire());
    }
  }

  void Play(CoordinatorKind coordinator, int workers) {
    constexpr int kPairs = 10;
    constexpr int kBounces = 1000;
    auto executor = WorkerExecutor::Start({.workers = workers, .coordinator = coordinator}, Services());
    ASSERT_TRUE(executor.ok()) << executor.status();
    std::atomic<int> games{0};
    std::counting_semaphore<> over{0};
    std::vector<ActorRef> players;
    std::vector<ActorRef> starters;
    for (int i = 0; i < kPairs; ++i) {
      players.push_back(lifecycle_.Spawn(**executor, std::make_unique<Player>(games, over, kBounces)));
      auto starter = std::make_unique<Player>(games, over, kBounces);
      starter->partner = players.back();
      starters.push_back(lifecycle_.Spawn(**executor, std::move(starter)));
      players.push_back(starters.back());
    }
    for (ActorRef starter : starters) Tell(starter, Ball{});
    for (int i = 0; i < kPairs; ++i) Await(over);
    EXPECT_EQ(games.load(), kPairs);
    EXPECT_EQ(lifecycle_.dead_letters.load(), 0);

    for (ActorRef player : players) TellSystem(player, MakeEnvelope<StopNow>(ActorRef()));
    Await(lifecycle_.all_ended);
    Tell(players[0], Ball{});  // From a foreign thread: counted by the process.
    (*executor)->Stop();
  }

  std::unique_ptr<RuntimeToolbox> toolbox_;
  TestLifecycle lifecycle_{GetParam() == Kind::kStd};
};

TEST_P(WorkerExecutorTest, RunsActorsOnOneWorker) { Play(CoordinatorKind::kWorkStealing, 1); }
TEST_P(WorkerExecutorTest, RunsActorsOnThreeWorkers) { Play(CoordinatorKind::kWorkStealing, 3); }
TEST_P(WorkerExecutorTest, RunsActorsOnOneList) { Play(CoordinatorKind::kMutex, 2); }

TEST_P(WorkerExecutorTest, RunsWhatComesAfterItHasBeenIdle) {
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::atomic<int> games{0};
  std::counting_semaphore<> over{0};
  ActorRef player = lifecycle_.Spawn(*executor, std::make_unique<Player>(games, over, 0));
  for (int i = 0; i < 100; ++i) {
    Tell(player, Ball{});
    Await(over);
  }
  EXPECT_EQ(games.load(), 100);
  TellSystem(player, MakeEnvelope<StopNow>(ActorRef()));
  Await(lifecycle_.all_ended);
  executor->Stop();
}

INSTANTIATE_TEST_SUITE_P(All, WorkerExecutorTest, testing::Values(Kind::kStd, Kind::kLocal, Kind::kSim), NameOf);

TEST(WorkerExecutorOptions, RefuseAbsurdValuesByName) {
  EXPECT_TRUE(WorkerExecutorOptions().Validate().ok());
  for (const auto& [options, name] :
       std::vector<std::pair<WorkerExecutorOptions, std::string>>{{{.workers = 0}, "workers is 0"},
                                                                  {{.workers = -1}, "workers is -1"},
                                                                  {{.workers = 1 << 20}, "workers"},
                                                                  {{.budget = 0}, "budget"},
                                                                  {{.runs_per_step = -3}, "runs_per_step"}}) {
    const absl::Status status = options.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.ToString().find(name), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace fraktor
