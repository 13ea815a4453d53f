#include "fraktor/examples/bank/bank_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "fraktor/examples/bank/certificates.h"
#include "fraktor/examples/bank/node.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/utils/future/when_all.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace bank {
namespace {

constexpr char kCustomersName[] = "customers";
constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kShowEvery = absl::Seconds(1);
// For one phase of all customers, whose own patience is shorter.
constexpr absl::Duration kPhase = absl::Hours(25);
constexpr absl::Duration kPatience = absl::Minutes(2);

std::string Cents(int64_t cents) { return absl::StrFormat("%d.%02d", cents / 100, cents % 100); }

}  // namespace

BankRun::BankRun(const BankOptions& options, std::string dir, Progress& progress, std::function<bool()> is_interrupted)
    : options_(options), dir_(std::move(dir)), progress_(progress), is_interrupted_(std::move(is_interrupted)) {}

BankRun::~BankRun() {
  asking_.clear();
  if (system_ != nullptr) system_->Shutdown(absl::Seconds(5));
}

absl::StatusOr<AuditReport> BankRun::Run() {
  FRAKTOR_RETURN_IF_ERROR(StartNodes());
  FRAKTOR_RETURN_IF_ERROR(StartCustomers());
  FRAKTOR_RETURN_IF_ERROR(OpenAll());
  FRAKTOR_RETURN_IF_ERROR(TradeAll());
  FRAKTOR_RETURN_IF_ERROR(SettleAll());
  FRAKTOR_RETURN_IF_ERROR(EndNodes());
  return LookAtJournal();
}

absl::Status BankRun::StartNodes() {
  std::vector<std::string> names = {kStorageName, kCustomersName};
  for (size_t i = 1; i <= options_.nodes; ++i) names.push_back(absl::StrCat("compute-", i));
  std::error_code failed;
  std::filesystem::create_directories(CertificatesFolder(dir_), failed);
  if (failed) return absl::UnavailableError(absl::StrCat("cannot make ", dir_, ": ", failed.message()));
  FRAKTOR_RETURN_IF_ERROR(MakeCertificates(CertificatesFolder(dir_), names));

  const std::string program = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  storage_ = std::make_unique<NodeProcess>(NodePlan{.program = program, .name = kStorageName, .dir = dir_});
  FRAKTOR_RETURN_IF_ERROR(storage_->Start());
  for (size_t i = 1; i <= options_.nodes; ++i) {
    compute_.push_back(std::make_unique<NodeProcess>(NodePlan{
        .program = program, .name = absl::StrCat("compute-", i), .dir = dir_, .storage = storage_->authority()}));
    FRAKTOR_RETURN_IF_ERROR(compute_.back()->Start());
  }
  progress_.Say(absl::StrCat("a storage node at ", storage_->authority(), " and ", options_.nodes,
                             " compute nodes, with mutual TLS; data and logs are in ", dir_));
  return absl::OkStatus();
}

absl::Status BankRun::StartCustomers() {
  FRAKTOR_ASSIGN_OR_RETURN(log_, FileLogSink::Open(LogFile(dir_, kCustomersName)));
  FRAKTOR_ASSIGN_OR_RETURN(system_, StartSystem({.name = kCustomersName, .dir = dir_, .log = log_.get()}));
  FRAKTOR_ASSIGN_OR_RETURN(cluster_, JoinCluster(*system_, {.storage = storage_->authority()}));
  business_ = std::make_shared<Business>(*cluster_, BusinessPlan{.run = absl::StrCat(absl::ToUnixMillis(absl::Now())),
                                                                 .seed = options_.seed,
                                                                 .customers = options_.customers,
                                                                 .accounts = options_.accounts,
                                                                 .patience = kPatience});
  for (size_t i = 0; i < options_.customers; ++i) {
    FRAKTOR_ASSIGN_OR_RETURN(auto customer, system_->TrySpawn<Customer>(absl::StrCat("customer-", i), business_, i));
    customers_.push_back(customer);
  }
  activations_.assign(options_.nodes, 0);
  answers_.assign(options_.nodes, false);
  asking_.resize(options_.nodes);
  return absl::OkStatus();
}

template <class Command>
absl::StatusOr<AccountSums> BankRun::AskAllForSums(const std::string& doing) {
  std::vector<fraktor::Future<AccountSums>> asking;
  for (const auto& customer : customers_) asking.push_back(system_->Ask(customer, Command{}, kPhase));
  auto all = fraktor::WhenAll(std::move(asking));
  size_t done = 0;
  for (;;) {
    auto answers = all.WaitFor(kShowEvery);
    done += business_->TakeAccounts();
    if (!answers.has_value()) {
      if (is_interrupted_() && !business_->is_closed()) {
        return absl::CancelledError(absl::StrCat("interrupted while ", doing, " accounts: there is no audit"));
      }
      progress_.Show(absl::StrCat(doing, ": ", done, " of ", options_.accounts, " accounts"));
      continue;
    }
    if (!answers->ok()) return answers->status();
    AccountSums sums;
    for (const AccountSums& one : **answers) {
      sums.accounts += one.accounts;
      sums.cents += one.cents;
    }
    return sums;
  }
}

absl::Status BankRun::OpenAll() {
  const fraktor::Instant began = Now();
  FRAKTOR_ASSIGN_OR_RETURN(const AccountSums sums, AskAllForSums<OpenAccounts>("opening"));
  progress_.Say(absl::StrFormat("%d accounts are open, with %s in all, after %.1f s", sums.accounts, Cents(sums.cents),
                                absl::ToDoubleSeconds(Now() - began)));
  return absl::OkStatus();
}

std::vector<BankRun::Fate> BankRun::FatesOf(size_t round) const {
  const absl::Duration begin = static_cast<int64_t>(round) * options_.duration;
  const absl::Duration away = std::min(absl::Seconds(1), options_.duration / 10);
  std::vector<Fate> fates;
  if (options_.kills_compute) {
    const absl::Duration at = begin + options_.duration * 0.25;
    fates.push_back({compute_[(round + 1) % compute_.size()].get(), at, at + away});
  }
  if (options_.kills_storage) {
    const absl::Duration at = begin + options_.duration * 0.6;
    fates.push_back({storage_.get(), at, at + away});
  }
  return fates;
}

absl::Status BankRun::Meet(std::vector<Fate>& fates, absl::Duration elapsed) {
  for (Fate& fate : fates) {
    if (fate.node == nullptr) continue;
    if (fate.node->is_running() && elapsed >= fate.dies_at) {
      fate.node->Kill();
      fate.dies_at = absl::InfiniteDuration();
      progress_.Say(absl::StrFormat("%5.1f s  kill -9 of %s", absl::ToDoubleSeconds(elapsed), fate.node->name()));
    } else if (!fate.node->is_running() && elapsed >= fate.returns_at) {
      FRAKTOR_RETURN_IF_ERROR(fate.node->Start());
      progress_.Say(absl::StrFormat("%5.1f s  %s is started again", absl::ToDoubleSeconds(elapsed), fate.node->name()));
      fate.node = nullptr;
    }
  }
  return absl::OkStatus();
}

absl::Status BankRun::TradeAll() {
  std::vector<fraktor::Future<Traded>> asking;
  for (const auto& customer : customers_) asking.push_back(system_->Ask(customer, Trade{}, kPhase));
  auto all = fraktor::WhenAll(std::move(asking));
  const fraktor::Instant began = Now();
  shown_at_ = began;
  CountActivations();
  size_t round = 0;
  std::vector<Fate> fates = FatesOf(round);
  for (;;) {
    auto answers = all.WaitFor(kTick);
    const fraktor::Instant now = Now();
    const absl::Duration elapsed = now - began;
    if (now - shown_at_ >= kShowEvery || answers.has_value()) ShowTrade(now, elapsed);
    if (answers.has_value()) {
      FRAKTOR_RETURN_IF_ERROR(answers->status());
      break;
    }
    // Who was killed returns, also when the time is over.
    const bool is_over = elapsed >= static_cast<int64_t>(round + 1) * options_.duration;
    if (is_over && options_.keep_running) {
      for (const Fate& fate : FatesOf(++round)) fates.push_back(fate);
    } else if (is_over || is_interrupted_()) {
      business_->Close();
    }
    FRAKTOR_RETURN_IF_ERROR(Meet(fates, elapsed));
    std::erase_if(fates, [](const Fate& fate) { return fate.node == nullptr; });
  }
  // Nobody is left dead.
  for (Fate& fate : fates) {
    if (!fate.node->is_running()) FRAKTOR_RETURN_IF_ERROR(fate.node->Start());
  }
  const Ledger::Totals totals = business_->ledger().totals();
  progress_.Say(absl::StrFormat(
      "%d transfers were acknowledged: %.0f per second, p50 %s, p99 %s; %d questions were asked "
      "again, %d transfers were given up",
      totals.acknowledged, static_cast<double>(totals.acknowledged) / absl::ToDoubleSeconds(Now() - began),
      absl::FormatDuration(absl::Trunc(totals.latencies.Percentile(0.5), absl::Microseconds(100))),
      absl::FormatDuration(absl::Trunc(totals.latencies.Percentile(0.99), absl::Milliseconds(1))), totals.retries,
      totals.unanswered));
  return absl::OkStatus();
}

void BankRun::ShowTrade(fraktor::Instant now, absl::Duration elapsed) {
  const Latencies recent = business_->ledger().TakeRecent();
  const double seconds = absl::ToDoubleSeconds(now - shown_at_);
  shown_at_ = now;
  const uint64_t activations = CountActivations();
  progress_.Show(absl::StrFormat("%5.1f s  %6.0f transfers/s   p99 %6.0f ms   %d activations   %d of %d nodes",
                                 absl::ToDoubleSeconds(elapsed),
                                 seconds > 0 ? static_cast<double>(recent.count()) / seconds : 0,
                                 absl::ToDoubleMilliseconds(recent.Percentile(0.99)), activations,
                                 std::count(answers_.begin(), answers_.end(), true), compute_.size()));
}

uint64_t BankRun::CountActivations() {
  uint64_t sum = 0;
  for (size_t i = 0; i < compute_.size(); ++i) {
    if (asking_[i].valid() && asking_[i].IsReady()) {
      const absl::StatusOr<NodeReport> report = asking_[i].Take();
      answers_[i] = report.ok();
      activations_[i] = report.ok() ? report->activations : 0;
    }
    if (!asking_[i].valid()) {
      const absl::StatusOr<fraktor::ActorRef> post = system_->Resolve(
          absl::StrCat("pekko://", kSystemName, "@", compute_[i]->authority(), "/user/", std::string(kPostOffice)));
      if (post.ok()) asking_[i] = system_->Ask<NodeReport>(*post, GetNodeReport{}, kShowEvery);
    }
    sum += activations_[i];
  }
  return sum;
}

absl::Status BankRun::SettleAll() {
  FRAKTOR_ASSIGN_OR_RETURN(const AccountSums sums, AskAllForSums<SettleAccounts>("settling"));
  progress_.Say(absl::StrCat("all is settled: the accounts say that they have ", Cents(sums.cents), " in all"));
  return absl::OkStatus();
}

absl::Status BankRun::EndNodes() {
  asking_.clear();
  FRAKTOR_RETURN_IF_ERROR(cluster_->Leave().Wait());
  for (const auto& node : compute_) FRAKTOR_RETURN_IF_ERROR(node->End());
  return storage_->End();
}

absl::StatusOr<AuditReport> BankRun::LookAtJournal() {
  FRAKTOR_ASSIGN_OR_RETURN(auto toolbox, fraktor::StdToolbox::Make({.name = "audit"}));
  FRAKTOR_ASSIGN_OR_RETURN(auto journal,
                           fraktor::RocksDbJournal::Open(*toolbox, {.path = JournalFolder(dir_), .read_only = true}));
  return Audit(*journal, {.accounts = options_.accounts,
                          .opening_cents = business_->plan().opening_cents,
                          .acknowledged = business_->ledger().TakeAcknowledged()});
}

}  // namespace bank
