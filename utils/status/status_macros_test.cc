#include "fraktor/utils/status/status_macros.h"

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

absl::Status FailIf(bool fail) { return fail ? absl::NotFoundError("gone") : absl::OkStatus(); }

absl::StatusOr<std::unique_ptr<int>> Box(int value) {
  if (value < 0) return absl::OutOfRangeError("negative");
  return std::make_unique<int>(value);
}

TEST(ReturnIfError, ReturnsTheErrorAndGoesOnWhenThereIsNone) {
  int steps = 0;
  const auto run = [&](bool fail) -> absl::Status {
    FRAKTOR_RETURN_IF_ERROR(FailIf(fail));
    ++steps;
    return absl::OkStatus();
  };
  EXPECT_EQ(run(true), absl::NotFoundError("gone"));
  EXPECT_EQ(steps, 0);
  EXPECT_TRUE(run(false).ok());
  EXPECT_EQ(steps, 1);
}

TEST(ReturnIfError, WorksInAFunctionThatReturnsAValue) {
  const auto run = [](bool fail) -> absl::StatusOr<std::string> {
    FRAKTOR_RETURN_IF_ERROR(FailIf(fail));
    return "value";
  };
  EXPECT_EQ(run(true).status(), absl::NotFoundError("gone"));
  EXPECT_EQ(run(false).value(), "value");
}

TEST(ReturnIfError, IsOneStatementBehindAnIf) {
  const auto run = [](bool check, bool fail) -> absl::Status {
    if (check)
      FRAKTOR_RETURN_IF_ERROR(FailIf(fail));
    else
      return absl::AbortedError("not checked");
    return absl::OkStatus();
  };
  EXPECT_EQ(run(true, true), absl::NotFoundError("gone"));
  EXPECT_EQ(run(true, false), absl::OkStatus());
  EXPECT_EQ(run(false, true), absl::AbortedError("not checked"));
}

TEST(ReturnIfError, EvaluatesTheExpressionOnce) {
  int calls = 0;
  const auto count = [&](bool fail) {
    ++calls;
    return FailIf(fail);
  };
  const auto run = [&](bool fail) -> absl::Status {
    FRAKTOR_RETURN_IF_ERROR(count(fail));
    return absl::OkStatus();
  };
  EXPECT_FALSE(run(true).ok());
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(run(false).ok());
  EXPECT_EQ(calls, 2);
}

TEST(ReturnIfError, MayBeUsedInALambdaInsideItsOwnExpression) {
  const auto run = [](bool inner, bool outer) -> absl::Status {
    FRAKTOR_RETURN_IF_ERROR([&]() -> absl::Status {
      FRAKTOR_RETURN_IF_ERROR(FailIf(inner));
      return outer ? absl::AbortedError("outer") : absl::OkStatus();
    }());
    return absl::OkStatus();
  };
  EXPECT_EQ(run(true, false), absl::NotFoundError("gone"));
  EXPECT_EQ(run(false, true), absl::AbortedError("outer"));
  EXPECT_EQ(run(false, false), absl::OkStatus());
}

TEST(AssignOrReturn, MovesTheValueIntoADeclarationOrAVariable) {
  const auto run = [](int value) -> absl::StatusOr<int> {
    FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<int> declared, Box(value));
    std::unique_ptr<int> variable;
    FRAKTOR_ASSIGN_OR_RETURN(variable, Box(value + 1));
    std::pair<int, std::unique_ptr<int>> pair;
    FRAKTOR_ASSIGN_OR_RETURN(pair.second, Box(value + 2));
    return *declared + *variable + *pair.second;
  };
  EXPECT_EQ(run(1).value(), 6);
  EXPECT_EQ(run(-1).status(), absl::OutOfRangeError("negative"));
}

TEST(AssignOrReturn, WorksInAFunctionThatReturnsAStatus) {
  const auto run = [](int value) -> absl::Status {
    FRAKTOR_ASSIGN_OR_RETURN(const auto box, Box(value));
    return *box == 3 ? absl::OkStatus() : absl::AbortedError("not three");
  };
  EXPECT_EQ(run(3), absl::OkStatus());
  EXPECT_EQ(run(-3), absl::OutOfRangeError("negative"));
}

TEST(AssignOrReturn, TakesAStructuredBindingInParenthesesAndCommasInTheExpression) {
  const auto make = [](int a, std::string b) -> absl::StatusOr<std::tuple<int, std::string>> {
    return std::tuple(a, std::move(b));
  };
  const auto run = [&]() -> absl::StatusOr<std::string> {
    FRAKTOR_ASSIGN_OR_RETURN((const auto [number, text]), make(2, "x"));
    FRAKTOR_ASSIGN_OR_RETURN((std::pair<int, int> pair),
                             absl::StatusOr<std::pair<int, int>>(std::pair<int, int>(3, 4)));
    return text + std::to_string(number) + std::to_string(pair.second);
  };
  EXPECT_EQ(run().value(), "x24");
}

TEST(AssignOrReturn, LeavesTheVariableAloneOnError) {
  int target = 7;
  const auto run = [&]() -> absl::Status {
    FRAKTOR_ASSIGN_OR_RETURN(target, absl::StatusOr<int>(absl::AbortedError("no")));
    return absl::OkStatus();
  };
  EXPECT_EQ(run(), absl::AbortedError("no"));
  EXPECT_EQ(target, 7);
}

TEST(Annotate, PutsTheContextBeforeTheMessageAndKeepsCodeAndPayloads) {
  absl::Status status = absl::DataLossError("bad checksum");
  status.SetPayload("example.com/a", absl::Cord("1"));
  status.SetPayload("example.com/b", absl::Cord("2"));
  const absl::Status annotated = Annotate(status, "journal \"orders\"");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(annotated.message(), "journal \"orders\": bad checksum");
  EXPECT_EQ(annotated.GetPayload("example.com/a"), absl::Cord("1"));
  EXPECT_EQ(annotated.GetPayload("example.com/b"), absl::Cord("2"));
}

TEST(Annotate, LeavesSuccessAndAnEmptyContextAlone) {
  EXPECT_EQ(Annotate(absl::OkStatus(), "context"), absl::OkStatus());
  EXPECT_EQ(Annotate(absl::AbortedError("why"), ""), absl::AbortedError("why"));
}

TEST(Annotate, PassesValuesOnAndAnnotatesTheirErrors) {
  EXPECT_EQ(*Annotate(Box(4), "context").value(), 4);
  EXPECT_EQ(Annotate(Box(-4), "context").status(), absl::OutOfRangeError("context: negative"));
}

}  // namespace
}  // namespace fraktor
