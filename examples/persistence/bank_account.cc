// An account that survives: commands lead to events, events are stored, and whoever opens it again finds it as it was.
// A snapshot every ten events keeps the way back short.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fraktor/actor/actor.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/typed/event_sourced.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

// What it answers, and what it is asked.
struct Balance {
  int64_t cents = 0;
};
struct Deposit {
  using Reply = Balance;
  int64_t cents = 0;
};
struct Withdraw {
  using Reply = Balance;
  int64_t cents = 0;
};
struct GetBalance {
  using Reply = Balance;
};

// What has happened to it, and what it is.
struct Deposited {
  int64_t cents = 0;
};
struct Withdrawn {
  int64_t cents = 0;
};
struct AccountState {
  int64_t cents = 0;
};

// How these are stored: under names that stay, whatever the structs are called.
template <>
struct fraktor::Codec<Deposited> : fraktor::FieldCodec<Deposited, &Deposited::cents> {
  static constexpr std::string_view kManifest = "bank.deposited";
};
template <>
struct fraktor::Codec<Withdrawn> : fraktor::FieldCodec<Withdrawn, &Withdrawn::cents> {
  static constexpr std::string_view kManifest = "bank.withdrawn";
};
template <>
struct fraktor::Codec<AccountState> : fraktor::FieldCodec<AccountState, &AccountState::cents> {
  static constexpr std::string_view kManifest = "bank.account";
};

class Account : public fraktor::EventSourced<Account, AccountState, fraktor::Commands<Deposit, Withdraw, GetBalance>,
                                             fraktor::Events<Deposited, Withdrawn>> {
 public:
  explicit Account(std::string id) : id_(std::move(id)) {}
  std::string PersistenceId() const override { return id_; }
  fraktor::Retention retention() const override {
    return {.snapshot_every = 10, .keep_snapshots = 2, .delete_events = true};
  }

  ReplyEffect<Balance> Handle(const AccountState&, const Deposit& command) {
    if (command.cents <= 0) return Refuse(absl::InvalidArgumentError("a deposit is of at least one cent"));
    return Persist(Deposited{command.cents}).ThenReply([](const AccountState& now) { return Balance{now.cents}; });
  }
  ReplyEffect<Balance> Handle(const AccountState& state, const Withdraw& command) {
    if (command.cents <= 0) return Refuse(absl::InvalidArgumentError("a withdrawal is of at least one cent"));
    if (command.cents > state.cents) {
      return Refuse(absl::FailedPreconditionError("there is not so much on the account"));
    }
    return Persist(Withdrawn{command.cents}).ThenReply([](const AccountState& now) { return Balance{now.cents}; });
  }
  Balance Handle(const AccountState& state, const GetBalance&) { return {state.cents}; }

  // Also when they are replayed: so they only compute.
  void Apply(AccountState& state, const Deposited& event) {
    ++applied_;
    state.cents += event.cents;
  }
  void Apply(AccountState& state, const Withdrawn& event) {
    ++applied_;
    state.cents -= event.cents;
  }

 private:
  static ReplyEffect<Balance> Refuse(absl::Status why) { return Reply(fraktor::ErrorReply{std::move(why)}); }

  absl::Status OnRecovered(fraktor::ActorContext&) override {
    std::cout << id_ << " is back after " << applied_ << " events" << std::endl;
    return absl::OkStatus();
  }

  const std::string id_;
  int applied_ = 0;
};

// One run of the program.
absl::Status Live(const std::string& folder, bool is_first) {
  auto toolbox = fraktor::StdToolbox::Make({}).value();
  std::shared_ptr<fraktor::JournalStorage> journal =
      fraktor::RocksDbJournal::Open(*toolbox, {.path = folder + "/journal"}).value();
  std::shared_ptr<fraktor::SnapshotStorage> snapshots =
      fraktor::RocksDbSnapshotStore::Open(*toolbox, {.path = folder + "/snapshots"}).value();

  fraktor::ActorSystemOptions options;
  options.config.system_name = "bank";
  options.toolbox = toolbox.get();
  options.codecs = fraktor::CodecSetup().Add<Deposited, Withdrawn, AccountState>().Build().value();
  auto system = fraktor::ActorSystem::Create(options).value();
  auto& persistence = system->Extension<fraktor::PersistenceExtension>();
  absl::Status added = persistence.AddJournal("rocksdb", {.storage = journal});
  if (added.ok()) added = persistence.AddSnapshotStore("rocksdb", {.storage = snapshots});
  if (!added.ok()) return added;

  auto account = system->Spawn<Account>("alice", "account-alice");
  if (is_first) {
    for (int i = 1; i <= 25; ++i) {
      absl::StatusOr<Balance> balance = system->AskAndWait(account, Deposit{100}, absl::Seconds(10));
      if (!balance.ok()) return balance.status();
    }
    absl::StatusOr<Balance> refused = system->AskAndWait(account, Withdraw{1'000'000}, absl::Seconds(10));
    std::cout << "withdraw a million: " << refused.status().message() << std::endl;
    refused = system->AskAndWait(account, Deposit{-1}, absl::Seconds(10));
    std::cout << "deposit less than nothing: " << refused.status().message() << std::endl;
  }
  absl::StatusOr<Balance> balance = system->AskAndWait(account, GetBalance{}, absl::Seconds(10));
  if (!balance.ok()) return balance.status();
  std::cout << "balance: " << balance->cents << " cents" << std::endl;
  return absl::OkStatus();
}

int main() {
  std::string folder = std::filesystem::temp_directory_path().string() + "/bank_account.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  absl::Status lived = Live(folder, /*is_first=*/true);
  if (lived.ok()) lived = Live(folder, /*is_first=*/false);
  std::filesystem::remove_all(folder);
  if (!lived.ok()) std::cerr << lived << "\n";
  return lived.ok() ? 0 : 1;
}
