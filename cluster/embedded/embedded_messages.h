// What nodes say to the store of an embedded cluster, and what it answers. An answer may always be an ErrorReply instead,
// with the kinds of errors that locks, storages and memberships have.
//
//   CodecSetup codecs;
//   codecs.Add<Deposit, GetBalance, Balance>().Add(ClusterCodecs()).Add(EmbeddedCodecs());
//
// Each has a version: what an older program has written is understood, what a newer one has written is refused by whoever
// gets it, and never taken for something else. So when a message changes, its kVersion grows. A newer store understands what
// older nodes ask, but they refuse its answers that have changed: the CHANGELOG says when all nodes are updated together.
//
// Thread safety: values.
#ifndef FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_MESSAGES_H_
#define FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_MESSAGES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/placement/activation_entry.h"

namespace fraktor::inline v0 {

template <>
struct Codec<GrainKey> {
  static constexpr std::string_view kManifest = "fraktor.grain_key";
  static void Encode(const GrainKey& key, Encoder& out) {
    out.Value(key.kind());
    out.Value(key.identity());
  }
  static GrainKey Decode(Decoder& in) {
    const std::string_view kind = in.Bytes();
    return GrainKey(kind, in.Bytes());
  }
};

template <>
struct Codec<ActivationEntry> {
  static constexpr std::string_view kManifest = "fraktor.activation_entry";
  static void Encode(const ActivationEntry& entry, Encoder& out);
  static ActivationEntry Decode(Decoder& in);
};

template <>
struct Codec<Member> {
  static constexpr std::string_view kManifest = "fraktor.member";
  static constexpr uint32_t kVersion = 1;  // 0 had no oldest_kinds
  static void Encode(const Member& member, Encoder& out);
  static Member Decode(Decoder& in);
};

// It is done.
struct EmbeddedDone {};

struct EmbeddedLease {
  uint64_t token = 0;
  absl::Duration ttl = {};
};
struct EmbeddedAcquire {
  using Reply = EmbeddedLease;
  GrainKey key = {};
  std::string owner = {};
};
struct EmbeddedRelease {
  using Reply = EmbeddedDone;
  GrainKey key = {};
  std::string owner = {};
  uint64_t token = 0;
};

struct EmbeddedLoaded {
  bool exists = false;
  ActivationEntry entry = {};
};
struct EmbeddedLoad {
  using Reply = EmbeddedLoaded;
  GrainKey key = {};
};
struct EmbeddedPut {
  using Reply = EmbeddedDone;
  GrainKey key = {};
  ActivationEntry entry = {};
  uint64_t expected_token = 0;
};
struct EmbeddedRemove {
  using Reply = EmbeddedDone;
  GrainKey key = {};
  uint64_t token = 0;
};

struct EmbeddedTerm {
  Member member = {};
  absl::Duration term = {};
};
struct EmbeddedJoin {
  using Reply = EmbeddedTerm;
  std::string authority = {};
  uint64_t system_uid = 0;
  std::vector<std::string> kinds = {};
  std::vector<std::string> oldest_kinds = {};
};
struct EmbeddedRenew {
  using Reply = EmbeddedTerm;
  std::string member_id = {};
};
struct EmbeddedBeginLeaving {
  using Reply = EmbeddedDone;
  std::string member_id = {};
};
struct EmbeddedLeave {
  using Reply = EmbeddedDone;
  std::string member_id = {};
};

// The sender wants to hear of each topology for a while, and now of the latest, if it does not know it.
struct EmbeddedWatch {
  uint64_t known_epoch = 0;
};
struct EmbeddedTopology {
  uint64_t epoch = 0;
  std::vector<Member> members = {};
};
// Both are said again and again, so what is lost with a node that ends is no loss. A topology is never too large for a
// frame: EmbeddedStoreOptions::max_topology_bytes.
template <>
inline constexpr bool kIsSuppressedDeadLetter<EmbeddedWatch> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<EmbeddedTopology> = true;

// Lost now and then, when a node or its store goes: who waits asks again.
template <>
inline constexpr bool kIsSuppressedDeadLetter<EmbeddedDone> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<EmbeddedLease> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<EmbeddedTerm> = true;

template <>
struct Codec<EmbeddedDone> : FieldCodec<EmbeddedDone> {
  static constexpr std::string_view kManifest = "fraktor.embedded.done";
};
template <>
struct Codec<EmbeddedLease> : FieldCodec<EmbeddedLease, &EmbeddedLease::token, &EmbeddedLease::ttl> {
  static constexpr std::string_view kManifest = "fraktor.embedded.lease";
};
template <>
struct Codec<EmbeddedAcquire> : FieldCodec<EmbeddedAcquire, &EmbeddedAcquire::key, &EmbeddedAcquire::owner> {
  static constexpr std::string_view kManifest = "fraktor.embedded.acquire";
};
template <>
struct Codec<EmbeddedRelease>
    : FieldCodec<EmbeddedRelease, &EmbeddedRelease::key, &EmbeddedRelease::owner, &EmbeddedRelease::token> {
  static constexpr std::string_view kManifest = "fraktor.embedded.release";
};
template <>
struct Codec<EmbeddedLoaded> : FieldCodec<EmbeddedLoaded, &EmbeddedLoaded::exists, &EmbeddedLoaded::entry> {
  static constexpr std::string_view kManifest = "fraktor.embedded.loaded";
};
template <>
struct Codec<EmbeddedLoad> : FieldCodec<EmbeddedLoad, &EmbeddedLoad::key> {
  static constexpr std::string_view kManifest = "fraktor.embedded.load";
};
template <>
struct Codec<EmbeddedPut>
    : FieldCodec<EmbeddedPut, &EmbeddedPut::key, &EmbeddedPut::entry, &EmbeddedPut::expected_token> {
  static constexpr std::string_view kManifest = "fraktor.embedded.put";
};
template <>
struct Codec<EmbeddedRemove> : FieldCodec<EmbeddedRemove, &EmbeddedRemove::key, &EmbeddedRemove::token> {
  static constexpr std::string_view kManifest = "fraktor.embedded.remove";
};
template <>
struct Codec<EmbeddedTerm> : FieldCodec<EmbeddedTerm, &EmbeddedTerm::member, &EmbeddedTerm::term> {
  static constexpr std::string_view kManifest = "fraktor.embedded.term";
};
template <>
struct Codec<EmbeddedJoin> : FieldCodec<EmbeddedJoin, &EmbeddedJoin::authority, &EmbeddedJoin::system_uid,
                                        &EmbeddedJoin::kinds, &EmbeddedJoin::oldest_kinds> {
  static constexpr std::string_view kManifest = "fraktor.embedded.join";
  static constexpr uint32_t kVersion = 1;  // 0 had no oldest_kinds
};
template <>
struct Codec<EmbeddedRenew> : FieldCodec<EmbeddedRenew, &EmbeddedRenew::member_id> {
  static constexpr std::string_view kManifest = "fraktor.embedded.renew";
};
template <>
struct Codec<EmbeddedBeginLeaving> : FieldCodec<EmbeddedBeginLeaving, &EmbeddedBeginLeaving::member_id> {
  static constexpr std::string_view kManifest = "fraktor.embedded.begin_leaving";
};
template <>
struct Codec<EmbeddedLeave> : FieldCodec<EmbeddedLeave, &EmbeddedLeave::member_id> {
  static constexpr std::string_view kManifest = "fraktor.embedded.leave";
};
template <>
struct Codec<EmbeddedWatch> : FieldCodec<EmbeddedWatch, &EmbeddedWatch::known_epoch> {
  static constexpr std::string_view kManifest = "fraktor.embedded.watch";
};
template <>
struct Codec<EmbeddedTopology> : FieldCodec<EmbeddedTopology, &EmbeddedTopology::epoch, &EmbeddedTopology::members> {
  static constexpr std::string_view kManifest = "fraktor.embedded.topology";
};

// What the systems of all nodes need, that of the store among them.
CodecSetup EmbeddedCodecs();

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_MESSAGES_H_
