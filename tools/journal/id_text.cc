#include "fraktor/tools/journal/id_text.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

// How many bytes of UTF-8 the first character has that can be shown; 0 if there is none.
size_t ShownBytes(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  uint32_t code = first & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3fU);
  }
  // Not in its shortest form, half of a pair, above the last one, or a control character.
  if (size == 3 && code < 0x800) return 0;
  if (size == 4 && code < 0x10000) return 0;
  if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff || code < 0xa0) return 0;
  return size;
}

std::optional<char> HexByte(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(0, 2)) {
    const size_t digit = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value << 4 | static_cast<unsigned>(digit);
  }
  return static_cast<char>(value);
}

}  // namespace

std::string IdText(std::string_view id) {
  std::string text;
  while (!id.empty()) {
    const size_t shown = ShownBytes(id);
    if (id[0] == '\\') {
      text += "\\\\";
    } else if (shown > 0) {
      text += id.substr(0, shown);
    } else {
      const auto byte = static_cast<uint8_t>(id[0]);
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
    id.remove_prefix(shown > 0 ? shown : 1);
  }
  return text;
}

std::optional<std::string> ParseIdText(std::string_view text) {
  std::string id;
  while (!text.empty()) {
    if (text[0] != '\\') {
      id += text[0];
      text.remove_prefix(1);
      continue;
    }
    if (text.size() < 2) return std::nullopt;
    const char kind = text[1];
    text.remove_prefix(2);
    if (kind == 'x') {
      const std::optional<char> byte = HexByte(text);
      if (!byte.has_value()) return std::nullopt;
      id += *byte;
      text.remove_prefix(2);
    } else if (kind == '\\' || kind == '"' || kind == '\'') {
      id += kind;
    } else if (kind == 'n' || kind == 't' || kind == 'r') {
      id += kind == 'n' ? '\n' : kind == 't' ? '\t' : '\r';
    } else {
      return std::nullopt;
    }
  }
  return id;
}

}  // namespace fraktor::inline v0
