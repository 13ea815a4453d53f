// The oracles notice what they are there for. Each test tells an oracle of a store that does one
// thing wrong.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/persistence/testing/simulation/journal_oracle.h"
#include "fraktor/persistence/testing/simulation/sim_log.h"
#include "fraktor/persistence/testing/simulation/snapshot_oracle.h"
#include "fraktor/persistence/testing/simulation/state_oracle.h"

namespace fraktor {
namespace {

constexpr const char* kId = "a";

PersistentRepr Event(uint64_t number, uint64_t epoch) {
  return {.persistence_id = kId, .sequence_nr = number, .epoch = epoch, .manifest = "event", .payload = "x"};
}
AtomicWrite Write(uint64_t first, uint64_t count, uint64_t epoch) {
  AtomicWrite::Events events;
  for (uint64_t i = 0; i < count; ++i) events.push_back(Event(first + i, epoch));
  return AtomicWrite::Make(events).value();
}
absl::Status Fenced() {
  return IdError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kFenced, kId, "fenced");
}

class JournalOracleTest : public testing::Test {
 protected:
  void SetUp() override {
    oracle_.SubmitOpening(1, kId, {});
    oracle_.OnOpened(1, WriterOpened{.epoch = 1}, /*heard=*/true);
  }
  void Store(uint64_t order, const AtomicWrite& write, bool heard = true) {
    oracle_.SubmitWrite(order, write, /*is_resend=*/false);
    oracle_.OnWritten(order, absl::OkStatus(), /*is_whole=*/false, heard);
  }

  SimLog log_;
  JournalOracle oracle_{log_, /*max_payload=*/10};
};

TEST_F(JournalOracleTest, AcceptsWhatWasAcknowledged) {
  Store(2, Write(1, 2, 1));
  oracle_.Audit(kId, {.highest = 2, .events = {Event(1, 1), Event(2, 1)}});
  EXPECT_FALSE(log_.has_violations()) << log_.Report();
}

TEST_F(JournalOracleTest, MissesAnAcknowledgedEvent) {
  Store(2, Write(1, 2, 1));
  oracle_.Audit(kId, {.highest = 2, .events = {Event(1, 1)}});
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(JournalOracleTest, AcceptsAWriteWithoutAnAnswerAsAWholeOnly) {
  Store(2, Write(1, 2, 1), /*heard=*/false);
  oracle_.Audit(kId, {});
  oracle_.Audit(kId, {.highest = 2, .events = {Event(1, 1), Event(2, 1)}});
  EXPECT_FALSE(log_.has_violations()) << log_.Report();
  Store(3, Write(3, 2, 1), /*heard=*/false);
  oracle_.Audit(kId, {.highest = 3, .events = {Event(1, 1), Event(2, 1), Event(3, 1)}});
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(JournalOracleTest, RefusesAnEventThatNobodyWrote) {
  oracle_.Audit(kId, {.highest = 1, .events = {Event(1, 1)}});
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(JournalOracleTest, RefusesAFormerOwnerThatIsHeard) {
  oracle_.SubmitOpening(2, kId, {});
  oracle_.OnOpened(2, WriterOpened{.epoch = 2}, /*heard=*/true);
  Store(3, Write(1, 1, 1));
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(JournalOracleTest, RefusesADeletionOfAFormerOwner) {
  Store(2, Write(1, 1, 1));
  oracle_.SubmitOpening(3, kId, {});
  oracle_.OnOpened(3, WriterOpened{.epoch = 2, .highest_sequence_nr = 1}, /*heard=*/true);
  oracle_.SubmitDeletion(4, kId, 1, /*epoch=*/1);
  oracle_.OnDeleted(4, absl::OkStatus(), /*heard=*/true);
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(JournalOracleTest, RefusesAnEpochThatWasGivenBefore) {
  oracle_.SubmitOpening(2, kId, {});
  oracle_.OnOpened(2, WriterOpened{.epoch = 1}, /*heard=*/true);
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(JournalOracleTest, RefusesARefusalWithoutAReason) {
  oracle_.SubmitWrite(2, Write(1, 1, 1), /*is_resend=*/false);
  oracle_.OnWritten(2, Fenced(), /*is_whole=*/false, /*heard=*/true);
  EXPECT_TRUE(log_.has_violations());
}

class SnapshotOracleTest : public testing::Test {
 protected:
  static Snapshot Make(uint64_t number, int64_t time) {
    return {.metadata = {.persistence_id = kId, .sequence_nr = number, .timestamp = absl::FromUnixNanos(time)},
            .payload = "x"};
  }
  void Save(uint64_t order, uint64_t number, uint64_t epoch) {
    oracle_.SubmitSave(order, Make(number, 0), epoch);
    oracle_.OnSaved(order, Make(number, static_cast<int64_t>(order)).metadata, /*heard=*/true);
  }

  SimLog log_;
  SnapshotOracle oracle_{log_};
};

TEST_F(SnapshotOracleTest, MissesAnAcknowledgedSnapshotUnlessItIsDeleted) {
  Save(1, 5, 1);
  oracle_.Audit(kId, {Make(5, 1)});
  oracle_.SubmitDeletion(2, kId, 0, 5, 1);
  oracle_.OnDeleted(2, absl::OkStatus(), /*heard=*/true);
  Save(3, 5, 1);
  oracle_.Audit(kId, {Make(5, 3)});
  EXPECT_FALSE(log_.has_violations()) << log_.Report();
  oracle_.Audit(kId, {});
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(SnapshotOracleTest, RefusesADeletedSnapshotThatIsThere) {
  Save(1, 5, 1);
  oracle_.SubmitDeletion(2, kId, 0, 5, 1);
  oracle_.OnDeleted(2, absl::OkStatus(), /*heard=*/true);
  oracle_.Audit(kId, {Make(5, 1)});
  EXPECT_TRUE(log_.has_violations());
}

TEST_F(SnapshotOracleTest, RefusesAFormerOwner) {
  Save(1, 5, 2);
  Save(2, 4, 1);
  EXPECT_TRUE(log_.has_violations());
}

TEST(StateOracleTest, MissesAnAcknowledgedState) {
  SimLog log;
  StateOracle oracle(log);
  const StoredState state{.exists = true, .state = {.persistence_id = kId, .revision = 1, .payload = "x"}};
  oracle.SubmitChange(1, state, 0);
  oracle.OnChanged(1, absl::OkStatus(), /*heard=*/true);
  oracle.Audit(kId, state);
  EXPECT_FALSE(log.has_violations()) << log.Report();
  oracle.Audit(kId, StoredState{.state = {.persistence_id = kId}});
  EXPECT_TRUE(log.has_violations());
}

TEST(StateOracleTest, RefusesAFormerOwner) {
  SimLog log;
  StateOracle oracle(log);
  oracle.SubmitOpening(1, kId, 2);
  oracle.OnOpened(1, absl::OkStatus(), /*heard=*/true);
  oracle.SubmitChange(2, {.exists = true, .state = {.persistence_id = kId, .revision = 1}}, 1);
  oracle.OnChanged(2, absl::OkStatus(), /*heard=*/true);
  EXPECT_TRUE(log.has_violations());
}

}  // namespace
}  // namespace fraktor
