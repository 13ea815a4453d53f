// GrainKey: which grain: its kind and its identity within the kind.
//
//   GrainKey alice("account", "alice");
//   FRAKTOR_RETURN_IF_ERROR(alice.Check());          // where it comes from outside
//   const Member* owner = RendezvousHasher::OwnerOf(topology, alice);
//
// A value. It carries its hashes, so that looking it up in a table costs a probe and a comparison and no hashing.
//
// Thread safety: as a std::string.
#ifndef FRAKTOR_CLUSTER_IDENTITY_GRAIN_KEY_H_
#define FRAKTOR_CLUSTER_IDENTITY_GRAIN_KEY_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

class GrainKey {
 public:
  static constexpr size_t kMaxKindBytes = 255;
  static constexpr size_t kMaxIdentityBytes = 1024;

  // Empty: not a valid key.
  GrainKey() = default;
  GrainKey(std::string_view kind, std::string_view identity);

  const std::string& kind() const { return kind_; }
  const std::string& identity() const { return identity_; }
  // The same everywhere: owners are chosen by it.
  uint64_t hash() const { return hash_; }

  // LookupError::kInvalidKey unless the kind has 1 to 255 bytes and no '/', and the identity has 1 to 1024 bytes.
  absl::Status Check() const;

  // "account/alice". Unambiguous, since a kind has no '/'.
  std::string ToString() const;

  friend bool operator==(const GrainKey& a, const GrainKey& b) {
    return a.hash_ == b.hash_ && a.identity_ == b.identity_ && a.kind_ == b.kind_;
  }
  friend std::strong_ordering operator<=>(const GrainKey& a, const GrainKey& b) {
    const int kinds = a.kind_.compare(b.kind_);
    return (kinds != 0 ? kinds : a.identity_.compare(b.identity_)) <=> 0;
  }
  template <class H>
  friend H AbslHashValue(H h, const GrainKey& key) {
    return H::combine(std::move(h), key.table_hash_);
  }

 private:
  std::string kind_;
  std::string identity_;
  uint64_t hash_ = 0;
  // For tables in memory: another one in each process, so that nobody can prepare collisions.
  size_t table_hash_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_GRAIN_KEY_H_
