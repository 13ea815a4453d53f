// Grains that are persistent actors: they come back with their state wherever they are activated, and an earlier activation
// cannot write any more.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/typed/event_sourced.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {

struct Balance {
  int64_t amount = 0;
  uint64_t token = 0;
};
struct Deposit {
  using Reply = Balance;
  int64_t amount = 0;
};
struct Deposited {
  int64_t amount = 0;
};

template <>
struct Codec<Balance> : FieldCodec<Balance, &Balance::amount, &Balance::token> {
  static constexpr std::string_view kManifest = "test.balance";
};
template <>
struct Codec<Deposit> : FieldCodec<Deposit, &Deposit::amount> {
  static constexpr std::string_view kManifest = "test.deposit";
};
template <>
struct Codec<Deposited> : FieldCodec<Deposited, &Deposited::amount> {
  static constexpr std::string_view kManifest = "test.deposited";
};

namespace {

struct AccountState {
  int64_t amount = 0;
};

// Says nothing of tokens but to the test.
class Account final : public EventSourced<Account, AccountState, Commands<Deposit>, Events<Deposited>> {
 public:
  static constexpr std::string_view kGrainKind = "account";
  explicit Account(const GrainContext& grain)
      : id_(absl::StrCat("account-", grain.key.identity())), token_(grain.token) {}
  std::string PersistenceId() const override { return id_; }

  Effect Handle(const AccountState&, const Deposit& command) {
    return Persist(Deposited{command.amount}).ThenReply([this](const AccountState& now) {
      return Balance{.amount = now.amount, .token = token_};
    });
  }
  AccountState Apply(AccountState state, const Deposited& event) {
    state.amount += event.amount;
    return state;
  }

 private:
  const std::string id_;
  const uint64_t token_;
};

class Bank {
 public:
  // The journal answers after that time.
  explicit Bank(Simulation& sim, absl::Duration delay = absl::ZeroDuration())
      : journal_(MemoryJournal::Open({.toolbox = &sim.toolbox(), .min_delay = delay, .max_delay = delay}).value()),
        cluster_(sim, Options(journal_)) {}

  absl::StatusOr<Balance> DepositAt(size_t from, std::string_view account, int64_t amount) {
    return cluster_.Await(
        cluster_[from].Grain<Account>(account).Ask(cluster_.system(from), Deposit{amount}, absl::Seconds(20)));
  }
  SimTestCluster& cluster() { return cluster_; }

 private:
  static TestClusterOptions Options(const std::shared_ptr<JournalStorage>& journal) {
    TestClusterOptions options;
    options.kinds = {GrainKindOf<Account>()};
    options.cluster.placement.placement.idle_ttl = absl::Seconds(30);
    options.codecs.Add<Balance, Deposit, Deposited>();
    options.on_system = [journal](ActorSystem& system) {
      const absl::Status added = system.Extension<PersistenceExtension>().AddJournal("main", {.storage = journal});
      ASSERT_TRUE(added.ok()) << added;
    };
    return options;
  }

  const std::shared_ptr<JournalStorage> journal_;
  SimTestCluster cluster_;
};

// It is handed over with its state.
TEST(PersistentGrain, ComesBackWithItsState) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Bank bank(sim);
    bank.cluster().AddNodes(3);
    for (int i = 0; i < 6; ++i) ASSERT_EQ(bank.DepositAt(0, absl::StrCat("a", i), 10).value().amount, 10);
    ASSERT_TRUE(bank.cluster().Await(bank.cluster()[2].Leave()).ok());
    for (int i = 0; i < 6; ++i) EXPECT_EQ(bank.DepositAt(1, absl::StrCat("a", i), 5).value().amount, 15);
    bank.cluster().Crash(1);
    for (int i = 0; i < 6; ++i) {
      const absl::StatusOr<Balance> balance =
          bank.cluster().AskUntilAnswered<Account>(0, absl::StrCat("a", i), Deposit{1});
      ASSERT_TRUE(balance.ok()) << balance.status();
      EXPECT_GE(balance->amount, 16);
    }
  });
}

// CLU-8, CLU-12: nobody has used it for a while, so it is ended; the next call starts it anew, with what it had.
TEST(PersistentGrain, ComesBackWithItsStateAfterItWasPassivated) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Bank bank(sim);
    SimTestCluster& cluster = bank.cluster();
    cluster.AddNodes(3);
    const auto running = [&] {
      size_t count = 0;
      for (size_t i = 0; i < cluster.size(); ++i) count += cluster[i].driver().Snapshot().activations;
      return count;
    };
    std::vector<uint64_t> tokens;
    for (int i = 0; i < 4; ++i) {
      const absl::StatusOr<Balance> balance = bank.DepositAt(i % 3, absl::StrCat("a", i), 10);
      ASSERT_TRUE(balance.ok()) << balance.status();
      EXPECT_EQ(balance->amount, 10);
      tokens.push_back(balance->token);
    }
    EXPECT_EQ(running(), 4u);
    // One of them stays in use.
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(bank.DepositAt(0, "a0", 1).ok());
      sim.Advance(absl::Seconds(8));
    }
    EXPECT_EQ(running(), 1u) << "nobody has used the others for half a minute";
    EXPECT_EQ(bank.DepositAt(1, "a0", 1).value().token, tokens[0]);
    for (int i = 1; i < 4; ++i) {
      const absl::StatusOr<Balance> balance = bank.DepositAt((i + 1) % 3, absl::StrCat("a", i), 5);
      ASSERT_TRUE(balance.ok()) << balance.status();
      EXPECT_EQ(balance->amount, 15);
      EXPECT_GT(balance->token, tokens[i]) << "it is another activation";
    }
    EXPECT_EQ(running(), 4u);
  });
}

// CLU-12: what it has begun to store is stored, and who asked for it hears so. What waits behind it is handled, here or by the
// next activation.
TEST(PersistentGrain, AnswersWhatItStoresWhileItIsHandedOver) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Bank bank(sim, absl::Milliseconds(20));
    SimTestCluster& cluster = bank.cluster();
    cluster.AddNodes(3);
    constexpr int kAccounts = 6;
    for (int i = 0; i < kAccounts; ++i) ASSERT_TRUE(bank.DepositAt(0, absl::StrCat("a", i), 1).ok());
    std::vector<Future<Balance>> answers;
    for (int i = 0; i < 3 * kAccounts; ++i) {
      answers.push_back(cluster[0]
                            .Grain<Account>(absl::StrCat("a", i % kAccounts))
                            .Ask(cluster.system(0), Deposit{1}, absl::Seconds(20)));
    }
    sim.Advance(absl::Milliseconds(10));
    EXPECT_LT(cluster[0].driver().Snapshot().activations, size_t{kAccounts}) << "nothing would be handed over";
    for (const size_t node : {1u, 2u}) ASSERT_TRUE(cluster.Await(cluster[node].Leave()).ok());
    for (Future<Balance>& answer : answers) {
      const absl::StatusOr<Balance> balance = cluster.Await(std::move(answer));
      ASSERT_TRUE(balance.ok()) << balance.status();
    }
    // Each once.
    for (int i = 0; i < kAccounts; ++i) EXPECT_EQ(bank.DepositAt(0, absl::StrCat("a", i), 1).value().amount, 5);
  });
}

// PER-19, CLU-6: its token is the epoch of its journal's writer, without the actor doing anything for it. So an activation
// that was thought dead, and goes on, is refused.
TEST(PersistentGrain, WritesWithItsToken) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Bank bank(sim);
    bank.cluster().AddNodes(1);
    ActorSystem& system = bank.cluster().system(0);
    // So that there are lower tokens than that of the grain.
    ASSERT_TRUE(bank.DepositAt(0, "bob", 1).ok());
    // A former activation, by hand.
    const GrainContext former{.key = GrainKey("account", "alice"), .token = 1};
    const ActorRef zombie = system.TrySpawn(*MakeTypedProps<Account>(PropsOptions(), GrainSeed(former))).value();
    const auto ask_zombie = [&] {
      return bank.cluster().Await(system.Ask<Balance>(zombie, Deposit{100}, absl::Seconds(5)));
    };
    ASSERT_EQ(ask_zombie().value().amount, 100);
    absl::StatusOr<Balance> balance = bank.DepositAt(0, "alice", 10);
    ASSERT_TRUE(balance.ok()) << balance.status();
    EXPECT_EQ(balance->amount, 110);
    EXPECT_GT(balance->token, 1u);
    EXPECT_FALSE(ask_zombie().ok()) << "it must not write any more";
    EXPECT_EQ(bank.DepositAt(0, "alice", 1).value().amount, 111);
    // One that begins now with an old token does not even get to read.
    const ActorRef late = system.TrySpawn(*MakeTypedProps<Account>(PropsOptions(), GrainSeed(former))).value();
    EXPECT_FALSE(bank.cluster().Await(system.Ask<Balance>(late, Deposit{100}, absl::Seconds(5))).ok());
    EXPECT_EQ(bank.DepositAt(0, "alice", 1).value().amount, 112);
  });
}

}  // namespace
}  // namespace fraktor
