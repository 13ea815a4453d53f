// Which version of the protocol two nodes speak: the highest that both know.
//
//   FRAKTOR_ASSIGN_OR_RETURN(uint32_t version, ChooseVersion({}, {.min = 1, .max = 1}));    // 1
//
//   1  the first
//   2  a death notice says which messages go before it
//
// Thread safety: values and free functions.
#ifndef FRAKTOR_REMOTE_WIRE_PROTOCOL_VERSION_H_
#define FRAKTOR_REMOTE_WIRE_PROTOCOL_VERSION_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

inline constexpr uint32_t kOldestProtocol = 1;
inline constexpr uint32_t kNewestProtocol = 2;
inline constexpr uint32_t kOrderedDeathNotices = 2;  // since that version

struct VersionRange {
  uint32_t min = kOldestProtocol;
  uint32_t max = kNewestProtocol;
};

// kNoCommonVersion; kMalformed if what the peer offers is no range.
absl::StatusOr<uint32_t> ChooseVersion(VersionRange ours, VersionRange theirs);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WIRE_PROTOCOL_VERSION_H_
