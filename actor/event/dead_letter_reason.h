// DeadLetterReason: why a message reached no actor; see dead_letters.h.
//
//   std::string_view label = NameOf(DeadLetterReason::kMailboxFull);   // "mailbox_full"
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_EVENT_DEAD_LETTER_REASON_H_
#define FRAKTOR_ACTOR_EVENT_DEAD_LETTER_REASON_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fraktor::inline v0 {

// The metric dead_letters_total has these names as labels.
enum class DeadLetterReason : uint8_t {
  kNoRecipient,      // no actor has that path
  kStopped,          // the actor has ended
  kMailboxFull,      // dropped by an overflow policy
  kPushTimedOut,     // no room in time
  kStashFull,        // the actor stashed it, and the stash was full
  kUnhandled,        // the actor has no handler for it
  kInvalidPath,      // the path is malformed, or leads above its guardian
  kUidReserved,      // the path means an earlier incarnation of the actor
  kUnresolvedFull,   // the queue of that authority is full
  kQuarantined,      // the authority is quarantined
  kNewIncarnation,   // its system has been restarted
  kUnsupported,      // no protocol of ours reaches the authority, or there are too many authorities
  kNotSerializable,  // it cannot be turned into bytes for another process
  kNotReadable,      // it came from a peer and cannot be decoded
  kLateReply,        // the ask of this reply has ended
  kShutdown,         // the system is shutting down
  kNotCopyable,      // it has several recipients and cannot be copied
};
inline constexpr size_t kDeadLetterReasonCount = 17;

// "mailbox_full" and so on: lower case, as labels of metrics are.
std::string_view NameOf(DeadLetterReason reason);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_DEAD_LETTER_REASON_H_
