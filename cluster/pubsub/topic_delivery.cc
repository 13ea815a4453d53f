#include "fraktor/cluster/pubsub/topic_delivery.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/timers.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/pubsub/topic_grain.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

absl::Status TopicDelivery::PreStart(Context& context) {
  return Timers(context).StartFixedDelay("join", JoinTopics{}, {.period = options_.join_period});
}

absl::Status TopicDelivery::On(Context& context, const SubscribeToTopic& subscribe) {
  const auto refuse = [&](absl::Status why) {
    if (!context.sender().IsNoOne()) context.Reply(ErrorReply{std::move(why)});
    return absl::OkStatus();
  };
  const auto found = topics_.find(subscribe.topic);
  if (found == topics_.end() && topics_.size() >= options_.max_topics) {
    return refuse(absl::ResourceExhaustedError(
        absl::StrCat(topics_.size(), " topics have subscribers on this node already (PubSubOptions::max_topics); \"",
                     subscribe.topic, "\" would be one more")));
  }
  const bool is_known =
      found != topics_.end() && std::find(found->second.subscribers.begin(), found->second.subscribers.end(),
                                          subscribe.subscriber) != found->second.subscribers.end();
  if (found != topics_.end() && (found->second.waiting.size() >= options_.max_subscribers ||
                                 (!is_known && found->second.subscribers.size() >= options_.max_subscribers))) {
    return refuse(absl::ResourceExhaustedError(
        absl::StrCat("topic \"", subscribe.topic, "\" has ", found->second.subscribers.size(),
                     " subscribers on this node already (PubSubOptions::max_subscribers)")));
  }
  if (!is_known) {
    if (absl::Status watched = context.WatchWith(subscribe.subscriber, SubscriberEnded{subscribe.subscriber});
        !watched.ok()) {
      return refuse(std::move(watched));
    }
    ++subscriptions_[subscribe.subscriber];
  }
  const bool is_new = found == topics_.end();
  Topic& topic = topics_[subscribe.topic];
  if (!is_known) topic.subscribers.push_back(subscribe.subscriber);
  if (topic.actor.IsNoOne()) {
    if (!context.sender().IsNoOne()) topic.waiting.push_back(context.sender());
    if (is_new) Join(context, subscribe.topic, topic);
  } else if (!context.sender().IsNoOne()) {
    context.Reply(Subscribed{.topic = subscribe.topic});
  }
  return absl::OkStatus();
}

Unsubscribed TopicDelivery::On(Context& context, const UnsubscribeFromTopic& unsubscribe) {
  if (const auto at = topics_.find(unsubscribe.topic); at != topics_.end()) {
    Remove(context, at, unsubscribe.subscriber);
  }
  return Unsubscribed{.topic = unsubscribe.topic};
}

void TopicDelivery::On(Context& context, const TopicBatch& batch) {
  if (const auto at = topics_.find(batch.topic); at != topics_.end()) {
    for (const PublicationPtr& publication : batch.publications) Deliver(context, at->second, *publication);
  }
  context.Reply(BatchDelivered{.number = batch.number});
}

void TopicDelivery::On(Context& context, const TopicJoined& joined) {
  const auto at = topics_.find(joined.topic);
  if (at == topics_.end()) {
    // All subscribers have gone meanwhile.
    context.Tell(joined.actor, LeaveTopic{.delivery = context.self().untyped()});
    return;
  }
  Topic& topic = at->second;
  if (topic.actor == joined.actor) return;
  if (!topic.actor.IsNoOne()) context.Unwatch(topic.actor);
  // If it cannot be watched, it is joined again.
  if (!context.WatchWith(joined.actor, TopicEnded{.topic = joined.topic, .actor = joined.actor}).ok()) return;
  topic.actor = joined.actor;
  topic.was_joined = true;
  for (const ActorRef asker : std::exchange(topic.waiting, {})) context.Tell(asker, Subscribed{.topic = joined.topic});
}

void TopicDelivery::On(Context& context, const TopicEnded& ended) {
  const auto at = topics_.find(ended.topic);
  if (at == topics_.end() || at->second.actor != ended.actor) return;
  at->second.actor = ActorRef();
  Join(context, at->first, at->second);
}

void TopicDelivery::On(Context& context, const SubscriberEnded& ended) {
  for (auto at = topics_.begin(); at != topics_.end() && subscriptions_.contains(ended.subscriber);) {
    Remove(context, at++, ended.subscriber);
  }
}

void TopicDelivery::On(Context& context, const JoinTopics&) {
  for (const auto& [name, topic] : topics_) {
    if (topic.actor.IsNoOne()) Join(context, name, topic);
  }
}

void TopicDelivery::Join(Context& context, const std::string& name, const Topic& topic) const {
  if (cluster_->driver().topology()->HostsOf(TopicGrain::kGrainKind).empty()) return;
  cluster_->Grain<TopicGrain>(name).Tell(
      JoinTopic{.delivery = context.self().untyped(), .was_joined = topic.was_joined});
}

void TopicDelivery::Remove(Context& context, Topics::iterator at, ActorRef subscriber) {
  Topic& topic = at->second;
  if (std::erase(topic.subscribers, subscriber) == 0) return;
  if (const auto count = subscriptions_.find(subscriber); --count->second == 0) {
    subscriptions_.erase(count);
    context.Unwatch(subscriber);
  }
  if (!topic.subscribers.empty()) return;
  for (const ActorRef asker : topic.waiting) {
    context.Tell(asker, ErrorReply{absl::CancelledError(absl::StrCat("the last subscriber of topic \"", at->first,
                                                                     "\" on this node has gone meanwhile"))});
  }
  if (!topic.actor.IsNoOne()) {
    context.Unwatch(topic.actor);
    context.Tell(topic.actor, LeaveTopic{.delivery = context.self().untyped()});
  }
  topics_.erase(at);
}

void TopicDelivery::Deliver(Context& context, const Topic& topic, const Publication& publication) const {
  ActorSystem& system = context.system();
  PathRefs refs(system);
  const auto read = [&] {
    return CodecsOf(system).Decode(
        {.manifest = publication.manifest, .version = publication.version, .bytes = publication.bytes},
        publication.publisher, {.refs = &refs});
  };
  ActorWorker& worker = ActorContext::worker();
  absl::StatusOr<EnvelopePtr> message = read();
  for (size_t i = 0; message.ok() && i < topic.subscribers.size(); ++i) {
    EnvelopePtr copy = nullptr;
    if (i + 1 < topic.subscribers.size()) {
      copy = CopyEnvelope(worker.cache(), **message);
      if (copy == nullptr) {
        // It can be moved only: the next one gets one of its own.
        absl::StatusOr<EnvelopePtr> another = read();
        if (another.ok()) copy = *std::exchange(message, std::move(another));
      }
    } else {
      copy = *std::move(message);
    }
    if (copy != nullptr) worker.Send(topic.subscribers[i], copy.release());
    if (i + 1 == topic.subscribers.size()) return;
  }
  const std::string recipient = absl::StrCat("subscribers of a topic on ", context.Path());
  system.dead_letters().Publish(DeadLetter{{.reason = DeadLetterReason::kNotReadable,
                                            .sender = {},
                                            .recipient = recipient,
                                            .message = {.type_name = publication.manifest,
                                                        .type = MessageTypeOf<Publication>(),
                                                        .message = &publication}}},
                                system.toolbox().Now());
}

}  // namespace fraktor::inline v0
