// Member: one life of a node in the cluster.
//
//   Member self{.authority = "10.0.0.7:2552", .incarnation = 12, .kinds = {"account"}};
//   self.id();                                             // "10.0.0.7:2552#12"
//
// An id never comes back: a node that returns, from a crash or because it was away for too long, has a higher
// incarnation. So whoever finds an id in a record that is not among the members knows that this life has ended for
// good.
//
// Thread safety: a value.
#ifndef FRAKTOR_CLUSTER_IDENTITY_MEMBER_H_
#define FRAKTOR_CLUSTER_IDENTITY_MEMBER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

enum class MemberStatus {
  kUp = 0,
  // Hands over what it has: keeps its grains until each is handed over, and gets no new ones.
  kLeaving = 1,
};

struct Member {
  // Where it is reached: "host:port".
  std::string authority = {};
  // Given by the membership provider, from 1: higher than that of every member that joined before. So of two members the
  // one with the lower incarnation is the older. (In a static list, where nobody joins, all are 1.)
  uint64_t incarnation = 0;
  // The uid of its actor system, if it is known.
  uint64_t system_uid = 0;
  // The kinds of grains that it can run. None: it calls grains and runs none.
  std::vector<std::string> kinds = {};
  // Of these, the kinds whose grains run on the oldest member that hosts them, such as singletons.
  std::vector<std::string> oldest_kinds = {};
  MemberStatus status = MemberStatus::kUp;

  std::string id() const;

  friend bool operator==(const Member&, const Member&) = default;
};

// "up", "leaving".
std::string_view MemberStatusName(MemberStatus status);

// InvalidArgument, naming the member, unless the authority has 1 to 300 bytes and no '#', the incarnation is not 0, and
// there are at most 4096 kinds, each as GrainKey::Check wants it, and the oldest_kinds are among them.
absl::Status CheckMember(const Member& member);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_MEMBER_H_
