// StateStorage: the interface of stores of durable states: one value for each persistence id, which
// the next one overwrites. The state actor and tools use it.
//
//   DurableState state{.persistence_id = "cart-7", .revision = 1, .manifest = "cart", .payload = bytes};
//   absl::Status stored = storage.Upsert(state, kNoEpoch).Wait();                  // in main() and tests only
//   StoredState now = storage.Load("cart-7").Wait().value();                       // revision 1
//   storage.Delete("cart-7", 2, writer, kNoEpoch).Wait();                          // a change like others
//
// Changes are numbered: each has a revision that is one above the last, deletions too. A writer
// with another revision has not seen the last change, and is refused (kSequenceMismatch): so of two
// actors that believe to be the only writer, one finds out. A change that is stored already, by the
// same writer and with the same bytes, is a success: it was sent again because an answer was lost.
// So a writer that may not be alone has an id (WriterId::Draw).
//
// Owners. Revisions alone let the one that stores first win, and that may be a former owner. An
// owner with a fencing token, such as a grain, announces it before it loads (OpenWriter) and names
// it with every change. The store keeps the highest token that it has heard of for each id, as
// durably as the states, also while the state is deleted. It refuses changes of a lower token
// (kFenced). So a former owner changes nothing from the moment at which its successor is announced.
// A higher token is accepted, and the store remembers it.
//
// kNoEpoch stands for no token: the change comes from an actor that has none, or from a node of an
// older version, which does not send it. It is judged by its revision alone for an id of which the
// store has heard no token, and refused (kFenced) for all others. One id uses one of the two ways.
//
// Every call returns at once and answers by a future. Order, durability and limits are as in
// JournalStorage.
//
// Thread safety: all methods may be called from any thread. The store must outlive its calls, not
// its futures.
#ifndef FRAKTOR_PERSISTENCE_STATE_STATE_STORAGE_H_
#define FRAKTOR_PERSISTENCE_STATE_STATE_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

struct DurableState {
  std::string persistence_id = {};
  uint64_t revision = 0;  // from 1
  // The type of the payload: an explicit, stable name and its version.
  std::string manifest = {};
  uint32_t manifest_version = 0;
  std::string payload = {};
  // The writer that made the change. None is a writer too: that of records of older versions.
  WriterId writer = {};

  friend bool operator==(const DurableState&, const DurableState&) = default;
};

// The answer of Load.
struct StoredState {
  // False if it was never stored (then the revision is 0) or was deleted (then it is that of the
  // deletion).
  bool exists = false;
  // Without a manifest and a payload if it does not exist. The writer is the one of the last
  // change.
  DurableState state = {};
};

struct StateLimits {
  // Bytes of a persistence id, at most 65535.
  size_t max_persistence_id_bytes = 1024;
  // Bytes of one state: manifest and payload. It is in memory as a whole.
  size_t max_state_bytes = size_t{64} << 20;
};

// InvalidArgument, naming the limit, unless they make sense.
absl::Status CheckStateLimits(const StateLimits& limits);
// kInvalid for an empty id, kTooLarge for what is above a limit; names the id and the revision.
absl::Status CheckStateId(const StateLimits& limits, std::string_view persistence_id);
absl::Status CheckState(const StateLimits& limits, const DurableState& state);

// How every store judges a change: OK if it is the next; kSequenceMismatch otherwise, kInvalid for
// revision 0. `is_stored`: the revision is the stored one, and so are the bytes and the writer.
absl::Status CheckRevision(std::string_view persistence_id, uint64_t stored_revision, uint64_t revision,
                           bool is_stored);

class StateStorage : public IdentifiedStore {
 public:
  virtual Future<StoredState> Load(std::string persistence_id) = 0;

  // Announces the owner of the id: from now on the store refuses the changes of lower tokens.
  // kFenced if a higher token is known; the same token may come again. kNoEpoch is kInvalid.
  virtual Future<void> OpenWriter(std::string persistence_id, uint64_t token) = 0;

  virtual Future<void> Upsert(DurableState state, uint64_t token) = 0;

  // `revision` is that of the deletion, and `writer` who deletes.
  virtual Future<void> Delete(std::string persistence_id, uint64_t revision, WriterId writer, uint64_t token) = 0;

  // As JournalStorage::Close.
  virtual Future<void> Close() = 0;

  virtual const StateLimits& limits() const = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_STATE_STATE_STORAGE_H_
