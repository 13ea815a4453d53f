#include "fraktor/utils/status/typed_error.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "gtest/gtest.h"

#include "fraktor/utils/status/status_macros.h"

namespace fraktor {

enum class FruitErrorKind { kRotten = 0, kUnripe = 1, kLast = 2 };
enum class StoneErrorKind : uint8_t { kHeavy = 0, kSharp = 1 };

template <>
struct ErrorKindTraits<FruitErrorKind> {
  static constexpr std::string_view kTypeUrl = "example.com/error/fruit";
  static constexpr FruitErrorKind kLast = FruitErrorKind::kLast;
};

template <>
struct ErrorKindTraits<StoneErrorKind> {
  static constexpr std::string_view kTypeUrl = "example.com/error/stone";
  static constexpr StoneErrorKind kLast = StoneErrorKind::kSharp;
};

namespace {

enum class NoTraits { kA };
static_assert(ErrorKind<FruitErrorKind> && ErrorKind<StoneErrorKind>);
static_assert(!ErrorKind<NoTraits> && !ErrorKind<int>);

absl::Status FruitPayload(std::string_view payload) {
  absl::Status status = absl::InternalError("from a peer");
  status.SetPayload("example.com/error/fruit", absl::Cord(std::string(payload)));
  return status;
}

TEST(TypedError, CarriesCodeKindTextAndDetails) {
  const absl::Status status = MakeError(absl::StatusCode::kInvalidArgument, FruitErrorKind::kUnripe,
                                        "apple 7 is green; wait a week", {{"index", 7}, {"fruit", "apple"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "apple 7 is green; wait a week");
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(status), FruitErrorKind::kUnripe);
  EXPECT_EQ(ErrorDetailNumberOf<FruitErrorKind>(status, "index"), 7);
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(status, "fruit"), "apple");
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(status, "colour"), std::nullopt);
  EXPECT_EQ(ErrorDetailNumberOf<FruitErrorKind>(status, "fruit"), std::nullopt);
}

TEST(TypedError, SurvivesCopyingAndAnnotating) {
  absl::Status status = MakeError(absl::StatusCode::kAborted, FruitErrorKind::kRotten, "pear", {{"index", 1}});
  const absl::Status copy = status;
  status = absl::OkStatus();
  const absl::Status annotated = Annotate(copy, "basket");
  EXPECT_EQ(annotated.message(), "basket: pear");
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(annotated), FruitErrorKind::kRotten);
  EXPECT_EQ(ErrorDetailNumberOf<FruitErrorKind>(annotated, "index"), 1);
}

TEST(TypedError, KeepsTheDomainsApart) {
  const absl::Status stone = MakeError(absl::StatusCode::kAborted, StoneErrorKind::kSharp, "flint");
  EXPECT_EQ(ErrorKindOf<StoneErrorKind>(stone), StoneErrorKind::kSharp);
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(stone), std::nullopt);
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(stone, "index"), std::nullopt);
}

TEST(TypedError, HasNoKindWhenNobodyGaveOne) {
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(absl::AbortedError("plain")), std::nullopt);
}

TEST(TypedError, TreatsAKindOfANewerPeerAsUnknownButKeepsItsNumberAndDetails) {
  const absl::Status status = FruitPayload("3;index=9");
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(status), std::nullopt);
  EXPECT_EQ(ErrorKindNumberOf<FruitErrorKind>(status), 3u);
  EXPECT_EQ(ErrorDetailNumberOf<FruitErrorKind>(status, "index"), 9);
  absl::Status stone = absl::InternalError("wide");
  stone.SetPayload("example.com/error/stone", absl::Cord("257"));  // would be kSharp if it were cut to eight bits
  EXPECT_EQ(ErrorKindOf<StoneErrorKind>(stone), std::nullopt);
}

TEST(TypedError, ReadsNothingFromAPayloadThatItCannotRead) {
  for (const char* payload : {"", "x", "-1", "1x", " 1", "18446744073709551616", ";index=1", "=", "%31"}) {
    EXPECT_EQ(ErrorKindOf<FruitErrorKind>(FruitPayload(payload)), std::nullopt) << payload;
  }
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(FruitPayload("1;a=%4"), "a"), std::nullopt);
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(FruitPayload("1;a=%zz"), "a"), std::nullopt);
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(FruitPayload("1;;a;=;b=2"), "b"), "2");
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(FruitPayload("1;" + std::string(1 << 20, 'x'))), std::nullopt);
}

TEST(TypedError, KeepsAnyBytesOfADetail) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  const absl::Status status = MakeError(absl::StatusCode::kAborted, FruitErrorKind::kRotten, "bytes",
                                        {{"odd;key=%", "x"}, {"bytes", bytes}, {"bytes", "second"}});
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(status, "bytes"), bytes);
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(status, "odd;key=%"), "x");
}

TEST(TypedError, KeepsTheWholeRangeOfNumbers) {
  const absl::Status status =
      MakeError(absl::StatusCode::kAborted, FruitErrorKind::kRotten, "numbers",
                {{"min", std::numeric_limits<int64_t>::min()}, {"max", std::numeric_limits<uint64_t>::max()}});
  EXPECT_EQ(ErrorDetailNumberOf<FruitErrorKind>(status, "min"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(status, "max"), "18446744073709551615");
  EXPECT_EQ(ErrorDetailNumberOf<FruitErrorKind>(status, "max"), std::nullopt);
}

TEST(TypedError, CutsWhatIsTooMuch) {
  const absl::Status status = MakeError(absl::StatusCode::kAborted, FruitErrorKind::kRotten, "much",
                                        {{"0", std::string(10'000, 'x')},
                                         {"1", 1},
                                         {"2", 2},
                                         {"3", 3},
                                         {"4", 4},
                                         {"5", 5},
                                         {"6", 6},
                                         {"7", 7},
                                         {"8", 8}});
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(status, "0"), std::string(kMaxErrorDetailBytes, 'x'));
  EXPECT_EQ(ErrorDetailNumberOf<FruitErrorKind>(status, "7"), 7);
  EXPECT_EQ(ErrorDetailOf<FruitErrorKind>(status, "8"), std::nullopt);
}

TEST(TypedError, MakesAnErrorEvenOfTheOkCode) {
  const absl::Status status = MakeError(absl::StatusCode::kOk, FruitErrorKind::kRotten, "not ok");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(ErrorKindOf<FruitErrorKind>(status), FruitErrorKind::kRotten);
}

TEST(TypedError, PrintsReadably) {
  const absl::Status status =
      MakeError(absl::StatusCode::kAborted, FruitErrorKind::kUnripe, "green", {{"index", 7}, {"name", "a b"}});
  EXPECT_EQ(status.GetPayload("example.com/error/fruit"), absl::Cord("1;index=7;name=a%20b"));
}

}  // namespace
}  // namespace fraktor
