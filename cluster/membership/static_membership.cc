#include "fraktor/cluster/membership/static_membership.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint64_t kEpoch = 1;

std::vector<std::string> Sorted(std::vector<std::string> kinds) {
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

absl::Status NotListed(const std::string& who) {
  return MakeError(absl::StatusCode::kNotFound, MembershipError::kNotListed,
                   absl::StrCat("\"", who, "\" is not on the list of members; put it there on every node"));
}

absl::Status NeverChanges() { return absl::UnimplementedError("a static list of members does not change"); }

}  // namespace

absl::StatusOr<std::unique_ptr<StaticMembership>> StaticMembership::Make(const std::vector<MemberCandidate>& members) {
  std::vector<Member> listed;
  for (const MemberCandidate& candidate : members) {
    listed.push_back(Member{.authority = candidate.authority,
                            .incarnation = 1,
                            .system_uid = candidate.system_uid,
                            .kinds = candidate.kinds,
                            .oldest_kinds = candidate.oldest_kinds});
  }
  FRAKTOR_ASSIGN_OR_RETURN(ClusterTopologyPtr topology, ClusterTopology::Make(kEpoch, std::move(listed)));
  return std::unique_ptr<StaticMembership>(new StaticMembership(std::move(topology)));
}

StaticMembership::StaticMembership(ClusterTopologyPtr topology) : topology_(std::move(topology)) {}

Future<MembershipTerm> StaticMembership::Join(MemberCandidate candidate, Instant /*now*/) {
  const Member* const listed = topology_->FindAuthority(candidate.authority);
  if (listed == nullptr) return MakeReadyFuture<MembershipTerm>(NotListed(candidate.authority));
  if (Sorted(listed->kinds) != Sorted(candidate.kinds)) {
    return MakeReadyFuture<MembershipTerm>(absl::FailedPreconditionError(
        absl::StrCat("\"", candidate.authority, "\" hosts the kinds [", absl::StrJoin(Sorted(candidate.kinds), ", "),
                     "], the list of members says [", absl::StrJoin(Sorted(listed->kinds), ", "), "]")));
  }
  if (Sorted(listed->oldest_kinds) != Sorted(candidate.oldest_kinds)) {
    return MakeReadyFuture<MembershipTerm>(absl::FailedPreconditionError(absl::StrCat(
        "\"", candidate.authority, "\" runs the kinds [", absl::StrJoin(Sorted(candidate.oldest_kinds), ", "),
        "] on the oldest member, the list of members says [", absl::StrJoin(Sorted(listed->oldest_kinds), ", "),
        "]; set MemberCandidate::oldest_kinds")));
  }
  return MakeReadyFuture<MembershipTerm>(MembershipTerm{.member = *listed, .valid_until = Instant::InfiniteFuture()});
}

Future<MembershipTerm> StaticMembership::Renew(std::string member_id, Instant /*now*/) {
  const Member* const listed = topology_->FindId(member_id);
  if (listed == nullptr) return MakeReadyFuture<MembershipTerm>(NotListed(member_id));
  return MakeReadyFuture<MembershipTerm>(MembershipTerm{.member = *listed, .valid_until = Instant::InfiniteFuture()});
}

Future<void> StaticMembership::BeginLeaving(std::string /*member_id*/) { return MakeReadyFuture<void>(NeverChanges()); }

Future<void> StaticMembership::Leave(std::string /*member_id*/) { return MakeReadyFuture<void>(NeverChanges()); }

MembershipListenerId StaticMembership::Listen(Listener listener) {
  const MembershipListenerId id = board_.Add(std::move(listener), topology_);
  board_.Deliver();
  return id;
}

void StaticMembership::StopListening(MembershipListenerId id) { board_.Remove(id); }

}  // namespace fraktor::inline v0
