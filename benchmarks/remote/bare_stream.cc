#include "fraktor/benchmarks/remote/bare_stream.h"

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

constexpr char kOneWay[] = "/bare/OneWay";
constexpr char kRoundTrip[] = "/bare/RoundTrip";
constexpr size_t kMaxWaiting = size_t{256} << 10;
constexpr uint32_t kPayload = sizeof(int64_t);
constexpr size_t kMessage = sizeof(uint32_t) + kPayload;

grpc::ByteBuffer Wrap(std::string text) {
  auto* const owned = new std::string(std::move(text));  // NOLINT(cppcoreguidelines-owning-memory)
  const grpc::Slice slice(
      owned->data(), owned->size(), [](void* gone) { delete static_cast<std::string*>(gone); }, owned);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::Slice Flat(grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.TrySingleSlice(&slice).ok() && !buffer.DumpToSingleSlice(&slice).ok()) std::abort();
  return slice;
}

class Counter final : public grpc::ServerGenericBidiReactor {
 public:
  Counter() {
    StartSendInitialMetadata();
    StartRead(&frame_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      answer_ = Wrap(std::string(reinterpret_cast<const char*>(&count_), sizeof(count_)));
      StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
      return;
    }
    const grpc::Slice slice = Flat(frame_);
    const uint8_t* at = slice.begin();
    while (at != slice.end()) {
      uint32_t length = 0;
      int64_t value = 0;
      std::memcpy(&length, at, sizeof(length));
      std::memcpy(&value, at + sizeof(length), sizeof(value));
      at += sizeof(length) + length;
      sum_ += value;
      ++count_;
    }
    benchmark::DoNotOptimize(sum_);
    StartRead(&frame_);
  }
  void OnDone() override { delete this; }

  grpc::ByteBuffer frame_;
  grpc::ByteBuffer answer_;
  int64_t count_ = 0;
  int64_t sum_ = 0;
};

class Echo final : public grpc::ServerGenericBidiReactor {
 public:
  Echo() { StartRead(&frame_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    StartWrite(&frame_);
  }
  void OnWriteDone(bool) override { StartRead(&frame_); }
  void OnDone() override { delete this; }

  grpc::ByteBuffer frame_;
};

class Service final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kOneWay) return new Counter;  // NOLINT(cppcoreguidelines-owning-memory)
    return new Echo;                                       // NOLINT(cppcoreguidelines-owning-memory)
  }
};

class Client : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Client(uint16_t port, const char* method)
      : stub_(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials())) {
    stub_.PrepareBidiStreamingCall(&context_, method, grpc::StubOptions(), this);
  }
  void AwaitDone() {
    MutexLock lock(mutex_);
    while (!is_done_) changed_.wait(lock);
  }

 protected:
  void OnDone(const grpc::Status&) override {
    MutexLock lock(mutex_);
    is_done_ = true;
    changed_.notify_all();
  }

  Mutex mutex_;
  std::condition_variable_any changed_;

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
};

class Producer final : public Client {
 public:
  explicit Producer(uint16_t port) : Client(port, kOneWay) {
    AddHold();
    StartRead(&answer_);
    StartCall();
  }
  // A connection is not what is measured.
  void AwaitOpened() {
    MutexLock lock(mutex_);
    while (!is_open_) changed_.wait(lock);
  }
  void Send(int64_t value) {
    MutexLock lock(mutex_);
    while (waiting_.size() >= kMaxWaiting) changed_.wait(lock);
    char message[kMessage];
    std::memcpy(message, &kPayload, sizeof(kPayload));
    std::memcpy(message + sizeof(kPayload), &value, sizeof(value));
    waiting_.append(message, kMessage);
    if (!is_writing_) WriteWaiting();
  }
  void End() {
    MutexLock lock(mutex_);
    while (is_writing_ || !waiting_.empty()) changed_.wait(lock);
    StartWritesDone();
    RemoveHold();
  }
  // After its end.
  int64_t counted() const { return counted_; }

 private:
  void WriteWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_writing_ = true;
    frame_ = Wrap(std::exchange(waiting_, {}));
    waiting_.reserve(kMaxWaiting + kMessage);
    StartWrite(&frame_);
    changed_.notify_all();
  }
  void OnReadInitialMetadataDone(bool ok) override {
    if (!ok) std::abort();
    MutexLock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void OnWriteDone(bool) override {
    MutexLock lock(mutex_);
    is_writing_ = false;
    if (waiting_.empty()) {
      changed_.notify_all();
    } else {
      WriteWaiting();
    }
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    const grpc::Slice slice = Flat(answer_);
    if (slice.size() == sizeof(counted_)) std::memcpy(&counted_, slice.begin(), sizeof(counted_));
  }

  grpc::ByteBuffer answer_;
  grpc::ByteBuffer frame_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t counted_ = -1;
};

class Pinger final : public Client {
 public:
  Pinger(uint16_t port, int64_t count) : Client(port, kRoundTrip), left_(count) {
    times_.reserve(static_cast<size_t>(count));
    frame_ = Wrap(std::string(kMessage, 'x'));
    begin_ = ProgramClock::now();
    StartRead(&answer_);
    StartWrite(&frame_);
    StartCall();
  }
  std::vector<ProgramClock::duration> times() { return std::move(times_); }

 private:
  // A write may be said to be done after its answer has come.
  void OnWriteDone(bool) override { Half(); }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    times_.push_back(ProgramClock::now() - begin_);
    Half();
  }
  void Half() {
    {
      MutexLock lock(mutex_);
      if (++halves_ < 2) return;
      halves_ = 0;
    }
    if (--left_ == 0) {
      StartWritesDone();
      return;
    }
    begin_ = ProgramClock::now();
    StartRead(&answer_);
    StartWrite(&frame_);
  }

  int64_t left_;
  int halves_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer frame_;
  grpc::ByteBuffer answer_;
  ProgramClock::time_point begin_;
  std::vector<ProgramClock::duration> times_;
};

}  // namespace

class BareServer::Parts {
 public:
  Parts() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) std::abort();
  }
  ~Parts() { server_->Shutdown(); }
  int port = 0;

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

BareServer::BareServer() : parts_(std::make_unique<Parts>()) {}
BareServer::~BareServer() = default;
uint16_t BareServer::port() const { return static_cast<uint16_t>(parts_->port); }

double RunBareOneWay(uint16_t port, int64_t messages) {
  Producer producer(port);
  producer.AwaitOpened();
  const ProgramClock::time_point begin = ProgramClock::now();
  for (int64_t i = 0; i < messages; ++i) producer.Send(i);
  producer.End();
  producer.AwaitDone();
  const double seconds = Seconds(ProgramClock::now() - begin);
  return producer.counted() == messages ? seconds : -1;
}

std::vector<ProgramClock::duration> RunBareRoundTrips(uint16_t port, int64_t count) {
  Pinger pinger(port, count);
  pinger.AwaitDone();
  return pinger.times();
}

}  // namespace fraktor::inline v0
