// How the test kit fails a test: at the line of the expectation, with a text about the actual
// events. Helpers of tests do the same:
//
//   void ExpectPositive(int number, TestLocation at = TestLocation::Here()) {
//     if (number <= 0) ReportFailure(at, "the number is not positive");   // names the line of the caller
//   }
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_ACTOR_TESTKIT_TEST_FAILURE_H_
#define FRAKTOR_ACTOR_TESTKIT_TEST_FAILURE_H_

#include <string>

namespace fraktor::inline v0 {

// The line of a call: TestLocation at = TestLocation::Here() as the last parameter.
struct TestLocation {
  static constexpr TestLocation Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }

  const char* file;
  int line;
};

// Fails the running test, which goes on.
void ReportFailure(TestLocation at, const std::string& text);

// Fails the running test and ends it, by the exception that GoogleTest takes for a reported
// failure. Simulate and the body of a test catch it. So an actor must not call it.
[[noreturn]] void EndTest(TestLocation at, const std::string& text);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_TEST_FAILURE_H_
