// PER-19: two owners of one persistence id. The former one changes nothing, also while the new one
// recovers.
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/actor/scripted_actor.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor {
namespace {

// A snapshot store that saves when the test says so.
class HeldSnapshots final : public SnapshotStorage {
 public:
  // `fences`: false for a store that knows nothing of epochs, as one on a node of an older version.
  HeldSnapshots(RuntimeToolbox& toolbox, bool fences)
      : store_(MemorySnapshotStore::Open({.toolbox = &toolbox}).value()), fences_(fences) {}

  Future<void> OpenWriter(std::string id, uint64_t epoch) override {
    return fences_ ? store_->OpenWriter(std::move(id), epoch) : MakeReadyFuture();
  }
  Future<SnapshotMetadata> Save(Snapshot snapshot, uint64_t epoch) override {
    if (!is_held) return store_->Save(std::move(snapshot), EpochOf(epoch));
    auto [promise, future] = MakePromise<SnapshotMetadata>();
    held_.push_back({std::move(snapshot), epoch, std::move(promise)});
    return std::move(future);
  }
  Future<std::optional<Snapshot>> Load(std::string id, SnapshotSelectionCriteria criteria) override {
    return store_->Load(std::move(id), criteria);
  }
  Future<void> Delete(std::string id, uint64_t sequence_nr, uint64_t epoch) override {
    return store_->Delete(std::move(id), sequence_nr, EpochOf(epoch));
  }
  Future<void> DeleteMatching(std::string id, SnapshotSelectionCriteria criteria, uint64_t epoch) override {
    return store_->DeleteMatching(std::move(id), criteria, EpochOf(epoch));
  }
  Future<void> Close() override { return store_->Close(); }
  const SnapshotLimits& limits() const override { return store_->limits(); }

  // Does and answers what it holds.
  void Release() {
    is_held = false;
    for (Held& save : std::exchange(held_, {})) {
      save.promise.Set(store_->Save(std::move(save.snapshot), EpochOf(save.epoch)).Take());
    }
  }
  size_t held() const { return held_.size(); }

  bool is_held = false;

 private:
  struct Held {
    Snapshot snapshot;
    uint64_t epoch;
    Promise<SnapshotMetadata> promise;
  };

  uint64_t EpochOf(uint64_t epoch) const { return fences_ ? epoch : kNoEpoch; }

  const std::unique_ptr<MemorySnapshotStore> store_;
  const bool fences_;
  std::vector<Held> held_;
};

// The state that an owner reports to the test.
struct Report {
  bool is_recovered = false;
  int64_t sum = 0;
  int64_t from_snapshot = 0;
  // Why its changes, but for writes, were refused.
  std::vector<absl::Status> refusals;
  int accepted = 0;
};

struct Remember {};
struct Forget {};

// Sums numbers up. When a snapshot is saved, it deletes what that covers.
class Account final : public PersistentActor {
 public:
  Account(Report* report, uint64_t token) : report_(*report), token_(token) {}

 private:
  std::string PersistenceId() const override { return "account"; }
  uint64_t FencingToken() const override { return token_; }
  const PersistentActorOptions& options() const override {
    static const PersistentActorOptions options = {.replay_page = {.max_events = 2}};
    return options;
  }

  absl::Status ReceiveRecover(ActorContext&, Envelope& event) override {
    report_.sum += event.As<int64_t>();
    return absl::OkStatus();
  }
  absl::Status ReceiveSnapshot(ActorContext&, const SnapshotMetadata&, Envelope& state) override {
    report_.sum = report_.from_snapshot = state.As<int64_t>();
    return absl::OkStatus();
  }
  absl::Status OnRecoveryCompleted(ActorContext&) override {
    report_.is_recovered = true;
    return absl::OkStatus();
  }
  absl::Status ReceiveCommand(ActorContext&, Envelope& command) override {
    if (const auto* const number = command.TryAs<int64_t>()) {
      Persist(*number, [this](int64_t stored) { report_.sum += stored; });
    } else if (command.Is<Remember>()) {
      SaveSnapshot(report_.sum);
    } else if (command.Is<Forget>()) {
      DeleteMessages(last_sequence_nr());
      DeleteSnapshot(snapshot_sequence_nr());
      DeleteSnapshots({});
    } else if (const auto* const saved = command.TryAs<SaveSnapshotSuccess>()) {
      ++report_.accepted;
      DeleteMessages(saved->metadata.sequence_nr);
      DeleteSnapshots({.max_sequence_nr = saved->metadata.sequence_nr - 1});
    } else if (const auto* const save = command.TryAs<SaveSnapshotFailure>()) {
      report_.refusals.push_back(save->cause);
    } else if (const auto* const events = command.TryAs<DeleteMessagesFailure>()) {
      report_.refusals.push_back(events->cause);
    } else if (const auto* const one = command.TryAs<DeleteSnapshotFailure>()) {
      report_.refusals.push_back(one->cause);
    } else if (const auto* const some = command.TryAs<DeleteSnapshotsFailure>()) {
      report_.refusals.push_back(some->cause);
    } else {
      ++report_.accepted;
    }
    return absl::OkStatus();
  }

  Report& report_;
  const uint64_t token_;
};

struct Case {
  bool has_tokens = false;
  bool snapshots_are_fenced = false;

  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << (c.has_tokens ? "tokens" : "no tokens") << ", "
         << (c.snapshots_are_fenced ? "fenced snapshots" : "snapshots of an older node");
  }
};

class TwoOwners : public testing::TestWithParam<Case> {
 protected:
  TwoOwners() {
    auto& persistence = kit_.system().Extension<PersistenceExtension>();
    EXPECT_TRUE(persistence.AddJournal("main", {.storage = journal_}).ok());
    EXPECT_TRUE(persistence.AddSnapshotStore("main", {.storage = snapshots_}).ok());
  }
  ActorRef Spawn(Report& report) {
    return kit_.Spawn(*MakeProps<Account>({}, &report, GetParam().has_tokens ? ++last_token_ : 0));
  }
  // From now on a replay takes so long for each event.
  void SlowDown(absl::Duration time_per_event) {
    journal_->toolbox = &kit_.toolbox();
    journal_->time_per_event = time_per_event;
  }
  // Ten events that add up to 100.
  void StoreTen(ActorRef account) {
    for (int i = 0; i < 10; ++i) Tell(account, int64_t{10});
    kit_.Settle();
  }
  static void ExpectFenced(const Report& report, size_t refusals) {
    EXPECT_EQ(report.refusals.size(), refusals);
    for (const absl::Status& cause : report.refusals) {
      EXPECT_EQ(ErrorKindOf<JournalErrorKind>(cause), JournalErrorKind::kFenced) << cause;
    }
  }

  TestKit kit_;
  std::shared_ptr<KnobJournal> journal_ = std::make_shared<KnobJournal>();
  std::shared_ptr<HeldSnapshots> snapshots_ =
      std::make_shared<HeldSnapshots>(kit_.toolbox(), GetParam().snapshots_are_fenced);
  uint64_t last_token_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Cases, TwoOwners,
                         testing::Values(Case{.has_tokens = true, .snapshots_are_fenced = true},
                                         Case{.has_tokens = true, .snapshots_are_fenced = false},
                                         Case{.has_tokens = false, .snapshots_are_fenced = true},
                                         Case{.has_tokens = false, .snapshots_are_fenced = false}));

// The snapshot of the former owner is acknowledged when the new one has replayed some of the events
// that the snapshot covers.
TEST_P(TwoOwners, RecoverEverythingThoughASnapshotOfTheFormerOneIsAcknowledgedLate) {
  Report former;
  Report owner;
  const ActorRef old = Spawn(former);
  StoreTen(old);
  snapshots_->is_held = true;
  Tell(old, Remember{});
  kit_.Settle();
  ASSERT_EQ(snapshots_->held(), 1u);

  SlowDown(absl::Milliseconds(10));
  Spawn(owner);
  kit_.Advance(absl::Milliseconds(30));
  EXPECT_EQ(owner.sum, 20);
  EXPECT_FALSE(owner.is_recovered);
  snapshots_->Release();
  kit_.Advance(absl::Seconds(1));
  EXPECT_TRUE(owner.is_recovered);
  EXPECT_EQ(owner.sum, 100);
  // A store that knows nothing of epochs saves, but the journal keeps the events.
  EXPECT_EQ(former.accepted, GetParam().snapshots_are_fenced ? 0 : 2);
  ExpectFenced(former, 1);

  // And so does the next one.
  Report next;
  Spawn(next);
  kit_.Advance(absl::Seconds(1));
  EXPECT_TRUE(next.is_recovered);
  EXPECT_EQ(next.sum, 100);
}

// The same for what the former owner deletes and saves by itself.
TEST_P(TwoOwners, RecoverFromTheSnapshotThatTheFormerOneWantsToDelete) {
  if (!GetParam().snapshots_are_fenced) GTEST_SKIP() << "the store deletes snapshots for anybody";
  Report former;
  Report owner;
  const ActorRef old = Spawn(former);
  Tell(old, int64_t{7});
  kit_.Settle();
  Tell(old, Remember{});
  kit_.Settle();
  EXPECT_EQ(former.accepted, 3);  // a save, and two deletions
  StoreTen(old);

  SlowDown(absl::Milliseconds(10));
  Spawn(owner);
  kit_.Advance(absl::Milliseconds(30));
  EXPECT_EQ(owner.sum, 27);
  Tell(old, Forget{});
  Tell(old, Remember{});
  kit_.Advance(absl::Seconds(1));
  EXPECT_TRUE(owner.is_recovered);
  EXPECT_EQ(owner.sum, 107);
  EXPECT_EQ(former.accepted, 3);
  ExpectFenced(former, 4);

  Report next;
  Spawn(next);
  kit_.Advance(absl::Seconds(1));
  EXPECT_EQ(next.from_snapshot, 7);
  EXPECT_EQ(next.sum, 107);
}

// The requests of the owner are carried out.
TEST_P(TwoOwners, DeleteWhatTheyOwn) {
  Report former;
  Report owner;
  StoreTen(Spawn(former));
  const ActorRef current = Spawn(owner);
  kit_.Settle();
  Tell(current, Remember{});
  kit_.Settle();
  EXPECT_EQ(owner.accepted, 3);
  Report next;
  Spawn(next);
  kit_.Settle();
  EXPECT_EQ(next.from_snapshot, 100);
  EXPECT_EQ(next.sum, 100);
}

}  // namespace
}  // namespace fraktor
