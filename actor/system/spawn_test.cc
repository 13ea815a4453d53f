// The slots of new actors, and spawns that fail.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"

namespace fraktor {

using actor_internal::ActorSlot;
using actor_internal::ActorSlotTable;
using actor_internal::DispatcherTable;

namespace {

struct Late {};

// An actor with a PreStart.
class Starter final : public ActorInstance {
 public:
  absl::Status PreStart(ActorContext&) override { return absl::OkStatus(); }
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

std::vector<ActorSlot*> AllSlots() {
  std::vector<ActorSlot*> slots;
  const ActorSlotTable& table = ProcessSlots();
  // More than a chunk has. Numbers without a slot are skipped.
  const size_t most = table.chunks() << 14;
  for (size_t number = 0; number < most; ++number) {
    if (ActorSlot* const slot = table.At(static_cast<uint32_t>(number))) slots.push_back(slot);
  }
  return slots;
}

TEST(FailedSpawn, LeavesASlotThatALateMessageDoesNotStart) {
  ActorSystemOptions options;
  options.workers = 1;
  options.log_level = LogLevel::kOff;
  const std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
  ASSERT_TRUE(system->TrySpawn(PropsOf<Starter>(), "taken").ok());
  const std::vector<ActorSlot*> slots = AllSlots();
  std::vector<uint32_t> before;
  for (const ActorSlot* const slot : slots) before.push_back(slot->generation());
  ASSERT_EQ(system->TrySpawn(PropsOf<Starter>(), "taken").status().code(), absl::StatusCode::kAlreadyExists);

  int used = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    ActorSlot& slot = *slots[i];
    const uint32_t generation = slot.generation();
    if (generation == before[i] || generation % 2 != 0) continue;
    ++used;
    // A thread has found the child under its parent, and has seen that it lives. It pushes its
    // message only now.
    EnvelopePtr late = MakeEnvelope<Late>(ActorRef());
    late->set_target_word(generation - 1);
    if (slot.mailbox.Post(late.release())) DispatcherTable::RegisterOrEmpty(slot);
  }
  EXPECT_EQ(used, 1);
  ASSERT_TRUE(system->scheduler().dispatchers().AwaitQuiet(absl::InfiniteDuration()));
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_TRUE(slots[i]->generation() == before[i] || slots[i]->mailbox.inbox.IsIdle());
  }
}

struct Ping {
  using Reply = Late;
};
struct SpawnThere {
  using Reply = Late;
  ActorSystem* system;
};

class Echo final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (!message.Is<Ping>()) return context.Unhandled(message);
    context.Reply(Late{});
    return absl::OkStatus();
  }
};

// Spawns an actor of another system.
class Founder final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const auto* const there = message.TryAs<SpawnThere>();
    if (there == nullptr) return context.Unhandled(message);
    if (absl::Status spawned = there->system->TrySpawn(PropsOf<Echo>(), "echo").status(); !spawned.ok()) return spawned;
    context.Reply(Late{});
    return absl::OkStatus();
  }
};

TEST(SpawnFromAnotherSystem, GivesAnActorThatOutlivesTheOtherSystem) {
  ActorSystemOptions options;
  options.workers = 1;
  options.log_level = LogLevel::kOff;
  const std::unique_ptr<ActorSystem> home = ActorSystem::Create(options).value();
  std::unique_ptr<ActorSystem> other = ActorSystem::Create(options).value();
  const ActorRef founder = other->TrySpawn(PropsOf<Founder>()).value();
  ASSERT_TRUE(other->AskAndWait(founder, SpawnThere{.system = home.get()}, absl::Minutes(1)).ok());
  const ActorRef echo = home->Resolve("/user/echo").value();
  other.reset();
  const absl::StatusOr<Late> reply = home->AskAndWait(echo, Ping{}, absl::Minutes(1));
  EXPECT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(home->Shutdown(absl::Seconds(20)).ok());
}

}  // namespace
}  // namespace fraktor
