#include "fraktor/benchmarks/remote/link_node.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/benchmarks/measuring/countdown.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_transport.h"

namespace fraktor::inline v0 {
namespace {

// The sink answers after so many: the sender may be two of these ahead, so that nothing is dropped.
constexpr int64_t kWindow = 8192;

// All of their bytes are used, as in those of a bare stream: small ones would be sent in less.
constexpr int64_t kWide = 0x5a5a'5a5a'5a5a'5a5a;

// Counts, and says so after each window to whoever sends.
class Sink : public Actor<Sink, int64_t> {
 public:
  void On(Context& context, const int64_t& number) {
    sum_ += number;
    if (++count_ % kWindow == 0) context.Reply(count_);
  }

 private:
  int64_t count_ = 0;
  int64_t sum_ = 0;
};

class Echo : public Actor<Echo, int64_t> {
 public:
  void On(Context& context, const int64_t& number) { context.Reply(number); }
};

class Source : public Actor<Source, int64_t> {
 public:
  Source(ActorRef to, int64_t messages, Countdown* done) : to_(to), windows_(messages / kWindow), done_(done) {}
  void PreStart(Context& context) {
    Send(context);
    Send(context);
  }
  void On(Context& context, const int64_t&) {
    if (++answered_ == windows_) {
      done_->Hit();
    } else {
      Send(context);
    }
  }

 private:
  void Send(Context& context) {
    if (sent_ == windows_) return;
    ++sent_;
    for (int64_t i = 0; i < kWindow; ++i) context.Tell(to_, i ^ kWide);
  }

  const ActorRef to_;
  const int64_t windows_;
  Countdown* const done_;
  int64_t sent_ = 0;
  int64_t answered_ = 0;
};

class Pinger : public Actor<Pinger, int64_t> {
 public:
  Pinger(ActorRef to, int64_t count, std::vector<ProgramClock::duration>* times, Countdown* done)
      : to_(to), left_(count), times_(times), done_(done) {}
  void PreStart(Context& context) { Send(context); }
  void On(Context& context, const int64_t&) {
    times_->push_back(ProgramClock::now() - begin_);
    if (--left_ == 0) {
      done_->Hit();
    } else {
      Send(context);
    }
  }

 private:
  void Send(Context& context) {
    begin_ = ProgramClock::now();
    context.Tell(to_, left_ ^ kWide);
  }

  const ActorRef to_;
  int64_t left_;
  std::vector<ProgramClock::duration>* const times_;
  Countdown* const done_;
  ProgramClock::time_point begin_;
};

}  // namespace

GrpcSecurity LinkSecurity(const std::vector<std::string>& files) {
  if (files.size() != 3) return GrpcSecurity::InsecureLoopback();
  return GrpcSecurity::MutualTls(PemFiles{.roots = files[0], .certificate = files[1], .private_key = files[2]},
                                 {"localhost"});
}

LinkNode::LinkNode(std::string_view name, const GrpcSecurity& security) {
  std::unique_ptr<Transport> transport = GrpcTransport::Listen({.security = security}).value();
  port_ = transport->port();
  ActorSystemOptions options;
  options.workers = 2;
  options.log_level = LogLevel::kError;
  options.config.system_name = std::string(name);
  options.config.remoting = RemotingConfig{.canonical_hostname = "localhost", .canonical_port = port_};
  system_ = ActorSystem::Create(options).value();
  Remoting::Start(*system_, std::move(transport)).value();
}

LinkNode::~LinkNode() = default;

void LinkNode::SpawnTargets() {
  system_->Spawn<Sink>("sink");
  system_->Spawn<Echo>("echo");
}

ActorRef LinkNode::At(uint16_t there, std::string_view path) {
  return system_->Resolve(absl::StrCat("pekko://there@localhost:", there, std::string(path))).value();
}

double LinkNode::RunOneWay(uint16_t there, int64_t messages) {
  if (messages % kWindow != 0) std::abort();
  Countdown done;
  done.Arm(1);
  const ProgramClock::time_point begin = ProgramClock::now();
  system_->Spawn<Source>("", At(there, "/user/sink"), messages, &done);
  done.Await();
  return Seconds(ProgramClock::now() - begin);
}

std::vector<ProgramClock::duration> LinkNode::RunRoundTrips(uint16_t there, int64_t count) {
  std::vector<ProgramClock::duration> times;
  times.reserve(static_cast<size_t>(count));
  Countdown done;
  done.Arm(1);
  system_->Spawn<Pinger>("", At(there, "/user/echo"), count, &times, &done);
  done.Await();
  return times;
}

}  // namespace fraktor::inline v0
