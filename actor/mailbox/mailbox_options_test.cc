#include "fraktor/actor/mailbox/mailbox_options.h"

#include <string>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

std::string Refusal(const MailboxOptions& options) {
  absl::Status status = options.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// SCH-4
TEST(MailboxOptions, AreUnboundedByDefault) {
  MailboxOptions options;
  EXPECT_FALSE(options.bounded());
  EXPECT_TRUE(options.Validate().ok());
}

// SCH-4
TEST(MailboxOptions, KeepTheReserveFromUserMessages) {
  MailboxOptions options{.capacity = 1000, .reserve_for_system = 10};
  EXPECT_TRUE(options.Validate().ok());
  EXPECT_EQ(options.user_capacity(), 990u);
}

// SCH-4: a reserve that is not below the capacity is refused.
TEST(MailboxOptions, RefuseAReserveThatLeavesNoRoom) {
  EXPECT_NE(Refusal({.capacity = 10, .reserve_for_system = 10}).find("reserve_for_system is 10"), std::string::npos);
  EXPECT_NE(Refusal({.capacity = 10, .reserve_for_system = 11}).find("capacity of 10"), std::string::npos);
  EXPECT_TRUE((MailboxOptions{.capacity = 10, .reserve_for_system = 9}).Validate().ok());
}

TEST(MailboxOptions, RefuseAReserveWithoutALimit) {
  EXPECT_NE(Refusal({.reserve_for_system = 1}).find("unbounded"), std::string::npos);
}

TEST(MailboxOptions, RefuseAbsurdValues) {
  EXPECT_NE(Refusal({.capacity = MailboxOptions::kMaxCapacity + 1}).find("capacity"), std::string::npos);
  EXPECT_NE(Refusal({.capacity = 1, .push_timeout = -absl::Nanoseconds(1)}).find("push_timeout"), std::string::npos);
  EXPECT_NE(Refusal({.capacity = 1, .overflow = static_cast<OverflowStrategy>(9)}).find("overflow is 9"),
            std::string::npos);
}

TEST(OverflowStrategy, HasANameForLogs) {
  EXPECT_EQ(ToString(OverflowStrategy::kDropOldest), "DropOldest");
  EXPECT_EQ(ToString(OverflowStrategy::kDropNewest), "DropNewest");
  EXPECT_EQ(ToString(OverflowStrategy::kBlockProducer), "BlockProducer");
  EXPECT_EQ(ToString(OverflowStrategy::kReject), "Reject");
  EXPECT_EQ(ToString(OverflowStrategy::kDeadLetter), "DeadLetter");
}

}  // namespace
}  // namespace fraktor
