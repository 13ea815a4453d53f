#include "fraktor/cluster/pubsub/topic_delivery.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/grain/last_moment.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/pubsub/forged_message.h"
#include "fraktor/cluster/pubsub/topic_grain.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorWorker;

namespace {

// What its random numbers are for; see RuntimeToolbox::MakeRandom.
constexpr uint64_t kDeliveryStream = 0x64656c6976657279;

constexpr std::string_view kNoHosts =
    "no member of the cluster hosts topics; add TopicKind() to ClusterOptions::kinds of those that may";

}  // namespace

std::shared_ptr<TopicDelivery::Estate> TopicDelivery::MakeEstate() { return std::make_shared<Estate>(); }

absl::Status TopicDelivery::PreStart(Context& context) {
  const Remoting* const remoting = Remoting::Of(context.system());
  is_untrusted_ = remoting != nullptr && remoting->is_untrusted();
  random_ = context.system().toolbox().MakeRandom(kDeliveryStream);
  // Timers have ended with the former life, and whoever waits has not.
  On(context, AnswersDue{});
  return Timers(context).StartFixedDelay("join", JoinTopics{}, {.period = options_.join_period});
}

Deferred<Subscribed> TopicDelivery::On(Context& context, const SubscribeToTopic& subscribe) {
  const auto refuse = [&](absl::Status why) {
    if (!context.sender().IsNoOne()) context.Reply(ErrorReply{std::move(why)});
    return absl::OkStatus();
  };
  const auto found = estate_->topics.find(subscribe.topic);
  if (found == estate_->topics.end() && estate_->topics.size() >= options_.max_topics) {
    return refuse(absl::ResourceExhaustedError(absl::StrCat(
        estate_->topics.size(), " topics have subscribers on this node already (PubSubOptions::max_topics); \"",
        subscribe.topic, "\" would be one more")));
  }
  const auto is_in_room = [&](const Topic& topic) {
    const auto room = topic.rooms.find(subscribe.room);
    return room != topic.rooms.end() && room->second.Contains(subscribe.subscriber);
  };
  const bool is_known = found != estate_->topics.end() && is_in_room(found->second);
  if (found != estate_->topics.end() && (found->second.waiting.size() >= options_.max_subscribers ||
                                         (!is_known && found->second.subscribers >= options_.max_subscribers))) {
    return refuse(absl::ResourceExhaustedError(
        absl::StrCat("topic \"", subscribe.topic, "\" has ", found->second.subscribers,
                     " subscribers on this node already (PubSubOptions::max_subscribers)")));
  }
  if (!is_known) {
    if (absl::Status watched = context.WatchWith(subscribe.subscriber, SubscriberEnded{subscribe.subscriber});
        !watched.ok()) {
      return refuse(std::move(watched));
    }
  }
  const auto at = estate_->topics.try_emplace(subscribe.topic).first;
  Topic& topic = at->second;
  IndexedSet<ActorRef>& room = topic.rooms[subscribe.room];
  const bool is_new_room = room.empty();
  if (!is_known) {
    room.Insert(subscribe.subscriber);
    estate_->subscriptions[subscribe.subscriber].emplace(at->first, subscribe.room);
    ++topic.subscribers;
  }
  if (is_new_room) topic.version = ++estate_->last_version;
  if (topic.known_version < topic.version) {
    if (!context.sender().IsNoOne()) {
      topic.waiting.push_back({.asker = context.sender(),
                               .version = topic.version,
                               .until = LastMoment(context.sender(), context.system().toolbox().Now())});
      SetAnswersDue(context, topic.waiting.back().until);
    }
    if (is_new_room) Join(context, subscribe.topic, topic);
  } else if (!context.sender().IsNoOne()) {
    context.Reply(Subscribed{.topic = subscribe.topic});
  }
  return absl::OkStatus();
}

Unsubscribed TopicDelivery::On(Context& context, const UnsubscribeFromTopic& unsubscribe) {
  if (const auto at = estate_->topics.find(unsubscribe.topic); at != estate_->topics.end()) {
    Remove(context, at, unsubscribe.room, unsubscribe.subscriber);
  }
  return Unsubscribed{.topic = unsubscribe.topic};
}

void TopicDelivery::On(Context& context, SendToPath&& send) {
  if (const auto at = estate_->topics.find(send.path); at != estate_->topics.end()) {
    const auto room = at->second.rooms.find(TopicRoom{.kind = TopicRoomKind::kPath});
    if (room != at->second.rooms.end()) {
      send.publication.publisher = context.sender();
      Deliver(context, {room->second[random_->Uniform(room->second.size())]}, send.publication);
      return;
    }
  }
  ForwardToGrain(
      context, cluster_->gate(), GrainKey(TopicGrain::kGrainKind, send.path),
      MakeEnvelope<PublishToTopic>(context.sender(), PublishToTopic{.publication = std::move(send.publication)}));
}

void TopicDelivery::On(Context& context, const TopicBatch& batch) {
  const auto at = estate_->topics.find(batch.topic);
  for (const TopicParcel& parcel : batch.parcels) {
    const std::vector<ActorRef> recipients =
        at == estate_->topics.end() ? std::vector<ActorRef>() : RecipientsOf(at->second, parcel);
    // Somebody may have gone since the topic has sent it.
    if (recipients.size() < std::max<size_t>(parcel.groups.size(), 1)) {
      Drop(context, *parcel.publication, DeadLetterReason::kNoRecipient);
    }
    if (!recipients.empty()) Deliver(context, recipients, *parcel.publication);
  }
  context.Reply(BatchDelivered{.number = batch.number});
}

void TopicDelivery::On(Context& context, const TopicJoined& joined) {
  const auto at = estate_->topics.find(joined.topic);
  // A topic speaks for itself, and knows nothing that was not said.
  if (context.sender() != joined.actor || (at != estate_->topics.end() && joined.version > at->second.version)) {
    DropForged(context, joined);
    return;
  }
  if (at == estate_->topics.end()) {
    // All subscribers have gone meanwhile.
    context.Tell(joined.actor, LeaveTopic{.delivery = context.self().untyped(), .version = ++estate_->last_version});
    return;
  }
  Topic& topic = at->second;
  if (topic.actor != joined.actor) {
    if (!topic.actor.IsNoOne()) context.Unwatch(topic.actor);
    // If it cannot be watched, it is joined again.
    if (!context.WatchWith(joined.actor, TopicEnded{.topic = joined.topic, .actor = joined.actor}).ok()) return;
    topic.actor = joined.actor;
    topic.known_version = 0;
    topic.was_joined = true;
  }
  topic.known_version = std::max(topic.known_version, joined.version);
  std::erase_if(topic.waiting, [&](const Waiting& waiting) {
    if (waiting.version > topic.known_version) return false;
    context.Tell(waiting.asker, Subscribed{.topic = joined.topic});
    return true;
  });
}

void TopicDelivery::On(Context& context, const TopicEnded& ended) {
  const auto at = estate_->topics.find(ended.topic);
  if (at == estate_->topics.end() || at->second.actor != ended.actor) return;
  at->second.actor = ActorRef();
  at->second.known_version = 0;
  Join(context, at->first, at->second);
}

void TopicDelivery::On(Context& context, const SubscriberEnded& ended) {
  // Remove() takes each room out of the list, and may end the topic.
  for (auto found = estate_->subscriptions.find(ended.subscriber); found != estate_->subscriptions.end();
       found = estate_->subscriptions.find(ended.subscriber)) {
    const auto [topic, room] = *found->second.begin();
    Remove(context, estate_->topics.find(topic), room, ended.subscriber);
  }
}

void TopicDelivery::On(Context& context, const JoinTopics&) {
  const Instant now = context.system().toolbox().Now();
  bool is_one_missing = false;
  for (auto& [name, topic] : estate_->topics) {
    const bool is_joined = topic.known_version >= topic.version;
    // By when it was asked, not by what has come since: whatever that was, the topic hears of this node.
    if (is_joined && now - topic.asked_at < options_.rejoin_period) continue;
    Join(context, name, topic);
    is_one_missing = is_one_missing || !is_joined;
  }
  if (is_one_missing) WarnOfNoHosts(context);
}

void TopicDelivery::On(Context& context, const AnswersDue&) {
  const Instant now = context.system().toolbox().Now();
  answers_due_at_ = Instant::InfiniteFuture();
  Instant next = Instant::InfiniteFuture();
  for (auto& [name, topic] : estate_->topics) {
    std::erase_if(topic.waiting, [&, &name = name](const Waiting& waiting) {
      if (waiting.until > now) {
        next = std::min(next, waiting.until);
        return false;
      }
      context.Tell(waiting.asker, ErrorReply{WhyNotJoined(name)});
      return true;
    });
  }
  SetAnswersDue(context, next);
}

void TopicDelivery::SetAnswersDue(Context& context, Instant at) {
  if (at >= answers_due_at_) return;
  answers_due_at_ = at;
  // Without a timer it is the question's own that ends it.
  Timers(context).StartSingle("answers", AnswersDue{}, at - context.system().toolbox().Now()).IgnoreError();
}

absl::Status TopicDelivery::WhyNotJoined(const std::string& name) const {
  FRAKTOR_RETURN_IF_ERROR(Annotate(cluster_->WhyNoMember(), absl::StrCat("topic \"", name, "\" is not joined yet")));
  std::string why = "it has not answered";
  if (cluster_->driver().topology()->HostsOf(TopicGrain::kGrainKind).empty()) {
    why = std::string(kNoHosts);
  } else if (!why_not_joined_.ok()) {
    why = std::string(why_not_joined_.message());
  }
  return absl::UnavailableError(absl::StrCat("topic \"", name, "\" is not joined yet: ", why));
}

void TopicDelivery::WarnOfNoHosts(Context& context) {
  const ClusterTopologyPtr topology = cluster_->driver().topology();
  const Instant now = context.system().toolbox().Now();
  if (topology->members().empty() || !topology->HostsOf(TopicGrain::kGrainKind).empty() ||
      now - warned_at_ < absl::Seconds(10)) {
    return;
  }
  warned_at_ = now;
  context.system().log().Log(LogLevel::kWarning,
                             {.at = context.system().toolbox().WallNow(),
                              .path = context.Path(),
                              .text = absl::StrCat("nobody gets what is published: ", ToAbsl(kNoHosts))});
}

void TopicDelivery::Join(Context& context, const std::string& name, Topic& topic) const {
  topic.asked_at = context.system().toolbox().Now();
  if (cluster_->driver().topology()->HostsOf(TopicGrain::kGrainKind).empty()) return;
  JoinTopic join{.delivery = context.self().untyped(), .version = topic.version, .was_joined = topic.was_joined};
  for (const auto& [room, subscribers] : topic.rooms) join.rooms.push_back(room);
  cluster_->Grain<TopicGrain>(name).Tell(std::move(join));
}

void TopicDelivery::Remove(Context& context, Topics::iterator at, const TopicRoom& room, ActorRef subscriber) {
  Topic& topic = at->second;
  const auto here = topic.rooms.find(room);
  if (here == topic.rooms.end() || !here->second.Erase(subscriber)) return;
  --topic.subscribers;
  const auto its = estate_->subscriptions.find(subscriber);
  its->second.erase({at->first, room});
  if (its->second.empty()) {
    estate_->subscriptions.erase(its);
    context.Unwatch(subscriber);
  }
  if (!here->second.empty()) return;
  topic.rooms.erase(here);
  topic.version = ++estate_->last_version;
  if (!topic.rooms.empty()) {
    Join(context, at->first, topic);
    return;
  }
  for (const Waiting& waiting : topic.waiting) {
    context.Tell(waiting.asker,
                 ErrorReply{absl::CancelledError(absl::StrCat("the last subscriber of topic \"", at->first,
                                                              "\" on this node has gone meanwhile"))});
  }
  if (!topic.actor.IsNoOne()) {
    context.Unwatch(topic.actor);
    context.Tell(topic.actor, LeaveTopic{.delivery = context.self().untyped(), .version = topic.version});
  }
  estate_->topics.erase(at);
}

std::vector<ActorRef> TopicDelivery::RecipientsOf(const Topic& topic, const TopicParcel& parcel) {
  const auto all_in = [&](const TopicRoom& room) {
    const auto found = topic.rooms.find(room);
    return found == topic.rooms.end() ? std::vector<ActorRef>()
                                      : std::vector<ActorRef>(found->second.begin(), found->second.end());
  };
  const auto one_of = [&](const TopicRoom& room, std::vector<ActorRef>& to) {
    const auto found = topic.rooms.find(room);
    if (found != topic.rooms.end()) to.push_back(found->second[random_->Uniform(found->second.size())]);
  };
  std::vector<ActorRef> chosen;
  switch (parcel.publication->audience) {
    case TopicAudience::kSubscribers:
      return all_in({.kind = TopicRoomKind::kSubscribers});
    case TopicAudience::kAllAtPath:
      return all_in({.kind = TopicRoomKind::kPath});
    case TopicAudience::kOneAtPath:
      one_of({.kind = TopicRoomKind::kPath}, chosen);
      break;
    case TopicAudience::kOneOfEachGroup:
      for (const std::string& group : parcel.groups) one_of({.kind = TopicRoomKind::kGroup, .group = group}, chosen);
      break;
  }
  return chosen;
}

void TopicDelivery::Deliver(Context& context, const std::vector<ActorRef>& recipients,
                            const Publication& publication) const {
  ActorSystem& system = context.system();
  PathRefs refs(system);
  const auto read = [&]() -> absl::StatusOr<EnvelopePtr> {
    const CodecRegistry& codecs = CodecsOf(system);
    if (is_untrusted_) {
      // Remoting does not see what is within a batch.
      const MessageCodec* const codec = codecs.FindManifest(publication.manifest);
      if (codec != nullptr && IsHarmful(codec->type())) {
        return absl::PermissionDeniedError("peers are not trusted here");
      }
    }
    return codecs.Decode({.manifest = publication.manifest, .version = publication.version, .bytes = publication.bytes},
                         publication.publisher, {.refs = &refs});
  };
  ActorWorker& worker = ActorContext::worker();
  absl::StatusOr<EnvelopePtr> message = read();
  for (size_t i = 0; message.ok() && i < recipients.size(); ++i) {
    EnvelopePtr copy = nullptr;
    if (i + 1 < recipients.size()) {
      copy = CopyEnvelope(worker.cache(), **message);
      if (copy == nullptr) {
        // It can be moved only: the next one gets one of its own.
        absl::StatusOr<EnvelopePtr> another = read();
        if (another.ok()) copy = *std::exchange(message, std::move(another));
      }
    } else {
      copy = *std::move(message);
    }
    if (copy != nullptr) worker.Send(recipients[i], copy.release());
    if (i + 1 == recipients.size()) return;
  }
  Drop(context, publication, DeadLetterReason::kNotReadable);
}

void TopicDelivery::Drop(Context& context, const Publication& publication, DeadLetterReason reason) const {
  ActorSystem& system = context.system();
  const std::string recipient = absl::StrCat("subscribers of a topic on ", context.Path());
  system.dead_letters().Publish(DeadLetter{{.reason = reason,
                                            .sender = {},
                                            .recipient = recipient,
                                            .message = {.type_name = publication.manifest,
                                                        .type = MessageTypeOf<Publication>(),
                                                        .message = &publication}}},
                                system.toolbox().Now());
}

}  // namespace fraktor::inline v0
