// The inbox in every interleaving of two or three threads. Each node is delivered once and in the
// order of its pusher, at most one thread holds the inbox, and no node remains in it. Includes the
// proof that these tests can fail: if any memory order in inbox.h is made weaker, one of them
// fails.
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {

using utils_internal::BasicInbox;
using utils_internal::BasicInboxChain;
using utils_internal::BasicInboxNode;
using utils_internal::InboxPush;

namespace {

using ModelInbox = BasicInbox<ModelAtomics>;

struct Node : BasicInboxNode<ModelAtomics> {
  Node(int pusher_in, int number_in) : pusher(pusher_in), number(number_in) {}
  // Written before the push; the thread that takes the node reads it.
  ModelPlain<int> pusher;
  ModelPlain<int> number;
};

// The owner of an inbox, like an actor. The holder of the inbox runs it.
class Owner {
 public:
  ModelInbox inbox;

  // Called after a push: runs the owner if it has to be scheduled.
  void After(InboxPush pushed, Node& node) {
    if (pushed == InboxPush::kQueued) return;
    ++runs_;
    if (pushed == InboxPush::kClaimed) Keep(&node);
    Run();
  }

  void PushChain(BasicInboxChain<ModelAtomics>& chain) {
    if (inbox.PushChain(chain) != InboxPush::kClaimed) return;
    ++runs_;
    for (auto* node = chain.TakeAll().first; node != nullptr; node = node->next) Keep(static_cast<Node*>(node));
    Run();
  }

  // For a holder: handles all nodes, and goes idle.
  void Run() {
    for (;;) {
      Handle();
      if (inbox.TryGoIdle()) return;
      Take();
    }
  }

  // For a holder: handles system nodes until there are none, and keeps the others for later.
  void RunSuspended() {
    do {
      ++runs_;
      if (inbox.HasSystem()) {
        Take();
        Handle();
      }
    } while (!inbox.TryPark());
  }

  // Called after all threads have ended: the delivered numbers of each pusher.
  std::map<int, std::vector<int>> Delivered() const {
    std::map<int, std::vector<int>> numbers;
    for (const auto& [pusher, number] : delivered_) numbers[pusher].push_back(number);
    return numbers;
  }

 private:
  void Keep(Node* node) { kept_.push_back(node); }

  void Take() {
    for (auto* node = inbox.TakeAll().first; node != nullptr;) {
      auto* const next = static_cast<BasicInboxNode<ModelAtomics>*>(node->next);
      Keep(static_cast<Node*>(node));
      node = next;
    }
  }

  void Handle() {
    ++runs_;
    for (Node* node : kept_) delivered_.emplace_back(node->pusher, node->number);
    kept_.clear();
  }

  // Stands for all private state. Two holders at once, or a holder that does not see the writes of
  // the last one, race on it.
  ModelPlain<int> runs_{0};
  std::vector<Node*> kept_;
  std::vector<std::pair<int, int>> delivered_;
};

void ExpectAllDelivered(const Owner& owner, const std::map<int, std::vector<int>>& expected) {
  MODEL_ASSERT(owner.inbox.IsIdle(), "somebody still holds the inbox, and nobody runs");
  MODEL_ASSERT(owner.Delivered() == expected, "a node is missing, out of order, or there twice");
}

// The cases.

void TwoPushers(Model& m) {
  auto& owner = m.Make<Owner>();
  for (int pusher = 1; pusher <= 2; ++pusher) {
    m.Thread([&m, &owner, pusher] {
      for (int number = 1; number <= 2; ++number) {
        auto& node = m.Make<Node>(pusher, number);
        owner.After(owner.inbox.Push(&node), node);
      }
    });
  }
  m.After([&] { ExpectAllDelivered(owner, {{1, {1, 2}}, {2, {1, 2}}}); });
}

void ThreePushers(Model& m) {
  auto& owner = m.Make<Owner>();
  for (int pusher = 1; pusher <= 3; ++pusher) {
    m.Thread([&m, &owner, pusher] {
      auto& node = m.Make<Node>(pusher, 1);
      owner.After(owner.inbox.Push(&node), node);
    });
  }
  m.After([&] { ExpectAllDelivered(owner, {{1, {1}}, {2, {1}}, {3, {1}}}); });
}

void UserAndSystemPushers(Model& m) {
  auto& owner = m.Make<Owner>();
  m.Thread("user", [&] {
    auto& node = m.Make<Node>(1, 1);
    owner.After(owner.inbox.Push(&node), node);
  });
  m.Thread("system", [&] {
    for (int number = 1; number <= 2; ++number) {
      auto& node = m.Make<Node>(2, number);
      owner.After(owner.inbox.PushSystem(&node), node);
    }
  });
  m.After([&] { ExpectAllDelivered(owner, {{1, {1}}, {2, {1, 2}}}); });
}

// The owner is suspended and parks. User nodes wait; a system node schedules it again.
void ParkedOwner(Model& m) {
  auto& owner = m.Make<Owner>();
  MODEL_ASSERT(owner.inbox.TryClaim());
  m.Thread("holder", [&] { owner.RunSuspended(); });
  m.Thread("user", [&] {
    auto& node = m.Make<Node>(1, 1);
    MODEL_ASSERT(owner.inbox.Push(&node) != InboxPush::kUnparked);
  });
  m.Thread("system", [&] {
    auto& node = m.Make<Node>(2, 1);
    const InboxPush pushed = owner.inbox.PushSystem(&node);
    MODEL_ASSERT(pushed != InboxPush::kClaimed);
    if (pushed == InboxPush::kUnparked) owner.RunSuspended();
  });
  m.After([&] {
    MODEL_ASSERT(owner.inbox.IsParked());
    MODEL_ASSERT(owner.Delivered()[2] == std::vector<int>{1}, "a parked owner has not seen the system node");
    // After it is resumed, it finds the other nodes.
    auto& resume = m.Make<Node>(3, 1);
    const InboxPush pushed = owner.inbox.PushSystem(&resume);
    MODEL_ASSERT(pushed == InboxPush::kUnparked);
    owner.After(pushed, resume);
    ExpectAllDelivered(owner, {{1, {1}}, {2, {1}}, {3, {1}}});
  });
}

// The next user of a recycled owner claims it while a late pusher still uses the reference of the
// previous one.
void ClaimedByTheNextUser(Model& m) {
  auto& owner = m.Make<Owner>();
  m.Thread("late", [&] {
    auto& node = m.Make<Node>(1, 1);
    owner.After(owner.inbox.Push(&node), node);
  });
  m.Thread("next", [&] {
    while (!owner.inbox.TryClaim()) ModelYield();
    owner.Run();
    auto& node = m.Make<Node>(2, 1);
    owner.After(owner.inbox.Push(&node), node);
  });
  m.After([&] { ExpectAllDelivered(owner, {{1, {1}}, {2, {1}}}); });
}

void ChainAndPusher(Model& m) {
  auto& owner = m.Make<Owner>();
  m.Thread("chain", [&] {
    BasicInboxChain<ModelAtomics> chain;
    chain.Add(&m.Make<Node>(1, 1));
    chain.Add(&m.Make<Node>(1, 2));
    owner.PushChain(chain);
  });
  m.Thread("pusher", [&] {
    auto& node = m.Make<Node>(2, 1);
    owner.After(owner.inbox.Push(&node), node);
  });
  m.After([&] { ExpectAllDelivered(owner, {{1, {1, 2}}, {2, {1}}}); });
}

// A holder goes idle while a user node and a system node arrive.
void HolderGoesIdle(Model& m) {
  auto& owner = m.Make<Owner>();
  MODEL_ASSERT(owner.inbox.TryClaim());
  m.Thread("holder", [&] { owner.Run(); });
  m.Thread("user", [&] {
    auto& node = m.Make<Node>(1, 1);
    owner.After(owner.inbox.Push(&node), node);
  });
  m.Thread("system", [&] {
    auto& node = m.Make<Node>(2, 1);
    owner.After(owner.inbox.PushSystem(&node), node);
  });
  m.After([&] { ExpectAllDelivered(owner, {{1, {1}}, {2, {1}}}); });
}

const std::vector<ModelTest>& Cases() {
  static const auto& cases = *new std::vector<ModelTest>{{"two pushers", TwoPushers},
                                                         {"three pushers", ThreePushers},
                                                         {"user and system", UserAndSystemPushers},
                                                         {"parked owner", ParkedOwner},
                                                         {"claimed by the next user", ClaimedByTheNextUser},
                                                         {"chain and pusher", ChainAndPusher},
                                                         {"holder goes idle", HolderGoesIdle}};
  return cases;
}

TEST(InboxInterleaving, DeliversEveryNodeOnceInOrderToOneHolderAtATime) {
  for (const ModelTest& test : Cases()) {
    const ModelResult result = CheckInterleavings({}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
    EXPECT_TRUE(result.complete) << test.name;
    std::cout << test.name << ": " << result << "\n";
  }
}

TEST(InboxInterleaving, EndsWellIfACompareExchangeFailsForNoReason) {
  for (const ModelTest& test : Cases()) {
    const ModelResult result = CheckInterleavings({.max_spurious_failures = 1}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
    std::cout << test.name << ": " << result << "\n";
  }
}

TEST(InboxInterleaving, FailsIfAnyMemoryOrderIsWeaker) {
  const ModelWeakeningReport report = FindUnnoticedWeakenings({}, Cases(), "inbox.h");
  EXPECT_TRUE(report.unweakened.ok()) << report.unweakened;
  EXPECT_EQ(report.unnoticed, std::vector<std::string>{}) << report.text;
  EXPECT_GE(report.weakenings, 11);
  std::cout << report.text;
}

}  // namespace
}  // namespace fraktor
