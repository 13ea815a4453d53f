// TopicDelivery: the actor of a node that knows its subscribers, and gives them what topics send: /system/pubsub.
//
// While a topic has subscribers here, this node is one of the topic's: it joins, and acknowledges subscriptions when it
// has. It watches the topic; when that ends, since its node has left or has died, it joins the next activation, at once
// and then each join_period until it has: which activates the topic anew. Nobody else drives that, and nobody else has
// to know.
//
// Thread safety: an actor.
#ifndef FRAKTOR_CLUSTER_PUBSUB_TOPIC_DELIVERY_H_
#define FRAKTOR_CLUSTER_PUBSUB_TOPIC_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/pubsub/topic_messages.h"

namespace fraktor::inline v0 {

struct PubSubOptions {
  // Topics with subscribers on this node, and subscribers of one of them; one more of either is refused with
  // ResourceExhausted.
  size_t max_topics = 100'000;
  size_t max_subscribers = 10'000;
  // Of one publication, as bytes; a larger one is refused with InvalidArgument.
  size_t max_publication_bytes = size_t{1} << 20;
  // How often a topic is asked for that could not be joined.
  absl::Duration join_period = absl::Seconds(1);
};

// From now on the subscriber gets what is published.
struct Subscribed {
  std::string topic = {};
};
struct SubscribeToTopic {
  using Reply = Subscribed;
  std::string topic = {};
  ActorRef subscriber = {};
};
// It gets nothing more from this node; what is in its mailbox stays.
struct Unsubscribed {
  std::string topic = {};
};
struct UnsubscribeFromTopic {
  using Reply = Unsubscribed;
  std::string topic = {};
  ActorRef subscriber = {};
};

// To itself.
struct JoinTopics {};
struct SubscriberEnded {
  ActorRef subscriber;
  friend bool operator==(const SubscriberEnded&, const SubscriberEnded&) = default;
};
struct TopicEnded {
  std::string topic;
  ActorRef actor;
  friend bool operator==(const TopicEnded&, const TopicEnded&) = default;
};

class TopicDelivery final : public Actor<TopicDelivery, SubscribeToTopic, UnsubscribeFromTopic, TopicBatch, TopicJoined,
                                         TopicEnded, SubscriberEnded, JoinTopics> {
 public:
  // The cluster outlives it.
  TopicDelivery(Cluster* cluster, const PubSubOptions& options) : cluster_(cluster), options_(options) {}

  absl::Status PreStart(Context& context);
  absl::Status On(Context& context, const SubscribeToTopic& subscribe);
  Unsubscribed On(Context& context, const UnsubscribeFromTopic& unsubscribe);
  void On(Context& context, const TopicBatch& batch);
  void On(Context& context, const TopicJoined& joined);
  void On(Context& context, const TopicEnded& ended);
  void On(Context& context, const SubscriberEnded& ended);
  void On(Context& context, const JoinTopics&);
  // A topic could not be joined; the next JoinTopics tries again.
  void On(Context&, const ErrorReply&) {}

 private:
  struct Topic {
    std::vector<ActorRef> subscribers = {};
    // Who wait for a Subscribed until it is joined.
    std::vector<ActorRef> waiting = {};
    // No one while it is not joined.
    ActorRef actor = {};
    bool was_joined = false;
  };
  using Topics = std::map<std::string, Topic, std::less<>>;

  void Join(Context& context, const std::string& name, const Topic& topic) const;
  // And leaves the topic, if it was the last.
  void Remove(Context& context, Topics::iterator at, ActorRef subscriber);
  void Deliver(Context& context, const Topic& topic, const Publication& publication) const;

  Cluster* const cluster_;
  const PubSubOptions options_;
  Topics topics_ = {};
  // Of how many topics somebody is a subscriber.
  absl::flat_hash_map<ActorRef, size_t> subscriptions_ = {};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PUBSUB_TOPIC_DELIVERY_H_
