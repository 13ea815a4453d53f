#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"

#include <string_view>

#include "fraktor/actor/mailbox/overflow/built_in_policies.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0 {

const OverflowPolicy* BuiltInPolicy(OverflowStrategy strategy) {
  switch (strategy) {
    case OverflowStrategy::kDropOldest:
      return &DropOldestPolicy();
    case OverflowStrategy::kDropNewest:
      return &DropNewestPolicy();
    case OverflowStrategy::kBlockProducer:
      return &BlockProducerPolicy();
    case OverflowStrategy::kReject:
      return &RejectPolicy();
    case OverflowStrategy::kDeadLetter:
      return &DeadLetterPolicy();
  }
  return nullptr;
}

std::string_view ToString(OverflowStrategy strategy) {
  const OverflowPolicy* const policy = BuiltInPolicy(strategy);
  return policy != nullptr ? policy->name() : "unknown";
}

}  // namespace fraktor::inline v0
