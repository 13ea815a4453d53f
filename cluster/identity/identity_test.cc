#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/identity/check_authority.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/pid_cache.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/identity/stable_hash.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/cluster/identity/virtual_actor_registry.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

Instant At(int64_t seconds) { return Instant() + absl::Seconds(seconds); }

Member Hosting(std::string_view authority, uint64_t incarnation = 1, std::vector<std::string> kinds = {"account"}) {
  return Member{.authority = std::string(authority), .incarnation = incarnation, .kinds = std::move(kinds)};
}

std::vector<Member> Members(int count) {
  std::vector<Member> members;
  for (int i = 0; i < count; ++i) members.push_back(Hosting(absl::StrCat("10.0.0.", i, ":2552")));
  return members;
}

GrainKey Account(int number) { return GrainKey("account", absl::StrCat("user-", number)); }

std::string OwnerAmong(const ClusterTopology& topology, const GrainKey& key) {
  const Member* owner = RendezvousHasher::OwnerOf(topology, key);
  return owner == nullptr ? "nobody" : owner->authority;
}

PlacementResolutionPtr Found(const GrainKey& key, std::string owner, std::string pid) {
  return std::make_shared<PlacementResolution>(
      PlacementResolution{.decision = {.key = key, .authority = "x:1", .owner = std::move(owner)},
                          .locality = PlacementLocality::kRemote,
                          .pid = std::move(pid),
                          .token = 1});
}

// CLU-1: nodes of all versions and machines agree. These numbers are computed by another program and never change.
TEST(StableHash64, GivesTheStoredNumbers) {
  EXPECT_EQ(StableHash64(""), 0xe220a8397b1dcdaf);
  EXPECT_EQ(StableHash64("a"), 0x0386d66db423d8fa);
  EXPECT_EQ(StableHash64("abcdefgh"), 0xca32d41b9a60996a);
  EXPECT_EQ(StableHash64("abcdefghi"), 0xc1a987ea1d4033ed);
  EXPECT_EQ(StableHash64("10.0.0.7:2552"), 0xfa37951a2cd7b87c);
  EXPECT_EQ(StableHash64("alice", 7), 0x2611737358ba940f);
  EXPECT_EQ(GrainKey("account", "alice").hash(), 0x6efb18b6846fe169);
  EXPECT_EQ(RendezvousHasher::Score(GrainKey("account", "alice").hash(), StableHash64("10.0.0.7:2552")),
            0xdc5704c382ffd053);
}

TEST(StableHash64, TellsPaddingFromText) {
  EXPECT_NE(StableHash64(std::string_view("a\0", 2)), StableHash64("a"));
  EXPECT_NE(StableHash64(std::string_view("\0", 1)), StableHash64(""));
  EXPECT_NE(GrainKey("ab", "c").hash(), GrainKey("a", "bc").hash());
}

TEST(GrainKey, IsEqualToTheSameKindAndIdentityOnly) {
  EXPECT_EQ(GrainKey("account", "alice"), GrainKey("account", "alice"));
  EXPECT_NE(GrainKey("account", "alice"), GrainKey("account", "bob"));
  EXPECT_NE(GrainKey("account", "alice"), GrainKey("cart", "alice"));
  EXPECT_LT(GrainKey("account", "b"), GrainKey("cart", "a"));
  EXPECT_LT(GrainKey("account", "a"), GrainKey("account", "b"));
  EXPECT_EQ(GrainKey("account", "a/b").ToString(), "account/a/b");
}

// CLU-14
TEST(GrainKey, RefusesWhatIsNoKey) {
  const std::vector<GrainKey> bad = {GrainKey(),
                                     GrainKey("", "alice"),
                                     GrainKey("account", ""),
                                     GrainKey("acc/ount", "alice"),
                                     GrainKey(std::string(256, 'k'), "alice"),
                                     GrainKey("account", std::string(1025, 'i'))};
  for (const GrainKey& key : bad) {
    EXPECT_EQ(ErrorKindOf<LookupError>(key.Check()), LookupError::kInvalidKey) << key.ToString();
  }
  EXPECT_TRUE(GrainKey(std::string(255, 'k'), std::string(1024, 'i')).Check().ok());
  // However long the key, the text is not.
  EXPECT_LT(GrainKey("account", std::string(5000, 'i')).Check().message().size(), 400u);
}

TEST(LookupError, SaysWhichMayBeTriedAgain) {
  const GrainKey key("account", "alice");
  std::set<LookupError> retryable;
  for (int i = 0; i <= static_cast<int>(ErrorKindTraits<LookupError>::kLast); ++i) {
    const auto error = static_cast<LookupError>(i);
    EXPECT_NE(LookupErrorName(error), "unknown");
    const absl::Status status = MakeLookupError(error, absl::StatusCode::kUnavailable, key, "no");
    EXPECT_EQ(ErrorKindOf<LookupError>(status), error);
    EXPECT_EQ(status.message(), "grain \"account/alice\": no");
    if (IsRetryableLookup(status)) retryable.insert(error);
  }
  EXPECT_EQ(retryable, (std::set<LookupError>{LookupError::kNotReady, LookupError::kPending, LookupError::kLockDenied,
                                              LookupError::kStorageFailed}));
  EXPECT_FALSE(IsRetryableLookup(absl::OkStatus()));
}

TEST(ClusterTopology, FindsMembersAndHosts) {
  Member leaving = Hosting("c:1", 3);
  leaving.status = MemberStatus::kLeaving;
  const ClusterTopologyPtr topology =
      ClusterTopology::Make(5, {Hosting("b:1", 2, {"account", "cart", "account"}), Hosting("a:1"), leaving}).value();
  EXPECT_EQ(topology->epoch(), 5u);
  ASSERT_NE(topology->FindId("b:1#2"), nullptr);
  EXPECT_EQ(topology->FindId("b:1#1"), nullptr);
  EXPECT_EQ(topology->FindAuthority("c:1")->id(), "c:1#3");
  EXPECT_EQ(topology->FindAuthority("d:1"), nullptr);
  EXPECT_EQ(topology->HostsOf("account").size(), 2u) << "one that leaves gets nothing new";
  EXPECT_EQ(topology->HostsOf("cart").size(), 1u);
  EXPECT_TRUE(topology->HostsOf("order").empty());
  EXPECT_TRUE(ClusterTopology::Empty()->empty());
}

// C26: of the members that are up and host the kind, the one that joined first, whatever the key.
TEST(ClusterTopology, KnowsTheOldestHostOfAKind) {
  const auto with_singleton = [](std::string authority, uint64_t incarnation) {
    Member member = Hosting(std::move(authority), incarnation, {"account", "boss"});
    member.oldest_kinds = {"boss"};
    return member;
  };
  Member leaving = with_singleton("d:1", 1);
  leaving.status = MemberStatus::kLeaving;
  const ClusterTopologyPtr topology =
      ClusterTopology::Make(
          9, {Hosting("z:1", 2), with_singleton("a:1", 5), with_singleton("b:1", 3), with_singleton("c:1", 4), leaving})
          .value();
  std::set<std::string> owners;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(RendezvousHasher::OwnerOf(*topology, GrainKey("boss", absl::StrCat(i)))->id(), "b:1#3");
    owners.insert(RendezvousHasher::OwnerOf(*topology, GrainKey("account", absl::StrCat(i)))->id());
  }
  EXPECT_EQ(owners.size(), 4u) << "other kinds are spread";
  const ClusterTopologyPtr listed =
      ClusterTopology::Make(1, {with_singleton("b:1", 1), with_singleton("a:1", 1)}).value();
  EXPECT_EQ(RendezvousHasher::OwnerOf(*listed, GrainKey("boss", "x"))->authority, "a:1") << "of equal ones the first";
  Member wrong = Hosting("a:1", 1, {"account"});
  wrong.oldest_kinds = {"boss"};
  EXPECT_TRUE(absl::IsInvalidArgument(CheckMember(wrong)));
}

// G9: the hash of a topology depends on who is there, not on the order in which they are told.
TEST(ClusterTopology, HashesWhoIsThere) {
  const uint64_t hash = ClusterTopology::Make(1, {Hosting("a:1"), Hosting("b:1")}).value()->hash();
  EXPECT_EQ(ClusterTopology::Make(2, {Hosting("b:1"), Hosting("a:1")}).value()->hash(), hash);
  EXPECT_NE(ClusterTopology::Make(1, {Hosting("a:1"), Hosting("b:1", 2)}).value()->hash(), hash);
  EXPECT_NE(ClusterTopology::Make(1, {Hosting("a:1")}).value()->hash(), hash);
}

TEST(ClusterTopology, RefusesMembersThatMakeNoSense) {
  EXPECT_FALSE(ClusterTopology::Make(1, {Hosting("a:1", 1), Hosting("a:1", 2)}).ok());
  EXPECT_FALSE(ClusterTopology::Make(1, {Hosting("", 1)}).ok());
  EXPECT_FALSE(ClusterTopology::Make(1, {Hosting("a#1", 1)}).ok());
  EXPECT_FALSE(ClusterTopology::Make(1, {Hosting("a:1", 0)}).ok());
  EXPECT_FALSE(ClusterTopology::Make(1, {Hosting("a:1", 1, {"a/b"})}).ok());
  EXPECT_FALSE(ClusterTopology::Make(1, std::vector<Member>(ClusterTopology::kMaxMembers + 1)).ok());
}

// CLU-1
TEST(RendezvousHasher, PicksTheSameOwnerForTheSameTopology) {
  std::vector<Member> members = Members(7);
  const ClusterTopologyPtr topology = ClusterTopology::Make(1, members).value();
  std::reverse(members.begin(), members.end());
  const ClusterTopologyPtr reversed = ClusterTopology::Make(9, members).value();
  for (Member& member : members) member.incarnation = 77;
  const ClusterTopologyPtr restarted = ClusterTopology::Make(10, members).value();
  for (int i = 0; i < 1000; ++i) {
    const std::string owner = OwnerAmong(*topology, Account(i));
    EXPECT_EQ(OwnerAmong(*reversed, Account(i)), owner);
    EXPECT_EQ(OwnerAmong(*restarted, Account(i)), owner) << "a node that comes back gets its keys back";
  }
}

// CLU-1: who owns what is part of the protocol: stored answers.
TEST(RendezvousHasher, GivesTheStoredOwners) {
  const ClusterTopologyPtr topology =
      ClusterTopology::Make(1, {Hosting("127.0.0.1:8080"), Hosting("127.0.0.1:8081"), Hosting("127.0.0.1:8082")})
          .value();
  const std::vector<std::pair<std::string, std::string>> stored = {
      {"a", "8080"},      {"abc", "8082"},   {"device-123", "8081"}, {"user-1", "8081"},
      {"user-2", "8082"}, {"alice", "8082"}, {"bob", "8081"},        {"carol", "8082"}};
  for (const auto& [identity, owner] : stored) {
    EXPECT_EQ(OwnerAmong(*topology, GrainKey("account", identity)), absl::StrCat("127.0.0.1:", owner)) << identity;
  }
}

// CLU-1: ties go to the lexically first.
TEST(RendezvousHasher, BreaksTiesByTheOrderOfAuthorities) {
  const std::vector<ClusterTopology::Host> hosts = {{.hash = 5, .member = 0}, {.hash = 5, .member = 1}};
  for (uint64_t key = 0; key < 100; ++key) EXPECT_EQ(RendezvousHasher::Pick(key, hosts), 0u);
}

TEST(RendezvousHasher, NamesNobodyForAKindThatNobodyHosts) {
  const ClusterTopologyPtr topology = ClusterTopology::Make(1, {Hosting("a:1", 1, {}), Hosting("b:1")}).value();
  EXPECT_EQ(OwnerAmong(*topology, GrainKey("order", "1")), "nobody");
  EXPECT_EQ(OwnerAmong(*ClusterTopology::Empty(), GrainKey("account", "1")), "nobody");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(OwnerAmong(*topology, Account(i)), "b:1");
}

const std::vector<GrainKey>& HundredThousandAccounts() {
  static const auto* const keys = [] {
    auto* const made = new std::vector<GrainKey>();
    for (int i = 0; i < 100'000; ++i) made->push_back(Account(i));
    return made;
  }();
  return *keys;
}

// CLU-1: 10^5 keys over 10 members: nobody has more than 1.1 times the mean.
TEST(RendezvousHasher, SpreadsKeysEvenly) {
  const std::vector<GrainKey>& keys = HundredThousandAccounts();
  for (const size_t count : {3u, 10u}) {
    const ClusterTopologyPtr topology = ClusterTopology::Make(1, Members(static_cast<int>(count))).value();
    std::map<const Member*, size_t> owned;
    for (const GrainKey& key : keys) ++owned[RendezvousHasher::OwnerOf(*topology, key)];
    ASSERT_EQ(owned.size(), count);
    for (const auto& [member, share] : owned) {
      EXPECT_LT(share, 1.1 * keys.size() / count) << member->authority;
      EXPECT_GT(share, 0.9 * keys.size() / count) << member->authority;
    }
  }
}

// CLU-6: a join takes its share and moves nothing between others.
TEST(RendezvousHasher, MovesToAJoiningMemberItsShareOnly) {
  const std::vector<GrainKey>& keys = HundredThousandAccounts();
  std::vector<Member> members = Members(10);
  const ClusterTopologyPtr before = ClusterTopology::Make(1, members).value();
  members.push_back(Hosting("10.0.1.1:2552"));
  const ClusterTopologyPtr after = ClusterTopology::Make(2, members).value();
  const Member* const joined = after->FindAuthority("10.0.1.1:2552");
  size_t moved = 0;
  size_t moved_elsewhere = 0;
  for (const GrainKey& key : keys) {
    const Member* const owner = RendezvousHasher::OwnerOf(*after, key);
    if (owner == joined) {
      ++moved;
    } else if (owner->authority != RendezvousHasher::OwnerOf(*before, key)->authority) {
      ++moved_elsewhere;
    }
  }
  EXPECT_EQ(moved_elsewhere, 0u);
  EXPECT_GT(moved, 0.9 * keys.size() / 11);
  EXPECT_LT(moved, 1.1 * keys.size() / 11);
}

// CLU-11
TEST(PidCache, AnswersUntilTheTimeIsOver) {
  PidCache cache({.capacity = 4, .ttl = absl::Seconds(300)});
  cache.Put(Found(Account(1), "a:1#1", "pid-1"), At(0));
  ASSERT_NE(cache.Find(Account(1), At(299)), nullptr);
  EXPECT_EQ(cache.Find(Account(1), At(299))->pid, "pid-1");
  EXPECT_EQ(cache.Find(Account(2), At(299)), nullptr);
  EXPECT_TRUE(cache.DrainEvents().empty());
  EXPECT_EQ(cache.Find(Account(1), At(300)), nullptr) << "a use does not make it live longer";
  const std::vector<PidCacheEvent> events = cache.DrainEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, PidCacheEvent::Reason::kExpired);
  EXPECT_EQ(events[0].key, Account(1));
  EXPECT_EQ(events[0].observed_at, At(300));
  EXPECT_EQ(cache.size(), 0u);
}

// CLU-11: the documented defaults.
TEST(PidCache, Holds1024For300SecondsByDefault) {
  PidCache cache;
  for (int i = 0; i < 1025; ++i) cache.Put(Found(Account(i), "a:1#1", "pid"), At(0));
  EXPECT_EQ(cache.size(), 1024u);
  EXPECT_NE(cache.Find(Account(1024), At(299)), nullptr);
  EXPECT_EQ(cache.Find(Account(1024), At(300)), nullptr);
}

// CLU-11
TEST(PidCache, MakesRoomByDroppingWhatNobodyUses) {
  PidCache cache({.capacity = 3, .ttl = absl::Seconds(300)});
  for (int i = 0; i < 3; ++i) cache.Put(Found(Account(i), "a:1#1", absl::StrCat("pid-", i)), At(i));
  ASSERT_NE(cache.Find(Account(0), At(3)), nullptr);
  ASSERT_NE(cache.Find(Account(2), At(3)), nullptr);
  cache.Put(Found(Account(3), "a:1#1", "pid-3"), At(4));
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.Find(Account(1), At(4)), nullptr);
  EXPECT_NE(cache.Find(Account(0), At(4)), nullptr);
  EXPECT_NE(cache.Find(Account(2), At(4)), nullptr);
  EXPECT_NE(cache.Find(Account(3), At(4)), nullptr);
  const std::vector<PidCacheEvent> events = cache.DrainEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, PidCacheEvent::Reason::kFull);
  EXPECT_EQ(events[0].pid, "pid-1");
}

// CLU-11, G5: removing is idempotent, and does not hit the one that has come since.
TEST(PidCache, ForgetsOnceAndOnlyWhatIsMeant) {
  PidCache cache;
  cache.Put(Found(Account(1), "a:1#1", "old"), At(0));
  cache.Put(Found(Account(1), "b:1#1", "new"), At(1));
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_FALSE(cache.RemovePid(Account(1), "old", At(2)));
  EXPECT_TRUE(cache.RemovePid(Account(1), "new", At(2)));
  EXPECT_FALSE(cache.RemovePid(Account(1), "new", At(2)));
  EXPECT_FALSE(cache.Remove(Account(1), PidCacheEvent::Reason::kRemoved, At(2)));
  EXPECT_EQ(cache.DrainEvents().size(), 1u);
}

// CLU-11, G5: a member that left takes its entries with it; the next life of the node has its own.
TEST(PidCache, ForgetsWhatAMemberHadThatLeft) {
  PidCache cache;
  cache.Put(Found(Account(1), "a:1#1", "pid-1"), At(0));
  cache.Put(Found(Account(2), "a:1#2", "pid-2"), At(0));
  cache.Put(Found(Account(3), "a:1#1", "pid-3"), At(0));
  EXPECT_EQ(cache.RemoveMember("a:1#1", At(1)), 2u);
  EXPECT_EQ(cache.RemoveMember("a:1#1", At(1)), 0u);
  EXPECT_EQ(cache.Find(Account(1), At(1)), nullptr);
  EXPECT_NE(cache.Find(Account(2), At(1)), nullptr);
  const std::vector<PidCacheEvent> events = cache.DrainEvents();
  ASSERT_EQ(events.size(), 2u);
  for (const PidCacheEvent& event : events) EXPECT_EQ(event.reason, PidCacheEvent::Reason::kMemberLeft);
}

TEST(PidCache, StaysBoundedHoweverManyComeAndGo) {
  PidCache cache({.capacity = 8, .ttl = absl::Seconds(10)});
  size_t most = 0;
  for (int i = 0; i < 70'000; ++i) {
    cache.Put(Found(Account(i), "a:1#1", "pid"), At(i / 4));
    if (i % 3 == 0) cache.Remove(Account(i - 1), PidCacheEvent::Reason::kRemoved, At(i / 4));
    most = std::max(most, cache.size());
  }
  EXPECT_EQ(most, 8u);
  EXPECT_EQ(cache.DrainEvents().size(), 65'536u);
  EXPECT_EQ(cache.dropped_events(), 70'000 - 65'536 - cache.size());
}

// CLU-11: idle for 3600 s by default; a use counts.
TEST(VirtualActorRegistry, FindsThoseThatNobodyNeeds) {
  VirtualActorRegistry registry;
  registry.Add(Found(Account(1), "a:1#1", "pid-1"), {}, At(0));
  registry.Add(Found(Account(2), "a:1#1", "pid-2"), {}, At(10));
  registry.Add(Found(Account(3), "a:1#1", "pid-3"), {.replaces_another = true}, At(20));
  ASSERT_NE(registry.Find(Account(1), At(100)), nullptr);
  EXPECT_TRUE(registry.TakeIdle(At(3609), 10).empty());
  EXPECT_EQ(registry.TakeIdle(At(3620), 10), (std::vector<GrainKey>{Account(2), Account(3)}));
  EXPECT_TRUE(registry.TakeIdle(At(3621), 10).empty()) << "once in a while, not at each look";
  EXPECT_TRUE(registry.Remove(Account(2), VirtualActorEvent::Kind::kPassivated, At(3622)));
  EXPECT_FALSE(registry.Remove(Account(2), VirtualActorEvent::Kind::kPassivated, At(3622)));
  EXPECT_EQ(registry.TakeIdle(At(3700), 10), (std::vector<GrainKey>{Account(1)}));
  EXPECT_EQ(registry.size(), 2u);
  EXPECT_EQ(registry.Keys().size(), 2u);
  EXPECT_EQ(registry.Peek(Account(2)), nullptr);

  const std::vector<VirtualActorEvent> events = registry.DrainEvents();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].kind, VirtualActorEvent::Kind::kActivated);
  EXPECT_EQ(events[2].kind, VirtualActorEvent::Kind::kReactivated);
  EXPECT_EQ(events[3].kind, VirtualActorEvent::Kind::kPassivated);
  EXPECT_EQ(events[3].pid, "pid-2");
}

TEST(VirtualActorRegistry, TakesNoMoreThanAskedFor) {
  VirtualActorRegistry registry(absl::Seconds(1));
  for (int i = 0; i < 10; ++i) registry.Add(Found(Account(i), "a:1#1", "pid"), {}, At(0));
  EXPECT_EQ(registry.TakeIdle(At(5), 3), (std::vector<GrainKey>{Account(0), Account(1), Account(2)}));
  EXPECT_EQ(registry.TakeIdle(At(5), 100).size(), 7u);
}

TEST(CheckAuthority, TakesAHostAndAPort) {
  for (const char* const good : {"10.0.0.1:2552", "node-1.shop.internal:1", "[::1]:65535", "localhost:80"}) {
    EXPECT_TRUE(CheckAuthority("o", good).ok()) << good;
  }
  for (const char* const bad :
       {"", "host", ":2552", "host:", "host:0", "host:65536", "host:-1", "host:x", "host:80x"}) {
    const absl::Status refused = CheckAuthority("ClusterOptions::authority", bad);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << bad;
    EXPECT_TRUE(absl::StrContains(refused.message(), absl::StrCat("ClusterOptions::authority is \"", bad, "\"")))
        << refused;
  }
}

std::vector<std::string> Ids(const std::vector<Member>& members) {
  std::vector<std::string> ids;
  for (const Member& member : members) ids.push_back(member.id());
  return ids;
}

TEST(TopologyChanged, SaysWhoHasComeAndGoneAndIsAboutTo) {
  const Member stays = Hosting("a:1", 1);
  const Member goes = Hosting("b:1", 2);
  Member leaves = Hosting("c:1", 3);
  Member has_been_leaving = Hosting("d:1", 4);
  has_been_leaving.status = MemberStatus::kLeaving;
  const Member restarts = Hosting("e:1", 5);
  const ClusterTopologyPtr before = ClusterTopology::Make(7, {stays, goes, leaves, has_been_leaving, restarts}).value();
  leaves.status = MemberStatus::kLeaving;
  const Member restarted = Hosting("e:1", 6);
  const Member comes = Hosting("f:1", 7);
  const ClusterTopologyPtr after =
      ClusterTopology::Make(9, {stays, leaves, has_been_leaving, restarted, comes}).value();

  const TopologyChanged change = ChangeOf(*before, after, At(5));
  EXPECT_EQ(change.topology, after);
  EXPECT_EQ(change.observed_at, At(5));
  EXPECT_EQ(Ids(change.left), (std::vector<std::string>{goes.id(), restarts.id()}));
  EXPECT_EQ(Ids(change.joined), (std::vector<std::string>{restarted.id(), comes.id()}));
  EXPECT_EQ(Ids(change.leaving), std::vector<std::string>{leaves.id()});

  const TopologyChanged nothing = ChangeOf(*after, after, At(6));
  EXPECT_TRUE(nothing.left.empty() && nothing.joined.empty() && nothing.leaving.empty());
  // Who is heard of for the first time when it leaves has come as well.
  EXPECT_EQ(ChangeOf(*ClusterTopology::Empty(), after, At(6)).joined.size(), 5u);
  EXPECT_EQ(ChangeOf(*ClusterTopology::Empty(), after, At(6)).leaving.size(), 2u);
}

}  // namespace
}  // namespace fraktor
