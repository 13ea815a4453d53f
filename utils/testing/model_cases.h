// Runs the cases of an interleaving test, each in every interleaving.
//
// A test of a lock-free structure has a list of cases. It runs them once as they are, and once more
// for each mutation: a step of the algorithm that is left out. A mutation must make a case fail;
// otherwise the cases do not test that step.
#ifndef FRAKTOR_UTILS_TESTING_MODEL_CASES_H_
#define FRAKTOR_UTILS_TESTING_MODEL_CASES_H_

#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/testing/interleaving.h"

namespace fraktor::inline v0 {

// Expects that no case fails and that each is explored to its end. Prints what was explored.
inline void ExpectAllPass(const std::vector<ModelTest>& cases) {
  for (const ModelTest& test : cases) {
    const ModelResult result = CheckInterleavings({}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
    EXPECT_TRUE(result.complete) << test.name;
    std::cout << test.name << ": " << result << "\n";
  }
}

// Returns the first failure as "assertion in one late sender", or "nothing". It runs no case after
// the one that fails.
inline std::string FirstFailure(const std::vector<ModelTest>& cases) {
  for (const ModelTest& test : cases) {
    const ModelResult result = CheckInterleavings({}, test.run);
    if (!result.ok()) return std::string(ModelFailureName(result.failure)) + " in " + test.name;
  }
  return "nothing";
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_MODEL_CASES_H_
