#include "fraktor/actor/path/actor_path.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/internal/actor_path_comparator.h"
#include "fraktor/actor/path/internal/actor_path_formatter.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/actor/path/internal/path_hash.h"
#include "fraktor/actor/path/internal/uri_parser.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/selection/internal/actor_selection_resolver.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor {

using actor_internal::ActorSelectionResolver;
using actor_internal::ResolvedSelection;
using path_internal::ActorPathComparator;
using path_internal::ActorPathFormatter;
using path_internal::ActorPathValidator;
using path_internal::AutoName;
using path_internal::AutoNameText;
using path_internal::kMaxUriLength;
using path_internal::ParseAutoName;
using path_internal::TempName;
using path_internal::UriParser;
using path_internal::UriParts;

namespace {

ActorPath Path(std::string_view text) {
  absl::StatusOr<ActorPath> path = ActorPathParser::Parse(text);
  EXPECT_TRUE(path.ok()) << path.status();
  return *std::move(path);
}

PathSegment Segment(std::string_view text) { return *PathSegment::Parse(text); }

std::optional<ActorPathErrorKind> KindOf(const absl::Status& status) { return ErrorKindOf<ActorPathErrorKind>(status); }

TEST(UriParser, TakesAUriApart) {  // PTH-3
  const UriParts uri = *UriParser::Parse("http://joe:x@[2001:db8::1]:80/a;p=1/b%20c?q=/?#frag/?");
  EXPECT_EQ(uri.scheme, "http");
  EXPECT_TRUE(uri.has_authority);
  EXPECT_TRUE(uri.is_server);
  EXPECT_EQ(uri.authority, "joe:x@[2001:db8::1]:80");
  EXPECT_EQ(uri.userinfo, "joe:x");
  EXPECT_EQ(uri.host, "[2001:db8::1]");
  EXPECT_EQ(uri.port, 80);
  EXPECT_EQ(uri.path, "/a;p=1/b%20c");
  EXPECT_EQ(uri.query, "q=/?");
  EXPECT_EQ(uri.fragment, "frag/?");
}

TEST(UriParser, KnowsWhatIsMissing) {
  const UriParts relative = *UriParser::Parse("a/b:c");
  EXPECT_EQ(relative.scheme, "");
  EXPECT_FALSE(relative.has_authority);
  EXPECT_EQ(relative.path, "a/b:c");
  EXPECT_EQ(relative.query, std::nullopt);
  EXPECT_EQ(relative.fragment, std::nullopt);
  const UriParts empty_parts = *UriParser::Parse("file:///etc?#");
  EXPECT_TRUE(empty_parts.has_authority);
  EXPECT_EQ(empty_parts.authority, "");
  EXPECT_EQ(empty_parts.query, "");
  EXPECT_EQ(empty_parts.fragment, "");
  const UriParts opaque = *UriParser::Parse("mailto:joe");
  EXPECT_EQ(opaque.path, "joe");
  EXPECT_EQ(UriParser::Parse("x://host:/")->port, std::nullopt);
  EXPECT_TRUE(UriParser::Parse("")->path.empty());
}

TEST(UriParser, KeepsTheCaseOfEverything) {
  const UriParts uri = *UriParser::Parse("HtTp://Host/Path");
  EXPECT_EQ(uri.scheme, "HtTp");
  EXPECT_EQ(uri.host, "Host");
  EXPECT_EQ(uri.path, "/Path");
}

TEST(UriParser, TakesANameThatIsNoServerAsRegistryBased) {
  for (std::string_view text :
       {"x://my_sys/", "x://a@b@c/", "x://host:99999/", "x://host:-1/", "x://256.0.0.1/", "x://a..b/"}) {
    const absl::StatusOr<UriParts> uri = UriParser::Parse(text);
    ASSERT_TRUE(uri.ok()) << text << " " << uri.status();
    EXPECT_FALSE(uri->is_server) << text;
    EXPECT_EQ(uri->host, "") << text;
    EXPECT_EQ(uri->port, std::nullopt) << text;
    EXPECT_FALSE(uri->authority.empty()) << text;
  }
}

TEST(UriParser, KnowsIpv6) {
  for (std::string_view host : {"[::]", "[::1]", "[1::]", "[2001:db8::1]", "[1:2:3:4:5:6:7:8]", "[::ffff:1.2.3.4]",
                                "[1:2:3:4:5:6:1.2.3.4]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[FE80::A]"}) {
    const std::string text = "x://" + std::string(host) + ":1/";  // the parts are views of it
    const absl::StatusOr<UriParts> uri = UriParser::Parse(text);
    ASSERT_TRUE(uri.ok()) << host << " " << uri.status();
    EXPECT_EQ(uri->host, host);
    EXPECT_EQ(uri->port, 1);
  }
  for (std::string_view host : {"[]", "[:]", "[1]", "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]", "[1::2::3]", "[12345::]",
                                "[::g]", "[1:2:3:4:5:6:7::8]", "[::1", "[::1%]", "[::1%25]x", "[::1%a b]",
                                "[::256.1.1.1]", "[1.2.3.4::]", "a[::1]", "[::1]a", "[::1%\n]"}) {
    const absl::Status status = UriParser::Parse("x://" + std::string(host) + "/").status();
    EXPECT_EQ(ErrorKindOf<UriErrorKind>(status), UriErrorKind::kInvalidHost) << host << " " << status;
  }
}

TEST(UriParser, SaysWhereAndWhatIsWrong) {
  struct Case {
    std::string_view text;
    UriErrorKind kind;
    int64_t index;
  };
  for (const Case& c : std::vector<Case>{
           {"1a://h/", UriErrorKind::kInvalidScheme, 0},
           {"a_b://h/", UriErrorKind::kInvalidScheme, 1},
           {":x", UriErrorKind::kInvalidScheme, 0},
           {"x://h/a b", UriErrorKind::kInvalidCharacter, 7},
           {"x://h/a%2", UriErrorKind::kInvalidEscape, 7},
           {"x://h%2/", UriErrorKind::kInvalidEscape, 5},
           {"x://h|/", UriErrorKind::kInvalidCharacter, 5},
           {"x://h/#a#b", UriErrorKind::kInvalidCharacter, 8},
           {"x://h/?a^", UriErrorKind::kInvalidCharacter, 8},
           {"x://h/#%zz", UriErrorKind::kInvalidEscape, 7},
           {"x://h/\x7f", UriErrorKind::kInvalidCharacter, 6},
           {"x://h/\xff", UriErrorKind::kInvalidCharacter, 6},
           {"x://h\n/", UriErrorKind::kInvalidCharacter, 5},
       }) {
    const absl::Status status = UriParser::Parse(c.text).status();
    EXPECT_EQ(ErrorKindOf<UriErrorKind>(status), c.kind) << status;
    EXPECT_EQ(ErrorDetailNumberOf<UriErrorKind>(status, "index"), c.index) << status;
  }
  // A NUL is allowed in no part.
  for (const std::string& text :
       {std::string("x\0://h/", 7), std::string("x://u\0@h:1/", 11), std::string("x://h\0/", 7),
        std::string("x://h/\0", 7), std::string("x://h/?\0", 8), std::string("x://h/#\0", 8)}) {
    EXPECT_FALSE(UriParser::Parse(text).ok()) << QuotedForText(text);
  }
  const absl::Status long_text = UriParser::Parse(std::string(kMaxUriLength + 1, 'a')).status();
  EXPECT_EQ(ErrorKindOf<UriErrorKind>(long_text), UriErrorKind::kTooLong);
  EXPECT_LT(long_text.message().size(), 400u);
}

TEST(ActorPathError, NamesTheThingTheValueThePositionAndWhatToDo) {  // PTH-9
  EXPECT_EQ(ToStd(ActorPathParser::Parse("pekko://s/user/a(b").status().message()),
            "segment 1 of \"pekko://s/user/a(b\": '(' at 1 is not allowed; use ASCII letters, digits, -_.*$+:@&=,!~'; "
            "or %HH");
  EXPECT_EQ(ToStd(ActorPathParser::Parse("pekko://s@h:65536/a").status().message()),
            "path \"pekko://s@h:65536/a\": port \"65536\" is no number from 0 to 65535; write scheme://system or "
            "scheme://system@host:port");
  EXPECT_EQ(ToStd(ActorPathParser::Parse("pekko://s@h_1:1/a").status().message()),
            "path \"pekko://s@h_1:1/a\": host \"h_1\" is no host name or address at 1; write scheme://system or "
            "scheme://system@host:port");
  EXPECT_EQ(ToStd(ActorPathParser::Parse("pekko://s@h/a").status().message()),
            "path \"pekko://s@h/a\": the port is missing; write scheme://system or scheme://system@host:port");
  EXPECT_EQ(ToStd(ActorPathParser::Parse("pekko://s/a|b").status().message()),
            "uri \"pekko://s/a|b\": '|' at 11 is not allowed there; write it as %HH or leave it out");
  // The error gives no advice that the parser would refuse as well.
  EXPECT_EQ(ToStd(ActorPathParser::Parse("pekko://s/a\nb").status().message()),
            "uri \"pekko://s/a\\x0ab\": '\\x0a' at 11 is not allowed there; leave it out");
  EXPECT_EQ(ToStd(ActorPathParser::Parse("pekko://s@[fe80::1%10]:1/a").status().message()),
            "uri \"pekko://s@[fe80::1%10]:1/a\": no IPv6 address stands in the brackets at 10; write it like "
            "[2001:db8::1] or [fe80::1%25eth0]");
  EXPECT_EQ(ToStd(ActorPathParts::Local("s", "").status().message()), "the scheme is empty; use pekko");
  EXPECT_EQ(ToStd(ActorPathParts::Local("s", "pe_kko").status().message()),
            "scheme \"pe_kko\": '_' at 2 is not allowed; use a letter, then letters, digits, +, - and .");
  EXPECT_EQ(ToStd(ActorSelection::Parse("a:b").status().message()),
            "selection \"a:b\": \"a\" before ':' is read as a scheme; write pekko://system/..., or begin at the root "
            "(/user/...) to mean a name with a colon");
  EXPECT_EQ(
      ToStd(ActorSelection::Parse("a/*#1").status().message()),
      "element 1 of selection \"a/*#1\": uid \"1\" at 2 stands behind a wildcard or .., which have none; leave it "
      "out");
}

// Returns whether a text could forge a line of a log.
bool HasControlCharacter(std::string_view text) {
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) return true;
  }
  return false;
}

TEST(ActorPathError, NeverLetsAControlCharacterIntoALogLine) {
  for (int byte = 0; byte < 256; ++byte) {
    if (byte >= 0x20 && byte < 0x7f) continue;
    const char c = static_cast<char>(byte);
    static constexpr char kHex[] = "0123456789ABCDEF";
    const std::string raw(1, c);
    const std::string encoded = {'%', kHex[byte >> 4], kHex[byte & 15]};
    for (const std::string& evil : {raw, encoded}) {
      for (const std::string& text :
           {"pekko://s/user/a" + evil + "b", "pekko://s" + evil + "/user", "pekko" + evil + "://s/user",
            "pekko://s@h" + evil + ":1/user", "pekko://s@[::1%" + evil + "]:1/user",
            "pekko://s@[::1" + evil + "]:1/user", "pekko://s@[::1" + evil + "a]:1/user",
            "pekko://s@h:1" + evil + "/user", "pekko://s/user/a#1" + evil, "pekko://s/user/a?" + evil, evil}) {
        const absl::StatusOr<ActorPath> path = ActorPathParser::Parse(text);
        EXPECT_FALSE(path.ok()) << path->ToCanonical();
        EXPECT_FALSE(HasControlCharacter(ToStd(path.status().message()))) << path.status();
        const absl::StatusOr<ActorSelection> selection = ActorSelection::Parse(text);
        EXPECT_FALSE(selection.ok()) << text;
        EXPECT_FALSE(HasControlCharacter(ToStd(selection.status().message()))) << selection.status();
      }
      EXPECT_FALSE(PathSegment::Create("a" + evil).ok());
      EXPECT_FALSE(PathSegment::Parse("$a" + evil).ok());
      EXPECT_FALSE(PathAuthority::Create("pekko", "h" + evil, 1).ok());
      EXPECT_FALSE(PathAuthority::Create("pekko", "[::1" + evil + "]", 1).ok());
      EXPECT_FALSE(PathAuthority::Create("pekko" + evil, "h", 1).ok());
      EXPECT_FALSE(ActorPathParts::Local("s" + evil).ok());
      EXPECT_FALSE(HasControlCharacter(ToStd(PathSegment::Create("a" + evil).status().message())));
      EXPECT_FALSE(HasControlCharacter(ToStd(PathAuthority::Create("pekko", "h" + evil, 1).status().message())));
      EXPECT_FALSE(HasControlCharacter(ToStd(ActorPathParts::Local("s" + evil).status().message())));
    }
  }
}

TEST(ActorPathParser, RefusesHostsAbove255Bytes) {  // PTH-3
  const std::string host =
      std::string(63, 'a') + "." + std::string(63, 'b') + "." + std::string(63, 'c') + "." + std::string(63, 'd');
  ASSERT_EQ(host.size(), 255u);
  EXPECT_TRUE(ActorPathParser::Parse("pekko://s@" + host + ":1/user").ok());
  EXPECT_EQ(KindOf(ActorPathParser::Parse("pekko://s@e" + host + ":1/user").status()),
            ActorPathErrorKind::kUnsupportedAuthority);
  EXPECT_TRUE(PathAuthority::Create("pekko", host, 1).ok());
  EXPECT_EQ(KindOf(PathAuthority::Create("pekko", "e" + host, 1).status()), ActorPathErrorKind::kUnsupportedAuthority);
}

TEST(ActorPathParser, TakesNamesThatTheRuntimeHasMade) {  // PTH-2
  EXPECT_EQ(Path("pekko://s/user/$a").name(), "$a");
  EXPECT_EQ(Path("pekko://s/temp/greeter$b").name(), "greeter$b");
  EXPECT_EQ(PathSegment::Parse("$a")->raw(), "$a");
  EXPECT_FALSE(PathSegment::Create("$a").ok());
}

TEST(ActorPathParser, IsCanonicalAfterOneRound) {  // PTH-1, PTH-10
  EXPECT_EQ(ActorPathFormatter::Format(Path("pekko://s@h:00080//user///a/")), "pekko://s@h:80/user/a");
  EXPECT_EQ(ActorPathFormatter::Format(Path("pekko://s/user/a#007")), "pekko://s/user/a#7");
  EXPECT_EQ(ActorPathFormatter::FormatRef(Path("pekko://s/user/a#7")), "Actor[pekko://s/user/a#7]");
  EXPECT_EQ(ActorPathFormatter::FormatRef(Path("pekko://s/user/a")), "Actor[pekko://s/user/a]");
  std::string buffer = "> ";
  ActorPathFormatter::AppendTo(Path("pekko://s/user/a#7"), buffer);
  EXPECT_EQ(buffer, "> pekko://s/user/a#7");
}

TEST(ActorPath, ComparesSystemAuthorityAndSegmentsButNotTheUid) {  // PTH-5
  const ActorPath a = Path("pekko://s@h:1/user/a#1");
  EXPECT_EQ(a, Path("pekko://s@h:1/user/a#2"));
  EXPECT_EQ(a.hash(), Path("pekko://s@h:1/user/a").hash());
  EXPECT_TRUE(ActorPathComparator::Equals(a, Path("pekko://s@h:1//user/a/")));
  EXPECT_FALSE(ActorPathComparator::RefEquals(a, Path("pekko://s@h:1/user/a#2")));
  EXPECT_TRUE(ActorPathComparator::RefEquals(a, Path("pekko://s@h:1/user/a#1")));
  EXPECT_EQ(ActorPathComparator::RefHash(a), 1u);
  EXPECT_EQ(ActorPathComparator::RefHash(a.WithoutUid()), a.hash());
  for (std::string_view other :
       {"pekko://t@h:1/user/a", "pekko://s@g:1/user/a", "pekko://s@h:2/user/a", "pekko.tcp://s@h:1/user/a",
        "pekko://s/user/a", "pekko://s@h:1/user/b", "pekko://s@h:1/user", "pekko://s@h:1/user/a/a",
        "pekko://s@h:1/User/a", "pekko://s@H:1/user/a"}) {
    EXPECT_FALSE(a == Path(other)) << other;
    EXPECT_NE(a.hash(), Path(other).hash()) << other;
    EXPECT_FALSE(ActorPathComparator::Compare(a, Path(other)) == 0) << other;
  }
  EXPECT_FALSE(Path("pekko://s/user/a%2Db") == Path("pekko://s/user/a-b"));
  // Without an authority the scheme does not say where an actor is.
  EXPECT_EQ(Path("pekko://s/user/a"), Path("pekko.tcp://s/user/a"));
  EXPECT_EQ(Path("pekko://s/user/a").hash(), Path("pekko.tcp://s/user/a").hash());
  EXPECT_TRUE(ActorPathComparator::Compare(Path("pekko://s/user/a"), Path("pekko.tcp://s/user/a")) == 0);
}

TEST(ActorPath, OrdersAStrictWeakOrder) {
  std::vector<ActorPath> paths;
  for (std::string_view root : {"pekko://a", "pekko://b", "pekko.tcp://a", "pekko://a@h:1", "pekko.tcp://a@h:1",
                                "pekko.tcp://b@h:1", "pekko://a@h:10"}) {
    for (std::string_view rest : {"", "/x", "/y", "/x/x", "/y/x"})
      paths.push_back(Path(std::string(root) + std::string(rest)));
  }
  for (const ActorPath& a : paths) {
    for (const ActorPath& b : paths) {
      EXPECT_EQ(ActorPathComparator::Compare(a, b) == 0, a == b) << a.text() << " " << b.text();
      EXPECT_EQ(ActorPathComparator::Less(a, b), ActorPathComparator::Compare(b, a) > 0) << a.text() << " " << b.text();
      for (const ActorPath& c : paths) {
        if (ActorPathComparator::Less(a, b) && ActorPathComparator::Less(b, c)) {
          EXPECT_TRUE(ActorPathComparator::Less(a, c));
        }
      }
    }
  }
}

TEST(ActorPath, GrowsAndShrinksBySegments) {  // PTH-5
  const ActorPath user = ActorPath::Of(*ActorPathParts::Local("s"), Guardian::kUser);
  EXPECT_EQ(user.text(), "pekko://s/user");
  const ActorPath a = user.WithUid(ActorUid(3)).Child(Segment("a"));
  EXPECT_EQ(a.ToCanonical(), "pekko://s/user/a");
  EXPECT_EQ(a, Path("pekko://s/user/a"));
  EXPECT_EQ(a.hash(), Path("pekko://s/user/a").hash());
  EXPECT_EQ(a.WithUid(ActorUid(5)).Parent().ToCanonical(), "pekko://s/user");
  EXPECT_EQ(a.Parent(), user);
  EXPECT_EQ(user.Parent().text(), "pekko://s/");
  EXPECT_EQ(user.Parent().Parent().text(), "pekko://s/");
  EXPECT_TRUE(user.Parent().IsRoot());
  EXPECT_EQ(user.Parent().name(), "");
  EXPECT_EQ(user.Parent().WithUid(ActorUid(9)).ToCanonical(), "pekko://s/");
  ActorPath deep = user;
  std::string text = "pekko://s/user";
  for (int i = 0; i < 40; ++i) {
    deep = deep.Child(PathSegment::Auto(static_cast<uint64_t>(i)));
    text += "/" + AutoName(static_cast<uint64_t>(i));
    EXPECT_EQ(deep.text(), text);
    EXPECT_EQ(deep.hash(), Path(text).hash());
  }
  EXPECT_EQ(deep.segment(39), "$M");
  EXPECT_EQ(Path("pekko.tcp://s@h:1/user/a").parts().ToString(), "pekko.tcp://s@h:1");
  EXPECT_EQ(Path("pekko.tcp://s@h:1/user/a").authority()->ToString(), "pekko.tcp://h:1");
  EXPECT_EQ(Path("pekko://s/a").authority(), std::nullopt);
}

TEST(ActorPath, HasAHashThatNeverChanges) {
  // Other nodes and later versions rely on these numbers. A change breaks them.
  EXPECT_EQ(Path("pekko://s/").hash(), path_internal::LocalRootHash("s"));
  EXPECT_EQ(Path("pekko://shop/user/cart").hash(), 6622347687554144334u);
  EXPECT_EQ(Path("pekko://shop@10.0.0.7:2552/user/customer-4711/cart").hash(), 8307925209110274427u);
}

TEST(PathHash, ComparesAndPacksEveryByteOfAName) {
  for (size_t size = 0; size < 40; ++size) {
    const std::string name = std::string("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO").substr(0, size);
    EXPECT_TRUE(path_internal::EqualBytes(name, std::string(name)));
    EXPECT_FALSE(path_internal::EqualBytes(name, name + "x"));
    for (size_t i = 0; i < size; ++i) {
      std::string other = name;
      other[i] = '!';
      EXPECT_FALSE(path_internal::EqualBytes(name, other)) << size << " " << i;
      EXPECT_NE(path_internal::HashBytes(name), path_internal::HashBytes(other)) << size << " " << i;
      if (size < 8) {
        EXPECT_EQ(static_cast<char>(path_internal::PackBytes(name) >> (8 * i)), name[i]);
      }
    }
  }
}

TEST(ActorPath, SpreadsHashesOfSimilarPaths) {
  absl::flat_hash_set<uint64_t> hashes;
  absl::flat_hash_set<uint32_t> low;
  const ActorPath user = Path("pekko://s/user");
  constexpr int kPaths = 20'000;
  for (int i = 0; i < kPaths; ++i) {
    const ActorPath path = user.Child(PathSegment::Auto(static_cast<uint64_t>(i)));
    EXPECT_TRUE(hashes.insert(path.hash()).second);
    low.insert(static_cast<uint32_t>(path.hash()) & 0xffff);
  }
  // 20 000 random numbers hit about 17 230 of the 65 536 buckets.
  EXPECT_GT(low.size(), 16'800u);
}

TEST(PathSegment, DecodesWhatItEncodes) {
  EXPECT_EQ(PathSegment::Create("a%20b%7E")->Decoded(), "a b~");
  EXPECT_EQ(PathSegment::Create("a%20b")->raw(), "a%20b");
  EXPECT_FALSE(*PathSegment::Create("a%2Db") == *PathSegment::Create("a-b"));
}

TEST(ActorPathValidator, ChecksEverySegmentOfARelativePath) {
  EXPECT_TRUE(ActorPathValidator::ValidateRelative("a/../b//c/").ok());
  EXPECT_TRUE(ActorPathValidator::ValidateRelative("").ok());
  EXPECT_FALSE(ActorPathValidator::ValidateRelative("a/b c").ok());
  EXPECT_FALSE(ActorPathValidator::ValidateRelative("a/%00").ok());
}

TEST(AutoName, CountsInBase64WithTheLeastDigitFirst) {
  EXPECT_EQ(AutoName(0), "$a");
  EXPECT_EQ(AutoName(1), "$b");
  EXPECT_EQ(AutoName(25), "$z");
  EXPECT_EQ(AutoName(26), "$A");
  EXPECT_EQ(AutoName(51), "$Z");
  EXPECT_EQ(AutoName(52), "$0");
  EXPECT_EQ(AutoName(61), "$9");
  EXPECT_EQ(AutoName(62), "$+");
  EXPECT_EQ(AutoName(63), "$~");
  EXPECT_EQ(AutoName(64), "$ab");
  EXPECT_EQ(AutoName(65), "$bb");
  EXPECT_EQ(AutoName(64 * 64), "$aab");
  EXPECT_EQ(AutoNameText(1, "$$").view(), "$$b");
  EXPECT_EQ(TempName("greeter", 64), "greeter$ab");
}

TEST(AutoName, ReadsBackExactlyWhatItWrites) {
  for (uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{4095}, uint64_t{1} << 40,
                          UINT64_MAX - 1, UINT64_MAX}) {
    EXPECT_EQ(ParseAutoName(AutoName(number)), number);
  }
  for (std::string_view name :
       {"", "$", "a", "$$a", "$-", "$ba", "$aa", "$a b", "$aaaaaaaaaaab", "$~~~~~~~~~~~", "$aaaaaaaaaaq"}) {
    EXPECT_EQ(ParseAutoName(name), std::nullopt) << name;
  }
}

TEST(GuardianSegments, HasTheFixedTopLevelNames) {
  for (std::string_view name : {"user", "system", "temp", "deadLetters", "remote"}) {
    ASSERT_TRUE(GuardianSegments::Find(name).has_value()) << name;
    EXPECT_EQ(GuardianSegments::NameOf(*GuardianSegments::Find(name)), name);
  }
  EXPECT_EQ(GuardianSegments::Find("User"), std::nullopt);
}

TEST(ActorSelectionResolver, ResolvesParentsStepByStep) {  // PTH-4
  auto resolve = [](std::string_view base, std::string_view selection) -> std::string {
    const absl::StatusOr<ActorPath> path =
        ActorSelectionResolver::Resolve(Path(base), *ActorSelection::Parse(selection));
    if (path.ok()) return path->ToCanonical();
    if (KindOf(path.status()) == ActorPathErrorKind::kRelativeEscape) return "escape";
    if (KindOf(path.status()) == ActorPathErrorKind::kUnknownGuardian) return "guardian";
    return std::string(ToStd(path.status().message()));
  };
  EXPECT_EQ(resolve("pekko://s/user/a#3", "b"), "pekko://s/user/a/b");
  EXPECT_EQ(resolve("pekko://s/user/a#3", ""), "pekko://s/user/a");
  EXPECT_EQ(resolve("pekko://s/user/a", "../b#4"), "pekko://s/user/b#4");
  EXPECT_EQ(resolve("pekko://s/user/a", ".."), "pekko://s/user");
  EXPECT_EQ(resolve("pekko://s/user/a", "../.."), "escape");
  EXPECT_EQ(resolve("pekko://s/user/a", "../../user/a"), "escape");
  EXPECT_EQ(resolve("pekko://s/user", ".."), "escape");
  EXPECT_EQ(resolve("pekko://s/", ".."), "escape");
  EXPECT_EQ(resolve("pekko://s/user/a", "/.."), "escape");
  EXPECT_EQ(resolve("pekko://s/user/a", "/user/.."), "escape");
  EXPECT_EQ(resolve("pekko://s/user/a", "/user/../system/x"), "escape");
  EXPECT_EQ(resolve("pekko://s/user/a", "/"), "pekko://s/");
  EXPECT_EQ(resolve("pekko://s/user/a", "/system/x/../y"), "pekko://s/system/y");
  EXPECT_EQ(resolve("pekko://s/user/a", "/some/ref"), "guardian");
  EXPECT_EQ(resolve("pekko://s/user/a", "pekko://t@h:1/user/b/../c"), "pekko://t@h:1/user/c");
  EXPECT_EQ(resolve("pekko://s/user/a", "pekko://t@h:1/some/ref"), "guardian");
  EXPECT_EQ(resolve("pekko://s/user/a", "pekko://t@h:1"), "pekko://t@h:1/");
  EXPECT_EQ(resolve("pekko://s/user/a", "*"),
            "selection \"/*\" has a wildcard, or a uid before its last name, and means no single path; send to it, or "
            "name the actor");
}

TEST(ActorSelectionResolver, StopsAtANameWithAUidSoThatAnotherLifeIsNotMeant) {
  const ActorSelection selection = *ActorSelection::Parse("../b#4/c/../d");
  const ResolvedSelection resolved = *ActorSelectionResolver::ResolvePrefix(Path("pekko://s/user/a"), selection);
  EXPECT_EQ(resolved.prefix.ToCanonical(), "pekko://s/user/b#4");
  ASSERT_EQ(resolved.rest.size(), 3u);
  EXPECT_EQ(resolved.rest[0].text(), "c");
  EXPECT_EQ(KindOf(ActorSelectionResolver::Resolve(Path("pekko://s/user/a"), selection).status()),
            ActorPathErrorKind::kInvalidSegment);
}

TEST(ActorSelection, HasNoUidAtAnAddress) {
  EXPECT_EQ(KindOf(ActorSelection::Parse("pekko://s#5/user").status()), ActorPathErrorKind::kInvalidSegment);
}

TEST(ActorSelectionResolver, StopsAtTheFirstPatternAndStillGuardsTheGuardian) {  // PTH-4
  const ResolvedSelection resolved = *ActorSelectionResolver::ResolvePrefix(
      Path("pekko://s/user/c2/c21"), *ActorSelection::Parse("../../*/c21/../c22"));
  EXPECT_EQ(resolved.prefix.text(), "pekko://s/user");
  ASSERT_EQ(resolved.rest.size(), 4u);
  EXPECT_TRUE(resolved.rest[0].Matches("c1"));
  EXPECT_EQ(resolved.rest[2].kind(), SelectionElement::Kind::kParent);
  EXPECT_EQ(KindOf(ActorSelectionResolver::ResolvePrefix(Path("pekko://s/user/a"), *ActorSelection::Parse("*/../../.."))
                       .status()),
            ActorPathErrorKind::kRelativeEscape);
  EXPECT_TRUE(ActorSelectionResolver::ResolvePrefix(Path("pekko://s/user/a"), *ActorSelection::Parse("*/../..")).ok());
}

TEST(ActorSelectionResolver, NormalizesParsedPaths) {  // PTH-4
  EXPECT_EQ(ActorSelectionResolver::Normalize(Path("pekko://s@h:1/user/a/../b#3"))->ToCanonical(),
            "pekko://s@h:1/user/b#3");
  EXPECT_EQ(ActorSelectionResolver::Normalize(Path("pekko://s/user/a/..#3"))->ToCanonical(), "pekko://s/user");
  EXPECT_EQ(KindOf(ActorSelectionResolver::Normalize(Path("pekko://s/user/a/../..")).status()),
            ActorPathErrorKind::kRelativeEscape);
  EXPECT_EQ(KindOf(ActorSelectionResolver::Normalize(Path("pekko://s/some/ref")).status()),
            ActorPathErrorKind::kUnknownGuardian);
}

TEST(SelectionElement, MatchesWildcards) {
  auto matches = [](std::string_view pattern, std::string_view name) {
    return ActorSelection::Parse(pattern)->elements()[0].Matches(name);
  };
  EXPECT_TRUE(matches("*", "a"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*", "a"));
  EXPECT_TRUE(matches("a*c", "abbbc"));
  EXPECT_TRUE(matches("a*c*e", "abcdcde"));
  EXPECT_FALSE(matches("a*c", "abbb"));
  EXPECT_TRUE(matches("?", "a"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("?", "ab"));
  EXPECT_TRUE(matches("a?c*", "abc"));
  EXPECT_FALSE(matches("*.b", "aXb"));  // everything else is literal
  EXPECT_TRUE(matches("*.b", "a.b"));
  EXPECT_TRUE(matches("a", "a"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_FALSE(matches("..", ".."));
  // Many stars take linear time each, not exponential time.
  EXPECT_FALSE(matches("a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(2000, 'a')));
}

TEST(ActorUid, IsNeverIssuedTwiceAndLeadsBackToThePid) {  // PTH-6
  const ActorUidIssuer issuer(42);
  absl::flat_hash_set<uint64_t> seen;
  for (uint32_t slot = 0; slot < 200; ++slot) {
    for (uint32_t generation = 1; generation < 50; ++generation) {
      const Pid pid{.slot = slot, .generation = generation};
      const ActorUid uid = issuer.UidOf(pid);
      EXPECT_FALSE(uid.IsNone());
      EXPECT_TRUE(seen.insert(uid.value()).second);
      EXPECT_EQ(issuer.PidOf(uid), pid);
    }
  }
  for (const Pid pid : {Pid{0, 1}, Pid{UINT32_MAX, UINT32_MAX}, Pid{UINT32_MAX, 1}, Pid{0, UINT32_MAX}}) {
    EXPECT_EQ(issuer.PidOf(issuer.UidOf(pid)), pid);
  }
  EXPECT_EQ(issuer.PidOf(ActorUid()), std::nullopt);
}

TEST(ActorUid, DiffersBetweenStartsOfASystem) {
  EXPECT_NE(ActorUidIssuer(1).UidOf(Pid{1, 1}), ActorUidIssuer(2).UidOf(Pid{1, 1}));
}

TEST(ActorUid, IsNeverZeroForAValidPid) {
  // Each key maps one pid to zero. The uid of that pid is another number, which leads back to it.
  for (uint64_t key = 0; key < 1000; ++key) {
    const ActorUidIssuer issuer(key);
    const ActorUid instead_of_zero = issuer.UidOf(Pid{});
    ASSERT_FALSE(instead_of_zero.IsNone()) << key;
    const std::optional<Pid> pid = issuer.PidOf(instead_of_zero);
    ASSERT_TRUE(pid.has_value()) << key;
    EXPECT_NE(*pid, Pid{});
    EXPECT_EQ(issuer.UidOf(*pid), instead_of_zero);
  }
}

TEST(Pid, FitsInAWord) {
  EXPECT_EQ(Pid::FromBits(Pid{7, 9}.ToBits()), (Pid{7, 9}));
  EXPECT_FALSE(Pid{}.IsValid());
  static_assert(sizeof(Pid) == 8);
}

}  // namespace
}  // namespace fraktor
