// The examples of the headers of actor/testkit/storm, so that they compile and run.
// //tools/tidy:tidy_test checks that each paragraph of an example stands here, line by line.
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/actor/testkit/storm/machine.h"
#include "fraktor/actor/testkit/storm/messages.h"
#include "fraktor/actor/testkit/storm/operation_table.h"
#include "fraktor/actor/testkit/storm/shutdown_tasks.h"
#include "fraktor/actor/testkit/storm/storm.h"
#include "fraktor/actor/testkit/storm/world.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::storm {
namespace {

TEST(HeaderExamples, Storm) {
  StormReport report = RunStorm({.seed = 7, .rounds = 5});
  EXPECT_TRUE(report.violations.empty());
}

class Reader final : public Actor<Reader, Letter> {
 public:
  void On(Context&, const Letter& letter) {
    letter.token.Handle();  // By the recipient; the listener of dead letters calls Die().
  }
};

TEST(HeaderExamples, StormLedger) {
  TestKit kit;
  RuntimeToolbox& toolbox = kit.toolbox();
  ActorRef actor = kit.Spawn<Reader>().untyped();
  Ledger ledger(toolbox);
  Tell(actor, Letter{Token(ledger, Token::Duty::kOwed), {}});
  EXPECT_EQ(ledger.in_flight(), 1);
  kit.Settle();
  EXPECT_EQ(ledger.in_flight(), 0);
  EXPECT_EQ(ledger.handled.load(), 1);
}

TEST(HeaderExamples, StormMachine) {
  const std::unique_ptr<StdToolbox> clock = StdToolbox::Make({}).value();
  World world({}, *clock);
  TestKit kit;
  ActorSystem& system = kit.system();
  PropsPtr props = MakeMachine(std::make_shared<Life>(world), {});
  ActorRef machine = system.TrySpawn(*props).value();
  Tell(machine, Letter{Token(world.ledger(), Token::Duty::kOwed), {}});
  kit.Settle();
  EXPECT_EQ(world.ledger().handled.load(), 1);
}

int Hello() { return 1; }
int Bye() { return 2; }

TEST(HeaderExamples, StormOperationTable) {
  const std::unique_ptr<StdToolbox> clock = StdToolbox::Make({}).value();
  World world({.skipped = {"bye"}}, *clock);
  Random random(7);
  struct Greeting {
    std::string_view name;
    int weight;
    int (*perform)();
  };
  const OperationTable<Greeting> table(/*first_row=*/0, {{"hello", 3, &Hello}, {"bye", 1, &Bye}});
  int64_t hellos = 0;
  for (int i = 0; i < 100; ++i) {
    int result = table.PerformOne(world, random, [](const Greeting& greeting) { return greeting.perform(); });
    hellos += result;
  }
  EXPECT_EQ(world.operations(0), hellos);
  EXPECT_EQ(world.operations(1), 0);
  EXPECT_GT(hellos, 0);
  EXPECT_LT(hellos, 100);
}

TEST(HeaderExamples, StormShutdownTasks) {
  Random random(7);
  std::unique_ptr<ActorSystem> owned = ActorSystem::Create({}).value();
  ActorSystem& system = *owned;
  Ledger ledger(system.toolbox());
  ShutdownTasks tasks(ledger);
  tasks.Add(system, random);
  system.Shutdown(absl::Seconds(60));
  tasks.CheckEnded();
  EXPECT_TRUE(ledger.ok());
}

}  // namespace
}  // namespace fraktor::storm
