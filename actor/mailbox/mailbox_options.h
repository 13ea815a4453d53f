// How large a mailbox may get, and what happens to a message that finds it full.
//
//   MailboxOptions options{.capacity = 1000, .overflow = OverflowStrategy::kReject, .reserve_for_system = 10};
//   FRAKTOR_RETURN_IF_ERROR(options.Validate());
//
// A mailbox is unbounded by default, which is the fast one: a bounded one pays for a counter that senders and receiver
// share. System messages are never held back. What is reserved for them is not given to user messages, so a mailbox of
// 1000 with a reserve of 10 takes 990 user messages.
#ifndef FRAKTOR_ACTOR_MAILBOX_MAILBOX_OPTIONS_H_
#define FRAKTOR_ACTOR_MAILBOX_MAILBOX_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

// What a full mailbox does with a further user message. Each answer is counted.
enum class OverflowStrategy : uint8_t {
  kDropOldest,     // The oldest queued message makes room; the sender is told OK.
  kDropNewest,     // The arriving message is dropped; the sender is told OK.
  kBlockProducer,  // A foreign thread waits up to `push_timeout`; an actor is suspended after its current message until
                   // there is room. A message that waited in vain is a dead letter.
  kReject,         // The sender is told ResourceExhausted (TryTell); a plain Tell makes a dead letter.
  kDeadLetter,     // The arriving message is a dead letter; the sender is told OK.
};

std::string_view ToString(OverflowStrategy strategy);

struct MailboxOptions {
  static constexpr size_t kUnbounded = 0;
  static constexpr size_t kMaxCapacity = size_t{1} << 30;

  // User and system messages together; kUnbounded for no limit.
  size_t capacity = kUnbounded;
  OverflowStrategy overflow = OverflowStrategy::kReject;
  // How many of `capacity` no user message may use. Below `capacity`; nothing to reserve where there is no limit.
  size_t reserve_for_system = 0;
  // How long kBlockProducer waits. Zero never waits: the message is a dead letter at once.
  absl::Duration push_timeout = absl::Seconds(10);

  bool bounded() const { return capacity != kUnbounded; }

  // How many user messages fit.
  size_t user_capacity() const { return capacity - reserve_for_system; }

  // InvalidArgument that names the option, its value, and what would be right.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_MAILBOX_OPTIONS_H_
