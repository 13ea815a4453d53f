// StoreIdentity: which store this is, and with which other stores it was used. A store whose folder
// was deleted and made again is another store, and the stores that were used with it notice.
//
//   StoreIdentity mine = journal->identity();   // {.id = "6f1c...", .partners = {{"states:main", "02ab..."}}}
//   Future<void> remembered = journal->RememberPartner("snapshots:main", snapshots->identity().id);
//
// The extensions compare the stores of a system when they are added (protocol/store_family.h). A
// copy of a store, such as a backup, has the identity of the original.
//
// Thread safety: values; the methods of IdentifiedStore may be called from any thread.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_STORE_IDENTITY_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_STORE_IDENTITY_H_

#include <map>
#include <string>

#include "absl/status/status.h"

#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

struct StoreIdentity {
  // Drawn when the store was made. Empty: the store does not outlive the process, or cannot say.
  std::string id = {};
  // The id of the store that had each role when they were last used together.
  std::map<std::string, std::string> partners = {};
};

// The common base of JournalStorage, SnapshotStorage and StateStorage.
class IdentifiedStore {
 public:
  virtual ~IdentifiedStore() = default;

  virtual StoreIdentity identity() const { return {}; }
  // Stores durably that the store with this id has the role. The identity has it at once.
  virtual Future<void> RememberPartner(std::string /*role*/, std::string /*id*/) {
    return MakeReadyFuture<void>(absl::OkStatus());
  }
};

// The effect of adding a store that is not the one that another store was used with.
enum class OnReplacedStore {
  // It is not added: acknowledged data may be missing. The error names both stores, and what to do.
  kRefuse,
  // It is added with a warning, and the stores remember each other from now on. For a start after
  // a store was deleted or replaced on purpose.
  kAccept,
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_STORE_IDENTITY_H_
