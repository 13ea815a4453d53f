#include "fraktor/actor/registry/internal/actor_path_registry.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/config/remoting_config.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/registry/internal/compact_name.h"
#include "fraktor/actor/registry/internal/path_failure.h"
#include "fraktor/actor/registry/internal/path_index.h"
#include "fraktor/actor/registry/path_events.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/selection/internal/actor_selection_resolver.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {

using actor_internal::ActorPathRegistry;
using actor_internal::ActorSelectionResolver;
using actor_internal::PathFailureReporter;
using actor_internal::UidReservation;
using path_internal::AutoName;

namespace {

using Kind = PathResolutionErrorKind;

std::optional<Kind> KindOf(const absl::Status& status) { return ErrorKindOf<Kind>(status); }
ActorPath Path(std::string_view text) { return *ActorPathParser::Parse(text); }

constexpr Pid kRoot{.slot = 0, .generation = 1};
constexpr Pid kUser{.slot = 1, .generation = 1};
constexpr Pid kTemp{.slot = 2, .generation = 1};

class ActorPathRegistryTest : public ::testing::Test {
 protected:
  ActorPathRegistryTest() {
    Make({.system_name = "s", .remoting = RemotingConfig{.canonical_hostname = "h", .canonical_port = 1}});
  }

  void Make(const ActorSystemConfig& config) {
    registry_ = *ActorPathRegistry::Create(config, {.uid_key = 42});
    ASSERT_TRUE(registry_->RegisterRoot(kRoot).ok());
    ASSERT_TRUE(registry_->Register(kUser, kRoot, "user").ok());
    ASSERT_TRUE(registry_->Register(kTemp, kRoot, "temp").ok());
  }

  std::string TextOf(Pid pid) { return std::string(registry_->PathOf(pid)->text()); }

  std::unique_ptr<ActorPathRegistry> registry_;
  Instant now_;
};

TEST_F(ActorPathRegistryTest, LeadsFromPidToPathAndBack) {  // PTH-10
  const Pid cart{10, 1}, item{11, 1}, worker{12, 5};
  ASSERT_TRUE(registry_->Register(cart, kUser, "customer-4711").ok());
  ASSERT_TRUE(registry_->Register(item, cart, "item").ok());
  ASSERT_TRUE(registry_->RegisterAuto(worker, item, 64).ok());
  EXPECT_EQ(TextOf(kRoot), "pekko://s/");
  EXPECT_EQ(TextOf(kUser), "pekko://s/user");
  EXPECT_EQ(TextOf(cart), "pekko://s/user/customer-4711");
  EXPECT_EQ(TextOf(worker), "pekko://s/user/customer-4711/item/$ab");
  for (const Pid pid : {kRoot, kUser, kTemp, cart, item, worker}) {
    const ActorPath path = *registry_->PathOf(pid);
    EXPECT_EQ(registry_->Find(path), pid);
    EXPECT_EQ(registry_->Find(path.WithoutUid()), pid);
    EXPECT_EQ(*registry_->TextOf(pid), path.text());
    EXPECT_EQ(path.hash(), Path(path.text()).hash());
    if (pid == kRoot) continue;
    EXPECT_EQ(registry_->uids().UidOf(pid), path.uid());
  }
  EXPECT_EQ(registry_->size(), 6u);
}

TEST_F(ActorPathRegistryTest, FindsItsActorsUnderItsOwnAuthorityOnly) {
  ASSERT_TRUE(registry_->Register({10, 1}, kUser, "a").ok());
  EXPECT_EQ(registry_->Find(Path("pekko://s@h:1/user/a")), (Pid{10, 1}));
  EXPECT_EQ(registry_->Find(Path("pekko://s@h:1/")), kRoot);
  for (std::string_view other : {"pekko://s@h:2/user/a", "pekko://s@g:1/user/a", "pekko.tcp://s@h:1/user/a",
                                 "pekko://t@h:1/user/a", "pekko://t/user/a", "pekko://s/user/b", "pekko://s/user",
                                 "pekko://s/user/a/a", "pekko://s/a", "pekko://s/user/A"}) {
    EXPECT_FALSE(registry_->Find(Path(other)) == (Pid{10, 1})) << other;
  }
}

TEST_F(ActorPathRegistryTest, MeansOneLifeByAUid) {  // PTH-5
  ASSERT_TRUE(registry_->Register({10, 1}, kUser, "a").ok());
  const ActorPath first = *registry_->PathOf({10, 1});
  EXPECT_FALSE(first.uid().IsNone());
  ASSERT_TRUE(registry_->Unregister({10, 1}, now_).ok());
  EXPECT_FALSE(registry_->Find(first).IsValid());
  ASSERT_TRUE(registry_->Register({10, 2}, kUser, "a").ok());  // the name is free at once: PTH-6
  const ActorPath second = *registry_->PathOf({10, 2});
  EXPECT_EQ(first, second);
  EXPECT_NE(first.uid(), second.uid());
  EXPECT_EQ(registry_->Find(second), (Pid{10, 2}));
  EXPECT_EQ(registry_->Find(first.WithoutUid()), (Pid{10, 2}));
  EXPECT_FALSE(registry_->Find(first).IsValid());
}

TEST_F(ActorPathRegistryTest, ForgetsActorsThatHaveEnded) {  // PTH-6
  ASSERT_TRUE(registry_->Register({10, 1}, kUser, "a").ok());
  ASSERT_TRUE(registry_->Unregister({10, 1}, now_).ok());
  EXPECT_EQ(KindOf(registry_->PathOf({10, 1}).status()), Kind::kPidUnknown);
  EXPECT_EQ(KindOf(registry_->TextOf({10, 1}).status()), Kind::kPidUnknown);
  EXPECT_EQ(KindOf(registry_->Unregister({10, 1}, now_)), Kind::kPidUnknown);
  EXPECT_EQ(KindOf(registry_->PathOf({10'000'000, 1}).status()), Kind::kPidUnknown);
  EXPECT_EQ(registry_->Find(Path("pekko://s/user/a")), Pid());
}

TEST_F(ActorPathRegistryTest, RefusesWhatWouldNotBeATree) {
  ASSERT_TRUE(registry_->Register({10, 1}, kUser, "a").ok());
  EXPECT_EQ(KindOf(registry_->Register({11, 1}, kUser, "a")), Kind::kNameTaken);
  ASSERT_TRUE(registry_->RegisterAuto({12, 1}, kUser, 3).ok());
  EXPECT_EQ(KindOf(registry_->Register({13, 1}, kUser, "$d")), Kind::kNameTaken);
  EXPECT_EQ(KindOf(registry_->RegisterAuto({13, 1}, kUser, 3)), Kind::kNameTaken);
  EXPECT_EQ(KindOf(registry_->Register({13, 1}, Pid{99, 1}, "b")), Kind::kPidUnknown);
  EXPECT_EQ(KindOf(registry_->Register({13, 1}, Pid{10, 2}, "b")), Kind::kPidUnknown);
  EXPECT_EQ(registry_->Register({10, 2}, kUser, "b").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(registry_->Register(Pid{}, kUser, "b").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(registry_->Register({UINT32_MAX, 1}, kUser, "b").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(registry_->RegisterRoot({20, 1}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(registry_->Register({13, 1}, kUser, "a b")),
            ActorPathErrorKind::kInvalidSegment);
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(registry_->Register({13, 1}, kUser, "a%0A")),
            ActorPathErrorKind::kPercentDecode);
  EXPECT_EQ(KindOf(registry_->Unregister(kUser, now_)), Kind::kHasChildren);
  ASSERT_TRUE(registry_->Unregister({10, 1}, now_).ok());
  EXPECT_EQ(registry_->Register({10, 1}, kUser, "a").code(),
            absl::StatusCode::kInvalidArgument);  // generations only grow
  ASSERT_TRUE(registry_->Unregister({12, 1}, now_).ok());
  EXPECT_TRUE(registry_->Unregister(kUser, now_).ok());
  EXPECT_TRUE(registry_->Unregister(kTemp, now_).ok());
  EXPECT_TRUE(registry_->Unregister(kRoot, now_).ok());
  EXPECT_EQ(registry_->size(), 0u);
  EXPECT_TRUE(registry_->RegisterRoot({0, 2}).ok());
}

TEST_F(ActorPathRegistryTest, KnowsDeepTrees) {
  Pid parent = kUser;
  std::string text = "pekko://s/user";
  for (uint32_t i = 0; i < 100; ++i) {
    const Pid pid{100 + i, 1};
    ASSERT_TRUE(registry_->RegisterAuto(pid, parent, i).ok());
    text += "/" + std::string(registry_->PathOf(pid)->name());
    EXPECT_EQ(TextOf(pid), text);
    EXPECT_EQ(registry_->Find(Path(text)), pid);
    EXPECT_EQ(registry_->PathOf(pid)->hash(), Path(text).hash());
    parent = pid;
  }
}

TEST_F(ActorPathRegistryTest, RefusesAPathThatNobodyCouldParse) {
  Pid parent = kUser;
  uint32_t slot = 100;
  absl::Status refused;
  for (;; ++slot) {
    refused = registry_->RegisterAuto({slot, 1}, parent, 0);
    if (!refused.ok()) break;
    parent = {slot, 1};
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  const ActorPath deepest = *registry_->PathOf(parent);
  EXPECT_GT(deepest.segment_count(), 19'000u);
  EXPECT_GT(deepest.text().size(), ActorPathRegistry::kMaxTextSize);
  EXPECT_EQ(registry_->Find(Path(deepest.ToCanonical())), parent);
}

TEST_F(ActorPathRegistryTest, ReservesAUidAfterItsActorHasEnded) {  // PTH-6
  ASSERT_TRUE(registry_->Register({10, 1}, kUser, "a").ok());
  const ActorPath path = registry_->PathOf({10, 1}).value();
  EXPECT_EQ(registry_->Find(path), (Pid{10, 1}));
  EXPECT_FALSE(registry_->IsReserved(path));
  EXPECT_EQ(registry_->reservation_count(), 0u);
  ASSERT_TRUE(registry_->Unregister({10, 1}, now_ + absl::Hours(24)).ok());
  EXPECT_TRUE(registry_->IsReserved(path));
  EXPECT_EQ(registry_->reservation_count(), 1u);
  EXPECT_FALSE(registry_->Find(path).IsValid());
  // The name is free at once.
  EXPECT_TRUE(registry_->Register({10, 2}, kUser, "a").ok());
  // It expires five days after the end, not a nanosecond earlier.
  EXPECT_EQ(registry_->Expire(now_ + (absl::Hours(6 * 24) - absl::Nanoseconds(1))), 0u);
  EXPECT_TRUE(registry_->IsReserved(path));
  EXPECT_EQ(registry_->Expire(now_ + absl::Hours(6 * 24)), 1u);
  EXPECT_FALSE(registry_->IsReserved(path));
  EXPECT_EQ(registry_->reservation_count(), 0u);
}

TEST_F(ActorPathRegistryTest, RemembersAnEndedActorAsLongAsItsUidIsReserved) {  // PTH-6
  const auto end = [&](Pid pid, std::string_view name, absl::Duration after) {
    ASSERT_TRUE(registry_->Register(pid, kUser, name).ok());
    ASSERT_TRUE(registry_->Unregister(pid, now_ + after).ok());
  };
  EXPECT_EQ(registry_->NextExpiry(), Instant::InfiniteFuture());
  for (uint32_t i = 1; i <= 4; ++i) end({10, i}, "a", absl::Seconds(i));
  EXPECT_EQ(registry_->NextExpiry(), now_ + (absl::Hours(120) + absl::Seconds(1)));
  const ActorPath second = Path("pekko://s/user/a").WithUid(registry_->uids().UidOf({10, 2}));
  EXPECT_TRUE(registry_->IsReserved(second));
  EXPECT_TRUE(registry_->IsReserved(Path("pekko://s@h:1/user/a").WithUid(second.uid())));
  EXPECT_FALSE(registry_->IsReserved(second.WithoutUid()));
  EXPECT_FALSE(registry_->IsReserved(Path("pekko://s/user/b").WithUid(second.uid())));
  EXPECT_FALSE(registry_->IsReserved(Path("pekko://t/user/a").WithUid(second.uid())));
  ASSERT_NE(registry_->FindEnded({10, 2}), nullptr);
  EXPECT_EQ(registry_->FindEnded({10, 2})->path, "pekko://s/user/a");
  EXPECT_EQ(registry_->FindEnded({10, 2})->uid, second.uid());
  EXPECT_EQ(registry_->FindEnded({10, 5}), nullptr);
  // Expire ends one at a time, and only those that have expired.
  const Instant later = now_ + (absl::Hours(120) + absl::Seconds(3));
  EXPECT_EQ(registry_->Expire(later, 1), 1u);
  EXPECT_EQ(registry_->FindEnded({10, 1}), nullptr);
  EXPECT_TRUE(registry_->IsReserved(second));
  EXPECT_EQ(registry_->Expire(later), 2u);
  EXPECT_FALSE(registry_->IsReserved(second));
  EXPECT_EQ(registry_->FindEnded({10, 2}), nullptr);
  ASSERT_NE(registry_->FindEnded({10, 4}), nullptr);
  EXPECT_EQ(registry_->FindEnded({10, 4})->pid, (Pid{10, 4}));
}

TEST_F(ActorPathRegistryTest, KeepsAtMost65536ReservationsByDefault) {  // PTH-6
  const auto spawn_and_end = [&](uint32_t generation) {
    ASSERT_TRUE(registry_->Register({10, generation}, kUser, "a").ok());
    ASSERT_TRUE(registry_->Unregister({10, generation}, now_).ok());
  };
  for (uint32_t generation = 1; generation <= 65'536; ++generation) spawn_and_end(generation);
  EXPECT_TRUE(registry_->TakeEvicted().empty());
  spawn_and_end(65'537);
  spawn_and_end(65'538);
  const std::vector<UidReservation> evicted = registry_->TakeEvicted();
  ASSERT_EQ(evicted.size(), 2u);
  EXPECT_EQ(evicted[0].pid, (Pid{10, 1}));  // the oldest is evicted
  EXPECT_EQ(evicted[1].pid, (Pid{10, 2}));
  EXPECT_EQ(evicted[0].path, "pekko://s/user/a");
  EXPECT_EQ(evicted[0].uid, registry_->uids().UidOf({10, 1}));
  EXPECT_EQ(evicted[0].deadline, now_ + absl::Hours(120));
  EXPECT_TRUE(registry_->TakeEvicted().empty());
  EXPECT_EQ(registry_->reservation_count(), 65'536u);
  EXPECT_EQ(registry_->FindEnded({10, 2}), nullptr);
  EXPECT_NE(registry_->FindEnded({10, 3}), nullptr);
  EXPECT_EQ(registry_->Expire(now_ + absl::Hours(120)), 65'536u);
}

TEST_F(ActorPathRegistryTest, ReservesNoPathThatIsLongerThanTheLimit) {
  const size_t begin = std::string("pekko://s/user/").size();
  const std::string longest(ActorPathRegistry::kMaxReservedPath - begin, 'a');
  ASSERT_TRUE(registry_->Register({10, 1}, kUser, longest).ok());
  ASSERT_TRUE(registry_->Unregister({10, 1}, now_).ok());
  EXPECT_EQ(registry_->reservation_count(), 1u);
  ASSERT_TRUE(registry_->Register({10, 2}, kUser, longest + "a").ok());
  ASSERT_TRUE(registry_->Unregister({10, 2}, now_).ok());
  EXPECT_EQ(registry_->reservation_count(), 1u);
  EXPECT_NE(registry_->FindEnded({10, 1}), nullptr);
  EXPECT_EQ(registry_->FindEnded({10, 2}), nullptr);
}

TEST_F(ActorPathRegistryTest, TakesReservationTimeAndCapFromTheConfig) {  // PTH-6, PTH-8
  Make({.system_name = "s", .uid_reservation = absl::Seconds(1), .max_uid_reservations = 1});
  for (const uint32_t generation : {1, 2}) {
    ASSERT_TRUE(registry_->Register({10, generation}, kUser, "a").ok());
    ASSERT_TRUE(registry_->Unregister({10, generation}, now_).ok());
  }
  EXPECT_EQ(registry_->reservation_count(), 1u);
  EXPECT_EQ(registry_->Expire(now_ + absl::Seconds(1)), 1u);
}

// Compares with a simple model: random spawns and stops, with reused slots.
TEST_F(ActorPathRegistryTest, AgreesWithAModelThatKeepsEveryText) {  // PTH-10
  struct Live {
    std::string text;
    int children = 0;
    Pid parent;
  };
  std::map<Pid, Live> model = {
      {kRoot, {"pekko://s", 2, {}}}, {kUser, {"pekko://s/user", 0, kRoot}}, {kTemp, {"pekko://s/temp", 0, kRoot}}};
  std::vector<Pid> pids = {kUser};
  std::vector<uint32_t> generations(3000, 1);
  std::vector<uint32_t> free_slots;
  for (uint32_t slot = 10; slot < 3000; ++slot) free_slots.push_back(slot);
  uint64_t state = 1;
  auto below = [&state](size_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % limit;
  };
  uint64_t number = 0;
  for (int step = 0; step < 6'000; ++step) {
    if (below(100) < 55 && !free_slots.empty()) {
      const size_t at = below(free_slots.size());
      const Pid pid{free_slots[at], generations[free_slots[at]]};
      const Pid parent = pids[below(pids.size())];
      if (model[parent].text.size() > 400) continue;
      std::string name;
      if (below(2) == 0) {
        ASSERT_TRUE(registry_->RegisterAuto(pid, parent, number).ok());
        name = std::string(registry_->PathOf(pid)->name());
        ++number;
      } else {
        name = absl::StrCat("actor-", std::string(below(12), 'x'), number++);
        ASSERT_TRUE(registry_->Register(pid, parent, name).ok());
      }
      free_slots.erase(free_slots.begin() + static_cast<std::ptrdiff_t>(at));
      model[pid] = {model[parent].text + "/" + name, 0, parent};
      ++model[parent].children;
      pids.push_back(pid);
    } else if (pids.size() > 1) {
      const size_t at = 1 + below(pids.size() - 1);
      const Pid pid = pids[at];
      const bool leaf = model[pid].children == 0;
      ASSERT_EQ(registry_->Unregister(pid, now_).ok(), leaf);
      if (!leaf) continue;
      ASSERT_FALSE(registry_->Find(Path(model[pid].text)).IsValid());
      --model[model[pid].parent].children;
      model.erase(pid);
      pids.erase(pids.begin() + static_cast<std::ptrdiff_t>(at));
      ++generations[pid.slot];
      free_slots.push_back(pid.slot);
    }
    const Pid probe = pids[below(pids.size())];
    ASSERT_EQ(registry_->PathOf(probe)->text(), model[probe].text);
    ASSERT_EQ(registry_->Find(Path(model[probe].text)), probe);
  }
  ASSERT_GT(model.size(), 200u);
  for (const auto& [pid, live] : model) {
    if (pid == kRoot) continue;
    ASSERT_EQ(registry_->PathOf(pid)->text(), live.text);
    ASSERT_EQ(registry_->Find(Path(live.text)), pid);
  }
  EXPECT_EQ(registry_->size(), model.size());
}

TEST(ActorSystemConfig, RefusesWhatCannotWork) {  // PTH-8
  auto create = [](const ActorSystemConfig& config) { return ActorPathRegistry::Create(config, {}).status(); };
  EXPECT_TRUE(create({}).ok());
  EXPECT_TRUE(create({.uid_reservation = absl::Seconds(1)}).ok());
  EXPECT_EQ(create({.uid_reservation = absl::Milliseconds(999)}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.max_uid_reservations = 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.default_guardian = Guardian::kTemp}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToStd(create({.default_guardian = static_cast<Guardian>(77)}).message()),
            "ActorSystemConfig.default_guardian: unknown takes no actors of its own; use Guardian::kUser or "
            "Guardian::kSystem");
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(create({.system_name = "a.b"})), ActorPathErrorKind::kInvalidSystemName);
  EXPECT_TRUE(create({.system_name = std::string(255, 'a')}).ok());
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(create({.system_name = std::string(256, 'a')})),
            ActorPathErrorKind::kInvalidSystemName);
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(create({.scheme = "akka"})), ActorPathErrorKind::kInvalidScheme);
  // The quarantine and the reservation are two settings: neither replaces the other.
  EXPECT_EQ(create({.remoting = RemotingConfig{.quarantine_duration = absl::Milliseconds(1)}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(
      create({.uid_reservation = absl::Seconds(2), .remoting = RemotingConfig{.quarantine_duration = absl::Hours(9)}})
          .ok());
  EXPECT_EQ(ActorSystemConfig().uid_reservation, absl::Hours(120));
}

TEST(ActorSystemConfig, GivesTheAddressesOfTheSystem) {  // PTH-1
  const ActorSystemConfig local{.system_name = "shop"};
  EXPECT_EQ(local.LocalParts()->ToString(), "pekko://shop");
  EXPECT_EQ(local.CanonicalParts()->ToString(), "pekko://shop");
  const ActorSystemConfig remote{.system_name = "shop",
                                 .scheme = "pekko.tcp",
                                 .remoting = RemotingConfig{.canonical_hostname = "[::1]", .canonical_port = 2552}};
  EXPECT_EQ(remote.CanonicalParts()->ToString(), "pekko.tcp://shop@[::1]:2552");
  EXPECT_EQ(remote.LocalParts()->ToString(), "pekko.tcp://shop");
}

TEST(PathFailureReporter, MakesAnEventAndADeadLetterOfAPathThatTheSystemCannotUse) {  // PTH-9
  EventStream stream;
  DeadLetters dead_letters(stream);
  const PathFailureReporter reporter(stream, dead_letters);
  std::vector<std::string> log;
  const EventSubscription failures = stream.Listen<PathFailure>([&](const PathFailure& failure) {
    log.push_back(absl::StrCat("failure ", ToAbsl(failure.recipient), " from ", ToAbsl(failure.sender), ": ",
                               failure.error.message()));
  });
  const EventSubscription letters = stream.Listen<DeadLetter>(
      [&](const DeadLetter& letter) { log.push_back(absl::StrCat("dead ", ToAbsl(NameOf(letter.reason)))); });
  const ActorPath base = Path("pekko://s/user/a");
  const absl::Status escape = ActorSelectionResolver::Resolve(base, *ActorSelection::Parse("../..")).status();
  AllDeadLetters letter;
  letter.sender = base.text();
  letter.recipient = "../..";
  const absl::Status returned = reporter.Report(escape, letter, Instant() + absl::Seconds(1));
  EXPECT_EQ(returned, escape);
  EXPECT_EQ(log, (std::vector<std::string>{absl::StrCat("failure ../.. from pekko://s/user/a: ", escape.message()),
                                           "dead invalid_path"}));
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kInvalidPath), 1u);
  // Every kind of error maps to a reason.
  auto report = [&](const absl::Status& status) { reporter.Report(status, letter, Instant()).IgnoreError(); };
  auto error = [](auto kind) { return MakeError(absl::StatusCode::kNotFound, kind, "x"); };
  report(error(Kind::kPidUnknown));
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kNoRecipient), 1u);
  report(error(Kind::kAuthorityUnresolved));
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kUnresolvedFull), 1u);
  report(error(Kind::kAuthorityQuarantined));
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kQuarantined), 1u);
  report(error(Kind::kUidReserved));
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kUidReserved), 1u);
  report(error(ActorPathErrorKind::kUnsupportedAuthority));
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kUnsupported), 1u);
  report(absl::OkStatus());
  EXPECT_EQ(dead_letters.total(), 6u);
}

TEST(CompactName, KeepsNamesOfEveryKind) {
  using path_internal::CompactName;
  auto text = [](const CompactName& name) {
    // The function may overwrite the 8 bytes before the name, but not the byte after it.
    std::string out(1 + 8 + name.size() + 1, '?');
    char* const end = out.data() + out.size() - 1;
    EXPECT_EQ(name.WriteWithSlashBefore(end), end - name.size() - 1);
    EXPECT_EQ(out.front(), '?');
    EXPECT_EQ(out.back(), '?');
    EXPECT_EQ(*(end - name.size() - 1), '/');
    return std::string(end - name.size(), end);
  };
  EXPECT_EQ(text(CompactName()), "");
  EXPECT_EQ(text(CompactName::Auto(0)), "$a");
  EXPECT_EQ(text(CompactName::Auto((uint64_t{1} << 62) - 1)).size(), 12u);
  for (size_t size = 0; size < 40; ++size) {
    const std::string name = std::string("customer-0123456789abcdefghijklmnopqrstuvwxyz").substr(0, size);
    CompactName compact = CompactName::Of(name);
    EXPECT_EQ(text(compact), name);
    EXPECT_TRUE(compact.Is(name));
    EXPECT_FALSE(compact.Is(name + "x"));
    if (size > 0) {
      EXPECT_FALSE(compact.Is(std::string_view(name).substr(1)));
    }
    CompactName moved = std::move(compact);
    EXPECT_EQ(text(moved), name);
    moved = CompactName::Of("x");
    EXPECT_EQ(text(moved), "x");
  }
  // Numbers below 64^6 are in place; larger ones are stored as a number.
  for (uint64_t number : std::vector<uint64_t>{0, 1, 63, 64, 100, 4096, 68'719'476'735, 68'719'476'736}) {
    const CompactName compact = CompactName::Auto(number);
    EXPECT_EQ(text(compact), AutoName(number));
    EXPECT_TRUE(compact.Is(text(compact)));
    EXPECT_FALSE(compact.Is(text(compact) + "a"));  // no leading zeros
    EXPECT_FALSE(compact.Is(text(compact) + "b"));
    EXPECT_FALSE(compact.Is(text(compact).substr(1)));
    EXPECT_FALSE(compact.Is("$"));
  }
  EXPECT_TRUE(CompactName().Is(""));
  static_assert(sizeof(CompactName) == 8);
}

TEST(PathIndex, TellsApartPathsOfTheSameHash) {
  path_internal::PathIndex index;
  // All hashes are in one run of buckets: equal tags, tags that wrap around the end, and
  // neighbours.
  const std::vector<uint64_t> hashes = {15, 15, 15, 31, 0, 1, 14, uint64_t{1} << 32 | 15, 2, 15};
  for (uint32_t i = 0; i < hashes.size(); ++i) index.Insert(hashes[i], i);
  auto has = [&](uint32_t i) { return index.Find(hashes[i], [i](uint32_t slot) { return slot == i; }).has_value(); };
  for (uint32_t i = 0; i < hashes.size(); ++i) EXPECT_TRUE(has(i));
  EXPECT_FALSE(index.Find(15, [](uint32_t) { return false; }).has_value());
  EXPECT_FALSE(index.Erase(15, 4));
  for (uint32_t gone = 0; gone < hashes.size(); ++gone) {
    EXPECT_TRUE(index.Erase(hashes[gone], gone));
    for (uint32_t i = 0; i < hashes.size(); ++i) EXPECT_EQ(has(i), i > gone) << i << " after " << gone;
  }
  EXPECT_EQ(index.size(), 0u);
}

TEST(PathIndex, GrowsBeforeItIsFull) {
  path_internal::PathIndex index;
  for (uint32_t i = 0; i < 10'000; ++i) {
    index.Insert(i * uint64_t{0x9e3779b97f4a7c15}, i);
    ASSERT_LE(index.size() * 4, index.bucket_count() * 3);
  }
  for (uint32_t i = 0; i < 10'000; ++i) {
    ASSERT_EQ(index.Find(i * uint64_t{0x9e3779b97f4a7c15}, [i](uint32_t slot) { return slot == i; }), i);
  }
}

}  // namespace
}  // namespace fraktor
