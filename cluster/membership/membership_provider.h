// MembershipProvider: who is in the cluster, as far as the one place knows that decides it. An extension point: a
// static list, memory, later etcd.
//
//   Future<MembershipTerm> joining = provider.Join({.authority = "10.0.0.7:2552", .kinds = {"account"}}, now);
//   MembershipListenerId listening = provider.Listen([](ClusterTopologyPtr topology) { Heed(std::move(topology)); });
//
// A member is one for a term and has to renew it; otherwise it has left, whether it knows that or not. Therefore a node
// counts its terms from before it asked, and stops what only a member may do before the term is over (MembershipSession
// does both).
//
// An id never comes back. Each Join gives a new incarnation, which only grows: also to a node that was away for too
// long and joins again.
//
// Fits what has leases of its own: in etcd a member is a key with a lease, its incarnation the revision that created
// it, the epoch the revision of the last change.
//
// Thread safety: any thread. Every call returns at once. The provider must outlive its calls, not its futures.
#ifndef FRAKTOR_CLUSTER_MEMBERSHIP_MEMBERSHIP_PROVIDER_H_
#define FRAKTOR_CLUSTER_MEMBERSHIP_MEMBERSHIP_PROVIDER_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// Sent between nodes: a number is never used for something else.
enum class MembershipError {
  // This member has left, or was taken for dead, and never comes back: join anew.
  kHasLeft = 0,
  // A static list does not name it.
  kNotListed = 1,
  // There are as many members as there may be.
  kFull = 2,
};

template <>
struct ErrorKindTraits<MembershipError> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/membership";
  static constexpr MembershipError kLast = MembershipError::kFull;
};

// Who wants to join.
struct MemberCandidate {
  std::string authority = {};
  uint64_t system_uid = 0;
  std::vector<std::string> kinds = {};
  std::vector<std::string> oldest_kinds = {};  // see Member
};

// What a member has until it renews it.
struct MembershipTerm {
  Member member = {};
  // On the clock of the node that asked, counted from before it asked. The infinite future where terms do not end.
  Instant valid_until = {};
};

struct MembershipListenerId {
  uint64_t value = 0;
  friend auto operator<=>(const MembershipListenerId&, const MembershipListenerId&) = default;
};

class MembershipProvider {
 public:
  using Listener = std::function<void(ClusterTopologyPtr)>;

  virtual ~MembershipProvider() = default;

  // Becomes a member, with a new incarnation. Another member with this authority has left then: an authority is one
  // node. `now` is the caller's clock. InvalidArgument for what CheckMember refuses.
  virtual Future<MembershipTerm> Join(MemberCandidate candidate, Instant now) = 0;

  // kHasLeft if it is none any more.
  virtual Future<MembershipTerm> Renew(std::string member_id, Instant now) = 0;

  // It hands over: the others send it nothing new. kHasLeft as above.
  virtual Future<void> BeginLeaving(std::string member_id) = 0;
  // It is none any more, at once. OK also if it was none.
  virtual Future<void> Leave(std::string member_id) = 0;

  // Calls `listener` with what is known now and with each later topology, in order, one at a time, from any thread; it
  // hands over and returns. After StopListening has returned, it is not called again, unless it is just being called.
  virtual MembershipListenerId Listen(Listener listener) = 0;
  virtual void StopListening(MembershipListenerId id) = 0;

  // "host:port" of the nodes that it talks to by remoting, members or not: a cluster keeps them out of quarantine.
  virtual std::vector<std::string> Authorities() const { return {}; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMBERSHIP_MEMBERSHIP_PROVIDER_H_
