// A node for tests, in a process of its own: an actor at /user/desk that answers texts, until its input ends.
//
//   node_program PORT          // 0 picks one; prints "ready PORT"
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_transport.h"

namespace fraktor {
namespace {

class Desk : public Actor<Desk, std::string> {
 public:
  std::string On(Context&, const std::string& text) { return absl::StrCat("echo ", text); }
};

int Main(int port) {
  GrpcTransportOptions options{.security = GrpcSecurity::InsecureLoopback()};
  options.bind_port = static_cast<uint16_t>(port);
  absl::StatusOr<std::unique_ptr<Transport>> transport = GrpcTransport::Listen(options);
  if (!transport.ok()) {
    std::cerr << transport.status() << "\n";
    return 1;
  }
  const uint16_t picked = (*transport)->port();
  ActorSystemOptions system_options;
  system_options.workers = 1;
  system_options.log_level = LogLevel::kError;
  system_options.config.system_name = "child";
  system_options.config.remoting = RemotingConfig{.canonical_hostname = "localhost", .canonical_port = picked};
  const std::unique_ptr<ActorSystem> system = ActorSystem::Create(system_options).value();
  RemoteOptions remote;
  remote.shutdown_flush = absl::Milliseconds(200);
  Remoting::Start(*system, *std::move(transport), remote).value();
  system->Spawn<Desk>("desk");
  std::cout << "ready " << picked << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}

}  // namespace
}  // namespace fraktor

int main(int argc, char** argv) { return fraktor::Main(argc > 1 ? std::atoi(argv[1]) : 0); }
