#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/persistent_actor_options.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/typed/event_sourced.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

struct Balance {
  int64_t amount = 0;
};
struct Deposit {
  using Reply = Balance;
  int64_t amount = 0;
};
struct DepositTwice {
  using Reply = Balance;
  int64_t amount = 0;
};
struct Withdraw {
  using Reply = Balance;
  int64_t amount = 0;
};
struct GetBalance {
  using Reply = Balance;
};
struct Freeze {};
struct Thaw {};
struct Close {};
struct DepositUnstorable {
  using Reply = Balance;
};
struct Gift {};
// Saves a snapshot now.
struct SaveNow {};
struct DepositMany {
  using Reply = Balance;
  int64_t count = 0;
};

struct Deposited {
  int64_t amount = 0;
};
struct Withdrawn {
  int64_t amount = 0;
};
struct Closed {};
// Has no codec.
struct Unstorable {};

struct AccountState {
  int64_t balance = 0;
  bool is_closed = false;
};

}  // namespace

template <>
struct Codec<Deposited> : FieldCodec<Deposited, &Deposited::amount> {
  static constexpr std::string_view kManifest = "deposited";
};
template <>
struct Codec<Withdrawn> : FieldCodec<Withdrawn, &Withdrawn::amount> {
  static constexpr std::string_view kManifest = "withdrawn";
};
template <>
struct Codec<Closed> : FieldCodec<Closed> {
  static constexpr std::string_view kManifest = "closed";
};
template <>
struct Codec<AccountState> : FieldCodec<AccountState, &AccountState::balance, &AccountState::is_closed> {
  static constexpr std::string_view kManifest = "account";
};

namespace {

struct AccountSetup {
  std::string id = "account";
  Retention retention = {};
  std::vector<std::string>* seen = nullptr;
};

class Account : public EventSourced<Account, AccountState,
                                    Commands<Deposit, DepositTwice, DepositMany, Withdraw, GetBalance, Freeze, Thaw,
                                             Close, DepositUnstorable, Gift, SaveNow>,
                                    Events<Deposited, Withdrawn, Closed, Unstorable>> {
 public:
  explicit Account(AccountSetup setup) : setup_(std::move(setup)) {}
  std::string PersistenceId() const override { return setup_.id; }
  Retention retention() const override { return setup_.retention; }

  Effect Handle(const AccountState& state, const Deposit& command) {
    if (is_frozen_) return Stash();
    if (state.is_closed) return Unhandled();
    return Persist(Deposited{command.amount})
        .ThenRun([this](const AccountState& now) { Note(absl::StrCat("run ", now.balance)); })
        .ThenReply([](const AccountState& now) { return Balance{now.balance}; });
  }
  Effect Handle(const AccountState&, const DepositTwice& command) {
    return Persist(Deposited{command.amount}, Deposited{command.amount}).ThenReply([this] {
      return Balance{state().balance};
    });
  }
  Effect Handle(const AccountState&, const DepositMany& command) {
    return PersistAll(std::vector<Deposited>(static_cast<size_t>(command.count), Deposited{1}))
        .ThenReply([](const AccountState& now) { return Balance{now.balance}; });
  }
  void Handle(const AccountState& state, const SaveNow&) { SaveSnapshot(state); }
  absl::StatusOr<Balance> Handle(const AccountState& state, const Withdraw& command) {
    return absl::FailedPreconditionError(absl::StrCat(command.amount, " of ", state.balance));
  }
  Balance Handle(const AccountState& state, const GetBalance&) { return {state.balance}; }
  void Handle(const AccountState&, const Freeze&) { is_frozen_ = true; }
  Effect Handle(ActorContext&, const AccountState&, const Thaw&) {
    is_frozen_ = false;
    return Nothing().ThenUnstashAll();
  }
  Effect Handle(const AccountState&, const Close&) { return Persist(Closed{}).ThenStop(); }
  Effect Handle(const AccountState&, const DepositUnstorable&) {
    return Persist(Deposited{1}, Unstorable{}).ThenReply([] { return Balance{-1}; });
  }
  Effect Handle(const AccountState&, const Gift&) {
    return PersistAll(std::vector<Deposited>{}).ThenRun([this] { Note("gift"); });
  }

  // Both forms.
  AccountState Apply(AccountState state, const Deposited& event) {
    Note(absl::StrCat("apply ", event.amount));
    state.balance += event.amount;
    return state;
  }
  void Apply(AccountState& state, const Withdrawn& event) { state.balance -= event.amount; }
  void Apply(AccountState& state, const Closed&) { state.is_closed = true; }
  void Apply(AccountState&, const Unstorable&) { Note("apply unstorable"); }

 private:
  absl::Status OnRecovered(ActorContext&) override {
    Note(absl::StrCat("recovered ", state().balance));
    return absl::OkStatus();
  }
  void Note(std::string what) {
    if (setup_.seen != nullptr) setup_.seen->push_back(std::move(what));
  }

  const AccountSetup setup_;
  bool is_frozen_ = false;
};

using Seen = std::vector<std::string>;

class EventSourcedTest : public testing::Test {
 public:
  static TestKitOptions Options() {
    TestKitOptions options;
    options.system.codecs = CodecSetup().Add<Deposited, Withdrawn, Closed, AccountState>().Build().value();
    return options;
  }

 protected:
  EventSourcedTest() {
    auto& persistence = kit_.system().Extension<PersistenceExtension>();
    EXPECT_TRUE(persistence.AddJournal("memory", {.storage = journal_}).ok());
    EXPECT_TRUE(persistence.AddSnapshotStore("memory", {.storage = snapshots_}).ok());
  }

  RefOf<Account> Start(Retention retention = {}) {
    return kit_.Spawn<Account>(AccountSetup{"account", retention, &seen_});
  }
  void End(const RefOf<Account>& account) {
    kit_.system().Stop(account);
    kit_.Settle();
    seen_.clear();
  }
  int64_t Ask(const RefOf<Account>& account, int64_t amount) {
    return kit_.AskAndWait(account, Deposit{amount}).value().amount;
  }
  // The numbers that are stored.
  std::vector<uint64_t> Stored() {
    std::vector<uint64_t> numbers;
    const EventBatch batch = journal_->Replay({.persistence_id = "account"}).Take().value();
    for (const StoredEvent& event : batch) numbers.push_back(event.sequence_nr);
    return numbers;
  }
  std::vector<uint64_t> Snapshots() {
    std::vector<uint64_t> numbers;
    for (uint64_t below = UINT64_MAX; below > 0;) {
      auto loaded = snapshots_->Load("account", {.max_sequence_nr = below}).Take().value();
      if (!loaded.has_value()) break;
      numbers.insert(numbers.begin(), loaded->metadata.sequence_nr);
      below = loaded->metadata.sequence_nr - 1;
    }
    return numbers;
  }

  TestKit kit_{Options()};
  std::shared_ptr<MemoryJournal> journal_ = MemoryJournal::Open({}).value();
  std::shared_ptr<MemorySnapshotStore> snapshots_ = MemorySnapshotStore::Open({.toolbox = &kit_.toolbox()}).value();
  Seen seen_;
};

TEST_F(EventSourcedTest, StoresThenAppliesThenRunsThenReplies) {
  const auto account = Start();
  EXPECT_EQ(Ask(account, 5), 5);
  EXPECT_EQ(Ask(account, 7), 12);
  EXPECT_EQ(seen_, (Seen{"recovered 0", "apply 5", "run 5", "apply 7", "run 12"}));
  EXPECT_EQ(Stored(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(EventSourcedTest, AppliesAgainInARecoveryAndRunsNothingAgain) {
  auto account = Start();
  EXPECT_EQ(Ask(account, 5), 5);
  EXPECT_EQ(Ask(account, 7), 12);
  End(account);
  account = Start();
  EXPECT_EQ(kit_.AskAndWait(account, GetBalance{}).value().amount, 12);
  EXPECT_EQ(seen_, (Seen{"apply 5", "apply 7", "recovered 12"}));
}

TEST_F(EventSourcedTest, StoresTheEventsOfACommandTogetherAndRunsOnce) {
  const auto account = Start();
  EXPECT_EQ(kit_.AskAndWait(account, DepositTwice{4}).value().amount, 8);
  EXPECT_EQ(Stored(), (std::vector<uint64_t>{1, 2}));
  account.Tell(Gift{});
  kit_.Settle();
  EXPECT_EQ(seen_.back(), "gift");
  EXPECT_EQ(Stored(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(EventSourcedTest, AnswersAnErrorAsAnErrorAndGoesOn) {
  const auto account = Start();
  const absl::StatusOr<Balance> refused = kit_.AskAndWait(account, Withdraw{3});
  EXPECT_EQ(refused.status().message(), "3 of 0");
  EXPECT_EQ(Ask(account, 1), 1);
}

// P87
TEST_F(EventSourcedTest, AnswersTheErrorOnceIfItsEventsAreRejectedAndGoesOnWithoutThem) {
  const auto account = Start();
  EXPECT_EQ(Ask(account, 1), 1);
  absl::StatusOr<Balance> refused = absl::UnknownError("");
  kit_.ExpectDeadLetters<ErrorReply>(0, [&] { refused = kit_.AskAndWait(account, DepositUnstorable{}); });
  EXPECT_NE(refused.status().message().find("Unstorable"), std::string::npos) << refused.status();
  EXPECT_TRUE(absl::StartsWith(refused.status().message(), "event 2 of \"account\": ")) << refused.status();
  EXPECT_EQ(Ask(account, 1), 2);
  // They were tried on a copy of the state, and nothing more.
  EXPECT_EQ(seen_, (Seen{"recovered 0", "apply 1", "run 1", "apply 1", "apply unstorable", "apply 1", "run 2"}));
  // Their numbers are used up.
  EXPECT_EQ(Stored(), (std::vector<uint64_t>{1, 4}));
}

// P86
TEST_F(EventSourcedTest, AnswersTheErrorAndStopsIfItsEventCannotBeStored) {
  const auto account = Start();
  EXPECT_EQ(Ask(account, 1), 1);
  ASSERT_TRUE(journal_->Close().Take().ok());
  const absl::StatusOr<Balance> failed = kit_.AskAndWait(account, DepositTwice{2});
  EXPECT_NE(failed.status().message().find("closed"), absl::string_view::npos) << failed.status();
  EXPECT_TRUE(absl::StartsWith(failed.status().message(), "event 2 of \"account\": ")) << failed.status();
  kit_.Settle();
  EXPECT_FALSE(kit_.IsAlive(account));
  EXPECT_EQ(seen_, (Seen{"recovered 0", "apply 1", "run 1", "apply 2", "apply 2"}));
}

TEST_F(EventSourcedTest, PutsCommandsAsideAndTakesThemBackInOrder) {
  const auto account = Start();
  auto probe = kit_.Probe();
  account.Tell(Freeze{});
  probe.Send(account, Deposit{1});
  probe.Send(account, Deposit{2});
  probe.Send(account, GetBalance{});
  EXPECT_EQ(probe.Expect<Balance>().amount, 0);
  probe.Send(account, Thaw{});
  EXPECT_EQ(probe.Expect<Balance>().amount, 1);
  EXPECT_EQ(probe.Expect<Balance>().amount, 3);
}

TEST_F(EventSourcedTest, StopsWhenItsEventIsStoredAndHandlesWhatItIsMeantFor) {
  auto account = Start();
  account.Tell(Close{});
  kit_.Settle();
  EXPECT_FALSE(kit_.IsAlive(account));
  account = Start();
  kit_.ExpectUnhandled<Deposit>(1, [&] { account.Tell(Deposit{1}); });
}

// P54, P116
TEST_F(EventSourcedTest, SavesASnapshotEveryFewEventsAndKeepsSome) {
  auto account = Start({.snapshot_every = 3, .keep_snapshots = 2});
  for (int i = 0; i < 13; ++i) Ask(account, 1);
  kit_.Settle();
  EXPECT_EQ(Snapshots(), (std::vector<uint64_t>{9, 12}));
  EXPECT_EQ(Stored().size(), 13u);
  End(account);
  account = Start({.snapshot_every = 3, .keep_snapshots = 2});
  EXPECT_EQ(kit_.AskAndWait(account, GetBalance{}).value().amount, 13);
  EXPECT_EQ(seen_, (Seen{"apply 1", "recovered 13"}));
}

TEST_F(EventSourcedTest, DeletesEventsThatAreOlderThanAllSnapshotsThatItKeeps) {
  auto account = Start({.snapshot_every = 3, .keep_snapshots = 2, .delete_events = true});
  for (int i = 0; i < 13; ++i) Ask(account, 1);
  kit_.Settle();
  EXPECT_EQ(Snapshots(), (std::vector<uint64_t>{9, 12}));
  EXPECT_EQ(Stored(), (std::vector<uint64_t>{7, 8, 9, 10, 11, 12, 13}));
  End(account);
  account = Start();
  EXPECT_EQ(kit_.AskAndWait(account, GetBalance{}).value().amount, 13);
}

// PER-18
TEST_F(EventSourcedTest, DoesNotComeBackWithoutTheSnapshotThatItsDeletedEventsAreIn) {
  const Retention retention = {.snapshot_every = 3, .keep_snapshots = 2, .delete_events = true};
  auto account = Start(retention);
  for (int i = 0; i < 13; ++i) Ask(account, 1);
  kit_.Settle();
  End(account);
  const uint64_t epoch = journal_->OpenWriter("account", {}).Take()->epoch;
  ASSERT_TRUE(snapshots_->DeleteMatching("account", {}, epoch).Take().ok());
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "events 1..6 are deleted"}, 1, [&] {
    account = Start(retention);
    const absl::Status refused = kit_.AskAndWait(account, GetBalance{}).status();
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(refused), JournalErrorKind::kDeleted) << refused;
    EXPECT_TRUE(absl::StartsWith(refused.message(), "\"account\" could not be recovered: ")) << refused;
  });
  EXPECT_FALSE(kit_.IsAlive(account));
}

TEST_F(EventSourcedTest, KeepsASnapshotThatIsSavedByHand) {
  const Retention by_hand = {.delete_events = true};
  auto account = Start(by_hand);
  for (int i = 0; i < 3; ++i) Ask(account, 1);
  account.Tell(SaveNow{});
  kit_.Settle();
  EXPECT_EQ(Snapshots(), std::vector<uint64_t>{3});
  EXPECT_EQ(Stored().size(), 3u);
  End(account);
  account = Start(by_hand);
  EXPECT_EQ(kit_.AskAndWait(account, GetBalance{}).value().amount, 3);
  EXPECT_EQ(seen_, Seen{"recovered 3"});
}

TEST_F(EventSourcedTest, KeepsSoManySnapshotsHoweverFarTheyAreApart) {
  const Retention retention = {.snapshot_every = 2, .keep_snapshots = 2, .delete_events = true};
  auto account = Start(retention);
  for (int i = 0; i < 3; ++i) kit_.AskAndWait(account, DepositMany{10}).value();
  kit_.Settle();
  EXPECT_EQ(Snapshots(), (std::vector<uint64_t>{20, 30}));
  EXPECT_EQ(Stored().front(), 20u);
  End(account);
  // One that it came back from counts too, and what is older than all of them goes.
  account = Start(retention);
  kit_.AskAndWait(account, DepositMany{10}).value();
  kit_.Settle();
  EXPECT_EQ(Snapshots(), (std::vector<uint64_t>{30, 40}));
  EXPECT_EQ(Stored().front(), 30u);
  End(account);
  account = Start(retention);
  EXPECT_EQ(kit_.AskAndWait(account, GetBalance{}).value().amount, 40);
}

TEST_F(EventSourcedTest, KeepsAllSnapshotsIfItIsToKeepVeryMany) {
  const auto account = Start({.snapshot_every = 2, .keep_snapshots = uint64_t{1} << 63});
  for (int i = 0; i < 4; ++i) Ask(account, 1);
  kit_.Settle();
  EXPECT_EQ(Snapshots(), (std::vector<uint64_t>{2, 4}));
}

TEST_F(EventSourcedTest, SavesOneSnapshotIfOneCommandPassesSeveralMarks) {
  const auto account = Start({.snapshot_every = 1, .keep_snapshots = 0});
  EXPECT_EQ(kit_.AskAndWait(account, DepositTwice{4}).value().amount, 8);
  kit_.Settle();
  EXPECT_EQ(Snapshots(), (std::vector<uint64_t>{2}));
}

// What is lost if it is moved from.
struct Lines {
  std::vector<int64_t> amounts = {};
};

// Cannot apply zero.
class Diary : public EventSourced<Diary, Lines, Commands<Deposit, DepositTwice>, Events<Deposited>> {
 public:
  std::string PersistenceId() const override { return "diary"; }
  ReplyEffect<Balance> Handle(const Lines&, const Deposit& command) {
    return Persist(Deposited{command.amount}).ThenReply(&Count);
  }
  // The second one is less by one.
  auto Handle(const Lines&, const DepositTwice& command) {
    return Persist(Deposited{command.amount}, Deposited{command.amount - 1}).ThenReply(&Count).ThenRun([] {});
  }
  Lines Apply(Lines state, const Deposited& event) {
    if (event.amount == 0) throw std::runtime_error("nothing");
    state.amounts.push_back(event.amount);
    return state;
  }
  // Only of those above ten.
  static std::vector<std::string> Tags(const Deposited& event) {
    if (event.amount <= 10) return {};
    return {"large", absl::StrCat("of ", event.amount), "large"};
  }

 private:
  static Balance Count(const Lines& now) { return Balance{static_cast<int64_t>(now.amounts.size())}; }
};

// The same, in place.
class Ledger : public EventSourced<Ledger, Lines, Commands<Deposit>, Events<Deposited>> {
 public:
  std::string PersistenceId() const override { return "ledger"; }
  Effect Handle(const Lines&, const Deposit& command) {
    return Persist(Deposited{command.amount}).ThenReply([](const Lines& now) {
      return Balance{static_cast<int64_t>(now.amounts.size())};
    });
  }
  void Apply(Lines& state, const Deposited& event) {
    if (event.amount == 0) throw std::runtime_error("nothing");
    state.amounts.push_back(event.amount);
  }
};

// An id is not lost to an event that can never be applied.
TEST_F(EventSourcedTest, StoresNoEventThatItCannotApplyAndGoesOn) {
  auto diary = kit_.Spawn<Diary>();
  EXPECT_EQ(kit_.AskAndWait(diary, Deposit{1}).value().amount, 1);
  kit_.ExpectLog({.level = LogLevel::kError,
                  .contains = "Deposited that a command leads to, and stores nothing of it: Apply threw: nothing"},
                 3, [&] {
                   const absl::Status refused = kit_.AskAndWait(diary, Deposit{0}).status();
                   EXPECT_TRUE(absl::StartsWith(refused.message(), "\"diary\" cannot apply ")) << refused;
                   // Both or none.
                   EXPECT_FALSE(kit_.AskAndWait(diary, DepositTwice{1}).ok());
                   diary.Tell(Deposit{0});
                   kit_.Settle();
                 });
  EXPECT_EQ(kit_.AskAndWait(diary, DepositTwice{3}).value().amount, 3);
  EXPECT_EQ(journal_->HighestSequenceNr("diary").Take().value(), 3u);
  kit_.system().Stop(diary);
  kit_.Settle();
  diary = kit_.Spawn<Diary>();
  EXPECT_EQ(kit_.AskAndWait(diary, Deposit{1}).value().amount, 4);
}

// P89: what is applied in place is stored.
TEST_F(EventSourcedTest, AnswersAtOnceIfAStoredEventCannotBeApplied) {
  const auto ledger = kit_.Spawn<Ledger>();
  EXPECT_EQ(kit_.AskAndWait(ledger, Deposit{1}).value().amount, 1);
  absl::Status failed;
  // It is answered once.
  kit_.ExpectDeadLetters<ErrorReply>(0, [&] { failed = kit_.AskAndWait(ledger, Deposit{0}).status(); });
  EXPECT_TRUE(absl::StartsWith(failed.message(), "event 2 of \"ledger\", a ")) << failed;
  EXPECT_NE(failed.message().find("is stored, but Apply fails on it"), absl::string_view::npos) << failed;
}

// P59
TEST_F(EventSourcedTest, NamesTheEventThatARecoveryFailsOn) {
  auto ledger = kit_.Spawn<Ledger>();
  EXPECT_TRUE(kit_.AskAndWait(ledger, Deposit{1}).ok());
  EXPECT_FALSE(kit_.AskAndWait(ledger, Deposit{0}).ok());
  kit_.Settle();
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "could not be recovered: event 2 of \"ledger\", a "}, 1, [&] {
    const absl::Status refused = kit_.AskAndWait(kit_.Spawn<Ledger>(), Deposit{1}).status();
    EXPECT_TRUE(absl::StartsWith(refused.message(), "\"ledger\" could not be recovered: event 2 of \"ledger\", a "))
        << refused;
    EXPECT_TRUE(absl::StrContains(refused.message(), "Deposited, could not be applied")) << refused;
    EXPECT_TRUE(absl::EndsWith(refused.message(), ": Apply threw: nothing")) << refused;
  });
}

// Leaves, or fails, when its event is stored or before.
class Hasty : public EventSourced<Hasty, Lines, Commands<Deposit, DepositTwice, GetBalance>, Events<Deposited>> {
 public:
  explicit Hasty(Retention retention = {}) : retention_(retention) { options_.max_pending_events = 3; }
  std::string PersistenceId() const override { return "hasty"; }
  Retention retention() const override { return retention_; }
  const PersistentActorOptions& options() const override { return options_; }
  ReplyEffect<Balance> Handle(ActorContext& context, const Lines&, const Deposit& command) {
    if (command.amount == 0) context.Stop();
    const auto count = static_cast<size_t>(command.amount == 0 ? 1 : command.amount);
    return PersistAll(std::vector<Deposited>(count, Deposited{1})).ThenReply([](const Lines& now) {
      return Balance{static_cast<int64_t>(now.amounts.size())};
    });
  }
  Effect Handle(const Lines&, const DepositTwice& command) {
    return Persist(Deposited{command.amount}, Deposited{command.amount}).ThenRun([] {
      throw std::runtime_error("no printer");
    });
  }
  Balance Handle(const Lines& state, const GetBalance&) { return {static_cast<int64_t>(state.amounts.size())}; }
  void Apply(Lines& state, const Deposited& event) { state.amounts.push_back(event.amount); }

 private:
  const Retention retention_;
  PersistentActorOptions options_;
};

// Its answer would be lost, and the event stored.
TEST_F(EventSourcedTest, StoresNothingIfItsHandlerHasStoppedIt) {
  const auto hasty = kit_.Spawn<Hasty>();
  kit_.Settle();
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "has called Stop() in its Handle of "}, 1, [&] {
    const absl::Status refused = kit_.AskAndWait(hasty, Deposit{0}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
    EXPECT_TRUE(absl::StrContains(refused.message(), "ThenStop()")) << refused;
  });
  kit_.Settle();
  EXPECT_FALSE(kit_.IsAlive(hasty));
  EXPECT_EQ(journal_->HighestSequenceNr("hasty").Take().value(), 0u);
}

// Who would send the command again would have it done twice.
TEST_F(EventSourcedTest, SaysThatItsEventsAreStoredIfWhatFollowsFails) {
  const auto hasty = kit_.Spawn<Hasty>();
  const absl::Status failed = kit_.AskAndWait(hasty, DepositTwice{1}).status();
  EXPECT_TRUE(absl::StrContains(failed.message(),
                                "what follows events 1..2 of \"hasty\" (ThenRun, ThenReply) fails; that is stored"))
      << failed;
  EXPECT_TRUE(absl::EndsWith(failed.message(), "it threw: no printer")) << failed;
  EXPECT_EQ(kit_.AskAndWait(hasty, GetBalance{}).value().amount, 2);
}

// PER-13
TEST_F(EventSourcedTest, WarnsOfASnapshotThatItCannotSave) {
  // Lines has no codec.
  const auto hasty = kit_.Spawn<Hasty>(Retention{.snapshot_every = 2});
  kit_.ExpectLog({.level = LogLevel::kWarning}, 1, [&] {
    kit_.ExpectUnhandled<SaveSnapshotFailure>(0, [&] {
      EXPECT_EQ(kit_.AskAndWait(hasty, Deposit{2}).value().amount, 2);
      kit_.Settle();
    });
  });
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "no snapshot of \"hasty\" at 4 is saved: "}, 1, [&] {
    EXPECT_EQ(kit_.AskAndWait(hasty, Deposit{2}).value().amount, 4);
    kit_.Settle();
  });
}

TEST_F(EventSourcedTest, DoesNotStartIfItIsToDeleteEventsAndKeepAllSnapshots) {
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "delete_events, and keep_snapshots = 0"}, 1, [&] {
    const auto hasty = kit_.Spawn<Hasty>(Retention{.snapshot_every = 2, .keep_snapshots = 0, .delete_events = true});
    kit_.Settle();
    EXPECT_FALSE(kit_.IsAlive(hasty));
  });
}

// P87
TEST_F(EventSourcedTest, RefusesTooManyEventsOfACommandAndGoesOn) {
  const auto hasty = kit_.Spawn<Hasty>();
  const absl::Status refused = kit_.AskAndWait(hasty, Deposit{4}).status();
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(refused), JournalErrorKind::kTooLarge) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "\"hasty\": a command leads to 4 events; the limit, ")) << refused;
  EXPECT_EQ(kit_.AskAndWait(hasty, Deposit{3}).value().amount, 3);
  EXPECT_EQ(journal_->HighestSequenceNr("hasty").Take().value(), 3u);
}

TEST_F(EventSourcedTest, LogsOnceThatEventsAreRejectedTogether) {
  const auto account = Start();
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "rejected"}, 1, [&] {
    kit_.ExpectLog({.level = LogLevel::kError, .contains = "events 1..2 of \"account\", the first a "}, 1, [&] {
      EXPECT_FALSE(kit_.AskAndWait(account, DepositUnstorable{}).ok());
      kit_.Settle();
    });
  });
}

// PER-13: whether the question waits in the mailbox, or comes when all is over.
TEST(EventSourced, TellsWhoAsksWhyItCannotStart) {
  class Nameless : public Ledger {
    std::string PersistenceId() const override { return " "; }
  };
  class Lost : public Ledger {
    std::string_view JournalPluginId() const override { return "nowhere"; }
  };
  class Misled : public Ledger {
    const PersistentActorOptions& options() const override {
      static const PersistentActorOptions bad = {.stash_capacity = 0};
      return bad;
    }
  };
  class Endless : public Ledger {
    std::string PersistenceId() const override { return std::string(2000, 'x'); }
  };
  TestKit kit(EventSourcedTest::Options());
  enum class Fails { kAtItsStart, kInItsRecovery };
  const auto hears = [&kit](const auto& spawn, Fails when, absl::StatusCode code, std::string_view why) {
    const auto early = spawn();
    Future<Balance> asked = kit.system().Ask(early, Deposit{1}, absl::Hours(1));
    kit.Settle();
    ASSERT_TRUE(asked.IsReady()) << why;
    EXPECT_FALSE(kit.IsAlive(early));
    const auto late = spawn();
    kit.Settle();
    EXPECT_FALSE(kit.IsAlive(late));
    const absl::Status first = asked.Take().status();
    const absl::Status second = kit.AskAndWait(late, Deposit{1}).status();
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(first), ErrorKindOf<JournalErrorKind>(second)) << first << "\n" << second;
    for (const absl::Status& status : {first, second}) {
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_EQ(absl::StrContains(status.message(), " could not be recovered: "), when == Fails::kInItsRecovery)
          << status;
      EXPECT_TRUE(absl::StrContains(status.message(), absl::string_view(why.data(), why.size()))) << status;
      EXPECT_LT(status.message().size(), 700u) << status;
    }
  };
  hears([&] { return kit.Spawn<Ledger>(); }, Fails::kAtItsStart, absl::StatusCode::kNotFound, "there is no journal");
  std::shared_ptr<MemoryJournal> journal = MemoryJournal::Open({}).value();
  ASSERT_TRUE(kit.system().Extension<PersistenceExtension>().AddJournal("memory", {.storage = journal}).ok());
  hears([&] { return kit.Spawn<Nameless>(); }, Fails::kAtItsStart, absl::StatusCode::kInvalidArgument,
        "must say a name");
  hears([&] { return kit.Spawn<Lost>(); }, Fails::kAtItsStart, absl::StatusCode::kNotFound, "\"nowhere\"");
  hears([&] { return kit.Spawn<Misled>(); }, Fails::kAtItsStart, absl::StatusCode::kInvalidArgument, "stash_capacity");
  hears([&] { return kit.Spawn<Endless>(); }, Fails::kInItsRecovery, absl::StatusCode::kInvalidArgument,
        "max_persistence_id_bytes");
  const auto ledger = kit.Spawn<Ledger>();
  EXPECT_FALSE(kit.AskAndWait(ledger, Deposit{0}).ok());
  kit.Settle();
  hears([&] { return kit.Spawn<Ledger>(); }, Fails::kInItsRecovery, absl::StatusCode::kInternal,
        "event 1 of \"ledger\", a ");
  ASSERT_TRUE(journal->Close().Take().ok());
  hears([&] { return kit.Spawn<Ledger>(); }, Fails::kInItsRecovery, absl::StatusCode::kUnavailable,
        "the journal in memory is closed");
}

TEST(EventSourced, KeepsItsStateIfAnEventCannotBeAppliedAndItIsResumed) {
  TestKitOptions options = EventSourcedTest::Options();
  options.system.guardian_strategy.decider = [](const Failure&) { return Resume(); };
  TestKit kit(options);
  std::shared_ptr<MemoryJournal> journal = MemoryJournal::Open({}).value();
  ASSERT_TRUE(kit.system().Extension<PersistenceExtension>().AddJournal("memory", {.storage = journal}).ok());
  const auto ledger = kit.Spawn<Ledger>();
  EXPECT_EQ(kit.AskAndWait(ledger, Deposit{1}).value().amount, 1);
  EXPECT_EQ(kit.AskAndWait(ledger, Deposit{2}).value().amount, 2);
  ledger.Tell(Deposit{0});
  kit.Settle();
  EXPECT_EQ(kit.AskAndWait(ledger, Deposit{3}).value().amount, 3);
}

// PER-20
TEST_F(EventSourcedTest, TagsItsEvents) {
  const auto diary = kit_.Spawn<Diary>();
  for (const int64_t amount : {5, 50, 60}) ASSERT_TRUE(kit_.AskAndWait(diary, Deposit{amount}).ok());
  const auto tagged = [&](const std::string& tag) {
    std::vector<uint64_t> numbers;
    const EventBatch batch = journal_->EventsByTag({.tag = tag}).Take().value();
    for (const StoredEvent& event : batch) numbers.push_back(event.sequence_nr);
    return numbers;
  };
  EXPECT_EQ(tagged("large"), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(tagged("of 60"), (std::vector<uint64_t>{3}));
  EXPECT_EQ(tagged("of 5"), std::vector<uint64_t>());
}

// Says something else than it promises.
class Liar : public EventSourced<Liar, AccountState, Commands<Deposit>, Events<Deposited>> {
 public:
  std::string PersistenceId() const override { return "liar"; }
  Effect Handle(const AccountState&, const Deposit& command) {
    return Persist(Deposited{command.amount}).ThenReply([](const AccountState& now) { return now.balance; });
  }
  void Apply(AccountState& state, const Deposited& event) { state.balance += event.amount; }
};

TEST_F(EventSourcedTest, StoresNothingIfItWouldAnswerWithAnotherType) {
  const auto liar = kit_.Spawn<Liar>();
  const absl::Status refused = kit_.AskAndWait(liar, Deposit{1}).status();
  EXPECT_NE(refused.message().find("Balance"), absl::string_view::npos) << refused;
  EXPECT_NE(refused.message().find("ReplyEffect"), absl::string_view::npos) << refused;
  EXPECT_EQ(journal_->HighestSequenceNr("liar").Take().value(), 0u);
  EXPECT_TRUE(kit_.IsAlive(liar));
}

TEST_F(EventSourcedTest, NamesAnEventThatIsNotInItsList) {
  auto writer = Start();
  Ask(writer, 1);
  End(writer);
  class Narrow : public EventSourced<Narrow, AccountState, Commands<GetBalance>, Events<Withdrawn>> {
   public:
    std::string PersistenceId() const override { return "account"; }
    Balance Handle(const AccountState& state, const GetBalance&) { return {state.balance}; }
    void Apply(AccountState&, const Withdrawn&) {}
  };
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "Deposited"}, 1, [&] {
    const auto narrow = kit_.Spawn<Narrow>();
    const absl::Status refused = kit_.AskAndWait(narrow, GetBalance{}).status();
    EXPECT_TRUE(absl::StrContains(refused.message(), "event 1 of \"account\", a ")) << refused;
    EXPECT_FALSE(kit_.IsAlive(narrow));
  });
}

// What Apply may look like. The compiler names the actor, the state and the event of one that would have no effect.
struct ByValue {
  AccountState Apply(AccountState state, const Deposited&);
};
struct ByConstReference {
  AccountState Apply(const AccountState& state, const Deposited&);
};
struct InPlace {
  void Apply(AccountState& state, const Deposited&);
};
struct OfACopy {
  void Apply(AccountState state, const Deposited&);
};
struct OfAConstant {
  void Apply(const AccountState& state, const Deposited&);
};
struct BothWays {
  AccountState Apply(AccountState& state, const Deposited&);
};
struct ThatMayFail {
  absl::StatusOr<AccountState> Apply(AccountState state, const Deposited&);
};
struct ThatMayFailInPlace {
  absl::Status Apply(AccountState& state, const Deposited&);
};
struct OfAnotherEvent {
  void Apply(AccountState& state, const Withdrawn&);
};

template <class A>
constexpr bool kApplies = typed_internal::AppliesToValue<A, AccountState, Deposited> ||
                          typed_internal::AppliesInPlace<A, AccountState, Deposited>;
static_assert(kApplies<ByValue> && kApplies<ByConstReference> && kApplies<InPlace>);
static_assert(!kApplies<OfACopy> && !kApplies<OfAConstant> && !kApplies<BothWays>);
static_assert(!kApplies<ThatMayFail> && !kApplies<ThatMayFailInPlace> && !kApplies<OfAnotherEvent>);

// What Handle may return: see CheckAnswer, which names what it refuses.
static_assert(typed_internal::CheckAnswer<Account, GetBalance, Balance>());
static_assert(typed_internal::CheckAnswer<Account, GetBalance, absl::StatusOr<Balance>>());
static_assert(typed_internal::CheckAnswer<Account, GetBalance, absl::Status>());
static_assert(typed_internal::CheckAnswer<Account, GetBalance, void>());
static_assert(typed_internal::CheckAnswer<Account, GetBalance, Effect<AccountState>>());
static_assert(typed_internal::CheckAnswer<Account, GetBalance, ReplyEffect<AccountState, Balance>>());
static_assert(typed_internal::CheckAnswer<Account, GetBalance, ReplyEffect<AccountState, ErrorReply>>());
static_assert(typed_internal::CheckAnswer<Account, Freeze, int>());
static_assert(typed_internal::CheckAnswer<Account, Freeze, ReplyEffect<AccountState, int>>());
// What may be returned in the place of a ReplyEffect: see refused_programs_test.sh.
template <class From>
constexpr bool kIsReply = std::is_convertible_v<From, ReplyEffect<AccountState, Balance>>;
static_assert(kIsReply<ReplyEffect<AccountState, Balance>> && kIsReply<ReplyEffect<AccountState, ErrorReply>>);
static_assert(kIsReply<NoReplyEffect<AccountState>>);
static_assert(!kIsReply<Effect<AccountState>>);

}  // namespace
}  // namespace fraktor
