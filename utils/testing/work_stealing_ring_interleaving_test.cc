// The work-stealing ring in every interleaving of its owner and one or two thieves. Each item is
// taken once, with the data that its maker wrote, and no worker sleeps while there is work.
// Includes the proof that these tests can fail.
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/queue/internal/work_stealing_ring.h"
#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {

using utils_internal::WorkStealingRing;

namespace {

struct Item {
  ModelPlain<int> made{0};   // written before the push
  ModelPlain<int> taken{0};  // written by the taker: two takers are a race, or a count of two
};

using Ring = WorkStealingRing<Item*, 2, ModelAtomics>;

void Push(Ring& ring, Item& item) {
  item.made = 1;
  MODEL_ASSERT(ring.TryPush(&item));
}

void Use(Item* item) {
  if (item == nullptr) return;
  MODEL_ASSERT(item->made == 1);
  ++item->taken;
}

void ExpectTakenOnce(Ring& ring, std::vector<Item*> items) {
  while (Item* item = ring.TryPop()) Use(item);
  for (Item* item : items) MODEL_ASSERT(item->taken == 1, std::to_string(item->taken) + " times");
}

// The owner fills the ring, makes room, and overwrites a cell while a thief reads it.
void OwnerWrapsRound(Model& m) {
  auto& ring = m.Make<Ring>();
  auto& stolen = m.Make<Ring>();
  std::vector<Item*> items;
  for (int i = 0; i < 3; ++i) items.push_back(&m.Make<Item>());
  m.Thread("owner", [&ring, items] {
    Push(ring, *items[0]);
    Push(ring, *items[1]);
    Use(ring.TryPop());
    items[2]->made = 1;
    // Full only if the owner has not yet seen the taken items; it has popped one itself.
    MODEL_ASSERT(ring.TryPush(items[2]));
  });
  m.Thread("thief", [&ring, &stolen] { Use(ring.StealHalfInto(stolen)); });
  m.After([&, items] {
    while (Item* item = stolen.TryPop()) Use(item);
    ExpectTakenOnce(ring, items);
  });
}

// The owner goes on pushing into the room that a thief has made.
void OwnerPushesIntoWhatWasStolen(Model& m) {
  auto& ring = m.Make<Ring>();
  auto& stolen = m.Make<Ring>();
  std::vector<Item*> items;
  for (int i = 0; i < 3; ++i) items.push_back(&m.Make<Item>());
  Push(ring, *items[0]);
  Push(ring, *items[1]);
  m.Thread("owner", [&ring, items] {
    items[2]->made = 1;
    if (!ring.TryPush(items[2])) {
      items[2]->taken = 1;  // Full: the owner keeps it.
    }
    Use(ring.TryPop());
  });
  m.Thread("thief", [&ring, &stolen] {
    Use(ring.StealHalfInto(stolen));
    Use(ring.StealHalfInto(stolen));
  });
  m.After([&, items] {
    while (Item* item = stolen.TryPop()) Use(item);
    ExpectTakenOnce(ring, items);
  });
}

void TwoThieves(Model& m) {
  auto& ring = m.Make<Ring>();
  std::vector<Item*> items;
  for (int i = 0; i < 2; ++i) items.push_back(&m.Make<Item>());
  m.Thread("owner", [&ring, items] {
    Push(ring, *items[0]);
    Push(ring, *items[1]);
  });
  for (int i = 0; i < 2; ++i) {
    auto& stolen = m.Make<Ring>();
    m.Thread("thief", [&ring, &stolen] { Use(ring.StealHalfInto(stolen)); });
  }
  m.After([&, items] { ExpectTakenOnce(ring, items); });
}

// A thief announces the stolen items beyond the first one in its own ring, from which others steal.
void StolenFromAThief(Model& m) {
  using WideRing = WorkStealingRing<Item*, 4, ModelAtomics>;
  auto& ring = m.Make<WideRing>();
  auto& first = m.Make<WideRing>();
  auto& second = m.Make<WideRing>();
  std::vector<Item*> items;
  for (int i = 0; i < 3; ++i) items.push_back(&m.Make<Item>());
  m.Thread("first thief", [&ring, &first, items] {
    for (Item* item : items) {
      item->made = 1;
      MODEL_ASSERT(ring.TryPushUnannounced(item));
    }
    Use(ring.StealHalfInto(first));  // Two of three: one to use, one for its ring.
  });
  m.Thread("second thief", [&first, &second] { Use(first.StealHalfInto(second)); });
  m.After([&, items] {
    for (WideRing* each : {&ring, &first, &second}) {
      while (Item* item = each->TryPop()) Use(item);
    }
    for (Item* item : items) MODEL_ASSERT(item->taken == 1);
  });
}

// The parking protocol of the header.
void Parking(Model& m) {
  auto& ring = m.Make<Ring>();
  auto& mine = m.Make<Ring>();
  auto& idle = m.Make<ModelAtomic<int>>(0).Named("idle");
  auto& token = m.Make<ModelSemaphore>(0, 1).Named("token");
  auto& item = m.Make<Item>();
  m.Thread("maker", [&] {
    Push(ring, item);
    if (idle.load(std::memory_order_seq_cst) != 0) token.Release();
  });
  m.Thread("sleeper", [&] {
    Item* taken = nullptr;
    while ((taken = ring.StealHalfInto(mine)) == nullptr) {
      idle.fetch_add(1, std::memory_order_seq_cst);
      if (ring.IsEmptyForParking()) token.Acquire();
      idle.fetch_sub(1, std::memory_order_seq_cst);
    }
    Use(taken);
  });
  m.After([&] { ExpectTakenOnce(ring, {&item}); });
}

// A push without announcement still publishes its item.
void UnannouncedPush(Model& m) {
  auto& ring = m.Make<Ring>();
  auto& stolen = m.Make<Ring>();
  auto& item = m.Make<Item>();
  m.Thread("owner", [&] {
    item.made = 1;
    MODEL_ASSERT(ring.TryPushUnannounced(&item));
  });
  m.Thread("thief", [&] { Use(ring.StealHalfInto(stolen)); });
  m.After([&] { ExpectTakenOnce(ring, {&item}); });
}

// The items that a thief adds to its own ring are announced too: a sleeper that checks there does
// not miss them.
void ParkingBesideAThief(Model& m) {
  using WideRing = WorkStealingRing<Item*, 4, ModelAtomics>;
  auto& ring = m.Make<WideRing>();
  auto& thief = m.Make<WideRing>();
  auto& mine = m.Make<WideRing>();
  auto& idle = m.Make<ModelAtomic<int>>(0).Named("idle");
  auto& token = m.Make<ModelSemaphore>(0, 1).Named("token");
  for (int i = 0; i < 3; ++i) {
    auto& item = m.Make<Item>();
    item.made = 1;
    MODEL_ASSERT(ring.TryPush(&item));
  }
  m.Thread("thief", [&] {
    Use(ring.StealHalfInto(thief));  // Two of three: one for its ring.
    if (idle.load(std::memory_order_seq_cst) != 0) token.Release();
  });
  m.Thread("sleeper", [&] {
    Item* taken = nullptr;
    while ((taken = thief.StealHalfInto(mine)) == nullptr) {
      idle.fetch_add(1, std::memory_order_seq_cst);
      if (thief.IsEmptyForParking()) token.Acquire();
      idle.fetch_sub(1, std::memory_order_seq_cst);
    }
    Use(taken);
  });
}

const std::vector<ModelTest>& Cases() {
  static const auto& cases =
      *new std::vector<ModelTest>{{"owner wraps round", OwnerWrapsRound},
                                  {"owner pushes into what was stolen", OwnerPushesIntoWhatWasStolen},
                                  {"two thieves", TwoThieves},
                                  {"stolen from a thief", StolenFromAThief},
                                  {"unannounced push", UnannouncedPush},
                                  {"parking", Parking},
                                  {"parking beside a thief", ParkingBesideAThief}};
  return cases;
}

TEST(WorkStealingRingInterleaving, HandsOutEachItemOnce) {
  for (const ModelTest& test : Cases()) {
    const ModelResult result = CheckInterleavings({.max_spurious_failures = 1}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
    EXPECT_TRUE(result.complete) << test.name;
    std::cout << test.name << ": " << result << "\n";
  }
}

TEST(WorkStealingRingInterleaving, FailsIfAMemoryOrderIsWeaker) {
  const ModelWeakeningReport report = FindUnnoticedWeakenings({}, Cases(), "work_stealing_ring.h");
  EXPECT_TRUE(report.unweakened.ok()) << report.unweakened;
  const std::vector<std::string> unnoticed = {
      // A stale head makes the ring look fuller than it is: the worker checks again instead of
      // sleeping.
      "IsEmptyForParking load: acquire -> relaxed",
      // These keep a cell from being overwritten before a taker has read it. The checker does not
      // explore a load that sees a store which is executed later.
      "PushWith load: acquire -> relaxed",
      "StealHalfInto load: acquire -> relaxed",
      // Here a tail older than the head could be seen next. The size is then out of range, and head
      // is loaded again.
      "StealHalfInto compare_exchange: acq_rel -> release",
      "StealHalfInto compare_exchange (failure): acquire -> relaxed",
  };
  EXPECT_EQ(report.unnoticed, unnoticed) << report.text;
  EXPECT_GE(report.weakenings, 13);
  std::cout << report.text;
}

}  // namespace
}  // namespace fraktor
