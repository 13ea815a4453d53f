// Nodes for tests: systems that reach each other over a simulated network, in virtual time.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_NODES_FIXTURE_H_
#define FRAKTOR_REMOTE_ASSOCIATION_NODES_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/sim/sim_network.h"
#include "fraktor/remote/transport/transport.h"
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
// Many references.
struct Refs {
  int64_t number = 0;
  std::vector<ActorRef> refs = {};
};
// Does something while it is encoded.
struct Restless {
  int64_t number = 0;
  std::function<void()> do_it = nullptr;
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
struct Codec<Refs> {
  static constexpr std::string_view kManifest = "test.refs";
  static void Encode(const Refs& refs, Encoder& out) {
    out.Value(refs.number);
    out.Varint(refs.refs.size());
    for (const ActorRef ref : refs.refs) out.Ref(ref);
  }
  static Refs Decode(Decoder& in) {
    Refs refs{.number = in.Value<int64_t>()};
    const size_t count = in.Count(1);
    for (size_t i = 0; i < count && in.ok(); ++i) refs.refs.push_back(in.Ref());
    return refs;
  }
};
template <>
struct Codec<Restless> {
  static constexpr std::string_view kManifest = "test.restless";
  static void Encode(const Restless& restless, Encoder& out) {
    if (restless.do_it != nullptr) restless.do_it();
    out.Value(restless.number);
  }
  static Restless Decode(Decoder& in) { return {.number = in.Value<int64_t>()}; }
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

// Hears nothing, and says nothing.
class SilentListener final : public StreamListener {
 public:
  void OnOpened() override {}
  void OnWritten() override {}
  void OnClosed(const absl::Status&) override { is_closed = true; }
  bool is_closed = false;
};

// A node that is none: it writes what it is told, and keeps what comes.
class Stranger {
 public:
  Stranger(Simulation& sim, SimNetwork& network, std::string_view host, std::vector<std::string> proved = {})
      : sim_(sim),
        transport_(network.MakeTransport(AddressOf(host), std::move(proved))),
        ear_(std::make_shared<Ear>()) {
    EXPECT_TRUE(transport_->Start(ear_).ok());
  }

  // On a stream of its own, which is opened if there is none, or none any more.
  void Write(const TestNode& to, std::string frame, Lane lane = Lane::kControl) {
    if (listener_ == nullptr || listener_->is_closed) Open(to, lane);
    stream_->Write(std::move(frame));
    sim_.Advance(absl::Milliseconds(5));
  }
  void Open(const TestNode& to, Lane lane = Lane::kControl) {
    listener_ = std::make_shared<SilentListener>();
    stream_ = transport_->Connect(to.address, lane, listener_);
    sim_.Advance(absl::Milliseconds(5));
  }
  bool is_cut() const { return listener_ != nullptr && listener_->is_closed; }

  // Control messages that have come, of one kind.
  size_t Count(wire::ControlMessage::BodyCase kind) const {
    size_t count = 0;
    for (const wire::ControlMessage& one : ear_->control) count += one.body_case() == kind ? 1 : 0;
    return count;
  }
  const std::vector<wire::ControlMessage>& control() const { return ear_->control; }

 private:
  class Ear final : public FrameReceiver {
   public:
    bool OnFrame(uint64_t, std::string_view frame) override {
      const FrameView view = ReadFrame(frame, WireLimits()).value();
      if (view.header.kind == FrameKind::kControl) control.push_back(DecodeControl(view.body, WireLimits()).value());
      return true;
    }
    std::vector<wire::ControlMessage> control;
  };

  Simulation& sim_;
  const std::unique_ptr<Transport> transport_;
  const std::shared_ptr<Ear> ear_;
  std::shared_ptr<SilentListener> listener_;
  std::shared_ptr<OutboundStream> stream_;
};

// What a node at `host` says when it meets `node`.
inline wire::ControlMessage RequestTo(const TestNode& node, std::string_view host, uint64_t uid,
                                      std::string_view to_host = {}) {
  wire::ControlMessage message;
  wire::HandshakeRequest& request = *message.mutable_handshake_request();
  request.mutable_from()->set_protocol("pekko");
  request.mutable_from()->set_system(std::string(host.substr(0, host.find('.'))));
  request.mutable_from()->set_host(std::string(host));
  request.mutable_from()->set_port(2552);
  request.mutable_from()->set_uid(uid);
  request.mutable_to()->set_protocol("pekko");
  request.mutable_to()->set_system(std::string(node.system().name()));
  request.mutable_to()->set_host(to_host.empty() ? std::string(node.address.host()) : std::string(to_host));
  request.mutable_to()->set_port(2552);
  request.set_min_version(1);
  request.set_max_version(2);
  request.set_nonce(77);
  return message;
}
inline std::string RequestFrame(const TestNode& node, std::string_view host, uint64_t uid) {
  return EncodeControl({.origin_uid = uid}, RequestTo(node, host, uid));
}

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
    codecs.Add<Note, Question, Refs, Restless>();
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
