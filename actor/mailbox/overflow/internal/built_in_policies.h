// The built-in overflow policies. Each function is defined in the file of its policy. The policies
// live as long as the process.
#ifndef FRAKTOR_ACTOR_MAILBOX_OVERFLOW_INTERNAL_BUILT_IN_POLICIES_H_
#define FRAKTOR_ACTOR_MAILBOX_OVERFLOW_INTERNAL_BUILT_IN_POLICIES_H_

#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

namespace fraktor::inline v0::actor_internal {

const OverflowPolicy& BlockProducerPolicy();
const OverflowPolicy& DeadLetterPolicy();
const OverflowPolicy& DropNewestPolicy();
const OverflowPolicy& DropOldestPolicy();
const OverflowPolicy& RejectPolicy();

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MAILBOX_OVERFLOW_INTERNAL_BUILT_IN_POLICIES_H_
