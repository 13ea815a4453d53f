// GrainKey: which grain: its kind and its identity within the kind.
//
//   GrainKey alice("account", "alice");
//   FRAKTOR_RETURN_IF_ERROR(alice.Check());          // where it comes from outside
//   const Member* owner = RendezvousHasher::OwnerOf(topology, alice);
//
// A value of 16 bytes. Copies share one immutable name, so a node that knows a grain in ten tables has its text once. It
// carries its hash, so that looking it up in a table costs a probe and a comparison and no hashing; where both are copies
// of one key, the comparison is that of two pointers.
//
// Thread safety: as a std::shared_ptr to something const.
#ifndef FRAKTOR_CLUSTER_IDENTITY_GRAIN_KEY_H_
#define FRAKTOR_CLUSTER_IDENTITY_GRAIN_KEY_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/utils/shared/shared.h"

namespace fraktor::inline v0 {

class GrainKey {
 public:
  static constexpr size_t kMaxKindBytes = 255;
  static constexpr size_t kMaxIdentityBytes = 1024;

  // Empty: not a valid key.
  GrainKey() = default;
  GrainKey(std::string_view kind, std::string_view identity);

  const std::string& kind() const { return name().kind; }
  const std::string& identity() const { return name().identity; }
  // The same everywhere: owners are chosen by it.
  uint64_t hash() const { return name().hash; }

  // LookupError::kInvalidKey unless the kind has 1 to 255 bytes and no '/', and the identity has 1 to 1024 bytes.
  absl::Status Check() const;

  // "account/alice". Unambiguous, since a kind has no '/'.
  std::string ToString() const;

  friend bool operator==(const GrainKey& a, const GrainKey& b) {
    return a.name_ == b.name_ ||
           (a.table_hash_ == b.table_hash_ && a.identity() == b.identity() && a.kind() == b.kind());
  }
  friend std::strong_ordering operator<=>(const GrainKey& a, const GrainKey& b) {
    const int kinds = a.kind().compare(b.kind());
    return (kinds != 0 ? kinds : a.identity().compare(b.identity())) <=> 0;
  }
  template <class H>
  friend H AbslHashValue(H h, const GrainKey& key) {
    return H::combine(std::move(h), key.table_hash_);
  }

 private:
  struct Name : SharedObject {
    Name() = default;
    Name(std::string_view its_kind, std::string_view its_identity);

    const std::string kind;
    const std::string identity;
    const uint64_t hash = 0;
  };
  static const Name& NoName();

  const Name& name() const { return name_ == nullptr ? NoName() : *name_; }

  Shared<Name> name_;  // null: empty
  // For tables in memory: another one in each process, so that nobody can prepare collisions.
  size_t table_hash_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_GRAIN_KEY_H_
