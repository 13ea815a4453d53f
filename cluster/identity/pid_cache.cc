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

PlacementResolutionPtr PidCache::Find(const GrainKey& key, Instant now) {
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  Slot& slot = slots_[found->second];
  if (now >= slot.expires_at) {
    Drop(found->second, PidCacheEvent::Reason::kExpired, now);
    return nullptr;
  }
  slot.was_used = true;
  return slot.resolution;
}

void PidCache::Put(PlacementResolutionPtr resolution, Instant now) {
  const auto found = index_.find(resolution->decision.key);
  size_t at = 0;
  if (found != index_.end()) {
    at = found->second;
  } else {
    at = TakeSlot(now);
    index_.emplace(resolution->decision.key, static_cast<uint32_t>(at));
  }
  slots_[at] = Slot{.resolution = std::move(resolution), .expires_at = now + ttl_};
}

bool PidCache::Remove(const GrainKey& key, PidCacheEvent::Reason reason, Instant now) {
  const auto found = index_.find(key);
  if (found == index_.end()) return false;
  Drop(found->second, reason, now);
  return true;
}

bool PidCache::RemovePid(const GrainKey& key, std::string_view pid, Instant now) {
  const auto found = index_.find(key);
  if (found == index_.end() || slots_[found->second].resolution->pid != pid) return false;
  Drop(found->second, PidCacheEvent::Reason::kRemoved, now);
  return true;
}

size_t PidCache::RemoveMember(std::string_view member_id, Instant now) {
  size_t removed = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].resolution == nullptr || slots_[i].resolution->decision.owner != member_id) continue;
    Drop(i, PidCacheEvent::Reason::kMemberLeft, now);
    ++removed;
  }
  return removed;
}

void PidCache::Clear() {
  slots_.clear();
  free_.clear();
  index_.clear();
  hand_ = 0;
}

std::vector<PidCacheEvent> PidCache::DrainEvents() { return std::exchange(events_, {}); }

size_t PidCache::TakeSlot(Instant now) {
  if (free_.empty() && slots_.size() < capacity_) {
    slots_.emplace_back();
    return slots_.size() - 1;
  }
  while (free_.empty()) {
    if (hand_ >= slots_.size()) hand_ = 0;
    Slot& slot = slots_[hand_];
    if (slot.was_used && now < slot.expires_at) {
      slot.was_used = false;
      ++hand_;
      continue;
    }
    const bool is_over = now >= slot.expires_at;
    Drop(hand_++, is_over ? PidCacheEvent::Reason::kExpired : PidCacheEvent::Reason::kFull, now);
  }
  const size_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void PidCache::Drop(size_t slot, PidCacheEvent::Reason reason, Instant now) {
  const PlacementResolutionPtr gone = std::exchange(slots_[slot].resolution, nullptr);
  index_.erase(gone->decision.key);
  free_.push_back(static_cast<uint32_t>(slot));
  if (events_.size() >= kMaxEvents) {
    ++dropped_events_;
    return;
  }
  events_.push_back(PidCacheEvent{.key = gone->decision.key, .pid = gone->pid, .reason = reason, .observed_at = now});
}

}  // namespace fraktor::inline v0
