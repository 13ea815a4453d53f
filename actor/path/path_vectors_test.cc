// The numbered vectors of path behaviour, each with its number. The missing numbers need live
// actors.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/internal/actor_path_comparator.h"
#include "fraktor/actor/path/internal/actor_path_formatter.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/selection/internal/actor_selection_resolver.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor {

using actor_internal::ActorSelectionResolver;
using path_internal::ActorPathComparator;
using path_internal::ActorPathValidator;

namespace {

using Kind = ActorPathErrorKind;

std::optional<Kind> KindOf(const absl::Status& status) { return ErrorKindOf<Kind>(status); }
std::optional<int64_t> IndexOf(const absl::Status& status) { return ErrorDetailNumberOf<Kind>(status, "index"); }
bool Mentions(const absl::Status& status, std::string_view text) {
  return ToStd(status.message()).find(text) != std::string_view::npos;
}

ActorPath Path(std::string_view text) {
  absl::StatusOr<ActorPath> path = ActorPathParser::Parse(text);
  EXPECT_TRUE(path.ok()) << path.status();
  return *std::move(path);
}

struct NameVector {
  int number;
  std::string_view name;
  std::optional<Kind> error;  // none: valid
  int64_t index = 0;
  std::string_view mentioned = "";
};

TEST(PathVectors, NamesThatUsersGive) {  // PTH-2
  const std::string_view with_nul("a\0b", 3);
  const std::vector<NameVector> vectors = {
      {1, "a", std::nullopt},
      {2, "A9", std::nullopt},
      {3, "-_.*$+:@&=,!~';", std::nullopt},
      {4, "a$", std::nullopt},
      {5, ".", std::nullopt},
      {6, "..", std::nullopt},
      {7, "*", std::nullopt},
      {8, "%20", std::nullopt},
      {9, "%aF", Kind::kPercentDecode, 0},  // 0xaf is not ASCII
      {9, "%7E", std::nullopt},
      {9, "%7e", std::nullopt},
      {10, "%00", Kind::kPercentDecode, 0},
      {11, "%2F", Kind::kPercentDecode, 0},
      {11, "a%2f", Kind::kPercentDecode, 1},
      {12, "%E3%81%82", Kind::kPercentDecode, 0},
      {14, std::string_view(), Kind::kInvalidSegment, 0, "null"},
      {15, "", Kind::kInvalidSegment, 0, "empty"},
      {16, "$hallo", Kind::kInvalidSegment, 0, "not start with $"},
      {17, "$", Kind::kInvalidSegment, 0},
      {18, "%", Kind::kInvalidSegment, 0},
      {19, "%3", Kind::kInvalidSegment, 0},
      {20, "%xx", Kind::kInvalidSegment, 0},
      {20, "%0G", Kind::kInvalidSegment, 0},
      {20, "%gg", Kind::kInvalidSegment, 0},
      {20, "%1t", Kind::kInvalidSegment, 0},
      {21, "a%", Kind::kInvalidSegment, 1},
      {23, "%%20", Kind::kInvalidSegment, 0},
      {24, "a?", Kind::kInvalidSegment, 1, "'?'"},
      {25, "\xc3\xbc,\xc3\x9f", Kind::kInvalidSegment, 0, "ASCII"},
      {26, "he\"llo", Kind::kInvalidSegment, 2, "'\\\"' at 2"},
      {27, "hell>o", Kind::kInvalidSegment, 4, "'>' at 4"},
      {28, "a b", Kind::kInvalidSegment, 1, "' ' at 1"},
      {28, "ab\tc", Kind::kInvalidSegment, 2, "\\x09"},
      {28, with_nul, Kind::kInvalidSegment, 1, "\\x00"},
  };
  for (const NameVector& vector : vectors) {
    SCOPED_TRACE(absl::StrCat("vector ", vector.number, " ", QuotedForText(vector.name)));
    const absl::Status status = ActorPathValidator::ValidateUserName(vector.name);
    EXPECT_EQ(status.ok(), !vector.error.has_value()) << status;
    EXPECT_EQ(KindOf(status), vector.error) << status;
    EXPECT_EQ(PathSegment::Create(vector.name).status(), status);
    if (!vector.error.has_value()) continue;
    EXPECT_EQ(IndexOf(status), vector.index) << status;
    EXPECT_TRUE(Mentions(status, vector.mentioned)) << status;
  }
}

struct PathVector {
  int number;
  std::string_view input;
  std::string_view text;  // the expected ToString; empty: an error
  std::optional<Kind> error = std::nullopt;
  uint64_t uid = 0;
};

TEST(PathVectors, FullPaths) {  // PTH-1, PTH-3
  const std::vector<PathVector> vectors = {
      {30, "pekko://mysys/user", "pekko://mysys/user"},
      {31, "pekko://mysys", "pekko://mysys/"},
      {32, "pekko://mysys/", "pekko://mysys/"},
      {33, "pekko://mysys/user/", "pekko://mysys/user"},
      {35, "pekko://mysys/user//a", "pekko://mysys/user/a"},
      {36, "pekko://my_sys@host:1234/some/ref", "pekko://my_sys@host:1234/some/ref"},
      {37, "akka://my_sys@host:1234/some/ref", "", Kind::kInvalidScheme},
      {38, "pekko.tcp://my_sys@host:1234/some/ref", "pekko.tcp://my_sys@host:1234/some/ref"},
      {39, "PEKKO://Sys@Host:1/a", "", Kind::kInvalidScheme},
      {39, "pekko://Sys@Host:1/A", "pekko://Sys@Host:1/A"},
      {40, "pe+kko-1.x://sys/user", "", Kind::kInvalidScheme},
      {41, "1pekko://sys/user", "", Kind::kInvalidUri},
      {41, "pe_kko://sys/user", "", Kind::kInvalidUri},
      {42, "", "", Kind::kInvalidScheme},
      {43, "://hallo", "", Kind::kInvalidUri},
      {44, "s://dd@:12", "", Kind::kInvalidScheme},
      {44, "pekko://dd@:12", "", Kind::kUnsupportedAuthority},
      {46, "a://l:1/b", "", Kind::kInvalidScheme},
      {46, "pekko://l:1/b", "", Kind::kInvalidSystemName},
      {47, "pekko://", "", Kind::kUnsupportedAuthority},
      {47, "pekko:///user", "", Kind::kUnsupportedAuthority},
      {47, "pekko:/user", "", Kind::kUnsupportedAuthority},
      {47, "pekko:user", "", Kind::kUnsupportedAuthority},
      {48, "/user/a", "", Kind::kInvalidScheme},
      {48, "user/a", "", Kind::kInvalidScheme},
      {48, "//sys/user", "", Kind::kInvalidScheme},
      {50, "pekko://sys@host:0/user", "pekko://sys@host:0/user"},
      {51, "pekko://sys@host:65535/user", "pekko://sys@host:65535/user"},
      {52, "pekko://sys@host:65536/user", "", Kind::kUnsupportedAuthority},
      {53, "pekko://sys@host:99999999999/", "", Kind::kUnsupportedAuthority},
      {53, "pekko://sys@host:-1/", "", Kind::kUnsupportedAuthority},
      {55, "pekko://sys@127.0.0.1:2552/user/a", "pekko://sys@127.0.0.1:2552/user/a"},
      {56, "pekko://sys@256.0.0.1:2552/user/a", "", Kind::kUnsupportedAuthority},
      {58, "pekko://sys@[2001:db8::1]:2552/user/a", "pekko://sys@[2001:db8::1]:2552/user/a"},
      {59, "pekko://sys@[fe80::1%25eth0]:2552/user/a", "pekko://sys@[fe80::1%25eth0]:2552/user/a"},
      {59, "pekko://sys@[fe80::1%eth0]:2552/user/a", "pekko://sys@[fe80::1%eth0]:2552/user/a"},
      {60, "pekko://sys@::1:2552/user/a", "", Kind::kUnsupportedAuthority},
      {62, "pekko://sys@in_valid:5001", "", Kind::kUnsupportedAuthority},
      {63, "pekko://sys@is_valid.org:5001/user", "", Kind::kUnsupportedAuthority},
      {64, "pekko://sys@host.:1/user", "pekko://sys@host.:1/user"},
      {66, "pekko://my_sys/user", "pekko://my_sys/user"},
      {67, "pekko://1sys/user", "pekko://1sys/user"},
      {67, "pekko://sys-a/user", "pekko://sys-a/user"},
      {67, "pekko://a.b/user", "", Kind::kInvalidSystemName},
      {68, "pekko://sys-/user", "pekko://sys-/user"},
      {68, "pekko://-sys/user", "", Kind::kInvalidSystemName},
      {68, "pekko://s%20s/user", "", Kind::kInvalidSystemName},
      {69, "pekko://sys@a@b:1/x", "", Kind::kUnsupportedAuthority},
      {70, "pekko://a:b@host:1/user", "", Kind::kInvalidSystemName},
      {71, "pekko://sys/user/a#123", "pekko://sys/user/a", std::nullopt, 123},
      {72, "pekko://sys/user/a#-123", "", Kind::kInvalidUid},
      {72, "pekko://sys/user/a#+123", "", Kind::kInvalidUid},
      {73, "pekko://sys/user/a#0", "pekko://sys/user/a", std::nullopt, 0},
      {75, "pekko://sys/user/a#2147483648", "pekko://sys/user/a", std::nullopt, 2147483648},
      {75, "pekko://sys/user/a#18446744073709551615", "pekko://sys/user/a", std::nullopt, UINT64_MAX},
      {75, "pekko://sys/user/a#18446744073709551616", "", Kind::kInvalidUid},
      {77, "pekko://sys/user/a#", "", Kind::kInvalidUid},
      {77, "pekko://sys/user/a#abc", "", Kind::kInvalidUid},
      {78, "pekko://sys/user/a#1#2", "", Kind::kInvalidUri},
      {79, "pekko://sys/user/a/#7", "", Kind::kInvalidSegment},
      {80, "pekko://sys@host:1#7", "pekko://sys@host:1/", std::nullopt, 0},
      {82, "pekko://sys/user/a%20b", "pekko://sys/user/a%20b"},
      {83, "pekko://sys/user/a%", "", Kind::kInvalidUri},
      {83, "pekko://sys/user/a%zz", "", Kind::kInvalidUri},
      {83, "pekko://sys/user/a b", "", Kind::kInvalidUri},
      {83, "pekko://sys/user/a\"b", "", Kind::kInvalidUri},
      {83, "pekko://sys/user/a<b", "", Kind::kInvalidUri},
      {83, "pekko://sys/user/a|b", "", Kind::kInvalidUri},
      {83, "pekko://sys/user/a\\b", "", Kind::kInvalidUri},
      {83, "pekko://sys/user/[a]", "", Kind::kInvalidUri},
      {84, "pekko://sys/user/a?x=1", "", Kind::kInvalidSegment},
      {86, "pekko://sys/user/../b", "pekko://sys/user/../b"},
      {87, "pekko://mysys/user/boom/*", "pekko://mysys/user/boom/*"},
      {88, "pekko://sys/user/\xe6\x97\xa5\xe6\x9c\xac", "", Kind::kInvalidUri},
      {89, " pekko://sys/user", "", Kind::kInvalidUri},
      {89, "pekko://sys/user ", "", Kind::kInvalidUri},
      {89, "\tpekko://sys/user", "", Kind::kInvalidUri},
      {89, "pekko://sys/user\t", "", Kind::kInvalidUri},
  };
  for (const PathVector& vector : vectors) {
    SCOPED_TRACE(absl::StrCat("vector ", vector.number, " ", QuotedForText(vector.input)));
    const absl::StatusOr<ActorPath> path = ActorPathParser::Parse(vector.input);
    EXPECT_EQ(KindOf(path.status()), vector.error) << path.status();
    ASSERT_EQ(path.ok(), !vector.error.has_value()) << path.status();
    // An error of the URI parser keeps its own kind as well.
    EXPECT_EQ(ErrorKindOf<UriErrorKind>(path.status()).has_value(), vector.error == Kind::kInvalidUri) << path.status();
    if (!path.ok()) continue;
    EXPECT_EQ(path->ToString(), vector.text);
    EXPECT_EQ(path->uid().value(), vector.uid);
    EXPECT_EQ(path->ToCanonical(),
              vector.uid == 0 ? std::string(vector.text) : absl::StrCat(ToAbsl(vector.text), "#", vector.uid));
  }
}

TEST(PathVectors, OtherSchemesByOption) {
  const ActorPathParserOptions options{.further_schemes = {"akka", "PEKKO", "pe+kko-1.x", "s", "a"}};
  // vector 37
  EXPECT_EQ(ActorPathParser::Parse("akka://my_sys@host:1234/some/ref", options)->ToString(),
            "akka://my_sys@host:1234/some/ref");
  // vector 39
  EXPECT_EQ(ActorPathParser::Parse("PEKKO://Sys@Host:1/a", options)->ToString(), "PEKKO://Sys@Host:1/a");
  // vector 40
  EXPECT_EQ(ActorPathParser::Parse("pe+kko-1.x://sys/user", options)->ToString(), "pe+kko-1.x://sys/user");
  // vector 44
  EXPECT_EQ(KindOf(ActorPathParser::Parse("s://dd@:12", options).status()), Kind::kUnsupportedAuthority);
  // vector 46
  EXPECT_EQ(KindOf(ActorPathParser::Parse("a://l:1/b", options).status()), Kind::kInvalidSystemName);
}

TEST(PathVectors, PartsOfFullPaths) {
  // vector 35
  const ActorPath doubled = Path("pekko://mysys/user//a");
  ASSERT_EQ(doubled.segment_count(), 2u);
  EXPECT_EQ(doubled.segment(0), "user");
  EXPECT_EQ(doubled.segment(1), "a");
  // vector 38
  const ActorPath remote = Path("pekko.tcp://my_sys@host:1234/some/ref");
  EXPECT_EQ(remote.scheme(), "pekko.tcp");
  EXPECT_EQ(remote.system(), "my_sys");
  EXPECT_EQ(remote.host(), "host");
  EXPECT_EQ(remote.port(), 1234);
  // vector 86: the path stays as written until it is resolved
  const ActorPath dotted = Path("pekko://sys/user/../b");
  ASSERT_EQ(dotted.segment_count(), 3u);
  EXPECT_EQ(dotted.segment(1), "..");
  EXPECT_EQ(KindOf(ActorSelectionResolver::Normalize(dotted).status()), Kind::kRelativeEscape);  // PTH-4
  // vector 80
  EXPECT_TRUE(Path("pekko://sys@host:1#7").IsRoot());
}

std::string Elements(std::string_view text) {
  const absl::StatusOr<ActorSelection> selection = ActorSelection::Parse(text);
  if (!selection.ok()) return absl::StrCat("error ", static_cast<int>(*KindOf(selection.status())));
  std::string out;
  for (const SelectionElement& element : selection->elements()) {
    absl::StrAppend(&out, "[", element.ToString(), element.kind() == SelectionElement::Kind::kPattern ? " pattern" : "",
                    element.kind() == SelectionElement::Kind::kParent ? " parent" : "", "]");
  }
  switch (selection->start()) {
    case ActorSelection::Start::kHere:
      return out;
    case ActorSelection::Start::kRoot:
      return absl::StrCat("/", out);
    case ActorSelection::Start::kAbsolute:
      return absl::StrCat(ToAbsl(selection->address()->text()), out);
  }
  return out;
}

TEST(PathVectors, RelativePathsAndSelections) {
  EXPECT_EQ(Elements("foo"), "[foo]");                                        // vector 90
  EXPECT_EQ(Elements("foo/bar/baz"), "[foo][bar][baz]");                      // vector 91
  EXPECT_EQ(Elements("Sys%40127.0.0.1%3A7355"), "[Sys%40127.0.0.1%3A7355]");  // vector 93
  // vector 93 with a whole address: %2F is refused everywhere
  EXPECT_EQ(KindOf(ActorSelection::Parse("pekko%3A%2F%2FSys%40127.0.0.1%3A7355").status()), Kind::kPercentDecode);
  EXPECT_EQ(Elements("/user/hello"), "/[user][hello]");                            // vector 94
  EXPECT_EQ(KindOf(ActorSelection::Parse("a:b").status()), Kind::kInvalidScheme);  // vector 95
  EXPECT_EQ(Elements("a/b:c"), "[a][b:c]");                                        // vector 96
  EXPECT_EQ(Elements("a?b"), "[a?b pattern]");                                     // vector 97: `?` is a wildcard
  EXPECT_EQ(KindOf(ActorSelection::Parse("a?b#1").status()), Kind::kInvalidUid);   // vector 97: a pattern has no uid
  EXPECT_EQ(Elements("a#1"), "[a#1]");
  EXPECT_EQ(Elements("?"), "[? pattern]");                      // vector 98
  EXPECT_EQ(Elements("?a"), "[?a pattern]");                    // vector 98
  for (std::string_view text : {"a b", "[a]", "a|b", "%zz"}) {  // vector 99
    EXPECT_EQ(KindOf(ActorSelection::Parse(text).status()), Kind::kInvalidSegment) << text;
  }
  // vector 111
  const ActorSelection selection = *ActorSelection::Parse("../*/hello");
  EXPECT_EQ(selection.ToWireText(Path("pekko://S/user/c2")), "pekko://S/user/c2/../*/hello");
  // The text of vector 112 and the equality of vector 113, without live actors.
  EXPECT_EQ(selection.ToString(Path("pekko://S/user/c2/c21#9")),
            "ActorSelection[Anchor(pekko://S/user/c2/c21#9), Path(/../*/hello)]");
  EXPECT_EQ(selection, *ActorSelection::Parse("..//*/hello/"));
  EXPECT_FALSE(selection == *ActorSelection::Parse("../*/hallo"));
}

TEST(PathVectors, TextEqualityOrderAddressAndNames) {
  // vector 115
  const ActorPath bar = Path("pekko://mysys/user/foo/bar");
  EXPECT_EQ(bar.ToString(), "pekko://mysys/user/foo/bar");
  EXPECT_EQ(bar.TextWithoutAddress(), "/user/foo/bar");
  EXPECT_EQ(ActorPath::Root(bar.parts()).TextWithoutAddress(), "/");
  // vector 116
  const PathAuthority aaa = *PathAuthority::Create("pekko", "aaa", 7355);
  EXPECT_EQ(Path("pekko://mysys/user/foo").WithAuthority(aaa).ToString(), "pekko://mysys@aaa:7355/user/foo");
  // vector 117
  EXPECT_EQ(Path("pekko://mysys@bbb:1/user/foo").WithAuthority(aaa).ToString(), "pekko://mysys@bbb:1/user/foo");
  // vector 118: a separator never gets into a segment
  const absl::Status separator = PathSegment::Create("/user/boom/*").status();
  EXPECT_EQ(KindOf(separator), Kind::kInvalidSegment);
  EXPECT_TRUE(Mentions(separator, "'/' at 0")) << separator;
  // vector 121
  EXPECT_TRUE(ActorPathComparator::Compare(Path("pekko://s/x/b"), Path("pekko://s/y/a")) > 0);
  // vector 122
  EXPECT_TRUE(ActorPathComparator::Compare(Path("pekko://s/a"), Path("pekko://s/b/a")) > 0);
  EXPECT_TRUE(ActorPathComparator::Compare(Path("pekko://s/b/a"), Path("pekko://s/a")) < 0);
  // The order of vector 123, which is about references, on paths with uids.
  EXPECT_TRUE(ActorPathComparator::RefCompare(Path("pekko://s/a#1"), Path("pekko://s/a#2")) < 0);
  EXPECT_TRUE(ActorPathComparator::Compare(Path("pekko://s/a#1"), Path("pekko://s/a#2")) == 0);
  // vector 124
  for (std::string_view host : {"valid", "is_valid.org", "fu.is_valid.org"}) {
    EXPECT_TRUE(ActorPathValidator::ValidateHost(host).ok()) << host;
    EXPECT_TRUE(PathAuthority::Create("pekko", host, 1).ok()) << host;
  }
  // vector 125
  for (std::string_view host : {"in_valid", "invalid._org"}) {
    EXPECT_EQ(KindOf(ActorPathValidator::ValidateHost(host)), Kind::kUnsupportedAuthority) << host;
    EXPECT_EQ(KindOf(PathAuthority::Create("pekko", host, 1).status()), Kind::kUnsupportedAuthority) << host;
  }
  // vector 126
  std::vector<ActorPathParts> addresses;
  for (const char* protocol : {"pekko", "akka"}) {
    for (const char* host : {"host2", "host1"}) {
      addresses.push_back(*ActorPathParts::Remote("s", *PathAuthority::Create(protocol, host, 1)));
    }
  }
  std::sort(addresses.begin(), addresses.end());
  ASSERT_EQ(addresses.size(), 4u);
  EXPECT_EQ(addresses[0].ToString(), "akka://s@host1:1");
  EXPECT_EQ(addresses[1].ToString(), "akka://s@host2:1");
  EXPECT_EQ(addresses[2].ToString(), "pekko://s@host1:1");
  EXPECT_EQ(addresses[3].ToString(), "pekko://s@host2:1");
  // vector 127
  for (std::string_view name : {"-h", "_h", "h w", "h*w", "h@w", "h#w", "h$w", "h%w", "h/w", ""}) {
    EXPECT_EQ(KindOf(ActorPathValidator::ValidateSystemName(name)), Kind::kInvalidSystemName) << name;
    EXPECT_EQ(KindOf(ActorPathParts::Local(name).status()), Kind::kInvalidSystemName) << name;
  }
  // vector 128
  EXPECT_TRUE(
      ActorPathValidator::ValidateSystemName("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_").ok());
  // vector 130
  EXPECT_EQ(Path("pekko://local/ignore").WithAuthority(aaa).ToString(), "pekko://local/ignore");
}

}  // namespace
}  // namespace fraktor
