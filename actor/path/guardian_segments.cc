#include "fraktor/actor/path/guardian_segments.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace fraktor::inline v0 {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"user", "system", "temp", "deadLetters", "remote"};

}  // namespace

std::string_view GuardianSegments::NameOf(Guardian guardian) {
  const auto index = static_cast<size_t>(guardian);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<Guardian> GuardianSegments::Find(std::string_view segment) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == segment) return static_cast<Guardian>(i);
  }
  return std::nullopt;
}

}  // namespace fraktor::inline v0
