// OverflowStrategy::kDropOldest: the oldest queued message makes room.
#include <string_view>

#include "fraktor/actor/mailbox/overflow/internal/built_in_policies.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0::actor_internal {
namespace {

class DropOldest final : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "DropOldest"; }
  OverflowNeeds needs() const noexcept override { return OverflowNeeds::kQueue; }
  OverflowDecision Decide(const OverflowCase&) const override { return OverflowDecision::DropOldest(); }
};

}  // namespace

const OverflowPolicy& DropOldestPolicy() {
  static const OverflowPolicy& policy = *new DropOldest;
  return policy;
}

}  // namespace fraktor::inline v0::actor_internal
