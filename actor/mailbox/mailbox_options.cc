#include "fraktor/actor/mailbox/mailbox_options.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

std::string_view ToString(MessageOrder order) {
  switch (order) {
    case MessageOrder::kFifo:
      return "Fifo";
    case MessageOrder::kControlFirst:
      return "ControlFirst";
    case MessageOrder::kPriority:
      return "Priority";
  }
  return "unknown";
}

const OverflowPolicy& MailboxOptions::policy() const {
  return overflow_policy != nullptr ? *overflow_policy : *BuiltInPolicy(overflow);
}

absl::Status MailboxOptions::Validate() const {
  if (BuiltInPolicy(overflow) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("MailboxOptions.overflow is ", static_cast<int>(overflow), ", which is no OverflowStrategy"));
  }
  if (capacity > kMaxCapacity) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.capacity is ", capacity, "; at most ", kMaxCapacity,
                                                   " is possible, or kUnbounded for no limit"));
  }
  if (!bounded() && overflow != OverflowStrategy::kReject) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.overflow is ", ToAbsl(ToString(overflow)),
                                                   ", but the mailbox is unbounded, and never full; set a capacity"));
  }
  if (overflow_policy != nullptr && overflow != OverflowStrategy::kReject) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.overflow is ", ToAbsl(ToString(overflow)),
                                                   ", but MailboxOptions.overflow_policy is ",
                                                   ToAbsl(overflow_policy->name()), "; set one of the two"));
  }
  if (overflow_policy != nullptr && !bounded()) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.overflow_policy is ",
                                                   ToAbsl(overflow_policy->name()),
                                                   ", but the mailbox is unbounded, and never full; set a capacity"));
  }
  if (overflow_policy != nullptr && overflow_policy->needs() > OverflowNeeds::kQueue) {
    return absl::InvalidArgumentError(
        absl::StrCat("MailboxOptions.overflow_policy is ", ToAbsl(overflow_policy->name()), ", whose needs() are ",
                     static_cast<int>(overflow_policy->needs()), ", which is no OverflowNeeds"));
  }
  if (!bounded() && reserve_for_system > 0) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.reserve_for_system is ", reserve_for_system,
                                                   ", but the mailbox is unbounded; set a capacity or no reserve"));
  }
  if (bounded() && reserve_for_system >= capacity) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.reserve_for_system is ", reserve_for_system,
                                                   ", which leaves no room for user messages in a capacity of ",
                                                   capacity, "; it must be smaller"));
  }
  if (push_timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.push_timeout is ",
                                                   absl::FormatDuration(push_timeout), "; it must not be negative"));
  }
  if (static_cast<uint8_t>(order) > static_cast<uint8_t>(MessageOrder::kPriority)) {
    return absl::InvalidArgumentError(
        absl::StrCat("MailboxOptions.order is ", static_cast<int>(order), ", which is no MessageOrder"));
  }
  if (reserve_for_control > kMaxControlReserve) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.reserve_for_control is ", reserve_for_control,
                                                   "; it must be from 0 to ", kMaxControlReserve));
  }
  if (reserve_for_control != kDefaultControlReserve && (!bounded() || order != MessageOrder::kControlFirst)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MailboxOptions.reserve_for_control is ", reserve_for_control, ", but ",
        bounded() ? absl::StrCat("MailboxOptions.order is ", ToAbsl(ToString(order)), "; set order to ControlFirst")
                  : std::string("the mailbox is unbounded, and never full; set a capacity"),
        ", or leave the reserve as it is"));
  }
  if (order == MessageOrder::kPriority && !priority) {
    return absl::InvalidArgumentError(
        "MailboxOptions.order is Priority, but MailboxOptions.priority is empty; set the function that ranks messages");
  }
  if (order != MessageOrder::kPriority && priority) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.priority is set, but MailboxOptions.order is ",
                                                   ToAbsl(ToString(order)), "; set order to Priority or no function"));
  }
  if (order != MessageOrder::kFifo && policy().needs() == OverflowNeeds::kQueue) {
    return absl::InvalidArgumentError(
        absl::StrCat("MailboxOptions.", overflow_policy != nullptr ? "overflow_policy" : "overflow", " is ",
                     ToAbsl(policy().name()), ", which drops the oldest message, but MailboxOptions.order is ",
                     ToAbsl(ToString(order)), "; use another overflow policy, or the order Fifo"));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
