#include "fraktor/cluster/singleton/singleton_proxy.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/cluster/grain/last_moment.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

std::string NoHosts(const GrainKey& key) {
  return absl::StrCat("no member of the cluster hosts the singleton \"", key.kind(),
                      "\"; add SingletonKindOf<A>() to ClusterOptions::kinds of those that may");
}

}  // namespace

SingletonProxy::SingletonProxy(Cluster* cluster, GrainKey key, const SingletonOptions& options)
    : cluster_(cluster), key_(std::move(key)), options_(options) {}

absl::Status SingletonProxy::PreStart(ActorContext& context) {
  // Before it looks for the first time: so it misses nobody.
  topologies_ = context.system().events().Listen<TopologyChanged>(
      [self = context.self()](const TopologyChanged&) { Tell(self, MembersChanged{}); });
  return Timers(context).StartFixedDelay("look", Look{},
                                         {.period = options_.identify_period, .initial_delay = absl::ZeroDuration()});
}

absl::Status SingletonProxy::Receive(ActorContext& context, Envelope& message) {
  if (message.Is<Look>()) {
    if (singleton_.IsNoOne() || context.system().toolbox().Now() - asked_at_ >= options_.check_period) {
      LookFor(context);
      WarnOfNoHosts(context);
    }
  } else if (message.Is<MembersChanged>()) {
    if (singleton_.IsNoOne()) LookFor(context);
  } else if (message.Is<Gone>()) {
    if (message.As<Gone>().actor != singleton_) return absl::OkStatus();
    singleton_ = ActorRef();
    // Answers to earlier questions do not count: they are of the one that has gone.
    outdated_ = question_;
    LookFor(context);
  } else if (message.Is<AnswersDue>()) {
    OnAnswersDue(context);
  } else if (!singleton_.IsNoOne()) {
    PassOn(context, context.Stash());
  } else if (buffered_.size() < options_.max_buffered) {
    Buffer(context);
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

absl::Status SingletonProxy::OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) {
  const auto asked = asks_.find(ask);
  if (asked == asks_.end()) return absl::OkStatus();
  const uint64_t question = asked->second;
  asks_.erase(asked);
  // This ask has timed out. The error in a reply may be the timeout of another ask, so it is no
  // sign of that.
  if (!answer.ok()) return absl::OkStatus();
  if (const auto* const identity = (*answer)->TryAs<ActorIdentity>()) {
    if (question > outdated_ && !identity->ref.IsNoOne()) {
      // Replies to earlier messages do not count either.
      outdated_ = question - 1;
      OnFound(context, identity->ref);
    }
  } else if (const auto* const error = (*answer)->TryAs<ErrorReply>()) {
    OnNotFound(context, error->status);
  }
  return absl::OkStatus();
}

void SingletonProxy::PostStop(ActorContext& context) {
  topologies_.Reset();
  for (const Buffered& buffered : buffered_) Drop(context, *buffered.message, DeadLetterReason::kStopped);
  buffered_.clear();
}

void SingletonProxy::LookFor(ActorContext& context) {
  asked_at_ = context.system().toolbox().Now();
  if (cluster_->driver().topology()->HostsOf(key_.kind()).empty()) return;
  ++question_;
  // As a question, so that somebody says if it will not be answered.
  const absl::Duration timeout = std::max(options_.identify_period, absl::Seconds(5));
  GrainCall call{.key = key_,
                 .message = MakeEnvelope<Identify>(ActorRef(), Identify{.id = question_}),
                 .is_redirected = false,
                 .hops = 0,
                 .timeout = timeout};
  const absl::StatusOr<ActorRef> ask = context.AskOnReply(cluster_->gate(), std::move(call), timeout);
  if (ask.ok()) {
    asks_.emplace(*ask, question_);
  } else {
    OnNotFound(context, ask.status());
  }
}

void SingletonProxy::OnNotFound(ActorContext& context, const absl::Status& why) {
  if (!singleton_.IsNoOne()) return;
  why_not_found_ = why;
  // The singleton may be there soon: the next Look tries again. The runtime replies with
  // kAskTimeout to a message that was lost on its way, or whose recipient has ended. The error of a
  // singleton that cannot start has another kind.
  if (ErrorKindOf<LookupError>(why).has_value() || absl::IsUnavailable(why) ||
      ErrorKindOf<ActorErrorKind>(why) == ActorErrorKind::kAskTimeout) {
    return;
  }
  const absl::Status answer = Annotate(why, NotThere());
  std::erase_if(buffered_, [&](const Buffered& buffered) {
    if (buffered.until == Instant::InfiniteFuture()) return false;
    Refuse(context, *buffered.message, answer);
    return true;
  });
}

void SingletonProxy::WarnOfNoHosts(ActorContext& context) {
  const ClusterTopologyPtr topology = cluster_->driver().topology();
  ActorSystem& system = context.system();
  const Instant now = system.toolbox().Now();
  if (topology->members().empty() || !topology->HostsOf(key_.kind()).empty() || now - warned_at_ < absl::Seconds(10)) {
    return;
  }
  warned_at_ = now;
  const std::string text = NoHosts(key_);
  system.log().Log(LogLevel::kWarning,
                   {.at = system.toolbox().WallNow(), .path = context.Path(), .type = "SingletonProxy", .text = text});
}

void SingletonProxy::OnFound(ActorContext& context, ActorRef singleton) {
  if (singleton == singleton_) return;
  // If it cannot be watched, it is asked for again.
  if (!context.WatchWith(singleton, Gone{singleton}).ok()) return;
  if (!singleton_.IsNoOne()) context.Unwatch(singleton_);
  singleton_ = singleton;
  why_not_found_ = absl::OkStatus();
  for (std::deque<Buffered> buffered = std::exchange(buffered_, {}); !buffered.empty(); buffered.pop_front()) {
    PassOn(context, std::move(buffered.front().message));
  }
}

void SingletonProxy::PassOn(ActorContext& context, EnvelopePtr message) {
  ForwardToGrain(context, cluster_->gate(), key_, std::move(message));
}

void SingletonProxy::Buffer(ActorContext& context) {
  const Instant until = LastMoment(context.sender(), context.system().toolbox().Now());
  buffered_.push_back({.message = context.Stash(), .until = until});
  SetAnswersDue(context, until);
}

void SingletonProxy::SetAnswersDue(ActorContext& context, Instant at) {
  if (at >= answers_due_at_) return;
  answers_due_at_ = at;
  // Without a timer it is the question's own that ends it.
  Timers(context).StartSingle("answers", AnswersDue{}, at - context.system().toolbox().Now()).IgnoreError();
}

void SingletonProxy::OnAnswersDue(ActorContext& context) {
  const Instant now = context.system().toolbox().Now();
  answers_due_at_ = Instant::InfiniteFuture();
  Instant next = Instant::InfiniteFuture();
  std::erase_if(buffered_, [&](const Buffered& buffered) {
    if (buffered.until > now) {
      next = std::min(next, buffered.until);
      return false;
    }
    Refuse(context, *buffered.message, WhyNotThere());
    return true;
  });
  SetAnswersDue(context, next);
}

std::string SingletonProxy::NotThere() const { return absl::StrCat("singleton \"", key_.kind(), "\" is not there"); }

absl::Status SingletonProxy::WhyNotThere() const {
  const std::string what = NotThere();
  FRAKTOR_RETURN_IF_ERROR(Annotate(cluster_->WhyNoMember(), what));
  std::string why = "it has not answered";
  if (cluster_->driver().topology()->HostsOf(key_.kind()).empty()) {
    why = NoHosts(key_);
  } else if (!why_not_found_.ok()) {
    why = std::string(why_not_found_.message());
  }
  return absl::UnavailableError(absl::StrCat(what, ": ", why));
}

void SingletonProxy::Refuse(ActorContext& context, const Envelope& question, const absl::Status& why) const {
  Drop(context, question, DeadLetterReason::kNoRecipient);
  context.Tell(question.sender(), ErrorReply{why});
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
