// DeadLetters: counts, publishes and logs messages that reached no actor, with the reason.
//
//   EventSubscription lost = system.events().Listen<AllDeadLetters>([](const AllDeadLetters& letter) {
//     Count(NameOf(letter.reason), letter.recipient, letter.message.type_name);
//   });
//
// The runtime publishes dead letters like this:
//
//   DeadLetters dead_letters(stream, {.log = [](std::string_view line) { Print(line); }});
//   DeadLetter letter{{.reason = DeadLetterReason::kStopped, .sender = from, .recipient = to}};
//   dead_letters.Publish(letter, toolbox.Now());
//   const uint64_t stopped = dead_letters.count(DeadLetterReason::kStopped);
//
// Every dead letter is counted by its reason and published to all subscribers, even if one of them
// throws. The first few are logged, then there is a pause. Senders, recipients and messages are
// views that are valid during the publication.
//
// Thread safety: any thread may call anything. Callers pass the time.
#ifndef FRAKTOR_ACTOR_EVENT_DEAD_LETTERS_H_
#define FRAKTOR_ACTOR_EVENT_DEAD_LETTERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/event_type.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// A view of a message. `type` is the tag of its type if the runtime has one.
struct MessageView {
  std::string_view type_name = {};
  const void* type = nullptr;
  const void* message = nullptr;
};

// An actor that subscribes to one of the three events below receives this message.
struct DeadLetterNotice {
  DeadLetterReason reason = DeadLetterReason::kNoRecipient;
  std::string sender = {};
  std::string recipient = {};
  std::string message_type = {};
  Instant at = {};
};

// An actor that subscribes to UnhandledMessage receives this message.
struct UnhandledNotice {
  std::string sender = {};
  std::string recipient = {};
  std::string message_type = {};
  Instant at = {};
};

// The base of the three events below: its subscribers receive all of them.
struct AllDeadLetters {
  static constexpr EventInfo<AllDeadLetters> kEvent{"AllDeadLetters"};
  DeadLetterReason reason = DeadLetterReason::kNoRecipient;
  std::string_view sender = {};     // a path; empty if there is no sender
  std::string_view recipient = {};  // a path; may be malformed
  MessageView message = {};
  Instant at = {};

  DeadLetterNotice ToMessage() const {
    return {reason, std::string(sender), std::string(recipient), std::string(message.type_name), at};
  }
};

struct DeadLetter : AllDeadLetters {
  static constexpr EventInfo<DeadLetter, AllDeadLetters> kEvent{"DeadLetter"};
};

// A message that may get lost now and then, and whose type says so. It is not logged.
struct SuppressedDeadLetter : AllDeadLetters {
  static constexpr EventInfo<SuppressedDeadLetter, AllDeadLetters> kEvent{"SuppressedDeadLetter"};
};

// A message for which a mailbox or a stash had no room.
struct Dropped : AllDeadLetters {
  static constexpr EventInfo<Dropped, AllDeadLetters> kEvent{"Dropped"};
};

// A message that arrived, but the actor has no handler for it. It is no dead letter, but is counted
// and logged with them.
struct UnhandledMessage {
  static constexpr EventInfo<UnhandledMessage> kEvent{"UnhandledMessage"};
  std::string_view sender = {};
  std::string_view recipient = {};
  MessageView message = {};
  Instant at = {};

  UnhandledNotice ToMessage() const {
    return {std::string(sender), std::string(recipient), std::string(message.type_name), at};
  }
};

struct DeadLetterOptions {
  // The number of dead letters that are logged before a pause. 0 logs none.
  uint64_t log_limit = 10;
  // Infinite: logging does not resume.
  absl::Duration log_pause = absl::Minutes(5);
  // Receives the lines; none by default. It may send and publish. A dead letter that it causes on
  // the same thread is not logged. If it throws, the line is lost.
  std::function<void(std::string_view line)> log = nullptr;

  // Returns InvalidArgument with the name of the invalid option.
  absl::Status Validate() const;
};

class DeadLetters {
 public:
  // The stream must outlive this object.
  explicit DeadLetters(EventStream& stream, DeadLetterOptions options = {});
  DeadLetters(const DeadLetters&) = delete;
  DeadLetters& operator=(const DeadLetters&) = delete;

  // Sets `at` to `now`.
  void Publish(DeadLetter letter, Instant now);
  void Publish(SuppressedDeadLetter letter, Instant now);
  void Publish(Dropped letter, Instant now);
  void Publish(UnhandledMessage message, Instant now);

  uint64_t count(DeadLetterReason reason) const {
    return counts_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }
  uint64_t total() const;

 private:
  template <class Letter>
  void CountAndPublish(Letter& letter, Instant now);
  void Log(DeadLetterReason reason, std::string_view sender, std::string_view recipient, const MessageView& message,
           Instant now);

  EventStream& stream_;
  const DeadLetterOptions options_;
  // Statistics; they pair with nothing.
  std::array<std::atomic<uint64_t>, kDeadLetterReasonCount> counts_{};
  Mutex log_mutex_;
  uint64_t logged_ ABSL_GUARDED_BY(log_mutex_) = 0;
  uint64_t skipped_ ABSL_GUARDED_BY(log_mutex_) = 0;
  Instant resume_ ABSL_GUARDED_BY(log_mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_DEAD_LETTERS_H_
