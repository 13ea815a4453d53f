// How large a mailbox may get, what happens to a message that finds it full, and in which order messages come out.
//
//   MailboxOptions options{.capacity = 1000, .overflow = OverflowStrategy::kReject, .reserve_for_system = 10};
//   FRAKTOR_RETURN_IF_ERROR(options.Validate());
//
//   MailboxOptions urgent_first{.order = MessageOrder::kPriority, .priority = [](const Envelope& envelope) {
//                                 return envelope.Is<Alarm>() ? 0 : 1;
//                               }};
//
// A mailbox is unbounded by default, which is the fast one: a bounded one pays for a counter that
// senders and receiver share. System messages are never held back, nor are PoisonPill and Kill.
// User messages do not use the reserve for system messages, so a mailbox of 1000 with a reserve of
// 10 takes 990 user messages. With MessageOrder::kControlFirst there is a second reserve, beyond
// the capacity, which control messages alone may use.
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

// In which order an actor gets its user messages. System messages go before all of them in any case.
enum class MessageOrder : uint8_t {
  kFifo,          // As they were sent.
  kControlFirst,  // Control messages (message_type.h) before the others, each as they were sent.
  kPriority,      // Lowest number of `priority` first; equal ones as they were sent.
};

std::string_view ToString(MessageOrder order);

// The rank of a message; lower goes first. Called once per message, on the thread that runs the actor. If it throws,
// the message goes last, as if it had answered INT_MAX.
using MessagePriority = std::function<int(const Envelope&)>;

struct MailboxOptions {
  static constexpr size_t kUnbounded = 0;
  static constexpr size_t kMaxCapacity = size_t{1} << 29;
  static constexpr size_t kDefaultControlReserve = 64;
  static constexpr size_t kMaxControlReserve = size_t{1} << 16;

  // User and system messages together; kUnbounded for no limit.
  size_t capacity = kUnbounded;
  // Another than this needs a capacity.
  OverflowStrategy overflow = OverflowStrategy::kReject;
  // A policy of your own (overflow/overflow_policy.h), instead of `overflow`, which must be left as
  // it is. Needs a capacity.
  std::shared_ptr<const OverflowPolicy> overflow_policy = nullptr;
  // How many of `capacity` no user message may use. Below `capacity`; nothing to reserve where there is no limit.
  size_t reserve_for_system = 0;
  // With kControlFirst and a capacity: how many control messages a full mailbox takes beyond its
  // capacity, so that they find room however many others wait. Control messages use the room of the
  // others first. From user_capacity() + reserve_for_control waiting messages on, a further control
  // message meets `overflow` as all others do, so that a flood of control messages is bounded too.
  // From 0 to kMaxControlReserve; the other orders have no such reserve and refuse another value
  // than the default.
  size_t reserve_for_control = kDefaultControlReserve;
  // How long a message is held by kBlockProducer, or by a policy that holds producers. Zero never
  // waits: the message is a dead letter at once.
  absl::Duration push_timeout = absl::Seconds(10);
  // kDropOldest, and a policy with OverflowNeeds::kQueue, is possible with kFifo only: the oldest
  // message is not the next one of another order.
  MessageOrder order = MessageOrder::kFifo;
  // For kPriority, which needs it; the others must have none.
  MessagePriority priority = {};

  bool bounded() const { return capacity != kUnbounded; }

  // How many user messages fit.
  size_t user_capacity() const { return capacity - reserve_for_system; }
  // The one that `overflow_policy` or `overflow` names. The options must be valid.
  const OverflowPolicy& policy() const;
  // How many control messages fit beyond that.
  size_t control_reserve() const { return bounded() && order == MessageOrder::kControlFirst ? reserve_for_control : 0; }

  // InvalidArgument that names the option, its value, and what would be right.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_MAILBOX_OPTIONS_H_
