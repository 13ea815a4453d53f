#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/membership/member_table.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/cluster/memory/placement_table.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/placement_error.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

Instant At(int64_t seconds) { return Instant() + absl::Seconds(seconds); }

const GrainKey& Alice() {
  static const auto* const key = new GrainKey("account", "alice");
  return *key;
}

ActivationEntry Entry(std::string_view owner, uint64_t token) {
  return ActivationEntry{
      .owner = std::string(owner), .record = {.pid = absl::StrCat("pid-", token)}, .token = token, .epoch = 1};
}

// CLU-6: exclusive, with an end, and tokens that only grow.
TEST(PlacementTable, GivesALockToOneAtATime) {
  PlacementTable table({.lease_ttl = absl::Seconds(10)});
  const PlacementLease a = table.TryAcquire(Alice(), "a:1#1", At(0)).value();
  EXPECT_EQ(a.expires_at, At(10));
  EXPECT_EQ(ErrorKindOf<PlacementLockError>(table.TryAcquire(Alice(), "b:1#1", At(9)).status()),
            PlacementLockError::kHeld);
  EXPECT_EQ(ErrorKindOf<PlacementLockError>(table.TryAcquire(Alice(), "a:1#1", At(9)).status()),
            PlacementLockError::kHeld)
      << "also for the same owner: two of its lookups are two";
  EXPECT_TRUE(table.TryAcquire(GrainKey("account", "bob"), "b:1#1", At(9)).ok());

  const PlacementLease b = table.TryAcquire(Alice(), "b:1#1", At(10)).value();
  EXPECT_GT(b.token, a.token);
  EXPECT_EQ(ErrorKindOf<PlacementLockError>(table.Release(a, At(11))), PlacementLockError::kLost);
  EXPECT_FALSE(table.TryAcquire(Alice(), "c:1#1", At(11)).ok()) << "a late release does not hit the next holder";
  EXPECT_TRUE(table.Release(b, At(11)).ok());
  EXPECT_GT(table.TryAcquire(Alice(), "c:1#1", At(11)).value().token, b.token);
}

// CLU-6: a journal on a disk remembers the tokens of an earlier process, and those of the next are higher.
TEST(MemoryPlacementStore, GivesTokensThatAreHigherThanThoseOfAnEarlierProcess) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  const auto date = static_cast<uint64_t>(absl::ToUnixMicros(toolbox->WallNow()));
  uint64_t highest_before = 0;
  for (int process = 0; process < 2; ++process) {
    MemoryPlacementStore store(*toolbox);
    uint64_t highest = 0;
    for (int g = 0; g < 50; ++g) {
      const GrainKey key("account", absl::StrCat("g", g));
      const PlacementLease lease = store.TryAcquire(key, "a:1#1", toolbox->Now()).Take().value();
      ASSERT_TRUE(store.Release(lease).Take().ok());
      const PlacementLease next = store.TryAcquire(key, "a:1#1", toolbox->Now()).Take().value();
      EXPECT_GT(next.token, lease.token);
      EXPECT_GT(lease.token, highest_before);
      EXPECT_GT(lease.token, date);
      highest = std::max(highest, next.token);
    }
    EXPECT_EQ(store.locks(), 50u);
    highest_before = highest;
    ASSERT_TRUE(toolbox->RunFor(absl::Seconds(1)).ok());
  }
}

// CLU-6: a compare-and-set on the token.
TEST(PlacementTable, StoresOnlyForWhoHoldsTheLockAndHasSeenWhatIsStored) {
  PlacementTable table({.lease_ttl = absl::Seconds(10)});
  EXPECT_FALSE(table.Load(Alice()).exists);
  const PlacementLease a = table.TryAcquire(Alice(), "a:1#1", At(0)).value();
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(table.Store(Alice(), Entry("a:1#1", a.token + 1), 0, At(0))),
            ActivationStorageError::kFenced);
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(table.Store(Alice(), Entry("a:1#1", a.token), 5, At(0))),
            ActivationStorageError::kConflict);
  ASSERT_TRUE(table.Store(Alice(), Entry("a:1#1", a.token), 0, At(0)).ok());
  EXPECT_EQ(table.Load(Alice()).entry, Entry("a:1#1", a.token));
  EXPECT_TRUE(table.Store(Alice(), Entry("a:1#1", a.token), 0, At(50)).ok()) << "again: the answer was lost";

  const PlacementLease b = table.TryAcquire(Alice(), "b:1#1", At(20)).value();
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(table.Store(Alice(), Entry("b:1#1", b.token), 0, At(20))),
            ActivationStorageError::kConflict);
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(table.Store(Alice(), Entry("b:1#1", b.token), a.token, At(30))),
            ActivationStorageError::kFenced)
      << "its lease was over";
  EXPECT_EQ(table.Load(Alice()).entry.owner, "a:1#1");
}

// What the simulations switch off, to see whether they notice.
TEST(PlacementTable, TakesEveryTokenIfATestSaysSo) {
  PlacementTable table({.lease_ttl = absl::Seconds(10), .is_unfenced_for_testing = true});
  const PlacementLease slow = table.TryAcquire(Alice(), "a:1#1", At(0)).value();
  const PlacementLease fast = table.TryAcquire(Alice(), "b:1#1", At(11)).value();
  ASSERT_TRUE(table.Store(Alice(), Entry("b:1#1", fast.token), 0, At(12)).ok());
  ASSERT_TRUE(table.Store(Alice(), Entry("a:1#1", slow.token), 0, At(12)).ok());
  EXPECT_EQ(table.Load(Alice()).entry, Entry("a:1#1", slow.token));
}

// CLU-6: who was asleep comes too late, also when the record has been removed meanwhile.
TEST(PlacementTable, RefusesATokenThatHasBeenOvertaken) {
  PlacementTable table({.lease_ttl = absl::Seconds(10)});
  const PlacementLease slow = table.TryAcquire(Alice(), "a:1#1", At(0)).value();
  const PlacementLease fast = table.TryAcquire(Alice(), "b:1#1", At(11)).value();
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(table.Store(Alice(), Entry("a:1#1", slow.token), 0, At(12))),
            ActivationStorageError::kFenced);
  ASSERT_TRUE(table.Store(Alice(), Entry("b:1#1", fast.token), 0, At(12)).ok());
  ASSERT_TRUE(table.Release(fast, At(12)).ok());
  table.Remove(Alice(), slow.token);
  EXPECT_TRUE(table.Load(Alice()).exists) << "only the one with this token is removed";
  table.Remove(Alice(), fast.token);
  EXPECT_FALSE(table.Load(Alice()).exists);
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(table.Store(Alice(), Entry("a:1#1", slow.token), 0, At(13))),
            ActivationStorageError::kFenced);
}

TEST(PlacementTable, IsBounded) {
  PlacementTable table({.lease_ttl = absl::Seconds(10), .max_locks = 2, .max_activations = 1});
  const PlacementLease first = table.TryAcquire(GrainKey("k", "1"), "a", At(0)).value();
  const PlacementLease second = table.TryAcquire(GrainKey("k", "2"), "a", At(0)).value();
  EXPECT_TRUE(absl::IsResourceExhausted(table.TryAcquire(GrainKey("k", "3"), "a", At(0)).status()));
  EXPECT_TRUE(table.Store(GrainKey("k", "1"), Entry("a", first.token), 0, At(0)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table.Store(GrainKey("k", "2"), Entry("a", second.token), 0, At(0))));
  EXPECT_TRUE(table.TryAcquire(GrainKey("k", "3"), "a", At(10)).ok()) << "those that are over are forgotten";
  EXPECT_EQ(table.locks(), 1u);
}

TEST(MemoryPlacementStore, AnswersAtOnceByItsOwnClock) {
  const auto toolbox = LocalToolbox::Make({}).value();
  MemoryPlacementStore store(*toolbox, {.lease_ttl = absl::Seconds(10)});
  const PlacementLease lease = store.TryAcquire(Alice(), "a:1#1", toolbox->Now()).Take().value();
  EXPECT_TRUE(store.Store(Alice(), Entry("a:1#1", lease.token), 0).Take().ok());
  EXPECT_TRUE(store.Load(Alice()).Take().value().exists);
  EXPECT_EQ(store.locks(), 1u);
  EXPECT_TRUE(store.Release(lease).Take().ok());
  EXPECT_EQ(store.locks(), 0u);
  EXPECT_TRUE(store.Remove(Alice(), lease.token).Take().ok());
  EXPECT_EQ(store.activations(), 0u);
  const PlacementLease next = store.TryAcquire(Alice(), "a:1#1", toolbox->Now()).Take().value();
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(10)).ok());
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(store.Store(Alice(), Entry("a:1#1", next.token), 0).Take()),
            ActivationStorageError::kFenced);
}

std::string Describe(const ClusterTopology& topology) {
  std::string text = absl::StrCat(topology.epoch(), ":");
  for (const Member& member : topology.members()) {
    absl::StrAppend(&text, " ", member.id(), member.status == MemberStatus::kLeaving ? "-" : "");
  }
  return text;
}

// Members come, go, and are taken for dead; listeners hear all of it, in order.
TEST(MemoryMembership, TellsOfEveryChange) {
  const auto toolbox = LocalToolbox::Make({}).value();
  MemoryMembership membership(*toolbox, {.term = absl::Seconds(10)});
  std::vector<std::string> heard;
  const MembershipListenerId listening =
      membership.Listen([&](ClusterTopologyPtr topology) { heard.push_back(Describe(*topology)); });
  const MembershipTerm a = membership.Join({.authority = "a:1"}, toolbox->Now()).Take().value();
  EXPECT_EQ(a.valid_until, At(10));
  const MembershipTerm b = membership.Join({.authority = "b:1"}, toolbox->Now()).Take().value();
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(5)).ok());
  EXPECT_EQ(membership.Renew(a.member.id(), toolbox->Now()).Take().value().valid_until, At(15));
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(5)).ok());
  EXPECT_EQ(ErrorKindOf<MembershipError>(membership.Renew(b.member.id(), toolbox->Now()).Take().status()),
            MembershipError::kHasLeft)
      << "it never comes back";
  EXPECT_TRUE(membership.BeginLeaving(a.member.id()).Take().ok());
  EXPECT_TRUE(membership.Leave(a.member.id()).Take().ok());
  EXPECT_TRUE(membership.Leave(a.member.id()).Take().ok());
  EXPECT_EQ(heard, (std::vector<std::string>{"0:", "1: a:1#1", "2: a:1#1 b:1#2", "3: a:1#1", "4: a:1#1-", "5:"}));
  membership.StopListening(listening);
  ASSERT_TRUE(membership.Join({.authority = "a:1"}, toolbox->Now()).Take().ok());
  EXPECT_EQ(heard.size(), 6u);
  EXPECT_EQ(Describe(*membership.topology()), "6: a:1#6");
}

// The timer follows the one whose term ends first.
TEST(MemoryMembership, NoticesEachEndInTime) {
  const auto toolbox = LocalToolbox::Make({}).value();
  MemoryMembership membership(*toolbox, {.term = absl::Seconds(10)});
  std::vector<Instant> changed;
  membership.Listen([&](ClusterTopologyPtr) { changed.push_back(toolbox->Now()); });
  for (const char* const authority : {"a:1", "b:1", "c:1"}) {
    ASSERT_TRUE(membership.Join({.authority = authority}, toolbox->Now()).Take().ok());
    ASSERT_TRUE(toolbox->RunFor(absl::Seconds(1)).ok());
  }
  changed.clear();
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(60)).ok());
  EXPECT_EQ(changed, (std::vector<Instant>{At(10), At(11), At(12)}));
}

}  // namespace
}  // namespace fraktor
