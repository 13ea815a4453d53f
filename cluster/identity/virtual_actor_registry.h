// VirtualActorRegistry: the activations that run on this node, and since when nobody has needed them.
//
//   registry.Add(resolution, {.replaces_another = false}, now);
//   PlacementResolutionPtr here = registry.Find(key, now);          // null: not here. Counts as a use
//   for (const GrainKey& key : registry.TakeIdle(now, 64)) StopIt(key);
//   registry.Remove(key, VirtualActorEvent::Kind::kPassivated, now);
//
// What it does depends on the calls only, not on the order of a hash table, so a simulation repeats.
//
// Thread safety: none; the owner locks. Uses cost a probe of a table; idle ones are found without looking at others.
#ifndef FRAKTOR_CLUSTER_IDENTITY_VIRTUAL_ACTOR_REGISTRY_H_
#define FRAKTOR_CLUSTER_IDENTITY_VIRTUAL_ACTOR_REGISTRY_H_

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
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

// An activation on this node has begun or ended.
struct VirtualActorEvent {
  static constexpr EventInfo<VirtualActorEvent> kEvent{"VirtualActorEvent"};
  static constexpr bool kOwnsItsData = true;

  enum class Kind {
    kActivated,    // there was none
    kReactivated,  // in the place of one whose node has left, or that has ended without a trace
    kPassivated,   // nobody needed it
    kEnded,        // for another reason: it stopped, it was handed over, the node must not run it any more
  };

  Kind kind = Kind::kActivated;
  GrainKey key = {};
  std::string pid = {};
  Instant observed_at = {};
};

// "passivated" for kPassivated.
std::string_view VirtualActorEventName(VirtualActorEvent::Kind kind);

class VirtualActorRegistry {
 public:
  // Idle are those that nobody has used for `idle_ttl`, which is 1 ms at least; with InfiniteDuration none ever is.
  explicit VirtualActorRegistry(absl::Duration idle_ttl = absl::Seconds(3600))
      : idle_ttl_(std::max(idle_ttl, absl::Milliseconds(1))) {}

  struct AddOptions {
    bool replaces_another = false;
    // It is not idle unless Keep says so.
    bool is_kept = false;
  };
  // There must be none of this key.
  void Add(PlacementResolutionPtr resolution, const AddOptions& options, Instant now);

  // Null if it does not run here. Otherwise it has been used now.
  PlacementResolutionPtr Find(const GrainKey& key, Instant now) {
    const auto found = actors_.find(key);
    if (found == actors_.end()) return nullptr;
    found->second.last_used = now;
    return found->second.resolution;
  }
  // The same without a use.
  PlacementResolutionPtr Peek(const GrainKey& key) const {
    const auto found = actors_.find(key);
    return found == actors_.end() ? nullptr : found->second.resolution;
  }

  // Until then it is not idle, whatever was said before. False if it does not run here.
  bool Keep(const GrainKey& key, Instant until);

  // False, and no event, if there was none.
  bool Remove(const GrainKey& key, VirtualActorEvent::Kind why, Instant now);

  // Some that are idle, the longest first, `limit` at most. They stay until they are removed; if they are not, they are
  // idle again after another idle_ttl.
  std::vector<GrainKey> TakeIdle(Instant now, size_t limit);

  // All, in the order in which they would become idle.
  std::vector<GrainKey> Keys() const;

  size_t size() const { return actors_.size(); }

  // Whether somebody wants the events of what happens from now on; it is so at first.
  void set_is_heard(bool is_heard) { is_heard_ = is_heard; }
  // Since the last call, in order. At most 65536 are kept; further ones are counted only.
  std::vector<VirtualActorEvent> DrainEvents();
  uint64_t dropped_events() const { return dropped_events_; }

 private:
  static constexpr size_t kMaxEvents = 65'536;

  // When it has to be looked at again; the number makes it unique.
  struct Check {
    Instant at;
    uint64_t number = 0;
    friend auto operator<=>(const Check&, const Check&) = default;
  };
  struct VirtualActor {
    PlacementResolutionPtr resolution;
    Instant last_used;
    Instant kept_until;
    Check check;
  };

  void Record(VirtualActorEvent::Kind kind, const PlacementResolution& resolution, Instant now);

  const absl::Duration idle_ttl_;
  absl::flat_hash_map<GrainKey, VirtualActor> actors_;
  // Uses do not move an entry: when its time comes, it is looked at and put further back.
  std::map<Check, GrainKey> checks_;
  uint64_t next_number_ = 0;
  std::vector<VirtualActorEvent> events_;
  uint64_t dropped_events_ = 0;
  bool is_heard_ = true;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_VIRTUAL_ACTOR_REGISTRY_H_
