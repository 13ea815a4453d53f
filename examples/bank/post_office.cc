#include "fraktor/examples/bank/post_office.h"

#include "absl/status/status.h"

#include "fraktor/examples/bank/account.h"

namespace bank {

void PostOffice::On(Context& context, const Credit& letter) {
  if (fraktor::Cluster* cluster = ClusterOf(context)) cluster->Grain<Account>(letter.to).Tell(letter);
}

void PostOffice::On(Context& context, const Credited& letter) {
  if (fraktor::Cluster* cluster = ClusterOf(context)) cluster->Grain<Account>(letter.from).Tell(letter);
}

absl::StatusOr<NodeReport> PostOffice::On(Context& context, const GetNodeReport&) {
  fraktor::Cluster* const cluster = ClusterOf(context);
  if (cluster == nullptr) return absl::UnavailableError("this node has not joined a cluster yet");
  return NodeReport{.activations = cluster->driver().Snapshot().activations};
}

fraktor::Cluster* PostOffice::ClusterOf(Context& context) {
  if (cluster_ == nullptr) cluster_ = fraktor::Cluster::Of(context.system());
  return cluster_;
}

}  // namespace bank
