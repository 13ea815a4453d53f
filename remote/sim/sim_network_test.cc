#include "fraktor/remote/sim/sim_network.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/toolbox/sim_toolbox.h"

namespace fraktor {
namespace {

class Received : public FrameReceiver {
 public:
  bool OnStreamOpened(uint64_t stream, const StreamOrigin& origin) override {
    opened.push_back(stream);
    hosts = origin.hosts;
    return wants_streams;
  }
  bool OnFrame(uint64_t, std::string_view frame) override {
    frames.emplace_back(frame);
    return !refuses;
  }
  void OnStreamClosed(uint64_t stream) override { closed.push_back(stream); }

  std::vector<uint64_t> opened;
  std::vector<uint64_t> closed;
  std::vector<std::string> hosts;
  std::vector<std::string> frames;
  bool refuses = false;
  bool wants_streams = true;
};

class Listener : public StreamListener {
 public:
  void OnOpened() override { ++opened; }
  void OnWritten() override { ++written; }
  void OnClosed(const absl::Status& why) override {
    ++closed;
    status = why;
  }
  int opened = 0;
  int written = 0;
  int closed = 0;
  absl::Status status;
};

PathAuthority Address(std::string_view host) { return PathAuthority::Create("pekko", host, 1).value(); }

class SimNetworkTest : public testing::Test {
 protected:
  std::unique_ptr<Transport> Node(const PathAuthority& address, std::shared_ptr<Received>& received) {
    received = std::make_shared<Received>();
    std::unique_ptr<Transport> node = network_.MakeTransport(address);
    EXPECT_TRUE(node->Start(received).ok());
    return node;
  }
  void Run(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }
  // One frame after the other, as a stream wants it.
  void WriteAll(OutboundStream& stream, const Listener& listener, int count) {
    for (int i = 0; i < count; ++i) {
      const int before = listener.written;
      stream.Write(absl::StrCat(i));
      ASSERT_TRUE(toolbox_->RunUntil([&] { return listener.written > before; }, absl::Seconds(1)).ok());
    }
    Run(absl::Seconds(1));
  }

  const std::unique_ptr<SimToolbox> toolbox_ = SimToolbox::Make({.seed = 7}).value();
  SimNetwork network_{*toolbox_, {.trace = &toolbox_->trace()}};
  const PathAuthority a_ = Address("a");
  const PathAuthority b_ = Address("b");
  std::shared_ptr<Received> at_a_;
  std::shared_ptr<Received> at_b_;
  std::unique_ptr<Transport> node_a_ = Node(a_, at_a_);
  std::unique_ptr<Transport> node_b_ = Node(b_, at_b_);
  const std::shared_ptr<Listener> listener_ = std::make_shared<Listener>();
};

TEST_F(SimNetworkTest, BringsFramesInOrder) {
  const auto stream = node_a_->Connect(b_, Lane::kControl, listener_);
  EXPECT_EQ(listener_->opened, 0);  // Not inside of the call.
  Run(absl::Seconds(1));
  ASSERT_EQ(listener_->opened, 1);
  WriteAll(*stream, *listener_, 50);
  ASSERT_EQ(at_b_->frames.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(at_b_->frames[static_cast<size_t>(i)], absl::StrCat(i));
  EXPECT_TRUE(at_a_->frames.empty());
  stream->Close();
  EXPECT_EQ(listener_->closed, 0);
  Run(absl::Seconds(1));
  EXPECT_EQ(listener_->closed, 1);
}

TEST_F(SimNetworkTest, LosesDoublesAndReordersAsItIsTold) {
  const auto stream = node_a_->Connect(b_, Lane::kControl, listener_);
  Run(absl::Seconds(1));
  network_.SetFaults(0.2, 0, 0);
  WriteAll(*stream, *listener_, 200);
  EXPECT_LT(at_b_->frames.size(), 190u);
  EXPECT_GT(at_b_->frames.size(), 100u);
  EXPECT_EQ(at_b_->frames.size() + network_.counts().dropped, 200u);
  at_b_->frames.clear();
  network_.SetFaults(0, 0.2, 0);
  WriteAll(*stream, *listener_, 200);
  EXPECT_GT(at_b_->frames.size(), 210u);
  at_b_->frames.clear();
  network_.SetFaults(0, 0, 0.2);
  WriteAll(*stream, *listener_, 200);
  ASSERT_EQ(at_b_->frames.size(), 200u);
  const auto number = [](const std::string& frame) { return std::stoi(frame); };
  int overtaken = 0;
  for (size_t i = 1; i < at_b_->frames.size(); ++i) {
    if (number(at_b_->frames[i]) < number(at_b_->frames[i - 1])) ++overtaken;
  }
  EXPECT_GT(overtaken, 10);
}

TEST_F(SimNetworkTest, IsCutInOneDirectionOrInBoth) {
  const auto there = node_a_->Connect(b_, Lane::kControl, listener_);
  const auto back_listener = std::make_shared<Listener>();
  const auto back = node_b_->Connect(a_, Lane::kControl, back_listener);
  Run(absl::Seconds(1));
  network_.CutOneWay(a_, b_);
  there->Write("lost");
  back->Write("one");
  Run(absl::Seconds(1));
  EXPECT_TRUE(at_b_->frames.empty());
  EXPECT_EQ(at_a_->frames, std::vector<std::string>{"one"});
  EXPECT_EQ(listener_->closed, 0);  // Nobody notices.
  network_.Cut(a_, b_);
  back->Write("lost");
  const auto refused = std::make_shared<Listener>();
  const auto none = node_a_->Connect(b_, Lane::kControl, refused);
  Run(absl::Seconds(2));
  EXPECT_EQ(at_a_->frames.size(), 1u);
  EXPECT_EQ(refused->opened, 0);
  EXPECT_EQ(refused->closed, 1);
  network_.Heal(a_, b_);
  there->Write("two");
  Run(absl::Seconds(1));
  EXPECT_EQ(at_b_->frames, std::vector<std::string>{"two"});
}

TEST_F(SimNetworkTest, TellsPeersOfACrashAndLetsANodeComeBack) {
  const auto stream = node_a_->Connect(b_, Lane::kControl, listener_);
  Run(absl::Seconds(1));
  stream->Write("on its way");
  network_.Crash(b_);
  Run(absl::Seconds(1));
  EXPECT_TRUE(at_b_->frames.empty());
  EXPECT_EQ(listener_->closed, 1);
  EXPECT_TRUE(absl::IsUnavailable(listener_->status));
  std::shared_ptr<Received> reborn;
  const std::unique_ptr<Transport> again = Node(b_, reborn);
  stream->Write("to the dead");
  const auto second = std::make_shared<Listener>();
  const auto other = node_a_->Connect(b_, Lane::kControl, second);
  Run(absl::Seconds(1));
  ASSERT_EQ(second->opened, 1);
  other->Write("hello");
  Run(absl::Seconds(1));
  EXPECT_EQ(reborn->frames, std::vector<std::string>{"hello"});
}

TEST_F(SimNetworkTest, ClosesAStreamWhoseReceiverWantsNoMore) {
  at_b_->refuses = true;
  const auto stream = node_a_->Connect(b_, Lane::kControl, listener_);
  Run(absl::Seconds(1));
  stream->Write("bad");
  Run(absl::Seconds(1));
  EXPECT_EQ(at_b_->frames.size(), 1u);
  EXPECT_EQ(listener_->closed, 1);
}

TEST_F(SimNetworkTest, TellsTheReceiverOfEachStreamAndLetsItCutOne) {
  const std::unique_ptr<Transport> other = network_.MakeTransport(Address("c"), {"c", "*.example"});
  const auto stream = other->Connect(b_, Lane::kControl, listener_);
  Run(absl::Seconds(1));
  ASSERT_EQ(at_b_->opened.size(), 1u);
  EXPECT_EQ(at_b_->hosts, (std::vector<std::string>{"c", "*.example"}));
  stream->Write("one");
  Run(absl::Seconds(1));
  node_b_->Cut(at_b_->opened[0]);
  Run(absl::Seconds(1));
  EXPECT_EQ(listener_->closed, 1);
  EXPECT_EQ(at_b_->closed, at_b_->opened);
  // One that is not wanted is never open.
  at_b_->wants_streams = false;
  const auto second = std::make_shared<Listener>();
  const auto refused = other->Connect(b_, Lane::kControl, second);
  Run(absl::Seconds(1));
  EXPECT_EQ(second->opened, 0);
  EXPECT_EQ(second->closed, 1);
  EXPECT_EQ(at_b_->closed.size(), 1u);
}

TEST_F(SimNetworkTest, CutsAStreamWithAFrameThatIsTooLarge) {
  const auto stream = node_a_->Connect(b_, Lane::kControl, listener_);
  Run(absl::Seconds(1));
  stream->Write(std::string(node_b_->limits().max_frame_bytes + 1, 'x'));
  Run(absl::Seconds(1));
  EXPECT_TRUE(at_b_->frames.empty());
  EXPECT_EQ(listener_->closed, 1);
}

TEST_F(SimNetworkTest, SaysNothingAfterItsEnd) {
  const auto stream = node_a_->Connect(b_, Lane::kControl, listener_);
  Run(absl::Seconds(1));
  node_a_->Shutdown();
  const auto second = std::make_shared<Listener>();
  const auto late = node_a_->Connect(b_, Lane::kControl, second);
  ASSERT_NE(late, nullptr);
  late->Write("late");
  late->Close();
  stream->Write("late");
  node_a_->Cut(1);
  Run(absl::Seconds(5));
  EXPECT_EQ(second->opened + second->closed, 0);
  EXPECT_TRUE(at_b_->frames.empty());
}

TEST(SimNetwork, DoesTheSameWithTheSameSeed) {
  const auto run = [](uint64_t seed) {
    const std::unique_ptr<SimToolbox> toolbox = SimToolbox::Make({.seed = seed}).value();
    SimNetwork network(*toolbox, {.drop = 0.1, .duplicate = 0.1, .reorder = 0.1, .trace = &toolbox->trace()});
    const auto received = std::make_shared<Received>();
    const std::unique_ptr<Transport> a = network.MakeTransport(Address("a"));
    const std::unique_ptr<Transport> b = network.MakeTransport(Address("b"));
    EXPECT_TRUE(a->Start(received).ok() && b->Start(received).ok());
    const auto listener = std::make_shared<Listener>();
    const auto stream = a->Connect(Address("b"), Lane::kOrdinary, listener);
    EXPECT_TRUE(toolbox->RunFor(absl::Seconds(1)).ok());
    for (int i = 0; i < 100; ++i) {
      stream->Write(absl::StrCat(i));
      EXPECT_TRUE(toolbox->RunFor(absl::Milliseconds(1)).ok());
    }
    EXPECT_TRUE(toolbox->RunFor(absl::Seconds(1)).ok());
    return received->frames;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

}  // namespace
}  // namespace fraktor
