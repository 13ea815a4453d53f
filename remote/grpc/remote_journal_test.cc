// A journal on another node, over gRPC.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/testing/remote_journal_scenario.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_transport.h"
#include "fraktor/remote/grpc/tcp_proxy.h"

namespace fraktor {
namespace {

// A node that others reach through a proxy.
struct JournalNode {
  JournalNode(std::string_view name, TcpProxy& proxy) {
    std::unique_ptr<Transport> transport =
        GrpcTransport::Listen({.security = GrpcSecurity::InsecureLoopback()}).value();
    proxy.SetTarget(transport->port());
    TestKitOptions options;
    options.threads = 2;
    options.patience = absl::Minutes(2);
    options.system.codecs = RemoteJournalCodecs().Build().value();
    options.system.config.system_name = std::string(name);
    options.system.config.remoting = RemotingConfig{.canonical_hostname = "localhost", .canonical_port = proxy.port()};
    kit = std::make_unique<TestKit>(options);
    RemoteOptions remote;
    remote.tick = absl::Milliseconds(20);
    remote.handshake_retry = absl::Milliseconds(100);
    remote.max_backoff = absl::Milliseconds(200);
    remote.shutdown_flush = absl::Milliseconds(200);
    remote.max_restarts = 1000;
    remoting = Remoting::Start(kit->system(), std::move(transport), remote).value();
  }
  std::unique_ptr<TestKit> kit;
  Remoting* remoting;
};

// PER-14
TEST(RemoteJournalOverGrpc, ServesAnActorOfAnotherNodeWhileTheLinkIsCutAndHealed) {
  TcpProxy to_writer;
  TcpProxy to_keeper;
  JournalNode writer("writer", to_writer);
  JournalNode keeper("keeper", to_keeper);
  RunRemoteJournalScenario({
      .writer = &writer.kit->system(),
      .keeper = &keeper.kit->system(),
      .keeper_authority = absl::StrCat("keeper@localhost:", to_keeper.port()),
      .cut =
          [&] {
            to_writer.Cut();
            to_keeper.Cut();
          },
      .heal =
          [&] {
            to_writer.Heal();
            to_keeper.Heal();
          },
      .cut_answers = [&] { to_writer.Cut(); },
      // Real time: the scenario looks again and again.
      .pass_time = [](absl::Duration duration) { std::this_thread::sleep_for(absl::ToChronoNanoseconds(duration)); },
  });
}

}  // namespace
}  // namespace fraktor
