#include "fraktor/persistence/protocol/store_family.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// Whether `witness` was used with another store than `other` in that role.
bool KnowsAnother(const StoreIdentity& witness, const std::string& role, const StoreIdentity& other) {
  const auto known = witness.partners.find(role);
  return known != witness.partners.end() && known->second != other.id;
}

void Remember(IdentifiedStore& store, const StoreIdentity& identity, const std::string& role, const std::string& id) {
  const auto known = identity.partners.find(role);
  if (known != identity.partners.end() && known->second == id) return;
  // If it fails, the next start tries again.
  static_cast<void>(store.RememberPartner(role, id));
}

std::string Replaced(const std::string& replaced, const std::string& witness) {
  return absl::StrCat("the store \"", replaced, "\" is not the one that \"", witness,
                      "\" was used with: it was deleted and made again, or replaced, and data that \"", witness,
                      "\" relies on may be missing. ");
}

}  // namespace

absl::Status StoreFamily::Join(const std::string& role, std::shared_ptr<IdentifiedStore> store,
                               OnReplacedStore on_replaced) {
  const StoreIdentity mine = store->identity();
  if (mine.id.empty()) return absl::OkStatus();
  MutexLock lock(mutex_);
  for (const auto& [other_role, other] : stores_) {
    const StoreIdentity its = other.store->identity();
    const bool i_am_replaced = KnowsAnother(its, role, mine);
    if (!i_am_replaced && !KnowsAnother(mine, other_role, its)) continue;
    const std::string what = i_am_replaced ? Replaced(role, other_role) : Replaced(other_role, role);
    if (on_replaced == OnReplacedStore::kRefuse && other.on_replaced == OnReplacedStore::kRefuse) {
      return absl::FailedPreconditionError(
          absl::StrCat(what,
                       "Check the paths of both, and restore the folder from a backup. To go on with it on "
                       "purpose, as after a `journal import` into another folder, start once with "
                       "on_replaced_store = OnReplacedStore::kAccept in the setup of one of them"));
    }
    system_.log().Log(LogLevel::kWarning, {.at = system_.toolbox().WallNow(),
                                           .text = absl::StrCat(what, "It is accepted (OnReplacedStore::kAccept)")});
  }
  for (const auto& [other_role, other] : stores_) {
    const StoreIdentity its = other.store->identity();
    Remember(*store, mine, other_role, its.id);
    Remember(*other.store, its, role, mine.id);
  }
  stores_.insert_or_assign(role, Member{std::move(store), on_replaced});
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
