// StoreFamily: the stores of a system that are used together. It notices when one of them was
// replaced: its folder was deleted, or is that of another program, while the others know its ids.
//
//   auto& family = system.Extension<StoreFamily>();
//   FRAKTOR_RETURN_IF_ERROR(family.Join("journal:main", journal, OnReplacedStore::kRefuse));
//   FRAKTOR_RETURN_IF_ERROR(family.Join("snapshots:main", snapshots, OnReplacedStore::kRefuse));
//
// PersistenceExtension and StateExtension call it for each store that is added with a storage. Each
// store remembers the others durably, by their roles (StoreIdentity). A store that has no identity,
// as those in memory, is not compared. A store that cannot remember, such as one that is open for
// reading only, is compared with what it knows, and learns no new partners.
//
// Limits. A store that was restored from an older backup has its old identity: a recovery that
// meets a lost tail says so (kEventsLost, kFenced). The cluster's store of records is not compared.
//
// Thread safety: any thread.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_STORE_FAMILY_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_STORE_FAMILY_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class StoreFamily {
 public:
  explicit StoreFamily(ActorSystem& system) : system_(system) {}

  // FailedPrecondition if the store or another one of the family was replaced, unless the setup of
  // either of the two says kAccept.
  absl::Status Join(const std::string& role, std::shared_ptr<IdentifiedStore> store, OnReplacedStore on_replaced);

 private:
  struct Member {
    std::shared_ptr<IdentifiedStore> store;
    OnReplacedStore on_replaced;
  };

  ActorSystem& system_;
  Mutex mutex_;
  // By role.
  std::map<std::string, Member> stores_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_STORE_FAMILY_H_
