#include "fraktor/persistence/protocol/remote_stores.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/persistence/protocol/plugin_id.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::StatusOr<RemoteStores> RemoteStores::At(const ActorSystem& system, std::string_view authority) {
  const size_t colon = authority.rfind(':');
  uint32_t port = 0;
  if (colon == std::string_view::npos || colon == 0 || !absl::SimpleAtoi(ToAbsl(authority.substr(colon + 1)), &port) ||
      port == 0 || port > 65'535) {
    return absl::InvalidArgumentError(absl::StrCat("the stores of another node are to be at \"", ToAbsl(authority),
                                                   "\"; write \"host:port\" or \"name@host:port\", with a port from 1 "
                                                   "to 65535"));
  }
  const bool has_name = authority.find('@') != std::string_view::npos;
  return RemoteStores(
      system, absl::StrCat(system.options().config.scheme, "://",
                           has_name ? "" : absl::StrCat(ToAbsl(system.name()), "@"), ToAbsl(authority), "/system/"));
}

absl::StatusOr<ActorRef> RemoteStores::Journal(std::string_view plugin_id) const {
  return Resolve("journal", plugin_id, JournalActorName(plugin_id, 0));
}

absl::StatusOr<ActorRef> RemoteStores::SnapshotStore(std::string_view plugin_id) const {
  return Resolve("snapshot store", plugin_id, SnapshotActorName(plugin_id));
}

absl::StatusOr<ActorRef> RemoteStores::StateStore(std::string_view plugin_id) const {
  return Resolve("store of durable states", plugin_id, StateActorName(plugin_id));
}

absl::StatusOr<ActorRef> RemoteStores::Resolve(std::string_view what, std::string_view plugin_id,
                                               const std::string& name) const {
  FRAKTOR_RETURN_IF_ERROR(CheckPluginId(what, plugin_id));
  return Annotate(system_->Resolve(root_ + name),
                  absl::StrCat("find the ", ToAbsl(what), " \"", ToAbsl(plugin_id), "\" at ", root_));
}

}  // namespace fraktor::inline v0
