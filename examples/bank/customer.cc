#include "fraktor/examples/bank/customer.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace bank {
namespace {

// Before the same thing is asked again.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// One of so many transfers goes to an account that nobody has opened.
constexpr uint64_t kNobodyEvery = 50;
constexpr size_t kNobodies = 10;

fraktor::Instant Now(fraktor::ActorContext& context) { return context.system().toolbox().Now(); }

// Whether to ask again makes no difference.
bool IsFinal(const absl::Status& status) { return absl::IsInvalidArgument(status); }

}  // namespace

std::string Business::AccountName(size_t number) { return absl::StrCat("a", number); }

Customer::Customer(std::shared_ptr<Business> business, size_t number)
    : business_(std::move(business)), number_(number), random_(fraktor::Random(business_->plan().seed).Fork(number)) {}

fraktor::Task<AccountSums> Customer::On(Context& context, OpenAccounts) {
  AccountSums sums;
  const fraktor::Instant until = Now(context) + business_->plan().patience;
  for (size_t i = number_; i < business_->plan().accounts; i += business_->plan().customers) {
    const fraktor::GrainRef<Account> account = business_->AccountOf(Business::AccountName(i));
    for (;;) {
      auto asking = account.Ask(context, Open{business_->plan().opening_cents}, business_->plan().answer_timeout);
      const absl::StatusOr<Balance> balance = co_await asking;
      if (balance.ok()) {
        ++sums.accounts;
        sums.cents += balance->cents;
        break;
      }
      if (IsFinal(balance.status()) || Now(context) >= until) co_return balance.status();
      business_->ledger().NoteRetry(balance.status());
      auto pause = context.Delay(kPause);
      co_await pause;
    }
    business_->NoteAccount();
  }
  co_return sums;
}

fraktor::Task<Traded> Customer::On(Context& context, Trade) {
  while (!business_->is_closed()) {
    const Wish wish = MakeWish();
    const fraktor::GrainRef<Account> account = business_->AccountOf(wish.from);
    const fraktor::Instant began = Now(context);
    for (;;) {
      auto asking = account.Ask(context, wish.transfer, business_->plan().answer_timeout);
      const absl::StatusOr<TransferResult> result = co_await asking;
      if (result.ok()) {
        business_->ledger().NoteAcknowledged(
            {wish.transfer.transfer, wish.from, wish.transfer.to, wish.transfer.cents, result->outcome},
            Now(context) - began);
        break;
      }
      if (IsFinal(result.status())) co_return result.status();
      business_->ledger().NoteRetry(result.status());
      if (Now(context) - began >= business_->plan().patience) {
        business_->ledger().NoteUnanswered();
        break;
      }
      auto pause = context.Delay(kPause);
      co_await pause;
    }
  }
  co_return Traded{transfers_};
}

fraktor::Task<AccountSums> Customer::On(Context& context, SettleAccounts) {
  AccountSums sums;
  const fraktor::Instant until = Now(context) + business_->plan().patience;
  for (size_t i = number_; i < business_->plan().accounts; i += business_->plan().customers) {
    const fraktor::GrainRef<Account> account = business_->AccountOf(Business::AccountName(i));
    for (;;) {
      // An account that has come back sends what is on its way by itself.
      auto asking = account.Ask(context, GetBalance{}, business_->plan().answer_timeout);
      const absl::StatusOr<Balance> balance = co_await asking;
      if (balance.ok() && balance->on_the_way == 0) {
        ++sums.accounts;
        sums.cents += balance->cents;
        break;
      }
      if (Now(context) >= until) {
        if (!balance.ok()) co_return balance.status();
        co_return absl::DeadlineExceededError(
            absl::StrCat(balance->on_the_way, " transfers of ", Business::AccountName(i), " are still on their way"));
      }
      auto pause = context.Delay(kPause);
      co_await pause;
    }
    business_->NoteAccount();
  }
  co_return sums;
}

Customer::Wish Customer::MakeWish() {
  const uint64_t from = random_.Uniform(business_->plan().accounts);
  // Any other than that.
  const uint64_t to = (from + 1 + random_.Uniform(business_->plan().accounts - 1)) % business_->plan().accounts;
  const bool is_to_nobody = random_.Uniform(kNobodyEvery) == 0;
  return {
      .from = Business::AccountName(from),
      .transfer = {.transfer = absl::StrCat(business_->plan().run, "-", number_, "-", ++transfers_),
                   .to = is_to_nobody ? absl::StrCat("nobody", random_.Uniform(kNobodies)) : Business::AccountName(to),
                   // Now and then more than there is.
                   .cents = random_.UniformIn(1, business_->plan().opening_cents)}};
}

}  // namespace bank
