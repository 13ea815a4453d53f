#include "fraktor/utils/queue/internal/inbox.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "gtest/gtest.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor {

using utils_internal::Inbox;
using utils_internal::InboxChain;
using utils_internal::InboxList;
using utils_internal::InboxNode;
using utils_internal::InboxPush;

namespace {

struct Numbered : InboxNode {
  explicit Numbered(int n) : number(n) {}
  int number;
};

std::vector<int> Numbers(InboxNode* first) {
  std::vector<int> numbers;
  for (InboxNode* node = first; node != nullptr; node = node->next)
    numbers.push_back(static_cast<Numbered*>(node)->number);
  return numbers;
}

using Ints = std::vector<int>;

TEST(Inbox, IsOneWord) { EXPECT_EQ(sizeof(Inbox), 8u); }

TEST(Inbox, TellsTheFirstPusherThatItWasIdleAndLeavesItTheNode) {
  Inbox inbox;
  Numbered node(1);
  node.next = &node;
  EXPECT_EQ(inbox.Push(&node), InboxPush::kClaimed);
  EXPECT_EQ(node.next, nullptr);
  EXPECT_FALSE(inbox.IsIdle());
  EXPECT_FALSE(inbox.HasNodes());
}

TEST(Inbox, QueuesForAHolder) {
  Inbox inbox;
  Numbered node(1);
  ASSERT_TRUE(inbox.TryClaim());
  EXPECT_EQ(inbox.Push(&node), InboxPush::kQueued);
  EXPECT_TRUE(inbox.HasNodes());
  EXPECT_FALSE(inbox.HasSystem());
}

TEST(Inbox, LetsWhoeverEndsParkedOwnersHoldIt) {
  Inbox inbox;
  Numbered node(1);
  EXPECT_FALSE(inbox.TryUnpark()) << "idle";
  ASSERT_TRUE(inbox.TryClaim());
  EXPECT_FALSE(inbox.TryUnpark()) << "held";
  ASSERT_TRUE(inbox.TryPark());
  inbox.Push(&node);
  EXPECT_TRUE(inbox.TryUnpark());
  EXPECT_FALSE(inbox.IsParked());
  EXPECT_FALSE(inbox.TryUnpark());
  EXPECT_EQ(inbox.TakeAll().first, &node);
  EXPECT_TRUE(inbox.TryGoIdle());
}

TEST(Inbox, GivesNodesInTheOrderOfTheirPushes) {
  Inbox inbox;
  Numbered a(1), b(2), c(3);
  ASSERT_TRUE(inbox.TryClaim());
  inbox.Push(&a);
  inbox.PushSystem(&b);
  inbox.Push(&c);
  const InboxList list = inbox.TakeAll();
  EXPECT_EQ(Numbers(list.first), (Ints{1, 2, 3}));
  EXPECT_EQ(list.last, &c);
  EXPECT_EQ(inbox.TakeAll().first, nullptr);
  EXPECT_EQ(inbox.TakeAll().last, nullptr);
}

TEST(Inbox, GivesNodesNewestFirstToAHolderThatSortsThemItself) {
  Inbox inbox;
  Numbered a(1), b(2), c(3);
  ASSERT_TRUE(inbox.TryClaim());
  for (Numbered* node : {&a, &b, &c}) inbox.Push(node);
  EXPECT_EQ(Numbers(inbox.TakeNewestFirst()), (Ints{3, 2, 1}));
}

TEST(Inbox, SystemFlagStaysUntilTheTake) {
  Inbox inbox;
  Numbered a(1), b(2), c(3);
  ASSERT_TRUE(inbox.TryClaim());
  EXPECT_EQ(inbox.PushSystem(&a), InboxPush::kQueued);
  EXPECT_TRUE(inbox.HasSystem());
  EXPECT_EQ(inbox.Push(&b), InboxPush::kQueued);
  EXPECT_TRUE(inbox.HasSystem());
  EXPECT_EQ(inbox.PushSystem(&c), InboxPush::kQueued);
  EXPECT_EQ(Numbers(inbox.TakeAll().first), (Ints{1, 2, 3}));
  EXPECT_FALSE(inbox.HasSystem());
}

TEST(Inbox, SystemPushOnIdleClaimsToo) {
  Inbox inbox;
  Numbered node(1);
  EXPECT_EQ(inbox.PushSystem(&node), InboxPush::kClaimed);
  EXPECT_FALSE(inbox.HasSystem());
  EXPECT_FALSE(inbox.HasNodes());
}

TEST(Inbox, DoesNotGoIdleOverANode) {
  Inbox inbox;
  Numbered node(1);
  ASSERT_TRUE(inbox.TryClaim());
  inbox.Push(&node);
  EXPECT_FALSE(inbox.TryGoIdle());
  inbox.TakeAll();
  EXPECT_TRUE(inbox.TryGoIdle());
  EXPECT_TRUE(inbox.IsIdle());
  EXPECT_EQ(inbox.Push(&node), InboxPush::kClaimed);
}

TEST(Inbox, IsClaimedOnceUntilItIsIdleAgain) {
  Inbox inbox;
  EXPECT_TRUE(inbox.TryClaim());
  EXPECT_FALSE(inbox.TryClaim());
  ASSERT_TRUE(inbox.TryGoIdle());
  EXPECT_TRUE(inbox.TryClaim());
}

TEST(Inbox, UserPushLeavesAParkedOwnerParked) {
  Inbox inbox;
  Numbered a(1), b(2), c(3);
  ASSERT_TRUE(inbox.TryClaim());
  inbox.Push(&a);
  ASSERT_TRUE(inbox.TryPark());
  EXPECT_EQ(inbox.Push(&b), InboxPush::kQueued);
  InboxChain chain;
  chain.Add(&c);
  EXPECT_EQ(inbox.PushChain(chain), InboxPush::kQueued);
  EXPECT_TRUE(inbox.IsParked());
  EXPECT_FALSE(inbox.TryClaim());
}

TEST(Inbox, SystemPushUnparksExactlyOnce) {
  Inbox inbox;
  Numbered a(1), b(2), c(3), d(4);
  ASSERT_TRUE(inbox.TryClaim());
  inbox.Push(&a);
  ASSERT_TRUE(inbox.TryPark());
  inbox.Push(&b);
  EXPECT_EQ(inbox.PushSystem(&c), InboxPush::kUnparked);
  EXPECT_FALSE(inbox.IsParked());
  EXPECT_EQ(inbox.PushSystem(&d), InboxPush::kQueued);
  EXPECT_TRUE(inbox.HasSystem());
  EXPECT_EQ(Numbers(inbox.TakeAll().first), (Ints{1, 2, 3, 4}));
}

TEST(Inbox, SystemPushUnparksAnOwnerWithoutNodes) {
  Inbox inbox;
  Numbered node(1);
  ASSERT_TRUE(inbox.TryClaim());
  ASSERT_TRUE(inbox.TryPark());
  EXPECT_EQ(inbox.PushSystem(&node), InboxPush::kUnparked);
  EXPECT_EQ(Numbers(inbox.TakeAll().first), (Ints{1}));
  EXPECT_TRUE(inbox.TryGoIdle());
}

TEST(Inbox, DoesNotParkOverASystemNode) {
  Inbox inbox;
  Numbered node(1);
  ASSERT_TRUE(inbox.TryClaim());
  inbox.PushSystem(&node);
  EXPECT_FALSE(inbox.TryPark());
  inbox.TakeAll();
  EXPECT_TRUE(inbox.TryPark());
}

TEST(InboxChain, IsPushedAsAWhole) {
  Inbox inbox;
  Numbered a(1), b(2), c(3), d(4), e(5);
  ASSERT_TRUE(inbox.TryClaim());
  inbox.PushSystem(&a);
  InboxChain chain;
  for (Numbered* node : {&b, &c, &d}) chain.Add(node);
  EXPECT_EQ(chain.size(), 3u);
  EXPECT_EQ(inbox.PushChain(chain), InboxPush::kQueued);
  EXPECT_TRUE(chain.empty());
  EXPECT_EQ(chain.size(), 0u);
  EXPECT_TRUE(inbox.HasSystem());
  inbox.Push(&e);
  EXPECT_EQ(Numbers(inbox.TakeAll().first), (Ints{1, 2, 3, 4, 5}));
}

TEST(InboxChain, StaysWithThePusherThatClaims) {
  Inbox inbox;
  Numbered a(1), b(2), c(3);
  a.next = &a;
  InboxChain chain;
  for (Numbered* node : {&a, &b, &c}) chain.Add(node);
  EXPECT_EQ(inbox.PushChain(chain), InboxPush::kClaimed);
  EXPECT_FALSE(inbox.HasNodes());
  const InboxList list = chain.TakeAll();
  EXPECT_EQ(Numbers(list.first), (Ints{1, 2, 3}));
  EXPECT_EQ(list.last, &c);
  EXPECT_TRUE(chain.empty());
}

TEST(InboxChain, CanBeUsedAgain) {
  Inbox inbox;
  Numbered a(1), b(2);
  ASSERT_TRUE(inbox.TryClaim());
  InboxChain chain;
  chain.Add(&a);
  inbox.PushChain(chain);
  chain.Add(&b);
  inbox.PushChain(chain);
  EXPECT_EQ(Numbers(inbox.TakeAll().first), (Ints{1, 2}));
}

// The word alone must order the holder's state: these threads wait with relaxed loads, and nothing
// else connects them. Under ThreadSanitizer these tests check memory orders.
TEST(Inbox, HandsTheHoldersStateToTheSystemPusherThatUnparks) {
  Inbox inbox;
  Numbered user(1), system(2);
  int state = 0;
  std::thread holder([&] {
    ASSERT_TRUE(inbox.TryClaim());
    state = 1;
    ASSERT_TRUE(inbox.TryPark());
  });
  while (!inbox.IsParked()) std::this_thread::yield();
  EXPECT_EQ(inbox.Push(&user), InboxPush::kQueued);
  EXPECT_EQ(inbox.PushSystem(&system), InboxPush::kUnparked);
  EXPECT_EQ(state, 1);
  holder.join();
}

TEST(Inbox, HandsTheHoldersStateToWhoeverClaimsNext) {
  for (int way = 0; way < 4; ++way) {
    Inbox inbox;
    Numbered node(1);
    InboxChain chain;
    chain.Add(&node);
    int state = 0;
    ASSERT_TRUE(inbox.TryClaim());
    std::thread holder([&] {
      state = 1;
      ASSERT_TRUE(inbox.TryGoIdle());
    });
    while (!inbox.IsIdle()) std::this_thread::yield();
    switch (way) {
      case 0:
        EXPECT_EQ(inbox.Push(&node), InboxPush::kClaimed);
        break;
      case 1:
        EXPECT_EQ(inbox.PushSystem(&node), InboxPush::kClaimed);
        break;
      case 2:
        EXPECT_EQ(inbox.PushChain(chain), InboxPush::kClaimed);
        break;
      default:
        EXPECT_TRUE(inbox.TryClaim());
        break;
    }
    EXPECT_EQ(state, 1);
    holder.join();
  }
}

TEST(Inbox, HandsEveryNodeToTheHolderThatTakes) {
  for (int way = 0; way < 3; ++way) {
    Inbox inbox;
    Numbered node(0);
    ASSERT_TRUE(inbox.TryClaim());
    std::thread pusher([&] {
      node.number = 1;
      InboxChain chain;
      chain.Add(&node);
      if (way == 0) inbox.Push(&node);
      if (way == 1) inbox.PushSystem(&node);
      if (way == 2) inbox.PushChain(chain);
    });
    while (!inbox.HasNodes()) std::this_thread::yield();
    EXPECT_EQ(Numbers(inbox.TakeAll().first), (Ints{1}));
    pusher.join();
  }
}

// A small runtime over the inbox: recycled owners with generations, producers with stale
// references, suspend and resume, stop and spawn, and workers that take scheduled owners from one
// queue. Everything that a run touches, except the inbox, is ordinary memory, so ThreadSanitizer
// reports two runs that overlap.
enum class Kind : uint8_t { kUser, kStop, kSuspend, kResume };

struct Letter : InboxNode {
  uint32_t generation;
  Kind kind;
  int producer;
  uint64_t number;
};

constexpr int kProducers = 3;

struct Fifo {
  void Append(InboxList list) {
    if (list.first == nullptr) return;
    if (last == nullptr) {
      first = list.first;
    } else {
      last->next = list.first;
    }
    last = list.last;
  }
  Letter* Pop() {
    InboxNode* const node = first;
    if (node == nullptr) return nullptr;
    first = node->next;
    if (first == nullptr) last = nullptr;
    return static_cast<Letter*>(node);
  }
  InboxNode* first = nullptr;
  InboxNode* last = nullptr;
};

struct Owner {
  Inbox inbox;
  // Odd while the owner is alive. Only the holder writes it. Producers read it early, as a hint.
  std::atomic<uint32_t> generation{1};
  // Private state of the holder.
  Fifo system;
  Fifo user;
  int suspended = 0;
  std::array<uint64_t, kProducers> last_number{};
};

class Runtime {
 public:
  explicit Runtime(int owners) : owners_(owners) {}

  Owner& owner(uint64_t i) { return owners_[i % owners_.size()]; }

  void Send(Owner& owner, Letter* letter) {
    sent_.fetch_add(1, std::memory_order_relaxed);
    const bool system = letter->kind != Kind::kUser;
    switch (system ? owner.inbox.PushSystem(letter) : owner.inbox.Push(letter)) {
      case InboxPush::kQueued:
        return;
      case InboxPush::kClaimed:
        (system ? owner.system : owner.user).Append({letter, letter});
        break;
      case InboxPush::kUnparked:
        break;
    }
    Schedule(owner);
  }

  void SendChain(Owner& owner, InboxChain& chain) {
    sent_.fetch_add(chain.size(), std::memory_order_relaxed);
    if (owner.inbox.PushChain(chain) == InboxPush::kQueued) return;
    owner.user.Append(chain.TakeAll());
    Schedule(owner);
  }

  // Starts a stopped owner again, if there is one.
  bool SpawnOne() {
    Owner* owner = nullptr;
    {
      MutexLock lock(mutex_);
      if (stopped_.empty()) return false;
      owner = stopped_.front();
      stopped_.pop_front();
    }
    if (!owner->inbox.TryClaim()) {  // A late letter has scheduled it: claim it after that run.
      MutexLock lock(mutex_);
      stopped_.push_back(owner);
      return false;
    }
    owner->last_number.fill(0);
    owner->suspended = 0;
    owner->generation.store(owner->generation.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    spawned_.fetch_add(1, std::memory_order_relaxed);
    if (!owner->inbox.TryGoIdle()) Schedule(*owner);
    return true;
  }

  void Work() {
    for (;;) {
      Owner* owner = nullptr;
      {
        MutexLock lock(mutex_);
        changed_.wait(lock, [&] {
          mutex_.AssertHeld();
          return !ready_.empty() || ending_;
        });
        if (ready_.empty()) return;
        owner = ready_.front();
        ready_.pop_front();
        ++running_;
      }
      Run(*owner);
      MutexLock lock(mutex_);
      --running_;
      changed_.notify_all();
    }
  }

  // When no owner is scheduled and none runs, none will ever run again: remaining letters are lost.
  void WaitUntilQuietAndEnd() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&] {
      mutex_.AssertHeld();
      return ready_.empty() && running_ == 0;
    });
    ending_ = true;
    changed_.notify_all();
  }

  void ExpectNothingLost() {
    EXPECT_EQ(sent_.load(), delivered_.load() + dead_.load());
    EXPECT_EQ(out_of_order_.load(), 0u);
    EXPECT_GT(delivered_.load(), 0u);
    EXPECT_GT(dead_.load(), 0u);
    EXPECT_GT(spawned_.load(), 0u);
    EXPECT_GT(parked_.load(), 0u);
    for (Owner& owner : owners_) {
      EXPECT_TRUE(owner.inbox.IsIdle());
      EXPECT_EQ(owner.system.first, nullptr);
      EXPECT_EQ(owner.user.first, nullptr);
    }
  }

 private:
  void Schedule(Owner& owner) {
    MutexLock lock(mutex_);
    ready_.push_back(&owner);
    changed_.notify_all();
  }

  void Sort(Owner& owner) {
    for (InboxNode* node = owner.inbox.TakeAll().first; node != nullptr;) {
      InboxNode* const next = node->next;
      node->next = nullptr;
      const bool system = static_cast<Letter*>(node)->kind != Kind::kUser;
      (system ? owner.system : owner.user).Append({node, node});
      node = next;
    }
  }

  void Run(Owner& owner) {
    bool stopped = false;
    for (int budget = 50;;) {
      if (owner.inbox.HasSystem()) Sort(owner);
      if (Letter* letter = owner.system.Pop()) {
        stopped |= HandleSystem(owner, letter);
        continue;
      }
      if (owner.suspended > 0) {
        if (!owner.inbox.TryPark()) continue;
        parked_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      if (Letter* letter = owner.user.Pop()) {
        HandleUser(owner, letter);
        if (--budget <= 0 && !stopped) return Schedule(owner);
        continue;
      }
      if (!owner.inbox.TryGoIdle()) {
        Sort(owner);
        continue;
      }
      if (stopped) {
        MutexLock lock(mutex_);
        stopped_.push_back(&owner);
      }
      return;
    }
  }

  bool HandleSystem(Owner& owner, Letter* letter) {
    const std::unique_ptr<Letter> owned(letter);
    const uint32_t generation = owner.generation.load(std::memory_order_relaxed);
    if (letter->generation != generation) return Dead();
    delivered_.fetch_add(1, std::memory_order_relaxed);
    if (letter->kind == Kind::kSuspend) ++owner.suspended;
    if (letter->kind == Kind::kResume && owner.suspended > 0) --owner.suspended;
    if (letter->kind != Kind::kStop) return false;
    owner.suspended = 0;
    owner.generation.store(generation + 1, std::memory_order_relaxed);
    return true;
  }

  void HandleUser(Owner& owner, Letter* letter) {
    const std::unique_ptr<Letter> owned(letter);
    if (letter->generation != owner.generation.load(std::memory_order_relaxed)) {
      Dead();
      return;
    }
    delivered_.fetch_add(1, std::memory_order_relaxed);
    if (letter->number <= owner.last_number[letter->producer]) out_of_order_.fetch_add(1, std::memory_order_relaxed);
    owner.last_number[letter->producer] = letter->number;
  }

  bool Dead() {
    dead_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  std::vector<Owner> owners_;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Owner*> ready_ ABSL_GUARDED_BY(mutex_);
  std::deque<Owner*> stopped_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;

  // Counters that are compared after all threads have ended.
  std::atomic<uint64_t> sent_{0}, delivered_{0}, dead_{0}, out_of_order_{0}, spawned_{0}, parked_{0};
};

void Produce(Runtime& runtime, int producer, int letters) {
  uint64_t random = 77 * producer + 1;
  uint64_t number = 0;
  InboxChain chain;
  const auto make = [&](uint32_t generation, Kind kind) {
    auto* letter = new Letter;
    letter->generation = generation;
    letter->kind = kind;
    letter->producer = producer;
    letter->number = ++number;
    return letter;
  };
  for (int i = 0; i < letters; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    Owner& owner = runtime.owner(random >> 33);
    uint32_t generation = owner.generation.load(std::memory_order_relaxed);
    // A thread that finds a stopped owner usually starts it, and sometimes sends with the reference
    // of its previous incarnation.
    while (generation % 2 == 0 && (random & (7u << 24)) != 0) {
      if (!runtime.SpawnOne()) std::this_thread::yield();
      generation = owner.generation.load(std::memory_order_relaxed);
    }
    generation -= generation % 2 == 0 ? 1 : 0;  // A stopped owner: use the reference of the previous incarnation.
    if (((random >> 40) & 3) == 0 && generation > 2) generation -= 2;  // Sometimes an even older one.
    switch ((random >> 50) % 64) {
      case 0:
        runtime.Send(owner, make(generation, Kind::kStop));
        break;
      case 1:
        runtime.Send(owner, make(generation, Kind::kSuspend));
        runtime.Send(owner, make(generation, Kind::kUser));
        // Half of the time, wait until the owner is parked before resuming it, unless that
        // incarnation has ended.
        while ((random & (1u << 20)) != 0 && !owner.inbox.IsParked() &&
               owner.generation.load(std::memory_order_relaxed) == generation) {
          std::this_thread::yield();
        }
        runtime.Send(owner, make(generation, Kind::kResume));
        break;
      case 2:
      case 3:
        for (int k = 0; k < 5; ++k) chain.Add(make(generation, Kind::kUser));
        runtime.SendChain(owner, chain);
        break;
      default:
        runtime.Send(owner, make(generation, Kind::kUser));
        break;
    }
  }
}

TEST(InboxStress, LosesNoLetterAndNoWakeUpOverStopSpawnParkAndStaleProducers) {
  constexpr int kLetters = 60'000;
  Runtime runtime(/*owners=*/8);
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) workers.emplace_back([&] { runtime.Work(); });
  std::vector<std::thread> producers;
  for (int i = 0; i < kProducers; ++i) producers.emplace_back([&runtime, i] { Produce(runtime, i, kLetters); });
  for (std::thread& producer : producers) producer.join();
  runtime.WaitUntilQuietAndEnd();
  for (std::thread& worker : workers) worker.join();
  runtime.ExpectNothingLost();
}

}  // namespace
}  // namespace fraktor
