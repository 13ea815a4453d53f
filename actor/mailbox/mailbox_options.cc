#include "fraktor/actor/mailbox/mailbox_options.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

std::string_view ToString(OverflowStrategy strategy) {
  switch (strategy) {
    case OverflowStrategy::kDropOldest:
      return "DropOldest";
    case OverflowStrategy::kDropNewest:
      return "DropNewest";
    case OverflowStrategy::kBlockProducer:
      return "BlockProducer";
    case OverflowStrategy::kReject:
      return "Reject";
    case OverflowStrategy::kDeadLetter:
      return "DeadLetter";
  }
  return "unknown";
}

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

absl::Status MailboxOptions::Validate() const {
  if (static_cast<uint8_t>(overflow) > static_cast<uint8_t>(OverflowStrategy::kDeadLetter)) {
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
  if (order != MessageOrder::kFifo && overflow == OverflowStrategy::kDropOldest) {
    return absl::InvalidArgumentError(
        absl::StrCat("MailboxOptions.overflow is DropOldest, but MailboxOptions.order is ", ToAbsl(ToString(order)),
                     "; use another overflow, or the order Fifo"));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
