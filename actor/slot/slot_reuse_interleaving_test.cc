// A slot that goes from one actor to the next while senders still have references to the first, in every interleaving:
// a message is handled by the actor that it was sent to or is a dead letter, once, and nobody else sees it. And the
// proof that these tests can fail: they do as soon as one of the steps that make it so is left out.
//
// The inbox, the generation and what changes it are the real ones. The steps of sending, running, ending and spawning
// are those of mailing.cc, message_invoker.cc and mailbox_registry.cc; whoever would register the actor runs it at once.
//
// SCH-5
#include <atomic>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/queue/inbox.h"
#include "fraktor/utils/table/slot_pool.h"
#include "fraktor/utils/table/slot_table.h"
#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {
namespace {

enum class Mutation {
  kNone,
  kNoCheckBySender,    // Pushes without looking at the generation.
  kNoCheckByReceiver,  // Handles whatever is in the mailbox.
  kIdleBeforeStale,    // An actor that ends lets go of its mailbox before its references are stale.
  kNoLastLook,         // An actor that ends does not look again before it gives the slot back.
  kNoClaim,            // A spawner takes a slot whose mailbox somebody else has.
  kForgetsLateOnes,    // A spawner does not run an actor whose mailbox is not empty.
};

struct Message : BasicInboxNode<ModelAtomics> {
  explicit Message(uint32_t target_in, bool stops_in = false) : target(target_in), stops(stops_in) {}
  ModelPlain<uint32_t> target;
  ModelPlain<bool> stops;
  // By whoever ends it: twice is a race, or a count of two.
  ModelPlain<int> handled{0};
  ModelPlain<int> dead{0};
};

struct Slot : BasicTableSlot<ModelAtomics> {
  BasicInbox<ModelAtomics> inbox;
  // The holder's.
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

  // Puts the next actor into the slot and sends it a message, unless the slot is not free, or a late sender has it.
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
  // As the holder of the mailbox.
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
  // An actor is stopped while somebody sends to it, and the next one comes.
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

  // Two messages of one sender, which the first and the second look at the generation may part.
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

TEST(SlotReuseInterleaving, GivesEachMessageToItsActorOrToDeadLetters) {
  for (const ModelTest& test : Cases<Mutation::kNone>::All()) {
    const ModelResult result = CheckInterleavings({}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
    EXPECT_TRUE(result.complete) << test.name;
    std::cout << test.name << ": " << result << "\n";
  }
}

// The first look, by the sender, only spares a run: what counts is the second one, by the receiver.
TEST(SlotReuseInterleaving, DoesNotRelyOnTheLookOfTheSender) {
  for (const ModelTest& test : Cases<Mutation::kNoCheckBySender>::All()) {
    const ModelResult result = CheckInterleavings({}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
  }
}

template <Mutation kMutation>
std::string WhatFails() {
  for (const ModelTest& test : Cases<kMutation>::All()) {
    const ModelResult result = CheckInterleavings({}, test.run);
    if (!result.ok()) return std::string(ModelFailureName(result.failure)) + " in " + test.name;
  }
  return "nothing";
}

TEST(SlotReuseInterleaving, FailsIfAStepIsLeftOut) {
  EXPECT_EQ(WhatFails<Mutation::kNoCheckByReceiver>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kIdleBeforeStale>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kNoLastLook>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kNoClaim>(), "assertion in one late sender");
  EXPECT_EQ(WhatFails<Mutation::kForgetsLateOnes>(), "assertion in one late sender");
}

}  // namespace
}  // namespace fraktor
