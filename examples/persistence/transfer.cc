// A transfer between two accounts that loses no money, whatever is lost on the way. The one who gives stores that it has
// given, and sends the money again and again until the one who takes has confirmed it; the one who takes remembers what it
// has taken. The receiver is not even there when the first transfer begins, the sender dies before it comes, and a second
// transfer overtakes the first.
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "fraktor/actor/actor.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/delivery/at_least_once_delivery.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/typed/event_sourced.h"

struct Balance {
  int64_t cents = 0;
  uint64_t on_the_way = 0;
};
struct GetBalance {
  using Reply = Balance;
};
struct Transfer {
  using Reply = Balance;
  std::string to = {};
  int64_t cents = 0;
};
// From account to account, and back.
struct Credit {
  uint64_t delivery_id = 0;
  std::string from = {};
  int64_t cents = 0;
};
struct Credited {
  uint64_t delivery_id = 0;
};

// Events.
struct Given {
  std::string to = {};
  int64_t cents = 0;
};
struct Taken {
  uint64_t delivery_id = 0;
  std::string from = {};
  int64_t cents = 0;
};
struct Confirmed {
  uint64_t delivery_id = 0;
};

template <>
struct fraktor::Codec<Given> : fraktor::FieldCodec<Given, &Given::to, &Given::cents> {
  static constexpr std::string_view kManifest = "bank.given";
};
template <>
struct fraktor::Codec<Taken> : fraktor::FieldCodec<Taken, &Taken::delivery_id, &Taken::from, &Taken::cents> {
  static constexpr std::string_view kManifest = "bank.taken";
};
template <>
struct fraktor::Codec<Confirmed> : fraktor::FieldCodec<Confirmed, &Confirmed::delivery_id> {
  static constexpr std::string_view kManifest = "bank.confirmed";
};

struct AccountState {
  int64_t cents = 0;
  // The deliveries of each account that were taken. All of them, since one may overtake another: it does not do to know
  // the last. (Accounts that live for ever would let the sender say up to which id all is confirmed, and forget those.)
  std::map<std::string, std::set<uint64_t>> taken = {};
};

class Account
    : public fraktor::EventSourced<Account, AccountState, fraktor::Commands<GetBalance, Transfer, Credit, Credited>,
                                   fraktor::Events<Given, Taken, Confirmed>> {
 public:
  Account(std::string id, int64_t cents) : EventSourced(AccountState{.cents = cents}), id_(std::move(id)) {}
  std::string PersistenceId() const override { return id_; }
  fraktor::AtLeastOnceDelivery* delivery() override { return &delivery_; }

  Balance Handle(const AccountState& state, const GetBalance&) { return {state.cents, delivery_.unconfirmed_count()}; }
  ReplyEffect<Balance> Handle(const AccountState& state, const Transfer& command) {
    // Events are facts: what cannot be done is refused before there is one.
    if (command.cents <= 0) return Refuse(absl::InvalidArgumentError("a transfer moves at least one cent"));
    if (command.cents > state.cents) {
      return Refuse(absl::FailedPreconditionError("there is not so much on the account"));
    }
    const absl::Status deliverable = delivery_.CheckDelivery("/user/" + command.to);
    if (!deliverable.ok()) return Refuse(deliverable);
    return Persist(Given{command.to, command.cents}).ThenReply([this](const AccountState& now) {
      return Balance{now.cents, delivery_.unconfirmed_count()};
    });
  }
  Effect Handle(const AccountState& state, const Credit& command) {
    const auto taken = state.taken.find(command.from);
    const Credited confirmation{command.delivery_id};
    if (taken != state.taken.end() && taken->second.contains(command.delivery_id)) return Reply(confirmation);
    return Persist(Taken{command.delivery_id, command.from, command.cents}).ThenReply([confirmation] {
      return confirmation;
    });
  }
  Effect Handle(const AccountState&, const Credited& command) { return Persist(Confirmed{command.delivery_id}); }

  void Apply(AccountState& state, const Given& event) {
    state.cents -= event.cents;
    delivery_.Deliver("/user/" + event.to, [&](uint64_t id) { return Credit{id, id_, event.cents}; });
  }
  void Apply(AccountState& state, const Taken& event) {
    state.cents += event.cents;
    state.taken[event.from].insert(event.delivery_id);
  }
  void Apply(AccountState&, const Confirmed& event) { delivery_.Confirm(event.delivery_id); }

 private:
  static ReplyEffect<Balance> Refuse(absl::Status why) { return Reply(fraktor::ErrorReply{std::move(why)}); }

  const std::string id_;
  fraktor::AtLeastOnceDelivery delivery_{{.redeliver_interval = absl::Milliseconds(200)}};
};

using AccountRef = fraktor::RefOf<Account>;

std::unique_ptr<fraktor::ActorSystem> Start(std::shared_ptr<fraktor::JournalStorage> journal) {
  fraktor::ActorSystemOptions options;
  options.config.system_name = "bank";
  options.codecs = fraktor::CodecSetup().Add<Given, Taken, Confirmed>().Build().value();
  auto system = fraktor::ActorSystem::Create(options).value();
  const absl::Status added =
      system->Extension<fraktor::PersistenceExtension>().AddJournal("memory", {.storage = std::move(journal)});
  return added.ok() ? std::move(system) : nullptr;
}

int main() {
  // It outlives the systems, as a database would.
  std::shared_ptr<fraktor::JournalStorage> journal = fraktor::MemoryJournal::Open({}).value();
  const absl::Duration timeout = absl::Seconds(10);
  {
    auto system = Start(journal);
    AccountRef alice = system->Spawn<Account>("alice", "alice", 100);
    absl::StatusOr<Balance> given = system->AskAndWait(alice, Transfer{"bob", 30}, timeout);
    if (!given.ok()) return 1;
    std::cout << "alice has " << given->cents << ", and " << given->on_the_way << " transfer is on its way"
              << std::endl;
  }
  auto system = Start(journal);
  AccountRef alice = system->Spawn<Account>("alice", "alice", 100);
  // She is back, and has sent the money to nobody once more.
  absl::StatusOr<Balance> of_alice = system->AskAndWait(alice, GetBalance{}, timeout);
  for (const Transfer& transfer : {Transfer{"bob", 71}, Transfer{"bob", -1}, Transfer{"*", 1}}) {
    absl::StatusOr<Balance> refused = system->AskAndWait(alice, transfer, timeout);
    std::cout << transfer.cents << " to " << transfer.to << ": " << (refused.ok() ? "given" : "refused") << std::endl;
  }
  AccountRef bob = system->Spawn<Account>("bob", "bob", 0);
  // This one finds him at once, before the first is sent again.
  of_alice = system->AskAndWait(alice, Transfer{"bob", 20}, timeout);
  while (of_alice.ok() && of_alice->on_the_way > 0) of_alice = system->AskAndWait(alice, GetBalance{}, timeout);
  absl::StatusOr<Balance> of_bob = system->AskAndWait(bob, GetBalance{}, timeout);
  if (!of_alice.ok() || !of_bob.ok()) return 1;
  std::cout << "alice has " << of_alice->cents << ", bob has " << of_bob->cents << std::endl;
  return 0;
}
