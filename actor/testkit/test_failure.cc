#include "fraktor/actor/testkit/test_failure.h"

#include "gtest/gtest.h"

namespace fraktor::inline v0 {

void ReportFailure(TestLocation at, const std::string& text) { ADD_FAILURE_AT(at.file, at.line) << text; }

void EndTest(TestLocation at, const std::string& text) {
  ReportFailure(at, text);
  throw testing::AssertionException(
      testing::TestPartResult(testing::TestPartResult::kFatalFailure, at.file, at.line, text.c_str()));
}

}  // namespace fraktor::inline v0
