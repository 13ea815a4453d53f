#include "fraktor/examples/bank/transfer.h"

#include <string>
#include <string_view>
#include <utility>

namespace bank {

std::string_view NameOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOnTheWay:
      return "on the way";
    case Outcome::kPaid:
      return "paid";
    case Outcome::kReturned:
      return "returned";
    case Outcome::kDeclined:
      return "declined";
  }
  return "unknown";
}

const TransferBook::Outgoing* TransferBook::FindOutgoing(const std::string& transfer) const {
  const auto found = outgoing_.find(transfer);
  return found == outgoing_.end() ? nullptr : &found->second;
}

void TransferBook::AddOutgoing(const std::string& transfer, Outgoing outgoing) {
  if (outgoing.outcome == Outcome::kOnTheWay) ++on_the_way_;
  outgoing_.emplace(transfer, std::move(outgoing));
}

void TransferBook::Settle(const std::string& transfer, Outcome outcome) {
  outgoing_.at(transfer).outcome = outcome;
  --on_the_way_;
}

const bool* TransferBook::FindIncoming(const std::string& transfer) const {
  const auto found = incoming_.find(transfer);
  return found == incoming_.end() ? nullptr : &found->second;
}

void TransferBook::AddIncoming(const std::string& transfer, bool is_taken) { incoming_.emplace(transfer, is_taken); }

fraktor::CodecSetup TransferCodecs() {
  fraktor::CodecSetup codecs;
  codecs.Add<Transfer, TransferResult, Credit, Credited, Given, Declined, Settled, Taken, Refused>();
  return codecs;
}

}  // namespace bank
