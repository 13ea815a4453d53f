#include "fraktor/examples/bank/account.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/error_reply.h"

namespace bank {
namespace {

// A letter that is not answered for so long is sent again. Longer than an answer takes on a busy machine, or there would
// be more copies than letters.
constexpr absl::Duration kRedeliver = absl::Seconds(2);
// So many transfers of one account may be on their way.
constexpr size_t kMaxOnTheWay = 1000;

std::string PostOfficePath() { return absl::StrCat("/user/", std::string(kPostOffice)); }

}  // namespace

Account::Account(const fraktor::GrainContext& grain)
    : name_(grain.key.identity()),
      delivery_({.redeliver_interval = kRedeliver, .warn_after_attempts = 0, .max_unconfirmed = kMaxOnTheWay}) {}

std::string Account::PersistenceId() const { return absl::StrCat(std::string(kAccountPrefix), name_); }

Account::Effect Account::Handle(const AccountState& state, const Open& command) {
  const auto balance = [](const AccountState& now) { return Balance{true, now.cents, now.transfers.on_the_way()}; };
  if (state.is_open) return Reply(balance(state));
  if (command.cents < 0) {
    return Reply(fraktor::ErrorReply{absl::InvalidArgumentError(
        absl::StrCat("an account cannot be opened with ", command.cents, " cents: 0 is the least"))});
  }
  return Persist(Opened{command.cents}).ThenReply(balance);
}

Balance Account::Handle(const AccountState& state, const GetBalance&) {
  return {state.is_open, state.cents, state.transfers.on_the_way()};
}

Account::Effect Account::Handle(fraktor::ActorContext& context, const AccountState& state, const Transfer& command) {
  if (const TransferBook::Outgoing* known = state.transfers.FindOutgoing(command.transfer)) {
    if (known->to != command.to || known->cents != command.cents) {
      return Reply(fraktor::ErrorReply{absl::InvalidArgumentError(absl::StrCat(
          "transfer ", command.transfer, " was ", known->cents, " cents to ", known->to, " before, and is ",
          command.cents, " cents to ", command.to, " now: each transfer needs an id of its own"))});
    }
    if (known->outcome == Outcome::kOnTheWay) {
      Wait(command.transfer, context.sender());
      return Nothing();
    }
    return Reply(TransferResult{command.transfer, known->outcome});
  }
  if (command.cents <= 0) {
    return Reply(fraktor::ErrorReply{absl::InvalidArgumentError(
        absl::StrCat("transfer ", command.transfer, " of ", command.cents, " cents: 1 is the least"))});
  }
  if (command.cents > state.cents) {
    return Persist(Declined{command.transfer, command.to, command.cents}).ThenReply([id = command.transfer] {
      return TransferResult{id, Outcome::kDeclined};
    });
  }
  // What is stored cannot be refused any more.
  if (absl::Status deliverable = delivery_.CheckDelivery(PostOfficePath()); !deliverable.ok()) {
    return Reply(fraktor::ErrorReply{std::move(deliverable)});
  }
  return Persist(Given{command.transfer, command.to, command.cents})
      .ThenRun(
          [this, id = command.transfer](fraktor::ActorContext& now, const AccountState&) { Wait(id, now.sender()); });
}

Account::Effect Account::Handle(const AccountState& state, const Credit& command) {
  if (const bool* is_taken = state.transfers.FindIncoming(command.transfer)) {
    return Reply(Credited{command.transfer, command.from, *is_taken});
  }
  const Credited answer{command.transfer, command.from, state.is_open};
  Effect effect = state.is_open ? Persist(Taken{command.transfer, command.from, command.cents})
                                : Persist(Refused{command.transfer, command.from, command.cents});
  return std::move(effect).ThenReply([answer] { return answer; });
}

Account::Effect Account::Handle(const AccountState& state, const Credited& command) {
  const TransferBook::Outgoing* known = state.transfers.FindOutgoing(command.transfer);
  // The answer to a second copy.
  if (known == nullptr || known->outcome != Outcome::kOnTheWay) return Nothing();
  return Persist(Settled{command.transfer, command.is_taken})
      .ThenRun([this, id = command.transfer](fraktor::ActorContext& context, const AccountState& now) {
        const TransferResult result{id, now.transfers.FindOutgoing(id)->outcome};
        const auto waiting = waiting_.extract(id);
        if (waiting.empty()) return;
        for (const fraktor::ActorRef customer : waiting.mapped()) context.Tell(customer, result);
      });
}

void Account::Apply(AccountState& state, const Opened& event) {
  state.is_open = true;
  state.cents = event.cents;
}

void Account::Apply(AccountState& state, const Given& event) {
  state.cents -= event.cents;
  const uint64_t delivery_id = delivery_.Deliver(PostOfficePath(), [&](uint64_t) {
    return Credit{event.transfer, name_, event.to, event.cents};
  });
  state.transfers.AddOutgoing(event.transfer, {event.to, event.cents, delivery_id, Outcome::kOnTheWay});
}

void Account::Apply(AccountState& state, const Declined& event) {
  state.transfers.AddOutgoing(event.transfer, {event.to, event.cents, 0, Outcome::kDeclined});
}

void Account::Apply(AccountState& state, const Settled& event) {
  const TransferBook::Outgoing* known = state.transfers.FindOutgoing(event.transfer);
  delivery_.Confirm(known->delivery_id);
  if (!event.is_paid) state.cents += known->cents;
  state.transfers.Settle(event.transfer, event.is_paid ? Outcome::kPaid : Outcome::kReturned);
}

void Account::Apply(AccountState& state, const Taken& event) {
  state.cents += event.cents;
  state.transfers.AddIncoming(event.transfer, true);
}

void Account::Apply(AccountState& state, const Refused& event) { state.transfers.AddIncoming(event.transfer, false); }

void Account::Wait(const std::string& transfer, fraktor::ActorRef customer) { waiting_[transfer].push_back(customer); }

fraktor::CodecSetup AccountCodecs() {
  fraktor::CodecSetup codecs = TransferCodecs();
  codecs.Add<Balance, GetBalance, Open, Opened>();
  return codecs;
}

}  // namespace bank
