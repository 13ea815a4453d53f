#include "fraktor/remote/transport/loopback_transport.h"

#include <atomic>
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

// A node, as long as anybody has to do with it.
class LoopbackNetwork::Node {
 public:
  explicit Node(std::unique_ptr<SerialExecutor> executor) : executor_(std::move(executor)) {}

  // On the node's worker; not at all if it has ended.
  bool Post(absl::AnyInvocable<void() &&> task) { return executor_->TryPost(std::move(task)).ok(); }

  void SetReceiver(std::shared_ptr<FrameReceiver> receiver) {
    MutexLock lock(mutex_);
    receiver_ = std::move(receiver);
  }
  std::shared_ptr<FrameReceiver> receiver() {
    MutexLock lock(mutex_);
    return receiver_;
  }
  void End() {
    SetReceiver(nullptr);
    executor_->Close();
    executor_->Join().IgnoreError();
  }

 private:
  const std::unique_ptr<SerialExecutor> executor_;
  Mutex mutex_;
  std::shared_ptr<FrameReceiver> receiver_ ABSL_GUARDED_BY(mutex_);
};

class LoopbackNetwork::Hub {
 public:
  absl::Status Add(const PathAuthority& address, const std::shared_ptr<Node>& node) {
    MutexLock lock(mutex_);
    if (nodes_.emplace(address, node).second) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(address.ToString(), " is taken by a node that lives"));
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
  std::atomic<uint64_t> next_stream_{1};  // Only numbers that differ.
};

class LoopbackNetwork::Stream final : public OutboundStream, public std::enable_shared_from_this<Stream> {
 public:
  Stream(uint64_t id, std::shared_ptr<Node> from, std::shared_ptr<Node> to, std::shared_ptr<StreamListener> listener)
      : id_(id), from_(std::move(from)), to_(std::move(to)), listener_(std::move(listener)) {}

  void Open() {
    from_->Post([self = shared_from_this()] {
      if (self->is_over_) return;
      if (self->to_ == nullptr || self->to_->receiver() == nullptr) {
        self->End(absl::UnavailableError("nobody answers"));
      } else {
        self->listener_->OnOpened();
      }
    });
  }

  void Write(std::string frame) override {
    const bool is_taken = to_->Post([self = shared_from_this(), frame = std::move(frame)] {
      const std::shared_ptr<FrameReceiver> receiver = self->to_->receiver();
      const bool goes_on = receiver != nullptr && receiver->OnFrame(self->id_, frame);
      self->from_->Post([self, goes_on] {
        if (self->is_over_) return;
        if (goes_on) {
          self->listener_->OnWritten();
        } else {
          self->End(absl::UnavailableError("the peer is gone, or has cut the stream"));
        }
      });
    });
    if (!is_taken) from_->Post([self = shared_from_this()] { self->End(absl::UnavailableError("the peer is gone")); });
  }

  void Close() override {
    from_->Post([self = shared_from_this()] { self->End(absl::CancelledError("the stream was closed here")); });
  }

 private:
  // On the worker of the node that has opened it, as everything about its listener.
  void End(const absl::Status& why) {
    if (std::exchange(is_over_, true)) return;
    listener_->OnClosed(why);
  }

  const uint64_t id_;
  const std::shared_ptr<Node> from_;
  const std::shared_ptr<Node> to_;
  const std::shared_ptr<StreamListener> listener_;
  bool is_over_ = false;
};

class LoopbackNetwork::NodeTransport final : public Transport {
 public:
  NodeTransport(std::shared_ptr<Hub> hub, PathAuthority address, std::shared_ptr<Node> node)
      : hub_(std::move(hub)), address_(std::move(address)), node_(std::move(node)) {}
  ~NodeTransport() override { Shutdown(); }

  absl::Status Start(std::shared_ptr<FrameReceiver> receiver) override {
    node_->SetReceiver(std::move(receiver));
    return absl::OkStatus();
  }
  std::shared_ptr<OutboundStream> Connect(const PathAuthority& to, Lane /*lane*/,
                                          std::shared_ptr<StreamListener> listener) override {
    auto stream = std::make_shared<Stream>(hub_->NextStream(), node_, hub_->Find(to), std::move(listener));
    stream->Open();
    return stream;
  }
  void Shutdown() override {
    if (std::exchange(is_over_, true)) return;
    hub_->Remove(address_);
    node_->End();
  }
  uint16_t port() const override { return address_.port(); }

 private:
  const std::shared_ptr<Hub> hub_;
  const PathAuthority address_;
  const std::shared_ptr<Node> node_;
  bool is_over_ = false;
};

LoopbackNetwork::LoopbackNetwork() : hub_(std::make_shared<Hub>()) {}

LoopbackNetwork::~LoopbackNetwork() = default;

absl::StatusOr<std::unique_ptr<Transport>> LoopbackNetwork::MakeTransport(const PathAuthority& address,
                                                                          RuntimeToolbox& toolbox) {
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<SerialExecutor> executor,
                           SerialExecutor::Make(toolbox, {.name = "loopback"}));
  auto node = std::make_shared<Node>(std::move(executor));
  FRAKTOR_RETURN_IF_ERROR(hub_->Add(address, node));
  return std::make_unique<NodeTransport>(hub_, address, std::move(node));
}

}  // namespace fraktor::inline v0
