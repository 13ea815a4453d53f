#include "fraktor/actor/mailbox/mailbox_options.h"

#include "absl/strings/str_cat.h"

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

absl::Status MailboxOptions::Validate() const {
  if (static_cast<uint8_t>(overflow) > static_cast<uint8_t>(OverflowStrategy::kDeadLetter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("MailboxOptions.overflow is ", static_cast<int>(overflow), ", which is no OverflowStrategy"));
  }
  if (capacity > kMaxCapacity) {
    return absl::InvalidArgumentError(absl::StrCat("MailboxOptions.capacity is ", capacity, "; at most ", kMaxCapacity,
                                                   " is possible, or kUnbounded for no limit"));
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
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
