// What topics and the nodes that deliver for them send each other. See pubsub.h.
//
// Thread safety: values.
#ifndef FRAKTOR_CLUSTER_PUBSUB_TOPIC_MESSAGES_H_
#define FRAKTOR_CLUSTER_PUBSUB_TOPIC_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"

namespace fraktor::inline v0 {

// A message, as bytes: it is read once on each node that has subscribers.
struct Publication {
  std::string manifest = {};
  uint32_t version = 0;
  std::string bytes = {};
  // The actor that published it; no one if it was published from outside, or confirmed.
  ActorRef publisher = {};
};
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

// A node has subscribers. The answer is a TopicJoined.
struct JoinTopic {
  ActorRef delivery = {};
  // It was with an earlier activation of the topic already: it gets what has been published to this one.
  bool was_joined = false;
};
struct TopicJoined {
  std::string topic = {};
  ActorRef actor = {};
};
struct LeaveTopic {
  ActorRef delivery = {};
};

// To a node that has joined. The answer is a BatchDelivered with the same number.
struct TopicBatch {
  std::string topic = {};
  uint64_t number = 0;
  std::vector<PublicationPtr> publications = {};
};
struct BatchDelivered {
  uint64_t number = 0;
};

template <>
struct Codec<Publication> : FieldCodec<Publication, &Publication::manifest, &Publication::version, &Publication::bytes,
                                       &Publication::publisher> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.publication";
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
struct Codec<JoinTopic> : FieldCodec<JoinTopic, &JoinTopic::delivery, &JoinTopic::was_joined> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.join";
};
template <>
struct Codec<TopicJoined> : FieldCodec<TopicJoined, &TopicJoined::topic, &TopicJoined::actor> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.joined";
};
template <>
struct Codec<LeaveTopic> : FieldCodec<LeaveTopic, &LeaveTopic::delivery> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.leave";
};
template <>
struct Codec<TopicBatch> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.batch";
  static void Encode(const TopicBatch& batch, Encoder& out) {
    out.Value(batch.topic);
    out.Value(batch.number);
    out.Varint(batch.publications.size());
    for (const PublicationPtr& publication : batch.publications) out.Value(*publication);
  }
  static TopicBatch Decode(Decoder& in) {
    TopicBatch batch{.topic = in.Value<std::string>(), .number = in.Value<uint64_t>()};
    const size_t count = in.Count();
    for (size_t i = 0; i < count && in.ok(); ++i) {
      batch.publications.push_back(std::make_shared<const Publication>(in.Value<Publication>()));
    }
    return batch;
  }
};
template <>
struct Codec<BatchDelivered> : FieldCodec<BatchDelivered, &BatchDelivered::number> {
  static constexpr std::string_view kManifest = "fraktor.pubsub.delivered";
};

// For ActorSystemOptions::codecs of systems whose nodes are in several processes.
inline CodecSetup& AddPubSubCodecs(CodecSetup& setup) {
  return setup.Add<Published, PublishToTopic, JoinTopic, TopicJoined, LeaveTopic, TopicBatch, BatchDelivered>();
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PUBSUB_TOPIC_MESSAGES_H_
