// LoopbackNetwork: systems of one process that reach each other as if they were on different nodes, with threads.
//
//   LoopbackNetwork network;
//   std::unique_ptr<Transport> transport = network.MakeTransport(address, toolbox).value();     // port 0: picks one
//   transport->port();
//
// For tests and benchmarks of what is above a transport: each stream has a worker of its own, as each has a thread with a
// real one, and nothing is lost as long as both nodes live. A frame counts as written when its receiver has handled it,
// so a slow receiver holds its sender back.
//
// Thread safety: any thread.
#ifndef FRAKTOR_REMOTE_TRANSPORT_LOOPBACK_TRANSPORT_H_
#define FRAKTOR_REMOTE_TRANSPORT_LOOPBACK_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/remote/transport/transport.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct LoopbackOptions {
  TransportLimits limits = {};
  // What others are told that this node has proved to be: see StreamOrigin.
  std::vector<std::string> hosts = {};
};

class LoopbackNetwork {
 public:
  LoopbackNetwork();
  ~LoopbackNetwork();
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;

  // A node. The toolbox must outlive it. Port 0 picks one that is free. AlreadyExists if the address is taken by one that
  // lives.
  absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const PathAuthority& address, RuntimeToolbox& toolbox,
                                                           const LoopbackOptions& options = {});

 private:
  class Hub;
  class Node;
  class Stream;
  class NodeTransport;

  const std::shared_ptr<Hub> hub_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_TRANSPORT_LOOPBACK_TRANSPORT_H_
