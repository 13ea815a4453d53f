// A bank of several processes whose money survives kill -9: `bank --help`.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "fraktor/examples/bank/audit.h"
#include "fraktor/examples/bank/bank_run.h"
#include "fraktor/examples/bank/node.h"
#include "fraktor/examples/bank/options.h"
#include "fraktor/examples/bank/progress.h"

namespace {

volatile sig_atomic_t interrupted = 0;

void Interrupt(int) { interrupted = 1; }

void Print(const bank::AuditReport& report) {
  std::cout << absl::StrFormat("audit of %d events of %d accounts:\n", report.events, report.accounts);
  std::cout << absl::StrFormat("  money in %d cents, money out %d cents\n", report.money_in_cents,
                               report.money_out_cents);
  std::cout << absl::StrFormat("  transfers: %d paid, %d returned, %d declined\n", report.paid, report.returned,
                               report.declined);
  std::cout << absl::StrFormat("  %d acknowledged ones are there exactly once; %d were not acknowledged\n",
                               report.confirmed, report.unacknowledged);
  for (const std::string& fault : report.faults) std::cout << "  WRONG: " << fault << "\n";
  if (report.fault_count > report.faults.size()) {
    std::cout << "  and " << report.fault_count - report.faults.size() << " more\n";
  }
  std::cout << (report.ok() ? "the audit has passed" : "THE AUDIT HAS FAILED") << std::endl;
}

// Empty if it cannot be made.
std::string FolderFor(const bank::BankOptions& options) {
  std::error_code failed;
  if (!options.dir.empty()) {
    std::filesystem::create_directories(options.dir, failed);
    return failed ? "" : std::filesystem::absolute(options.dir, failed).string();
  }
  std::string folder = std::filesystem::temp_directory_path(failed).string() + "/bank.XXXXXX";
  return failed || mkdtemp(folder.data()) == nullptr ? "" : folder;
}

int RunBank(const bank::BankOptions& options) {
  const std::string folder = FolderFor(options);
  if (folder.empty()) {
    std::cerr << "bank: cannot make the folder " << options.dir << "\n";
    return 1;
  }
  signal(SIGINT, Interrupt);
  absl::StatusOr<bank::AuditReport> report;
  {
    bank::Progress progress(std::cout, isatty(STDOUT_FILENO) != 0);
    bank::BankRun run(options, folder, progress, [] { return interrupted != 0; });
    report = run.Run();
  }
  if (report.ok()) Print(*report);
  if (report.ok() && report->ok()) {
    std::error_code ignored;
    if (options.dir.empty()) std::filesystem::remove_all(folder, ignored);
    return 0;
  }
  if (!report.ok()) std::cerr << "bank: " << report.status() << "\n";
  std::cerr << "bank: data and logs are in " << folder << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "node") {
    const absl::Status ran = bank::RunNode({words.begin() + 1, words.end()});
    if (!ran.ok()) std::cerr << "bank node: " << ran << "\n";
    return ran.ok() ? 0 : 1;
  }
  const absl::StatusOr<bank::BankOptions> options = bank::ParseOptions(words);
  if (!options.ok()) {
    std::cerr << "bank: " << options.status().message() << "\n";
    return 2;
  }
  if (options->wants_help) {
    std::cout << bank::HelpText();
    return 0;
  }
  return RunBank(*options);
}
