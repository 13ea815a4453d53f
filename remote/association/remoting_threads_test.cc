// Nodes with real threads, over a loopback: the order of messages, answers, the end.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/transport/loopback_transport.h"
#include "fraktor/remote/transport/transport.h"
#include "fraktor/remote/wire/batch_writer.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

// Says how many it has got in order, and whether one was out of it.
class Counter : public Actor<Counter, int64_t, std::string> {
 public:
  void On(Context&, const int64_t& number) {
    is_in_order_ = is_in_order_ && number == count_ + 1;
    ++count_;
  }
  std::string On(Context&, const std::string&) { return absl::StrCat(is_in_order_ ? "in order " : "not ", count_); }

 private:
  int64_t count_ = 0;
  bool is_in_order_ = true;
};

// Sends numbers, a few at a time, and asks in between how far the other is.
struct SendAll {
  using Reply = std::string;
  int64_t count = 0;
};
class Sender : public Actor<Sender, SendAll> {
 public:
  explicit Sender(ActorRef to) : to_(to) {}
  Task<std::string> On(Context& context, SendAll run) {
    absl::StatusOr<std::string> seen = std::string();
    for (int64_t i = 1; i <= run.count; ++i) {
      context.Tell(to_, i);
      if (i % 100 != 0 && i != run.count) continue;
      auto asking = context.Ask<std::string>(to_, std::string("how many"), kPatience);
      seen = co_await asking;
      if (!seen.ok()) co_return seen.status();
    }
    co_return *seen;
  }

 private:
  ActorRef to_;
};

// Whoever reads one waits until it may go on.
struct Slow {
  int64_t number = 0;
};
class Gate {
 public:
  void Pass() {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    while (!is_open_) changed_.wait(lock);
  }
  void AwaitOne() {
    MutexLock lock(mutex_);
    while (waiting_ == 0) changed_.wait(lock);
  }
  void Open() {
    MutexLock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void Shut() {
    MutexLock lock(mutex_);
    is_open_ = false;
    waiting_ = 0;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};
Gate& TheGate() {
  static Gate& gate = *new Gate;
  return gate;
}

// Whoever writes one says something to another actor in the middle of it.
struct Chatty {
  ActorRef aside;
  std::string text;
};

}  // namespace

template <>
struct Codec<Slow> {
  static constexpr std::string_view kManifest = "test.slow";
  static void Encode(const Slow& slow, Encoder& out) { out.Value(slow.number); }
  static Slow Decode(Decoder& in) {
    TheGate().Pass();
    return {.number = in.Value<int64_t>()};
  }
};

template <>
struct Codec<Chatty> {
  static constexpr std::string_view kManifest = "test.chatty";
  static void Encode(const Chatty& chatty, Encoder& out) {
    out.Bytes("begin ");
    Tell(chatty.aside, std::string("aside"));
    out.Bytes(chatty.text);
  }
  static Chatty Decode(Decoder& in) {
    Chatty read;
    read.text += in.Bytes();
    read.text += in.Bytes();
    return read;
  }
};

namespace {

// Another transport, where something is done before each frame is written.
class WatchedTransport final : public Transport {
 public:
  WatchedTransport(std::unique_ptr<Transport> inner, std::function<void()> before_write)
      : inner_(std::move(inner)), before_write_(std::move(before_write)) {}

  absl::Status Start(std::shared_ptr<FrameReceiver> receiver) override { return inner_->Start(std::move(receiver)); }
  std::shared_ptr<OutboundStream> Connect(const PathAuthority& to, Lane lane,
                                          std::shared_ptr<StreamListener> listener) override {
    return std::make_shared<Stream>(inner_->Connect(to, lane, std::move(listener)), before_write_);
  }
  void Cut(uint64_t stream) override { inner_->Cut(stream); }
  void Shutdown() override { inner_->Shutdown(); }
  uint16_t port() const override { return inner_->port(); }
  TransportLimits limits() const override { return inner_->limits(); }

 private:
  class Stream final : public OutboundStream {
   public:
    Stream(std::shared_ptr<OutboundStream> inner, std::function<void()> before_write)
        : inner_(std::move(inner)), before_write_(std::move(before_write)) {}
    void Write(std::string frame) override {
      if (before_write_) before_write_();
      inner_->Write(std::move(frame));
    }
    void Close() override { inner_->Close(); }

   private:
    const std::shared_ptr<OutboundStream> inner_;
    const std::function<void()> before_write_;
  };

  const std::unique_ptr<Transport> inner_;
  const std::function<void()> before_write_;
};

class ThreadedNode {
 public:
  ThreadedNode(LoopbackNetwork& network, std::string_view name, uint16_t port, std::function<void()> before_write = {})
      : toolbox_(StdToolbox::Make({.name = std::string(name)}).value()) {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.workers = 2;
    options.codecs = CodecSetup().Add<Slow, Chatty>().Build().value();
    options.config.system_name = std::string(name);
    options.config.remoting = RemotingConfig{.canonical_hostname = "localhost", .canonical_port = port};
    system_ = ActorSystem::Create(options).value();
    const PathAuthority address = PathAuthority::Create("pekko", "localhost", port).value();
    auto transport =
        std::make_unique<WatchedTransport>(network.MakeTransport(address, *toolbox_).value(), std::move(before_write));
    remoting_ = Remoting::Start(*system_, std::move(transport)).value();
  }

  ActorSystem& system() { return *system_; }
  Remoting& remoting() { return *remoting_; }
  std::string Path(std::string_view path) const {
    return absl::StrCat(remoting_->address().ToString(), std::string(path));
  }

 private:
  std::unique_ptr<StdToolbox> toolbox_;
  std::unique_ptr<ActorSystem> system_;
  Remoting* remoting_;
};

TEST(RemotingWithThreads, KeepsTheOrderOfEachPairAndAnswersEverybody) {
  constexpr int kPairs = 8;
  constexpr int64_t kMessages = 1000;
  LoopbackNetwork network;
  ThreadedNode a(network, "a", 1);
  ThreadedNode b(network, "b", 2);
  std::vector<Future<std::string>> results;
  for (int i = 0; i < kPairs; ++i) {
    ThreadedNode& from = i % 2 == 0 ? a : b;
    ThreadedNode& to = i % 2 == 0 ? b : a;
    const std::string name = absl::StrCat("counter-", i);
    to.system().Spawn<Counter>(name);
    auto sender = from.system().Spawn<Sender>("", from.system().Resolve(to.Path(absl::StrCat("/user/", name))).value());
    results.push_back(from.system().Ask(sender, SendAll{kMessages}, kPatience));
  }
  for (Future<std::string>& result : results) {
    const absl::StatusOr<std::string> seen = result.Wait();
    ASSERT_TRUE(seen.ok()) << seen.status();
    EXPECT_EQ(*seen, absl::StrCat("in order ", kMessages));
  }
}

// Writes down what comes.
struct WatchIt {
  ActorRef whom;
};
class Scribe : public Actor<Scribe, Slow, Chatty, std::string, WatchIt, Terminated, bool> {
 public:
  void On(Context&, const Slow& slow) { text_ += absl::StrCat("slow ", slow.number, ","); }
  void On(Context&, const Chatty& chatty) { text_ += chatty.text + ","; }
  void On(Context&, const std::string& text) { text_ += text + ","; }
  void On(Context& context, const WatchIt& watch) { EXPECT_TRUE(context.Watch(watch.whom).ok()); }
  void On(Context&, const Terminated&) { text_ += "terminated,"; }
  std::string On(Context&, const bool&) { return text_; }

 private:
  std::string text_;
};

// Says something, and ends.
class Dying : public Actor<Dying, ActorRef> {
 public:
  void On(Context& context, const ActorRef& to) {
    context.Tell(to, Slow{1});
    context.Stop();
  }
};

// Watches one, and when that has ended another one. Says how many have.
class Chain : public Actor<Chain, Terminated, bool> {
 public:
  Chain(ActorRef first, ActorRef second) : first_(first), second_(second) {}
  int64_t On(Context& context, const bool&) {
    if (!std::exchange(has_begun_, true)) {
      EXPECT_TRUE(context.Watch(first_).ok());
    }
    return ended_;
  }
  void On(Context& context, const Terminated&) {
    if (++ended_ == 1) {
      EXPECT_TRUE(context.Watch(second_).ok());
    }
  }

 private:
  ActorRef first_;
  ActorRef second_;
  bool has_begun_ = false;
  int64_t ended_ = 0;
};

std::string Ask(ActorSystem& system, ActorRef scribe) {
  return system.AskAndWait<std::string>(scribe, true, kPatience).value();
}

// R42: the news of an end comes by another stream, and another thread, than the last words.
TEST(RemotingWithThreads, BringsTheLastWordsBeforeTheNewsOfTheEnd) {
  LoopbackNetwork network;
  ThreadedNode a(network, "a", 1);
  ThreadedNode b(network, "b", 2);
  TheGate().Shut();
  const ActorRef scribe = a.system().Spawn<Scribe>("scribe").untyped();
  const ActorRef dying = b.system().Spawn<Dying>("dying").untyped();
  const ActorRef there = a.system().Resolve(b.Path("/user/dying")).value();
  Tell(scribe, WatchIt{there});
  const auto pending = [&] {
    size_t count = 0;
    for (const PeerInfo& peer : b.remoting().Peers()) count += peer.pending_system;
    for (const PeerInfo& peer : a.remoting().Peers()) {
      count += peer.pending_system + (peer.watches == 0 || !peer.is_associated ? 1 : 0);
    }
    return count;
  };
  // The watch has arrived, and both know each other.
  while (a.remoting().Peers().empty() || pending() != 0) std::this_thread::yield();
  while (b.remoting().Peers().empty()) std::this_thread::yield();
  const ActorRef chain =
      b.system().Spawn<Chain>("chain", dying, b.system().Resolve(a.Path("/user/nobody")).value()).untyped();
  EXPECT_EQ(b.system().AskAndWait<int64_t>(chain, true, kPatience).value(), 0);
  Tell(dying, b.system().Resolve(a.Path("/user/scribe")).value());
  TheGate().AwaitOne();
  // The news is here: what was sent behind it was answered.
  while (b.system().AskAndWait<int64_t>(chain, true, kPatience).value() < 2) std::this_thread::yield();
  EXPECT_EQ(Ask(a.system(), scribe), "");
  TheGate().Open();
  while (Ask(a.system(), scribe).find("terminated") == std::string::npos) std::this_thread::yield();
  EXPECT_EQ(Ask(a.system(), scribe), "slow 1,terminated,");
}

class Opened final : public StreamListener {
 public:
  void OnOpened() override { is_open.store(true); }
  void OnWritten() override { written.fetch_add(1); }
  void OnClosed(const absl::Status&) override {}
  std::atomic<bool> is_open{false};  // Pairs with Await.
  std::atomic<int> written{0};       // Pairs with Await.
  void Await(int count) const {
    while (!is_open.load() || written.load() < count) std::this_thread::yield();
  }
};

// Frames of one lane that come on two streams, since the first has failed, are read one after the other.
TEST(RemotingWithThreads, ReadsOneBatchOfALaneAtATime) {
  LoopbackNetwork network;
  ThreadedNode a(network, "a", 1);
  TheGate().Shut();
  const ActorRef scribe = a.system().Spawn<Scribe>("scribe").untyped();
  const std::unique_ptr<StdToolbox> toolbox = StdToolbox::Make({.name = "stranger"}).value();
  const std::unique_ptr<Transport> stranger =
      network.MakeTransport(PathAuthority::Create("pekko", "localhost", 3).value(), *toolbox).value();
  class Nobody final : public FrameReceiver {
    bool OnFrame(uint64_t, std::string_view) override { return true; }
  };
  ASSERT_TRUE(stranger->Start(std::make_shared<Nobody>()).ok());
  constexpr uint64_t kUid = 5;
  wire::ControlMessage hello;
  const auto fill = [](wire::Node& node, const char* system, uint32_t port) {
    node.set_protocol("pekko");
    node.set_system(system);
    node.set_host("localhost");
    node.set_port(port);
  };
  fill(*hello.mutable_handshake_request()->mutable_from(), "stranger", 3);
  hello.mutable_handshake_request()->mutable_from()->set_uid(kUid);
  fill(*hello.mutable_handshake_request()->mutable_to(), "a", 1);
  hello.mutable_handshake_request()->set_min_version(1);
  hello.mutable_handshake_request()->set_max_version(2);
  const auto batch = [&](uint64_t number, std::string_view manifest, std::string_view payload) {
    BatchWriter writer;
    writer.AddRef({.path = "/user/scribe"});
    writer.AddManifest(manifest, 0);
    writer.AddMessage({.to = 1, .manifest = 1, .payload = payload});
    return writer.Seal({.kind = FrameKind::kBatch,
                        .lane = Lane::kOrdinary,
                        .origin_uid = kUid,
                        .target_uid = a.remoting().system_uid(),
                        .number = number});
  };
  const PathAuthority to = PathAuthority::Create("pekko", "localhost", 1).value();
  const auto open = [&](const std::shared_ptr<Opened>& listener) {
    std::shared_ptr<OutboundStream> stream = stranger->Connect(to, Lane::kOrdinary, listener);
    listener->Await(0);
    stream->Write(EncodeControl({.lane = Lane::kOrdinary, .origin_uid = kUid}, hello));
    listener->Await(1);
    return stream;
  };
  std::string slow;
  const CodecContext context;
  Encoder out(slow, context);
  out.Value(int64_t{1});
  const auto first = std::make_shared<Opened>();
  const auto one = open(first);
  one->Write(batch(1, "test.slow", slow));
  TheGate().AwaitOne();
  const auto second = std::make_shared<Opened>();
  const auto two = open(second);
  two->Write(batch(2, "fraktor.string", "two"));
  second->Await(2);
  two->Write(batch(3, "fraktor.string", "three"));
  second->Await(3);
  EXPECT_EQ(Ask(a.system(), scribe), "");
  TheGate().Open();
  first->Await(2);
  EXPECT_EQ(Ask(a.system(), scribe), "slow 1,two,three,");
}

TEST(RemotingWithThreads, SendsWhatACodecSendsWhileItWrites) {
  LoopbackNetwork network;
  ThreadedNode a(network, "a", 1);
  ThreadedNode b(network, "b", 2);
  b.system().Spawn<Scribe>("scribe");
  const ActorRef there = a.system().Resolve(b.Path("/user/scribe")).value();
  ASSERT_TRUE(a.system().AskAndWait<std::string>(there, true, kPatience).ok());
  Tell(there, Chatty{.aside = there, .text = "end"});
  const absl::StatusOr<std::string> seen = a.system().AskAndWait<std::string>(there, true, kPatience);
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(*seen, "aside,begin end,");
}

// A transport may take the time of a system call to write a frame: whoever else has to do with the node does not wait.
TEST(RemotingWithThreads, HoldsNobodyUpWhileAFrameIsWritten) {
  LoopbackNetwork network;
  std::atomic<Remoting*> remoting{nullptr};
  std::atomic<int> writes{0};
  {
    // Another thread needs the lock, and the write waits for it: if it held the lock, that would not end.
    ThreadedNode a(network, "a", 1, [&] {
      Remoting* const asked = remoting.load();
      if (asked == nullptr) return;
      ++writes;
      std::thread([asked] { asked->Peers(); }).join();
    });
    ThreadedNode b(network, "b", 2);
    b.system().Spawn<Counter>("counter");
    remoting.store(&a.remoting());
    const auto sender = a.system().Spawn<Sender>("", a.system().Resolve(b.Path("/user/counter")).value());
    const absl::StatusOr<std::string> seen = a.system().Ask(sender, SendAll{1000}, kPatience).Wait();
    ASSERT_TRUE(seen.ok()) << seen.status();
    EXPECT_EQ(*seen, "in order 1000");
    remoting.store(nullptr);
  }
  EXPECT_GE(writes.load(), 10);  // One for each question.
}

TEST(RemotingWithThreads, EndsWhileOthersSendToIt) {
  LoopbackNetwork network;
  ThreadedNode a(network, "a", 1);
  auto b = std::make_unique<ThreadedNode>(network, "b", 2);
  b->system().Spawn<Counter>("counter");
  const ActorRef there = a.system().Resolve(b->Path("/user/counter")).value();
  EXPECT_TRUE(a.system().AskAndWait<std::string>(there, std::string("?"), kPatience).ok());
  std::atomic<bool> stop{false};
  std::atomic<int64_t> sent{0};
  std::thread sending([&] {
    for (int64_t i = 1; !stop.load(); ++i) {
      Tell(there, i);
      sent.store(i);
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  b.reset();
  const int64_t before = sent.load();
  while (sent.load() < before + 1000) std::this_thread::yield();  // Nobody is held up by it.
  stop.store(true);
  sending.join();
  for (const PeerInfo& peer : a.remoting().Peers()) EXPECT_FALSE(peer.is_associated);
  // Another one at its place is reached.
  b = std::make_unique<ThreadedNode>(network, "b", 2);
  b->system().Spawn<Counter>("counter");
  const auto is_met = [&] {
    for (const PeerInfo& peer : a.remoting().Peers()) {
      if (peer.is_associated) return true;
    }
    return false;
  };
  while (!is_met()) std::this_thread::yield();
  const absl::StatusOr<std::string> answer = a.system().AskAndWait<std::string>(there, std::string("?"), kPatience);
  EXPECT_TRUE(answer.ok()) << answer.status();
}

}  // namespace
}  // namespace fraktor
