// Account: a grain whose state is made of events. It runs on whichever node it belongs to now, and its events are in the
// journal of the storage node.
//
//   cluster.Grain<Account>("alice").Ask(context, Open{.cents = 100'000}, absl::Seconds(5));
//   cluster.Grain<Account>("alice").Ask(context, Transfer{"t-1", "bob", 250}, absl::Seconds(5));
//
// transfer.h has the steps of a transfer.
#ifndef FRAKTOR_EXAMPLES_BANK_ACCOUNT_H_
#define FRAKTOR_EXAMPLES_BANK_ACCOUNT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/examples/bank/transfer.h"
#include "fraktor/persistence/delivery/at_least_once_delivery.h"
#include "fraktor/persistence/typed/event_sourced.h"

namespace bank {

struct Balance {
  bool is_open = false;
  int64_t cents = 0;
  // Transfers that have left it and have not been settled.
  uint64_t on_the_way = 0;
};
struct GetBalance {
  using Reply = Balance;
};
// Once; an account that is open stays as it is.
struct Open {
  using Reply = Balance;
  int64_t cents = 0;
};

struct Opened {
  int64_t cents = 0;
};

struct AccountState {
  bool is_open = false;
  int64_t cents = 0;
  TransferBook transfers = {};
};

// The persistence ids of accounts begin with it.
inline constexpr std::string_view kAccountPrefix = "account-";
// Where an account's letters to others go, on its own node: post_office.h.
inline constexpr std::string_view kPostOffice = "post";

class Account : public fraktor::EventSourced<Account, AccountState,
                                             fraktor::Commands<Open, GetBalance, Transfer, Credit, Credited>,
                                             fraktor::Events<Opened, Given, Declined, Settled, Taken, Refused>> {
 public:
  static constexpr std::string_view kGrainKind = "account";

  explicit Account(const fraktor::GrainContext& grain);

  std::string PersistenceId() const override;
  fraktor::AtLeastOnceDelivery* delivery() override { return &delivery_; }

  Effect Handle(const AccountState& state, const Open& command);
  Balance Handle(const AccountState& state, const GetBalance& command);
  Effect Handle(fraktor::ActorContext& context, const AccountState& state, const Transfer& command);
  Effect Handle(const AccountState& state, const Credit& command);
  Effect Handle(const AccountState& state, const Credited& command);

  void Apply(AccountState& state, const Opened& event);
  void Apply(AccountState& state, const Given& event);
  void Apply(AccountState& state, const Declined& event);
  void Apply(AccountState& state, const Settled& event);
  void Apply(AccountState& state, const Taken& event);
  void Apply(AccountState& state, const Refused& event);

 private:
  // Customers who wait for a transfer that is on its way. Those of a former life ask again.
  void Wait(const std::string& transfer, fraktor::ActorRef customer);

  const std::string name_;
  fraktor::AtLeastOnceDelivery delivery_;
  std::map<std::string, std::vector<fraktor::ActorRef>> waiting_;
};

// Of all that accounts are told, answer and store.
fraktor::CodecSetup AccountCodecs();

}  // namespace bank

template <>
struct fraktor::Codec<bank::Balance>
    : fraktor::FieldCodec<bank::Balance, &bank::Balance::is_open, &bank::Balance::cents, &bank::Balance::on_the_way> {
  static constexpr std::string_view kManifest = "bank.balance";
};
template <>
struct fraktor::Codec<bank::GetBalance> : fraktor::FieldCodec<bank::GetBalance> {
  static constexpr std::string_view kManifest = "bank.get_balance";
};
template <>
struct fraktor::Codec<bank::Open> : fraktor::FieldCodec<bank::Open, &bank::Open::cents> {
  static constexpr std::string_view kManifest = "bank.open";
};
template <>
struct fraktor::Codec<bank::Opened> : fraktor::FieldCodec<bank::Opened, &bank::Opened::cents> {
  static constexpr std::string_view kManifest = "bank.opened";
};

#endif  // FRAKTOR_EXAMPLES_BANK_ACCOUNT_H_
