#include "fraktor/remote/association/core_handle.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "gtest/gtest.h"

#include "fraktor/remote/transport/transport.h"

namespace fraktor {
namespace {

class FakeStream final : public OutboundStream {
 public:
  explicit FakeStream(std::function<void(const std::string&)> on_write) : on_write_(std::move(on_write)) {}
  void Write(std::string frame) override { on_write_(frame); }
  void Close() override {}

 private:
  const std::function<void(const std::string&)> on_write_;
};

// Whether another thread gets the lock, and then how many sections are busy; -1 if it does not get it.
int BusyAsOthersSeeIt(CoreHandle& handle) {
  int busy = -1;
  std::thread other([&] {
    if (!handle.mutex.TryLock()) return;
    busy = handle.busy;
    handle.mutex.Unlock();
  });
  other.join();
  return busy;
}

TEST(Section, WritesFramesInOrderBeforeWhatIsDoneLater) {
  CoreHandle handle;
  std::vector<std::string> done;
  const auto stream = std::make_shared<FakeStream>([&](const std::string& frame) { done.push_back(frame); });
  {
    Section section(handle);
    section.Later([&] { done.push_back("later"); });
    section.Write(stream, "one");
    section.Write(stream, "two");
    EXPECT_TRUE(done.empty());
  }
  EXPECT_EQ(done, (std::vector<std::string>{"one", "two", "later"}));
}

TEST(Section, WritesWithoutTheLockAndIsBusyMeanwhile) {
  CoreHandle handle;
  int busy = -1;
  const auto stream = std::make_shared<FakeStream>([&](const std::string&) { busy = BusyAsOthersSeeIt(handle); });
  {
    Section section(handle);
    section.Write(stream, "frame");
    EXPECT_EQ(BusyAsOthersSeeIt(handle), -1);
  }
  EXPECT_EQ(busy, 1);
  EXPECT_EQ(BusyAsOthersSeeIt(handle), 0);
}

TEST(Section, KeepsAStreamUntilItsFrameIsWritten) {
  CoreHandle handle;
  std::string written;
  {
    Section section(handle);
    section.Write(std::make_shared<FakeStream>([&](const std::string& frame) { written = frame; }), "frame");
  }
  EXPECT_EQ(written, "frame");
}

}  // namespace
}  // namespace fraktor
