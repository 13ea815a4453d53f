// The names and paths of the actors of a system: automatic names, and lookups by path.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/path_events.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/testing/sanitized.h"

namespace fraktor {

using path_internal::AutoName;
using system_internal::Act;
using system_internal::SystemTest;

namespace {

class ActorPaths : public SystemTest {
 protected:
  // A child of `parent` without a name of its own.
  ActorRef SpawnUnnamed(ActorRef parent) {
    absl::StatusOr<ActorRef> child = absl::UnknownError("the parent did not run");
    const PropsPtr props = PropsFor("unnamed");
    Let(parent, [&](ActorContext& context) {
      child = context.TrySpawn(*props);
      return absl::OkStatus();
    });
    EXPECT_TRUE(child.ok()) << child.status();
    return child.ok() ? *child : ActorRef();
  }
  // The error of a path without an actor.
  PathResolutionErrorKind WhyNobodyHas(const std::string& path) {
    const absl::Status why = system().Resolve(path).status();
    EXPECT_FALSE(why.ok()) << path;
    const std::optional<PathResolutionErrorKind> kind = ErrorKindOf<PathResolutionErrorKind>(why);
    EXPECT_TRUE(kind.has_value()) << why;
    return kind.value_or(PathResolutionErrorKind::kNameTaken);
  }
  // Another path with the same uid.
  static std::string OtherPath(const std::string& canonical) {
    return "pekko://test/user/other" + canonical.substr(canonical.rfind('#'));
  }
  // Sets the number of the next child, as if the actor had spawned that many.
  static void SetNextNumber(ActorRef parent, uint64_t number) { parent.slot()->kin.children->next_number = number; }
};

// PTH-2
TEST_F(ActorPaths, NumbersOfUnnamedChildrenGoOnBeyond32Bits) {
  const ActorRef parent = Spawn("parent");
  const std::string path = system().PathOf(parent);
  const ActorRef first = SpawnUnnamed(parent);
  EXPECT_EQ(system().PathOf(first), path + "/$a");
  for (const uint64_t limit : {uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 48}) {
    SetNextNumber(parent, limit - 2);
    for (uint64_t number = limit - 2; number < limit + 2; ++number) {
      SCOPED_TRACE(number);
      const std::string expected = path + "/" + AutoName(number);
      const ActorRef child = SpawnUnnamed(parent);
      EXPECT_EQ(system().PathOf(child), expected);
      EXPECT_EQ(system().Resolve(expected).value_or(ActorRef()), child);
      const ActorRef named = SpawnUnder(child, "grandchild");
      EXPECT_EQ(system().PathOf(named), expected + "/grandchild");
      EXPECT_EQ(system().Resolve(expected + "/grandchild").value_or(ActorRef()), named);
      EXPECT_EQ(system().PathOf(child), expected);
      EXPECT_EQ(system().Resolve(expected).value_or(ActorRef()), child);
    }
  }
  EXPECT_EQ(system().PathOf(first), path + "/$a");
  EXPECT_EQ(system().Resolve(path + "/$a").value_or(ActorRef()), first);
}

// PTH-10
TEST_F(ActorPaths, FindsEachOfManyUnnamedChildren) {
  constexpr int kChildren = 50'000;
  const ActorRef parent = Spawn("parent");
  const PropsPtr props = PropsFor("unnamed");
  std::vector<ActorRef> children;
  Let(parent, [&](ActorContext& context) {
    for (int i = 0; i < kChildren; ++i) children.push_back(context.Spawn(*props));
    return absl::OkStatus();
  });
  const std::string path = system().PathOf(parent);
  for (int i = 0; i < kChildren; ++i) {
    ASSERT_EQ(system().Resolve(path + "/" + AutoName(static_cast<uint64_t>(i))).value_or(ActorRef()),
              children[static_cast<size_t>(i)]);
  }
}

// PTH-6
TEST_F(ActorPaths, ReservesThePathAndUidOfAnEndedActorForAWhile) {
  options_.config.uid_reservation = absl::Hours(1);
  const ActorRef first = Spawn("a");
  const std::string first_life = system().CanonicalPathOf(first);
  Stop(first);
  // The name is free at once, and the next incarnation has another uid.
  const ActorRef second = Spawn("a");
  EXPECT_EQ(system().Resolve("/user/a").value_or(ActorRef()), second);
  const std::string second_life = system().CanonicalPathOf(second);
  EXPECT_NE(second_life, first_life);
  EXPECT_EQ(system().Resolve(second_life).value_or(ActorRef()), second);
  EXPECT_EQ(WhyNobodyHas(first_life), PathResolutionErrorKind::kUidReserved);
  EXPECT_EQ(WhyNobodyHas("pekko://test/user/a#1"), PathResolutionErrorKind::kPidUnknown);
  EXPECT_EQ(WhyNobodyHas(OtherPath(first_life)), PathResolutionErrorKind::kPidUnknown);
  RunFor(absl::Minutes(30));
  Stop(second);
  RunFor(absl::Minutes(30) - absl::Nanoseconds(1));
  EXPECT_EQ(WhyNobodyHas(first_life), PathResolutionErrorKind::kUidReserved);
  RunFor(absl::Nanoseconds(1));
  EXPECT_EQ(WhyNobodyHas(first_life), PathResolutionErrorKind::kPidUnknown);
  EXPECT_EQ(WhyNobodyHas(second_life), PathResolutionErrorKind::kUidReserved);
  RunFor(absl::Minutes(30));
  EXPECT_EQ(WhyNobodyHas(second_life), PathResolutionErrorKind::kPidUnknown);
  // Also after all reservations had expired.
  const ActorRef third = Spawn("a");
  const std::string third_life = system().CanonicalPathOf(third);
  RunFor(absl::Hours(2));
  Stop(third);
  EXPECT_EQ(WhyNobodyHas(third_life), PathResolutionErrorKind::kUidReserved);
  RunFor(absl::Hours(1));
  EXPECT_EQ(WhyNobodyHas(third_life), PathResolutionErrorKind::kPidUnknown);
}

// PTH-6
TEST_F(ActorPaths, ReservesSoManyUidsAtMostAndSaysWhichOneHadToGo) {
  options_.config.max_uid_reservations = 2;
  std::vector<std::string> evicted;
  // A subscriber may look up paths.
  const EventSubscription listening =
      system().events().Listen<UidReservationEvicted>([&](const UidReservationEvicted& event) {
        evicted.push_back(std::string(event.path) + "#" + std::to_string(event.uid.value()) + " " +
                          system().PathOf(system().user_guardian()));
      });
  std::vector<std::string> lives;
  for (const char* name : {"a", "b", "c"}) {
    const ActorRef actor = Spawn(name);
    lives.push_back(system().CanonicalPathOf(actor));
    Stop(actor);
  }
  EXPECT_EQ(evicted, std::vector<std::string>{lives[0] + " pekko://test/user"});
  EXPECT_EQ(WhyNobodyHas(lives[0]), PathResolutionErrorKind::kPidUnknown);
  EXPECT_EQ(WhyNobodyHas(lives[1]), PathResolutionErrorKind::kUidReserved);
  EXPECT_EQ(WhyNobodyHas(lives[2]), PathResolutionErrorKind::kUidReserved);
}

// PTH-1, PTH-6
TEST_F(ActorPaths, RemembersThePathOfAnEndedActorAsLongAsItsUidIsReserved) {
  options_.config.uid_reservation = absl::Hours(1);
  const ActorRef first = Spawn("a");
  const std::string first_life = system().CanonicalPathOf(first);
  Stop(first);
  const ActorRef second = Spawn("a");
  EXPECT_EQ(system().PathOf(first), "pekko://test/user/a");
  EXPECT_EQ(system().CanonicalPathOf(first), first_life);
  EXPECT_NE(system().CanonicalPathOf(second), first_life);
  RunFor(absl::Hours(1));
  EXPECT_EQ(system().PathOf(first).find("an actor that has ended (slot "), 0u) << system().PathOf(first);
  EXPECT_EQ(system().CanonicalPathOf(first), "");
  // The system does not remember automatic names: no other actor ever gets one.
  const ActorRef unnamed = SpawnUnnamed(second);
  EXPECT_NE(system().CanonicalPathOf(unnamed), "");
  Stop(unnamed);
  EXPECT_EQ(system().CanonicalPathOf(unnamed), "");
  EXPECT_EQ(system().CanonicalPathOf(ActorRef()), "");
}

// PTH-10. A path may come from another node.
TEST_F(ActorPaths, LooksForAPathOfManyAutomaticNames) {
  const ActorRef parent = Spawn("parent");
  const ActorRef child = SpawnUnnamed(parent);
  const ActorRef grandchild = SpawnUnnamed(child);
  EXPECT_EQ(system().Resolve("/user/parent/$a/$a").value_or(ActorRef()), grandchild);
  EXPECT_EQ(system().Resolve("/user/parent/$a").value_or(ActorRef()), child);
  EXPECT_EQ(WhyNobodyHas("/user/parent/$a/$b"), PathResolutionErrorKind::kPidUnknown);
  EXPECT_EQ(WhyNobodyHas("/user/parent/$b/$a"), PathResolutionErrorKind::kPidUnknown);
  EXPECT_EQ(WhyNobodyHas("/$a"), PathResolutionErrorKind::kPidUnknown);
  std::string path = "/user/parent";
  while (path.size() < 60'000) path += "/$a";
  EXPECT_EQ(WhyNobodyHas(path), PathResolutionErrorKind::kPidUnknown);
}

// A named child gives paths to all of its ancestors, and here the path is too long.
TEST_F(ActorPaths, NamesNoActorBelowVeryManyLevelsAndSaysWhy) {
  // An actor that ends leaves the text of its path for a while. The texts of 20 000 levels take
  // sanitizers too long, so there the path is not too long.
  constexpr int kLevels = kIsSanitized ? 3'000 : 100'000;
  const PropsPtr props = PropsFor("unnamed");
  ActorRef deepest;
  std::function<absl::Status(ActorContext&)> dig;
  int levels = 0;
  dig = [&](ActorContext& context) {
    deepest = context.self();
    if (++levels < kLevels) context.Tell(context.Spawn(*props), Act{dig});
    return absl::OkStatus();
  };
  const ActorRef top = Spawn("top");
  Let(top, dig);
  ASSERT_EQ(levels, kLevels);
  absl::Status named;
  Let(deepest, [&](ActorContext& context) {
    named = context.TrySpawn(*props, "name").status();
    return absl::OkStatus();
  });
  if (kIsSanitized) {
    EXPECT_EQ(named, absl::OkStatus());
  } else {
    EXPECT_EQ(named.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(named.message().find("use shorter names or a flatter tree"), absl::string_view::npos);
  }
  Stop(top);
  EXPECT_FALSE(IsAlive(deepest));
}

}  // namespace
}  // namespace fraktor
