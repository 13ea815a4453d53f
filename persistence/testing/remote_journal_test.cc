#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/protocol/remote_stores.h"
#include "fraktor/persistence/testing/remote_journal_scenario.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/sim/sim_network.h"

namespace fraktor {
namespace {

class NetworkPart final : public SimulationPart {
 public:
  NetworkPart(RuntimeToolbox& toolbox, const SimNetworkOptions& options) : network(toolbox, options) {}
  SimNetwork network;
};

PathAuthority AddressOf(std::string_view host) { return PathAuthority::Create("pekko", host, 2552).value(); }

ActorSystem& AddNode(Simulation& sim, SimNetwork& network, std::string_view name,
                     const CodecSetup& codecs = RemoteJournalCodecs()) {
  TestKitOptions kit;
  kit.system.config.system_name = std::string(name);
  kit.system.config.remoting = RemotingConfig{.canonical_hostname = std::string(name), .canonical_port = 2552};
  kit.system.codecs = codecs.Build().value();
  ActorSystem& system = sim.AddSystem(kit).system();
  const absl::StatusOr<Remoting*> remoting =
      Remoting::Start(system, network.MakeTransport(AddressOf(name)), {.system_uid = network.NextUid()});
  EXPECT_TRUE(remoting.ok()) << remoting.status();
  return system;
}

// PER-14
TEST(RemoteJournal, ServesAnActorOfAnotherNodeWhileTheLinkIsCutAndHealed) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    SimNetwork& network = sim.AddPart<NetworkPart>(sim.toolbox(), SimNetworkOptions{.trace = &sim.trace()}).network;
    ActorSystem& writer = AddNode(sim, network, "writer");
    ActorSystem& keeper = AddNode(sim, network, "keeper");
    RunRemoteJournalScenario({
        .writer = &writer,
        .keeper = &keeper,
        .keeper_authority = "keeper@keeper:2552",
        .cut = [&] { network.Cut(AddressOf("writer"), AddressOf("keeper")); },
        .heal =
            [&] {
              network.Heal();
              network.SetFaults(0, 0, 0);
            },
        .cut_answers = [&] { network.CutOneWay(AddressOf("keeper"), AddressOf("writer")); },
        .disturb = [&] { network.SetFaults(0.2, 0.2, 0.2); },
        .pass_time = [&](absl::Duration duration) { sim.Advance(duration); },
    });
  });
}

// PER-14: it is said where the journal is named, and not by every actor after its timeout.
TEST(RemoteJournal, NeedsTheCodecsOfTheProtocol) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimNetwork& network = sim.AddPart<NetworkPart>(sim.toolbox(), SimNetworkOptions{.trace = &sim.trace()}).network;
    ActorSystem& mute = AddNode(sim, network, "mute", CodecSetup());
    ActorSystem& writer = AddNode(sim, network, "writer");
    for (ActorSystem* const system : {&mute, &writer}) {
      const RemoteStores keeper = RemoteStores::At(*system, "keeper@keeper:2552").value();
      auto& persistence = system->Extension<PersistenceExtension>();
      const absl::Status journal = persistence.AddJournal("far", {.actor = keeper.Journal("main").value()});
      const absl::Status snapshots =
          persistence.AddSnapshotStore("far", {.actor = keeper.SnapshotStore("main").value()});
      EXPECT_EQ(journal.ok(), system == &writer) << journal;
      EXPECT_EQ(snapshots.ok(), system == &writer) << snapshots;
      for (const absl::Status& status : {journal, snapshots}) {
        if (status.ok()) continue;
        EXPECT_NE(std::string(status.message()).find("add ProtocolCodecs()"), std::string::npos) << status;
      }
    }
  });
}

}  // namespace
}  // namespace fraktor
