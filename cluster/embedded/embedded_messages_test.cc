// Nodes of two versions in one cluster: each message is understood, or refused with a reason.
#include "fraktor/cluster/embedded/embedded_messages.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

// As a program knew them that had no oldest_kinds: the same manifests, version 0.
struct OldMember {
  std::string authority = {};
  uint64_t incarnation = 0;
  uint64_t system_uid = 0;
  std::vector<std::string> kinds = {};
  uint32_t status = 0;
};
struct OldTopology {
  uint64_t epoch = 0;
  std::vector<OldMember> members = {};
};
struct OldJoin {
  std::string authority = {};
  uint64_t system_uid = 0;
  std::vector<std::string> kinds = {};
};

template <>
struct Codec<OldMember> : FieldCodec<OldMember, &OldMember::authority, &OldMember::incarnation, &OldMember::system_uid,
                                     &OldMember::kinds, &OldMember::status> {
  static constexpr std::string_view kManifest = "fraktor.member";
};
template <>
struct Codec<OldTopology> : FieldCodec<OldTopology, &OldTopology::epoch, &OldTopology::members> {
  static constexpr std::string_view kManifest = "fraktor.embedded.topology";
};
template <>
struct Codec<OldJoin> : FieldCodec<OldJoin, &OldJoin::authority, &OldJoin::system_uid, &OldJoin::kinds> {
  static constexpr std::string_view kManifest = "fraktor.embedded.join";
};

namespace {

std::shared_ptr<const CodecRegistry> NewCodecs() { return EmbeddedCodecs().Build().value(); }
std::shared_ptr<const CodecRegistry> OldCodecs() {
  CodecSetup codecs;
  codecs.Add<OldTopology, OldJoin>();
  return codecs.Build().value();
}

// What `from` writes, as `to` reads it.
template <class To, class From>
absl::StatusOr<To> Send(const CodecRegistry& from, const CodecRegistry& to, const From& message) {
  std::string bytes;
  const absl::StatusOr<const MessageCodec*> codec = from.Encode(message, bytes);
  if (!codec.ok()) return codec.status();
  return to.DecodeAs<To>({.manifest = (*codec)->manifest(), .version = (*codec)->version(), .bytes = bytes});
}

const Member kMember{.authority = "a:1",
                     .incarnation = 7,
                     .system_uid = 5,
                     .kinds = {"account", "clock"},
                     .oldest_kinds = {"clock"},
                     .status = MemberStatus::kLeaving};

TEST(EmbeddedMessages, AreReadAsTheyWereWritten) {
  const auto codecs = NewCodecs();
  const absl::StatusOr<EmbeddedTopology> topology =
      Send<EmbeddedTopology>(*codecs, *codecs, EmbeddedTopology{.epoch = 9, .members = {kMember}});
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->epoch, 9u);
  EXPECT_EQ(topology->members, std::vector<Member>{kMember});
  const absl::StatusOr<EmbeddedJoin> join = Send<EmbeddedJoin>(
      *codecs, *codecs, EmbeddedJoin{.authority = "a:1", .kinds = {"clock"}, .oldest_kinds = {"clock"}});
  ASSERT_TRUE(join.ok()) << join.status();
  EXPECT_EQ(join->oldest_kinds, std::vector<std::string>{"clock"});
}

// CLU-13
TEST(EmbeddedMessages, OfAnOlderNodeAreUnderstood) {
  const OldMember old{.authority = "a:1", .incarnation = 7, .system_uid = 5, .kinds = {"account"}, .status = 1};
  const absl::StatusOr<EmbeddedTopology> topology =
      Send<EmbeddedTopology>(*OldCodecs(), *NewCodecs(), OldTopology{.epoch = 9, .members = {old, old}});
  ASSERT_TRUE(topology.ok()) << topology.status();
  const Member same{
      .authority = "a:1", .incarnation = 7, .system_uid = 5, .kinds = {"account"}, .status = MemberStatus::kLeaving};
  EXPECT_EQ(topology->members, (std::vector<Member>{same, same}));
  const absl::StatusOr<EmbeddedJoin> join =
      Send<EmbeddedJoin>(*OldCodecs(), *NewCodecs(), OldJoin{.authority = "a:1", .system_uid = 5, .kinds = {"clock"}});
  ASSERT_TRUE(join.ok()) << join.status();
  EXPECT_EQ(join->kinds, std::vector<std::string>{"clock"});
  EXPECT_TRUE(join->oldest_kinds.empty());
}

// CLU-13
TEST(EmbeddedMessages, OfANewerNodeAreRefusedAndNotTakenForSomethingElse) {
  const absl::StatusOr<OldTopology> topology =
      Send<OldTopology>(*NewCodecs(), *OldCodecs(), EmbeddedTopology{.epoch = 9, .members = {kMember}});
  EXPECT_NE(std::string(topology.status().message()).find("newer version"), std::string::npos) << topology.status();
  const absl::StatusOr<OldJoin> join =
      Send<OldJoin>(*NewCodecs(), *OldCodecs(), EmbeddedJoin{.authority = "a:1", .kinds = {"clock"}});
  EXPECT_EQ(ErrorKindOf<SerializationErrorKind>(join.status()), SerializationErrorKind::kNewerVersion) << join.status();
}

}  // namespace
}  // namespace fraktor
