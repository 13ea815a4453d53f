#include "fraktor/remote/transport/loopback_transport.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {
namespace {

// Where the search for a free port begins.
constexpr uint16_t kFirstPort = 49152;

}  // namespace

// A node, as long as anybody has to do with it.
class LoopbackNetwork::Node {
 public:
  Node(RuntimeToolbox& toolbox, PathAuthority address, LoopbackOptions options,
       std::unique_ptr<SerialExecutor> executor)
      : toolbox_(toolbox), address_(std::move(address)), options_(std::move(options)), executor_(std::move(executor)) {}

  // Calls of what is above the node happen inside of it, so that its end can wait for them.
  class Inside {
   public:
    explicit Inside(Node& node) : node_(node), is_in_(node.Enter()) {}
    ~Inside() {
      if (is_in_) node_.Leave();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    explicit operator bool() const { return is_in_; }

   private:
    Node& node_;
    const bool is_in_;
  };

  void SetReceiver(std::shared_ptr<FrameReceiver> receiver) {
    MutexLock lock(mutex_);
    receiver_ = std::move(receiver);
  }
  std::shared_ptr<FrameReceiver> receiver() {
    MutexLock lock(mutex_);
    return receiver_;
  }

  // Waits until there is room for a frame. On a worker of the network.
  void TakeRoom(size_t bytes) {
    MutexLock lock(mutex_);
    while (inbound_bytes_ != 0 && inbound_bytes_ + bytes > options_.limits.max_inbound_bytes) changed_.wait(lock);
    inbound_bytes_ += bytes;
  }
  void GiveRoom(size_t bytes) {
    MutexLock lock(mutex_);
    inbound_bytes_ -= bytes;
    changed_.notify_all();
  }

  // Streams that it has opened, and those of others to it.
  bool AddOutbound(uint64_t id, std::unique_ptr<SerialExecutor> worker, std::weak_ptr<Stream> stream) {
    MutexLock lock(mutex_);
    if (is_over_) return false;
    outbound_.insert_or_assign(id, Outbound{std::move(worker), std::move(stream)});
    return true;
  }
  std::unique_ptr<SerialExecutor> TakeWorker(uint64_t id) {
    MutexLock lock(mutex_);
    const auto found = outbound_.find(id);
    if (found == outbound_.end()) return nullptr;
    std::unique_ptr<SerialExecutor> worker = std::move(found->second.worker);
    outbound_.erase(found);
    return worker;
  }
  void AddInbound(uint64_t id, std::weak_ptr<Stream> stream) {
    MutexLock lock(mutex_);
    inbound_.insert_or_assign(id, std::move(stream));
  }
  void RemoveInbound(uint64_t id) {
    MutexLock lock(mutex_);
    inbound_.erase(id);
  }
  std::shared_ptr<Stream> FindInbound(uint64_t id) {
    MutexLock lock(mutex_);
    const auto found = inbound_.find(id);
    return found == inbound_.end() ? nullptr : found->second.lock();
  }

  void End();

  RuntimeToolbox& toolbox() { return toolbox_; }
  const PathAuthority& address() const { return address_; }
  const LoopbackOptions& options() const { return options_; }
  // For what there is no other worker for.
  SerialExecutor& executor() { return *executor_; }

 private:
  bool Enter() {
    MutexLock lock(mutex_);
    if (is_over_) return false;
    ++inside_;
    return true;
  }
  void Leave() {
    MutexLock lock(mutex_);
    --inside_;
    changed_.notify_all();
  }

  struct Outbound {
    std::unique_ptr<SerialExecutor> worker;
    std::weak_ptr<Stream> stream;
  };

  RuntimeToolbox& toolbox_;
  const PathAuthority address_;
  const LoopbackOptions options_;
  const std::unique_ptr<SerialExecutor> executor_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t inbound_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<FrameReceiver> receiver_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Outbound> outbound_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::weak_ptr<Stream>> inbound_ ABSL_GUARDED_BY(mutex_);
};

class LoopbackNetwork::Hub {
 public:
  // At a port of its choice, if the address has none.
  absl::StatusOr<PathAuthority> Pick(const PathAuthority& address) {
    if (address.port() != 0) return address;
    MutexLock lock(mutex_);
    for (uint32_t tries = 0; tries <= UINT16_MAX - kFirstPort; ++tries) {
      const uint16_t port = next_port_;
      next_port_ = next_port_ == UINT16_MAX ? kFirstPort : static_cast<uint16_t>(next_port_ + 1);
      FRAKTOR_ASSIGN_OR_RETURN(PathAuthority picked, PathAuthority::Create(address.protocol(), address.host(), port));
      if (!nodes_.contains(picked)) return picked;
    }
    return absl::ResourceExhaustedError("no port is free");
  }
  absl::Status Add(const std::shared_ptr<Node>& node) {
    MutexLock lock(mutex_);
    if (nodes_.emplace(node->address(), node).second) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(node->address().ToString(), " is taken by a node that lives"));
  }
  void Remove(const PathAuthority& address) {
    MutexLock lock(mutex_);
    nodes_.erase(address);
  }
  std::shared_ptr<Node> Find(const PathAuthority& address) {
    MutexLock lock(mutex_);
    const auto found = nodes_.find(address);
    return found == nodes_.end() ? nullptr : found->second;
  }
  uint64_t NextStream() { return next_stream_.fetch_add(1, std::memory_order_relaxed); }

 private:
  Mutex mutex_;
  std::map<PathAuthority, std::shared_ptr<Node>> nodes_ ABSL_GUARDED_BY(mutex_);
  uint16_t next_port_ ABSL_GUARDED_BY(mutex_) = kFirstPort;
  std::atomic<uint64_t> next_stream_{1};  // Only numbers that differ.
};

// Everything that happens to it happens on its worker, of the node that has opened it.
class LoopbackNetwork::Stream final : public OutboundStream, public std::enable_shared_from_this<Stream> {
 public:
  Stream(uint64_t id, std::shared_ptr<Node> from, std::shared_ptr<Node> to, std::shared_ptr<StreamListener> listener)
      : id_(id), from_(std::move(from)), to_(std::move(to)), listener_(std::move(listener)) {}

  void Start() {
    absl::StatusOr<std::unique_ptr<SerialExecutor>> worker =
        SerialExecutor::Make(from_->toolbox(), {.name = absl::StrCat("loopback-", id_)});
    if (!worker.ok()) {
      lane_ = from_->executor().lane();
      Post([why = worker.status()](Stream& self) { self.End(why); });
      return;
    }
    lane_ = (*worker)->lane();
    // False if the node has ended: nothing is heard of it.
    if (!from_->AddOutbound(id_, *std::move(worker), weak_from_this())) return;
    Post([](Stream& self) { self.Open(); });
  }

  void Write(std::string frame) override {
    Post([frame = std::move(frame)](Stream& self) { self.Deliver(frame); });
  }
  void Close() override {
    Post([](Stream& self) { self.End(absl::CancelledError("the stream was closed here")); });
  }
  void EndByPeer(std::string_view why) {
    Post([why = std::string(why)](Stream& self) { self.End(absl::UnavailableError(why)); });
  }

 private:
  template <class Step>
  void Post(Step step) {
    lane_->PostStep([self = shared_from_this(), step = std::move(step)]() mutable {
      if (!self->is_over_) step(*self);
    });
  }

  void Open() {
    bool is_wanted = false;
    if (to_ != nullptr) {
      const Node::Inside inside(*to_);
      const std::shared_ptr<FrameReceiver> receiver = inside ? to_->receiver() : nullptr;
      if (receiver != nullptr) {
        to_->AddInbound(id_, weak_from_this());
        is_wanted = is_heard_ = receiver->OnStreamOpened(
            id_, {.endpoint = absl::StrCat("loopback:", from_->address().ToString()), .hosts = from_->options().hosts});
      }
    }
    if (!is_wanted) {
      End(absl::UnavailableError("nobody answers"));
      return;
    }
    if (const Node::Inside inside(*from_); inside) listener_->OnOpened();
  }

  void Deliver(const std::string& frame) {
    bool goes_on = false;
    if (frame.size() <= to_->options().limits.max_frame_bytes) {
      to_->TakeRoom(frame.size());
      if (const Node::Inside inside(*to_); inside) {
        const std::shared_ptr<FrameReceiver> receiver = to_->receiver();
        goes_on = receiver != nullptr && receiver->OnFrame(id_, frame);
      }
      to_->GiveRoom(frame.size());
    }
    if (!goes_on) {
      End(absl::UnavailableError("the peer is gone, or has cut the stream"));
      return;
    }
    if (const Node::Inside inside(*from_); inside) listener_->OnWritten();
  }

  void End(const absl::Status& why) {
    is_over_ = true;
    if (to_ != nullptr) {
      to_->RemoveInbound(id_);
      const Node::Inside inside(*to_);
      const std::shared_ptr<FrameReceiver> receiver = inside ? to_->receiver() : nullptr;
      if (receiver != nullptr && is_heard_) receiver->OnStreamClosed(id_);
    }
    if (const Node::Inside inside(*from_); inside) listener_->OnClosed(why);
    listener_ = nullptr;
    // Its worker ends with this.
    const std::unique_ptr<SerialExecutor> worker = from_->TakeWorker(id_);
  }

  const uint64_t id_;
  const std::shared_ptr<Node> from_;
  const std::shared_ptr<Node> to_;
  std::shared_ptr<StreamListener> listener_;
  std::shared_ptr<ExecutorLane> lane_;
  bool is_heard_ = false;
  bool is_over_ = false;
};

void LoopbackNetwork::Node::End() {
  std::map<uint64_t, Outbound> outbound;
  std::map<uint64_t, std::weak_ptr<Stream>> inbound;
  {
    MutexLock lock(mutex_);
    is_over_ = true;
    while (inside_ > 0) changed_.wait(lock);
    receiver_ = nullptr;
    outbound.swap(outbound_);
    inbound.swap(inbound_);
  }
  for (const auto& [id, stream] : inbound) {
    if (const std::shared_ptr<Stream> one = stream.lock()) one->EndByPeer("the peer is gone");
  }
  executor_->Close();
  executor_->Join().IgnoreError();
  for (auto& [id, one] : outbound) {
    if (const std::shared_ptr<Stream> stream = one.stream.lock()) stream->Close();
    one.worker->Close();
    one.worker->Join().IgnoreError();
  }
}

class LoopbackNetwork::NodeTransport final : public Transport {
 public:
  NodeTransport(std::shared_ptr<Hub> hub, std::shared_ptr<Node> node) : hub_(std::move(hub)), node_(std::move(node)) {}
  ~NodeTransport() override { Shutdown(); }

  absl::Status Start(std::shared_ptr<FrameReceiver> receiver) override {
    node_->SetReceiver(std::move(receiver));
    return absl::OkStatus();
  }
  std::shared_ptr<OutboundStream> Connect(const PathAuthority& to, Lane /*lane*/,
                                          std::shared_ptr<StreamListener> listener) override {
    auto stream = std::make_shared<Stream>(hub_->NextStream(), node_, hub_->Find(to), std::move(listener));
    stream->Start();
    return stream;
  }
  void Cut(uint64_t stream) override {
    if (const std::shared_ptr<Stream> found = node_->FindInbound(stream))
      found->EndByPeer("the peer has cut the stream");
  }
  void Shutdown() override {
    if (std::exchange(is_over_, true)) return;
    hub_->Remove(node_->address());
    node_->End();
  }
  uint16_t port() const override { return node_->address().port(); }
  TransportLimits limits() const override { return node_->options().limits; }

 private:
  const std::shared_ptr<Hub> hub_;
  const std::shared_ptr<Node> node_;
  bool is_over_ = false;
};

LoopbackNetwork::LoopbackNetwork() : hub_(std::make_shared<Hub>()) {}

LoopbackNetwork::~LoopbackNetwork() = default;

absl::StatusOr<std::unique_ptr<Transport>> LoopbackNetwork::MakeTransport(const PathAuthority& address,
                                                                          RuntimeToolbox& toolbox,
                                                                          const LoopbackOptions& options) {
  FRAKTOR_ASSIGN_OR_RETURN(PathAuthority picked, hub_->Pick(address));
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<SerialExecutor> executor,
                           SerialExecutor::Make(toolbox, {.name = "loopback"}));
  auto node = std::make_shared<Node>(toolbox, std::move(picked), options, std::move(executor));
  FRAKTOR_RETURN_IF_ERROR(hub_->Add(node));
  return std::make_unique<NodeTransport>(hub_, std::move(node));
}

}  // namespace fraktor::inline v0
