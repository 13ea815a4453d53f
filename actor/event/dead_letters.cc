#include "fraktor/actor/event/dead_letters.h"

#include <cxxabi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

std::string_view NameOf(DeadLetterReason reason) {
  switch (reason) {
    case DeadLetterReason::kNoRecipient:
      return "no_recipient";
    case DeadLetterReason::kStopped:
      return "stopped";
    case DeadLetterReason::kMailboxFull:
      return "mailbox_full";
    case DeadLetterReason::kPushTimedOut:
      return "push_timed_out";
    case DeadLetterReason::kStashFull:
      return "stash_full";
    case DeadLetterReason::kUnhandled:
      return "unhandled";
    case DeadLetterReason::kInvalidPath:
      return "invalid_path";
    case DeadLetterReason::kUidReserved:
      return "uid_reserved";
    case DeadLetterReason::kUnresolvedFull:
      return "unresolved_full";
    case DeadLetterReason::kQuarantined:
      return "quarantined";
    case DeadLetterReason::kNewIncarnation:
      return "new_incarnation";
    case DeadLetterReason::kUnsupported:
      return "unsupported";
    case DeadLetterReason::kNotSerializable:
      return "not_serializable";
    case DeadLetterReason::kNotReadable:
      return "not_readable";
    case DeadLetterReason::kLateReply:
      return "late_reply";
    case DeadLetterReason::kShutdown:
      return "shutdown";
    case DeadLetterReason::kNotCopyable:
      return "not_copyable";
  }
  return "unknown";
}

namespace {

// True while this thread logs a dead letter. The log may lose a message itself; logging that too
// would not end.
thread_local bool is_logging = false;

}  // namespace

absl::Status DeadLetterOptions::Validate() const {
  if (log_pause >= absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("DeadLetterOptions.log_pause is ", absl::FormatDuration(log_pause), "; it must not be negative"));
}

DeadLetters::DeadLetters(EventStream& stream, DeadLetterOptions options)
    : stream_(stream), options_(std::move(options)) {}

uint64_t DeadLetters::total() const {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& count : counts_) sum += count.load(std::memory_order_relaxed);
  return sum;
}

template <class Letter>
void DeadLetters::CountAndPublish(Letter& letter, Instant now) {
  letter.at = now;
  counts_[static_cast<size_t>(letter.reason)].fetch_add(1, std::memory_order_relaxed);
  stream_.PublishToAll(letter);
}

void DeadLetters::Publish(DeadLetter letter, Instant now) {
  CountAndPublish(letter, now);
  Log(letter.reason, letter.sender, letter.recipient, letter.message, now);
}

void DeadLetters::Publish(SuppressedDeadLetter letter, Instant now) { CountAndPublish(letter, now); }

void DeadLetters::Publish(Dropped letter, Instant now) {
  CountAndPublish(letter, now);
  Log(letter.reason, letter.sender, letter.recipient, letter.message, now);
}

void DeadLetters::Publish(UnhandledMessage message, Instant now) {
  message.at = now;
  counts_[static_cast<size_t>(DeadLetterReason::kUnhandled)].fetch_add(1, std::memory_order_relaxed);
  stream_.PublishToAll(message);
  Log(DeadLetterReason::kUnhandled, message.sender, message.recipient, message.message, now);
}

void DeadLetters::Log(DeadLetterReason reason, std::string_view sender, std::string_view recipient,
                      const MessageView& message, Instant now) {
  if (options_.log_limit == 0 || options_.log == nullptr || is_logging) return;
  uint64_t number = 0;
  std::string note;
  {
    MutexLock lock(log_mutex_);
    if (logged_ == options_.log_limit) {
      if (now < resume_) {
        ++skipped_;
        return;
      }
      absl::StrAppend(&note, "; ", skipped_, " were not logged in the pause");
      logged_ = 0;
      skipped_ = 0;
    }
    number = ++logged_;
    if (logged_ == options_.log_limit) {
      resume_ = now + options_.log_pause;
      absl::StrAppend(&note, "; no more are logged for ", absl::FormatDuration(options_.log_pause));
    }
  }
  const bool arrived = reason == DeadLetterReason::kUnhandled;
  const std::string line =
      absl::StrCat("dead letter ", number, " (", ToAbsl(NameOf(reason)), "): message ",
                   QuotedForText(message.type_name), " from ", QuotedForText(sender), " to ", QuotedForText(recipient),
                   arrived ? " came, but the actor has no handler for it" : " was not delivered", note);
  // Without the lock, because the log may lose a message itself.
  is_logging = true;
  const absl::Cleanup logged = [] { is_logging = false; };
  try {
    options_.log(line);
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled, which must go on.
  } catch (...) {
    // The line is lost. The sender of the message must not get the exception.
  }
}

}  // namespace fraktor::inline v0
