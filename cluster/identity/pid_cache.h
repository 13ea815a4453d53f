// PidCache: where grains on other nodes were found, so that not every message asks for it.
//
//   PidCache cache({.capacity = 1024, .ttl = absl::Seconds(300)});
//   cache.Put(resolution, now);
//   PlacementResolutionPtr where = cache.Find(key, now);          // null: ask
//   cache.Remove(key, PidCacheEvent::Reason::kRemoved, now);      // a message to it was not delivered
//   for (const PidCacheEvent& event : cache.DrainEvents()) stream.Publish(event);
//
// Bounded: a further entry takes the place of one that has not been used lately. Every entry that goes is an event with
// a reason.
//
// Thread safety: none; the owner locks. Find costs a probe of a table.
#ifndef FRAKTOR_CLUSTER_IDENTITY_PID_CACHE_H_
#define FRAKTOR_CLUSTER_IDENTITY_PID_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/event_type.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct PidCacheOptions {
  // Entries, from 1 to 2^24.
  size_t capacity = 1024;
  // An entry is forgotten so long after it was put in, used or not.
  absl::Duration ttl = absl::Seconds(300);
};

// An entry has gone.
struct PidCacheEvent {
  static constexpr EventInfo<PidCacheEvent> kEvent{"PidCacheEvent"};
  static constexpr bool kOwnsItsData = true;

  enum class Reason {
    kFull,        // another one needed the place
    kExpired,     // its time was over
    kMemberLeft,  // its member has left
    kRemoved,     // the grain was not there any more, or is somewhere else now
  };

  GrainKey key = {};
  std::string pid = {};
  Reason reason = Reason::kRemoved;
  Instant observed_at = {};
};

class PidCache {
 public:
  // A capacity out of its limits counts as the nearest that is within.
  explicit PidCache(const PidCacheOptions& options = {});

  // Null if there is none, or if its time is over.
  PlacementResolutionPtr Find(const GrainKey& key, Instant now) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    Entry& entry = found->second;
    if (now >= entry.expires_at) {
      Drop(found, PidCacheEvent::Reason::kExpired, now);
      return nullptr;
    }
    entry.was_used = true;
    return entry.resolution;
  }

  // Replaces what there was for the key.
  void Put(PlacementResolutionPtr resolution, Instant now);

  // False, and no event, if there was none.
  bool Remove(const GrainKey& key, PidCacheEvent::Reason reason, Instant now);
  // Only if it is this pid: who has waited for an answer may come when another one has been found.
  bool RemovePid(const GrainKey& key, std::string_view pid, Instant now);

  // Those whose owner is this member. How many there were.
  size_t RemoveMember(std::string_view member_id, Instant now);

  // All of them, without events.
  void Clear();

  size_t size() const { return entries_.size(); }

  // Whether somebody wants the events of what happens from now on; it is so at first.
  void set_is_heard(bool is_heard) { is_heard_ = is_heard; }
  // Since the last call, in order. At most 65536 are kept; further ones are counted only.
  std::vector<PidCacheEvent> DrainEvents();
  uint64_t dropped_events() const { return dropped_events_; }

 private:
  static constexpr size_t kMaxEvents = 65'536;

  struct Entry {
    PlacementResolutionPtr resolution = nullptr;
    Instant expires_at = {};
    uint32_t place = 0;  // in the ring
    bool was_used = false;
  };
  using Entries = absl::flat_hash_map<GrainKey, Entry>;

  uint32_t TakePlace(Instant now);
  void Drop(Entries::iterator entry, PidCacheEvent::Reason reason, Instant now);

  const size_t capacity_;
  const absl::Duration ttl_;
  Entries entries_;
  // The keys of all entries, which are in their resolutions; null where a place is free.
  std::vector<const GrainKey*> ring_;
  std::vector<uint32_t> free_;
  size_t hand_ = 0;  // goes around; who was used since it last came by gets another round
  std::vector<PidCacheEvent> events_;
  uint64_t dropped_events_ = 0;
  bool is_heard_ = true;
};

// "expired" for kExpired.
std::string_view PidCacheReasonName(PidCacheEvent::Reason reason);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_PID_CACHE_H_
