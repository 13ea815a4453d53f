#include "fraktor/cluster/identity/pid_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

std::string_view PidCacheReasonName(PidCacheEvent::Reason reason) {
  switch (reason) {
    case PidCacheEvent::Reason::kFull:
      return "full";
    case PidCacheEvent::Reason::kExpired:
      return "expired";
    case PidCacheEvent::Reason::kMemberLeft:
      return "member left";
    case PidCacheEvent::Reason::kRemoved:
      return "removed";
  }
  return "unknown";
}

PidCache::PidCache(const PidCacheOptions& options)
    : capacity_(std::clamp(options.capacity, size_t{1}, size_t{1} << 24)), ttl_(options.ttl) {}

void PidCache::Put(PlacementResolutionPtr resolution, Instant now) {
  const GrainKey& key = resolution->decision.key;
  const auto found = entries_.find(key);
  const uint32_t place = found != entries_.end() ? found->second.place : TakePlace(now);
  ring_[place] = &key;
  entries_.insert_or_assign(
      key, Entry{.resolution = resolution, .expires_at = now + ttl_, .place = place, .was_used = false});
}

bool PidCache::Remove(const GrainKey& key, PidCacheEvent::Reason reason, Instant now) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  Drop(found, reason, now);
  return true;
}

bool PidCache::RemovePid(const GrainKey& key, std::string_view pid, Instant now) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.resolution->pid != pid) return false;
  Drop(found, PidCacheEvent::Reason::kRemoved, now);
  return true;
}

size_t PidCache::RemoveMember(std::string_view member_id, Instant now) {
  size_t removed = 0;
  for (const GrainKey* const& key : ring_) {
    if (key == nullptr) continue;
    const auto found = entries_.find(*key);
    if (found->second.resolution->decision.owner != member_id) continue;
    Drop(found, PidCacheEvent::Reason::kMemberLeft, now);
    ++removed;
  }
  return removed;
}

void PidCache::Clear() {
  entries_.clear();
  ring_.clear();
  free_.clear();
  hand_ = 0;
}

std::vector<PidCacheEvent> PidCache::DrainEvents() { return std::exchange(events_, {}); }

uint32_t PidCache::TakePlace(Instant now) {
  if (free_.empty() && ring_.size() < capacity_) {
    ring_.push_back(nullptr);
    return static_cast<uint32_t>(ring_.size() - 1);
  }
  // All places are taken: somebody has to go.
  while (free_.empty()) {
    if (hand_ >= ring_.size()) hand_ = 0;
    const auto found = entries_.find(*ring_[hand_++]);
    Entry& entry = found->second;
    const bool is_over = now >= entry.expires_at;
    if (entry.was_used && !is_over) {
      entry.was_used = false;
    } else {
      Drop(found, is_over ? PidCacheEvent::Reason::kExpired : PidCacheEvent::Reason::kFull, now);
    }
  }
  const uint32_t place = free_.back();
  free_.pop_back();
  return place;
}

void PidCache::Drop(Entries::iterator entry, PidCacheEvent::Reason reason, Instant now) {
  const PlacementResolutionPtr gone = std::move(entry->second.resolution);
  const uint32_t place = entry->second.place;
  entries_.erase(entry);
  ring_[place] = nullptr;
  free_.push_back(place);
  if (!is_heard_) return;
  if (events_.size() >= kMaxEvents) {
    ++dropped_events_;
    return;
  }
  events_.push_back(PidCacheEvent{.key = gone->decision.key, .pid = gone->pid, .reason = reason, .observed_at = now});
}

}  // namespace fraktor::inline v0
