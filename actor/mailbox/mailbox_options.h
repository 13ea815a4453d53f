// MailboxOptions: the capacity of a mailbox, its overflow policy, and the order of its messages.
//
//   MailboxOptions bounded{.capacity = 1000, .overflow = OverflowStrategy::kReject};
//   MailboxOptions urgent_first{.order = MessageOrder::kPriority, .priority = [](const Envelope& envelope) {
//                                 return envelope.Is<Alarm>() ? 0 : 1;
//                               }};
//   auto orders = system.Spawn<Orders>("orders", {.mailbox = bounded});
//   auto alarms = system.Spawn<Alarms>("alarms", {.mailbox = urgent_first}, &handled);
//
// A mailbox is unbounded by default. That is faster: senders and the receiver of a bounded mailbox
// share a counter. System messages, PoisonPill, Kill, Terminated and the messages of the actor's
// own timers always find room. User messages do not use the reserve for system messages: a mailbox
// of 1000 with a reserve of 10 takes 990 user messages.
// With MessageOrder::kControlFirst there is a second reserve, beyond the capacity, which only
// control messages use.
//
// Thread safety: a value.
#ifndef FRAKTOR_ACTOR_MAILBOX_MAILBOX_OPTIONS_H_
#define FRAKTOR_ACTOR_MAILBOX_MAILBOX_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"

namespace fraktor::inline v0 {

class Envelope;
class OverflowPolicy;

// The order in which an actor gets its user messages. System messages go before them, except for
// replies and wakes that fill a whole turn.
enum class MessageOrder : uint8_t {
  kFifo,          // As they were sent.
  kControlFirst,  // Control messages (message_type.h) before the others, each as they were sent.
  kPriority,      // Lowest number of `priority` first; equal ones as they were sent.
};

std::string_view ToString(MessageOrder order);

// Returns the rank of a message; the lowest goes first. The worker that runs the actor calls it
// once per message. If it throws, the message goes last, as if it had returned INT_MAX.
using MessagePriority = std::function<int(const Envelope&)>;

struct MailboxOptions {
  static constexpr size_t kUnbounded = 0;
  static constexpr size_t kMaxCapacity = size_t{1} << 29;
  static constexpr size_t kDefaultControlReserve = 64;
  static constexpr size_t kMaxControlReserve = size_t{1} << 16;

  // The largest number of user and system messages together; kUnbounded for no limit.
  size_t capacity = kUnbounded;
  // The built-in overflow policy. Any value other than kReject needs a capacity.
  OverflowStrategy overflow = OverflowStrategy::kReject;
  // A policy of your own (overflow/overflow_policy.h), instead of `overflow`, which must be left as
  // it is. Needs a capacity.
  std::shared_ptr<const OverflowPolicy> overflow_policy = nullptr;
  // The part of `capacity` that user messages must not use. It is below `capacity`, and 0 for an
  // unbounded mailbox.
  size_t reserve_for_system = 0;
  // The number of control messages that a full mailbox takes beyond its capacity, with
  // kControlFirst and a capacity. Control messages use the room of the others first. When
  // user_capacity() + reserve_for_control messages wait, the overflow policy applies to a further
  // control message too, so that a flood of control messages is bounded. From 0 to
  // kMaxControlReserve. The other orders have no such reserve and refuse any value but the default.
  size_t reserve_for_control = kDefaultControlReserve;
  // How long kBlockProducer, or a policy that holds producers, lets a message wait for room. With
  // zero the message does not wait and is a dead letter at once.
  absl::Duration push_timeout = absl::Seconds(10);
  // kDropOldest, and policies with OverflowNeeds::kQueue, need kFifo: in another order the oldest
  // message is not the next one.
  MessageOrder order = MessageOrder::kFifo;
  // The ranks for kPriority, which needs them. The other orders must have none.
  MessagePriority priority = {};

  bool bounded() const { return capacity != kUnbounded; }

  // Returns the number of user messages that fit.
  size_t user_capacity() const { return capacity - reserve_for_system; }
  // Returns the policy that `overflow_policy` or `overflow` names. The options must be valid.
  const OverflowPolicy& policy() const;
  // Returns the number of control messages that fit beyond that.
  size_t control_reserve() const { return bounded() && order == MessageOrder::kControlFirst ? reserve_for_control : 0; }

  // Returns InvalidArgument with the option, its value and a right value.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_MAILBOX_OPTIONS_H_
