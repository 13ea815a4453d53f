// Counts heap allocations with the operators below. The benchmarks measure times.
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/internal/actor_path_formatter.h"
#include "fraktor/actor/path/internal/uri_parser.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/selection/internal/actor_selection_resolver.h"

namespace {

size_t allocations = 0;

void* Allocate(size_t size) {
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace fraktor {

using actor_internal::ActorSelectionResolver;
using path_internal::ActorPathFormatter;
using path_internal::UriParser;
using path_internal::UriParts;

namespace {

template <class Action>
size_t AllocationsOf(Action action) {
  const size_t before = allocations;
  action();
  return allocations - before;
}

constexpr std::string_view kRemote =
    "pekko.tcp://warehouse@node-17.example.org:2552/user/orders/customer-4711/cart/checkout#4711";

TEST(PathAllocation, ParsingTakesTheTextOfTheResultAndNothingElse) {  // PTH-10
  std::optional<absl::StatusOr<ActorPath>> path;
  EXPECT_EQ(AllocationsOf([&] { path.emplace(ActorPathParser::Parse(kRemote)); }), 1u);
  ASSERT_TRUE((*path)->segment_count() == 5);
  absl::StatusOr<UriParts> uri = UriParser::Parse("");
  EXPECT_EQ(AllocationsOf([&] { uri = UriParser::Parse(kRemote); }), 0u);
}

TEST(PathAllocation, EightSegmentsNeedNoHeapForTheirList) {  // PTH-10
  std::optional<absl::StatusOr<ActorPath>> path;
  EXPECT_EQ(AllocationsOf([&] { path.emplace(ActorPathParser::Parse("pekko://system/user/2/3/4/5/6/7/8")); }), 1u);
  EXPECT_EQ((*path)->segment_count(), 8u);
  EXPECT_EQ(AllocationsOf([&] { path.emplace(ActorPathParser::Parse("pekko://system/user/2/3/4/5/6/7/8/9")); }), 2u);
}

TEST(PathAllocation, FormattingTakesOne) {
  const ActorPath path = *ActorPathParser::Parse(kRemote);
  std::string text;
  EXPECT_EQ(AllocationsOf([&] { text = ActorPathFormatter::Format(path); }), 1u);
  EXPECT_EQ(text, kRemote);
  EXPECT_EQ(AllocationsOf([&] { text = ActorPathFormatter::Format(path.WithoutUid()); }),
            2u);  // the copy, and its text
  text.clear();
  text.reserve(2 * kRemote.size());
  EXPECT_EQ(AllocationsOf([&] { ActorPathFormatter::AppendTo(path, text); }), 0u);  // into a buffer that has room
  EXPECT_EQ(AllocationsOf([&] { EXPECT_FALSE(path.text().empty()); }), 0u);
}

TEST(PathAllocation, AChildTakesOne) {
  const ActorPath parent = *ActorPathParser::Parse(kRemote);
  const PathSegment segment = *PathSegment::Create("item-1");
  std::optional<ActorPath> child;
  EXPECT_EQ(AllocationsOf([&] { child.emplace(parent.Child(segment)); }), 1u);
}

TEST(PathAllocation, ResolvingTakesNoPathForEachElement) {
  std::string text = "/user";
  for (int i = 0; i < 10'000; ++i) text += "/a";
  for (int i = 0; i < 9'999; ++i) text += "/..";
  const absl::StatusOr<ActorSelection> selection = ActorSelection::Parse(text);
  ASSERT_TRUE(selection.ok()) << selection.status();
  const ActorPath base = *ActorPathParser::Parse("pekko://s/user/b");
  size_t before = allocations;
  EXPECT_EQ(ActorSelectionResolver::Resolve(base, *selection)->text(), "pekko://s/user/a");
  EXPECT_LE(allocations - before, 40u);  // the list of names grows a few times
  const ActorPath dotted = *ActorPathParser::Parse("pekko://s" + text);
  before = allocations;
  EXPECT_EQ(ActorSelectionResolver::Normalize(dotted)->text(), "pekko://s/user/a");
  EXPECT_LE(allocations - before, 40u);
}

TEST(PathAllocation, TheCounterCounts) {
  EXPECT_EQ(AllocationsOf([] { std::string text(100, 'x'); }), 1u);
}

}  // namespace
}  // namespace fraktor
