// OverflowAnswer: the answers that an overflow policy can give for a message that finds a full
// mailbox.
//
//   std::string_view label = NameOf(OverflowAnswer::kDropOldest);        // "drop_oldest"
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_ANSWER_H_
#define FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fraktor::inline v0 {

// The values of the label `answer` of actor.mailbox.overflow_total are the names of these. A
// message that is lost becomes a dead letter in any case.
enum class OverflowAnswer : uint8_t {
  kReject,      // The arriving message is lost; the sender gets ResourceExhausted.
  kDropNewest,  // The arriving message is lost; the sender gets OK.
  kDeadLetter,  // The same. Use it where losing the message is intended and not an overload.
  kDropOldest,  // The oldest queued message is lost, and the arriving message takes its place.
  kHold,        // The message waits for room, and its producer with it, up to push_timeout.
};
inline constexpr size_t kOverflowAnswerCount = 5;

// "reject", "drop_newest" and so on: lower case, as labels of metrics are.
constexpr std::string_view NameOf(OverflowAnswer answer) {
  switch (answer) {
    case OverflowAnswer::kReject:
      return "reject";
    case OverflowAnswer::kDropNewest:
      return "drop_newest";
    case OverflowAnswer::kDeadLetter:
      return "dead_letter";
    case OverflowAnswer::kDropOldest:
      return "drop_oldest";
    case OverflowAnswer::kHold:
      return "hold";
  }
  return "unknown";
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_ANSWER_H_
