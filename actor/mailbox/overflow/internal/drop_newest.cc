// OverflowStrategy::kDropNewest: the arriving message is dropped.
#include <string_view>

#include "fraktor/actor/mailbox/overflow/internal/built_in_policies.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0::actor_internal {
namespace {

class DropNewest final : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "DropNewest"; }
  OverflowDecision Decide(const OverflowCase&) const override { return OverflowDecision::DropNewest(); }
};

}  // namespace

const OverflowPolicy& DropNewestPolicy() {
  static const OverflowPolicy& policy = *new DropNewest;
  return policy;
}

}  // namespace fraktor::inline v0::actor_internal
