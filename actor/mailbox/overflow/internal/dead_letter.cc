// OverflowStrategy::kDeadLetter: the arriving message is a dead letter.
#include <string_view>

#include "fraktor/actor/mailbox/overflow/internal/built_in_policies.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0::actor_internal {
namespace {

class DeadLetter final : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "DeadLetter"; }
  OverflowDecision Decide(const OverflowCase&) const override { return OverflowDecision::DeadLetter(); }
};

}  // namespace

const OverflowPolicy& DeadLetterPolicy() {
  static const OverflowPolicy& policy = *new DeadLetter;
  return policy;
}

}  // namespace fraktor::inline v0::actor_internal
