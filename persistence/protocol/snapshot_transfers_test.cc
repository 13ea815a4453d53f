#include "fraktor/persistence/protocol/snapshot_transfers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

using protocol_internal::SnapshotTransfers;
using Step = SnapshotTransfers::Step;

constexpr size_t kNoLimit = size_t{1} << 40;
constexpr Instant kStart = Instant::FromNanoseconds(0);

SaveSnapshotPart PartOf(uint64_t number, std::string_view payload, uint64_t offset, uint64_t bytes) {
  SaveSnapshotPart part{.transfer = {.sender = 1, .number = number},
                        .offset = offset,
                        .total_bytes = payload.size(),
                        .bytes = std::string(payload.substr(offset, bytes))};
  if (offset == 0) part.head.metadata = {.persistence_id = "a", .sequence_nr = number};
  return part;
}

Snapshot SnapshotOf(uint64_t nr, std::string payload) {
  return {.metadata = {.persistence_id = "a", .sequence_nr = nr}, .payload = std::move(payload)};
}

GetSnapshotPart Get(uint64_t nr, uint64_t total, uint64_t offset, uint64_t bytes) {
  return {.metadata = {.persistence_id = "a", .sequence_nr = nr},
          .total_bytes = total,
          .offset = offset,
          .max_bytes = bytes,
          .number = nr};
}

TEST(SnapshotTransfers, PutPartsTogetherThatAreLostOrComeTwice) {
  SnapshotTransfers transfers({.max_bytes = 100});
  EXPECT_EQ(transfers.Take(PartOf(1, "abcdef", 0, 2), kNoLimit, kStart).taken.received_bytes, 2u);
  // The second part is lost.
  EXPECT_EQ(transfers.Take(PartOf(1, "abcdef", 4, 2), kNoLimit, kStart).taken.received_bytes, 2u);
  EXPECT_EQ(transfers.Take(PartOf(1, "abcdef", 0, 2), kNoLimit, kStart).taken.received_bytes, 2u);
  EXPECT_EQ(transfers.Take(PartOf(1, "abcdef", 2, 2), kNoLimit, kStart).taken.received_bytes, 4u);
  const SnapshotTransfers::Upload last = transfers.Take(PartOf(1, "abcdef", 4, 2), kNoLimit, kStart);
  EXPECT_EQ(last.step, Step::kComplete);
  EXPECT_EQ(last.snapshot.payload, "abcdef");
  EXPECT_EQ(last.snapshot.metadata.sequence_nr, 1u);
  // It is saved once.
  const SnapshotTransfers::Upload again = transfers.Take(PartOf(1, "abcdef", 4, 2), kNoLimit, kStart);
  EXPECT_EQ(again.step, Step::kTaken);
  EXPECT_EQ(again.taken.received_bytes, 6u);
}

TEST(SnapshotTransfers, RememberTheResultOfAnUploadSinceItsAnswerMayBeLost) {
  SnapshotTransfers transfers({.max_bytes = 100, .timeout = absl::Seconds(30)});
  ASSERT_EQ(transfers.Take(PartOf(1, "abc", 0, 3), kNoLimit, kStart).step, Step::kComplete);
  transfers.EndUpload({.transfer = {1, 1}, .metadata = {.persistence_id = "a", .sequence_nr = 77}}, kStart);
  EXPECT_EQ(transfers.bytes(), 0u);
  const SnapshotTransfers::Upload again = transfers.Take(PartOf(1, "abc", 0, 3), kNoLimit, kStart);
  EXPECT_EQ(again.step, Step::kEnded);
  EXPECT_EQ(again.saved.metadata.sequence_nr, 77u);
  transfers.ForgetIdle(kStart + absl::Seconds(30));
  EXPECT_TRUE(transfers.empty());
}

TEST(SnapshotTransfers, KeepResultsThatTakeNoRoomFromUploads) {
  constexpr uint64_t kUploads = 5000;
  SnapshotTransfers transfers({.max_bytes = 100});
  for (uint64_t number = 1; number <= kUploads; ++number) {
    ASSERT_EQ(transfers.Take(PartOf(number, "abc", 0, 3), kNoLimit, kStart).step, Step::kComplete) << number;
    transfers.EndUpload({.transfer = {1, number}}, kStart);
  }
  EXPECT_EQ(transfers.bytes(), 0u);
  EXPECT_EQ(transfers.Take(PartOf(kUploads, "abc", 0, 3), kNoLimit, kStart).step, Step::kEnded);
  // The oldest results are forgotten.
  EXPECT_EQ(transfers.Take(PartOf(1, "abc", 0, 3), kNoLimit, kStart).step, Step::kComplete);
}

TEST(SnapshotTransfers, ForgetAnUploadThatIsAborted) {
  SnapshotTransfers transfers({.max_bytes = 100, .timeout = absl::Seconds(30)});
  transfers.Take(PartOf(1, "abcdef", 0, 2), kNoLimit, kStart);
  EXPECT_EQ(transfers.bytes(), 6u);
  transfers.ForgetIdle(kStart + absl::Seconds(29));
  EXPECT_EQ(transfers.bytes(), 6u);
  transfers.ForgetIdle(kStart + absl::Seconds(30));
  EXPECT_EQ(transfers.bytes(), 0u);
  EXPECT_TRUE(transfers.empty());
  // A late part does not begin it again in its middle: the sender hears that nothing is there.
  const SnapshotTransfers::Upload late = transfers.Take(PartOf(1, "abcdef", 2, 2), kNoLimit, kStart);
  EXPECT_EQ(late.step, Step::kTaken);
  EXPECT_EQ(late.taken.received_bytes, 0u);
  EXPECT_TRUE(late.taken.has_room);
  EXPECT_TRUE(transfers.empty());
}

TEST(SnapshotTransfers, KeepTheLimitOfBytesForBothDirections) {
  SnapshotTransfers transfers({.max_bytes = 10});
  transfers.Take(PartOf(1, "abcdef", 0, 2), kNoLimit, kStart);
  EXPECT_FALSE(transfers.Take(PartOf(2, "ghijkl", 0, 2), kNoLimit, kStart).taken.has_room);
  transfers.Keep(SnapshotOf(3, "mnopqr"), kStart);
  EXPECT_FALSE(transfers.Has(Get(3, 6, 0, 2)));
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(transfers.BeginLoad(Get(3, 6, 0, 2), kStart).status()),
            JournalErrorKind::kOverloaded);
  EXPECT_EQ(transfers.bytes(), 6u);
  // One above the limit travels alone.
  SnapshotTransfers other({.max_bytes = 3});
  EXPECT_TRUE(other.Take(PartOf(1, "abcdef", 0, 2), kNoLimit, kStart).taken.has_room);
  // The limit of the store holds for all.
  const SnapshotTransfers::Upload refused = other.Take(PartOf(2, "abcdef", 0, 2), 5, kStart);
  EXPECT_EQ(refused.step, Step::kEnded);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(refused.saved.cause), JournalErrorKind::kTooLarge);
}

TEST(SnapshotTransfers, GiveOutPartsAndForgetTheSnapshotWithItsLast) {
  SnapshotTransfers transfers({.max_bytes = 10});
  transfers.Keep(SnapshotOf(3, "mnopqr"), kStart);
  EXPECT_EQ(transfers.Part(Get(3, 6, 0, 4), kStart).bytes, "mnop");
  EXPECT_EQ(transfers.Part(Get(3, 6, 4, 4), kStart).bytes, "qr");
  EXPECT_TRUE(transfers.empty());
  EXPECT_EQ(transfers.bytes(), 0u);
  // The last part was lost: the snapshot is loaded again, once for all that ask.
  EXPECT_TRUE(transfers.BeginLoad(Get(3, 6, 4, 4), kStart).value());
  EXPECT_FALSE(transfers.BeginLoad(Get(3, 6, 4, 4), kStart).value());
  EXPECT_FALSE(transfers.Has(Get(3, 6, 4, 4)));
  EXPECT_EQ(transfers.EndLoad(Get(3, 6, 4, 4).metadata, SnapshotOf(3, "mnopqr"), kStart).size(), 2u);
  EXPECT_EQ(transfers.Part(Get(3, 6, 4, 4), kStart).bytes, "qr");
  // A part that there is not.
  transfers.Keep(SnapshotOf(3, "mnopqr"), kStart);
  EXPECT_FALSE(transfers.Part(Get(3, 6, 6, 4), kStart).cause.ok());
  EXPECT_FALSE(transfers.Part(Get(3, 6, 0, 0), kStart).cause.ok());
  // It was deleted meanwhile.
  SnapshotTransfers empty({.max_bytes = 10});
  EXPECT_TRUE(empty.BeginLoad(Get(3, 6, 4, 4), kStart).value());
  EXPECT_EQ(empty.EndLoad(Get(3, 6, 4, 4).metadata, std::nullopt, kStart).size(), 1u);
  EXPECT_EQ(empty.bytes(), 0u);
}

}  // namespace
}  // namespace fraktor
