// What the program was told on its command line.
//
//   absl::StatusOr<BankOptions> options = ParseOptions({"--seconds=60", "--seed=7"});
#ifndef FRAKTOR_EXAMPLES_BANK_OPTIONS_H_
#define FRAKTOR_EXAMPLES_BANK_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bank {

struct BankOptions {
  bool wants_help = false;
  size_t nodes = 3;
  size_t accounts = 1000;
  size_t customers = 64;
  absl::Duration duration = absl::Seconds(20);
  uint64_t seed = 1;
  bool kills_compute = true;
  bool kills_storage = true;
  bool keep_running = false;
  // Empty: a new one below the folder for temporary files, which goes with the program.
  std::string dir = {};
};

// All of --help.
std::string HelpText();

// InvalidArgument that names the argument, and what it may be.
absl::StatusOr<BankOptions> ParseOptions(const std::vector<std::string>& arguments);

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_OPTIONS_H_
