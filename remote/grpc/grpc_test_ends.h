// What tests of the transport put at the ends of streams.
#ifndef FRAKTOR_REMOTE_GRPC_GRPC_TEST_ENDS_H_
#define FRAKTOR_REMOTE_GRPC_GRPC_TEST_ENDS_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "gtest/gtest.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/remote/grpc/grpc_transport.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor {

// What has happened, and whoever waits for it.
class Happenings {
 public:
  void Add(std::string what) {
    MutexLock lock(mutex_);
    all_.push_back(std::move(what));
    changed_.notify_all();
  }
  // Waits until there are so many.
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    while (all_.size() < count) changed_.wait(lock);
    return all_;
  }
  // Waits for the last of a stream.
  std::vector<std::string> AwaitClosed() {
    MutexLock lock(mutex_);
    while (all_.empty() || all_.back() != "closed") changed_.wait(lock);
    return all_;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::string> all_ ABSL_GUARDED_BY(mutex_);
};

// Where frames of others arrive. "hold" waits until Go.
class Receiver final : public FrameReceiver {
 public:
  bool OnStreamOpened(uint64_t stream, const StreamOrigin& origin) override {
    MutexLock lock(mutex_);
    last_stream_ = stream;
    last_origin_ = origin;
    return !refuses_;
  }
  bool OnFrame(uint64_t, std::string_view frame) override {
    frames.Add(std::string(frame.substr(0, 20)));
    if (frame.substr(0, 4) == "hold") {
      MutexLock lock(mutex_);
      while (!may_go_) changed_.wait(lock);
    }
    return frame != "cut me";
  }
  void OnStreamClosed(uint64_t) override { closed.Add("closed"); }

  void Go() {
    MutexLock lock(mutex_);
    may_go_ = true;
    changed_.notify_all();
  }
  void Refuse() {
    MutexLock lock(mutex_);
    refuses_ = true;
  }
  uint64_t last_stream() {
    MutexLock lock(mutex_);
    return last_stream_;
  }
  StreamOrigin last_origin() {
    MutexLock lock(mutex_);
    return last_origin_;
  }

  Happenings frames;
  Happenings closed;

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool may_go_ ABSL_GUARDED_BY(mutex_) = false;
  bool refuses_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_stream_ ABSL_GUARDED_BY(mutex_) = 0;
  StreamOrigin last_origin_ ABSL_GUARDED_BY(mutex_);
};

class Listener final : public StreamListener {
 public:
  void OnOpened() override { seen.Add("opened"); }
  void OnWritten() override { seen.Add("written"); }
  void OnClosed(const absl::Status& why) override {
    {
      MutexLock lock(mutex_);
      why_ = why;
    }
    seen.Add("closed");
  }
  // After the end.
  absl::Status why() {
    MutexLock lock(mutex_);
    return why_;
  }

  Happenings seen;

 private:
  Mutex mutex_;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

inline GrpcTransportOptions OnLoopback() { return {.security = GrpcSecurity::InsecureLoopback()}; }

inline PathAuthority At(uint16_t port, std::string_view host = "127.0.0.1") {
  return PathAuthority::Create("pekko", host, port).value();
}

// A transport that listens, and what it hears.
struct End {
  explicit End(const GrpcTransportOptions& options = OnLoopback())
      : transport(GrpcTransport::Listen(options).value()), receiver(std::make_shared<Receiver>()) {
    EXPECT_TRUE(transport->Start(receiver).ok());
  }
  std::unique_ptr<Transport> transport;
  std::shared_ptr<Receiver> receiver;
};

// A stream, and what becomes of it.
struct Sending {
  Sending(End& from, const PathAuthority& to)
      : listener(std::make_shared<Listener>()), stream(from.transport->Connect(to, Lane::kOrdinary, listener)) {}
  Sending(End& from, const End& to) : Sending(from, At(to.transport->port())) {}

  const std::shared_ptr<Listener> listener;
  const std::shared_ptr<OutboundStream> stream;
};

}  // namespace fraktor

#endif  // FRAKTOR_REMOTE_GRPC_GRPC_TEST_ENDS_H_
