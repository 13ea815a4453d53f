#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

// PER-6
TEST(SnapshotMetadata, IsTheSameIfIdNumberAndTimeAre) {
  const SnapshotMetadata metadata{.persistence_id = "a", .sequence_nr = 7, .timestamp = At(1), .metadata = "x"};
  SnapshotMetadata other = metadata;
  other.metadata = "y";
  EXPECT_EQ(metadata, other);
  other = metadata;
  other.persistence_id = "b";
  EXPECT_FALSE(metadata == other);
  other = metadata;
  other.sequence_nr = 8;
  EXPECT_FALSE(metadata == other);
  other = metadata;
  other.timestamp = At(2);
  EXPECT_FALSE(metadata == other);
}

// PER-6, P110
TEST(SnapshotSelectionCriteria, IncludesItsBounds) {
  const SnapshotSelectionCriteria criteria{
      .max_sequence_nr = 20, .max_timestamp = At(200), .min_sequence_nr = 10, .min_timestamp = At(100)};
  EXPECT_TRUE(criteria.Matches(10, At(100)));
  EXPECT_TRUE(criteria.Matches(20, At(200)));
  EXPECT_FALSE(criteria.Matches(9, At(150)));
  EXPECT_FALSE(criteria.Matches(21, At(150)));
  EXPECT_FALSE(criteria.Matches(15, At(99)));
  EXPECT_FALSE(criteria.Matches(15, At(201)));
  EXPECT_TRUE(criteria.Matches(SnapshotMetadata{.sequence_nr = 15, .timestamp = At(150)}));
}

// PER-6, P110
TEST(SnapshotSelectionCriteria, IsLimitedInItsHighestNumberOnly) {
  const SnapshotSelectionCriteria criteria{.max_sequence_nr = 20, .min_sequence_nr = 10};
  EXPECT_EQ(criteria.Limit(15).max_sequence_nr, 15u);
  EXPECT_EQ(criteria.Limit(15).min_sequence_nr, 10u);
  EXPECT_EQ(criteria.Limit(25), criteria);
  EXPECT_TRUE(criteria.Limit(9).MatchesNothing());
}

// PER-6
TEST(SnapshotSelectionCriteria, KnowsAllAndNothing) {
  const SnapshotSelectionCriteria latest = SnapshotSelectionCriteria::Latest();
  EXPECT_TRUE(latest.Matches(0, At(0)));
  EXPECT_TRUE(latest.Matches(std::numeric_limits<uint64_t>::max(), At(1'000'000'000'000)));
  EXPECT_FALSE(latest.MatchesNothing());
  const SnapshotSelectionCriteria none = SnapshotSelectionCriteria::None();
  EXPECT_FALSE(none.Matches(0, At(0)));
  EXPECT_FALSE(none.Matches(1, At(0)));
  EXPECT_TRUE(none.MatchesNothing());
  EXPECT_TRUE(none.Limit(100).MatchesNothing());
}

TEST(SnapshotLimits, NameTheSnapshotAndTheLimit) {
  Snapshot snapshot;
  snapshot.metadata = {.persistence_id = "a", .sequence_nr = 7};
  snapshot.payload = std::string(11, 'x');
  SnapshotLimits limits;
  EXPECT_TRUE(CheckSnapshot(limits, snapshot).ok());
  limits.max_snapshot_bytes = 10;
  const absl::Status refused = CheckSnapshot(limits, snapshot);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(refused), JournalErrorKind::kTooLarge);
  EXPECT_NE(std::string(refused.message()).find("snapshot 7 of \"a\" has 11 bytes"), std::string::npos) << refused;
  snapshot.metadata.persistence_id = "";
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(CheckSnapshot(limits, snapshot)), JournalErrorKind::kInvalid);
}

TEST(SnapshotLimits, HaveLimitsThemselves) {
  EXPECT_TRUE(CheckSnapshotLimits({}).ok());
  EXPECT_FALSE(CheckSnapshotLimits({.max_persistence_id_bytes = 65536}).ok());
  EXPECT_FALSE(CheckSnapshotLimits({.max_snapshot_bytes = 0}).ok());
}

TEST(SnapshotTime, TravelsWithTheErrorOfASave) {
  const absl::Status error = absl::UnavailableError("no disk");
  EXPECT_EQ(SnapshotTimeOf(error), std::nullopt);
  const absl::Time time = absl::FromUnixNanos(1'700'000'000'000'000'001);
  const absl::Status timed = WithSnapshotTime(error, time);
  EXPECT_EQ(timed.message(), error.message());
  EXPECT_EQ(SnapshotTimeOf(timed), time);
  EXPECT_EQ(SnapshotTimeOf(WithSnapshotTime(error, absl::FromUnixNanos(-1))), absl::FromUnixNanos(-1));
  EXPECT_EQ(WithoutSnapshotTime(timed), error);
  EXPECT_TRUE(WithSnapshotTime(absl::OkStatus(), time).ok());
  absl::Status foreign = error;
  foreign.SetPayload("fraktor.dev/snapshot_time", absl::Cord("yesterday"));
  EXPECT_EQ(SnapshotTimeOf(foreign), std::nullopt);
}

}  // namespace
}  // namespace fraktor
