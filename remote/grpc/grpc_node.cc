#include "fraktor/remote/grpc/grpc_node.h"

#include <utility>

#include "fraktor/remote/association/remoting.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

absl::StatusOr<std::unique_ptr<ActorSystem>> StartGrpcNode(GrpcNodeOptions options) {
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, GrpcTransport::Listen(options.transport));
  ActorSystemConfig& config = options.system.config;
  config.system_name = std::move(options.name);
  if (!config.remoting.has_value()) config.remoting.emplace();
  config.remoting->canonical_hostname = std::move(options.host);
  config.remoting->canonical_port = options.port != 0 ? options.port : transport->port();
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<ActorSystem> system, ActorSystem::Create(options.system));
  FRAKTOR_RETURN_IF_ERROR(Remoting::Start(*system, std::move(transport), options.remote).status());
  return system;
}

}  // namespace fraktor::inline v0
