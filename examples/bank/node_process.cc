#include "fraktor/examples/bank/node_process.h"

#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "fraktor/examples/bank/node.h"
#include "fraktor/utils/status/status_macros.h"

namespace bank {

absl::Status NodeProcess::Start() {
  std::vector<std::string> command = {plan_.program, "node", plan_.name, plan_.dir, absl::StrCat(port_)};
  if (!plan_.storage.empty()) command.push_back(plan_.storage);
  FRAKTOR_ASSIGN_OR_RETURN(fraktor::ChildProcess process, fraktor::ChildProcess::Start(command));
  const absl::StatusOr<std::string> line = process.ReadLine();
  uint32_t port = 0;
  if (!line.ok() || !line->starts_with("ready ") || !absl::SimpleAtoi(line->substr(6), &port)) {
    process.Signal(SIGKILL);
    return absl::UnavailableError(absl::StrCat("node ", plan_.name, " did not start (",
                                               line.ok() ? *line : std::string(line.status().message()), "); ",
                                               LogFile(plan_.dir, plan_.name), " has more"));
  }
  port_ = static_cast<uint16_t>(port);
  process_.emplace(std::move(process));
  return absl::OkStatus();
}

void NodeProcess::Kill() {
  if (!process_.has_value()) return;
  process_->Signal(SIGKILL);
  process_->Wait();
  process_.reset();
}

absl::Status NodeProcess::End() {
  if (!process_.has_value()) return absl::OkStatus();
  process_->CloseInput();
  const int code = process_->Wait();
  process_.reset();
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("node ", plan_.name, " ended with ", code, "; ", LogFile(plan_.dir, plan_.name), " has more"));
}

std::string NodeProcess::authority() const { return absl::StrCat("localhost:", port_); }

}  // namespace bank
