// The id under which a store is added to an extension, and the name that its actor has below
// /system on that node.
//
//   FRAKTOR_RETURN_IF_ERROR(CheckPluginId("journal", "my journal"));     // InvalidArgument: ' ' at 2 is not allowed
//   std::string name = SnapshotActorName("main");                        // "snapshots-main"
//
// Thread safety: free functions.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_PLUGIN_ID_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_PLUGIN_ID_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

// `what` is what the id is of, for the error.
absl::Status CheckPluginId(std::string_view what, std::string_view plugin_id);

// A journal may have several actors.
std::string JournalActorName(std::string_view plugin_id, size_t index);
std::string SnapshotActorName(std::string_view plugin_id);
std::string StateActorName(std::string_view plugin_id);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_PLUGIN_ID_H_
