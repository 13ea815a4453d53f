// OverflowStrategy::kReject: the sender gets ResourceExhausted.
#include <string_view>

#include "fraktor/actor/mailbox/overflow/internal/built_in_policies.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0::actor_internal {
namespace {

class Reject final : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "Reject"; }
  OverflowDecision Decide(const OverflowCase&) const override { return OverflowDecision::Reject(); }
};

}  // namespace

const OverflowPolicy& RejectPolicy() {
  static const OverflowPolicy& policy = *new Reject;
  return policy;
}

}  // namespace fraktor::inline v0::actor_internal
