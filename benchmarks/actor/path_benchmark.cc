// What it takes to read and write a path.
// - BM_Parse against BM_Re2AndSplit: the same grammar as a regular expression of RE2, then the segments split and kept,
//   and the port and uid as numbers. RE2 does not check IPv6 addresses, lengths or what %HH hides; the parser does.
// - BM_Format against BM_ConcatenateByHand.
// The argument is the number of the path in kPaths: local with two segments, remote with five, remote with nine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/internal/actor_path_formatter.h"
#include "fraktor/actor/path/path_segment.h"

#include "re2/re2.h"

namespace fraktor {

using path_internal::ActorPathFormatter;

namespace {

constexpr std::string_view kPaths[] = {
    "pekko://warehouse/user/orders",
    "pekko.tcp://warehouse@node-17.example.org:2552/user/orders/customer-4711/cart/checkout#4711",
    "pekko.tcp://warehouse@10.0.0.17:2552/user/a/b/c/d/e/f/g/h#18446744073709551615",
};

void Paths(benchmark::internal::Benchmark* benchmark) { benchmark->ArgName("path")->DenseRange(0, 2); }

void BM_Parse(benchmark::State& state) {
  const std::string_view text = kPaths[state.range(0)];
  for (auto _ : state) {
    absl::StatusOr<ActorPath> path = ActorPathParser::Parse(text);
    if (!path.ok()) std::abort();
    benchmark::DoNotOptimize(path);
  }
}
BENCHMARK(BM_Parse)->Apply(Paths);

// What a program would keep that has no ActorPath.
struct SplitPath {
  std::string scheme;
  std::string system;
  std::string host;
  uint16_t port = 0;
  std::vector<std::string> segments;
  uint64_t uid = 0;
};

// The grammar of a path as RE2 reads it.
constexpr char kGrammar[] =
    R"((pekko|pekko\.tcp)://([A-Za-z0-9][-_A-Za-z0-9]*))"
    R"((?:@([A-Za-z0-9](?:[-.A-Za-z0-9]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+(?:%[-.~_A-Za-z0-9]+)?\]):([0-9]+))?)"
    R"(((?:/|[-A-Za-z0-9_.*$+:@&=,!~';]|%[0-9A-Fa-f]{2})*)(?:#([0-9]+))?)";

void BM_Re2AndSplit(benchmark::State& state) {
  const std::string_view text = kPaths[state.range(0)];
  const re2::RE2 pattern(kGrammar);
  if (!pattern.ok()) std::abort();
  for (auto _ : state) {
    re2::StringPiece scheme, system, host, port, segments, uid;
    if (!re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern, &scheme, &system, &host, &port,
                             &segments, &uid)) {
      std::abort();
    }
    SplitPath path;
    path.scheme.assign(scheme.data(), scheme.size());
    path.system.assign(system.data(), system.size());
    if (!host.empty()) path.host.assign(host.data(), host.size());
    for (char c : port) path.port = static_cast<uint16_t>(path.port * 10 + (c - '0'));
    for (char c : uid) path.uid = path.uid * 10 + static_cast<uint64_t>(c - '0');
    std::string_view rest(segments.data(), segments.size());
    while (!rest.empty()) {
      const std::string_view segment = rest.substr(0, rest.find('/'));
      if (!segment.empty()) path.segments.emplace_back(segment);
      rest.remove_prefix(segment.size() == rest.size() ? rest.size() : segment.size() + 1);
    }
    benchmark::DoNotOptimize(path);
  }
}
BENCHMARK(BM_Re2AndSplit)->Apply(Paths);

// The regular expression alone, with captures but nothing kept: the least that RE2 can be asked for.
void BM_Re2Alone(benchmark::State& state) {
  const std::string_view text = kPaths[state.range(0)];
  const re2::RE2 pattern(kGrammar);
  for (auto _ : state) {
    re2::StringPiece scheme, system, host, port, segments, uid;
    if (!re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern, &scheme, &system, &host, &port,
                             &segments, &uid)) {
      std::abort();
    }
    benchmark::DoNotOptimize(segments);
  }
}
BENCHMARK(BM_Re2Alone)->Apply(Paths);

void BM_Format(benchmark::State& state) {
  const ActorPath path = *ActorPathParser::Parse(kPaths[state.range(0)]);
  for (auto _ : state) {
    std::string text = ActorPathFormatter::Format(path);
    benchmark::DoNotOptimize(text);
  }
}
BENCHMARK(BM_Format)->Apply(Paths);

void BM_ConcatenateByHand(benchmark::State& state) {
  const ActorPath path = *ActorPathParser::Parse(kPaths[state.range(0)]);
  for (auto _ : state) {
    std::string text(path.scheme());
    text += "://";
    text += path.system();
    if (path.has_authority()) {
      text += "@";
      text += path.host();
      text += ":";
      text += std::to_string(path.port());
    }
    for (size_t i = 0; i < path.segment_count(); ++i) {
      text += "/";
      text += path.segment(i);
    }
    if (!path.uid().IsNone()) {
      text += "#";
      text += std::to_string(path.uid().value());
    }
    benchmark::DoNotOptimize(text);
  }
}
BENCHMARK(BM_ConcatenateByHand)->Apply(Paths);

void BM_Child(benchmark::State& state) {
  const ActorPath parent = *ActorPathParser::Parse(kPaths[state.range(0)]);
  const PathSegment segment = *PathSegment::Create("item-1");
  for (auto _ : state) {
    ActorPath child = parent.Child(segment);
    benchmark::DoNotOptimize(child);
  }
}
BENCHMARK(BM_Child)->Apply(Paths);

}  // namespace
}  // namespace fraktor
