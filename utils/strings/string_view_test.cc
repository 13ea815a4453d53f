#include "fraktor/utils/strings/string_view.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

TEST(StringView, ConvertsBothWaysWithoutCopying) {
  std::string_view text("a\0b", 3);
  absl::string_view there = ToAbsl(text);
  std::string_view back = ToStd(there);
  EXPECT_EQ(back, text);
  EXPECT_EQ(back.data(), text.data());
}

TEST(StringView, EmptyStaysEmpty) {
  EXPECT_TRUE(ToAbsl(std::string_view()).empty());
  EXPECT_TRUE(ToStd(absl::string_view()).empty());
}

TEST(StringView, FitsWhereAbseilWantsItsOwn) { EXPECT_EQ(absl::StrCat(ToAbsl(std::string_view("x")), 1), "x1"); }

}  // namespace
}  // namespace fraktor
