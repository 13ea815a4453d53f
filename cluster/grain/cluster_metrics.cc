#include "fraktor/cluster/grain/cluster_metrics.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/member.h"

namespace fraktor::inline v0 {
namespace {

double CountMembers(const ClusterTopology& topology, MemberStatus status) {
  return static_cast<double>(std::count_if(topology.members().begin(), topology.members().end(),
                                           [status](const Member& member) { return member.status == status; }));
}

class Adding {
 public:
  Adding(ObservabilityHub& hub, std::vector<GaugeRegistration>& registrations)
      : hub_(hub), registrations_(registrations) {}

  void Gauge(std::string_view name, MetricLabels labels, std::string_view help, std::function<double()> read) {
    Add(MetricKind::kGauge, name, std::move(labels), help, std::move(read));
  }
  void Counter(std::string_view name, MetricLabels labels, std::string_view help, std::function<double()> read) {
    Add(MetricKind::kCounter, name, std::move(labels), help, std::move(read));
  }
  const absl::Status& status() const { return status_; }

 private:
  void Add(MetricKind kind, std::string_view name, MetricLabels labels, std::string_view help,
           std::function<double()> read) {
    absl::StatusOr<GaugeRegistration> added = hub_.AddMetric({.name = std::string(name),
                                                              .labels = std::move(labels),
                                                              .read = std::move(read),
                                                              .kind = kind,
                                                              .help = std::string(help)});
    if (added.ok()) {
      registrations_.push_back(*std::move(added));
    } else {
      status_.Update(added.status());
    }
  }

  ObservabilityHub& hub_;
  std::vector<GaugeRegistration>& registrations_;
  absl::Status status_;
};

void AddMembership(Adding& adding, const ClusterMetricsParts& parts) {
  for (const MemberStatus status : {MemberStatus::kUp, MemberStatus::kLeaving}) {
    adding.Gauge(kClusterMembers, {{"state", std::string(MemberStatusName(status))}},
                 "Members of the cluster that this node knows of, by state.",
                 [driver = parts.driver, status] { return CountMembers(*driver->topology(), status); });
  }
  adding.Gauge(kClusterTopologyEpoch, {}, "Number of the topology that this node knows.",
               [driver = parts.driver] { return static_cast<double>(driver->topology()->epoch()); });
  adding.Gauge(kClusterJoined, {}, "1 while this node is a member of the cluster, 0 otherwise.",
               [session = parts.session] { return session->WhyNoMember().ok() ? 1.0 : 0.0; });
}

void AddGrains(Adding& adding, const ClusterMetricsParts& parts) {
  const auto read = [counts = parts.counts](const RouterCount& count) {
    return [counts, &count] { return static_cast<double>(count.value()); };
  };
  for (const auto& [kind, of_kind] : parts.counts->kinds) {
    adding.Gauge(kClusterGrainsActive, {{"kind", kind}}, "Grains of a kind that run on this node.",
                 read(of_kind.active));
    constexpr std::string_view kHelp = "Grains of a kind that were started on this node, by outcome.";
    adding.Counter(kClusterActivations, {{"kind", kind}, {"outcome", "started"}}, kHelp, read(of_kind.started));
    adding.Counter(kClusterActivations, {{"kind", kind}, {"outcome", "failed"}}, kHelp, read(of_kind.failed));
  }
  adding.Counter(kClusterPassivations, {}, "Grains of this node that were ended because they were idle, or wanted to.",
                 [driver = parts.driver] { return static_cast<double>(driver->Snapshot().passivations); });
  adding.Counter(kClusterLookupFailures, {}, "Attempts to find a grain that failed.",
                 read(parts.counts->failed_lookups));
  adding.Gauge(kClusterPidCacheSize, {}, "Grains of other nodes whose place is remembered.",
               [driver = parts.driver] { return static_cast<double>(driver->Snapshot().cached_pids); });
}

void AddCalls(Adding& adding, const ClusterMetricsParts& parts) {
  const auto read = [counts = parts.counts](const RouterCount& count) {
    return [counts, &count] { return static_cast<double>(count.value()); };
  };
  adding.Gauge(kClusterCallsWaiting, {}, "Calls that wait for their grains.", read(parts.counts->waiting_calls));
  adding.Counter(kClusterCallsRetried, {}, "Calls sent again that had not left this node, or were not handled.",
                 read(parts.counts->retried_calls));
  adding.Counter(kClusterCallsRefused, {}, "Calls that ended with an error of the cluster.",
                 read(parts.counts->refused_calls));
  adding.Counter(kClusterCallsRefusedByFilter, {}, "Calls that a call filter of this node refused.",
                 read(parts.counts->calls_refused_by_filter));
  constexpr std::string_view kHelp = "Calls to and from other nodes that did not go through the router of this one.";
  adding.Counter(kClusterCallsPastRouter, {{"direction", "out"}}, kHelp,
                 [gate = parts.gate] { return static_cast<double>(gate->crossed()); });
  adding.Counter(kClusterCallsPastRouter, {{"direction", "in"}}, kHelp,
                 [gate = parts.gate] { return static_cast<double>(gate->entered()); });
}

}  // namespace

absl::Status AddClusterMetrics(ObservabilityHub& hub, const ClusterMetricsParts& parts,
                               std::vector<GaugeRegistration>& registrations) {
  Adding adding(hub, registrations);
  AddMembership(adding, parts);
  AddGrains(adding, parts);
  AddCalls(adding, parts);
  return adding.status();
}

}  // namespace fraktor::inline v0
