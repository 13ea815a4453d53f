// Customer: opens accounts, transfers money between accounts by chance, one transfer after the other, and asks again until
// it is told what has become of each.
//
//   auto business = std::make_shared<Business>(cluster, BusinessPlan{.customers = 64, .accounts = 1000});
//   auto customer = system.Spawn<Customer>("customer-3", business, 3);
//   system.AskAndWait(customer, OpenAccounts{}, ...);           // those that are its own: every N-th
//   auto trading = system.Ask(customer, Trade{}, ...);          // until business->Close()
//   system.AskAndWait(customer, SettleAccounts{}, ...);         // nothing is on its way any more
#ifndef FRAKTOR_EXAMPLES_BANK_CUSTOMER_H_
#define FRAKTOR_EXAMPLES_BANK_CUSTOMER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/examples/bank/account.h"
#include "fraktor/examples/bank/ledger.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/toolbox/random.h"

namespace bank {

struct BusinessPlan {
  // The beginning of the ids of transfers: no two runs have the same.
  std::string run = {};
  uint64_t seed = 1;
  size_t customers = 1;
  size_t accounts = 2;
  int64_t opening_cents = 100'000;
  // A question that is not answered for so long is asked again.
  absl::Duration answer_timeout = absl::Seconds(2);
  // For one thing, with all its questions.
  absl::Duration patience = absl::Minutes(1);
};

// What the customers of a run have in common.
class Business {
 public:
  // `cluster` must outlive it.
  Business(fraktor::Cluster& cluster, BusinessPlan plan) : cluster_(cluster), plan_(std::move(plan)) {}

  fraktor::GrainRef<Account> AccountOf(std::string_view name) const { return cluster_.Grain<Account>(name); }
  static std::string AccountName(size_t number);

  const BusinessPlan& plan() const { return plan_; }
  Ledger& ledger() { return ledger_; }

  // How many accounts have been opened, or settled: for whoever watches.
  void NoteAccount() { accounts_done_.fetch_add(1, std::memory_order_relaxed); }
  size_t TakeAccounts() { return accounts_done_.exchange(0, std::memory_order_relaxed); }

  // Customers begin nothing new.
  void Close() { is_closed_.store(true, std::memory_order_relaxed); }
  bool is_closed() const { return is_closed_.load(std::memory_order_relaxed); }

 private:
  fraktor::Cluster& cluster_;
  const BusinessPlan plan_;
  Ledger ledger_;
  // Words by themselves: nothing is read because of them.
  std::atomic<size_t> accounts_done_ = 0;
  std::atomic<bool> is_closed_ = false;
};

// How many accounts it was, and what is on them.
struct AccountSums {
  size_t accounts = 0;
  int64_t cents = 0;
};
struct OpenAccounts {
  using Reply = AccountSums;
};
struct SettleAccounts {
  using Reply = AccountSums;
};
struct Traded {
  uint64_t transfers = 0;
};
struct Trade {
  using Reply = Traded;
};

class Customer : public fraktor::Actor<Customer, OpenAccounts, Trade, SettleAccounts> {
 public:
  Customer(std::shared_ptr<Business> business, size_t number);

  fraktor::Task<AccountSums> On(Context& context, OpenAccounts command);
  fraktor::Task<Traded> On(Context& context, Trade command);
  fraktor::Task<AccountSums> On(Context& context, SettleAccounts command);

 private:
  struct Wish {
    std::string from;
    Transfer transfer;
  };
  Wish MakeWish();

  const std::shared_ptr<Business> business_;
  const size_t number_;
  fraktor::Random random_;
  uint64_t transfers_ = 0;
};

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_CUSTOMER_H_
