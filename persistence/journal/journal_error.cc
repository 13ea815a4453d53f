#include "fraktor/persistence/journal/journal_error.h"

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

namespace {

absl::Status WithPayloadsOf(const absl::Status& cause, absl::Status error) {
  cause.ForEachPayload([&error](auto url, const auto& payload) { error.SetPayload(url, payload); });
  return error;
}

}  // namespace

std::string_view JournalErrorKindName(JournalErrorKind kind) {
  switch (kind) {
    case JournalErrorKind::kSequenceMismatch:
      return "sequence mismatch";
    case JournalErrorKind::kFenced:
      return "fenced";
    case JournalErrorKind::kNotOpen:
      return "not open";
    case JournalErrorKind::kTooLarge:
      return "too large";
    case JournalErrorKind::kInvalid:
      return "invalid";
    case JournalErrorKind::kCorrupt:
      return "corrupt";
    case JournalErrorKind::kNewerSchema:
      return "newer schema";
    case JournalErrorKind::kLocked:
      return "locked";
    case JournalErrorKind::kReadOnly:
      return "read only";
    case JournalErrorKind::kDiskFull:
      return "disk full";
    case JournalErrorKind::kIo:
      return "input or output error";
    case JournalErrorKind::kOverloaded:
      return "overloaded";
    case JournalErrorKind::kClosed:
      return "closed";
    case JournalErrorKind::kUnknownManifest:
      return "unknown manifest";
    case JournalErrorKind::kDeleted:
      return "deleted";
    case JournalErrorKind::kEventsLost:
      return "events lost";
  }
  return "unknown";
}

absl::Status EventError(absl::StatusCode code, JournalErrorKind kind, std::string_view persistence_id,
                        uint64_t sequence_nr, std::string_view what) {
  return MakeError(code, kind,
                   absl::StrCat("event ", sequence_nr, " of \"", ToAbsl(persistence_id), "\": ", ToAbsl(what)),
                   {{"id", persistence_id}, {"nr", sequence_nr}});
}

absl::Status IdError(absl::StatusCode code, JournalErrorKind kind, std::string_view persistence_id,
                     std::string_view what) {
  return MakeError(code, kind, absl::StrCat("\"", ToAbsl(persistence_id), "\": ", ToAbsl(what)),
                   {{"id", persistence_id}});
}

absl::Status AboutEvent(const absl::Status& cause, JournalErrorKind kind, std::string_view persistence_id,
                        uint64_t sequence_nr) {
  if (cause.ok() || ErrorKindOf<JournalErrorKind>(cause).has_value()) return cause;
  return WithPayloadsOf(cause, EventError(cause.code(), kind, persistence_id, sequence_nr, ToStd(cause.message())));
}

absl::Status AboutId(const absl::Status& cause, JournalErrorKind kind, std::string_view persistence_id) {
  if (cause.ok() || ErrorKindOf<JournalErrorKind>(cause).has_value()) return cause;
  return WithPayloadsOf(cause, IdError(cause.code(), kind, persistence_id, ToStd(cause.message())));
}

}  // namespace fraktor::inline v0
