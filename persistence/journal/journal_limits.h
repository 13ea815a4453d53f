// JournalLimits: how large things may be in a journal, and what is said when they are larger.
//
//   FRAKTOR_RETURN_IF_ERROR(CheckAtomicWrite(limits, write));    // kTooLarge or kInvalid, names the id and the number
//
// A write above a limit is rejected (its neighbours go on); a read above one gets less at a time.
//
// Thread safety: values and free functions.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_LIMITS_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_LIMITS_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/persistence/journal/persistent_repr.h"

namespace fraktor::inline v0 {

struct JournalLimits {
  // Bytes of a persistence id, at most 65535.
  size_t max_persistence_id_bytes = 1024;
  // Bytes of one event: manifest, payload, metadata and tags.
  size_t max_event_bytes = size_t{8} << 20;
  // Of one atomic write, which is in memory as a whole.
  size_t max_atomic_write_events = 10'000;
  size_t max_atomic_write_bytes = size_t{32} << 20;
  size_t max_tags = 32;
  // Bytes of a tag, at most 65535.
  size_t max_tag_bytes = 1024;
};

// InvalidArgument, naming the limit, unless they make sense.
absl::Status CheckJournalLimits(const JournalLimits& limits);

// kInvalid if the id is empty, kTooLarge if it is too long.
absl::Status CheckPersistenceId(const JournalLimits& limits, std::string_view persistence_id);

// Also kInvalid for an empty or repeated tag.
absl::Status CheckAtomicWrite(const JournalLimits& limits, const AtomicWrite& write);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_JOURNAL_LIMITS_H_
