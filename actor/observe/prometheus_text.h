// PrometheusText: metrics in the text format that Prometheus scrapes, version 0.0.4.
//
//   // Serve it with the content type kPrometheusContentType.
//   std::string page = ToPrometheusText(system.hub().Snapshot(system.toolbox().Now()));
//
// Metrics are on by default (ActorSystemOptions::scheduler.observability).
//
// Each character that a name must not have, such as a dot, becomes an underscore:
// `actor_mailbox_depth{type="Greeter"}`. Values of labels are escaped, and bytes that are no UTF-8
// become U+FFFD, because one such byte makes Prometheus refuse the whole page. Histograms are
// written with their buckets, so that quantiles can be computed over any time and over many nodes.
// The text leaves out the quantiles of the snapshot.
#ifndef FRAKTOR_ACTOR_OBSERVE_PROMETHEUS_TEXT_H_
#define FRAKTOR_ACTOR_OBSERVE_PROMETHEUS_TEXT_H_

#include <string>
#include <string_view>

#include "fraktor/actor/observe/metrics_snapshot.h"

namespace fraktor::inline v0 {

inline constexpr std::string_view kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

// Metrics of one name stand together, as in a snapshot.
std::string ToPrometheusText(const MetricsSnapshot& snapshot);

// The name as it stands in the text.
std::string PrometheusName(std::string_view metric_name);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_PROMETHEUS_TEXT_H_
