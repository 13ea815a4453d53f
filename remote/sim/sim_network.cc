#include "fraktor/remote/sim/sim_network.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint64_t kFaultStream = 0x6e657466;  // Of the toolbox's generator.
constexpr uint64_t kUidStream = 0x6e657475;

constexpr std::string_view kSent = "net.sent";
constexpr std::string_view kDropped = "net.dropped";
constexpr std::string_view kDelivered = "net.delivered";
constexpr std::string_view kOpened = "net.opened";
constexpr std::string_view kClosed = "net.closed";

}  // namespace

// What is left when the network ends, for timers that are still armed.
class SimNetwork::Core : public std::enable_shared_from_this<SimNetwork::Core> {
 public:
  using Link = std::pair<PathAuthority, PathAuthority>;

  Core(RuntimeToolbox& toolbox, const SimNetworkOptions& options)
      : toolbox_(toolbox),
        options_(options),
        faults_(toolbox.MakeRandom(kFaultStream)),
        uids_(toolbox.MakeRandom(kUidStream)) {
    if (options_.trace == nullptr) return;
    for (const std::string_view kind : {kSent, kDropped, kDelivered, kOpened, kClosed}) options_.trace->NameKind(kind);
  }

  bool IsCut(const PathAuthority& from, const PathAuthority& to) const { return cuts_.contains({from, to}); }
  absl::Duration Delay() { return faults_.UniformDuration(options_.min_delay, options_.max_delay); }
  absl::Duration TimeFor(const std::string& frame) const {
    if (options_.bytes_per_second == 0) return absl::ZeroDuration();
    return absl::Seconds(static_cast<double>(frame.size()) / static_cast<double>(options_.bytes_per_second));
  }
  void Later(absl::Duration delay, std::function<void()> task) {
    toolbox_
        .ScheduleAfter(delay,
                       [core = weak_from_this(), task = std::move(task)] {
                         if (core.lock() != nullptr) task();
                       })
        .status()
        .IgnoreError();
  }
  void Trace(std::string_view kind, uint64_t a, uint64_t b = 0) {
    if (options_.trace != nullptr) options_.trace->Record(TraceKind(kind), a, b, 0);
  }

  void Send(Stream& stream, std::string frame);
  void Deliver(const std::shared_ptr<Stream>& stream, const std::string& frame);

  RuntimeToolbox& toolbox_;
  SimNetworkOptions options_;
  Random faults_;
  Random uids_;
  SimNetworkCounts counts_;
  Tamper tamper_;
  std::set<Link> cuts_;
  std::map<PathAuthority, Node*> nodes_;
  uint64_t next_stream_ = 1;
};

class SimNetwork::Stream final : public OutboundStream, public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<Core> core, uint64_t id, PathAuthority from, std::vector<std::string> hosts, PathAuthority to,
         std::shared_ptr<StreamListener> listener)
      : core_(std::move(core)),
        id_(id),
        from_(std::move(from)),
        hosts_(std::move(hosts)),
        to_(std::move(to)),
        listener_(std::move(listener)) {}

  void Write(std::string frame) override {
    if (state_ != State::kOpen) return;
    const absl::Duration takes = core_->TimeFor(frame);
    core_->Send(*this, std::move(frame));
    core_->Later(core_->options_.min_delay + takes, [self = shared_from_this()] {
      if (self->state_ == State::kOpen) self->listener_->OnWritten();
    });
  }
  void Close() override {
    if (state_ == State::kClosing || state_ == State::kClosed) return;
    state_ = State::kClosing;
    core_->Later(absl::ZeroDuration(),
                 [self = shared_from_this()] { self->End(absl::CancelledError("the stream was closed here")); });
  }

  void Open();
  void End(const absl::Status& why) {
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
    core_->Trace(kClosed, id_);
    TellClosed();
    const std::shared_ptr<StreamListener> listener = std::move(listener_);
    listener->OnClosed(why);
  }
  // Who it leads to hears of it, if nothing is in the way.
  bool TellOpened(const Node& there);
  void TellClosed();

  enum class State : uint8_t { kConnecting, kOpen, kClosing, kClosed };

  const std::shared_ptr<Core> core_;
  const uint64_t id_;
  const PathAuthority from_;
  const std::vector<std::string> hosts_;
  const PathAuthority to_;
  State state_ = State::kConnecting;
  std::shared_ptr<StreamListener> listener_;
  uint64_t there_ = 0;       // Which life of the other node it was opened to.
  uint64_t heard_by_ = 0;    // Which life has been told that it is open; 0 for none.
  bool is_refused_ = false;  // By the receiver, which wants no more of it.
  Instant last_arrival_;
};

class SimNetwork::Node final : public Transport {
 public:
  Node(std::shared_ptr<Core> core, PathAuthority address, std::vector<std::string> hosts)
      : core_(std::move(core)), address_(std::move(address)), hosts_(std::move(hosts)) {
    life_ = core_->next_stream_++;
    core_->nodes_.insert_or_assign(address_, this);
  }
  ~Node() override { Shutdown(); }

  absl::Status Start(std::shared_ptr<FrameReceiver> receiver) override {
    receiver_ = std::move(receiver);
    return absl::OkStatus();
  }

  std::shared_ptr<OutboundStream> Connect(const PathAuthority& to, Lane /*lane*/,
                                          std::shared_ptr<StreamListener> listener) override {
    auto stream = std::make_shared<Stream>(core_, core_->next_stream_++, address_, hosts_, to, std::move(listener));
    if (is_over_) {
      stream->state_ = Stream::State::kClosed;
      return stream;
    }
    std::erase_if(streams_, [](const auto& one) { return one->state_ == Stream::State::kClosed; });
    streams_.push_back(stream);
    const bool answers =
        IsUp() && core_->nodes_.contains(to) && !core_->IsCut(address_, to) && !core_->IsCut(to, address_);
    core_->Later(answers ? core_->Delay() * 2 : core_->options_.connect_timeout, [stream] { stream->Open(); });
    return stream;
  }

  void Cut(uint64_t stream) override {
    for (const auto& [address, node] : core_->nodes_) {
      for (const auto& one : node->streams_) {
        if (one->id_ != stream || one->to_ != address_) continue;
        core_->Later(core_->Delay(), [one] { one->End(absl::AbortedError("the peer has cut the stream")); });
        return;
      }
    }
  }

  void Shutdown() override {
    if (std::exchange(is_over_, true)) return;
    receiver_ = nullptr;
    const auto found = core_->nodes_.find(address_);
    if (found != core_->nodes_.end() && found->second == this) core_->nodes_.erase(found);
    for (const auto& stream : streams_) stream->End(absl::UnavailableError("the node is gone"));
    streams_.clear();
    // Who has streams to this one finds out, unless nothing gets through.
    for (const auto& [address, node] : core_->nodes_) {
      if (core_->IsCut(address_, address) || core_->options_.survive_restarts) continue;
      for (const auto& stream : node->streams_) {
        if (stream->there_ != life_) continue;
        core_->Later(core_->Delay(), [stream] { stream->End(absl::UnavailableError("the peer is gone")); });
      }
    }
  }

  uint16_t port() const override { return address_.port(); }
  TransportLimits limits() const override { return core_->options_.limits; }

  bool IsUp() const { return receiver_ != nullptr; }

  const std::shared_ptr<Core> core_;
  const PathAuthority address_;
  const std::vector<std::string> hosts_;
  uint64_t life_ = 0;
  bool is_over_ = false;
  std::shared_ptr<FrameReceiver> receiver_;
  std::vector<std::shared_ptr<Stream>> streams_;
};

void SimNetwork::Stream::Open() {
  if (state_ != State::kConnecting) return;
  const auto found = core_->nodes_.find(to_);
  const bool is_there = found != core_->nodes_.end() && found->second->IsUp();
  if (!is_there || core_->IsCut(from_, to_) || core_->IsCut(to_, from_)) {
    End(absl::UnavailableError(absl::StrCat("nobody answers at ", to_.ToString())));
    return;
  }
  there_ = found->second->life_;
  if (!TellOpened(*found->second)) {
    End(absl::AbortedError("the peer does not want the stream"));
    return;
  }
  state_ = State::kOpen;
  core_->Trace(kOpened, id_);
  listener_->OnOpened();
}

bool SimNetwork::Stream::TellOpened(const Node& there) {
  if (heard_by_ == there.life_) return true;
  if (!there.receiver_->OnStreamOpened(id_, {.endpoint = absl::StrCat("sim:", from_.ToString()), .hosts = hosts_})) {
    return false;
  }
  heard_by_ = there.life_;
  return true;
}

void SimNetwork::Stream::TellClosed() {
  if (heard_by_ == 0) return;
  // After the last frame that may still come.
  core_->Later(core_->options_.max_delay + core_->options_.max_lateness * 2 + absl::Microseconds(1),
               [self = shared_from_this()] {
                 const auto found = self->core_->nodes_.find(self->to_);
                 if (found == self->core_->nodes_.end() || found->second->life_ != self->heard_by_) return;
                 if (self->core_->IsCut(self->from_, self->to_) || !found->second->IsUp()) return;
                 found->second->receiver_->OnStreamClosed(self->id_);
               });
}

void SimNetwork::Core::Send(Stream& stream, std::string frame) {
  ++counts_.sent;
  Trace(kSent, stream.id_);
  if (tamper_ != nullptr && !tamper_(stream.from_, stream.to_, frame)) return;
  // All are drawn for each frame, so that one fate does not shift the others.
  const bool is_dropped = faults_.Bernoulli(options_.drop);
  const bool is_doubled = faults_.Bernoulli(options_.duplicate);
  const bool is_late = faults_.Bernoulli(options_.reorder);
  const absl::Duration delay = Delay();
  const absl::Duration lateness = faults_.UniformDuration(absl::ZeroDuration(), options_.max_lateness);
  if (is_dropped || IsCut(stream.from_, stream.to_)) {
    ++(is_dropped ? counts_.dropped : counts_.cut);
    Trace(kDropped, stream.id_);
    return;
  }
  Instant arrival = toolbox_.Now() + delay + TimeFor(frame);
  if (is_late) {
    ++counts_.reordered;
    arrival += lateness;
  } else {
    arrival = std::max(arrival, stream.last_arrival_);
    stream.last_arrival_ = arrival;
  }
  const std::shared_ptr<Stream> self = stream.shared_from_this();
  if (is_doubled) {
    ++counts_.duplicated;
    Later(arrival - toolbox_.Now() + lateness, [this, self, frame] { Deliver(self, frame); });
  }
  Later(arrival - toolbox_.Now(), [this, self, frame = std::move(frame)] { Deliver(self, frame); });
}

void SimNetwork::Core::Deliver(const std::shared_ptr<Stream>& stream, const std::string& frame) {
  const auto found = nodes_.find(stream->to_);
  const bool is_cut = IsCut(stream->from_, stream->to_);
  const bool is_there = found != nodes_.end() && (found->second->life_ == stream->there_ || options_.survive_restarts);
  if (is_cut || !is_there) {
    ++counts_.cut;
    Trace(kDropped, stream->id_);
    if (!is_cut && !options_.survive_restarts && !IsCut(stream->to_, stream->from_)) {
      Later(Delay(), [stream] { stream->End(absl::UnavailableError("the peer is gone")); });
    }
    return;
  }
  ++counts_.delivered;
  Trace(kDelivered, stream->id_);
  const std::shared_ptr<FrameReceiver> receiver = found->second->receiver_;
  if (receiver == nullptr || stream->is_refused_) return;
  const bool goes_on = frame.size() <= options_.limits.max_frame_bytes && stream->TellOpened(*found->second) &&
                       receiver->OnFrame(stream->id_, frame);
  if (goes_on) return;
  stream->is_refused_ = true;
  // Cut by the receiver.
  Later(Delay(), [stream] { stream->End(absl::AbortedError("the peer has cut the stream")); });
}

SimNetwork::SimNetwork(RuntimeToolbox& toolbox, const SimNetworkOptions& options)
    : core_(std::make_shared<Core>(toolbox, options)) {}

SimNetwork::~SimNetwork() = default;

std::unique_ptr<Transport> SimNetwork::MakeTransport(const PathAuthority& address, std::vector<std::string> hosts) {
  return std::make_unique<Node>(core_, address, std::move(hosts));
}

void SimNetwork::CutOneWay(const PathAuthority& from, const PathAuthority& to) { core_->cuts_.insert({from, to}); }

void SimNetwork::Cut(const PathAuthority& a, const PathAuthority& b) {
  CutOneWay(a, b);
  CutOneWay(b, a);
}

void SimNetwork::Heal(const PathAuthority& a, const PathAuthority& b) {
  core_->cuts_.erase({a, b});
  core_->cuts_.erase({b, a});
}

void SimNetwork::Heal() { core_->cuts_.clear(); }

void SimNetwork::Crash(const PathAuthority& node) {
  const auto found = core_->nodes_.find(node);
  if (found != core_->nodes_.end()) found->second->Shutdown();
}

void SimNetwork::SetFaults(double drop, double duplicate, double reorder) {
  core_->options_.drop = drop;
  core_->options_.duplicate = duplicate;
  core_->options_.reorder = reorder;
}

void SimNetwork::SetTamper(Tamper tamper) { core_->tamper_ = std::move(tamper); }

const SimNetworkCounts& SimNetwork::counts() const { return core_->counts_; }

uint64_t SimNetwork::NextUid() { return core_->uids_.Next() | 1; }

}  // namespace fraktor::inline v0
