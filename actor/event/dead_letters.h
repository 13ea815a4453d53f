// Dead letters: messages that reached nobody, with the reason.
//
//   DeadLetters dead_letters(stream, {.log = [](std::string_view line) { ... }});
//   DeadLetter letter{{.reason = DeadLetterReason::kStopped, .sender = from, .recipient = to}};
//   dead_letters.Publish(letter, toolbox.Now());
//   dead_letters.count(DeadLetterReason::kStopped)
//
// In a system:
//
//   EventSubscription lost = system.events().Listen<AllDeadLetters>([](const AllDeadLetters& letter) {
//     Count(NameOf(letter.reason), letter.recipient, letter.message.type_name);
//   });
//
// Every one is counted by its reason and published to all who listen, also if one of them throws; the first few are
// logged, then there is a pause. Senders, recipients and messages are views that hold during the publication.
//
// Thread safety: any thread may call anything. Time comes in as an argument.
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

// A message that somebody else owns. `type` is the tag of its type where the runtime has one.
struct MessageView {
  std::string_view type_name = {};
  const void* type = nullptr;
  const void* message = nullptr;
};

// What an actor gets of the three below.
struct DeadLetterNotice {
  DeadLetterReason reason = DeadLetterReason::kNoRecipient;
  std::string sender = {};
  std::string recipient = {};
  std::string message_type = {};
  Instant at = {};
};

// What an actor gets of an UnhandledMessage.
struct UnhandledNotice {
  std::string sender = {};
  std::string recipient = {};
  std::string message_type = {};
  Instant at = {};
};

// The base of the three below: whoever subscribes to it sees all.
struct AllDeadLetters {
  static constexpr EventInfo<AllDeadLetters> kEvent{"AllDeadLetters"};
  DeadLetterReason reason = DeadLetterReason::kNoRecipient;
  std::string_view sender = {};     // a path; empty for none
  std::string_view recipient = {};  // a path, perhaps a malformed one
  MessageView message = {};
  Instant at = {};

  DeadLetterNotice ToMessage() const {
    return {reason, std::string(sender), std::string(recipient), std::string(message.type_name), at};
  }
};

struct DeadLetter : AllDeadLetters {
  static constexpr EventInfo<DeadLetter, AllDeadLetters> kEvent{"DeadLetter"};
};

// A message that is expected to get lost now and then, and says so by its type. It is not logged.
struct SuppressedDeadLetter : AllDeadLetters {
  static constexpr EventInfo<SuppressedDeadLetter, AllDeadLetters> kEvent{"SuppressedDeadLetter"};
};

// A message that there was no room for.
struct Dropped : AllDeadLetters {
  static constexpr EventInfo<Dropped, AllDeadLetters> kEvent{"Dropped"};
};

// A message that arrived, but the actor did not handle it. Not a dead letter, but counted and logged with them.
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
  // So many are logged, and then none for the pause. 0 logs none.
  uint64_t log_limit = 10;
  // An infinite pause never ends.
  absl::Duration log_pause = absl::Minutes(5);
  // Where lines go; none by default. It may send and publish; a dead letter that comes of it in the same thread is not
  // logged. It must not throw.
  std::function<void(std::string_view line)> log = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class DeadLetters {
 public:
  // The stream must live longer.
  explicit DeadLetters(EventStream& stream, DeadLetterOptions options = {});
  DeadLetters(const DeadLetters&) = delete;
  DeadLetters& operator=(const DeadLetters&) = delete;

  // `at` is set to `now`.
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
