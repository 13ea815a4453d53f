#include "fraktor/examples/bank/options.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bank {
namespace {

using testing::HasSubstr;

TEST(BankOptions, AreReadInBothForms) {
  const BankOptions options = ParseOptions({"--nodes=2", "--accounts", "50", "--seconds=5", "--customers=8", "--seed=7",
                                            "--kill=compute", "--dir", "/tmp/b", "--keep-running"})
                                  .value();
  EXPECT_EQ(options.nodes, 2u);
  EXPECT_EQ(options.accounts, 50u);
  EXPECT_EQ(options.customers, 8u);
  EXPECT_EQ(options.duration, absl::Seconds(5));
  EXPECT_EQ(options.seed, 7u);
  EXPECT_TRUE(options.kills_compute);
  EXPECT_FALSE(options.kills_storage);
  EXPECT_EQ(options.dir, "/tmp/b");
  EXPECT_TRUE(options.keep_running);
  EXPECT_FALSE(options.wants_help);
}

TEST(BankOptions, AreRefusedByName) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"--nodes=0"}, "--nodes=0: it takes a whole number from 1 to 16"},
      {{"--seconds=soon"}, "--seconds=soon"},
      {{"--kill=everybody"}, "--kill=everybody: it takes both, compute, storage or none"},
      {{"--seconds", "-1"}, "--seconds=-1: it takes a whole number from 1 to 86400"},
      {{"--nodes", "x"}, "--nodes=x: it takes a whole number from 1 to 16"},
      {{"--speed=9"}, "there is no option --speed"},
      {{"--verbose"}, "there is no option --verbose"},
      {{"--keep-running=1"}, "--keep-running takes no value"},
      {{"--seed"}, "--seed needs a value"},
      {{"fast"}, "fast is no option"},
  };
  for (const auto& [arguments, text] : refused) {
    const absl::Status status = ParseOptions(arguments).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << arguments[0];
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

TEST(BankOptions, AreAllInTheHelp) {
  EXPECT_TRUE(ParseOptions({"--help"}).value().wants_help);
  for (const char* option :
       {"--nodes", "--accounts", "--customers", "--seconds", "--kill", "--keep-running", "--seed", "--dir", "--help"}) {
    EXPECT_THAT(HelpText(), HasSubstr(option));
  }
}

}  // namespace
}  // namespace bank
