// A bank of several processes whose money survives kill -9: `bank --help`.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
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

// The first one ends the run in order; another one ends it.
void Interrupt(int) {
  interrupted = 1;
  signal(SIGINT, SIG_DFL);
}

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

// Until the process ends nobody else may use the folder. False if somebody does.
bool TakeFolder(const std::string& folder) {
  const int file = open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  return file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
}

int RunBank(const bank::BankOptions& options) {
  const std::string folder = FolderFor(options);
  if (folder.empty()) {
    std::cerr << "bank: cannot make the folder " << options.dir << "\n";
    return 1;
  }
  if (!TakeFolder(folder)) {
    std::cerr << "bank: " << folder << " is in use by another bank, or cannot be written: choose another --dir\n";
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
