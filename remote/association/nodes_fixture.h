// Nodes for tests: systems that reach each other over a simulated network, in virtual time.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_NODES_FIXTURE_H_
#define FRAKTOR_REMOTE_ASSOCIATION_NODES_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/sim/sim_network.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/remote/wire/frame_header.h"

namespace fraktor {

struct Note {
  int64_t number = 0;
  std::string text = {};
  ActorRef ref = {};
};
struct Question {
  using Reply = Note;
  int64_t number = 0;
};
// Has no codec.
struct Private {
  int number = 0;
};
// A codec that only one side has.
struct Rare {
  int64_t number = 0;
};

template <>
struct Codec<Note> : FieldCodec<Note, &Note::number, &Note::text, &Note::ref> {
  static constexpr std::string_view kManifest = "test.note";
};
template <>
struct Codec<Question> : FieldCodec<Question, &Question::number> {
  static constexpr std::string_view kManifest = "test.question";
};
template <>
struct Codec<Rare> : FieldCodec<Rare, &Rare::number> {
  static constexpr std::string_view kManifest = "test.rare";
};

// Answers questions, and sends notes back to who they are from.
class Echo : public Actor<Echo, Note, Question, std::string> {
 public:
  Note On(Context& context, const Question& question) {
    return {.number = question.number + 1, .text = context.Path(), .ref = context.self().untyped()};
  }
  void On(Context& context, const Note& note) { context.Reply(note); }
  absl::Status On(Context&, const std::string& text) { return absl::InternalError(text); }
};

class NetworkPart final : public SimulationPart {
 public:
  NetworkPart(RuntimeToolbox& toolbox, const SimNetworkOptions& options) : network(toolbox, options) {}
  std::string Describe() const override {
    const SimNetworkCounts& counts = network.counts();
    return absl::StrCat("network: ", counts.sent, " sent, ", counts.delivered, " delivered, ", counts.dropped,
                        " dropped, ", counts.cut, " cut");
  }
  SimNetwork network;
};

struct TestNode {
  TestKit* kit = nullptr;
  Remoting* remoting = nullptr;
  PathAuthority address;

  ActorSystem& system() const { return kit->system(); }
  uint64_t uid() const { return remoting->system_uid(); }
  std::string Path(std::string_view path) const {
    return absl::StrCat(remoting->address().ToString(), std::string(path));
  }
  // Whoever has the path here, as `other` sees it.
  ActorRef From(const TestNode& other, std::string_view path) const {
    return other.system().Resolve(Path(path)).value();
  }
  const PeerInfo* Find(std::vector<PeerInfo>& peers, const TestNode& peer) const {
    peers = remoting->Peers();
    for (const PeerInfo& info : peers) {
      if (info.parts == peer.remoting->address()) return &info;
    }
    return nullptr;
  }
  bool IsAssociatedWith(const TestNode& peer) const {
    std::vector<PeerInfo> peers;
    const PeerInfo* const info = Find(peers, peer);
    return info != nullptr && info->is_associated && info->uid == peer.uid();
  }
  bool HasQuarantined(const TestNode& peer) const {
    std::vector<PeerInfo> peers;
    const PeerInfo* const info = Find(peers, peer);
    return info != nullptr && info->is_quarantined;
  }
  PeerInfo Info(const TestNode& peer) const {
    std::vector<PeerInfo> peers;
    const PeerInfo* const info = Find(peers, peer);
    return info == nullptr ? PeerInfo{.parts = peer.remoting->address()} : *info;
  }
};

inline PathAuthority AddressOf(std::string_view host) { return PathAuthority::Create("pekko", host, 2552).value(); }

// Several nodes of one simulation.
class Nodes {
 public:
  explicit Nodes(Simulation& sim, SimNetworkOptions options = {}) : sim_(sim) {
    options.trace = &sim.trace();
    network_ = &sim.AddPart<NetworkPart>(sim.toolbox(), options).network;
  }

  TestNode Add(std::string_view name, RemoteOptions options = {}, RemotingConfig config = {}, bool has_rare = false) {
    const PathAuthority address = AddressOf(name);
    CodecSetup codecs;
    codecs.Add<Note, Question>();
    if (has_rare) codecs.Add<Rare>();
    TestKitOptions kit;
    config.canonical_hostname = std::string(name);
    config.canonical_port = 2552;
    kit.system.config.system_name = std::string(name);
    kit.system.config.remoting = config;
    kit.system.codecs = codecs.Build().value();
    kit.patience = absl::Seconds(30);
    TestKit& made = sim_.AddSystem(kit);
    if (options.system_uid == 0) options.system_uid = network_->NextUid();
    absl::StatusOr<Remoting*> remoting = Remoting::Start(made.system(), network_->MakeTransport(address), options);
    EXPECT_TRUE(remoting.ok()) << remoting.status();
    return TestNode{.kit = &made, .remoting = *remoting, .address = address};
  }

  SimNetwork& network() { return *network_; }
  Simulation& sim() { return sim_; }

 private:
  Simulation& sim_;
  SimNetwork* network_;
};

class NodesTest : public testing::Test {
 protected:
  explicit NodesTest(SimNetworkOptions options = {}) : nodes_(sim_, options) {}

  void TearDown() override { network().SetTamper(nullptr); }

  TestNode Add(std::string_view name, const RemoteOptions& options = {}) { return nodes_.Add(name, options); }
  SimNetwork& network() { return nodes_.network(); }
  void Advance(absl::Duration duration) { sim_.Advance(duration); }
  // A message that shows that the way is free.
  void Meet(const TestNode& a, const TestNode& b) {
    auto probe = a.kit->Probe();
    const ActorRef there = b.From(a, "/system/remote");
    probe.Send(there, Identify{.id = 1});
    EXPECT_FALSE(probe.Expect<ActorIdentity>().ref.IsNoOne());
  }

  Simulation sim_{{.seed = 5}};
  Nodes nodes_;
};

}  // namespace fraktor

#endif  // FRAKTOR_REMOTE_ASSOCIATION_NODES_FIXTURE_H_
