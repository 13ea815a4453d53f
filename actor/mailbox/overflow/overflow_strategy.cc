#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"

#include <string_view>

#include "fraktor/actor/mailbox/overflow/internal/built_in_policies.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0 {

using actor_internal::BlockProducerPolicy;
using actor_internal::DeadLetterPolicy;
using actor_internal::DropNewestPolicy;
using actor_internal::DropOldestPolicy;
using actor_internal::RejectPolicy;

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
