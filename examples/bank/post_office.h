// PostOffice: the actor /user/post of a compute node. Accounts of this node give it what they have to say to others, and it
// knows where they are, on whichever node.
//
//   system.Spawn<PostOffice>(kPostOffice);
//
// What is delivered at least once goes to a path (AtLeastOnceDelivery), and an account has none that stays: it has a name
// in the cluster. A letter that gets lost is sent again by whoever wrote it.
#ifndef FRAKTOR_EXAMPLES_BANK_POST_OFFICE_H_
#define FRAKTOR_EXAMPLES_BANK_POST_OFFICE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/examples/bank/transfer.h"

namespace bank {

// What the node is doing.
struct NodeReport {
  uint64_t activations = 0;
};
struct GetNodeReport {
  using Reply = NodeReport;
};

class PostOffice : public fraktor::Actor<PostOffice, Credit, Credited, GetNodeReport> {
 public:
  void On(Context& context, const Credit& letter);
  // From the taker, which answers to where the letter came from: the giver may be elsewhere by now.
  void On(Context& context, const Credited& letter);
  absl::StatusOr<NodeReport> On(Context& context, const GetNodeReport& question);
  // A letter that could not be delivered; it comes again.
  void On(Context&, const fraktor::ErrorReply&) {}

 private:
  // Null until the node has joined one.
  fraktor::Cluster* ClusterOf(Context& context);

  fraktor::Cluster* cluster_ = nullptr;
};

}  // namespace bank

template <>
struct fraktor::Codec<bank::NodeReport> : fraktor::FieldCodec<bank::NodeReport, &bank::NodeReport::activations> {
  static constexpr std::string_view kManifest = "bank.node_report";
};
template <>
struct fraktor::Codec<bank::GetNodeReport> : fraktor::FieldCodec<bank::GetNodeReport> {
  static constexpr std::string_view kManifest = "bank.get_node_report";
};

#endif  // FRAKTOR_EXAMPLES_BANK_POST_OFFICE_H_
