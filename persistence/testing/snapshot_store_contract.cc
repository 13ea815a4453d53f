#include "fraktor/persistence/testing/snapshot_store_contract.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

using Numbers = std::vector<uint64_t>;

testing::AssertionResult IsKind(const absl::Status& status, JournalErrorKind kind) {
  if (ErrorKindOf<JournalErrorKind>(status) == kind) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << JournalErrorKindName(kind) << ", got " << status;
}

Snapshot MakeSnapshot(const std::string& id, uint64_t sequence_nr) {
  Snapshot snapshot;
  snapshot.metadata.persistence_id = id;
  snapshot.metadata.sequence_nr = sequence_nr;
  snapshot.manifest = "state";
  snapshot.payload = absl::StrCat(id, "/", sequence_nr);
  return snapshot;
}

}  // namespace

std::string SnapshotStoreContractName(const testing::TestParamInfo<SnapshotStoreContractParameter>& info) {
  return info.param.name;
}

SnapshotMetadata SnapshotStoreContract::Save(const std::string& id, uint64_t sequence_nr, uint64_t epoch) {
  const absl::StatusOr<SnapshotMetadata> saved = Await(storage().Save(MakeSnapshot(id, sequence_nr), epoch));
  EXPECT_TRUE(saved.ok()) << saved.status();
  return saved.value_or(SnapshotMetadata());
}

absl::Status SnapshotStoreContract::TrySave(const std::string& id, uint64_t sequence_nr, uint64_t epoch) {
  return Await(storage().Save(MakeSnapshot(id, sequence_nr), epoch)).status();
}

absl::Status SnapshotStoreContract::Open(const std::string& id, uint64_t epoch) {
  return Await(storage().OpenWriter(id, epoch));
}

std::vector<SnapshotMetadata> SnapshotStoreContract::SaveFive(const std::string& id) {
  std::vector<SnapshotMetadata> saved;
  for (uint64_t number = 11; number <= 15; ++number) saved.push_back(Save(id, number));
  return saved;
}

uint64_t SnapshotStoreContract::Load(const std::string& id, const SnapshotSelectionCriteria& criteria) {
  const absl::StatusOr<std::optional<Snapshot>> loaded = Await(storage().Load(id, criteria));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok() || !loaded->has_value()) return 0;
  EXPECT_EQ((*loaded)->metadata.persistence_id, id);
  EXPECT_EQ((*loaded)->payload, absl::StrCat(id, "/", (*loaded)->metadata.sequence_nr));
  EXPECT_TRUE(criteria.Matches((*loaded)->metadata));
  return (*loaded)->metadata.sequence_nr;
}

absl::Status SnapshotStoreContract::Delete(const std::string& id, uint64_t sequence_nr, uint64_t epoch) {
  return Await(storage().Delete(id, sequence_nr, epoch));
}

absl::Status SnapshotStoreContract::DeleteMatching(const std::string& id, const SnapshotSelectionCriteria& criteria,
                                                   uint64_t epoch) {
  return Await(storage().DeleteMatching(id, criteria, epoch));
}

std::vector<uint64_t> SnapshotStoreContract::All(const std::string& id) {
  Numbers numbers;
  for (uint64_t below = kMax; below > 0;) {
    const uint64_t number = Load(id, {.max_sequence_nr = below});
    if (number == 0) return numbers;
    numbers.push_back(number);
    below = number - 1;
  }
  return numbers;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SnapshotStoreContract);

// PER-4, P101
TEST_P(SnapshotStoreContract, LoadsNothingThatDoesNotMatch) {
  const std::vector<SnapshotMetadata> saved = SaveFive("a");
  EXPECT_EQ(Load("b"), 0u);
  EXPECT_EQ(Load("a", {.max_timestamp = saved[0].timestamp - absl::Nanoseconds(1)}), 0u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 10}), 0u);
  EXPECT_EQ(Load("a", SnapshotSelectionCriteria::Latest().Limit(10)), 0u);
  EXPECT_EQ(Load("a", {.min_sequence_nr = 16}), 0u);
  EXPECT_EQ(Load("a", {.min_timestamp = saved[4].timestamp + absl::Nanoseconds(1)}), 0u);
}

// PER-4, P102
TEST_P(SnapshotStoreContract, LoadsTheNewestThatMatches) {
  const std::vector<SnapshotMetadata> saved = SaveFive("a");
  EXPECT_EQ(Load("a"), 15u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 13}), 13u);
  EXPECT_EQ(Load("a", SnapshotSelectionCriteria::Latest().Limit(13)), 13u);
  EXPECT_EQ(Load("a", {.max_timestamp = saved[2].timestamp}), 13u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 14, .max_timestamp = saved[2].timestamp}), 13u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 12, .max_timestamp = saved[2].timestamp}), 12u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = kMax, .min_sequence_nr = 15}), 15u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 13, .min_timestamp = saved[2].timestamp}), 13u);
}

// PER-4, P103
TEST_P(SnapshotStoreContract, DeletesOneByItsNumber) {
  SaveFive("a");
  ASSERT_TRUE(Delete("a", 15).ok());
  EXPECT_EQ(Load("a"), 14u);
  ASSERT_TRUE(Delete("a", 12).ok());
  EXPECT_EQ(All("a"), (Numbers{14, 13, 11}));
  // None is a success.
  EXPECT_TRUE(Delete("a", 12).ok());
  EXPECT_TRUE(Delete("b", 1).ok());
}

// PER-4, P104
TEST_P(SnapshotStoreContract, DeletesWhatMatchesBothBounds) {
  const std::vector<SnapshotMetadata> saved = SaveFive("a");
  // A time that does not match deletes nothing, and is a success.
  ASSERT_TRUE(
      DeleteMatching("a", {.max_sequence_nr = 14, .max_timestamp = saved[0].timestamp - absl::Nanoseconds(1)}).ok());
  EXPECT_EQ(All("a"), (Numbers{15, 14, 13, 12, 11}));
  ASSERT_TRUE(DeleteMatching("a", {.max_sequence_nr = 14, .max_timestamp = saved[1].timestamp}).ok());
  EXPECT_EQ(All("a"), (Numbers{15, 14, 13}));
  ASSERT_TRUE(DeleteMatching("a", {.max_sequence_nr = 14, .min_sequence_nr = 14}).ok());
  EXPECT_EQ(All("a"), (Numbers{15, 13}));
  ASSERT_TRUE(DeleteMatching("a", SnapshotSelectionCriteria::None()).ok());
  EXPECT_EQ(All("a"), (Numbers{15, 13}));
  ASSERT_TRUE(DeleteMatching("a", SnapshotSelectionCriteria::Latest()).ok());
  EXPECT_EQ(All("a"), Numbers());
  EXPECT_TRUE(DeleteMatching("b", SnapshotSelectionCriteria::Latest()).ok());
}

// P106
TEST_P(SnapshotStoreContract, SavesALargeOne) {
  for (const size_t size : {0u, 10'000u, 3'000'000u}) {
    Snapshot snapshot = MakeSnapshot("a", size + 1);
    snapshot.payload.assign(size, 'x');
    ASSERT_TRUE(Await(storage().Save(snapshot, kNoEpoch)).ok());
    const absl::StatusOr<std::optional<Snapshot>> loaded = Await(storage().Load("a", {}));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_TRUE(loaded->has_value());
    EXPECT_TRUE((*loaded)->payload == snapshot.payload) << size;
  }
}

// P107, P108
TEST_P(SnapshotStoreContract, GivesASnapshotBackAsItWasWithTheTimeOfTheStore) {
  Snapshot snapshot = MakeSnapshot("a", 7);
  snapshot.metadata.timestamp = absl::FromUnixSeconds(5);
  snapshot.manifest_version = 3;
  snapshot.payload = std::string("\0\xff", 2);
  if (GetParam().keeps_metadata) snapshot.metadata.metadata = std::string("m\0", 2);
  const absl::StatusOr<SnapshotMetadata> saved = Await(storage().Save(snapshot, kNoEpoch));
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->persistence_id, "a");
  EXPECT_EQ(saved->sequence_nr, 7u);
  EXPECT_EQ(saved->metadata, snapshot.metadata.metadata);
  EXPECT_NE(saved->timestamp, absl::FromUnixSeconds(5));
  for (int round = 0; round < (GetParam().survives_reopen ? 2 : 1); ++round) {
    if (round == 1) {
      ASSERT_TRUE(Reopen().ok());
    }
    const absl::StatusOr<std::optional<Snapshot>> loaded = Await(storage().Load("a", {}));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_TRUE(loaded->has_value());
    EXPECT_EQ((*loaded)->metadata, *saved);
    EXPECT_EQ((*loaded)->metadata.metadata, snapshot.metadata.metadata);
    EXPECT_EQ((*loaded)->manifest, "state");
    EXPECT_EQ((*loaded)->manifest_version, 3u);
    EXPECT_EQ((*loaded)->payload, snapshot.payload);
  }
}

// P109
TEST_P(SnapshotStoreContract, LoadsNothingForNone) {
  SaveFive("a");
  EXPECT_EQ(Load("a", SnapshotSelectionCriteria::None()), 0u);
}

TEST_P(SnapshotStoreContract, KeepsTwoOfOneNumberApartByTheirTime) {
  const SnapshotMetadata first = Save("a", 7);
  const SnapshotMetadata second = Save("a", 7);
  EXPECT_LT(first.timestamp, second.timestamp);
  const absl::StatusOr<std::optional<Snapshot>> newest = Await(storage().Load("a", {}));
  ASSERT_TRUE(newest.ok() && newest->has_value());
  EXPECT_EQ((*newest)->metadata, second);
  const absl::StatusOr<std::optional<Snapshot>> older = Await(storage().Load("a", {.max_timestamp = first.timestamp}));
  ASSERT_TRUE(older.ok() && older->has_value());
  EXPECT_EQ((*older)->metadata, first);
  ASSERT_TRUE(Delete("a", 7).ok());
  EXPECT_EQ(Load("a"), 0u);
}

// P108: a snapshot actor deletes a snapshot that was saved too late, and no other one of that
// number.
TEST_P(SnapshotStoreContract, DeletesOneOfTwoOfOneNumberByItsTime) {
  for (const int deleted : {0, 1}) {
    const std::string id = absl::StrCat("a", deleted);
    const SnapshotMetadata saved[] = {Save(id, 7), Save(id, 7)};
    ASSERT_TRUE(DeleteMatching(id, {.max_sequence_nr = 7,
                                    .max_timestamp = saved[deleted].timestamp,
                                    .min_sequence_nr = 7,
                                    .min_timestamp = saved[deleted].timestamp})
                    .ok());
    const absl::StatusOr<std::optional<Snapshot>> left = Await(storage().Load(id, {}));
    ASSERT_TRUE(left.ok() && left->has_value());
    EXPECT_EQ((*left)->metadata, saved[1 - deleted]);
  }
}

// Requests of one id take effect in the order in which they were made, answered or not.
TEST_P(SnapshotStoreContract, SavesAndDeletesInTheOrderOfRequests) {
  constexpr int kIds = 200;
  std::vector<Future<SnapshotMetadata>> saves;
  std::vector<Future<void>> deletions;
  for (int i = 0; i < kIds; ++i) {
    const std::string id = absl::StrCat("id-", i);
    for (const uint64_t number : {1, 2, 3}) saves.push_back(storage().Save(MakeSnapshot(id, number), kNoEpoch));
    deletions.push_back(storage().DeleteMatching(id, {.max_sequence_nr = 2}, kNoEpoch));
    saves.push_back(storage().Save(MakeSnapshot(id, 4), kNoEpoch));
    deletions.push_back(storage().Delete(id, 3, kNoEpoch));
    saves.push_back(storage().Save(MakeSnapshot(id, 2), kNoEpoch));
    deletions.push_back(storage().DeleteMatching(id, SnapshotSelectionCriteria::None(), kNoEpoch));
    deletions.push_back(storage().Delete(id, 5, kNoEpoch));
    saves.push_back(storage().Save(MakeSnapshot(id, 5), kNoEpoch));
  }
  for (Future<SnapshotMetadata>& save : saves) {
    const absl::StatusOr<SnapshotMetadata> saved = Await(std::move(save));
    ASSERT_TRUE(saved.ok()) << saved.status();
  }
  for (Future<void>& deletion : deletions) {
    const absl::Status deleted = Await(std::move(deletion));
    ASSERT_TRUE(deleted.ok()) << deleted;
  }
  for (int i = 0; i < kIds; ++i) EXPECT_EQ(All(absl::StrCat("id-", i)), (Numbers{5, 4, 2}));
}

// PER-19
TEST_P(SnapshotStoreContract, RefusesTheChangesOfAFormerOwner) {
  ASSERT_TRUE(Open("a", 1).ok());
  for (const uint64_t number : {1, 2, 3}) Save("a", number, 1);
  ASSERT_TRUE(Open("a", 2).ok());
  const absl::Status fenced = TrySave("a", 4, 1);
  EXPECT_TRUE(IsKind(fenced, JournalErrorKind::kFenced));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(fenced, "id"), "a");
  // Nothing is stored that would have to be deleted.
  EXPECT_FALSE(SnapshotTimeOf(fenced).has_value());
  EXPECT_TRUE(IsKind(TrySave("a", 3, 1), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Delete("a", 3, 1), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Delete("a", 9, 1), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(DeleteMatching("a", {}, 1), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Open("a", 1), JournalErrorKind::kFenced));
  EXPECT_EQ(All("a"), (Numbers{3, 2, 1}));
  Save("a", 4, 2);
  EXPECT_TRUE(Delete("a", 2, 2).ok());
  EXPECT_TRUE(DeleteMatching("a", {.max_sequence_nr = 2}, 2).ok());
  EXPECT_EQ(All("a"), (Numbers{4, 3}));
  // The same owner may come again.
  EXPECT_TRUE(Open("a", 2).ok());
  EXPECT_TRUE(IsKind(Open("a", kNoEpoch), JournalErrorKind::kInvalid));
  // Other ids have other owners.
  Save("ab", 1, 1);
  EXPECT_EQ(All("ab"), Numbers{1});
}

// PER-19: an owner that does not load is known from its changes.
TEST_P(SnapshotStoreContract, LearnsEpochsFromSavesAndDeletions) {
  Save("a", 1, 5);
  EXPECT_TRUE(IsKind(TrySave("a", 2, 4), JournalErrorKind::kFenced));
  EXPECT_TRUE(Delete("a", 9, 6).ok());
  EXPECT_TRUE(IsKind(Delete("a", 1, 5), JournalErrorKind::kFenced));
  EXPECT_TRUE(DeleteMatching("a", {.min_sequence_nr = 9}, 7).ok());
  EXPECT_TRUE(IsKind(TrySave("a", 2, 6), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Open("a", 6), JournalErrorKind::kFenced));
  EXPECT_EQ(All("a"), Numbers{1});
}

// PER-19: the requests of nodes of older versions name no epoch.
TEST_P(SnapshotStoreContract, TakesChangesWithoutAnEpochOnlyUntilAnOwnerIsKnown) {
  Save("a", 1);
  Save("a", 2);
  ASSERT_TRUE(Delete("a", 1).ok());
  ASSERT_TRUE(Open("a", 1).ok());
  const absl::Status fenced = TrySave("a", 3, kNoEpoch);
  EXPECT_TRUE(IsKind(fenced, JournalErrorKind::kFenced));
  EXPECT_NE(fenced.message().find("names no epoch"), absl::string_view::npos) << fenced;
  EXPECT_TRUE(IsKind(Delete("a", 2), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(DeleteMatching("a", {}), JournalErrorKind::kFenced));
  EXPECT_EQ(All("a"), Numbers{2});
  Save("b", 1);
  EXPECT_EQ(All("b"), Numbers{1});
}

// PER-19
TEST_P(SnapshotStoreContract, KnowsTheOwnerWhenNoSnapshotIsLeft) {
  Save("a", 1, 2);
  ASSERT_TRUE(DeleteMatching("a", {}, 2).ok());
  ASSERT_TRUE(Open("b", 2).ok());
  for (int round = 0; round < (GetParam().survives_reopen ? 2 : 1); ++round) {
    if (round == 1) {
      ASSERT_TRUE(Reopen().ok());
    }
    for (const char* const id : {"a", "b"}) {
      EXPECT_TRUE(IsKind(TrySave(id, 1, 1), JournalErrorKind::kFenced)) << id;
      EXPECT_TRUE(IsKind(TrySave(id, 1, kNoEpoch), JournalErrorKind::kFenced)) << id;
      EXPECT_EQ(All(id), Numbers());
    }
  }
  Save("a", 1, 2);
  EXPECT_EQ(All("a"), Numbers{1});
}

// PER-19: many ids at once, in the order of requests, answered or not.
TEST_P(SnapshotStoreContract, FencesInTheOrderOfRequests) {
  constexpr int kIds = 500;
  std::vector<Future<SnapshotMetadata>> saves;
  std::vector<Future<SnapshotMetadata>> zombie_saves;
  std::vector<Future<void>> others;
  std::vector<Future<void>> zombie_deletions;
  for (int i = 0; i < kIds; ++i) {
    const std::string id = absl::StrCat("id-", i);
    others.push_back(storage().OpenWriter(id, 1));
    saves.push_back(storage().Save(MakeSnapshot(id, 1), 1));
    others.push_back(storage().OpenWriter(id, 2));
    zombie_saves.push_back(storage().Save(MakeSnapshot(id, 2), 1));
    zombie_deletions.push_back(storage().Delete(id, 1, 1));
    zombie_deletions.push_back(storage().DeleteMatching(id, {}, kNoEpoch));
    saves.push_back(storage().Save(MakeSnapshot(id, 3), 2));
    // Saved and deleted by the same owner.
    saves.push_back(storage().Save(MakeSnapshot(id, 4), 2));
    others.push_back(storage().Delete(id, 4, 2));
  }
  for (Future<SnapshotMetadata>& save : saves) {
    const absl::StatusOr<SnapshotMetadata> saved = Await(std::move(save));
    ASSERT_TRUE(saved.ok()) << saved.status();
  }
  for (Future<void>& other : others) {
    const absl::Status done = Await(std::move(other));
    ASSERT_TRUE(done.ok()) << done;
  }
  for (Future<SnapshotMetadata>& save : zombie_saves) {
    ASSERT_TRUE(IsKind(Await(std::move(save)).status(), JournalErrorKind::kFenced));
  }
  for (Future<void>& deletion : zombie_deletions) {
    ASSERT_TRUE(IsKind(Await(std::move(deletion)), JournalErrorKind::kFenced));
  }
  for (int i = 0; i < kIds; ++i) EXPECT_EQ(All(absl::StrCat("id-", i)), (Numbers{3, 1}));
}

TEST_P(SnapshotStoreContract, KeepsIdsApart) {
  const std::vector<std::string> ids = {"a", "ab", std::string("a\0", 2), std::string("a\0\0\0\0\0\0\0\0", 9), "\xff"};
  for (const std::string& id : ids) SaveFive(id);
  ASSERT_TRUE(DeleteMatching("a", {.max_sequence_nr = 14}).ok());
  for (const std::string& id : ids) {
    EXPECT_EQ(All(id), id == "a" ? Numbers{15} : (Numbers{15, 14, 13, 12, 11})) << id;
  }
}

TEST_P(SnapshotStoreContract, RefusesWhatIsTooLargeOrHasNoId) {
  EXPECT_TRUE(IsKind(TrySave("", 1, kNoEpoch), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Open("", 1), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Await(storage().Load("", {})).status(), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Delete("", 1), JournalErrorKind::kInvalid));
  const std::string long_id(storage().limits().max_persistence_id_bytes + 1, 'x');
  EXPECT_TRUE(IsKind(TrySave(long_id, 1, kNoEpoch), JournalErrorKind::kTooLarge));
}

TEST_P(SnapshotStoreContract, SurvivesAReopen) {
  if (!GetParam().survives_reopen) GTEST_SKIP() << "the store does not survive";
  const std::vector<SnapshotMetadata> saved = SaveFive("a");
  ASSERT_TRUE(Delete("a", 15).ok());
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(All("a"), (Numbers{14, 13, 12, 11}));
  EXPECT_GT(Save("a", 20).timestamp, saved[4].timestamp);
}

TEST_P(SnapshotStoreContract, AnswersEverythingBeforeItIsClosed) {
  std::vector<Future<SnapshotMetadata>> saving;
  for (uint64_t number = 1; number <= 20; ++number)
    saving.push_back(storage().Save(MakeSnapshot("a", number), kNoEpoch));
  EXPECT_TRUE(Await(storage().Close()).ok());
  for (Future<SnapshotMetadata>& future : saving) {
    const absl::StatusOr<SnapshotMetadata> saved = Await(std::move(future));
    EXPECT_TRUE(saved.ok()) << saved.status();
  }
  EXPECT_TRUE(IsKind(TrySave("a", 21, kNoEpoch), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Open("a", 1), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().Load("a", {})).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Delete("a", 1), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(DeleteMatching("a", {}), JournalErrorKind::kClosed));
  EXPECT_TRUE(Await(storage().Close()).ok());
}

}  // namespace fraktor::inline v0
