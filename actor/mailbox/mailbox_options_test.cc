#include "fraktor/actor/mailbox/mailbox_options.h"

#include <memory>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

#include "fraktor/actor/mailbox/overflow/overflow_policy.h"

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

TEST(MailboxOptions, RefuseAnOverflowWithoutALimit) {
  for (const OverflowStrategy overflow : {OverflowStrategy::kDropOldest, OverflowStrategy::kDropNewest,
                                          OverflowStrategy::kBlockProducer, OverflowStrategy::kDeadLetter}) {
    const std::string refusal = Refusal({.overflow = overflow});
    EXPECT_NE(refusal.find("overflow is " + std::string(ToString(overflow))), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("set a capacity"), std::string::npos) << refusal;
  }
  EXPECT_TRUE(MailboxOptions{}.Validate().ok());
}

TEST(MailboxOptions, RefuseAbsurdValues) {
  EXPECT_NE(Refusal({.capacity = MailboxOptions::kMaxCapacity + 1}).find("capacity"), std::string::npos);
  EXPECT_NE(Refusal({.capacity = 1, .push_timeout = -absl::Nanoseconds(1)}).find("push_timeout"), std::string::npos);
  EXPECT_NE(Refusal({.capacity = 1, .overflow = static_cast<OverflowStrategy>(9)}).find("overflow is 9"),
            std::string::npos);
}

TEST(MailboxOptions, RefuseAReserveForControlMessagesThatNobodyWouldUse) {
  const MailboxOptions bounded{.capacity = 1, .reserve_for_control = 7, .order = MessageOrder::kControlFirst};
  EXPECT_TRUE(bounded.Validate().ok());
  EXPECT_EQ(bounded.control_reserve(), 7u);
  EXPECT_EQ((MailboxOptions{.capacity = 1, .order = MessageOrder::kControlFirst}).control_reserve(),
            MailboxOptions::kDefaultControlReserve);
  EXPECT_EQ((MailboxOptions{.capacity = 1}).control_reserve(), 0u);
  EXPECT_NE(Refusal({.capacity = 1, .reserve_for_control = 7}).find("order is Fifo; set order to ControlFirst"),
            std::string::npos);
  EXPECT_NE(Refusal({.reserve_for_control = 7, .order = MessageOrder::kControlFirst}).find("set a capacity"),
            std::string::npos);
  EXPECT_NE(Refusal({.capacity = 1,
                     .reserve_for_control = MailboxOptions::kMaxControlReserve + 1,
                     .order = MessageOrder::kControlFirst})
                .find("reserve_for_control is 65537"),
            std::string::npos);
}

int RankNothing(const Envelope&) { return 0; }

// A65
TEST(MailboxOptions, AreFifoByDefaultAndMayHaveAnotherOrder) {
  EXPECT_EQ(MailboxOptions().order, MessageOrder::kFifo);
  EXPECT_TRUE((MailboxOptions{.order = MessageOrder::kControlFirst}).Validate().ok());
  EXPECT_TRUE((MailboxOptions{.order = MessageOrder::kPriority, .priority = RankNothing}).Validate().ok());
  EXPECT_TRUE((MailboxOptions{.capacity = 1, .order = MessageOrder::kControlFirst}).Validate().ok());
}

// A65
TEST(MailboxOptions, RefuseAPriorityOrderWithoutAFunctionAndAFunctionWithoutIt) {
  EXPECT_NE(Refusal({.order = MessageOrder::kPriority}).find("MailboxOptions.priority is empty"), std::string::npos);
  EXPECT_NE(Refusal({.priority = RankNothing}).find("MailboxOptions.order is Fifo"), std::string::npos);
  EXPECT_NE(Refusal({.order = MessageOrder::kControlFirst, .priority = RankNothing}).find("order is ControlFirst"),
            std::string::npos);
  EXPECT_NE(Refusal({.order = static_cast<MessageOrder>(7)}).find("order is 7"), std::string::npos);
}

// SCH-4
TEST(MailboxOptions, RefuseToDropTheOldestWhereTheOldestIsNotNext) {
  EXPECT_NE(Refusal({.capacity = 5, .overflow = OverflowStrategy::kDropOldest, .order = MessageOrder::kControlFirst})
                .find("overflow is DropOldest"),
            std::string::npos);
  EXPECT_NE(Refusal({.capacity = 5,
                     .overflow = OverflowStrategy::kDropOldest,
                     .order = MessageOrder::kPriority,
                     .priority = RankNothing})
                .find("order is Priority"),
            std::string::npos);
  EXPECT_TRUE((MailboxOptions{.capacity = 5, .overflow = OverflowStrategy::kDropOldest}).Validate().ok());
}

class DropAll : public OverflowPolicy {
 public:
  explicit DropAll(OverflowNeeds needs = OverflowNeeds::kCount) : needs_(needs) {}
  std::string_view name() const noexcept override { return "DropAll"; }
  OverflowNeeds needs() const noexcept override { return needs_; }
  OverflowDecision Decide(const OverflowCase&) const override { return OverflowDecision::DropNewest(); }

 private:
  const OverflowNeeds needs_;
};

// SCH-4: a policy of the user replaces `overflow`. With kQueue it needs kFifo, as DropOldest does.
TEST(MailboxOptions, TakeAPolicyOfTheUser) {
  const auto policy = std::make_shared<DropAll>();
  const MailboxOptions options{.capacity = 5, .overflow_policy = policy};
  EXPECT_TRUE(options.Validate().ok());
  EXPECT_EQ(&options.policy(), policy.get());
  EXPECT_EQ(MailboxOptions().policy().name(), "Reject");
  EXPECT_EQ(Refusal({.overflow_policy = policy}),
            "MailboxOptions.overflow_policy is DropAll, but the mailbox is unbounded, and never full; set a capacity");
  EXPECT_EQ(Refusal({.capacity = 5, .overflow = OverflowStrategy::kDropNewest, .overflow_policy = policy}),
            "MailboxOptions.overflow is DropNewest, but MailboxOptions.overflow_policy is DropAll; set one of the two");
  EXPECT_EQ(Refusal({.capacity = 5, .overflow_policy = std::make_shared<DropAll>(static_cast<OverflowNeeds>(3))}),
            "MailboxOptions.overflow_policy is DropAll, whose needs() are 3, which is no OverflowNeeds");
  const auto queue = std::make_shared<DropAll>(OverflowNeeds::kQueue);
  EXPECT_TRUE((MailboxOptions{.capacity = 5, .overflow_policy = queue}).Validate().ok());
  EXPECT_EQ(Refusal({.capacity = 5, .overflow_policy = queue, .order = MessageOrder::kControlFirst}),
            "MailboxOptions.overflow_policy is DropAll, which drops the oldest message, but MailboxOptions.order is "
            "ControlFirst; use another overflow policy, or the order Fifo");
}

TEST(MessageOrder, HasANameForLogs) {
  EXPECT_EQ(ToString(MessageOrder::kFifo), "Fifo");
  EXPECT_EQ(ToString(MessageOrder::kControlFirst), "ControlFirst");
  EXPECT_EQ(ToString(MessageOrder::kPriority), "Priority");
}

TEST(OverflowStrategy, HasANameForLogs) {
  EXPECT_EQ(ToString(OverflowStrategy::kDropOldest), "DropOldest");
  EXPECT_EQ(ToString(OverflowStrategy::kDropNewest), "DropNewest");
  EXPECT_EQ(ToString(OverflowStrategy::kBlockProducer), "BlockProducer");
  EXPECT_EQ(ToString(OverflowStrategy::kReject), "Reject");
  EXPECT_EQ(ToString(OverflowStrategy::kDeadLetter), "DeadLetter");
  EXPECT_EQ(ToString(static_cast<OverflowStrategy>(9)), "unknown");
}

}  // namespace
}  // namespace fraktor
