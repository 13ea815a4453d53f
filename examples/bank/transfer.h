// A transfer: how money gets from one account to another, when any of the two may die at any moment, with its node.
//
//   customer --Transfer--> giver     Given is stored: the money has left the giver, and is on its way. From now on the
//                                    giver sends, again and again, until there is an answer:
//            giver --Credit--> taker Taken is stored, or Refused if there is no such account. Either is for good: the same
//                                    answer is given to each copy of the Credit that comes later.
//            giver <-Credited- taker Settled is stored: the transfer is paid; or it was refused, and the money is back.
//   customer <-TransferResult- giver
//
// That is a saga: steps that are stored one by one on different nodes, each of which can be repeated, and a step back where
// the way forward is closed. A transfer that the giver has no money for is stored as well (Declined): so what a customer
// has been told is in the journal once, whatever it was told.
//
// A customer who gets no answer sends the same Transfer again, with the same id, and is told what has become of the first.
#ifndef FRAKTOR_EXAMPLES_BANK_TRANSFER_H_
#define FRAKTOR_EXAMPLES_BANK_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"

namespace bank {

enum class Outcome : uint8_t {
  kOnTheWay,
  kPaid,
  kReturned,  // there was nobody to take it
  kDeclined,  // there was not so much on the account
};
std::string_view NameOf(Outcome outcome);

// Between customers and accounts.
struct TransferResult {
  std::string transfer = {};
  Outcome outcome = Outcome::kOnTheWay;
};
struct Transfer {
  using Reply = TransferResult;
  // Of this transfer and no other, in all time.
  std::string transfer = {};
  std::string to = {};
  int64_t cents = 0;
};

// Between accounts. Both go by the post office of the node (post_office.h), which knows where accounts are.
struct Credit {
  std::string transfer = {};
  std::string from = {};
  std::string to = {};
  int64_t cents = 0;
};
struct Credited {
  std::string transfer = {};
  std::string from = {};  // who gave, and gets this
  bool is_taken = false;
};

// Events of the giver,
struct Given {
  std::string transfer = {};
  std::string to = {};
  int64_t cents = 0;
};
struct Declined {
  std::string transfer = {};
  std::string to = {};
  int64_t cents = 0;
};
struct Settled {
  std::string transfer = {};
  bool is_paid = false;
};
// and of the taker.
struct Taken {
  std::string transfer = {};
  std::string from = {};
  int64_t cents = 0;
};
struct Refused {
  std::string transfer = {};
  std::string from = {};
  int64_t cents = 0;
};

// What an account knows of its transfers.
//
// It remembers all of them: a copy of any may come late. (Accounts that live for ever would let the giver say up to which
// transfer all is settled, and forget those.)
class TransferBook {
 public:
  struct Outgoing {
    std::string to = {};
    int64_t cents = 0;
    uint64_t delivery_id = 0;
    Outcome outcome = Outcome::kOnTheWay;
  };

  // Null if it was never asked for.
  const Outgoing* FindOutgoing(const std::string& transfer) const;
  void AddOutgoing(const std::string& transfer, Outgoing outgoing);
  // Of one that is on its way.
  void Settle(const std::string& transfer, Outcome outcome);

  // Whether it was taken or refused; null if it never came.
  const bool* FindIncoming(const std::string& transfer) const;
  void AddIncoming(const std::string& transfer, bool is_taken);

  size_t on_the_way() const { return on_the_way_; }

 private:
  std::map<std::string, Outgoing> outgoing_;
  std::map<std::string, bool> incoming_;
  size_t on_the_way_ = 0;
};

// Of all the above.
fraktor::CodecSetup TransferCodecs();

}  // namespace bank

template <>
struct fraktor::Codec<bank::TransferResult>
    : fraktor::FieldCodec<bank::TransferResult, &bank::TransferResult::transfer, &bank::TransferResult::outcome> {
  static constexpr std::string_view kManifest = "bank.transfer_result";
};
template <>
struct fraktor::Codec<bank::Transfer>
    : fraktor::FieldCodec<bank::Transfer, &bank::Transfer::transfer, &bank::Transfer::to, &bank::Transfer::cents> {
  static constexpr std::string_view kManifest = "bank.transfer";
};
template <>
struct fraktor::Codec<bank::Credit> : fraktor::FieldCodec<bank::Credit, &bank::Credit::transfer, &bank::Credit::from,
                                                          &bank::Credit::to, &bank::Credit::cents> {
  static constexpr std::string_view kManifest = "bank.credit";
};
template <>
struct fraktor::Codec<bank::Credited>
    : fraktor::FieldCodec<bank::Credited, &bank::Credited::transfer, &bank::Credited::from, &bank::Credited::is_taken> {
  static constexpr std::string_view kManifest = "bank.credited";
};
template <>
struct fraktor::Codec<bank::Given>
    : fraktor::FieldCodec<bank::Given, &bank::Given::transfer, &bank::Given::to, &bank::Given::cents> {
  static constexpr std::string_view kManifest = "bank.given";
};
template <>
struct fraktor::Codec<bank::Declined>
    : fraktor::FieldCodec<bank::Declined, &bank::Declined::transfer, &bank::Declined::to, &bank::Declined::cents> {
  static constexpr std::string_view kManifest = "bank.declined";
};
template <>
struct fraktor::Codec<bank::Settled>
    : fraktor::FieldCodec<bank::Settled, &bank::Settled::transfer, &bank::Settled::is_paid> {
  static constexpr std::string_view kManifest = "bank.settled";
};
template <>
struct fraktor::Codec<bank::Taken>
    : fraktor::FieldCodec<bank::Taken, &bank::Taken::transfer, &bank::Taken::from, &bank::Taken::cents> {
  static constexpr std::string_view kManifest = "bank.taken";
};
template <>
struct fraktor::Codec<bank::Refused>
    : fraktor::FieldCodec<bank::Refused, &bank::Refused::transfer, &bank::Refused::from, &bank::Refused::cents> {
  static constexpr std::string_view kManifest = "bank.refused";
};

#endif  // FRAKTOR_EXAMPLES_BANK_TRANSFER_H_
