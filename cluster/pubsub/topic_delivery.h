// TopicDelivery: the actor of a node that knows its subscribers, and gives them what topics send: /system/pubsub.
//
// While a topic has subscribers here, this node is one of the topic's: it joins, says in which groups it has somebody,
// each time that this changes, and acknowledges subscriptions when the topic knows. It watches the topic; when that
// ends, since its node has left or has died, it joins the next activation, at once and then each join_period until it
// has: which activates the topic anew. Nobody else drives that, and nobody else has to know.
//
// Topics that it has joined it joins again each rejoin_period. So one that was restarted, and has forgotten its nodes,
// or that has ended and nobody tells, since peers may not watch each other (RemoteOptions::untrusted), has this node
// again within rejoin_period + join_period.
//
// A restart after a failure loses no subscribers: what is known of them outlives the instance (Estate).
//
// Thread safety: an actor.
#ifndef FRAKTOR_CLUSTER_PUBSUB_TOPIC_DELIVERY_H_
#define FRAKTOR_CLUSTER_PUBSUB_TOPIC_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/pubsub/topic_messages.h"
#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {

struct PubSubOptions {
  // Topics with subscribers on this node, and subscribers of one of them; one more of either is refused with
  // ResourceExhausted.
  size_t max_topics = 100'000;
  size_t max_subscribers = 10'000;
  // Of one publication, as bytes; a larger one is refused with InvalidArgument. With what goes with it, it has to fit into a
  // frame to another node (WireLimits::max_frame_bytes, 256 KiB by default), or PubSub::Start refuses it. For larger ones
  // the large lane has room (2 MiB by default), on all nodes:
  //   RemoteOptions{.large_destinations = {"/system/grains", "/system/pubsub"}}
  size_t max_publication_bytes = size_t{240} << 10;
  // How often a topic is asked for that could not be joined.
  absl::Duration join_period = absl::Seconds(1);
  // How often a topic that is joined is joined again: a message there and one back for each topic. As long as this and
  // join_period are less than TopicOptions::settle_time, a topic that has forgotten this node keeps for it what is
  // published meanwhile.
  absl::Duration rejoin_period = absl::Seconds(3);
};

// From now on the subscriber gets what is published.
struct Subscribed {
  std::string topic = {};
};
struct SubscribeToTopic {
  using Reply = Subscribed;
  std::string topic = {};
  ActorRef subscriber = {};
  TopicRoom room = {};
};
// It gets nothing more from this node; what is in its mailbox stays.
struct Unsubscribed {
  std::string topic = {};
};
struct UnsubscribeFromTopic {
  using Reply = Unsubscribed;
  std::string topic = {};
  ActorRef subscriber = {};
  TopicRoom room = {};
};
// To one of the actors at a path: one of this node if there is one, otherwise as the topic chooses.
struct SendToPath {
  std::string path = {};
  Publication publication = {};
};

// The subscribers of one topic on one node. A test replaces ActorRef by a key that counts
// comparisons.
template <class Ref>
using RoomsOf = std::map<TopicRoom, IndexedSet<Ref>>;

// To itself.
struct JoinTopics {};
struct AnswersDue {};
struct SubscriberEnded {
  ActorRef subscriber;
  friend bool operator==(const SubscriberEnded&, const SubscriberEnded&) = default;
};
struct TopicEnded {
  std::string topic;
  ActorRef actor;
  friend bool operator==(const TopicEnded&, const TopicEnded&) = default;
};

class TopicDelivery final : public Actor<TopicDelivery, SubscribeToTopic, UnsubscribeFromTopic, SendToPath, TopicBatch,
                                         TopicJoined, TopicEnded, SubscriberEnded, JoinTopics, AnswersDue> {
 public:
  // What a life of it leaves to the next.
  struct Estate;
  static std::shared_ptr<Estate> MakeEstate();

  // The cluster outlives it. All lives of one have the same estate, which nobody else touches.
  TopicDelivery(Cluster* cluster, const PubSubOptions& options, std::shared_ptr<Estate> estate)
      : cluster_(cluster), options_(options), estate_(std::move(estate)) {}

  absl::Status PreStart(Context& context);
  Deferred<Subscribed> On(Context& context, const SubscribeToTopic& subscribe);
  Unsubscribed On(Context& context, const UnsubscribeFromTopic& unsubscribe);
  void On(Context& context, SendToPath&& send);
  void On(Context& context, const TopicBatch& batch);
  void On(Context& context, const TopicJoined& joined);
  void On(Context& context, const TopicEnded& ended);
  void On(Context& context, const SubscriberEnded& ended);
  void On(Context& context, const JoinTopics&);
  void On(Context& context, const AnswersDue&);
  // A topic could not be joined; the next JoinTopics tries again.
  void On(Context&, const ErrorReply& error) { why_not_joined_ = error.status; }

 private:
  // Who waits for a Subscribed until the topic knows of this.
  struct Waiting {
    ActorRef asker;
    uint64_t version = 0;
    // A little before the end of the question, so that who asks hears what is missing.
    Instant until = Instant::InfiniteFuture();
  };
  struct Topic {
    // None is empty.
    RoomsOf<ActorRef> rooms = {};
    size_t subscribers = 0;  // in all of them
    std::vector<Waiting> waiting = {};
    // No one while it is not joined.
    ActorRef actor = {};
    // Of the rooms, here and as the topic knows them.
    uint64_t version = 0;
    uint64_t known_version = 0;
    bool was_joined = false;
    Instant asked_at = Instant::InfinitePast();
  };
  using Topics = std::map<std::string, Topic, std::less<>>;

  void Join(Context& context, const std::string& name, Topic& topic) const;
  // And leaves the topic, if it was the last.
  void Remove(Context& context, Topics::iterator at, const TopicRoom& room, ActorRef subscriber);
  // By chance, if only one is to get it; empty if there is none any more.
  std::vector<ActorRef> RecipientsOf(const Topic& topic, const TopicParcel& parcel);
  void WarnOfNoHosts(Context& context);
  // Sees to it that who waits until then is answered.
  void SetAnswersDue(Context& context, Instant at);
  // Why a topic is not joined.
  absl::Status WhyNotJoined(const std::string& name) const;
  void Deliver(Context& context, const std::vector<ActorRef>& recipients, const Publication& publication) const;
  void Drop(Context& context, const Publication& publication, DeadLetterReason reason) const;

  Cluster* const cluster_;
  const PubSubOptions options_;
  const std::shared_ptr<Estate> estate_;
  bool is_untrusted_ = false;
  std::optional<Random> random_ = {};
  Instant warned_at_ = Instant::InfinitePast();
  Instant answers_due_at_ = Instant::InfiniteFuture();
  // The last error of a topic that was to be joined.
  absl::Status why_not_joined_ = absl::OkStatus();
};

// Watches outlive a restart by themselves.
struct TopicDelivery::Estate {
  Topics topics = {};
  // The rooms that a subscriber is in, with the names of their topics, which are keys of `topics`.
  absl::flat_hash_map<ActorRef, std::set<std::pair<std::string_view, TopicRoom>>> subscriptions = {};
  // Topics remember it: it does not begin anew.
  uint64_t last_version = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PUBSUB_TOPIC_DELIVERY_H_
