// EmbeddedBackend: where an EmbeddedStore keeps what must not be forgotten when its node ends. An extension point;
// cluster/embedded/rocksdb has one.
//
//   FRAKTOR_ASSIGN_OR_RETURN(EmbeddedState state, backend.Load());
//   FRAKTOR_RETURN_IF_ERROR(backend.Write({.epoch = 8, .members = members}));       // is on the disk now
//
// Thread safety: one call at a time. Calls may block.
#ifndef FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_BACKEND_H_
#define FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_BACKEND_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/placement/activation_entry.h"

namespace fraktor::inline v0 {

struct EmbeddedState {
  // False: nothing was ever written.
  bool exists = false;
  // Of the members.
  uint64_t epoch = 0;
  // No token that was given is above it.
  uint64_t token_limit = 0;
  std::vector<Member> members = {};
  std::vector<std::pair<GrainKey, ActivationEntry>> activations = {};
};

struct EmbeddedChanges {
  std::optional<uint64_t> token_limit = std::nullopt;
  // Both or none.
  std::optional<uint64_t> epoch = std::nullopt;
  std::vector<Member> members = {};
  // In order; none: it is removed.
  std::vector<std::pair<GrainKey, std::optional<ActivationEntry>>> activations = {};

  bool empty() const { return !token_limit.has_value() && !epoch.has_value() && activations.empty(); }
};

class EmbeddedBackend {
 public:
  virtual ~EmbeddedBackend() = default;

  // What is written. DataLoss if it cannot be read.
  virtual absl::StatusOr<EmbeddedState> Load() = 0;
  // All of it or nothing; it stays when the machine loses power after the answer. After an error Load says what is there.
  // What Load could not read is refused, with InvalidArgument.
  virtual absl::Status Write(const EmbeddedChanges& changes) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_BACKEND_H_
