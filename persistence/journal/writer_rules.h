// The rules by which every journal judges writers and their writes, so that all judge alike.
//
//   FRAKTOR_ASSIGN_OR_RETURN(state.epoch, NextEpoch("account-7", state.epoch, token));
//   ...
//   FRAKTOR_RETURN_IF_ERROR(CheckWriter(state, write));
//   if (write.lowest_sequence_nr() <= state.highest_sequence_nr && !IsStored(write)) return SequenceMismatch(...);
//
// Thread safety: free functions.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_WRITER_RULES_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_WRITER_RULES_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/persistent_repr.h"

namespace fraktor::inline v0 {

// What a journal has to know of an id, beside its events.
struct IdState {
  uint64_t epoch = 0;
  uint64_t highest_sequence_nr = 0;
  // Up to and including this number everything is deleted.
  uint64_t deleted_to = 0;
};

// The epoch that OpenWriter stores and answers. kFenced for a token below `stored`, kInvalid for a
// token of 0.
absl::StatusOr<uint64_t> NextEpoch(std::string_view persistence_id, uint64_t stored, std::optional<uint64_t> token);

// kFenced or kNotOpen unless the write has the epoch of the id. kEventsLost if the journal lacks an
// event below the write that the writer knows to be stored: the journal has lost its tail. A gap
// above the known number is legal: the numbers of rejected writes are missing there.
absl::Status CheckWriter(const IdState& state, const AtomicWrite& write);

// The rejection of a write whose numbers are not above the highest.
absl::Status SequenceMismatch(const IdState& state, const AtomicWrite& write);

// kFenced if `epoch` is below `known`, the highest epoch of the id that a store has heard of. The
// stores of snapshots and of states judge every change by this.
absl::Status CheckNotFenced(std::string_view persistence_id, uint64_t known, uint64_t epoch);

// kInvalid for an announcement of no epoch.
absl::Status CheckOwnerEpoch(std::string_view persistence_id, uint64_t epoch);

// kFenced or kNotOpen unless a deletion has the epoch of the id.
absl::Status CheckDeletion(const IdState& state, std::string_view persistence_id, uint64_t epoch);

// What a store that is closed answers. The id is that of the request, if it is about one.
absl::Status ClosedError(std::string_view store, std::string_view persistence_id = {});

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_WRITER_RULES_H_
