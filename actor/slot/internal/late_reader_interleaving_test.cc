// Two actors use a slot one after the other, and a promise is opened in between. Other threads with
// references to the first actor send to it, send it system messages, read its path and walk its
// children. Two promises use a slot one after the other as well, while a thread reads the first
// one. The tests run every interleaving. A late thread finds nothing, or values of the first user
// of the slot; never values of another one. To prove that the tests can fail, each step that
// protects late threads is left out once, and promises take the slots of actors once.
//
// The inbox and the generation are the product's. The steps of ending, asking and spawning are
// those of message_invoker.cc, reply_promise.cc and mailbox_registry.cc; the steps of reading are
// those of actor_names.cc, child_links.cc and open_promise.h. A thread that would schedule the
// actor runs it at once.
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
  kOneKindOfSlot,      // A promise takes the slot of an actor, and overwrites its fields.
  kNoCheckAfterwards,  // A reader of a path, or of a promise, does not check the generation again.
  kRelaxedLoads,       // A reader reads without acquire.
  kRelaxedStores,      // The next actor, or the next promise, is written without release.
  kNoCheckWithLock,    // A walk checks the generation before it has the lock, and not again.
  kResetsWithoutLock,  // The next actor resets the list of children without the lock.
};

constexpr uint32_t kFirst = 1;  // The generation of the first actor.

// The values in a slot. The first digit names the field.
constexpr uint64_t kNothing = 0;
constexpr uint64_t kParentOfFirst = 11;
constexpr uint64_t kParentOfNext = 12;
constexpr uint64_t kChildOfFirst = 21;
constexpr uint64_t kChildOfNext = 22;
constexpr uint64_t kExtensionOfNext = 32;
// The fields of a promise.
constexpr uint64_t kAsker = 41;
constexpr uint64_t kNextAsker = 42;
constexpr uint64_t kCompletion = 51;
constexpr uint64_t kTarget = 61;
constexpr uint64_t kNextTarget = 62;

bool IsParent(uint64_t what) { return what == kNothing || what / 10 == 1; }
bool IsChild(uint64_t what) { return what == kNothing || what / 10 == 2; }
bool IsExtension(uint64_t what) { return what == kNothing || what / 10 == 3; }

struct Message : BasicInboxNode<ModelAtomics> {
  explicit Message(bool is_system_in) : is_system(is_system_in) {}
  const bool is_system;
  ModelPlain<int> dead{0};
};

struct Slot : BasicTableSlot<ModelAtomics> {
  BasicInbox<ModelAtomics> inbox;
  // Belongs to the holder of the mailbox.
  ModelPlain<Message*> first{nullptr};
  ModelPlain<uint64_t> extension{kNothing};
  // Any thread that checks the generation afterwards.
  ModelAtomic<uint64_t> parent{kParentOfFirst};
  // With the lock.
  ModelAtomic<bool> lock{false};
  ModelPlain<uint64_t> first_child{kNothing};
};

struct PromiseOnly : BasicTableSlot<ModelAtomics> {
  ModelAtomic<uint64_t> asker{kNothing};
  ModelAtomic<uint64_t> target{kNothing};
  ModelPlain<uint64_t> completion{kNothing};
};

template <Mutation kMutation>
class System {
 public:
  using Pool = SlotPool<Slot, 4096, ModelAtomics>;
  using PromisePool = SlotPool<PromiseOnly, 4096, ModelAtomics>;

  System() { Pool::Activate({&slot_, kFirst}); }

  // The first actor runs, and holds its mailbox.
  void HoldFirst() { MODEL_ASSERT(slot_.inbox.TryClaim()); }

  // Called by the holder: the first actor gets a child, which ends.
  void HaveChild() {
    Lock();
    slot_.first_child = kChildOfFirst;
    Unlock();
    Lock();
    slot_.first_child = kNothing;
    Unlock();
  }

  // Called by the holder: the first actor ends, and its slot is free.
  void EndFirst() {
    Pool::Deactivate({&slot_, kFirst});
    while (!slot_.inbox.TryGoIdle()) DeadLetters(static_cast<Message*>(slot_.inbox.TakeAll().first));
  }

  // An ask is sent, and its reply comes.
  void Ask() {
    if constexpr (kMutation == Mutation::kOneKindOfSlot) {
      const uint32_t generation = slot_.generation() + 1;
      slot_.parent.store(kAsker, std::memory_order_relaxed);
      slot_.first_child = kAsker;
      slot_.extension = kCompletion;
      Pool::Activate({&slot_, generation});
      MODEL_ASSERT(Pool::TryDeactivate({&slot_, generation}));
      slot_.extension = kNothing;
    } else {
      OpenPromise(kAsker, kTarget);
      ClaimPromise();
    }
  }

  // The asker opens a promise: PromiseSlot::Fill.
  void OpenPromise(uint64_t asker, uint64_t target) {
    constexpr auto kOrder =
        kMutation == Mutation::kRelaxedStores ? std::memory_order_relaxed : std::memory_order_release;
    promise_.asker.store(asker, kOrder);
    promise_.target.store(target, kOrder);
    promise_.completion = kCompletion;
    PromisePool::Activate({&promise_, promise_.generation() + 1});
  }
  // Its reply comes.
  void ClaimPromise() { MODEL_ASSERT(PromisePool::TryDeactivate({&promise_, promise_.generation()})); }

  // The next actor takes the slot, unless a late sender has it.
  void SpawnNext(bool has_child = false) {
    if (!slot_.inbox.TryClaim()) return;
    const uint32_t generation = slot_.generation() + 1;
    slot_.parent.store(kParentOfNext,
                       kMutation == Mutation::kRelaxedStores ? std::memory_order_relaxed : std::memory_order_release);
    if (kMutation == Mutation::kResetsWithoutLock) slot_.first_child = kNothing;
    slot_.extension = kExtensionOfNext;
    Pool::Activate({&slot_, generation});
    if (!slot_.inbox.TryGoIdle()) Run();
    if (!has_child) return;
    Lock();
    slot_.first_child = kChildOfNext;
    Unlock();
  }

  // A thread with a reference to the first actor.

  void Send(Message& message) {
    if (!slot_.IsAt(kFirst)) {
      ++message.dead;
      return;
    }
    if (slot_.inbox.Push(&message) == InboxPush::kClaimed) {
      slot_.first = &message;
      Run();
    }
  }

  void ReadPath() {
    if (!slot_.IsAt(kFirst)) return;
    const uint64_t parent =
        slot_.parent.load(kMutation == Mutation::kRelaxedLoads ? std::memory_order_relaxed : std::memory_order_acquire);
    MODEL_ASSERT(IsParent(parent), "a reader follows something that is no parent");
    if (kMutation != Mutation::kNoCheckAfterwards && !slot_.IsAt(kFirst)) return;
    MODEL_ASSERT(parent == kParentOfFirst, "a path leads to another actor's parent");
  }

  void Walk() {
    if (kMutation == Mutation::kNoCheckWithLock && !slot_.IsAt(kFirst)) return;
    Lock();
    if (kMutation == Mutation::kNoCheckWithLock || slot_.IsAt(kFirst)) {
      const uint64_t child = slot_.first_child;
      MODEL_ASSERT(IsChild(child), "a walk follows something that is no child");
      MODEL_ASSERT(child != kChildOfNext, "a walk finds another actor's child");
    }
    Unlock();
  }

  // A thread with a reference to the first promise: ReadOpenPromise.
  void ReadFirstPromise() {
    constexpr auto kOrder =
        kMutation == Mutation::kRelaxedLoads ? std::memory_order_relaxed : std::memory_order_acquire;
    if (!promise_.IsAt(kFirst)) return;
    const uint64_t asker = promise_.asker.load(kOrder);
    const uint64_t target = promise_.target.load(kOrder);
    if (kMutation != Mutation::kNoCheckAfterwards && !promise_.IsAt(kFirst)) return;
    MODEL_ASSERT(asker == kAsker && target == kTarget, "a reader takes another promise for its own");
  }

  void ExpectDeadOnce(const Message& message) {
    MODEL_ASSERT(slot_.inbox.IsIdle(), "somebody holds the mailbox, and nobody runs");
    MODEL_ASSERT(message.dead == 1, "a message was lost, or is a dead letter twice");
  }

 private:
  // Called by the holder of the mailbox; the slot is in use or free. All messages are for the first
  // actor, which has ended.
  void Run() {
    Message* list = slot_.first;
    slot_.first = nullptr;
    for (;;) {
      bool has_system = false;
      for (const Message* message = list; message != nullptr; message = static_cast<Message*>(message->next.Get())) {
        has_system = has_system || message->is_system;
      }
      DeadLetters(list);
      // A run that handles system messages also looks for woken handlers.
      if (has_system) MODEL_ASSERT(IsExtension(slot_.extension), "a run takes something for an extension");
      if (slot_.inbox.TryGoIdle()) return;
      list = static_cast<Message*>(slot_.inbox.TakeAll().first);
    }
  }

  static void DeadLetters(Message* list) {
    while (list != nullptr) {
      Message& message = *list;
      list = static_cast<Message*>(message.next.Get());
      ++message.dead;
    }
  }

  void Lock() {
    while (slot_.lock.exchange(true, std::memory_order_acquire)) ModelYield();
  }
  void Unlock() { slot_.lock.store(false, std::memory_order_release); }

  Slot slot_;
  PromiseOnly promise_;
};

template <Mutation kMutation>
struct Cases {
  template <bool kIsSystem>
  static void LateSender(Model& m) {
    auto& system = m.Make<System<kMutation>>();
    auto& late = m.Make<Message>(kIsSystem);
    system.HoldFirst();
    m.Thread("owner", [&] {
      system.EndFirst();
      system.Ask();
      system.SpawnNext();
    });
    m.Thread("sender", [&] { system.Send(late); });
    m.After([&] { system.ExpectDeadOnce(late); });
  }

  static void LateReader(Model& m) {
    auto& system = m.Make<System<kMutation>>();
    system.HoldFirst();
    m.Thread("owner", [&] {
      system.EndFirst();
      system.Ask();
      system.SpawnNext();
    });
    m.Thread("reader", [&] {
      system.ReadPath();
      system.ReadPath();
    });
  }

  static void LateWalk(Model& m) {
    auto& system = m.Make<System<kMutation>>();
    system.HoldFirst();
    m.Thread("owner", [&] {
      system.HaveChild();
      system.EndFirst();
      system.Ask();
      system.SpawnNext(/*has_child=*/true);
    });
    m.Thread("walk", [&] { system.Walk(); });
  }

  static void LateReaderOfPromise(Model& m) {
    auto& system = m.Make<System<kMutation>>();
    system.OpenPromise(kAsker, kTarget);
    m.Thread("asker", [&] {
      system.ClaimPromise();
      system.OpenPromise(kNextAsker, kNextTarget);
      system.ClaimPromise();
    });
    m.Thread("reader", [&] { system.ReadFirstPromise(); });
  }

  static std::vector<ModelTest> All() {
    return {{"late sender", LateSender<false>},
            {"late system sender", LateSender<true>},
            {"late reader", LateReader},
            {"late walk", LateWalk},
            {"late reader of a promise", LateReaderOfPromise}};
  }
};

template <Mutation kMutation>
std::vector<std::string> WhatFails() {
  std::vector<std::string> failures;
  for (const ModelTest& test : Cases<kMutation>::All()) {
    const ModelResult result = CheckInterleavings({}, test.run);
    if (!result.ok()) failures.push_back(std::string(ModelFailureName(result.failure)) + " in " + test.name);
  }
  return failures;
}

using Failures = std::vector<std::string>;

TEST(LateReaderInterleaving, FindsWhatTheFirstActorHadOrNothing) { ExpectAllPass(Cases<Mutation::kNone>::All()); }

TEST(LateReaderInterleaving, FailsIfPromisesTakeTheSlotsOfActors) {
  EXPECT_EQ(WhatFails<Mutation::kOneKindOfSlot>(),
            Failures({"data race in late system sender", "assertion in late reader", "data race in late walk"}));
}

TEST(LateReaderInterleaving, FailsIfAStepIsLeftOut) {
  const Failures both_readers({"assertion in late reader", "assertion in late reader of a promise"});
  EXPECT_EQ(WhatFails<Mutation::kNoCheckAfterwards>(), both_readers);
  EXPECT_EQ(WhatFails<Mutation::kRelaxedLoads>(), both_readers);
  EXPECT_EQ(WhatFails<Mutation::kRelaxedStores>(), both_readers);
  EXPECT_EQ(WhatFails<Mutation::kNoCheckWithLock>(), Failures({"assertion in late walk"}));
  EXPECT_EQ(WhatFails<Mutation::kResetsWithoutLock>(), Failures({"data race in late walk"}));
}

}  // namespace
}  // namespace fraktor::actor_internal
