// ActorPathRegistry: maps the live actors of one system to their paths, and paths to actors.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto registry, ActorPathRegistry::Create(config, {.uid_key = key}));
//   FRAKTOR_RETURN_IF_ERROR(registry->RegisterRoot(root));
//   FRAKTOR_RETURN_IF_ERROR(registry->Register(user, root, "user"));
//   FRAKTOR_RETURN_IF_ERROR(registry->Register(cart, user, "cart"));
//   FRAKTOR_RETURN_IF_ERROR(registry->RegisterAuto(worker, cart, 0));  // "$a"
//   absl::StatusOr<std::string> text = registry->TextOf(worker);       // "pekko://shop/user/cart/$a"
//   Pid found = registry->Find(*ActorPathParser::Parse("pekko://shop/user/cart"));
//
// Each actor has an entry of 32 bytes with its parent and its own name. Names of up to 7 bytes and
// all automatic names are in the entry; longer names are on the heap. The registry keeps no text of
// a path and builds it on demand. Both directions take O(1) in the number of actors: the slot of a
// pid is the place of its entry, and a path is found by one probe with its hash and then checked
// name by name up to the root.
//
// Uids. The registry computes the uid of an actor from its pid and the system's key, so no uid is
// issued twice. When an actor ends, its name is free at once, and its path and uid are reserved for
// `uid_reservation`. Until then a path with that uid is known to mean an actor that has ended
// (kUidReserved). The registry keeps at most `max_uid_reservations` and then evicts the oldest
// early; TakeEvicted returns the evicted ones. It reserves no path that is longer than
// kMaxReservedPath, so the reservations take a bounded number of bytes. A timer of the system calls
// Expire, which ends the reservations that have expired.
//
// Thread safety: thread-compatible, like a container. Callers pass the time.
#ifndef FRAKTOR_ACTOR_REGISTRY_INTERNAL_ACTOR_PATH_REGISTRY_H_
#define FRAKTOR_ACTOR_REGISTRY_INTERNAL_ACTOR_PATH_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/registry/internal/compact_name.h"
#include "fraktor/actor/registry/internal/path_index.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

// The path and uid of an actor that has ended.
struct UidReservation {
  std::string path = {};  // Without the uid.
  uint64_t path_hash = 0;
  ActorUid uid = {};
  Pid pid = {};
  Instant deadline = {};
};

struct ActorPathRegistryOptions {
  // The key of the system's uids. Each start of a system needs another key.
  uint64_t uid_key = 0;
};

class ActorPathRegistry {
 public:
  // The maximum size of a path's text below the root. Peers can still parse a path of this size.
  static constexpr size_t kMaxTextSize = 60'000;
  // Longer paths are not reserved.
  static constexpr size_t kMaxReservedPath = 1024;

  // Returns an error if the config is invalid.
  static absl::StatusOr<std::unique_ptr<ActorPathRegistry>> Create(const ActorSystemConfig& config,
                                                                   const ActorPathRegistryOptions& options);

  ActorPathRegistry(const ActorPathRegistry&) = delete;
  ActorPathRegistry& operator=(const ActorPathRegistry&) = delete;

  // Registers the root. It must come first, and there is only one.
  absl::Status RegisterRoot(Pid pid);

  // Registers a live actor below a live parent. The name may begin with `$`; the caller checks
  // whether a user may choose it. Errors: kInvalidSegment, kPercentDecode, kNameTaken, kPidUnknown
  // for the parent, AlreadyExists for the pid, and ResourceExhausted beyond kMaxTextSize.
  absl::Status Register(Pid pid, Pid parent, std::string_view name);

  // Registers an actor under the automatic name of a number.
  absl::Status RegisterAuto(Pid pid, Pid parent, uint64_t number);

  // Removes an actor that has ended. Frees its name and reserves its path and uid. Errors:
  // kPidUnknown, kHasChildren.
  absl::Status Unregister(Pid pid, Instant now);

  size_t size() const { return index_.size(); }

  // pid → path. Errors: kPidUnknown, also for an actor that has ended.
  absl::StatusOr<ActorPath> PathOf(Pid pid) const;  // with the uid
  // The text alone, in one allocation, without the uid.
  absl::StatusOr<std::string> TextOf(Pid pid) const;

  // path → pid, for paths of this system, with or without its authority. A path with a uid means
  // that incarnation only. Returns an invalid Pid if there is no such actor.
  Pid Find(const ActorPath& path) const;

  // Returns whether the address of a path is this system's: without an authority, or with its own.
  bool IsOurs(const ActorPath& path) const;

  // Returns whether the uid of this path is reserved: its actor has ended.
  bool IsReserved(const ActorPath& path) const;
  // Returns the reservation of an actor that has ended, or null if it has expired or never existed.
  // The pointer is valid until the next change.
  const UidReservation* FindEnded(Pid pid) const;

  // Ends up to `most` reservations that have expired, and returns their number. A timer of the
  // system calls it.
  size_t Expire(Instant now, size_t most = SIZE_MAX);
  // The time at which the next reservation expires. The infinite future if there is none.
  Instant NextExpiry() const {
    return reservations_.empty() ? Instant::InfiniteFuture() : reservations_.front().deadline;
  }
  // Returns the reservations that were evicted since the last call.
  std::vector<UidReservation> TakeEvicted() { return std::exchange(evicted_, {}); }
  size_t reservation_count() const { return reservations_.size(); }

  // How the uids of actors follow from their pids.
  const ActorUidIssuer& uids() const { return issuer_; }

 private:
  struct Entry {
    uint64_t hash = 0;
    path_internal::CompactName name;
    uint32_t generation = 0;  // of the current actor of the slot, or of the last one
    uint32_t parent_slot = 0;
    uint32_t child_count : 31 = 0;
    uint32_t is_live : 1 = 0;
    uint16_t depth = 0;      // number of segments of the path
    uint16_t text_size = 0;  // bytes of those segments, with a slash for each
  };
  static_assert(sizeof(Entry) == 32);
  static constexpr size_t kChunkEntries = 1024;
  struct Chunk {
    Entry entries[kChunkEntries];
  };
  ActorPathRegistry(const ActorSystemConfig& config, const ActorPathRegistryOptions& options, const ActorPath& root,
                    const ActorPath& canonical_root);

  const Entry* EntryOfSlot(uint32_t slot) const {
    const size_t chunk = slot / kChunkEntries;
    if (chunk >= chunks_.size() || chunks_[chunk] == nullptr) return nullptr;
    return &chunks_[chunk]->entries[slot % kChunkEntries];
  }
  const Entry* FindEntry(Pid pid) const {
    const Entry* entry = EntryOfSlot(pid.slot);
    return entry != nullptr && entry->is_live && entry->generation == pid.generation ? entry : nullptr;
  }
  Entry* MutableEntry(Pid pid) { return const_cast<Entry*>(FindEntry(pid)); }
  bool IsRoot(const Entry& entry) const { return &entry == root_entry_; }
  // For slots that a live entry or the index names; they exist.
  const Entry& KnownEntry(uint32_t slot) const { return chunks_[slot / kChunkEntries]->entries[slot % kChunkEntries]; }
  const Entry& ParentOf(const Entry& entry) const { return KnownEntry(entry.parent_slot); }
  Pid PidOf(const Entry& entry, uint32_t slot) const { return {.slot = slot, .generation = entry.generation}; }

  absl::StatusOr<Entry*> Claim(Pid pid);
  absl::Status Add(Pid pid, Pid parent, std::string_view name, path_internal::CompactName stored);
  bool Matches(const Entry& entry, const ActorPath& path) const;
  uint64_t HashHere(const ActorPath& path) const;
  void AddReservation(UidReservation reservation, Instant now);
  UidReservation RemoveOldestReservation();
  absl::Status UnknownPid(Pid pid) const;
  std::string MakeText(const Entry& entry) const;
  ActorPath MakePath(const Entry& entry, ActorUid uid) const;

  const absl::Duration uid_reservation_;
  const size_t max_uid_reservations_;
  const ActorUidIssuer issuer_;
  const ActorPath root_;            // without an authority
  const ActorPath canonical_root_;  // the root as peers know it
  std::vector<std::unique_ptr<Chunk>> chunks_;
  const Entry* root_entry_ = nullptr;
  path_internal::PathIndex index_;
  // The oldest first. Reservations are numbered from 0; first_reservation_ is the number of the
  // first one here.
  std::deque<UidReservation> reservations_;
  uint64_t first_reservation_ = 0;
  absl::flat_hash_set<std::pair<uint64_t, ActorUid>> reserved_;  // two paths with the same hash and uid count as one
  absl::flat_hash_map<Pid, uint64_t> ended_;                     // the number of the actor's reservation
  std::vector<UidReservation> evicted_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_REGISTRY_INTERNAL_ACTOR_PATH_REGISTRY_H_
