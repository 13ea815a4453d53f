// Actors of nodes that meet over gRPC.
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_test_ends.h"
#include "fraktor/remote/grpc/grpc_transport.h"
#include "fraktor/remote/grpc/tcp_proxy.h"
#include "fraktor/remote/grpc/test_certificates.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor {

using actor_internal::ActorWorker;
using actor_internal::kForeign;

namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

struct Note {
  int64_t number = 0;
  std::string text = {};
  ActorRef ref = {};
};

}  // namespace

template <>
struct Codec<Note> : FieldCodec<Note, &Note::number, &Note::text, &Note::ref> {
  static constexpr std::string_view kManifest = "test.grpc.note";
};

namespace {

// Answers a note with its number and size, and passes it on to the reference in it; answers texts; counts numbers.
class Desk : public Actor<Desk, Note, std::string, int64_t> {
 public:
  void On(Context& context, const Note& note) {
    const auto size = static_cast<int64_t>(note.text.size());
    context.Reply(Note{.number = note.number + 1 + size, .ref = context.self().untyped()});
    if (!note.ref.IsNoOne()) context.Tell(note.ref, Note{.number = note.number, .text = note.text});
  }
  std::string On(Context&, const std::string& text) { return absl::StrCat(text, " ", is_in_order_ ? count_ : -1); }
  void On(Context&, const int64_t& number) { is_in_order_ = is_in_order_ && number == ++count_; }

 private:
  int64_t count_ = 0;
  bool is_in_order_ = true;
};

// Quick enough for a test, and patient enough for a busy machine.
RemoteOptions Quick() {
  RemoteOptions options;
  options.tick = absl::Milliseconds(20);
  options.handshake_retry = absl::Milliseconds(100);
  options.max_backoff = absl::Milliseconds(200);
  options.heartbeat_interval = absl::Milliseconds(100);
  options.detector.acceptable_pause = absl::Seconds(2);
  options.shutdown_flush = absl::Milliseconds(200);
  options.large_destinations = {"/user/large"};
  // A link that the test cuts again and again is not a bad one.
  options.max_restarts = 1000;
  return options;
}

class GrpcNode {
 public:
  // Others know it by the port of the proxy, if there is one.
  explicit GrpcNode(std::string_view name, TcpProxy* proxy = nullptr,
                    GrpcTransportOptions options = {.security = GrpcSecurity::InsecureLoopback()},
                    const RemoteOptions& remote = Quick()) {
    std::unique_ptr<Transport> transport = GrpcTransport::Listen(options).value();
    if (proxy != nullptr) proxy->SetTarget(transport->port());
    port = transport->port();
    CodecSetup codecs;
    codecs.Add<Note>();
    TestKitOptions kit_options;
    kit_options.threads = 2;
    kit_options.patience = kPatience;
    kit_options.system.codecs = codecs.Build().value();
    kit_options.system.config.system_name = std::string(name);
    kit_options.system.config.remoting = RemotingConfig{
        .canonical_hostname = "localhost", .canonical_port = proxy != nullptr ? proxy->port() : transport->port()};
    kit = std::make_unique<TestKit>(kit_options);
    remoting = Remoting::Start(kit->system(), std::move(transport), remote).value();
  }

  // Whoever has the path at another node.
  ActorRef At(const GrpcNode& other, std::string_view path) const {
    return kit->system().Resolve(absl::StrCat(other.remoting->address().ToString(), std::string(path))).value();
  }
  // Asks until there is an answer: what is sent while a link is broken may be lost.
  void Reach(ActorRef desk) {
    while (!kit->system().AskAndWait<std::string>(desk, std::string("?"), absl::Milliseconds(500)).ok()) {
    }
  }

  std::unique_ptr<TestKit> kit;
  Remoting* remoting;
  uint16_t port;
};

// R44: ports that were picked.
TEST(GrpcNodes, TellAskAndPassReferencesOn) {
  GrpcNode a("a");
  GrpcNode b("b");
  GrpcNode c("c");
  b.kit->SpawnNamed<Desk>("desk");
  b.kit->SpawnNamed<Desk>("large");
  const ActorRef desk = a.At(b, "/user/desk");
  a.Reach(desk);  // Before they have met, only so many messages wait.
  auto probe = a.kit->Probe();
  for (int64_t i = 1; i <= 1000; ++i) probe.Send(desk, i);
  const absl::StatusOr<std::string> count =
      a.kit->system().AskAndWait<std::string>(desk, std::string("counted"), kPatience);
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, "counted 1000");
  // A reference of a third node, in a message: the desk sends to it.
  auto third = c.kit->Probe();
  const std::string path = third.Path();
  const ActorRef at_c = a.At(c, path.substr(path.find('/', path.find("://") + 3)));
  probe.Send(desk, Note{.number = 7, .text = "hi", .ref = at_c});
  const Note back = probe.Expect<Note>();
  EXPECT_EQ(back.number, 10);
  EXPECT_EQ(third.Expect<Note>().number, 7);
  // The reference of the desk that came in the answer works too.
  probe.Send(back.ref, Note{.number = 20});
  EXPECT_EQ(probe.Expect<Note>().number, 21);
  // R34
  probe.Send(a.At(b, "/user/large"), Note{.number = 30, .text = std::string(1'000'000, 'x')});
  EXPECT_EQ(probe.Expect<Note>().number, 1'000'031);
}

TEST(GrpcNodes, WatchAndHearOfTheEndOfActorsAndNodes) {
  GrpcNode a("a");
  auto b = std::make_unique<GrpcNode>("b");
  const auto first = b->kit->SpawnNamed<Desk>("first");
  b->kit->SpawnNamed<Desk>("second");
  const ActorRef there = a.At(*b, "/user/first");
  const ActorRef other = a.At(*b, "/user/second");
  auto probe = a.kit->Probe();
  probe.Watch(there);
  probe.Watch(other);
  probe.Send(there, int64_t{1});
  b->kit->system().Stop(first.untyped());
  probe.ExpectTerminated(there);
  b = nullptr;
  probe.ExpectTerminated(other);
}

TEST(GrpcNodes, GetOverALinkThatIsCut) {
  TcpProxy to_a;
  TcpProxy to_b;
  GrpcNode a("a", &to_a);
  GrpcNode b("b", &to_b);
  const auto desk = b.kit->SpawnNamed<Desk>("desk");
  const ActorRef there = a.At(b, "/user/desk");
  a.Reach(there);
  auto probe = a.kit->Probe();
  for (int round = 0; round < 3; ++round) {
    to_a.Cut();
    to_b.Cut();
    probe.Send(there, Note{.number = -1});  // It may be lost.
    to_a.Heal();
    to_b.Heal();
    a.Reach(there);
  }
  // What is watched while the link is cut is watched.
  to_b.Cut();
  probe.Watch(there);
  b.kit->system().Stop(desk.untyped());
  to_b.Heal();
  for (;;) {
    const EnvelopePtr message = probe.Receive();
    ASSERT_NE(message, nullptr);
    if (message->Is<Terminated>()) break;
  }
}

TEST(GrpcNodes, TakeANodeForDeadThatNothingIsHeardOf) {
  TcpProxy to_a;
  TcpProxy to_b;
  GrpcNode a("a", &to_a);
  GrpcNode b("b", &to_b);
  b.kit->SpawnNamed<Desk>("desk");
  const ActorRef there = a.At(b, "/user/desk");
  a.Reach(there);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  to_a.Hold();
  to_b.Hold();
  probe.ExpectTerminated(there);
}

// 0 where a sanitizer keeps what is freed: how much memory is in use cannot be seen then.
double ResidentMiB() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Keeps whole frames.
class Recorder final : public FrameReceiver {
 public:
  bool OnFrame(uint64_t, std::string_view frame) override {
    MutexLock lock(mutex_);
    frames_.emplace_back(frame);
    changed_.notify_all();
    return true;
  }
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    while (frames_.size() < count) changed_.wait(lock);
    return frames_;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::string> frames_ ABSL_GUARDED_BY(mutex_);
};

// Frames of a node, with something wrong about each.
class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}
  std::string Next() {
    std::string frame = seeds_[Draw(seeds_.size())];
    for (uint64_t changes = 1 + Draw(4); changes > 0; --changes) {
      switch (Draw(4)) {
        case 0:
          frame[Draw(frame.size())] = static_cast<char>(Draw(256));
          break;
        case 1:
          frame.resize(1 + Draw(frame.size()));
          break;
        case 2:
          frame.insert(Draw(frame.size()), frame);
          break;
        default:
          frame.append(Draw(200), static_cast<char>(Draw(256)));
      }
    }
    return frame.substr(0, 100'000);
  }

 private:
  uint64_t Draw(uint64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % below;
  }
  const std::vector<std::string> seeds_;
  uint64_t state_ = 42;
};

TEST(GrpcNodes, StandFramesOfAHostilePeer) {
  GrpcNode a("a");
  GrpcNode good("good");
  a.kit->SpawnNamed<Desk>("desk");
  const ActorRef desk = good.At(a, "/user/desk");
  good.Reach(desk);
  // What a says to strangers is what the stranger changes and sends back.
  const auto recorder = std::make_shared<Recorder>();
  const std::unique_ptr<Transport> evil = GrpcTransport::Listen({.security = GrpcSecurity::InsecureLoopback()}).value();
  ASSERT_TRUE(evil->Start(recorder).ok());
  Tell(a.kit->system().Resolve(absl::StrCat("pekko://evil@localhost:", evil->port(), "/user/x")).value(), int64_t{1});
  Mutator mutator(recorder->Await(2));
  const double before = ResidentMiB();
  const PathAuthority target = PathAuthority::Create("pekko", "localhost", a.port).value();
  auto listener = std::make_shared<Listener>();
  std::shared_ptr<OutboundStream> stream = evil->Connect(target, Lane::kControl, listener);
  size_t events = 0;
  for (int sent = 0; sent < 3000;) {
    ++events;
    if (listener->seen.Await(events)[events - 1] == "closed") {
      // It was cut off, and comes again.
      listener = std::make_shared<Listener>();
      stream = evil->Connect(target, Lane::kControl, listener);
      events = 0;
      continue;
    }
    stream->Write(mutator.Next());
    if (++sent % 500 == 0) {
      const absl::StatusOr<std::string> answer =
          good.kit->system().AskAndWait<std::string>(desk, std::string("?"), kPatience);
      EXPECT_TRUE(answer.ok()) << answer.status();
    }
  }
  EXPECT_LT(ResidentMiB() - before, 64);
}

TEST(GrpcNodes, WaitForASlowReaderWithLittleMemory) {
  TcpProxy to_b;
  GrpcNode a("a");
  GrpcNode b("b", &to_b);
  GrpcNode c("c");
  b.kit->SpawnNamed<Desk>("desk");
  c.kit->SpawnNamed<Desk>("desk");
  const ActorRef slow = a.At(b, "/user/desk");
  const ActorRef quick = a.At(c, "/user/desk");
  a.Reach(slow);
  a.Reach(quick);
  to_b.Hold();
  const double before = ResidentMiB();
  auto probe = a.kit->Probe();
  for (int i = 0; i < 100; ++i) {
    // 200 MB, of which RemoteOptions.max_queued_bytes may wait.
    for (int j = 0; j < 50; ++j) probe.Send(slow, std::string(40'000, 'x'));
    if (i % 10 != 0) continue;
    const absl::StatusOr<std::string> answer =
        a.kit->system().AskAndWait<std::string>(quick, std::string("?"), kPatience);
    EXPECT_TRUE(answer.ok()) << answer.status();
  }
  EXPECT_LT(ResidentMiB() - before, 64);
}

// Whether it is not a worker that runs the actor.
bool IsGuest() { return ActorWorker::Current()->index == kForeign; }

// Says who runs it; a number keeps a guest, and no worker, until the test lets it go.
class Clerk : public Actor<Clerk, std::string, int64_t> {
 public:
  struct Stays {
    std::binary_semaphore begun{0};
    std::binary_semaphore end{0};
    std::atomic<bool> is_guest{false};
  };
  explicit Clerk(Stays* stays) : stays_(*stays) {}

  std::string On(Context&, const std::string&) { return IsGuest() ? "guest" : "worker"; }
  void On(Context&, const int64_t&) {
    stays_.is_guest = IsGuest();
    stays_.begun.release();
    if (IsGuest()) stays_.end.acquire();
  }

 private:
  Stays& stays_;
};

TEST(GrpcNodes, RunActorsOnTheThreadThatBringsTheirMessages) {
  Clerk::Stays stays;
  RemoteOptions no_guests = Quick();
  no_guests.max_guest_frame_bytes = 0;
  GrpcNode a("a");
  GrpcNode b("b");
  GrpcNode c("c", nullptr, {.security = GrpcSecurity::InsecureLoopback()}, no_guests);
  b.kit->SpawnNamed<Clerk>("clerk", &stays);
  c.kit->SpawnNamed<Clerk>("clerk", &stays);
  const auto ask = [&](const GrpcNode& node) {
    return a.kit->system().AskAndWait<std::string>(a.At(node, "/user/clerk"), std::string("who"), kPatience).value();
  };
  // A worker may be awake, now and then.
  while (ask(b) != "guest") {
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ask(c), "worker");
}

TEST(GrpcNodes, GoOnWhileAHandlerKeepsAThreadOfTheTransport) {
  Clerk::Stays stays;
  GrpcNode a("a");
  GrpcNode b("b");
  b.kit->SpawnNamed<Clerk>("clerk", &stays);
  b.kit->SpawnNamed<Desk>("desk");
  const ActorRef clerk = a.At(b, "/user/clerk");
  auto probe = a.kit->Probe();
  while (!stays.is_guest) {
    probe.Send(clerk, int64_t{1});
    stays.begun.acquire();
  }
  // On the same stream, by a thread that is left, and workers.
  for (int i = 0; i < 20; ++i) {
    const absl::StatusOr<std::string> answer =
        a.kit->system().AskAndWait<std::string>(a.At(b, "/user/desk"), std::string("?"), kPatience);
    EXPECT_TRUE(answer.ok()) << answer.status();
  }
  stays.end.release();
}

TEST(GrpcNodes, MeetWithCertificates) {
  absl::StatusOr<TestAuthority> authority = TestAuthority::Make("nodes");
  ASSERT_TRUE(authority.ok()) << authority.status();
  const auto secure = [&] {
    return GrpcTransportOptions{.security = GrpcSecurity::MutualTls(authority->Issue().value(), {"localhost"})};
  };
  GrpcNode a("a", nullptr, secure());
  GrpcNode b("b", nullptr, secure());
  b.kit->SpawnNamed<Desk>("desk");
  auto probe = a.kit->Probe();
  probe.Send(a.At(b, "/user/desk"), Note{.number = 1});
  EXPECT_EQ(probe.Expect<Note>().number, 2);
}

TEST(GrpcNodes, ReachTheNextStartOfANodeAtTheSameAddress) {
  GrpcNode a("a");
  auto b = std::make_unique<GrpcNode>("b");
  b->kit->SpawnNamed<Desk>("desk");
  const ActorRef by_path = a.At(*b, "/user/desk");
  a.Reach(by_path);
  GrpcTransportOptions same{.security = GrpcSecurity::InsecureLoopback()};
  same.bind_port = b->port;
  b = nullptr;
  b = std::make_unique<GrpcNode>("b", nullptr, same);
  b->kit->SpawnNamed<Desk>("desk");
  a.Reach(by_path);
}

}  // namespace
}  // namespace fraktor
