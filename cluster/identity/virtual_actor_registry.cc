#include "fraktor/cluster/identity/virtual_actor_registry.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

std::string_view VirtualActorEventName(VirtualActorEvent::Kind kind) {
  switch (kind) {
    case VirtualActorEvent::Kind::kActivated:
      return "activated";
    case VirtualActorEvent::Kind::kReactivated:
      return "reactivated";
    case VirtualActorEvent::Kind::kPassivated:
      return "passivated";
    case VirtualActorEvent::Kind::kEnded:
      return "ended";
  }
  return "unknown";
}

void VirtualActorRegistry::Add(PlacementResolutionPtr resolution, const AddOptions& options, Instant now) {
  const GrainKey& key = resolution->decision.key;
  const Instant kept_until = options.is_kept ? Instant::InfiniteFuture() : Instant::InfinitePast();
  const Check check{.at = std::max(now + idle_ttl_, kept_until), .number = next_number_++};
  Record(options.replaces_another ? VirtualActorEvent::Kind::kReactivated : VirtualActorEvent::Kind::kActivated,
         *resolution, now);
  // Mostly the last: what was added before is looked at before.
  checks_.emplace_hint(checks_.end(), check, key);
  VirtualActor actor{.resolution = nullptr, .last_used = now, .kept_until = kept_until, .check = check};
  VirtualActor& added = actors_.insert_or_assign(key, std::move(actor)).first->second;
  added.resolution = std::move(resolution);
}

bool VirtualActorRegistry::Keep(const GrainKey& key, Instant until) {
  const auto found = actors_.find(key);
  if (found == actors_.end()) return false;
  VirtualActor& actor = found->second;
  actor.kept_until = until;
  auto node = checks_.extract(actor.check);
  actor.check = Check{.at = std::max(actor.last_used + idle_ttl_, until), .number = next_number_++};
  node.key() = actor.check;
  checks_.insert(std::move(node));
  return true;
}

bool VirtualActorRegistry::Remove(const GrainKey& key, VirtualActorEvent::Kind why, Instant now) {
  const auto found = actors_.find(key);
  if (found == actors_.end()) return false;
  Record(why, *found->second.resolution, now);
  checks_.erase(found->second.check);
  actors_.erase(found);
  return true;
}

std::vector<GrainKey> VirtualActorRegistry::TakeIdle(Instant now, size_t limit) {
  std::vector<GrainKey> idle;
  while (idle.size() < limit && !checks_.empty() && checks_.begin()->first.at <= now) {
    auto node = checks_.extract(checks_.begin());
    VirtualActor& actor = actors_.find(node.mapped())->second;
    const Instant idle_at = std::max(actor.last_used + idle_ttl_, actor.kept_until);
    const bool is_idle = idle_at <= now;
    if (is_idle) idle.push_back(node.mapped());
    // An idle one gets a further round, in case that it cannot be stopped now.
    actor.check = Check{.at = is_idle ? now + idle_ttl_ : idle_at, .number = next_number_++};
    node.key() = actor.check;
    checks_.insert(std::move(node));
  }
  return idle;
}

std::vector<GrainKey> VirtualActorRegistry::Keys() const {
  std::vector<GrainKey> keys;
  keys.reserve(checks_.size());
  for (const auto& [check, key] : checks_) keys.push_back(key);
  return keys;
}

std::vector<VirtualActorEvent> VirtualActorRegistry::DrainEvents() { return std::exchange(events_, {}); }

void VirtualActorRegistry::Record(VirtualActorEvent::Kind kind, const PlacementResolution& resolution, Instant now) {
  if (!is_heard_) return;
  if (events_.size() >= kMaxEvents) {
    ++dropped_events_;
    return;
  }
  events_.push_back(
      VirtualActorEvent{.kind = kind, .key = resolution.decision.key, .pid = resolution.pid, .observed_at = now});
}

}  // namespace fraktor::inline v0
