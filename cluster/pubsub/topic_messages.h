// What topics and the nodes that deliver for them send each other. See pubsub.h.
//
// Each speaks for itself: a JoinTopic, LeaveTopic or TopicJoined that names another actor than its sender is dropped.
//
//   CodecSetup codecs;
//   codecs.Add<News>().Add(ClusterCodecs()).Add(PubSubCodecs());             // on every node
//   options.codecs = codecs.Build().value();
//
// Thread safety: values.
#ifndef FRAKTOR_CLUSTER_PUBSUB_TOPIC_MESSAGES_H_
#define FRAKTOR_CLUSTER_PUBSUB_TOPIC_MESSAGES_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"

namespace fraktor::inline v0 {

// Who of those that a topic has gets a publication. The numbers are sent.
enum class TopicAudience : uint32_t {
  // Those that have subscribed without a group.
  kSubscribers = 0,
  // One of each group.
  kOneOfEachGroup = 1,
  // One, or all, of the actors that were put at the path which is the name of the topic.
  kOneAtPath = 2,
  kAllAtPath = 3,
};

// Those of a topic who get the same.
enum class TopicRoomKind : uint32_t { kSubscribers = 0, kGroup = 1, kPath = 2 };
struct TopicRoom {
  TopicRoomKind kind = TopicRoomKind::kSubscribers;
  std::string group = {};  // of kGroup
  friend auto operator<=>(const TopicRoom&, const TopicRoom&) = default;
};

// A message, as bytes: it is read once on each node that has subscribers.
struct Publication {
  std::string manifest = {};
  uint32_t version = 0;
  std::string bytes = {};
  // The actor that published it; no one if it was published from outside, or confirmed.
  ActorRef publisher = {};
  TopicAudience audience = TopicAudience::kSubscribers;
  // The node that does not get it (its TopicDelivery); no one: all may.
  ActorRef except = {};
};
// So much a message to another node takes beside the publications in it: names, references, the frame.
inline constexpr size_t kPubSubFrameRoom = size_t{8} << 10;

using PublicationPtr = std::shared_ptr<const Publication>;

// The topic has a publication, and has queued it for these.
struct Published {
  // Nodes with subscribers that will get it, and those for which there was no room (TopicOptions::max_queued).
  uint32_t members = 0;
  uint32_t dropped = 0;
};

struct PublishToTopic {
  using Reply = Published;
  Publication publication = {};
  // Whether the sender wants a Published.
  bool is_confirmed = false;
};

// A node has somebody in these rooms, at least one, and in no others. The answer is a TopicJoined with the same version.
struct JoinTopic {
  ActorRef delivery = {};
  std::vector<TopicRoom> rooms = {};
  // Grows whenever a node says something else, and for all topics; what is older than what is known does not count.
  uint64_t version = 0;
  // It was with an earlier activation of the topic already: it gets what has been published to this one.
  bool was_joined = false;
};
struct TopicJoined {
  std::string topic = {};
  ActorRef actor = {};
  uint64_t version = 0;
};
struct LeaveTopic {
  ActorRef delivery = {};
  uint64_t version = 0;
};

// What a node gets of a publication.
struct TopicParcel {
  PublicationPtr publication;
  // Of kOneOfEachGroup: those that are served by this node.
  std::vector<std::string> groups = {};
};

// To a node that has joined. The answer is a BatchDelivered with the same number.
struct TopicBatch {
  std::string topic = {};
  uint64_t number = 0;
  std::vector<TopicParcel> parcels = {};
  // Not sent: the topic, which gets the batch back if it does not leave its node.
  ActorRef from = {};
};
struct BatchDelivered {
  uint64_t number = 0;
};

template <>
struct Codec<Publication> : FieldCodec<Publication, &Publication::manifest, &Publication::version, &Publication::bytes,
                                       &Publication::publisher, &Publication::audience, &Publication::except> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.publication";
};
template <>
struct Codec<TopicRoom> : FieldCodec<TopicRoom, &TopicRoom::kind, &TopicRoom::group> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.room";
};
template <>
struct Codec<Published> : FieldCodec<Published, &Published::members, &Published::dropped> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.published";
};
template <>
struct Codec<PublishToTopic> : FieldCodec<PublishToTopic, &PublishToTopic::publication, &PublishToTopic::is_confirmed> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.publish";
};
template <>
struct Codec<JoinTopic>
    : FieldCodec<JoinTopic, &JoinTopic::delivery, &JoinTopic::rooms, &JoinTopic::version, &JoinTopic::was_joined> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.join";
};
template <>
struct Codec<TopicJoined> : FieldCodec<TopicJoined, &TopicJoined::topic, &TopicJoined::actor, &TopicJoined::version> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.joined";
};
template <>
struct Codec<LeaveTopic> : FieldCodec<LeaveTopic, &LeaveTopic::delivery, &LeaveTopic::version> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.leave";
};
template <>
struct Codec<TopicBatch> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.batch";
  static void Encode(const TopicBatch& batch, Encoder& out) {
    out.Value(batch.topic);
    out.Value(batch.number);
    out.Varint(batch.parcels.size());
    for (const TopicParcel& parcel : batch.parcels) {
      out.Value(*parcel.publication);
      out.Value(parcel.groups);
    }
  }
  static TopicBatch Decode(Decoder& in) {
    TopicBatch batch{.topic = in.Value<std::string>(), .number = in.Value<uint64_t>()};
    const size_t count = in.Count();
    for (size_t i = 0; i < count && in.ok(); ++i) {
      auto publication = std::make_shared<const Publication>(in.Value<Publication>());
      batch.parcels.push_back({.publication = std::move(publication), .groups = in.Value<std::vector<std::string>>()});
    }
    return batch;
  }
};
template <>
struct Codec<BatchDelivered> : FieldCodec<BatchDelivered, &BatchDelivered::number> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.delivered";
};

// For ActorSystemOptions::codecs of systems whose nodes are in several processes.
inline CodecSetup PubSubCodecs() {
  CodecSetup codecs;
  codecs.Add<Published, PublishToTopic, JoinTopic, TopicJoined, LeaveTopic, TopicBatch, BatchDelivered>();
  return codecs;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PUBSUB_TOPIC_MESSAGES_H_
