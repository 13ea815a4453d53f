#include "fraktor/persistence/journal/journal_limits.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

absl::Status CheckLimit(std::string_view name, size_t value, size_t highest) {
  if (value >= 1 && value <= highest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("JournalLimits::", ToAbsl(name), " is ", value, "; it must be from 1 to ", highest));
}

absl::Status CheckEvent(const JournalLimits& limits, const PersistentRepr& event) {
  const auto too_large = [&event](std::string_view what, size_t value, std::string_view name, size_t limit) {
    return EventError(
        absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge, event.persistence_id, event.sequence_nr,
        absl::StrCat(ToAbsl(what), " ", value, "; the limit is ", limit,
                     ". Split the event, store large values elsewhere, or raise JournalLimits::", ToAbsl(name)));
  };
  const auto invalid = [&event](std::string_view what) {
    return EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, event.persistence_id,
                      event.sequence_nr, what);
  };
  if (event.ByteSize() > limits.max_event_bytes) {
    return too_large("its size in bytes is", event.ByteSize(), "max_event_bytes", limits.max_event_bytes);
  }
  if (event.tags.size() > limits.max_tags) {
    return too_large("the number of its tags is", event.tags.size(), "max_tags", limits.max_tags);
  }
  for (size_t i = 0; i < event.tags.size(); ++i) {
    const std::string& tag = event.tags[i];
    if (tag.empty()) return invalid("has an empty tag; leave it out");
    if (tag.size() > limits.max_tag_bytes) {
      return too_large("the size of a tag in bytes is", tag.size(), "max_tag_bytes", limits.max_tag_bytes);
    }
    for (size_t k = 0; k < i; ++k) {
      if (event.tags[k] == tag) return invalid(absl::StrCat("has the tag \"", tag, "\" twice; give it once"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckJournalLimits(const JournalLimits& limits) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  FRAKTOR_RETURN_IF_ERROR(CheckLimit("max_persistence_id_bytes", limits.max_persistence_id_bytes, UINT16_MAX));
  FRAKTOR_RETURN_IF_ERROR(CheckLimit("max_event_bytes", limits.max_event_bytes, kMaxBytes));
  FRAKTOR_RETURN_IF_ERROR(CheckLimit("max_atomic_write_events", limits.max_atomic_write_events, 1'000'000));
  FRAKTOR_RETURN_IF_ERROR(CheckLimit("max_atomic_write_bytes", limits.max_atomic_write_bytes, kMaxBytes));
  FRAKTOR_RETURN_IF_ERROR(CheckLimit("max_tags", limits.max_tags, 1024));
  return CheckLimit("max_tag_bytes", limits.max_tag_bytes, UINT16_MAX);
}

absl::Status CheckPersistenceId(const JournalLimits& limits, std::string_view persistence_id) {
  if (persistence_id.empty()) {
    return IdError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, persistence_id,
                   "a persistence id must not be empty; give each actor a name of its own");
  }
  if (persistence_id.size() > limits.max_persistence_id_bytes) {
    return IdError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge, persistence_id.substr(0, 64),
                   absl::StrCat("a persistence id that begins like this has ", persistence_id.size(),
                                " bytes; the limit, JournalLimits::max_persistence_id_bytes, is ",
                                limits.max_persistence_id_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckAtomicWrite(const JournalLimits& limits, const AtomicWrite& write) {
  // The usual case.
  if (const AtomicWrite::Events& events = write.events(); events.size() == 1 && events[0].tags.empty()) {
    const PersistentRepr& event = events[0];
    const size_t bytes = event.manifest.size() + event.payload.size() + event.metadata.size();
    if (bytes <= limits.max_event_bytes && bytes <= limits.max_atomic_write_bytes && !event.persistence_id.empty() &&
        event.persistence_id.size() <= limits.max_persistence_id_bytes) {
      return absl::OkStatus();
    }
  }
  FRAKTOR_RETURN_IF_ERROR(CheckPersistenceId(limits, write.persistence_id()));
  const auto too_large = [&write](std::string_view what, size_t value, std::string_view name, size_t limit) {
    return EventError(
        absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge, write.persistence_id(),
        write.lowest_sequence_nr(),
        absl::StrCat("the first of an atomic write whose ", ToAbsl(what), " is ", value, "; the limit is ", limit,
                     ". Persist fewer events at once, or raise JournalLimits::", ToAbsl(name)));
  };
  if (write.events().size() > limits.max_atomic_write_events) {
    return too_large("number of events", write.events().size(), "max_atomic_write_events",
                     limits.max_atomic_write_events);
  }
  for (const PersistentRepr& event : write.events()) FRAKTOR_RETURN_IF_ERROR(CheckEvent(limits, event));
  if (write.ByteSize() > limits.max_atomic_write_bytes) {
    return too_large("size in bytes", write.ByteSize(), "max_atomic_write_bytes", limits.max_atomic_write_bytes);
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
