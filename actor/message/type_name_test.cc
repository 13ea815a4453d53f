#include "fraktor/actor/message/type_name.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

struct GlobalMessage {};

namespace shop {
struct Order {
  struct Line {};
  enum class State { kOpen };
};
template <class T, class U = int>
struct Box {};
template <size_t kSize>
struct Sized {};
template <Order::State kState>
struct InState {};
struct longint {};        // NOLINT(readability-identifier-naming)
struct my_long {};        // NOLINT(readability-identifier-naming)
struct long_interest {};  // NOLINT(readability-identifier-naming)
namespace {
struct Hidden {};
}  // namespace
}  // namespace shop

namespace fraktor::inline v0 {

struct Ours {};
}  // namespace fraktor::inline v0

namespace fraktor {
namespace {

// The texts are literals, because two compilers must produce the same ones.

TEST(TypeName, NamesClassesWithTheirNamespaces) {
  static_assert(TypeName<shop::Order>() == "shop::Order");
  EXPECT_EQ(TypeName<GlobalMessage>(), "GlobalMessage");
  EXPECT_EQ(TypeName<shop::Order::Line>(), "shop::Order::Line");
  EXPECT_EQ(TypeName<shop::Order::State>(), "shop::Order::State");
  EXPECT_EQ(TypeName<shop::Hidden>(), "shop::(anonymous namespace)::Hidden");
}

TEST(TypeName, LeavesOutInlineNamespaces) {
  EXPECT_EQ(TypeName<Ours>(), "fraktor::Ours");
  EXPECT_EQ(TypeName<std::string>(), "std::basic_string<char>");
  EXPECT_EQ(TypeName<shop::Box<Ours>>(), "shop::Box<fraktor::Ours>");
}

TEST(TypeName, SpellsNumbersInOneWay) {
  EXPECT_EQ(TypeName<int>(), "int");
  EXPECT_EQ(TypeName<long>(), "long");                              // NOLINT(google-runtime-int)
  EXPECT_EQ(TypeName<unsigned long>(), "unsigned long");            // NOLINT(google-runtime-int)
  EXPECT_EQ(TypeName<long long>(), "long long");                    // NOLINT(google-runtime-int)
  EXPECT_EQ(TypeName<unsigned long long>(), "unsigned long long");  // NOLINT(google-runtime-int)
  EXPECT_EQ(TypeName<short>(), "short");                            // NOLINT(google-runtime-int)
  EXPECT_EQ(TypeName<unsigned short>(), "unsigned short");          // NOLINT(google-runtime-int)
  EXPECT_EQ((TypeName<shop::Box<unsigned, unsigned char>>()), "shop::Box<unsigned int, unsigned char>");
  EXPECT_EQ(TypeName<shop::Sized<24>>(), "shop::Sized<24>");
}

TEST(TypeName, DoesNotTouchNamesThatOnlyLookLikeNumbers) {
  EXPECT_EQ(TypeName<shop::longint>(), "shop::longint");
  EXPECT_EQ(TypeName<shop::my_long>(), "shop::my_long");
  EXPECT_EQ(TypeName<shop::long_interest>(), "shop::long_interest");
}

TEST(TypeName, PutsNoSpacesIntoTemplates) {
  EXPECT_EQ(TypeName<std::vector<std::vector<shop::Order>>>(), "std::vector<std::vector<shop::Order>>");
  EXPECT_EQ((TypeName<shop::Box<const char*, shop::Order&>>()), "shop::Box<const char*, shop::Order&>");
  EXPECT_EQ((TypeName<std::map<std::string, int64_t>>()), "std::map<std::basic_string<char>, long>");
  EXPECT_EQ(TypeName<std::unique_ptr<shop::Order>>(), "std::unique_ptr<shop::Order>");
  EXPECT_EQ((TypeName<std::array<int8_t, 3>>()), "std::array<signed char, 3>");
  EXPECT_EQ(TypeName<shop::InState<shop::Order::State::kOpen>>(), "shop::InState<shop::Order::State::kOpen>");
}

TEST(TypeName, HashesAsFnv1aDoes) {
  static_assert(HashOfTypeName("") == 0xcbf29ce484222325);
  static_assert(HashOfTypeName("a") == 0xaf63dc4c8601ec8c);
  static_assert(HashOfTypeName("foobar") == 0x85944171f73967e8);
  EXPECT_NE(HashOfTypeName(TypeName<shop::Order>()), HashOfTypeName(TypeName<shop::Order::Line>()));
}

}  // namespace
}  // namespace fraktor
