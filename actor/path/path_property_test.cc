// Format(Parse(x)) == canonical(x) for generated paths. The generator knows the canonical form
// without the parser.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/internal/actor_path_comparator.h"
#include "fraktor/actor/path/internal/actor_path_formatter.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor {

using path_internal::ActorPathComparator;
using path_internal::ActorPathFormatter;

namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}

  uint64_t Below(uint64_t limit) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % limit;
  }

  std::string Of(std::string_view characters, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text.push_back(characters[Below(characters.size())]);
    return text;
  }

  std::string Segment() {
    static constexpr std::string_view kPlain = "abcXYZ019-_.*$+:@&=,!~';";
    std::string segment;
    const size_t pieces = 1 + Below(12);
    for (size_t i = 0; i < pieces; ++i) {
      if (Below(8) != 0) {
        segment += Of(kPlain, 1);
        continue;
      }
      uint64_t byte = 0x20 + Below(0x5f);
      if (byte == '/') byte = 'x';
      static constexpr std::string_view kUpper = "0123456789ABCDEF";
      static constexpr std::string_view kLower = "0123456789abcdef";
      const std::string_view digits = Below(2) == 0 ? kUpper : kLower;
      segment += {'%', digits[byte / 16], digits[byte % 16]};
    }
    return segment;
  }

  std::string Host() {
    switch (Below(4)) {
      case 0:
        return absl::StrCat(Below(256), ".", Below(256), ".", Below(256), ".", Below(256));
      case 1:
        return absl::StrCat("[2001:db8::", Of("0123456789abcdefABCDEF", 1 + Below(4)), "]");
      case 2:
        return absl::StrCat("h", Of("abcXYZ019", Below(8)), ".example.org", Below(2) == 0 ? "." : "");
      default:
        return absl::StrCat("H", Of("abcXYZ019-", Below(8)), "0");
    }
  }

 private:
  uint64_t state_;
};

TEST(ActorPathProperty, FormatOfParseIsTheCanonicalForm) {  // PTH-10, PTH-1
  Generator generator(20'260'101);
  static constexpr std::string_view kAlnum = "abcXYZ019";
  for (int round = 0; round < 5'000; ++round) {
    const std::string scheme = generator.Below(2) == 0 ? "pekko" : "pekko.tcp";
    const std::string system = generator.Of(kAlnum, 1) + generator.Of("abcXYZ019-_", generator.Below(10));
    std::string written = scheme + "://" + system;
    std::string canonical = written;
    if (generator.Below(3) != 0) {
      const std::string host = generator.Host();
      const uint64_t port = generator.Below(65536);
      absl::StrAppend(&written, "@", host, ":", std::string(generator.Below(3), '0'), port);
      absl::StrAppend(&canonical, "@", host, ":", port);
    }
    const size_t count = generator.Below(12);
    std::vector<std::string> segments;
    for (size_t i = 0; i < count; ++i) {
      segments.push_back(generator.Segment());
      written += std::string(1 + generator.Below(3) / 2, '/') + segments.back();
      canonical += "/" + segments.back();
    }
    if (segments.empty()) canonical += "/";
    uint64_t uid = 0;
    switch (generator.Below(3)) {
      case 0:
        written += std::string(generator.Below(3), '/');
        break;
      case 1: {
        uid = generator.Below(UINT64_MAX);
        absl::StrAppend(&written, "#", std::string(generator.Below(3), '0'), uid);
        if (segments.empty()) uid = 0;
        if (uid != 0) absl::StrAppend(&canonical, "#", uid);
        break;
      }
      default:
        break;
    }
    const absl::StatusOr<ActorPath> path = ActorPathParser::Parse(written);
    ASSERT_TRUE(path.ok()) << written << " " << path.status();
    ASSERT_EQ(ActorPathFormatter::Format(*path), canonical) << written;
    ASSERT_EQ(path->segment_count(), segments.size());
    for (size_t i = 0; i < segments.size(); ++i) ASSERT_EQ(path->segment(i), segments[i]) << written;
    ASSERT_EQ(path->uid().value(), uid);
    const ActorPath again = *ActorPathParser::Parse(canonical);
    ASSERT_TRUE(ActorPathComparator::RefEquals(again, *path)) << written;
    ASSERT_EQ(again.hash(), path->hash());
  }
}

}  // namespace
}  // namespace fraktor
