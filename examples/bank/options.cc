#include "fraktor/examples/bank/options.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/status_macros.h"

namespace bank {
namespace {

constexpr std::string_view kWithValue[] = {"--nodes", "--accounts", "--customers", "--seconds",
                                           "--seed",  "--kill",     "--dir"};

absl::StatusOr<uint64_t> NumberOf(const std::string& name, const std::string& value, uint64_t least, uint64_t most) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(value, &number) && number >= least && number <= most) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", value, ": it takes a whole number from ", least, " to ", most));
}

absl::Status TakeKill(const std::string& value, BankOptions& options) {
  if (value != "both" && value != "compute" && value != "storage" && value != "none") {
    return absl::InvalidArgumentError(absl::StrCat("--kill=", value, ": it takes both, compute, storage or none"));
  }
  options.kills_compute = value == "both" || value == "compute";
  options.kills_storage = value == "both" || value == "storage";
  return absl::OkStatus();
}

absl::Status Take(const std::string& name, const std::string& value, BankOptions& options) {
  if (name == "--nodes") {
    FRAKTOR_ASSIGN_OR_RETURN(options.nodes, NumberOf(name, value, 1, 16));
  } else if (name == "--accounts") {
    FRAKTOR_ASSIGN_OR_RETURN(options.accounts, NumberOf(name, value, 2, 1'000'000));
  } else if (name == "--customers") {
    FRAKTOR_ASSIGN_OR_RETURN(options.customers, NumberOf(name, value, 1, 10'000));
  } else if (name == "--seconds") {
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t seconds, NumberOf(name, value, 1, 86'400));
    options.duration = absl::Seconds(seconds);
  } else if (name == "--seed") {
    FRAKTOR_ASSIGN_OR_RETURN(options.seed, NumberOf(name, value, 0, UINT64_MAX));
  } else if (name == "--kill") {
    return TakeKill(value, options);
  } else {
    if (value.empty()) return absl::InvalidArgumentError("--dir=: it takes a folder");
    options.dir = value;
  }
  return absl::OkStatus();
}

}  // namespace

std::string HelpText() {
  return R"(bank: a bank of several processes whose money survives kill -9.

Starts a storage node, which has the journal and the placement of the cluster in RocksDB, and compute nodes, on which
accounts live as grains: all on this machine, over gRPC with mutual TLS. Opens accounts, transfers money between them,
kills a compute node and starts it again, does the same to the storage node, and ends with an audit of the journal: money
in = money out, and every transfer that a customer was told of is there exactly once. Returns 0 if that is so.

  bank [options]

  --nodes=N           compute nodes, 1 to 16; default 3
  --accounts=N        accounts, 2 to 1000000; default 1000
  --customers=N       customers, each with one transfer at a time, 1 to 10000; default 64
  --seconds=N         how long transfers are made, 1 to 86400; default 20
  --kill=WHICH        who is killed on the way: both (the default), compute, storage or none
  --keep-running      begin again, kills included, when the time is over; Ctrl-C ends it, with the audit
  --seed=N            who transfers how much to whom; default 1. (When which message comes is not in it.)
  --dir=FOLDER        where data, certificates and logs go. It is made if it is not there, and stays; a bank that is there
                      already goes on. Default: a new folder, which is removed if all is well
  --help              this text

The line of progress has, for the last second: transfers that were acknowledged, the time within which 99 of 100 of them
were, from the first question of the customer to the answer, with all that had to be asked again; then how many accounts
are in the memory of all nodes, and how many compute nodes answer.

Ctrl-C ends it early, with the audit; a second one ends it at once, and its nodes by themselves some seconds later.
)";
}

absl::StatusOr<BankOptions> ParseOptions(const std::vector<std::string>& arguments) {
  BankOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.wants_help = true;
      continue;
    }
    if (argument == "--keep-running") {
      options.keep_running = true;
      continue;
    }
    if (!argument.starts_with("--")) {
      return absl::InvalidArgumentError(absl::StrCat(argument, " is no option; --help shows those that there are"));
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (name == "--keep-running" || name == "--help") {
      return absl::InvalidArgumentError(absl::StrCat(name, " takes no value"));
    }
    if (std::find(std::begin(kWithValue), std::end(kWithValue), name) == std::end(kWithValue)) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no option ", name, "; --help shows those that there are"));
    }
    if (equals != std::string::npos) {
      FRAKTOR_RETURN_IF_ERROR(Take(name, argument.substr(equals + 1), options));
    } else if (i + 1 < arguments.size()) {
      FRAKTOR_RETURN_IF_ERROR(Take(name, arguments[++i], options));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs a value: ", name, "=..."));
    }
  }
  return options;
}

}  // namespace bank
