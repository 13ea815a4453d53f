#include "fraktor/actor/path/internal/auto_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace fraktor::inline v0::path_internal {
namespace {

static_assert(kAutoNameDigits.size() == 64);

constexpr std::array<int8_t, 256> MakeDigitValues() {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  for (size_t i = 0; i < kAutoNameDigits.size(); ++i)
    values[static_cast<unsigned char>(kAutoNameDigits[i])] = static_cast<int8_t>(i);
  return values;
}

constexpr std::array<int8_t, 256> kDigitValues = MakeDigitValues();

}  // namespace

std::string AutoName(uint64_t number) { return std::string(AutoNameText(number).view()); }

std::string TempName(std::string_view target_name, uint64_t number) {
  const AutoNameText digits(number);
  std::string name;
  name.reserve(target_name.size() + digits.view().size());
  name.append(target_name);
  name.append(digits.view());
  return name;
}

std::optional<uint64_t> ParseAutoName(std::string_view name) {
  if (name.size() < 2 || name[0] != '$') return std::nullopt;
  const std::string_view digits = name.substr(1);
  if (digits.size() > kMaxAutoNameDigits) return std::nullopt;
  if (digits.size() > 1 && digits.back() == kAutoNameDigits[0])
    return std::nullopt;  // AutoName writes no leading zeros
  uint64_t number = 0;
  for (size_t i = digits.size(); i-- > 0;) {
    const int8_t value = kDigitValues[static_cast<unsigned char>(digits[i])];
    if (value < 0 || number > (std::numeric_limits<uint64_t>::max() >> 6)) return std::nullopt;
    number = (number << 6) | static_cast<uint64_t>(value);
  }
  return number;
}

}  // namespace fraktor::inline v0::path_internal
