// How the test kit fails a test: at the line that expected something, with a text that says what came instead.
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

// A failure of the test that runs, which goes on.
void ReportFailure(TestLocation at, const std::string& text);

// The same, and ends the test: by the exception that GoogleTest takes for a failure that was told already. Simulate
// and the body of a test catch it; so it must not be called in an actor.
[[noreturn]] void EndTest(TestLocation at, const std::string& text);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_TEST_FAILURE_H_
