#include "fraktor/remote/grpc/grpc_node.h"

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/own_certificate.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// Peers would refuse the node, and its own log would not say why.
void WarnOfCertificate(ActorSystem& system, const GrpcSecurity& security, std::string_view host) {
  if (security.kind() != GrpcSecurity::Kind::kMutualTls) return;
  std::ifstream file(security.files().certificate);
  const std::string pem((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const absl::StatusOr<OwnCertificate> certificate = ReadOwnCertificate(pem);
  if (!certificate.ok()) return;  // gRPC has made something of it; what, is not known.
  const absl::Time now = system.toolbox().WallNow();
  for (const std::string& trouble : TroublesOf(*certificate, host, now)) {
    system.log().Log(LogLevel::kWarning, {.at = now, .path = "remote", .text = trouble});
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ActorSystem>> StartGrpcNode(GrpcNodeOptions options) {
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, GrpcTransport::Listen(options.transport));
  ActorSystemConfig& config = options.system.config;
  config.system_name = std::move(options.name);
  if (!config.remoting.has_value()) config.remoting.emplace();
  config.remoting->canonical_hostname = std::move(options.host);
  config.remoting->canonical_port = options.port != 0 ? options.port : transport->port();
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<ActorSystem> system, ActorSystem::Create(options.system));
  WarnOfCertificate(*system, options.transport.security, config.remoting->canonical_hostname);
  FRAKTOR_RETURN_IF_ERROR(Remoting::Start(*system, std::move(transport), options.remote).status());
  return system;
}

}  // namespace fraktor::inline v0
