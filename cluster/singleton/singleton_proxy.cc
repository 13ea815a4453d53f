#include "fraktor/cluster/singleton/singleton_proxy.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/pattern/timers.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

SingletonProxy::SingletonProxy(Cluster* cluster, GrainKey key, const SingletonOptions& options)
    : cluster_(cluster), key_(std::move(key)), options_(options) {}

absl::Status SingletonProxy::PreStart(ActorContext& context) {
  return Timers(context).StartFixedDelay("look", Look{},
                                         {.period = options_.identify_period, .initial_delay = absl::ZeroDuration()});
}

absl::Status SingletonProxy::Receive(ActorContext& context, Envelope& message) {
  if (message.Is<Look>()) {
    if (singleton_.IsNoOne()) {
      LookFor(context);
      WarnOfNoHosts(context);
    }
  } else if (message.Is<Gone>()) {
    if (message.As<Gone>().actor != singleton_) return absl::OkStatus();
    singleton_ = ActorRef();
    // Answers to earlier questions do not count: they are of the one that has gone.
    outdated_ = question_;
    LookFor(context);
  } else if (const ActorIdentity* const identity = message.TryAs<ActorIdentity>()) {
    if (identity->id > outdated_ && !identity->ref.IsNoOne()) OnFound(context, identity->ref);
  } else if (message.Is<ErrorReply>()) {
    // To an Identify: it cannot be found now. The next Look tries again.
  } else if (!singleton_.IsNoOne()) {
    PassOn(context, context.Stash());
  } else if (buffered_.size() < options_.max_buffered) {
    buffered_.push_back(context.Stash());
  } else {
    Drop(context, message, DeadLetterReason::kStashFull);
    if (!context.sender().IsNoOne()) {
      context.Reply(ErrorReply{absl::ResourceExhaustedError(
          absl::StrCat("singleton \"", key_.kind(), "\" is not there now, and ", buffered_.size(),
                       " messages wait for it already (SingletonOptions::max_buffered); try again later"))});
    }
  }
  return absl::OkStatus();
}

void SingletonProxy::PostStop(ActorContext& context) {
  for (const EnvelopePtr& message : buffered_) Drop(context, *message, DeadLetterReason::kStopped);
  buffered_.clear();
}

void SingletonProxy::LookFor(ActorContext& context) {
  if (cluster_->driver().topology()->HostsOf(key_.kind()).empty()) return;
  ++question_;
  ForwardToGrain(context, cluster_->gate(), key_, MakeEnvelope<Identify>(context.self(), Identify{.id = question_}));
}

void SingletonProxy::WarnOfNoHosts(ActorContext& context) {
  const ClusterTopologyPtr topology = cluster_->driver().topology();
  ActorSystem& system = context.system();
  const Instant now = system.toolbox().Now();
  if (topology->members().empty() || !topology->HostsOf(key_.kind()).empty() || now - warned_at_ < absl::Seconds(10)) {
    return;
  }
  warned_at_ = now;
  const std::string text = absl::StrCat("no member of the cluster hosts the singleton \"", key_.kind(),
                                        "\"; add SingletonKindOf<A>() to ClusterOptions::kinds of those that may");
  system.log().Log(LogLevel::kWarning,
                   {.at = system.toolbox().WallNow(), .path = context.Path(), .type = "SingletonProxy", .text = text});
}

void SingletonProxy::OnFound(ActorContext& context, ActorRef singleton) {
  if (singleton == singleton_) return;
  // If it cannot be watched, it is asked for again.
  if (!context.WatchWith(singleton, Gone{singleton}).ok()) return;
  singleton_ = singleton;
  for (std::deque<EnvelopePtr> buffered = std::exchange(buffered_, {}); !buffered.empty(); buffered.pop_front()) {
    PassOn(context, std::move(buffered.front()));
  }
}

void SingletonProxy::PassOn(ActorContext& context, EnvelopePtr message) {
  ForwardToGrain(context, cluster_->gate(), key_, std::move(message));
}

void SingletonProxy::Drop(ActorContext& context, const Envelope& message, DeadLetterReason reason) const {
  const std::string sender = message.sender().IsNoOne() ? std::string() : context.PathOf(message.sender());
  const std::string recipient = absl::StrCat("singleton ", key_.kind());
  ActorSystem& system = context.system();
  system.dead_letters().Publish(
      Dropped{{.reason = reason,
               .sender = sender,
               .recipient = recipient,
               .message = {.type_name = message.type()->name(), .type = message.type(), .message = message.payload()}}},
      system.toolbox().Now());
}

}  // namespace fraktor::inline v0
