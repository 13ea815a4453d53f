// Audit: reads a journal from its beginning to its end, and says whether the bank is honest.
//
//   FRAKTOR_ASSIGN_OR_RETURN(AuditReport report, Audit(*journal, {.accounts = 1000, .opening_cents = 100'000,
//                                                                 .acknowledged = ledger.acknowledged()}));
//   if (!report.ok()) ...                                       // report.faults says what is wrong
//
// What must be so:
// - Each account was opened once, with what it was opened with, and never had less than nothing.
// - Each transfer has its events once, on the right accounts, with the same amount: given, taken and settled; or given,
//   refused and settled, with the money back; or declined.
// - What customers were told is what happened: each transfer that was acknowledged is there, with that outcome.
// - Money in = money out: all balances together are what was brought when accounts were opened.
#ifndef FRAKTOR_EXAMPLES_BANK_AUDIT_H_
#define FRAKTOR_EXAMPLES_BANK_AUDIT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/examples/bank/transfer.h"
#include "fraktor/persistence/journal/journal_storage.h"

namespace bank {

// What a customer was told.
struct Acknowledged {
  std::string transfer = {};
  std::string from = {};
  std::string to = {};
  int64_t cents = 0;
  Outcome outcome = Outcome::kOnTheWay;
};

struct AuditQuestion {
  // So many at least were opened, each with so much.
  size_t accounts = 0;
  int64_t opening_cents = 0;
  std::vector<Acknowledged> acknowledged = {};
};

struct AuditReport {
  uint64_t events = 0;
  size_t accounts = 0;
  int64_t money_in_cents = 0;
  int64_t money_out_cents = 0;
  size_t paid = 0;
  size_t returned = 0;
  size_t declined = 0;
  // Of the acknowledged ones, those that are in the journal exactly once with the outcome that the customer was told.
  size_t confirmed = 0;
  // In the journal, complete, and nobody was told: of an earlier run, or of customers who were not answered.
  size_t unacknowledged = 0;
  // The first of them, as texts, and how many there are.
  std::vector<std::string> faults = {};
  size_t fault_count = 0;

  bool ok() const { return fault_count == 0; }
};

// Errors: what the journal says, and events that cannot be read. Waits: not on a worker.
absl::StatusOr<AuditReport> Audit(fraktor::JournalStorage& journal, const AuditQuestion& question);

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_AUDIT_H_
