// Why a message reached nobody: see dead_letters.h.
#ifndef FRAKTOR_ACTOR_EVENT_DEAD_LETTER_REASON_H_
#define FRAKTOR_ACTOR_EVENT_DEAD_LETTER_REASON_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fraktor::inline v0 {

// The labels of dead_letters_total are the names of these.
enum class DeadLetterReason : uint8_t {
  kNoRecipient,      // nobody has that path
  kStopped,          // the actor has ended
  kMailboxFull,      // dropped by an overflow policy
  kPushTimedOut,     // no room in time
  kStashFull,        // the actor put it aside, and had no room for it
  kUnhandled,        // the actor has no handler for it
  kInvalidPath,      // the path is malformed, or leads above its guardian
  kUidReserved,      // the path meant an earlier life of the actor
  kUnresolvedFull,   // too many wait for that authority already
  kQuarantined,      // the authority is in quarantine
  kNewIncarnation,   // the system that it was meant for has been restarted
  kUnsupported,      // an authority that cannot be reached by any protocol of ours, or one too many
  kNotSerializable,  // it cannot leave this process
  kNotReadable,      // it came from a peer and cannot be read
  kLateReply,        // nobody waits for the answer any more
  kShutdown,         // the system is going down
  kNotCopyable,      // several were to get it, and it cannot be copied
};
inline constexpr size_t kDeadLetterReasonCount = 17;

// "mailbox_full" and so on: lower case, as labels of metrics are.
std::string_view NameOf(DeadLetterReason reason);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_DEAD_LETTER_REASON_H_
