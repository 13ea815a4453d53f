// BankRun: a whole run: nodes are started, accounts opened, money moved, nodes killed and started again; then everything
// ends in order, and the journal is looked at.
//
//   Progress progress(std::cout, isatty(STDOUT_FILENO) != 0);
//   BankRun run(options, dir, progress);
//   absl::StatusOr<AuditReport> report = run.Run();
//
// Thread safety: the thread that made it.
#ifndef FRAKTOR_EXAMPLES_BANK_BANK_RUN_H_
#define FRAKTOR_EXAMPLES_BANK_BANK_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/examples/bank/audit.h"
#include "fraktor/examples/bank/customer.h"
#include "fraktor/examples/bank/file_log_sink.h"
#include "fraktor/examples/bank/node_process.h"
#include "fraktor/examples/bank/options.h"
#include "fraktor/examples/bank/post_office.h"
#include "fraktor/examples/bank/progress.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"

namespace bank {

class BankRun {
 public:
  // `dir` is there. `is_interrupted` says whether somebody wants it to end.
  BankRun(const BankOptions& options, std::string dir, Progress& progress, std::function<bool()> is_interrupted);
  ~BankRun();
  BankRun(const BankRun&) = delete;
  BankRun& operator=(const BankRun&) = delete;

  absl::StatusOr<AuditReport> Run();

 private:
  // Somebody is killed, and later started again.
  struct Fate {
    NodeProcess* node = nullptr;
    absl::Duration dies_at;
    absl::Duration returns_at;
  };

  absl::Status StartNodes();
  absl::Status StartCustomers();
  absl::Status OpenAll();
  absl::Status TradeAll();
  absl::Status SettleAll();
  absl::Status EndNodes();
  absl::StatusOr<AuditReport> LookAtJournal();

  // Asks all customers, shows progress meanwhile, and adds up what they answer.
  template <class Command>
  absl::StatusOr<AccountSums> AskAllForSums(const std::string& doing);
  std::vector<Fate> FatesOf(size_t round) const;
  absl::Status Meet(std::vector<Fate>& fates, absl::Duration elapsed);
  void ShowTrade(fraktor::Instant now, absl::Duration elapsed);
  // Takes the reports that have come, and asks for the next ones.
  uint64_t CountActivations();
  fraktor::Instant Now() const { return system_->toolbox().Now(); }

  const BankOptions options_;
  const std::string dir_;
  Progress& progress_;
  const std::function<bool()> is_interrupted_;

  std::unique_ptr<NodeProcess> storage_;
  std::vector<std::unique_ptr<NodeProcess>> compute_;
  std::unique_ptr<FileLogSink> log_;
  // These go before the nodes do.
  std::unique_ptr<fraktor::ActorSystem> system_;
  fraktor::Cluster* cluster_ = nullptr;
  std::shared_ptr<Business> business_;
  std::vector<fraktor::RefOf<Customer>> customers_;

  // What each compute node has said last, and what it is being asked.
  std::vector<uint64_t> activations_;
  std::vector<bool> answers_;
  std::vector<fraktor::Future<NodeReport>> asking_;
  fraktor::Instant shown_at_;
};

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_BANK_RUN_H_
