// TopicGrain: a topic. Knows which nodes have subscribers, and in which groups, and sends each of them what is published,
// in batches. Of what goes to one of a group, one of the nodes that have somebody in the group gets it, by chance.
//
//   ClusterOptions options{.kinds = {TopicKind()}};
//
// For each node there is a queue and at most one batch under way: what is published meanwhile goes with the next. So
// batches are as large as they need to be, and a slow node holds up nobody else. What does not fit into its queue is
// dropped for that node, as a dead letter on the topic's node.
//
// A batch that does not leave its node comes back: it is sent again in smaller ones if it was too large for a frame, and a
// while later otherwise.
//
// It knows its nodes only as long as it lives, and forgets them when it is restarted. They see it end and join the next
// activation, and join again now and then in any case (TopicDelivery drives that): so for a while after it was
// activated or restarted it keeps what is published, for those that come back.
//
// A topic that no node has joined for a while ends.
//
// Thread safety: an actor.
#ifndef FRAKTOR_CLUSTER_PUBSUB_TOPIC_GRAIN_H_
#define FRAKTOR_CLUSTER_PUBSUB_TOPIC_GRAIN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/pubsub/topic_messages.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {

struct TopicOptions {
  // Of one batch; one publication is sent in any case. Never more bytes than a frame to another node has room for.
  size_t max_batch = 500;
  size_t max_batch_bytes = 224 << 10;
  // What waits for one node; more is dropped for it.
  size_t max_queued = 10'000;
  size_t max_queued_bytes = size_t{16} << 20;
  // Nodes with subscribers; one more is refused with ResourceExhausted.
  size_t max_members = 10'000;
  // A batch that is not answered for so long counts as lost.
  absl::Duration delivery_timeout = absl::Seconds(5);
  // After its activation a topic keeps publications for nodes that come back for so long, max_queued of them.
  absl::Duration settle_time = absl::Seconds(5);
  // A topic without nodes ends after so long.
  absl::Duration empty_time = absl::Seconds(60);
  // How often it looks at these.
  absl::Duration tick_period = absl::Seconds(1);
};

// To itself.
struct FlushTopic {};
struct TickTopic {};
// A batch has not left this node.
struct BatchLost {
  uint64_t number = 0;
  DeadLetterReason reason = DeadLetterReason::kNotSerializable;
  std::vector<TopicParcel> parcels = {};
};
struct TopicMemberEnded {
  ActorRef delivery;
  friend bool operator==(const TopicMemberEnded&, const TopicMemberEnded&) = default;
};

class TopicGrain final : public Actor<TopicGrain, PublishToTopic, JoinTopic, LeaveTopic, BatchDelivered, BatchLost,
                                      FlushTopic, TickTopic, TopicMemberEnded> {
 public:
  static constexpr std::string_view kGrainKind = "fraktor.topic";

  TopicGrain(const GrainContext& grain, const TopicOptions& options) : key_(grain.key), options_(options) {}

  absl::Status PreStart(Context& context);
  void PostStop(Context& context);
  // Replies only if the publisher wants it.
  Deferred<Published> On(Context& context, PublishToTopic&& publish);
  absl::StatusOr<TopicJoined> On(Context& context, const JoinTopic& join);
  void On(Context& context, const LeaveTopic& leave);
  void On(Context& context, const BatchDelivered& delivered);
  void On(Context& context, BatchLost&& lost);
  void On(Context& context, const FlushTopic&);
  void On(Context& context, const TickTopic&);
  void On(Context& context, const TopicMemberEnded& ended);

 private:
  struct Member {
    ActorRef delivery = {};
    std::vector<TopicRoom> rooms = {};
    uint64_t version = 0;
    std::deque<TopicParcel> queue = {};
    size_t queued_bytes = 0;
    // The batch under way; 0 if there is none.
    uint64_t batch = 0;
    Instant sent_at = {};
    // Not more at once, after one of more was too large for a frame.
    size_t max_batch = std::numeric_limits<size_t>::max();
    // Nothing could leave; it is tried again then.
    Instant resume_at = Instant::InfinitePast();
  };
  struct Kept {
    PublicationPtr publication;
    bool has_reached_somebody = false;
    // Of kOneOfEachGroup: those that it was queued for.
    std::set<std::string> groups = {};
  };
  struct Chosen {
    size_t member = 0;  // an index into members_
    std::vector<std::string> groups = {};
  };

  Member* Find(ActorRef delivery);
  static bool IsIn(const Member& member, TopicRoomKind kind);
  // Those that get it.
  std::vector<Chosen> Choose(const Publication& publication);
  // What a node that comes back gets of a publication that was kept; nothing if it is not for it.
  static std::optional<TopicParcel> ForOneThatIsBack(const Kept& kept, const Member& member);
  // False if there is no space.
  bool Queue(Member& member, TopicParcel parcel) const;
  void SendBatch(Context& context, Member& member);
  void EndSettling(Context& context);
  void Drop(Context& context, const Publication& publication, DeadLetterReason reason) const;

  const GrainKey key_;
  const TopicOptions options_;
  // Of a batch with all that goes with it, if it goes to another node.
  size_t max_frame_bytes_ = std::numeric_limits<size_t>::max();
  std::vector<Member> members_ = {};  // in the order in which they joined
  uint64_t last_batch_ = 0;
  bool is_flushing_ = false;
  bool is_settling_ = true;
  Instant settled_at_ = {};
  std::deque<Kept> kept_ = {};
  size_t kept_bytes_ = 0;
  Instant used_at_ = {};  // when there was a node last
  std::optional<Random> random_ = {};
};

// For ClusterOptions::kinds, of the nodes that may run topics. The options are the same everywhere.
GrainKind TopicKind(const TopicOptions& options = {});

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PUBSUB_TOPIC_GRAIN_H_
