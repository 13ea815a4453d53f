#include "fraktor/persistence/testing/state_store_contract.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

testing::AssertionResult IsKind(const absl::Status& status, JournalErrorKind kind) {
  if (ErrorKindOf<JournalErrorKind>(status) == kind) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << JournalErrorKindName(kind) << ", got " << status;
}

DurableState MakeState(const std::string& id, uint64_t revision, const std::string& payload, WriterId writer = {}) {
  return {.persistence_id = id,
          .revision = revision,
          .manifest = "state",
          .manifest_version = 3,
          .payload = payload,
          .writer = writer};
}

}  // namespace

// Who only wants a faulty store links the contracts too.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StateStoreContract);

std::string StateStoreContractName(const testing::TestParamInfo<StateStoreContractParameter>& info) {
  return info.param.name;
}

absl::Status StateStoreContract::Open(const std::string& id, uint64_t token) {
  return Await(storage().OpenWriter(id, token));
}

absl::Status StateStoreContract::Upsert(const std::string& id, uint64_t revision, const std::string& payload,
                                        WriterId writer, uint64_t token) {
  return Await(storage().Upsert(MakeState(id, revision, payload, writer), token));
}

absl::Status StateStoreContract::Delete(const std::string& id, uint64_t revision, WriterId writer, uint64_t token) {
  return Await(storage().Delete(id, revision, writer, token));
}

std::string StateStoreContract::Load(const std::string& id) {
  const absl::StatusOr<StoredState> loaded = Await(storage().Load(id));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return "error";
  EXPECT_EQ(loaded->state.persistence_id, id);
  EXPECT_EQ(loaded->state.manifest, loaded->exists ? "state" : "");
  EXPECT_EQ(loaded->state.manifest_version, loaded->exists ? 3u : 0u);
  return absl::StrCat(loaded->state.revision, ": ", loaded->exists ? loaded->state.payload : "-");
}

// P136
TEST_P(StateStoreContract, FindsNothingOfAnUnknownId) { EXPECT_EQ(Load("nobody"), "0: -"); }

// P136
TEST_P(StateStoreContract, KeepsTheLastOfTheStatesOfAnId) {
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_EQ(Load("a"), "1: one");
  EXPECT_TRUE(Upsert("a", 2, "two").ok());
  EXPECT_EQ(Load("a"), "2: two");
  EXPECT_TRUE(Upsert("a", 3, "").ok());
  EXPECT_EQ(Load("a"), "3: ");
}

// P136
TEST_P(StateStoreContract, DeletesAndGoesOnAfterIt) {
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_TRUE(Delete("a", 2).ok());
  EXPECT_EQ(Load("a"), "2: -");
  EXPECT_TRUE(Upsert("a", 3, "three").ok());
  EXPECT_EQ(Load("a"), "3: three");
}

// P136
TEST_P(StateStoreContract, KeepsIdsApart) {
  const std::vector<std::string> ids = {"a", "b", "ab", std::string("a\0b", 3), std::string(1024, 'x')};
  for (const std::string& id : ids) EXPECT_TRUE(Upsert(id, 1, id).ok());
  EXPECT_TRUE(Delete("b", 2).ok());
  for (const std::string& id : ids) EXPECT_EQ(Load(id), id == "b" ? "2: -" : absl::StrCat("1: ", id));
}

// P136
TEST_P(StateStoreContract, RefusesARevisionThatIsNotTheNext) {
  EXPECT_TRUE(IsKind(Upsert("a", 2, "two"), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(IsKind(Upsert("a", 0, "none"), JournalErrorKind::kInvalid));
  EXPECT_EQ(Load("a"), "0: -");
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_TRUE(Upsert("a", 2, "two").ok());
  const absl::Status stale = Upsert("a", 2, "another two");
  EXPECT_TRUE(IsKind(stale, JournalErrorKind::kSequenceMismatch));
  EXPECT_NE(stale.message().find("revision 2 of \"a\": the stored one is 2"), std::string::npos) << stale;
  EXPECT_TRUE(IsKind(Upsert("a", 1, "one"), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(IsKind(Upsert("a", 4, "four"), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(IsKind(Delete("a", 2), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(IsKind(Delete("a", 4), JournalErrorKind::kSequenceMismatch));
  EXPECT_EQ(Load("a"), "2: two");
}

TEST_P(StateStoreContract, TakesTheSameChangeTwice) {
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_TRUE(Delete("a", 2).ok());
  EXPECT_TRUE(Delete("a", 2).ok());
  EXPECT_TRUE(IsKind(Upsert("a", 2, ""), JournalErrorKind::kSequenceMismatch));
  EXPECT_EQ(Load("a"), "2: -");
}

// Two that count from the same state come to the same bytes, and one of them has lost its change.
TEST_P(StateStoreContract, RefusesTheSameChangeOfAnotherWriter) {
  const WriterId first{.high = 7, .low = 1};
  const WriterId second{.high = 7, .low = 2};
  EXPECT_TRUE(Upsert("a", 1, "one", first).ok());
  EXPECT_TRUE(IsKind(Upsert("a", 1, "one", second), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(IsKind(Upsert("a", 1, "one"), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(Upsert("a", 1, "one", first).ok());
  EXPECT_EQ(Await(storage().Load("a")).value().state.writer, first);
  EXPECT_TRUE(Delete("a", 2, second).ok());
  EXPECT_TRUE(IsKind(Delete("a", 2, first), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(Delete("a", 2, second).ok());
  EXPECT_EQ(Await(storage().Load("a")).value().state.writer, second);
}

// PER-19: also if the revision of the former owner would be the next.
TEST_P(StateStoreContract, RefusesTheChangesOfAFormerOwner) {
  ASSERT_TRUE(Open("a", 17).ok());
  EXPECT_TRUE(Upsert("a", 1, "one", {}, 17).ok());
  ASSERT_TRUE(Open("a", 23).ok());
  const absl::Status fenced = Upsert("a", 2, "two", {}, 17);
  EXPECT_TRUE(IsKind(fenced, JournalErrorKind::kFenced));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(fenced, "id"), "a");
  EXPECT_TRUE(IsKind(Delete("a", 2, {}, 17), JournalErrorKind::kFenced));
  // Also a change that is stored already.
  EXPECT_TRUE(IsKind(Upsert("a", 1, "one", {}, 17), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Open("a", 17), JournalErrorKind::kFenced));
  EXPECT_EQ(Load("a"), "1: one");
  EXPECT_TRUE(Upsert("a", 2, "another two", {}, 23).ok());
  // The same owner may come again.
  EXPECT_TRUE(Open("a", 23).ok());
  EXPECT_TRUE(Delete("a", 3, {}, 23).ok());
  EXPECT_TRUE(IsKind(Upsert("a", 4, "four", {}, 17), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Open("a", kNoEpoch), JournalErrorKind::kInvalid));
  // Other ids have other owners.
  EXPECT_TRUE(Upsert("ab", 1, "one", {}, 17).ok());
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_TRUE(IsKind(Upsert("a", 4, "four", {}, 17), JournalErrorKind::kFenced));
  EXPECT_EQ(Load("a"), "3: -");
  EXPECT_TRUE(Upsert("a", 4, "four", {}, 23).ok());
}

// PER-19: an owner that is announced has no state yet, and one that does not load is known from its
// changes.
TEST_P(StateStoreContract, LearnsTokensFromAnnouncementsAndChanges) {
  ASSERT_TRUE(Open("a", 5).ok());
  EXPECT_EQ(Load("a"), "0: -");
  EXPECT_TRUE(IsKind(Upsert("a", 1, "one", {}, 4), JournalErrorKind::kFenced));
  EXPECT_TRUE(Upsert("b", 1, "one", {}, 5).ok());
  EXPECT_TRUE(IsKind(Upsert("b", 2, "two", {}, 4), JournalErrorKind::kFenced));
  EXPECT_TRUE(Delete("b", 2, {}, 6).ok());
  EXPECT_TRUE(IsKind(Upsert("b", 3, "three", {}, 5), JournalErrorKind::kFenced));
  EXPECT_EQ(Load("b"), "2: -");
}

// PER-19: changes of actors without a token name none, and neither do those of older nodes.
TEST_P(StateStoreContract, TakesChangesWithoutATokenOnlyUntilAnOwnerIsKnown) {
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_TRUE(Upsert("a", 2, "two").ok());
  ASSERT_TRUE(Open("a", 1).ok());
  EXPECT_TRUE(IsKind(Upsert("a", 3, "three"), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Delete("a", 3), JournalErrorKind::kFenced));
  EXPECT_EQ(Load("a"), "2: two");
  EXPECT_TRUE(Upsert("a", 3, "three", {}, 1).ok());
  EXPECT_TRUE(Upsert("b", 1, "one").ok());
}

// PER-19: many ids at once, in the order of requests, answered or not.
TEST_P(StateStoreContract, FencesInTheOrderOfRequests) {
  constexpr int kIds = 500;
  std::vector<Future<void>> changes;
  std::vector<Future<void>> zombies;
  for (int i = 0; i < kIds; ++i) {
    const std::string id = absl::StrCat("id-", i);
    changes.push_back(storage().OpenWriter(id, 1));
    changes.push_back(storage().Upsert(MakeState(id, 1, "one"), 1));
    changes.push_back(storage().OpenWriter(id, 2));
    zombies.push_back(storage().Upsert(MakeState(id, 2, "zombie"), 1));
    zombies.push_back(storage().Delete(id, 2, {}, 1));
    zombies.push_back(storage().Upsert(MakeState(id, 2, "zombie"), kNoEpoch));
    changes.push_back(storage().Upsert(MakeState(id, 2, "two"), 2));
  }
  for (Future<void>& change : changes) {
    const absl::Status changed = Await(std::move(change));
    ASSERT_TRUE(changed.ok()) << changed;
  }
  for (Future<void>& zombie : zombies) ASSERT_TRUE(IsKind(Await(std::move(zombie)), JournalErrorKind::kFenced));
  for (int i = 0; i < kIds; ++i) EXPECT_EQ(Load(absl::StrCat("id-", i)), "2: two");
}

TEST_P(StateStoreContract, JudgesChangesInTheOrderInWhichTheyWereAskedFor) {
  std::vector<Future<void>> changes;
  for (uint64_t revision = 1; revision <= 20; ++revision) {
    changes.push_back(storage().Upsert(MakeState("a", revision, absl::StrCat(revision)), kNoEpoch));
    changes.push_back(storage().Upsert(MakeState("b", revision, "b"), kNoEpoch));
  }
  for (Future<void>& change : changes) EXPECT_TRUE(Await(std::move(change)).ok());
  EXPECT_EQ(Load("a"), "20: 20");
  EXPECT_EQ(Load("b"), "20: b");
}

TEST_P(StateStoreContract, RefusesWhatIsEmptyOrTooLarge) {
  EXPECT_TRUE(IsKind(Upsert("", 1, "one"), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Open("", 1), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Await(storage().Load("")).status(), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Delete("", 1), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Upsert(std::string(storage().limits().max_persistence_id_bytes + 1, 'x'), 1, "one"),
                     JournalErrorKind::kTooLarge));
  EXPECT_TRUE(
      IsKind(Upsert("a", 1, std::string(storage().limits().max_state_bytes, 'x')), JournalErrorKind::kTooLarge));
  EXPECT_EQ(Load("a"), "0: -");
}

TEST_P(StateStoreContract, KeepsWhatItHasWhenItIsOpenedAgain) {
  if (!GetParam().survives_reopen) GTEST_SKIP() << "it keeps nothing";
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_TRUE(Upsert("b", 1, std::string(100'000, 'x')).ok());
  EXPECT_TRUE(Upsert("c", 1, "one").ok());
  EXPECT_TRUE(Delete("c", 2).ok());
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Load("a"), "1: one");
  EXPECT_EQ(Load("b"), "1: " + std::string(100'000, 'x'));
  EXPECT_EQ(Load("c"), "2: -");
  EXPECT_TRUE(IsKind(Upsert("c", 1, "one"), JournalErrorKind::kSequenceMismatch));
}

TEST_P(StateStoreContract, RefusesRequestsWhenItIsClosed) {
  EXPECT_TRUE(Upsert("a", 1, "one").ok());
  EXPECT_TRUE(Await(storage().Close()).ok());
  EXPECT_TRUE(Await(storage().Close()).ok());
  EXPECT_TRUE(IsKind(Open("a", 1), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Upsert("a", 2, "two"), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Delete("a", 2), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().Load("a")).status(), JournalErrorKind::kClosed));
}

}  // namespace fraktor::inline v0
