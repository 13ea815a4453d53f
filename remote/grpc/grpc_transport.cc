#include "fraktor/remote/grpc/grpc_transport.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/version_info.h"

#include "fraktor/remote/grpc/thread_rest.h"
#include "fraktor/remote/grpc/tls_credentials.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

constexpr char kMethod[] = "/fraktor.remote.Frames/Send";
// What a node answers that takes frames: whoever else answers is none.
constexpr char kWelcome[] = "fraktor-frames";
// Of one connection. Ours have one.
constexpr int kStreamsOfConnection = 8;
// What gRPC needs for connections themselves: with less, nothing goes.
constexpr size_t kQuotaOfConnections = size_t{16} << 20;

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(duration), INT32_MAX));
}

absl::Time Now() {
  const gpr_timespec now = gpr_now(GPR_CLOCK_REALTIME);
  return absl::FromUnixSeconds(now.tv_sec) + absl::Nanoseconds(now.tv_nsec);
}

// With brackets around what has colons.
std::string HostAndPort(std::string_view host, uint16_t port) {
  const bool is_bare = host.find(':') != std::string_view::npos && host.front() != '[';
  return is_bare ? absl::StrCat("[", ToAbsl(host), "]:", port) : absl::StrCat(ToAbsl(host), ":", port);
}

// What gRPC is to connect to. An address is named as such: nothing has to be looked up then.
std::string TargetOf(const std::string& host, uint16_t port) {
  const std::string bare = host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  unsigned char address[sizeof(in6_addr)];
  if (inet_pton(AF_INET, bare.c_str(), address) == 1) return absl::StrCat("ipv4:", HostAndPort(host, port));
  if (inet_pton(AF_INET6, bare.c_str(), address) == 1) return absl::StrCat("ipv6:", HostAndPort(host, port));
  return HostAndPort(host, port);
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host == "::1" || host.substr(0, 4) == "127.";
}

// A text that a slice takes over.
struct OwnedText {
  std::string text;
  std::atomic<bool> is_ready{
      false};  // Release by who writes, acquire by whose thread ends it: tools cannot see into gRPC.
};

grpc::ByteBuffer ToBuffer(std::string frame) {
  auto* const owned = new OwnedText{std::move(frame)};  // NOLINT(cppcoreguidelines-owning-memory): the slice ends it.
  owned->is_ready.store(true, std::memory_order_release);
  const grpc::Slice slice(
      owned->text.data(), owned->text.size(),
      [](void* gone) {
        auto* const text = static_cast<OwnedText*>(gone);
        if (text->is_ready.load(std::memory_order_acquire)) delete text;
      },
      owned);
  return grpc::ByteBuffer(&slice, 1);
}

// The names in the certificate of whoever is at the other end; none without TLS.
std::vector<std::string> NamesOf(const std::shared_ptr<const grpc::AuthContext>& peer) {
  std::vector<std::string> names;
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return names;
  for (const grpc::string_ref& name : peer->GetPeerIdentity()) names.emplace_back(name.data(), name.size());
  return names;
}

class ServerStream;

// What streams share with their transport, and may outlive it.
class Streams {
 public:
  explicit Streams(const GrpcTransportOptions& options) : options_(options), logger_(options.log) {}

  const GrpcTransportOptions& options() const { return options_; }
  bool is_secure() const { return options_.security.kind() == GrpcSecurity::Kind::kMutualTls; }
  void Warn(const std::string& text) const { logger_.Log(LogLevel::kWarning, {.at = Now(), .text = text}); }

  // OK, or why a peer of these names is not let in. The text is for logs of both sides: it names both.
  absl::Status Admit(const std::vector<std::string>& names, std::string_view peer, std::string_view here) const {
    if (!is_secure()) return absl::OkStatus();
    for (const std::string& name : names) {
      if (options_.security.Admits(name)) return absl::OkStatus();
    }
    return absl::PermissionDeniedError(absl::StrCat("the certificate of ", ToAbsl(peer), " is for [",
                                                    absl::StrJoin(names, ", "), "], and none of these is among the ",
                                                    "peer_names in the GrpcSecurity of ", ToAbsl(here)));
  }

  std::shared_ptr<FrameReceiver> receiver() {
    MutexLock lock(mutex_);
    return receiver_;
  }
  void SetReceiver(std::shared_ptr<FrameReceiver> receiver) {
    MutexLock lock(mutex_);
    receiver_ = std::move(receiver);
  }
  // Whether the transport ends: nobody is told of anything any more.
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }

  // Streams that this node has opened. False if the transport has ended.
  bool AddOutbound(grpc::ClientContext* context) {
    MutexLock lock(mutex_);
    if (is_over()) return false;
    outbound_.insert(context);
    return true;
  }
  void RemoveOutbound(grpc::ClientContext* context) {
    MutexLock lock(mutex_);
    outbound_.erase(context);
    changed_.notify_all();
  }

  // Whether "localhost" at that port is to be looked up, since the last stream to it could not be opened at 127.0.0.1;
  // the next one tries that again.
  bool LooksUpLocalhost(uint16_t port) {
    MutexLock lock(mutex_);
    return looked_up_.erase(port) != 0;
  }
  void OnNobodyAtLocalhost(uint16_t port) {
    MutexLock lock(mutex_);
    looked_up_.insert(port);
  }

  // Streams of others. 0: there are enough, or the transport has ended.
  uint64_t AddInbound(grpc::CallbackServerContext* context) {
    MutexLock lock(mutex_);
    if (is_over() || inbound_.size() >= options_.max_inbound_streams) return 0;
    inbound_.emplace(++last_id_, context);
    return last_id_;
  }
  void RemoveInbound(uint64_t id) {
    MutexLock lock(mutex_);
    inbound_.erase(id);
    changed_.notify_all();
  }
  void Cut(uint64_t id) {
    MutexLock lock(mutex_);
    const auto found = inbound_.find(id);
    if (found != inbound_.end()) found->second->TryCancel();
  }

  // Whether there is room to handle a frame now. If not, the stream is told when there is.
  bool TakeRoom(size_t bytes, ServerStream* waiting) {
    MutexLock lock(mutex_);
    if (HasRoom(bytes)) {
      handled_bytes_ += bytes;
      return true;
    }
    waiting_.push_back({waiting, bytes});
    return false;
  }
  // Those that have room now have to go on.
  std::vector<ServerStream*> GiveRoom(size_t bytes) {
    std::vector<ServerStream*> next;
    MutexLock lock(mutex_);
    handled_bytes_ -= bytes;
    while (!waiting_.empty() && HasRoom(waiting_.front().bytes)) {
      handled_bytes_ += waiting_.front().bytes;
      next.push_back(waiting_.front().stream);
      waiting_.pop_front();
    }
    return next;
  }

  // Ends those that this node has opened, and waits for them.
  void EndOutbound() {
    MutexLock lock(mutex_);
    // Release: whoever sees it, and it is only looked at, says nothing any more.
    is_over_.store(true, std::memory_order_release);
    for (grpc::ClientContext* const context : outbound_) context->TryCancel();
    while (!outbound_.empty()) changed_.wait(lock);
  }
  // When the server has ended them.
  void AwaitInbound() {
    MutexLock lock(mutex_);
    while (!inbound_.empty()) changed_.wait(lock);
    receiver_ = nullptr;
  }

 private:
  struct Waiting {
    ServerStream* stream;
    size_t bytes;
  };

  // At least one frame fits.
  bool HasRoom(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return handled_bytes_ == 0 || handled_bytes_ + bytes <= options_.limits.max_inbound_bytes;
  }

  const GrpcTransportOptions options_;
  const Logger logger_;
  std::atomic<bool> is_over_{false};  // Set with the lock in EndOutbound, which pairs with is_over.
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<FrameReceiver> receiver_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<grpc::ClientContext*> outbound_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<uint16_t> looked_up_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, grpc::CallbackServerContext*> inbound_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t handled_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

// A stream that this node writes to. Lives until gRPC is done with it.
class ClientStream final : public OutboundStream,
                           public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  // `localhost_port`: it goes to 127.0.0.1 because that is what the peer's name is taken for; 0 if not.
  ClientStream(std::shared_ptr<Streams> streams, const std::shared_ptr<grpc::Channel>& channel, std::string peer,
               uint16_t localhost_port, std::shared_ptr<StreamListener> listener)
      : streams_(std::move(streams)),
        stub_(channel),
        peer_(std::move(peer)),
        localhost_port_(localhost_port),
        listener_(std::move(listener)) {}

  void Start() {
    MutexLock lock(mutex_);
    is_over_ = !streams_->AddOutbound(&context_);
    if (is_over_) return;
    self_ = shared_from_this();
    stub_.PrepareBidiStreamingCall(&context_, kMethod, grpc::StubOptions(), this);
    // Writes come from elsewhere: gRPC must not be done before this one says so.
    AddHold();
    StartRead(&answer_);
    StartCall();
    CancelAfter(opening_, "it was not opened in time");
  }

  void Write(std::string frame) override {
    MutexLock lock(mutex_);
    // A second one before the first is done would end the process.
    if (is_over_ || is_closing_ || is_writing_) return;
    is_writing_ = true;
    frame_ = ToBuffer(std::move(frame));
    StartWrite(&frame_);
  }

  void Close() override {
    MutexLock lock(mutex_);
    if (is_over_ || std::exchange(is_closing_, true)) return;
    if (!is_open_ || is_writing_) {
      // The peer does not take what is being written, or is not there: nothing that could still arrive.
      context_.TryCancel();
    } else {
      StartWritesDone();
      CancelAfter(closing_, "it was not closed in time");
    }
  }

 private:
  // gRPC has no time limits for what it does with a stream; this is ours.
  void CancelAfter(grpc::Alarm& alarm, std::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const gpr_timespec limit = gpr_time_from_millis(Milliseconds(streams_->options().connect_timeout), GPR_TIMESPAN);
    alarm.Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), limit), [weak = weak_from_this(), why, &alarm](bool is_late) {
      const std::shared_ptr<ClientStream> stream = is_late ? weak.lock() : nullptr;
      if (stream != nullptr) stream->OnLate(&alarm == &stream->opening_, why);
    });
  }
  void OnLate(bool is_opening, std::string_view why) {
    MutexLock lock(mutex_);
    if (is_opening && is_open_) return;
    if (!is_closing_ && !is_over_) why_ = absl::DeadlineExceededError(absl::StrCat(peer_, ": ", ToAbsl(why)));
    context_.TryCancel();
  }

  // Callbacks may come from several threads at once; the listener hears one after the other.
  void OnReadInitialMetadataDone(bool ok) override {
    if (!ok || context_.GetServerInitialMetadata().count(kWelcome) == 0) return;
    MutexLock telling(telling_);
    if (absl::Status admitted =
            streams_->Admit(NamesOf(context_.auth_context()), peer_, "the node that connects to it");
        !admitted.ok()) {
      // The listener says it.
      MutexLock lock(mutex_);
      why_ = std::move(admitted);
      context_.TryCancel();
      return;
    }
    {
      MutexLock lock(mutex_);
      if (is_over_ || is_closing_) return;
      is_open_ = true;
      opening_.Cancel();
    }
    if (!streams_->is_over()) listener_->OnOpened();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) {
      LetGo();
      return;
    }
    MutexLock telling(telling_);
    {
      MutexLock lock(mutex_);
      frame_.Clear();
      is_writing_ = false;
      if (is_over_ || is_closing_) return;
    }
    if (!streams_->is_over()) listener_->OnWritten();
  }
  // The peer says nothing on this stream, except that it is over.
  void OnReadDone(bool ok) override {
    if (ok) context_.TryCancel();
    LetGo();
  }
  void OnDone(const grpc::Status& status) override {
    std::shared_ptr<ClientStream> self;
    absl::Status why;
    {
      MutexLock lock(mutex_);
      self = std::move(self_);
      why = Explain(status);
      if (localhost_port_ != 0 && !is_open_ && !is_closing_) streams_->OnNobodyAtLocalhost(localhost_port_);
    }
    {
      MutexLock telling(telling_);
      if (!streams_->is_over()) listener_->OnClosed(why);
      listener_ = nullptr;
    }
    streams_->RemoveOutbound(&context_);
  }

  absl::Status Explain(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!why_.ok()) return why_;
    if (is_closing_) return absl::CancelledError("the stream was closed here");
    if (status.ok()) return absl::UnavailableError("the peer has ended the stream");
    std::string text = absl::StrCat(peer_, ": ", status.error_message());
    if (streams_->is_secure() && !is_open_ && status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      absl::StrAppend(&text,
                      "; if it is there, see that each side's certificate is in date and signed by the roots of the "
                      "other, and that the peer's one is for the host it is called by");
    }
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), text);
  }

  // No write begins after this.
  void LetGo() {
    MutexLock lock(mutex_);
    if (std::exchange(is_over_, true)) return;
    RemoveHold();
  }

  const std::shared_ptr<Streams> streams_;
  grpc::GenericStub stub_;
  const std::string peer_;
  const uint16_t localhost_port_;
  std::shared_ptr<StreamListener> listener_ ABSL_GUARDED_BY(telling_);
  grpc::ClientContext context_;
  grpc::Alarm opening_;
  grpc::Alarm closing_;
  grpc::ByteBuffer answer_;
  grpc::ByteBuffer frame_;
  std::shared_ptr<ClientStream> self_ ABSL_GUARDED_BY(mutex_);
  // While the listener is told something; before mutex_.
  Mutex telling_;
  Mutex mutex_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

// gRPC calls back on two threads at least, for all nodes of the process. One of them may be kept by what comes of a frame
// (FrameSequel), so that there is another one. Decides who, and orders nothing.
std::atomic<bool> is_thread_kept{false};

// So long, at most, frames wait whose thread rests while the other one is kept.
constexpr absl::Duration kLongestRest = absl::Milliseconds(5);
// Tried with gRPC 1.51: there whichever thread polls hears what has happened. If the thread that has begun a write were the
// one to hear of its end, the next write would wait for the rest. So others go without it until somebody has measured.
constexpr bool kCallbacksComeFromPolling = GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51;
ThreadRest& RestOfCallbackThread() {
  static ThreadRest* const rest =
      new ThreadRest(kLongestRest);  // NOLINT(cppcoreguidelines-owning-memory): as its threads.
  return *rest;
}

// A stream that a peer writes to. Lives until gRPC is done with it.
class ServerStream final : public grpc::ServerGenericBidiReactor {
 public:
  ServerStream(std::shared_ptr<Streams> streams, grpc::GenericCallbackServerContext* context)
      : streams_(std::move(streams)), receiver_(streams_->receiver()), id_(streams_->AddInbound(context)) {
    MutexLock lock(mutex_);
    if (absl::Status welcome = Welcome(*context); !welcome.ok()) {
      Finish(grpc::Status(static_cast<grpc::StatusCode>(welcome.code()), std::string(welcome.message())));
      return;
    }
    context->AddInitialMetadata(kWelcome, "1");
    StartSendInitialMetadata();
    StartRead(&frame_);
  }

  // There is room for the frame that has been read.
  void Handle() {
    const std::shared_ptr<Streams> streams = streams_;  // A stream may be gone when its frame is handled.
    std::unique_ptr<FrameSequel> sequel;
    for (std::vector<ServerStream*> ready = {this}; !ready.empty();) {
      ServerStream* const stream = ready.back();
      ready.pop_back();
      const size_t bytes = stream->HandleOne(sequel);
      for (ServerStream* const next : streams->GiveRoom(bytes)) ready.push_back(next);
    }
    if (sequel == nullptr) {
      // Much comes, or workers are awake: two threads do more than one.
      RestOfCallbackThread().End();
      return;
    }
    // Handlers of messages, perhaps. The streams read on meanwhile.
    sequel = nullptr;
    is_thread_kept.store(false, std::memory_order_relaxed);
    // The answer comes soon, perhaps: one thread that waits for it is enough.
    if constexpr (kCallbacksComeFromPolling) RestOfCallbackThread().Try();
  }

 private:
  absl::Status Welcome(const grpc::GenericCallbackServerContext& context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (receiver_ == nullptr) return absl::UnavailableError("this node takes no frames yet, or not any more");
    if (id_ == 0) {
      streams_->Warn(absl::StrCat("a stream of ", context.peer(), " was refused: there are ",
                                  streams_->options().max_inbound_streams,
                                  ", which is GrpcTransportOptions.max_inbound_streams"));
      return absl::ResourceExhaustedError("this node has as many streams as it takes");
    }
    StreamOrigin origin{.endpoint = context.peer(), .hosts = NamesOf(context.auth_context())};
    const std::string here = absl::StrCat("the node that listens at ", context.host());
    if (absl::Status admitted = streams_->Admit(origin.hosts, context.peer(), here); !admitted.ok()) {
      streams_->Warn(absl::StrCat("a stream of ", context.peer(), " was refused: ", admitted.message()));
      return admitted;
    }
    is_heard_ = receiver_->OnStreamOpened(id_, origin);
    return is_heard_ ? absl::OkStatus() : absl::UnavailableError("the stream is not wanted: see the log of the node");
  }

  void OnReadDone(bool ok) override {
    size_t bytes = 0;
    {
      MutexLock lock(mutex_);
      if (!ok) {
        Finish(grpc::Status::OK);
        return;
      }
      bytes = frame_.Length();
    }
    if (streams_->TakeRoom(bytes, this)) Handle();
  }

  // The bytes for which it had room. It may be gone afterwards.
  size_t HandleOne(std::unique_ptr<FrameSequel>& sequel) {
    // No other thread has to do with the stream until it reads again: but what gRPC knows, tools see by the lock.
    MutexLock lock(mutex_);
    const size_t bytes = frame_.Length();
    if (streams_->is_over()) {
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the node ends"));
      return bytes;
    }
    // A buffer often comes in pieces.
    grpc::Slice slice;
    if (!frame_.TrySingleSlice(&slice).ok() && !frame_.DumpToSingleSlice(&slice).ok()) {
      Finish(grpc::Status(grpc::StatusCode::INTERNAL, "a frame that is none"));
      return bytes;
    }
    const std::string_view frame(reinterpret_cast<const char*>(slice.begin()), slice.size());
    if (sequel == nullptr && !is_thread_kept.exchange(true, std::memory_order_relaxed)) {
      sequel = receiver_->BeginFrame(frame);
      if (sequel == nullptr) is_thread_kept.store(false, std::memory_order_relaxed);
    }
    const bool goes_on = receiver_->OnFrame(id_, frame);
    frame_.Clear();
    if (goes_on) {
      StartRead(&frame_);
    } else {
      Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the stream was cut: see the log of the node"));
    }
    return bytes;
  }

  void OnDone() override {
    {
      // Whoever had to do with the stream has let go of it.
      MutexLock lock(mutex_);
      if (is_heard_ && !streams_->is_over()) receiver_->OnStreamClosed(id_);
    }
    const std::shared_ptr<Streams> streams = streams_;
    const uint64_t id = id_;
    delete this;
    if (id != 0) streams->RemoveInbound(id);
  }

  const std::shared_ptr<Streams> streams_;
  const std::shared_ptr<FrameReceiver> receiver_;
  const uint64_t id_;
  Mutex mutex_;
  bool is_heard_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ByteBuffer frame_ ABSL_GUARDED_BY(mutex_);
};

class FrameService final : public grpc::CallbackGenericService {
 public:
  explicit FrameService(std::shared_ptr<Streams> streams) : streams_(std::move(streams)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() != kMethod) return grpc::CallbackGenericService::CreateReactor(context);
    return new ServerStream(streams_, context);  // NOLINT(cppcoreguidelines-owning-memory): it ends itself.
  }

 private:
  const std::shared_ptr<Streams> streams_;
};

// gRPC 1.51 ends the threads that call back when the last one who needs them goes, and sometimes the process with them: it
// lets go of their queue once too often. So they stay, by a server that nobody can reach.
void KeepCallbackThreads() {
  static grpc::Server* const keeper = [] {
    auto* const nothing = new grpc::CallbackGenericService;  // NOLINT(cppcoreguidelines-owning-memory): of the process.
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(nothing);
    return builder.BuildAndStart().release();
  }();
  static_cast<void>(keeper);
}

class ListeningTransport final : public Transport {
 public:
  ListeningTransport(const GrpcTransportOptions& options, TlsCredentials credentials)
      : options_(options),
        credentials_(std::move(credentials)),
        streams_(std::make_shared<Streams>(options)),
        service_(streams_) {}
  ~ListeningTransport() override { Shutdown(); }

  absl::Status Listen() {
    if (options_.security.kind() == GrpcSecurity::Kind::kInsecure) {
      streams_->Warn(absl::StrCat("remoting at ", HostAndPort(options_.bind_host, options_.bind_port),
                                  " is not protected: whoever reaches it may send, and read along; use "
                                  "GrpcSecurity::MutualTls"));
    }
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(HostAndPort(options_.bind_host, options_.bind_port), credentials_.server, &port);
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(options_.limits.max_frame_bytes));
    grpc::ResourceQuota quota;
    quota.Resize(options_.limits.max_inbound_bytes + kQuotaOfConnections);
    builder.SetResourceQuota(quota);
    // Two programs must not share a port by accident.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsOfConnection);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(options_.connect_timeout));
    // Both sides ask whether the other is still there, as often as they like.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options_.keepalive));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options_.keepalive_timeout));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen at ",
                                                 HostAndPort(options_.bind_host, options_.bind_port),
                                                 "; is the port in use, and the host one of this machine?"));
    }
    port_ = static_cast<uint16_t>(port);
    return absl::OkStatus();
  }

  absl::Status Start(std::shared_ptr<FrameReceiver> receiver) override {
    streams_->SetReceiver(std::move(receiver));
    return absl::OkStatus();
  }

  std::shared_ptr<OutboundStream> Connect(const PathAuthority& to, Lane /*lane*/,
                                          std::shared_ptr<StreamListener> listener) override {
    grpc::ChannelArguments arguments;
    // A connection of its own: bulk data must not delay heartbeats.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // The association tries again, and knows when.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(options_.connect_timeout));
    // Nodes talk to nodes: no proxies that the environment names, no settings that a name server has.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options_.keepalive));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options_.keepalive_timeout));
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // "localhost" is looked up as ::1 first, where another program may listen at the same port. Nodes listen at 127.0.0.1
    // unless they are told otherwise, so that comes first; the certificate is for the name all the same.
    const bool is_localhost = to.host() == "localhost" && !streams_->LooksUpLocalhost(to.port());
    if (is_localhost) {
      arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, HostAndPort(to.host(), to.port()));
      arguments.SetSslTargetNameOverride("localhost");
    }
    const std::string host = is_localhost ? "127.0.0.1" : std::string(to.host());
    auto channel = grpc::CreateCustomChannel(TargetOf(host, to.port()), credentials_.channel, arguments);
    const uint16_t localhost_port = is_localhost ? to.port() : 0;
    auto stream = std::make_shared<ClientStream>(streams_, std::move(channel), HostAndPort(to.host(), to.port()),
                                                 localhost_port, std::move(listener));
    stream->Start();
    return stream;
  }

  void Cut(uint64_t stream) override { streams_->Cut(stream); }

  void Shutdown() override {
    if (std::exchange(has_ended_, true)) return;
    // Streams end when their callbacks have returned.
    RestOfCallbackThread().End();
    streams_->EndOutbound();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::time_point());
    streams_->AwaitInbound();
  }

  uint16_t port() const override { return port_; }
  TransportLimits limits() const override { return options_.limits; }

 private:
  const GrpcTransportOptions options_;
  const TlsCredentials credentials_;
  const std::shared_ptr<Streams> streams_;
  FrameService service_;
  std::unique_ptr<grpc::Server> server_;
  uint16_t port_ = 0;
  bool has_ended_ = false;
};

}  // namespace

absl::Status GrpcTransportOptions::Validate() const {
  const auto refuse = [](auto... parts) {
    return absl::InvalidArgumentError(absl::StrCat("GrpcTransportOptions.", parts...));
  };
  if (bind_host.empty()) return refuse("bind_host is empty; 127.0.0.1 is for this machine only, 0.0.0.0 for all");
  if (security.kind() == GrpcSecurity::Kind::kInsecureLoopback && !IsLoopback(bind_host)) {
    return refuse("bind_host is ", bind_host, ", and InsecureLoopback() is for this machine only; use MutualTls()");
  }
  if (limits.max_frame_bytes == 0 || limits.max_frame_bytes > size_t{1} << 30) {
    return refuse("limits.max_frame_bytes is ", limits.max_frame_bytes, "; use 1 to 2^30");
  }
  if (limits.max_inbound_bytes < limits.max_frame_bytes) {
    return refuse("limits.max_inbound_bytes is ", limits.max_inbound_bytes, "; one frame has up to ",
                  limits.max_frame_bytes);
  }
  if (max_inbound_streams == 0) return refuse("max_inbound_streams is 0; a peer needs three");
  if (connect_timeout < absl::Milliseconds(1)) return refuse("connect_timeout is too short; use at least 1ms");
  if (keepalive < absl::Milliseconds(100)) return refuse("keepalive is too short; use at least 100ms");
  if (keepalive_timeout < absl::Milliseconds(100)) return refuse("keepalive_timeout is too short; use at least 100ms");
  return security.Validate();
}

absl::StatusOr<std::unique_ptr<Transport>> GrpcTransport::Listen(const GrpcTransportOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  KeepCallbackThreads();
  TlsCredentials credentials;
  if (options.security.kind() == GrpcSecurity::Kind::kMutualTls) {
    FRAKTOR_ASSIGN_OR_RETURN(credentials, MakeTlsCredentials(options.security));
  } else {
    credentials = {.server = grpc::InsecureServerCredentials(), .channel = grpc::InsecureChannelCredentials()};
  }
  auto transport = std::make_unique<ListeningTransport>(options, std::move(credentials));
  FRAKTOR_RETURN_IF_ERROR(transport->Listen());
  return transport;
}

}  // namespace fraktor::inline v0
