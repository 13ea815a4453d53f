#include "fraktor/persistence/query/slice.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

// One character from the front of a text that is not empty.
uint32_t TakeCharacter(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  uint32_t character = size < 2 ? first : first & (0x7Fu >> size);
  bool is_good = size != 0 && size <= text.size();
  for (size_t i = 1; is_good && i < size; ++i) {
    is_good = (byte(i) & 0xC0) == 0x80;
    character = character << 6 | (byte(i) & 0x3Fu);
  }
  // Longer than need be, half of a pair, or beyond the last.
  is_good = is_good && !(size == 3 && (character < 0x800 || (character >= 0xD800 && character <= 0xDFFF))) &&
            !(size == 4 && (character < 0x10000 || character > 0x10FFFF));
  text.remove_prefix(is_good ? size : 1);
  return is_good ? character : kReplacement;
}

}  // namespace

int SliceOf(std::string_view persistence_id) {
  uint32_t hash = 0;
  const auto add = [&](uint32_t unit) { hash = hash * 31 + unit; };
  while (!persistence_id.empty()) {
    const uint32_t character = TakeCharacter(persistence_id);
    if (character < 0x10000) {
      add(character);
    } else {
      add(0xD800 + ((character - 0x10000) >> 10));
      add(0xDC00 + ((character - 0x10000) & 0x3FF));
    }
  }
  return std::abs(static_cast<int32_t>(hash) % kSlices);
}

absl::StatusOr<std::vector<SliceRange>> SliceRanges(int ranges) {
  if (ranges < 1 || ranges > kSlices || kSlices % ranges != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the ", kSlices, " slices cannot be cut into ", ranges,
                                                   " ranges of one size; a power of two up to ", kSlices, " can be"));
  }
  const int size = kSlices / ranges;
  std::vector<SliceRange> cut;
  for (int min = 0; min < kSlices; min += size) cut.push_back({.min = min, .max = min + size - 1});
  return cut;
}

}  // namespace fraktor::inline v0
