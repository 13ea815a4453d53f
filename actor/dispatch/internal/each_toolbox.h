// Parameters for tests that run on each toolbox. The fixture is a TestWithParam<ToolboxKind> with
// MakeToolbox(GetParam()), and INSTANTIATE_TEST_SUITE_P takes EachToolbox() and NameOfToolbox.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_EACH_TOOLBOX_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_EACH_TOOLBOX_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::actor_internal {

enum class ToolboxKind { kStd, kLocal, kSim };

inline auto EachToolbox() { return testing::Values(ToolboxKind::kStd, ToolboxKind::kLocal, ToolboxKind::kSim); }

inline std::string NameOfToolbox(const testing::TestParamInfo<ToolboxKind>& kind) {
  return kind.param == ToolboxKind::kStd ? "Std" : kind.param == ToolboxKind::kLocal ? "Local" : "Sim";
}

inline std::unique_ptr<RuntimeToolbox> MakeToolbox(ToolboxKind kind, int max_workers = 256) {
  switch (kind) {
    case ToolboxKind::kStd:
      return StdToolbox::Make({.max_workers = max_workers}).value();
    case ToolboxKind::kLocal:
      return LocalToolbox::Make({.max_workers = max_workers}).value();
    case ToolboxKind::kSim:
      break;
  }
  return SimToolbox::Make({.seed = 5, .max_workers = max_workers}).value();
}

}  // namespace fraktor::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_EACH_TOOLBOX_H_
