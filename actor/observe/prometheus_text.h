// Metrics in the text format that Prometheus scrapes, version 0.0.4.
//
//   #include "fraktor/utils/toolbox/runtime_toolbox.h"    // for toolbox().Now()
//
//   response.set_content_type(kPrometheusContentType);
//   response.set_body(ToPrometheusText(system.hub().Snapshot(system.toolbox().Now())));
//
// Metrics are on by default (ActorSystemOptions::scheduler.observability).
//
// Every character that a name may not have, such as a dot, becomes an underscore: actor_mailbox_depth{type="Greeter"}.
// Values of labels are escaped, and bytes that are no UTF-8 become U+FFFD, because one such byte would make Prometheus
// refuse the whole page. Histograms are written with their buckets, so that quantiles can be taken over any time and
// over many nodes; the quantiles of the snapshot itself are not in the text.
#ifndef FRAKTOR_ACTOR_OBSERVE_PROMETHEUS_TEXT_H_
#define FRAKTOR_ACTOR_OBSERVE_PROMETHEUS_TEXT_H_

#include <string>
#include <string_view>

#include "fraktor/actor/observe/metrics_snapshot.h"

namespace fraktor::inline v0 {

inline constexpr std::string_view kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

// Metrics of one name follow each other, as they do in a snapshot.
std::string ToPrometheusText(const MetricsSnapshot& snapshot);

// As it stands in the text.
std::string PrometheusName(std::string_view metric_name);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_PROMETHEUS_TEXT_H_
