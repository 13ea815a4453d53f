// The actors of /system run, however busy the actors of /user are.
#include <atomic>
#include <memory>
#include <semaphore>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

struct Beat {};
struct Beaten {
  int beats;
};

class Heart final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (!message.Is<Beat>()) return context.Unhandled(message);
    context.Reply(Beaten{++beats_});
    return absl::OkStatus();
  }

 private:
  int beats_ = 0;
};

struct Spin {
  std::atomic<bool>* is_over;
  std::counting_semaphore<>* spinning;
};

// A hot loop.
class User final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const auto* const spin = message.TryAs<Spin>();
    if (spin == nullptr) return context.Unhandled(message);
    spin->spinning->release();
    // It pairs with nothing.
    while (!spin->is_over->load(std::memory_order_relaxed)) {
    }
    return absl::OkStatus();
  }
};

class SystemPool : public testing::Test {
 protected:
  static constexpr int kWorkers = 2;

  SystemPool() {
    ActorSystemOptions options;
    options.config.system_name = "busy";
    options.workers = kWorkers;
    system_ = ActorSystem::Create(options).value();
  }
  ~SystemPool() override { is_over_.store(true, std::memory_order_relaxed); }

  // Keeps all workers of the default pool busy for the rest of the test.
  void KeepBusy() {
    for (int i = 0; i < kWorkers; ++i) Tell(system_->TrySpawn(PropsOf<User>()).value(), Spin{&is_over_, &spinning_});
    for (int i = 0; i < kWorkers; ++i) spinning_.acquire();
  }

  std::atomic<bool> is_over_{false};
  std::counting_semaphore<> spinning_{0};
  std::unique_ptr<ActorSystem> system_;
};

// SCH-1: the dispatchers have a pool for the system's actors, "so that a hot loop of users cannot
// starve heartbeats".
TEST_F(SystemPool, RunsSystemActorsWhileUsersKeepAllWorkersBusy) {
  KeepBusy();
  const ActorRef heart = system_->SpawnSystemActor(PropsOf<Heart>(), "heart");
  for (int beat = 1; beat <= 100; ++beat) {
    const absl::StatusOr<Beaten> beaten = system_->AskAndWait<Beaten>(heart, Beat{}, absl::Seconds(20));
    ASSERT_TRUE(beaten.ok()) << beaten.status();
    EXPECT_EQ(beaten->beats, beat);
  }
}

TEST_F(SystemPool, IsNotForWhoChoosesAnother) {
  for (const DispatcherChoice choice : {DispatcherChoice::kAutomatic, DispatcherChoice::kSystem,
                                        DispatcherChoice::kPinned, DispatcherChoice::kDefault}) {
    const PropsPtr props = MakeProps<Heart>({.dispatcher = choice});
    const ActorRef heart = system_->SpawnSystemActor(*props);
    const uint16_t of_users = system_->scheduler().dispatchers().default_pool().number();
    const uint16_t of_system = system_->scheduler().dispatchers().system_pool().number();
    const uint16_t number = heart.slot()->dispatcher;
    EXPECT_EQ(number == of_users, choice == DispatcherChoice::kDefault) << static_cast<int>(choice);
    EXPECT_EQ(number == of_system, choice == DispatcherChoice::kAutomatic || choice == DispatcherChoice::kSystem)
        << static_cast<int>(choice);
    // The actors of /user have not run.
    const ActorRef user = system_->TrySpawn(*props).value();
    EXPECT_EQ(user.slot()->dispatcher == of_users,
              choice == DispatcherChoice::kAutomatic || choice == DispatcherChoice::kDefault);
  }
}

// The workers of the default pool, as these options ask for them.
absl::StatusOr<int> WorkersOf(ActorSystemOptions options) {
  options.config.system_name = "counted";
  const absl::StatusOr<std::unique_ptr<ActorSystem>> system = ActorSystem::Create(options);
  if (!system.ok()) return system.status();
  return (*system)->scheduler().dispatchers().default_pool().options().workers.value();
}

TEST(DefaultPool, HasTheWorkersThatEitherOptionSays) {
  EXPECT_EQ(WorkersOf({}).value(), StdToolbox::HardwareThreads());
  EXPECT_EQ(WorkersOf({.workers = 3}).value(), 3);
  for (const int workers : {1, 2, 3}) {
    EXPECT_EQ(WorkersOf({.scheduler = {.dispatchers = {.default_pool = {.workers = workers}}}}).value(), workers);
  }
  EXPECT_EQ(WorkersOf({.workers = 3, .scheduler = {.dispatchers = {.default_pool = {.workers = 3}}}}).value(), 3);
  EXPECT_EQ(WorkersOf({.scheduler = {.dispatchers = {.default_pool = {.budget = 16}}}}).value(),
            StdToolbox::HardwareThreads())
      << "another option of the pool says nothing about its workers";
  const absl::Status refused =
      WorkersOf({.workers = 3, .scheduler = {.dispatchers = {.default_pool = {.workers = 2}}}}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      refused.message(),
      "ActorSystemOptions.workers is 3, but scheduler.dispatchers.default_pool.workers is 2; both are the workers "
      "of the default pool: set one of them");
}

}  // namespace
}  // namespace fraktor
