// The nodes of link_benchmark, and their actors.
#ifndef FRAKTOR_BENCHMARKS_REMOTE_LINK_NODE_H_
#define FRAKTOR_BENCHMARKS_REMOTE_LINK_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/benchmarks/measuring/program_time.h"
#include "fraktor/remote/grpc/grpc_security.h"

namespace fraktor::inline v0 {

// Of roots, certificate and key; without any, nothing is protected.
GrpcSecurity LinkSecurity(const std::vector<std::string>& files);

class LinkNode {
 public:
  LinkNode(std::string_view name, const GrpcSecurity& security);
  ~LinkNode();

  uint16_t port() const { return port_; }
  // What the other node sends to.
  void SpawnTargets();

  // How long it takes until the node at that port has counted all messages.
  double RunOneWay(uint16_t there, int64_t messages);
  // How long each round trip to it takes.
  std::vector<ProgramClock::duration> RunRoundTrips(uint16_t there, int64_t count);

 private:
  ActorRef At(uint16_t there, std::string_view path);

  std::unique_ptr<ActorSystem> system_;
  uint16_t port_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_BENCHMARKS_REMOTE_LINK_NODE_H_
