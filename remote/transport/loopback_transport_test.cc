#include "fraktor/remote/transport/loopback_transport.h"

#include <condition_variable>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "gtest/gtest.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

// Writes down what happens, and waits for it.
class Journal {
 public:
  void Add(std::string what) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(what));
    changed_.notify_all();
  }
  void Await(const std::string& what, size_t times = 1) {
    MutexLock lock(mutex_);
    while (CountLocked(what) < times) changed_.wait(lock);
  }
  size_t Count(const std::string& what) {
    MutexLock lock(mutex_);
    return CountLocked(what);
  }

 private:
  size_t CountLocked(const std::string& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t count = 0;
    for (const std::string& line : lines_) count += line == what ? 1 : 0;
    return count;
  }

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

class Listener : public StreamListener {
 public:
  void OnOpened() override { seen.Add("opened"); }
  void OnWritten() override { seen.Add("written"); }
  void OnClosed(const absl::Status&) override { seen.Add("closed"); }
  Journal seen;
};

// Keeps frames that begin with "hold" until it is told to go on.
class Receiver : public FrameReceiver {
 public:
  bool OnStreamOpened(uint64_t stream, const StreamOrigin& origin) override {
    last_stream = stream;
    hosts = origin.hosts;
    seen.Add("opened");
    return true;
  }
  bool OnFrame(uint64_t, std::string_view frame) override {
    seen.Add(std::string(frame.substr(0, 10)));
    if (frame.substr(0, 4) == "hold") go_on.Await("go");
    return true;
  }
  void OnStreamClosed(uint64_t) override { seen.Add("closed"); }

  Journal seen;
  Journal go_on;
  uint64_t last_stream = 0;
  std::vector<std::string> hosts;
};

PathAuthority Address(uint16_t port) { return PathAuthority::Create("pekko", "localhost", port).value(); }

class LoopbackTransportTest : public testing::Test {
 protected:
  std::unique_ptr<Transport> Node(uint16_t port, const std::shared_ptr<Receiver>& receiver,
                                  const LoopbackOptions& options = {}) {
    std::unique_ptr<Transport> node = network_.MakeTransport(Address(port), *toolbox_, options).value();
    EXPECT_TRUE(node->Start(receiver).ok());
    return node;
  }

  const std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({.name = "loopback"}).value();
  LoopbackNetwork network_;
  const std::shared_ptr<Receiver> at_a_ = std::make_shared<Receiver>();
  const std::shared_ptr<Receiver> at_b_ = std::make_shared<Receiver>();
};

// R44
TEST_F(LoopbackTransportTest, PicksAPortThatIsFree) {
  const auto one = network_.MakeTransport(Address(0), *toolbox_).value();
  const auto two = network_.MakeTransport(Address(0), *toolbox_).value();
  EXPECT_NE(one->port(), 0);
  EXPECT_NE(one->port(), two->port());
  EXPECT_TRUE(absl::IsAlreadyExists(network_.MakeTransport(Address(one->port()), *toolbox_).status()));
}

TEST_F(LoopbackTransportTest, HasAWorkerForEachStream) {
  const auto a = Node(1, at_a_, {.hosts = {"localhost"}});
  const auto b = Node(2, at_b_);
  const auto first = std::make_shared<Listener>();
  const auto second = std::make_shared<Listener>();
  const auto slow = a->Connect(Address(2), Lane::kOrdinary, first);
  first->seen.Await("opened");
  const auto quick = a->Connect(Address(2), Lane::kControl, second);
  second->seen.Await("opened");
  EXPECT_EQ(at_b_->hosts, std::vector<std::string>{"localhost"});
  slow->Write("hold this");
  at_b_->seen.Await("hold this");
  // The other one does not wait for it.
  quick->Write("quick");
  second->seen.Await("written");
  EXPECT_EQ(first->seen.Count("written"), 0u);
  at_b_->go_on.Add("go");
  first->seen.Await("written");
}

TEST_F(LoopbackTransportTest, HoldsStreamsBackThatHaveSentMoreThanThereIsRoomFor) {
  const auto a = Node(1, at_a_);
  const auto b = Node(2, at_b_, {.limits = {.max_frame_bytes = 1000, .max_inbound_bytes = 1200}});
  const auto first = std::make_shared<Listener>();
  const auto second = std::make_shared<Listener>();
  const auto one = a->Connect(Address(2), Lane::kOrdinary, first);
  first->seen.Await("opened");
  const auto two = a->Connect(Address(2), Lane::kLarge, second);
  second->seen.Await("opened");
  one->Write("hold" + std::string(996, 'x'));
  at_b_->seen.Await("holdxxxxxx");
  two->Write("wait" + std::string(800, 'x'));
  // Small ones fit beside.
  const auto third = std::make_shared<Listener>();
  const auto small = a->Connect(Address(2), Lane::kControl, third);
  third->seen.Await("opened");
  small->Write("small");
  third->seen.Await("written");
  EXPECT_EQ(at_b_->seen.Count("waitxxxxxx"), 0u);
  at_b_->go_on.Add("go");
  second->seen.Await("written");
  EXPECT_EQ(at_b_->seen.Count("waitxxxxxx"), 1u);
  // One that is too large for any cuts its stream.
  two->Write(std::string(1001, 'y'));
  second->seen.Await("closed");
  EXPECT_EQ(at_b_->seen.Count("yyyyyyyyyy"), 0u);
}

TEST_F(LoopbackTransportTest, TellsBothEndsWhenAStreamIsOver) {
  const auto a = Node(1, at_a_);
  auto b = Node(2, at_b_);
  const auto listener = std::make_shared<Listener>();
  const auto stream = a->Connect(Address(2), Lane::kOrdinary, listener);
  listener->seen.Await("opened");
  b->Cut(at_b_->last_stream);
  listener->seen.Await("closed");
  at_b_->seen.Await("closed");
  const auto second = std::make_shared<Listener>();
  const auto closed = a->Connect(Address(2), Lane::kOrdinary, second);
  second->seen.Await("opened");
  closed->Close();
  second->seen.Await("closed");
  at_b_->seen.Await("closed", 2);
  const auto third = std::make_shared<Listener>();
  const auto left = a->Connect(Address(2), Lane::kOrdinary, third);
  third->seen.Await("opened");
  b = nullptr;  // Its peers find out.
  third->seen.Await("closed");
  a->Shutdown();
  const auto late = a->Connect(Address(2), Lane::kOrdinary, std::make_shared<Listener>());
  ASSERT_NE(late, nullptr);
  late->Write("late");
  late->Close();
}

}  // namespace
}  // namespace fraktor
