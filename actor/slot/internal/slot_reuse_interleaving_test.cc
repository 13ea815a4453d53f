// Two actors use a slot one after the other, while senders have references to the first. The tests
// run every interleaving. The actor that a message was sent to handles it once, or it is a dead
// letter once; no other actor sees it. To prove that the tests can fail, each protecting step is
// left out once.
//
// The inbox and the generation are the product's. The steps of sending, running, ending and
// spawning are those of mailing.cc, message_invoker.cc and mailbox_registry.cc. A thread that would
// schedule the actor runs it at once.
//
// SCH-5
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"
#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_cases.h"

namespace fraktor::actor_internal {

using utils_internal::BasicInbox;
using utils_internal::BasicInboxNode;
using utils_internal::BasicTableSlot;
using utils_internal::InboxPush;
using utils_internal::SlotPool;

namespace {

enum class Mutation {
  kNone,
  kNoCheckBySender,    // The sender pushes without a generation check.
  kNoCheckByReceiver,  // The recipient handles every message in the mailbox.
  kIdleBeforeStale,    // An actor that ends makes its mailbox idle before its references are stale.
  kNoLastLook,         // An actor that ends does not check its mailbox again before it frees the slot.
  kNoClaim,            // A spawner takes a slot whose mailbox another thread holds.
  kForgetsLateOnes,    // A spawner does not run an actor whose mailbox is not empty.
};

struct Message : BasicInboxNode<ModelAtomics> {
  explicit Message(uint32_t target_in, bool stops_in = false) : target(target_in), stops(stops_in) {}
  ModelPlain<uint32_t> target;
  ModelPlain<bool> stops;
  // Written by the thread that ends the message: twice is a race, or a count of two.
  ModelPlain<int> handled{0};
  ModelPlain<int> dead{0};
};

struct Slot : BasicTableSlot<ModelAtomics> {
  BasicInbox<ModelAtomics> inbox;
  // Belongs to the holder of the mailbox.
  ModelPlain<Message*> first{nullptr};
  ModelPlain<uint32_t> actor{0};  // The generation of the actor that lives here; 0 if none does.
};

using Pool = SlotPool<Slot, 4096, ModelAtomics>;

template <Mutation kMutation>
class System {
 public:
  System() {
    Pool::Activate({&slot_, 1});
    slot_.actor = 1;
  }

  void Send(Message& message) {
    if (kMutation != Mutation::kNoCheckBySender && !slot_.IsAt(message.target)) {
      ++message.dead;
      return;
    }
    if (slot_.inbox.Push(&message) == InboxPush::kClaimed) {
      slot_.first = &message;
      Run();
    }
  }

  // Puts the next actor into the slot and sends it a message, unless the slot is in use, or a late
  // sender holds its mailbox.
  void Spawn(Message& greeting) {
    if (!free_.exchange(false, std::memory_order_acquire)) return;
    const bool claimed = slot_.inbox.TryClaim();
    if (!claimed && kMutation != Mutation::kNoClaim) {
      free_.store(true, std::memory_order_release);
      return;
    }
    spawned_ = true;
    const uint32_t generation = slot_.generation() + 1;
    slot_.actor = generation;
    Pool::Activate({&slot_, generation});
    if (claimed && !slot_.inbox.TryGoIdle() && kMutation != Mutation::kForgetsLateOnes) Run();
    greeting.target = generation;
    Send(greeting);
  }

  void ExpectEachMessageEndedOnce(const std::vector<Message*>& messages, const Message& greeting) {
    MODEL_ASSERT(slot_.inbox.IsIdle(), "somebody holds the mailbox, and nobody runs");
    for (const Message* message : messages) {
      MODEL_ASSERT(message->handled + message->dead == 1, "a message was lost, or handled twice");
    }
    MODEL_ASSERT(greeting.handled == (spawned_ ? 1 : 0), "the new actor did not get its message");
  }

 private:
  // Called by the holder of the mailbox.
  void Run() {
    const uint32_t generation = slot_.generation();
    Message* list = slot_.first;
    slot_.first = nullptr;
    for (;;) {
      while (list != nullptr) {
        Message& message = *list;
        list = static_cast<Message*>(message.next.Get());
        if (kMutation != Mutation::kNoCheckByReceiver && message.target != generation) {
          ++message.dead;
          continue;
        }
        MODEL_ASSERT(slot_.actor == message.target, "a message reached another actor than its own");
        ++message.handled;
        if (message.stops) {
          End(list);
          return;
        }
      }
      if (slot_.inbox.TryGoIdle()) return;
      list = static_cast<Message*>(slot_.inbox.TakeAll().first);
    }
  }

  void End(Message* list) {
    slot_.actor = 0;
    if (kMutation != Mutation::kIdleBeforeStale) Pool::Deactivate({&slot_, slot_.generation()});
    DeadLetters(list);
    while (!slot_.inbox.TryGoIdle()) {
      if (kMutation == Mutation::kNoLastLook) break;
      DeadLetters(static_cast<Message*>(slot_.inbox.TakeAll().first));
    }
    if (kMutation == Mutation::kIdleBeforeStale) Pool::Deactivate({&slot_, slot_.generation()});
    free_.store(true, std::memory_order_release);
  }

  static void DeadLetters(Message* list) {
    while (list != nullptr) {
      Message& message = *list;
      list = static_cast<Message*>(message.next.Get());
      ++message.dead;
    }
  }

  Slot slot_;
  // The pool: from Release to Reserve.
  ModelAtomic<bool> free_{false};
  bool spawned_ = false;
};

template <Mutation kMutation>
struct Cases {
  // An actor is stopped while another thread sends to it, and the next actor takes the slot.
  static void OneLateSender(Model& m) {
    auto& system = m.Make<System<kMutation>>();
    auto& stop = m.Make<Message>(1u, true);
    auto& late = m.Make<Message>(1u);
    auto& greeting = m.Make<Message>(0u);
    m.Thread("stops", [&] { system.Send(stop); });
    m.Thread("sender", [&] { system.Send(late); });
    m.Thread("spawner", [&] { system.Spawn(greeting); });
    m.After([&] { system.ExpectEachMessageEndedOnce({&stop, &late}, greeting); });
  }

  // Two messages of one sender: the generation may change between their checks.
  static void TwoLateMessages(Model& m) {
    auto& system = m.Make<System<kMutation>>();
    auto& stop = m.Make<Message>(1u, true);
    auto& first = m.Make<Message>(1u);
    auto& second = m.Make<Message>(1u);
    auto& greeting = m.Make<Message>(0u);
    m.Thread("stops and spawns", [&] {
      system.Send(stop);
      system.Spawn(greeting);
    });
    m.Thread("sender", [&] {
      system.Send(first);
      system.Send(second);
    });
    m.After([&] { system.ExpectEachMessageEndedOnce({&stop, &first, &second}, greeting); });
  }

  static std::vector<ModelTest> All() {
    return {{"one late sender", OneLateSender}, {"two late messages", TwoLateMessages}};
  }
};

TEST(SlotReuseInterleaving, GivesEachMessageToItsActorOrToDeadLetters) { ExpectAllPass(Cases<Mutation::kNone>::All()); }

// The check of the sender only saves a run. The check of the recipient is the decisive one.
TEST(SlotReuseInterleaving, DoesNotRelyOnTheLookOfTheSender) {
  ExpectAllPass(Cases<Mutation::kNoCheckBySender>::All());
}

template <Mutation kMutation>
std::string WhatFails() {
  return FirstFailure(Cases<kMutation>::All());
}

TEST(SlotReuseInterleaving, FailsIfAStepIsLeftOut) {
  EXPECT_EQ(WhatFails<Mutation::kNoCheckByReceiver>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kIdleBeforeStale>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kNoLastLook>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kNoClaim>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kForgetsLateOnes>(), "assertion in one late sender");
}

}  // namespace
}  // namespace fraktor::actor_internal
