// The id under which a store is added to an extension. It becomes part of the name of the store's actor.
//
//   FRAKTOR_RETURN_IF_ERROR(CheckPluginId("journal", "my journal"));     // InvalidArgument: ' ' at 2 is not allowed
//
// Thread safety: a free function.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_PLUGIN_ID_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_PLUGIN_ID_H_

#include <string_view>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

// `what` is what the id is of, for the error.
absl::Status CheckPluginId(std::string_view what, std::string_view plugin_id);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_PLUGIN_ID_H_
