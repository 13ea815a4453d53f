// ActorPathRegistry: which actor has which path, both ways, for the live actors of one system.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto registry, ActorPathRegistry::Create(config, {.uid_key = key, .events = &stream}));
//   registry->RegisterRoot(root);
//   registry->Register(user, root, "user");
//   registry->Register(cart, user, "cart");
//   registry->RegisterAuto(worker, cart, 0);         // "$a"
//   registry->PathOf(worker)->ToCanonical()          // "pekko://shop/user/cart/$a#5320..."
//   registry->Find(*ActorPathParser::Parse("pekko://shop/user/cart"))  // cart
//
// An actor has an entry of 32 bytes with its parent and its own name: up to 7 bytes and all automatic names in place, the
// heap for longer ones. No text of a path is kept; it is built when somebody asks. Both directions are O(1) in the
// number of actors: a pid's slot is the entry's place, and a path is found by one probe with the hash that it carries,
// and checked name by name up to the root.
//
// Uids. The uid of an actor is computed from its pid and the system's key and never comes back. An
// actor may instead be registered with a uid that came from outside. When an actor ends, its name
// is free at once, and its path and uid are reserved for `uid_reservation`: until then a path with
// that uid is known to mean an actor that has ended, and a uid from outside must not be used again
// (kUidReserved). At most `max_uid_reservations` are kept. The oldest goes before its time if there
// are more; TakeEvicted says which. Expire, which a timer of the system calls, ends those whose
// time has come.
//
// Thread safety: thread-compatible, as a container is. Time comes in as an argument.
#ifndef FRAKTOR_ACTOR_REGISTRY_ACTOR_PATH_REGISTRY_H_
#define FRAKTOR_ACTOR_REGISTRY_ACTOR_PATH_REGISTRY_H_

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

#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/registry/compact_name.h"
#include "fraktor/actor/registry/path_index.h"
#include "fraktor/actor/system/actor_system_config.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// The path and uid of an actor that has ended.
struct UidReservation {
  std::string path = {};  // Without the uid.
  uint64_t path_hash = 0;
  ActorUid uid = {};
  Pid pid = {};  // Not valid if the uid was reserved by ReserveUid.
  Instant deadline = {};
};

// A reservation that had to go before its time, because there were too many.
struct UidReservationEvicted {
  static constexpr EventInfo<UidReservationEvicted> kEvent{"UidReservationEvicted"};
  std::string_view path;
  ActorUid uid;
  Instant reserved_until;
};

struct ActorPathRegistryOptions {
  // The key of the system's uids: another one for each start.
  uint64_t uid_key = 0;
};

class ActorPathRegistry {
 public:
  // The text of a path below the root, so that peers can still parse the whole.
  static constexpr size_t kMaxTextSize = 60'000;

  // An error if the config is wrong.
  static absl::StatusOr<std::unique_ptr<ActorPathRegistry>> Create(const ActorSystemConfig& config,
                                                                   const ActorPathRegistryOptions& options);

  ActorPathRegistry(const ActorPathRegistry&) = delete;
  ActorPathRegistry& operator=(const ActorPathRegistry&) = delete;

  // The root comes first; there is one.
  absl::Status RegisterRoot(Pid pid);

  // A live actor below a live parent. Errors: kInvalidSegment, kPercentDecode (names may begin with `$` here: whether
  // the name is a user's own is the caller's question), kNameTaken, kPidUnknown for the parent, AlreadyExists for the
  // pid, ResourceExhausted beyond kMaxTextSize.
  absl::Status Register(Pid pid, Pid parent, std::string_view name);

  // The same with a uid from outside. Further errors: kUidReserved if this path had an actor of that uid within the
  // reservation, or the system has issued it itself.
  absl::Status RegisterWithUid(Pid pid, Pid parent, std::string_view name, ActorUid uid);

  // The same with the automatic name of a number.
  absl::Status RegisterAuto(Pid pid, Pid parent, uint64_t number);

  // The actor has ended. Frees its name, and reserves its path and uid. Errors: kPidUnknown,
  // kHasChildren.
  absl::Status Unregister(Pid pid, Instant now);

  size_t size() const { return index_.size(); }

  // pid → path. Errors: kPidUnknown, also for an actor that has ended.
  absl::StatusOr<ActorPath> PathOf(Pid pid) const;  // with its uid
  // The text alone, in one allocation, without the uid.
  absl::StatusOr<std::string> TextOf(Pid pid) const;

  // path → pid, for paths of this system, with or without its authority. A path with a uid means
  // that life only. An invalid Pid if there is none.
  Pid Find(const ActorPath& path) const;

  // Whether the address of a path is that of this system: without authority, or with its own.
  bool IsOurs(const ActorPath& path) const;

  // Whether an actor of this path has or had that uid, so that it cannot be used now: kUidReserved. A path of another
  // system is kPidUnknown.
  absl::Status CheckUid(const ActorPath& path, ActorUid uid) const;

  // Reserves a uid from outside until now + uid_reservation, as the end of its actor does. Errors: those of CheckUid; a
  // live actor's uid is reserved when the actor ends.
  absl::Status ReserveUid(const ActorPath& path, ActorUid uid, Instant now);

  // Whether an actor of this path had the path's uid and has ended, as far as that is still
  // reserved.
  bool IsReserved(const ActorPath& path) const;
  // The reservation of an actor that has ended; null if its time is over, or there never was one.
  // Valid until the next change.
  const UidReservation* FindEnded(Pid pid) const;

  // Ends up to `most` reservations whose time has come, and returns how many. A timer of the system
  // calls it.
  size_t Expire(Instant now, size_t most = SIZE_MAX);
  // When the next one ends; the infinite future if none does.
  Instant NextExpiry() const {
    return reservations_.empty() ? Instant::InfiniteFuture() : reservations_.front().deadline;
  }
  // The reservations that had to go since the last call, because there were too many.
  std::vector<UidReservation> TakeEvicted() { return std::exchange(evicted_, {}); }
  size_t reservation_count() const { return reservations_.size(); }

  // The uid that the system gives an actor.
  ActorUid UidOf(Pid pid) const;
  const ActorUidIssuer& uids() const { return issuer_; }

 private:
  struct Entry {
    uint64_t hash = 0;
    path_internal::CompactName name;
    uint32_t generation = 0;  // of the actor that has the slot, or had it last
    uint32_t parent_slot = 0;
    uint32_t child_count : 30 = 0;
    uint32_t is_live : 1 = 0;
    uint32_t has_outside_uid : 1 = 0;
    uint16_t depth = 0;      // segments of the path
    uint16_t text_size = 0;  // of them, with a slash for each
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
  // For slots that a live entry or the index names: they exist.
  const Entry& KnownEntry(uint32_t slot) const { return chunks_[slot / kChunkEntries]->entries[slot % kChunkEntries]; }
  const Entry& ParentOf(const Entry& entry) const { return KnownEntry(entry.parent_slot); }
  Pid PidOf(const Entry& entry, uint32_t slot) const { return {.slot = slot, .generation = entry.generation}; }

  absl::StatusOr<Entry*> Claim(Pid pid);
  absl::Status Add(Pid pid, Pid parent, std::string_view name, path_internal::CompactName stored, ActorUid outside_uid);
  bool Matches(const Entry& entry, const ActorPath& path) const;
  uint64_t HashHere(const ActorPath& path) const;
  bool WasIssued(ActorUid uid) const;
  void AddReservation(UidReservation reservation, Instant now);
  UidReservation RemoveOldestReservation();
  absl::Status UnknownPid(Pid pid) const;
  absl::Status OfAnotherSystem(const ActorPath& path) const;
  ActorUid UidOf(const Entry& entry, Pid pid) const;
  std::string MakeText(const Entry& entry) const;
  ActorPath MakePath(const Entry& entry, ActorUid uid) const;

  const absl::Duration uid_reservation_;
  const size_t max_uid_reservations_;
  const ActorUidIssuer issuer_;
  const ActorPath root_;            // without authority
  const ActorPath canonical_root_;  // as others know it
  std::vector<std::unique_ptr<Chunk>> chunks_;
  const Entry* root_entry_ = nullptr;
  path_internal::PathIndex index_;
  absl::flat_hash_map<Pid, ActorUid> outside_uids_;
  // The oldest first. They are numbered from the beginning on; this is the number of the first.
  std::deque<UidReservation> reservations_;
  uint64_t first_reservation_ = 0;
  absl::flat_hash_set<std::pair<uint64_t, ActorUid>> reserved_;  // two paths of one hash and uid count as one
  absl::flat_hash_map<Pid, uint64_t> ended_;                     // the number of the actor's reservation
  std::vector<UidReservation> evicted_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_REGISTRY_ACTOR_PATH_REGISTRY_H_
