// OverflowStrategy: names the overflow policies that are built in. The file of each policy is in
// the folder `internal` and has its name (drop_oldest.cc). overflow_policy.h says how a program
// writes a policy of its own.
//
//   MailboxOptions latest{.capacity = 100, .overflow = OverflowStrategy::kDropOldest};
//
// Thread safety: values. Any thread may call the functions.
#ifndef FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_STRATEGY_H_
#define FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_STRATEGY_H_

#include <cstdint>
#include <string_view>

namespace fraktor::inline v0 {

class OverflowPolicy;

// The answers of a full mailbox to a further user message. Each answer is counted. A message that
// is lost is a dead letter in any case, with the reason mailbox_full or push_timed_out. A sender
// that uses TryTell gets the status that is named here.
enum class OverflowStrategy : uint8_t {
  kDropOldest,  // The oldest queued message makes room; the sender gets OK.
  kDropNewest,  // The arriving message is dropped; the sender gets OK.
  // A foreign thread waits up to `push_timeout`, and gets DeadlineExceeded if there was no room. An
  // actor gets OK, and is suspended after its current message until there is room or the time is
  // over. Up to user_capacity() messages wait in line; one more gets ResourceExhausted.
  kBlockProducer,
  kReject,      // The sender gets ResourceExhausted.
  kDeadLetter,  // The arriving message is a dead letter; the sender gets OK.
};

// "DropOldest" and so on; "unknown" for a value that is no OverflowStrategy.
std::string_view ToString(OverflowStrategy strategy);

// The policy, which lives as long as the process; null for a value that is no OverflowStrategy.
const OverflowPolicy* BuiltInPolicy(OverflowStrategy strategy);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_STRATEGY_H_
