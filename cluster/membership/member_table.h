// MemberTable: the members of a cluster in one place, and the rules by which they come and go. Pure: what time it is
// comes in as an argument. Behind it may be memory, a disk or an actor that others talk to.
//
//   MemberTable table({.term = absl::Seconds(10)});
//   absl::StatusOr<Member> member = table.Join({.authority = "a:1", .kinds = {"account"}}, now);
//   if (table.Expire(now)) Tell(table.topology());
//
// Thread safety: none; the owner locks.
#ifndef FRAKTOR_CLUSTER_MEMBERSHIP_MEMBER_TABLE_H_
#define FRAKTOR_CLUSTER_MEMBERSHIP_MEMBER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct MemberTableOptions {
  // How long a member is one without renewing it; InfiniteDuration: until it leaves.
  absl::Duration term = absl::Seconds(10);
  size_t max_members = ClusterTopology::kMaxMembers;
  // The last epoch of the table that this one goes on from; ids of its members never come back.
  uint64_t first_epoch = 0;
};

class MemberTable {
 public:
  explicit MemberTable(const MemberTableOptions& options = {});

  // The members that an earlier table had, when it is not known how much of their terms is left: each gets a whole one.
  // So none of them is taken for dead before its own clock says that its term is over. Before anything else is called.
  void Restore(uint64_t epoch, const std::vector<Member>& members, Instant now);

  // As MembershipProvider; InvalidArgument for options that make no sense. A change makes a new topology with a higher epoch, which is also the incarnation of who
  // joins.
  absl::StatusOr<Member> Join(const MemberCandidate& candidate, Instant now);
  absl::StatusOr<Member> Renew(std::string_view member_id, Instant now);
  absl::Status BeginLeaving(std::string_view member_id, Instant now);
  bool Leave(std::string_view member_id);
  // Whether another has joined since with the authority of this one.
  bool IsReplaced(std::string_view member_id) const;

  // Removes those whose term is over; whether there were any.
  bool Expire(Instant now);
  // When the next one is over, if nobody renews; the infinite future if none is.
  Instant NextExpiry() const;

  absl::Duration term() const { return options_.term; }
  const ClusterTopologyPtr& topology() const { return topology_; }

 private:
  struct Entry {
    Member member;
    Instant valid_until;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;  // by authority

  Entries::iterator Find(std::string_view member_id);
  absl::Status HasLeft(std::string_view member_id) const;
  void Changed(uint64_t epoch);

  const MemberTableOptions options_;
  Entries entries_;
  ClusterTopologyPtr topology_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMBERSHIP_MEMBER_TABLE_H_
