// StartGrpcNode: an actor system that others reach over gRPC, and that reaches others.
//
//   absl::StatusOr<std::unique_ptr<ActorSystem>> shop = StartGrpcNode({
//       .name = "shop",
//       .host = "node-1.shop.internal",
//       .transport = {.bind_host = "0.0.0.0",
//                     .bind_port = 2552,
//                     .security = GrpcSecurity::MutualTls(PemFiles{...}, {"*.shop.internal"})},
//   });
//   ActorRef cart = (*shop)->Resolve("pekko://shop@node-2.shop.internal:2552/user/cart").value();
//
// It puts together what can be had one by one: GrpcTransport::Listen, ActorSystem::Create, Remoting::Start.
//
// Thread safety: a function.
#ifndef FRAKTOR_REMOTE_GRPC_GRPC_NODE_H_
#define FRAKTOR_REMOTE_GRPC_GRPC_NODE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/association/remote_options.h"
#include "fraktor/remote/grpc/grpc_transport.h"

namespace fraktor::inline v0 {

struct GrpcNodeOptions {
  // Of the system.
  std::string name;
  // How others reach it: they use it in paths, and with TLS it is in the certificate.
  std::string host = "localhost";
  // 0: the port at which it listens, which is right unless something between maps it to another one.
  uint16_t port = 0;
  GrpcTransportOptions transport;
  RemoteOptions remote = {};
  // Codecs of messages, workers, logs; `config` gets the name and the address from above.
  ActorSystemOptions system = {};
};

// Errors: those of the three. The end of the system ends the rest.
absl::StatusOr<std::unique_ptr<ActorSystem>> StartGrpcNode(GrpcNodeOptions options);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_GRPC_NODE_H_
