// OverflowStrategy::kBlockProducer: the producer waits for room.
#include <string_view>

#include "fraktor/actor/mailbox/overflow/internal/built_in_policies.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0::actor_internal {
namespace {

class BlockProducer final : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "BlockProducer"; }
  OverflowNeeds needs() const noexcept override { return OverflowNeeds::kLine; }
  OverflowDecision Decide(const OverflowCase&) const override { return OverflowDecision::Hold(); }
};

}  // namespace

const OverflowPolicy& BlockProducerPolicy() {
  static const OverflowPolicy& policy = *new BlockProducer;
  return policy;
}

}  // namespace fraktor::inline v0::actor_internal
