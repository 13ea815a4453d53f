#include "fraktor/cluster/pubsub/topic_grain.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/undelivered_message.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/remote_provider.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/pubsub/forged_message.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::RemoteProvider;

namespace {

// What its random numbers are for; see RuntimeToolbox::MakeRandom.
constexpr uint64_t kTopicStream = 0x746f706963;

// What names and references of one take in a frame, more or less.
constexpr size_t kParcelBytes = 128;

size_t SizeOf(const Publication& publication) { return publication.manifest.size() + publication.bytes.size(); }

size_t SizeInFrame(const TopicParcel& parcel) {
  size_t bytes = SizeOf(*parcel.publication) + kParcelBytes;
  for (const std::string& group : parcel.groups) bytes += group.size() + 4;
  return bytes;
}

// Gives topics of a system the batches back that have not left it. One for all of them.
struct TopicLosses {
  explicit TopicLosses(ActorSystem& system)
      : listening(system.events().Listen<UndeliveredMessage>([](const UndeliveredMessage& lost) {
          const MessageView& message = lost.letter.message;
          if (message.type != MessageTypeOf<TopicBatch>()) return;
          const auto& batch = *static_cast<const TopicBatch*>(message.message);
          if (batch.from.IsNoOne()) return;
          Tell(batch.from, BatchLost{.number = batch.number, .reason = lost.letter.reason, .parcels = batch.parcels});
          lost.TakeBack();
        })) {}
  const EventSubscription listening;
};

absl::Status Check(const TopicOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"TopicOptions::max_batch", options.max_batch},
                                       {"TopicOptions::max_batch_bytes", options.max_batch_bytes},
                                       {"TopicOptions::max_queued", options.max_queued},
                                       {"TopicOptions::max_queued_bytes", options.max_queued_bytes},
                                       {"TopicOptions::max_members", options.max_members}}));
  return CheckPositive({{"TopicOptions::delivery_timeout", options.delivery_timeout},
                        {"TopicOptions::empty_time", options.empty_time},
                        {"TopicOptions::tick_period", options.tick_period}});
}

}  // namespace

GrainKind TopicKind(const TopicOptions& options) {
  return GrainKind{
      .name = std::string(TopicGrain::kGrainKind),
      .make =
          [options](const GrainContext& grain) { return MakeTypedProps<TopicGrain>(PropsOptions(), grain, options); },
      .filters = {},
      .is_kept = true};
}

absl::Status TopicGrain::PreStart(Context& context) {
  FRAKTOR_RETURN_IF_ERROR(Check(options_));
  if (const RemoteProvider* const remote = context.system().remote_provider()) {
    context.system().Extension<TopicLosses>();
    const size_t frame = remote->MaxMessageBytes("/system/pubsub");
    max_frame_bytes_ = frame > kPubSubFrameRoom ? frame - kPubSubFrameRoom : 1;
  }
  used_at_ = context.system().toolbox().Now();
  settled_at_ = used_at_ + options_.settle_time;
  random_ = context.system().toolbox().MakeRandom(kTopicStream ^ key_.hash());
  return Timers(context).StartFixedDelay("tick", TickTopic{}, {.period = options_.tick_period});
}

void TopicGrain::PostStop(Context& context) {
  // What it was given before it was told to end is still delivered, whatever is under way.
  for (Member& member : members_) {
    while (!member.queue.empty()) {
      member.batch = 0;
      member.resume_at = Instant::InfinitePast();
      SendBatch(context, member);
    }
  }
  EndSettling(context);
}

Deferred<Published> TopicGrain::On(Context& context, PublishToTopic&& publish) {
  const ReplyTo<Published> reply_to(context);
  if (!publish.is_confirmed) publish.publication.publisher = context.sender();
  const auto publication = std::make_shared<const Publication>(std::move(publish.publication));
  Published published;
  std::set<std::string> groups;
  for (const Chosen& chosen : Choose(*publication)) {
    if (Queue(members_[chosen.member], {.publication = publication, .groups = chosen.groups})) {
      ++published.members;
      groups.insert(chosen.groups.begin(), chosen.groups.end());
    } else {
      ++published.dropped;
      Drop(context, *publication, DeadLetterReason::kMailboxFull);
    }
  }
  const size_t bytes = SizeOf(*publication);
  const bool is_kept =
      is_settling_ && kept_.size() < options_.max_queued && kept_bytes_ + bytes <= options_.max_queued_bytes;
  if (is_kept) {
    kept_.push_back({.publication = publication,
                     .has_reached_somebody = published.members + published.dropped > 0,
                     .groups = std::move(groups)});
    kept_bytes_ += bytes;
  } else if (published.members + published.dropped == 0) {
    Drop(context, *publication, DeadLetterReason::kNoRecipient);
  }
  if (publish.is_confirmed) reply_to.Reply(published);
  // Behind what is in the mailbox already: all of that goes in one batch.
  if (published.members > 0 && !std::exchange(is_flushing_, true)) context.Tell(context.self(), FlushTopic{});
  return reply_to;
}

bool TopicGrain::IsIn(const Member& member, TopicRoomKind kind) {
  return std::any_of(member.rooms.begin(), member.rooms.end(),
                     [kind](const TopicRoom& room) { return room.kind == kind; });
}

std::vector<TopicGrain::Chosen> TopicGrain::Choose(const Publication& publication) {
  std::vector<Chosen> chosen;
  const auto all_in = [&](TopicRoomKind kind) {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (IsIn(members_[i], kind) && members_[i].delivery != publication.except) chosen.push_back({.member = i});
    }
  };
  switch (publication.audience) {
    case TopicAudience::kSubscribers:
      all_in(TopicRoomKind::kSubscribers);
      break;
    case TopicAudience::kAllAtPath:
      all_in(TopicRoomKind::kPath);
      break;
    case TopicAudience::kOneAtPath:
      all_in(TopicRoomKind::kPath);
      if (chosen.size() > 1) chosen = {chosen[random_->Uniform(chosen.size())]};
      break;
    case TopicAudience::kOneOfEachGroup: {
      std::map<std::string, std::vector<size_t>> groups;
      for (size_t i = 0; i < members_.size(); ++i) {
        for (const TopicRoom& room : members_[i].rooms) {
          if (room.kind == TopicRoomKind::kGroup) groups[room.group].push_back(i);
        }
      }
      std::map<size_t, std::vector<std::string>> served;
      for (const auto& [group, members] : groups) served[members[random_->Uniform(members.size())]].push_back(group);
      for (auto& [member, names] : served) chosen.push_back({.member = member, .groups = std::move(names)});
      break;
    }
  }
  return chosen;
}

std::optional<TopicParcel> TopicGrain::ForOneThatIsBack(const Kept& kept, const Member& member) {
  const Publication& publication = *kept.publication;
  TopicParcel parcel{.publication = kept.publication};
  bool is_for_it = false;
  switch (publication.audience) {
    case TopicAudience::kSubscribers:
      is_for_it = IsIn(member, TopicRoomKind::kSubscribers);
      break;
    case TopicAudience::kAllAtPath:
      is_for_it = IsIn(member, TopicRoomKind::kPath) && member.delivery != publication.except;
      break;
    case TopicAudience::kOneAtPath:
      is_for_it = IsIn(member, TopicRoomKind::kPath) && !kept.has_reached_somebody;
      break;
    case TopicAudience::kOneOfEachGroup:
      for (const TopicRoom& room : member.rooms) {
        if (room.kind == TopicRoomKind::kGroup && !kept.groups.contains(room.group))
          parcel.groups.push_back(room.group);
      }
      is_for_it = !parcel.groups.empty();
      break;
  }
  return is_for_it ? std::optional(std::move(parcel)) : std::nullopt;
}

absl::StatusOr<TopicJoined> TopicGrain::On(Context& context, const JoinTopic& join) {
  if (context.sender() != join.delivery) {
    return absl::PermissionDeniedError(absl::StrCat("topic \"", key_.identity(),
                                                    "\" is joined by nodes themselves: ", context.PathOf(join.delivery),
                                                    " was named, and has not sent this"));
  }
  TopicJoined joined{.topic = key_.identity(), .actor = context.self().untyped(), .version = join.version};
  if (Member* const known = Find(join.delivery)) {
    if (join.version > known->version) {
      known->version = join.version;
      known->rooms = join.rooms;
    }
    return joined;
  }
  if (members_.size() >= options_.max_members) {
    return absl::ResourceExhaustedError(absl::StrCat("topic \"", key_.identity(), "\" has ", members_.size(),
                                                     " nodes with subscribers already (TopicOptions::max_members)"));
  }
  FRAKTOR_RETURN_IF_ERROR(context.WatchWith(join.delivery, TopicMemberEnded{join.delivery}));
  members_.push_back(Member{.delivery = join.delivery, .rooms = join.rooms, .version = join.version});
  if (join.was_joined && is_settling_) {
    for (Kept& kept : kept_) {
      std::optional<TopicParcel> parcel = ForOneThatIsBack(kept, members_.back());
      if (!parcel.has_value()) continue;
      std::vector<std::string> groups = parcel->groups;
      if (!Queue(members_.back(), *std::move(parcel))) continue;
      kept.has_reached_somebody = true;
      kept.groups.insert(groups.begin(), groups.end());
    }
    if (!std::exchange(is_flushing_, true)) context.Tell(context.self(), FlushTopic{});
  }
  return joined;
}

void TopicGrain::On(Context& context, const LeaveTopic& leave) {
  if (context.sender() != leave.delivery) {
    DropForged(context, leave);
    return;
  }
  // It may have come back meanwhile.
  if (const Member* const member = Find(leave.delivery); member == nullptr || leave.version < member->version) return;
  context.Unwatch(leave.delivery);
  On(context, TopicMemberEnded{leave.delivery});
}

void TopicGrain::On(Context& context, const TopicMemberEnded& ended) {
  Member* const member = Find(ended.delivery);
  if (member == nullptr) return;
  used_at_ = context.system().toolbox().Now();
  members_.erase(members_.begin() + (member - members_.data()));
}

void TopicGrain::On(Context& context, const BatchDelivered& delivered) {
  for (Member& member : members_) {
    if (member.batch != delivered.number || member.delivery != context.sender()) continue;
    member.batch = 0;
    if (member.max_batch < options_.max_batch) member.max_batch *= 2;
    SendBatch(context, member);
    return;
  }
}

void TopicGrain::On(Context& context, BatchLost&& lost) {
  const auto member =
      std::find_if(members_.begin(), members_.end(), [&](const Member& each) { return each.batch == lost.number; });
  const bool is_too_large = lost.reason == DeadLetterReason::kNotSerializable;
  if (member == members_.end() || (is_too_large && lost.parcels.size() == 1)) {
    for (const TopicParcel& parcel : lost.parcels) Drop(context, *parcel.publication, lost.reason);
    if (member == members_.end()) return;
    lost.parcels.clear();
  }
  member->batch = 0;
  if (is_too_large) {
    member->max_batch = std::max<size_t>(1, lost.parcels.size() / 2);
  } else {
    member->resume_at = context.system().toolbox().Now() + options_.tick_period;
  }
  for (auto parcel = lost.parcels.rbegin(); parcel != lost.parcels.rend(); ++parcel) {
    member->queued_bytes += SizeOf(*parcel->publication);
    member->queue.push_front(std::move(*parcel));
  }
  SendBatch(context, *member);
}

void TopicGrain::On(Context& context, const FlushTopic&) {
  is_flushing_ = false;
  for (Member& member : members_) SendBatch(context, member);
}

void TopicGrain::On(Context& context, const TickTopic&) {
  const Instant now = context.system().toolbox().Now();
  for (Member& member : members_) {
    if (member.batch != 0 && now - member.sent_at < options_.delivery_timeout) continue;
    member.batch = 0;
    SendBatch(context, member);
  }
  if (is_settling_ && now >= settled_at_) EndSettling(context);
  if (!members_.empty()) {
    used_at_ = now;
  } else if (!is_settling_ && now - used_at_ >= options_.empty_time) {
    Cluster::Of(context.system())->Passivate(key_);
  }
}

TopicGrain::Member* TopicGrain::Find(ActorRef delivery) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [delivery](const Member& member) { return member.delivery == delivery; });
  return found == members_.end() ? nullptr : &*found;
}

bool TopicGrain::Queue(Member& member, TopicParcel parcel) const {
  const size_t bytes = SizeOf(*parcel.publication);
  if (member.queue.size() >= options_.max_queued || member.queued_bytes + bytes > options_.max_queued_bytes) {
    return false;
  }
  member.queued_bytes += bytes;
  member.queue.push_back(std::move(parcel));
  return true;
}

void TopicGrain::SendBatch(Context& context, Member& member) {
  const Instant now = context.system().toolbox().Now();
  if (member.batch != 0 || member.queue.empty() || now < member.resume_at) return;
  TopicBatch batch{.topic = key_.identity(), .number = ++last_batch_, .from = context.self().untyped()};
  size_t batch_bytes = 0;
  size_t frame_bytes = 0;
  const size_t most = std::min(options_.max_batch, member.max_batch);
  while (!member.queue.empty() && batch.parcels.size() < most) {
    const size_t bytes = SizeOf(*member.queue.front().publication);
    const size_t in_frame = SizeInFrame(member.queue.front());
    if (!batch.parcels.empty() &&
        (batch_bytes + bytes > options_.max_batch_bytes || frame_bytes + in_frame > max_frame_bytes_)) {
      break;
    }
    batch_bytes += bytes;
    frame_bytes += in_frame;
    batch.parcels.push_back(std::move(member.queue.front()));
    member.queue.pop_front();
  }
  member.queued_bytes -= batch_bytes;
  member.batch = batch.number;
  member.sent_at = now;
  context.Tell(member.delivery, std::move(batch));
}

void TopicGrain::EndSettling(Context& context) {
  is_settling_ = false;
  for (const Kept& kept : std::exchange(kept_, {})) {
    if (!kept.has_reached_somebody) Drop(context, *kept.publication, DeadLetterReason::kNoRecipient);
  }
  kept_bytes_ = 0;
}

void TopicGrain::Drop(Context& context, const Publication& publication, DeadLetterReason reason) const {
  const std::string sender = publication.publisher.IsNoOne() ? std::string() : context.PathOf(publication.publisher);
  const std::string recipient = absl::StrCat("topic ", key_.identity());
  ActorSystem& system = context.system();
  system.dead_letters().Publish(DeadLetter{{.reason = reason,
                                            .sender = sender,
                                            .recipient = recipient,
                                            .message = {.type_name = publication.manifest,
                                                        .type = MessageTypeOf<Publication>(),
                                                        .message = &publication}}},
                                system.toolbox().Now());
}

}  // namespace fraktor::inline v0
