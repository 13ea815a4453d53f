#include "fraktor/actor/path/internal/actor_path_comparator.h"

#include <compare>
#include <cstddef>
#include <string_view>

#include "fraktor/actor/path/actor_path.h"

namespace fraktor::inline v0::path_internal {
namespace {

std::strong_ordering CompareRoots(const ActorPath& a, const ActorPath& b) {
  // Without an authority the scheme is no part of a path's identity: all such roots compare as if
  // they had the same scheme.
  const std::string_view a_scheme = a.has_authority() ? a.scheme() : "pekko";
  const std::string_view b_scheme = b.has_authority() ? b.scheme() : "pekko";
  auto rest = [](const ActorPath& path) {
    const size_t begin = path.scheme().size();
    return path.text().substr(begin, path.text().size() - path.TextWithoutAddress().size() - begin);
  };
  // Roots with different schemes compare by the schemes, each with the ':' that follows it.
  if (a_scheme == b_scheme) return rest(a) <=> rest(b);
  const size_t common = a_scheme.size() < b_scheme.size() ? a_scheme.size() : b_scheme.size();
  if (const auto order = a_scheme.substr(0, common) <=> b_scheme.substr(0, common); std::is_neq(order)) return order;
  return a_scheme.size() < b_scheme.size() ? ':' <=> b_scheme[common] : a_scheme[common] <=> ':';
}

}  // namespace

std::strong_ordering ActorPathComparator::Compare(const ActorPath& a, const ActorPath& b) {
  size_t left = a.segment_count();
  size_t right = b.segment_count();
  while (left > 0 && right > 0) {
    if (const auto order = a.segment(--left) <=> b.segment(--right); std::is_neq(order)) return order;
  }
  if (left != right) return left < right ? std::strong_ordering::greater : std::strong_ordering::less;
  return CompareRoots(a, b);
}

std::strong_ordering ActorPathComparator::RefCompare(const ActorPath& a, const ActorPath& b) {
  if (const auto order = Compare(a, b); std::is_neq(order)) return order;
  return a.uid() <=> b.uid();
}

}  // namespace fraktor::inline v0::path_internal
