// The metrics of a node of a cluster, beside those of its system (fraktor/actor/observe/metrics_snapshot.h). Cluster::Start adds
// them to the hub of the system; they are read when somebody asks.
//
//   const MetricsSnapshot snapshot = system.hub().Snapshot(system.toolbox().Now());
//   const Metric* active = snapshot.Find(kClusterGrainsActive, {{"kind", "account"}});
//
// | name                                  | kind    | labels        | what                                                         |
// |---------------------------------------|---------|---------------|--------------------------------------------------------------|
// | cluster.members                       | gauge   | state         | members that this node knows of: up, leaving                 |
// | cluster.topology.epoch                | gauge   |               | the number of the topology that it knows                     |
// | cluster.joined                        | gauge   |               | 1 while this node is a member, 0 otherwise                   |
// | cluster.grains.active                 | gauge   | kind          | grains that run on this node                                 |
// | cluster.activations_total             | counter | kind, outcome | grains started here: started; failed, also at their start    |
// | cluster.passivations_total            | counter |               | grains ended here because they were idle, or wanted to       |
// | cluster.lookup_failures_total         | counter |               | attempts to find a grain that failed; most are tried again   |
// | cluster.calls.waiting                 | gauge   |               | calls that wait for their grains on this node                |
// | cluster.calls.retried_total           | counter |               | calls sent again that had not left, or were not handled      |
// | cluster.calls.refused_total           | counter |               | calls that ended with an error of the cluster                |
// | cluster.calls.refused_by_filter_total | counter |               | calls that a call filter of this node refused                |
// | cluster.calls.past_router_total       | counter | direction     | calls to and from other nodes by the short way: out, in      |
// | cluster.pid_cache.size                | gauge   |               | grains of other nodes whose place is remembered              |
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_CLUSTER_METRICS_H_
#define FRAKTOR_CLUSTER_GRAIN_CLUSTER_METRICS_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/observe/gauge_table.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/cluster/grain/grain_gate.h"
#include "fraktor/cluster/grain/router_counts.h"
#include "fraktor/cluster/membership/membership_session.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"

namespace fraktor::inline v0 {

inline constexpr std::string_view kClusterMembers = "cluster.members";
inline constexpr std::string_view kClusterTopologyEpoch = "cluster.topology.epoch";
inline constexpr std::string_view kClusterJoined = "cluster.joined";
inline constexpr std::string_view kClusterGrainsActive = "cluster.grains.active";
inline constexpr std::string_view kClusterActivations = "cluster.activations_total";
inline constexpr std::string_view kClusterPassivations = "cluster.passivations_total";
inline constexpr std::string_view kClusterLookupFailures = "cluster.lookup_failures_total";
inline constexpr std::string_view kClusterCallsWaiting = "cluster.calls.waiting";
inline constexpr std::string_view kClusterCallsRetried = "cluster.calls.retried_total";
inline constexpr std::string_view kClusterCallsRefused = "cluster.calls.refused_total";
inline constexpr std::string_view kClusterCallsRefusedByFilter = "cluster.calls.refused_by_filter_total";
inline constexpr std::string_view kClusterCallsPastRouter = "cluster.calls.past_router_total";
inline constexpr std::string_view kClusterPidCacheSize = "cluster.pid_cache.size";

// Where the values come from.
struct ClusterMetricsParts {
  std::shared_ptr<PlacementCoordinatorDriver> driver;
  std::shared_ptr<MembershipSession> session;
  std::shared_ptr<RouterCounts> counts;
  const GrainGate* gate = nullptr;  // of the process
};

// Adds all that there is room for, until the registrations end. Not OK: why some are missing, as ObservabilityHub::AddMetric
// says.
absl::Status AddClusterMetrics(ObservabilityHub& hub, const ClusterMetricsParts& parts,
                               std::vector<GaugeRegistration>& registrations);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_CLUSTER_METRICS_H_
