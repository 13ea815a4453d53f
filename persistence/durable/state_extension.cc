#include "fraktor/persistence/durable/state_extension.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/actor/writer_base.h"
#include "fraktor/persistence/durable/state_actor.h"
#include "fraktor/persistence/protocol/plugin_id.h"
#include "fraktor/persistence/protocol/store_family.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

StateExtension::StateExtension(ActorSystem& system) : system_(system), writer_base_(DrawWriterBase(system)) {}

absl::Status StateExtension::AddStore(std::string_view plugin_id, StateStoreSetup setup) {
  FRAKTOR_RETURN_IF_ERROR(CheckPluginId("store of durable states", plugin_id));
  if ((setup.storage == nullptr) == setup.actor.IsNoOne()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the store of durable states \"", ToAbsl(plugin_id), "\" needs either a storage or an actor"));
  }
  FRAKTOR_RETURN_IF_ERROR(setup.options.Validate());
  MutexLock lock(mutex_);
  const ActorRef actor = setup.actor;
  if (stores_.contains(plugin_id)) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a store of durable states \"", ToAbsl(plugin_id), "\" already"));
  }
  if (setup.storage != nullptr) {
    FRAKTOR_RETURN_IF_ERROR(system_.Extension<StoreFamily>().Join(absl::StrCat("states:", ToAbsl(plugin_id)),
                                                                  setup.storage, setup.on_replaced_store));
  }
  stores_.try_emplace(std::string(plugin_id), Entry{std::move(setup), actor});
  if (first_.empty()) first_ = plugin_id;
  return absl::OkStatus();
}

absl::StatusOr<ActorRef> StateExtension::Store(std::string_view plugin_id) {
  MutexLock lock(mutex_);
  const auto found = stores_.find(plugin_id.empty() ? std::string_view(first_) : plugin_id);
  if (found == stores_.end()) {
    std::string known;
    for (const auto& [id, entry] : stores_) absl::StrAppend(&known, known.empty() ? "" : ", ", "\"", id, "\"");
    return absl::NotFoundError(absl::StrCat("there is no store of durable states \"", ToAbsl(plugin_id),
                                            "\"; there are: ", known.empty() ? "none" : known,
                                            ". Add it to the StateExtension before actors are started"));
  }
  return ActorOf(found->first, found->second);
}

size_t StateExtension::MessageBytes(std::string_view plugin_id) {
  MutexLock lock(mutex_);
  const auto found = stores_.find(plugin_id.empty() ? std::string_view(first_) : plugin_id);
  return found == stores_.end() ? 0 : found->second.setup.max_message_bytes;
}

absl::Status StateExtension::StartStores() {
  MutexLock lock(mutex_);
  for (auto& [id, entry] : stores_) FRAKTOR_RETURN_IF_ERROR(ActorOf(id, entry).status());
  return absl::OkStatus();
}

absl::StatusOr<ActorRef> StateExtension::ActorOf(std::string_view plugin_id, Entry& entry) {
  if (entry.setup.storage == nullptr) return entry.actor;
  if (!entry.actor.IsCurrent()) {
    FRAKTOR_ASSIGN_OR_RETURN(
        // As busy as the users' actors are.
        entry.actor, system_.TrySpawnSystemActor(*MakeProps<StateActor>({.dispatcher = DispatcherChoice::kDefault},
                                                                        entry.setup.storage, entry.setup.options),
                                                 StateActorName(plugin_id)));
  }
  return entry.actor;
}

}  // namespace fraktor::inline v0
