#include "fraktor/actor/registry/internal/actor_path_registry.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/actor/path/internal/path_hash.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/registry/internal/compact_name.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

using path_internal::ActorPathValidator;
using path_internal::AutoNameText;
using path_internal::ParseAutoName;
namespace {

using path_internal::ChildHash;
using path_internal::CompactName;

// The index cannot store slots above this.
constexpr uint32_t kMaxSlot = UINT32_MAX - 1;
constexpr uint64_t kMaxAutoNumber = (uint64_t{1} << 62) - 1;

std::string PidForText(Pid pid) { return absl::StrCat("pid ", pid.slot, "/", pid.generation); }

}  // namespace

absl::StatusOr<std::unique_ptr<ActorPathRegistry>> ActorPathRegistry::Create(const ActorSystemConfig& config,
                                                                             const ActorPathRegistryOptions& options) {
  FRAKTOR_ASSIGN_OR_RETURN(const ActorPathParts local, config.LocalParts());
  FRAKTOR_ASSIGN_OR_RETURN(const ActorPathParts canonical, config.CanonicalParts());
  return std::unique_ptr<ActorPathRegistry>(
      new ActorPathRegistry(config, options, ActorPath::Root(local), ActorPath::Root(canonical)));
}

ActorPathRegistry::ActorPathRegistry(const ActorSystemConfig& config, const ActorPathRegistryOptions& options,
                                     const ActorPath& root, const ActorPath& canonical_root)
    : uid_reservation_(config.uid_reservation),
      max_uid_reservations_(config.max_uid_reservations),
      issuer_(options.uid_key),
      root_(root),
      canonical_root_(canonical_root) {}

absl::Status ActorPathRegistry::UnknownPid(Pid pid) const {
  return MakeError(absl::StatusCode::kNotFound, PathResolutionErrorKind::kPidUnknown,
                   absl::StrCat(PidForText(pid), " is no live actor of ", QuotedForText(root_.text()),
                                "; it has ended or never existed"));
}

absl::StatusOr<ActorPathRegistry::Entry*> ActorPathRegistry::Claim(Pid pid) {
  if (!pid.IsValid() || pid.slot > kMaxSlot) {
    return absl::InvalidArgumentError(absl::StrCat(PidForText(pid), " is not valid; generations begin at 1"));
  }
  const size_t chunk = pid.slot / kChunkEntries;
  if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
  if (chunks_[chunk] == nullptr) chunks_[chunk] = std::make_unique<Chunk>();
  Entry* entry = &chunks_[chunk]->entries[pid.slot % kChunkEntries];
  if (entry->is_live) {
    return absl::AlreadyExistsError(absl::StrCat(PidForText(pid), ": the slot has a live actor of generation ",
                                                 entry->generation, "; unregister it first"));
  }
  if (pid.generation <= entry->generation) {
    return absl::InvalidArgumentError(absl::StrCat(PidForText(pid), ": the slot had generation ", entry->generation,
                                                   " already; generations only grow"));
  }
  return entry;
}

absl::Status ActorPathRegistry::RegisterRoot(Pid pid) {
  if (root_entry_ != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat(QuotedForText(root_.text()), " has its root already; it must end before another takes its place"));
  }
  FRAKTOR_ASSIGN_OR_RETURN(Entry* const entry, Claim(pid));
  *entry = Entry();
  entry->hash = root_.hash();
  entry->generation = pid.generation;
  entry->is_live = 1;
  root_entry_ = entry;
  index_.Insert(entry->hash, pid.slot);
  return absl::OkStatus();
}

absl::Status ActorPathRegistry::Register(Pid pid, Pid parent, std::string_view name) {
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateSegment(name));
  // A name that looks automatic is stored as its number, so that Find treats both alike.
  const std::optional<uint64_t> number = ParseAutoName(name);
  if (number.has_value() && *number <= kMaxAutoNumber) return Add(pid, parent, name, CompactName::Auto(*number));
  return Add(pid, parent, name, CompactName::Of(name));
}

absl::Status ActorPathRegistry::RegisterAuto(Pid pid, Pid parent, uint64_t number) {
  const AutoNameText text(number);
  if (number > kMaxAutoNumber) return Add(pid, parent, text.view(), CompactName::Of(text.view()));
  return Add(pid, parent, text.view(), CompactName::Auto(number));
}

absl::Status ActorPathRegistry::Add(Pid pid, Pid parent, std::string_view name, CompactName stored) {
  Entry* const parent_entry = MutableEntry(parent);
  if (parent_entry == nullptr) return Annotate(UnknownPid(parent), absl::StrCat("parent of ", QuotedForText(name)));
  const uint64_t hash = ChildHash(parent_entry->hash, name);
  const auto taken = index_.Find(hash, [&](uint32_t slot) {
    const Entry& other = KnownEntry(slot);
    return other.hash == hash && other.parent_slot == parent.slot && !IsRoot(other) && other.name.Is(name);
  });
  if (taken.has_value()) {
    return MakeError(absl::StatusCode::kAlreadyExists, PathResolutionErrorKind::kNameTaken,
                     absl::StrCat(QuotedForText(MakePath(KnownEntry(*taken), ActorUid()).text()),
                                  " is the path of a live actor; use another name, or wait until it has ended"));
  }
  const size_t text_size = parent_entry->text_size + 1 + name.size();
  if (text_size > kMaxTextSize) {
    return absl::ResourceExhaustedError(absl::StrCat("actor ", QuotedForText(name), ": its path would have ", text_size,
                                                     " bytes, at most ", kMaxTextSize,
                                                     " are possible; use shorter names or a flatter tree"));
  }
  FRAKTOR_ASSIGN_OR_RETURN(Entry* const entry, Claim(pid));
  entry->hash = hash;
  entry->name = std::move(stored);
  entry->generation = pid.generation;
  entry->parent_slot = parent.slot;
  entry->child_count = 0;
  entry->depth = static_cast<uint16_t>(parent_entry->depth + 1);
  entry->text_size = static_cast<uint16_t>(text_size);
  entry->is_live = 1;
  ++parent_entry->child_count;
  index_.Insert(hash, pid.slot);
  return absl::OkStatus();
}

absl::Status ActorPathRegistry::Unregister(Pid pid, Instant now) {
  Entry* const entry = MutableEntry(pid);
  if (entry == nullptr) return UnknownPid(pid);
  if (entry->child_count != 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, PathResolutionErrorKind::kHasChildren,
                     absl::StrCat(QuotedForText(MakePath(*entry, ActorUid()).text()), " has ", entry->child_count,
                                  " live children; unregister them first"));
  }
  AddReservation({.path = MakeText(*entry), .path_hash = entry->hash, .uid = issuer_.UidOf(pid), .pid = pid}, now);
  index_.Erase(entry->hash, pid.slot);
  if (IsRoot(*entry)) {
    root_entry_ = nullptr;
  } else {
    --const_cast<Entry&>(ParentOf(*entry)).child_count;
  }
  entry->name = CompactName();
  entry->is_live = 0;
  return absl::OkStatus();
}

ActorPath ActorPathRegistry::MakePath(const Entry& entry, ActorUid uid) const {
  const Entry* at = &entry;
  return path_internal::PathBuilder::Below(
      root_, {.segments = entry.depth, .text_size = entry.text_size, .hash = entry.hash, .uid = uid},
      [this, &at](char* end) {
        char* const begin = at->name.WriteWithSlashBefore(end);
        at = &ParentOf(*at);
        return begin;
      });
}

absl::StatusOr<ActorPath> ActorPathRegistry::PathOf(Pid pid) const {
  const Entry* const entry = FindEntry(pid);
  if (entry == nullptr) return UnknownPid(pid);
  // The conversion makes the path in its final place, without a move.
  struct Made {
    const ActorPathRegistry& registry;
    const Entry& entry;
    ActorUid uid;
    operator ActorPath() const { return registry.MakePath(entry, uid); }  // NOLINT(google-explicit-constructor)
  };
  return absl::StatusOr<ActorPath>(Made{*this, *entry, issuer_.UidOf(pid)});
}

absl::StatusOr<std::string> ActorPathRegistry::TextOf(Pid pid) const {
  const Entry* const entry = FindEntry(pid);
  if (entry == nullptr) return UnknownPid(pid);
  return MakeText(*entry);
}

std::string ActorPathRegistry::MakeText(const Entry& entry) const {
  if (IsRoot(entry)) return root_.ToString();
  const std::string_view address = root_.text().substr(0, root_.text().size() - 1);  // without its slash
  std::string text;
  text.resize(address.size() + entry.text_size);
  // Writes from the end to the beginning, because an entry knows its parent.
  char* end = text.data() + text.size();
  for (const Entry* at = &entry; !IsRoot(*at); at = &ParentOf(*at)) {
    end = at->name.WriteWithSlashBefore(end);
  }
  std::memcpy(text.data(), address.data(), address.size());
  return text;
}

bool ActorPathRegistry::IsOurs(const ActorPath& path) const {
  if (!path_internal::EqualBytes(path.system(), root_.system())) return false;
  if (!path.has_authority()) return true;
  return canonical_root_.has_authority() && path.host() == canonical_root_.host() &&
         path.port() == canonical_root_.port() && path.scheme() == canonical_root_.scheme();
}

// Returns the hash that entries use: that of the path without its authority.
inline uint64_t ActorPathRegistry::HashHere(const ActorPath& path) const {
  if (!path.has_authority()) return path.hash();
  uint64_t hash = root_.hash();
  for (size_t i = 0; i < path.segment_count(); ++i) hash = ChildHash(hash, path.segment(i));
  return hash;
}

inline bool ActorPathRegistry::Matches(const Entry& entry, const ActorPath& path) const {
  if (entry.depth != path.segment_count()) return false;
  const Entry* at = &entry;
  for (size_t i = path.segment_count(); i-- > 0;) {
    const Entry& parent = ParentOf(*at);
    __builtin_prefetch(&parent);
    if (!at->name.Is(path.segment(i))) return false;
    at = &parent;
  }
  return true;
}

Pid ActorPathRegistry::Find(const ActorPath& path) const {
  if (!IsOurs(path)) return Pid();
  const uint64_t hash = HashHere(path);
  const std::optional<uint32_t> slot = index_.Find(hash, [&](uint32_t candidate) {
    const Entry& entry = KnownEntry(candidate);
    return entry.hash == hash && Matches(entry, path);
  });
  if (!slot.has_value()) return Pid();
  const Entry& entry = KnownEntry(*slot);
  const Pid pid = PidOf(entry, *slot);
  if (!path.uid().IsNone() && path.uid() != issuer_.UidOf(pid)) return Pid();
  return pid;
}

bool ActorPathRegistry::IsReserved(const ActorPath& path) const {
  return IsOurs(path) && !path.uid().IsNone() && reserved_.contains({HashHere(path), path.uid()});
}

const UidReservation* ActorPathRegistry::FindEnded(Pid pid) const {
  const auto found = ended_.find(pid);
  return found == ended_.end() ? nullptr : &reservations_[found->second - first_reservation_];
}

void ActorPathRegistry::AddReservation(UidReservation reservation, Instant now) {
  // A long path would take more memory than max_uid_reservations allows for.
  if (reservation.path.size() > kMaxReservedPath) return;
  if (!reserved_.insert({reservation.path_hash, reservation.uid}).second) return;
  while (reservations_.size() >= max_uid_reservations_) evicted_.push_back(RemoveOldestReservation());
  ended_[reservation.pid] = first_reservation_ + reservations_.size();
  reservation.deadline = now + uid_reservation_;
  reservations_.push_back(std::move(reservation));
}

UidReservation ActorPathRegistry::RemoveOldestReservation() {
  UidReservation oldest = std::move(reservations_.front());
  reservations_.pop_front();
  ++first_reservation_;
  reserved_.erase({oldest.path_hash, oldest.uid});
  ended_.erase(oldest.pid);
  return oldest;
}

size_t ActorPathRegistry::Expire(Instant now, size_t most) {
  size_t expired = 0;
  for (; expired < most && NextExpiry() <= now && !reservations_.empty(); ++expired) RemoveOldestReservation();
  return expired;
}

}  // namespace fraktor::inline v0::actor_internal
