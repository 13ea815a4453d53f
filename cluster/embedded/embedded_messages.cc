#include "fraktor/cluster/embedded/embedded_messages.h"

#include <cstdint>
#include <string>
#include <vector>

#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

void Codec<ActivationEntry>::Encode(const ActivationEntry& entry, Encoder& out) {
  out.Value(entry.owner);
  out.Value(entry.record.pid);
  out.Value(entry.record.snapshot);
  out.Value(entry.record.version);
  out.Value(entry.observed_at.nanoseconds());
  out.Value(entry.token);
  out.Value(entry.epoch);
}

ActivationEntry Codec<ActivationEntry>::Decode(Decoder& in) {
  ActivationEntry entry;
  entry.owner = in.Value<std::string>();
  entry.record.pid = in.Value<std::string>();
  entry.record.snapshot = in.Value<std::string>();
  entry.record.version = in.Value<uint64_t>();
  entry.observed_at = Instant::FromNanoseconds(in.Value<int64_t>());
  entry.token = in.Value<uint64_t>();
  entry.epoch = in.Value<uint64_t>();
  return entry;
}

void Codec<Member>::Encode(const Member& member, Encoder& out) {
  out.Value(member.authority);
  out.Value(member.incarnation);
  out.Value(member.system_uid);
  out.Value(member.kinds);
  out.Value(member.oldest_kinds);
  out.Value(static_cast<uint32_t>(member.status));
}

Member Codec<Member>::Decode(Decoder& in) {
  Member member;
  member.authority = in.Value<std::string>();
  member.incarnation = in.Value<uint64_t>();
  member.system_uid = in.Value<uint64_t>();
  member.kinds = in.Value<std::vector<std::string>>();
  if (in.version() >= 1) member.oldest_kinds = in.Value<std::vector<std::string>>();
  const auto status = in.Value<uint32_t>();
  if (status > static_cast<uint32_t>(MemberStatus::kLeaving)) {
    in.Fail("a status of a member that is none");
  } else {
    member.status = static_cast<MemberStatus>(status);
  }
  return member;
}

CodecSetup EmbeddedCodecs() {
  CodecSetup codecs;
  codecs.Add<EmbeddedDone, EmbeddedLease, EmbeddedAcquire, EmbeddedRelease, EmbeddedLoaded, EmbeddedLoad, EmbeddedPut,
             EmbeddedRemove, EmbeddedTerm, EmbeddedJoin, EmbeddedRenew, EmbeddedBeginLeaving, EmbeddedLeave,
             EmbeddedWatch, EmbeddedTopology>();
  return codecs;
}

}  // namespace fraktor::inline v0
