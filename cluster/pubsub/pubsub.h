// PubSub: publish and subscribe by topic, in the whole cluster.
//
//   ClusterOptions options{.kinds = {TopicKind()}};                         // on nodes that may run topics
//   PubSub& pubsub = *PubSub::Start(system).value();                        // on each node
//   Topic<News> news = pubsub.Topic<News>("news");
//   auto subscribing = news.Subscribe(context, context.self(), absl::Seconds(5));
//   absl::StatusOr<Subscribed> subscribed = co_await subscribing;           // from now on it gets all News
//   absl::Status sent = news.Publish(News{"rain"});                         // on any node; an error: it has no codec
//
// A topic is a grain (TopicGrain), so it is on one node and moves as grains do. A publication goes there, and from there
// to each node that has subscribers, in batches; there an actor (TopicDelivery) gives it to each of them. The sender
// that a subscriber sees is the actor that published.
//
// Groups: who subscribes in a group gets none of that, but of what is published to groups one subscriber of each group
// gets it, whichever node it is on, by chance. If all are in one group, this is a queue that several work on.
//
//   auto joining = jobs.SubscribeInGroup(context, "printers", context.self(), absl::Seconds(5));
//   absl::Status sent = jobs.PublishToGroups(Job{7});                       // to one of the printers
//
// Paths: actors that were put are reached by their path, which may be the same on several nodes, by whoever knows no more
// than that. No topic of the name of a path is concerned.
//
//   auto putting = pubsub.Put(context, context.self().untyped(), absl::Seconds(5));   // it is "/user/printer"
//   absl::Status sent = pubsub.Send("/user/printer", Job{7});               // to one, of this node if there is one
//   sent = pubsub.SendToAll("/user/printer", Pause{});
//
// What holds:
// - Messages of one publisher to one topic arrive in the order in which they were published, as long as the topic stays
//   where it is, each at most once.
// - Who was told Subscribed gets what is published from then on. A subscriber that ends is removed; one that is there
//   already stays one subscriber.
// - When the topic's node leaves, nothing is lost that the topic has got. When it dies, what was on its way may be lost,
//   and the topic is back when the membership has found out. In both cases the nodes with subscribers join the topic's
//   next activation by themselves, within join_period of its end; those that are back within TopicOptions::settle_time
//   get what was published to it meanwhile, others what is published after that.
// - A topic that was restarted after a failure, or whose end nobody is told of, since peers are not trusted
//   (RemoteOptions::untrusted), is joined again within rejoin_period + join_period, 4 s by default.
// - A publication that there is nobody for is a dead letter; so is, for the node concerned, what does not fit into
//   the queue of a slow node. PublishConfirmed tells how many nodes it was queued for.
//
// Messages that are published need a Codec that is among the system's (ActorSystemOptions::codecs), also if publisher
// and subscribers are on one node. Clusters of several processes add PubSubCodecs().
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_PUBSUB_PUBSUB_H_
#define FRAKTOR_CLUSTER_PUBSUB_PUBSUB_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/typed/typed_ref.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/pubsub/topic_delivery.h"
#include "fraktor/cluster/pubsub/topic_grain.h"
#include "fraktor/cluster/pubsub/topic_messages.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class PubSub;

// A topic with messages of type M.
template <class M>
class Topic {
 public:
  const std::string& name() const { return name_; }

  // Sends it to the topic. An error if it cannot be sent at all: its codec is not registered here (kNotRegistered), or it
  // is too large; what happens later is not told.
  absl::Status Publish(const M& message) const;
  // The same, and the future says when the topic has it, and for how many nodes. `asker` is the context of an actor, or
  // a system.
  template <class Asker>
  Future<Published> PublishConfirmed(Asker& asker, const M& message, absl::Duration timeout) const;

  // The future is ready when the subscriber will get whatever is published. It is one, however, as soon as this node has
  // heard of it, also if `timeout` passes.
  template <class Asker>
  Future<Subscribed> Subscribe(Asker& asker, TypedRef<M> subscriber, absl::Duration timeout) const;
  template <class Asker>
  Future<Unsubscribed> Unsubscribe(Asker& asker, TypedRef<M> subscriber, absl::Duration timeout) const;

  // The same for groups. An actor may be in several, and a subscriber as well.
  absl::Status PublishToGroups(const M& message) const;
  template <class Asker>
  Future<Published> PublishToGroupsConfirmed(Asker& asker, const M& message, absl::Duration timeout) const;
  template <class Asker>
  Future<Subscribed> SubscribeInGroup(Asker& asker, std::string_view group, TypedRef<M> subscriber,
                                      absl::Duration timeout) const;
  template <class Asker>
  Future<Unsubscribed> UnsubscribeFromGroup(Asker& asker, std::string_view group, TypedRef<M> subscriber,
                                            absl::Duration timeout) const;

 private:
  friend class PubSub;
  absl::Status Send(TopicAudience audience, const M& message) const;
  template <class Asker>
  Future<Published> SendConfirmed(Asker& asker, TopicAudience audience, const M& message, absl::Duration timeout) const;
  template <class Asker>
  Future<Subscribed> SubscribeIn(Asker& asker, TopicRoom room, TypedRef<M> subscriber, absl::Duration timeout) const;
  template <class Asker>
  Future<Unsubscribed> UnsubscribeIn(Asker& asker, TopicRoom room, TypedRef<M> subscriber,
                                     absl::Duration timeout) const;
  Topic(PubSub& pubsub, std::string_view name) : pubsub_(&pubsub), name_(name) {}

  PubSub* pubsub_;
  std::string name_;
};

struct SendOptions {
  // If this node has somebody at the path, it is one of those.
  bool prefers_local = true;
};
struct SendToAllOptions {
  // Not to those on this node.
  bool all_but_self = false;
};

class PubSub {
 public:
  // Once for each system. FailedPrecondition if it is no node of a cluster, InvalidArgument for options without sense.
  static absl::StatusOr<PubSub*> Start(ActorSystem& system, const PubSubOptions& options = {});
  // Null if it was not started.
  static PubSub* Of(ActorSystem& system);

  PubSub(const PubSub&) = delete;
  PubSub& operator=(const PubSub&) = delete;

  // Has the system's lifetime.
  template <class M>
  fraktor::Topic<M> Topic(std::string_view name) {
    return fraktor::Topic<M>(*this, name);
  }

  // Makes an actor of this system one that is reached by its path, until it ends; ready when it is from everywhere. The
  // answer names the path. InvalidArgument if it is no living actor of this system.
  template <class Asker>
  Future<Subscribed> Put(Asker& asker, ActorRef actor, absl::Duration timeout);
  template <class Asker>
  Future<Unsubscribed> Remove(Asker& asker, ActorRef actor, absl::Duration timeout);
  // To one of the actors that were put with the path, by chance, or to all. Errors as of Publish.
  template <class M>
  absl::Status Send(std::string_view path, const M& message, const SendOptions& options = {});
  template <class M>
  absl::Status SendToAll(std::string_view path, const M& message, const SendToAllOptions& options = {});

  ActorRef delivery() const { return delivery_; }

 private:
  template <class M>
  friend class fraktor::Topic;
  friend struct PubSubExtension;

  PubSub(ActorSystem& system, Cluster& cluster, const PubSubOptions& options)
      : system_(system), cluster_(cluster), options_(options) {}

  template <class M>
  absl::StatusOr<PublishToTopic> Encode(std::string_view topic, TopicAudience audience, const M& message) const {
    static_assert(Encodable<M>,
                  "what is published needs a fraktor::Codec, or is a protobuf message: see "
                  "fraktor/actor/serialization/codec.h");
    PublishToTopic publish{.publication = {.audience = audience}};
    PathRefs refs(system_);
    const absl::StatusOr<const MessageCodec*> codec =
        CodecsOf(system_).Encode(message, publish.publication.bytes, {.refs = &refs});
    if (!codec.ok()) return codec.status();
    publish.publication.manifest = std::string((*codec)->manifest());
    publish.publication.version = (*codec)->version();
    if (absl::Status checked = Check(topic, publish.publication); !checked.ok()) return checked;
    return publish;
  }
  absl::Status Check(std::string_view topic, const Publication& publication) const;
  // "/user/printer".
  absl::StatusOr<std::string> PathOf(ActorRef actor) const;

  ActorSystem& system_;
  Cluster& cluster_;
  const PubSubOptions options_;
  ActorRef delivery_ = {};
};

template <class M>
absl::Status Topic<M>::Send(TopicAudience audience, const M& message) const {
  absl::StatusOr<PublishToTopic> publish = pubsub_->Encode(name_, audience, message);
  if (!publish.ok()) return publish.status();
  pubsub_->cluster_.template Grain<TopicGrain>(name_).Tell(*std::move(publish));
  return absl::OkStatus();
}

template <class M>
template <class Asker>
Future<Published> Topic<M>::SendConfirmed(Asker& asker, TopicAudience audience, const M& message,
                                          absl::Duration timeout) const {
  absl::StatusOr<PublishToTopic> publish = pubsub_->Encode(name_, audience, message);
  if (!publish.ok()) return MakeReadyFuture<Published>(publish.status());
  publish->is_confirmed = true;
  return pubsub_->cluster_.template Grain<TopicGrain>(name_).Ask(asker, *std::move(publish), timeout);
}

template <class M>
template <class Asker>
Future<Subscribed> Topic<M>::SubscribeIn(Asker& asker, TopicRoom room, TypedRef<M> subscriber,
                                         absl::Duration timeout) const {
  if (absl::Status checked = GrainKey(TopicGrain::kGrainKind, name_).Check(); !checked.ok()) {
    return MakeReadyFuture<Subscribed>(std::move(checked));
  }
  return asker.template Ask<Subscribed>(
      pubsub_->delivery_, SubscribeToTopic{.topic = name_, .subscriber = subscriber.untyped(), .room = std::move(room)},
      timeout);
}

template <class M>
template <class Asker>
Future<Unsubscribed> Topic<M>::UnsubscribeIn(Asker& asker, TopicRoom room, TypedRef<M> subscriber,
                                             absl::Duration timeout) const {
  return asker.template Ask<Unsubscribed>(
      pubsub_->delivery_,
      UnsubscribeFromTopic{.topic = name_, .subscriber = subscriber.untyped(), .room = std::move(room)}, timeout);
}

template <class M>
absl::Status Topic<M>::Publish(const M& message) const {
  return Send(TopicAudience::kSubscribers, message);
}

template <class M>
absl::Status Topic<M>::PublishToGroups(const M& message) const {
  return Send(TopicAudience::kOneOfEachGroup, message);
}

template <class M>
template <class Asker>
Future<Published> Topic<M>::PublishConfirmed(Asker& asker, const M& message, absl::Duration timeout) const {
  return SendConfirmed(asker, TopicAudience::kSubscribers, message, timeout);
}

template <class M>
template <class Asker>
Future<Published> Topic<M>::PublishToGroupsConfirmed(Asker& asker, const M& message, absl::Duration timeout) const {
  return SendConfirmed(asker, TopicAudience::kOneOfEachGroup, message, timeout);
}

template <class M>
template <class Asker>
Future<Subscribed> Topic<M>::Subscribe(Asker& asker, TypedRef<M> subscriber, absl::Duration timeout) const {
  return SubscribeIn(asker, TopicRoom(), subscriber, timeout);
}

template <class M>
template <class Asker>
Future<Subscribed> Topic<M>::SubscribeInGroup(Asker& asker, std::string_view group, TypedRef<M> subscriber,
                                              absl::Duration timeout) const {
  return SubscribeIn(asker, {.kind = TopicRoomKind::kGroup, .group = std::string(group)}, subscriber, timeout);
}

template <class M>
template <class Asker>
Future<Unsubscribed> Topic<M>::Unsubscribe(Asker& asker, TypedRef<M> subscriber, absl::Duration timeout) const {
  return UnsubscribeIn(asker, TopicRoom(), subscriber, timeout);
}

template <class M>
template <class Asker>
Future<Unsubscribed> Topic<M>::UnsubscribeFromGroup(Asker& asker, std::string_view group, TypedRef<M> subscriber,
                                                    absl::Duration timeout) const {
  return UnsubscribeIn(asker, {.kind = TopicRoomKind::kGroup, .group = std::string(group)}, subscriber, timeout);
}

template <class Asker>
Future<Subscribed> PubSub::Put(Asker& asker, ActorRef actor, absl::Duration timeout) {
  absl::StatusOr<std::string> path = PathOf(actor);
  if (!path.ok()) return MakeReadyFuture<Subscribed>(path.status());
  return asker.template Ask<Subscribed>(
      delivery_,
      SubscribeToTopic{.topic = *std::move(path), .subscriber = actor, .room = {.kind = TopicRoomKind::kPath}},
      timeout);
}

template <class Asker>
Future<Unsubscribed> PubSub::Remove(Asker& asker, ActorRef actor, absl::Duration timeout) {
  absl::StatusOr<std::string> path = PathOf(actor);
  if (!path.ok()) return MakeReadyFuture<Unsubscribed>(path.status());
  return asker.template Ask<Unsubscribed>(
      delivery_,
      UnsubscribeFromTopic{.topic = *std::move(path), .subscriber = actor, .room = {.kind = TopicRoomKind::kPath}},
      timeout);
}

template <class M>
absl::Status PubSub::Send(std::string_view path, const M& message, const SendOptions& options) {
  absl::StatusOr<PublishToTopic> publish = Encode(path, TopicAudience::kOneAtPath, message);
  if (!publish.ok()) return publish.status();
  if (options.prefers_local) {
    Tell(delivery_, SendToPath{.path = std::string(path), .publication = std::move(publish->publication)});
  } else {
    cluster_.Grain<TopicGrain>(path).Tell(*std::move(publish));
  }
  return absl::OkStatus();
}

template <class M>
absl::Status PubSub::SendToAll(std::string_view path, const M& message, const SendToAllOptions& options) {
  absl::StatusOr<PublishToTopic> publish = Encode(path, TopicAudience::kAllAtPath, message);
  if (!publish.ok()) return publish.status();
  if (options.all_but_self) publish->publication.except = delivery_;
  cluster_.Grain<TopicGrain>(path).Tell(*std::move(publish));
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PUBSUB_PUBSUB_H_
