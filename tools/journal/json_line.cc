#include "fraktor/tools/journal/json_line.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kBase64Suffix = "_base64";

// How many bytes the character at the front of `text` has; 0 if it is not UTF-8.
size_t CharacterSize(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < size) return 0;
  uint32_t code = byte(0) & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool is_overlong = code < (size == 3 ? 0x800u : size == 4 ? 0x10000u : 0x80u);
  return is_overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0 : size;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string Base64(std::string_view bytes) { return absl::Base64Escape(ToAbsl(bytes)); }

// Of a value under a name that says that it is base64.
absl::Status CheckBase64(const std::string& name, const std::string& value, size_t column) {
  std::string bytes;
  if (!absl::EndsWith(name, ToAbsl(kBase64Suffix)) || absl::Base64Unescape(value, &bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ": \"", name, "\" is not base64"));
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('"');
  return quoted;
}

void AppendUtf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    text += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
             static_cast<char>(0x80 | (code & 0x3f))};
  } else {
    text += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3f)),
             static_cast<char>(0x80 | (code >> 6 & 0x3f)), static_cast<char>(0x80 | (code & 0x3f))};
  }
}

class Parser {
 public:
  explicit Parser(std::string_view line) : line_(line) {}

  bool TryTake(char c) {
    SkipBlanks();
    if (at_ >= line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::Status Take(char c) { return TryTake(c) ? absl::OkStatus() : Error(absl::StrCat("'", std::string(1, c), "'")); }
  bool SeesDigit() {
    SkipBlanks();
    return at_ < line_.size() && line_[at_] >= '0' && line_[at_] <= '9';
  }
  bool Sees(char c) {
    SkipBlanks();
    return at_ < line_.size() && line_[at_] == c;
  }
  bool AtEnd() {
    SkipBlanks();
    return at_ == line_.size();
  }
  // Of what comes next; the first is 1.
  size_t column() {
    SkipBlanks();
    return at_ + 1;
  }
  absl::Status Error(std::string_view expected) const {
    return absl::InvalidArgumentError(absl::StrCat("column ", at_ + 1, ": expected ", ToAbsl(expected)));
  }

  absl::StatusOr<uint64_t> Number() {
    const size_t begin = at_;
    while (at_ < line_.size() && line_[at_] >= '0' && line_[at_] <= '9') ++at_;
    uint64_t value = 0;
    if (!absl::SimpleAtoi(ToAbsl(line_.substr(begin, at_ - begin)), &value)) return Error("a whole number of 64 bits");
    return value;
  }

  absl::StatusOr<std::string> Text() {
    FRAKTOR_RETURN_IF_ERROR(Take('"'));
    std::string text;
    while (at_ < line_.size() && line_[at_] != '"') {
      if (line_[at_] != '\\') {
        text.push_back(line_[at_++]);
        continue;
      }
      if (++at_ >= line_.size()) break;
      FRAKTOR_RETURN_IF_ERROR(Escape(text));
    }
    FRAKTOR_RETURN_IF_ERROR(at_ < line_.size() ? absl::OkStatus() : Error("'\"'"));
    ++at_;
    return text;
  }

  absl::StatusOr<std::vector<std::string>> Texts() {
    FRAKTOR_RETURN_IF_ERROR(Take('['));
    std::vector<std::string> texts;
    if (TryTake(']')) return texts;
    do {
      SkipBlanks();
      FRAKTOR_ASSIGN_OR_RETURN(std::string text, Text());
      texts.push_back(std::move(text));
    } while (TryTake(','));
    FRAKTOR_RETURN_IF_ERROR(Take(']'));
    return texts;
  }

 private:
  void SkipBlanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) ++at_;
  }

  absl::StatusOr<uint32_t> HexDigits() {
    if (line_.size() - at_ < 4) return Error("four hexadecimal digits");
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = line_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return Error("four hexadecimal digits");
      code = code << 4 | static_cast<uint32_t>(digit);
    }
    return code;
  }

  absl::Status Escape(std::string& text) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char name = line_[at_++];
    if (name == 'u') {
      FRAKTOR_ASSIGN_OR_RETURN(uint32_t code, HexDigits());
      if (code >= 0xd800 && code < 0xdc00 && line_.substr(at_, 2) == "\\u") {
        at_ += 2;
        FRAKTOR_ASSIGN_OR_RETURN(const uint32_t low, HexDigits());
        if (low < 0xdc00 || low > 0xdfff) return Error("the second half of a character");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
      AppendUtf8(text, code);
      return absl::OkStatus();
    }
    const size_t found = kNames.find(name);
    if (found == std::string_view::npos) return Error("an escape");
    text.push_back(kMeanings[found]);
    return absl::OkStatus();
  }

  const std::string_view line_;
  size_t at_ = 0;
};

}  // namespace

void JsonLineWriter::Begin(std::string_view name) {
  absl::StrAppend(&text_, text_.size() > 1 ? "," : "", Quote(name), ":");
}

JsonLineWriter& JsonLineWriter::Text(std::string_view name, std::string_view value) {
  if (!IsUtf8(value)) return Bytes(name, value);
  Begin(name);
  absl::StrAppend(&text_, Quote(value));
  return *this;
}

JsonLineWriter& JsonLineWriter::Bytes(std::string_view name, std::string_view value) {
  Begin(absl::StrCat(ToAbsl(name), ToAbsl(kBase64Suffix)));
  absl::StrAppend(&text_, "\"", Base64(value), "\"");
  return *this;
}

JsonLineWriter& JsonLineWriter::Number(std::string_view name, uint64_t value) {
  Begin(name);
  absl::StrAppend(&text_, value);
  return *this;
}

JsonLineWriter& JsonLineWriter::Texts(std::string_view name, const std::vector<std::string>& values) {
  bool is_text = true;
  for (const std::string& value : values) is_text = is_text && IsUtf8(value);
  Begin(is_text ? std::string(name) : absl::StrCat(ToAbsl(name), ToAbsl(kBase64Suffix)));
  std::string separator = "[";
  for (const std::string& value : values) {
    absl::StrAppend(&text_, separator, is_text ? Quote(value) : absl::StrCat("\"", Base64(value), "\""));
    separator = ",";
  }
  absl::StrAppend(&text_, values.empty() ? "[]" : "]");
  return *this;
}

std::string JsonLineWriter::Finish() { return std::exchange(text_, "{") + "}"; }

absl::StatusOr<JsonLine> JsonLine::Parse(std::string_view text) {
  JsonLine line;
  Parser parser(text);
  FRAKTOR_RETURN_IF_ERROR(parser.Take('{'));
  if (!parser.TryTake('}')) {
    do {
      parser.AtEnd();
      FRAKTOR_ASSIGN_OR_RETURN(const std::string name, parser.Text());
      FRAKTOR_RETURN_IF_ERROR(parser.Take(':'));
      const size_t column = parser.column();
      if (parser.SeesDigit()) {
        FRAKTOR_ASSIGN_OR_RETURN(line.numbers_[name], parser.Number());
      } else if (parser.Sees('[')) {
        FRAKTOR_ASSIGN_OR_RETURN(line.lists_[name], parser.Texts());
        for (const std::string& value : line.lists_[name]) FRAKTOR_RETURN_IF_ERROR(CheckBase64(name, value, column));
      } else if (parser.Sees('"')) {
        FRAKTOR_ASSIGN_OR_RETURN(line.texts_[name], parser.Text());
        FRAKTOR_RETURN_IF_ERROR(CheckBase64(name, line.texts_[name], column));
      } else {
        return parser.Error("a text, a whole number or a list of texts");
      }
    } while (parser.TryTake(','));
    FRAKTOR_RETURN_IF_ERROR(parser.Take('}'));
  }
  if (!parser.AtEnd()) return parser.Error("the end of the line");
  return line;
}

std::optional<std::string> JsonLine::Text(std::string_view name) const {
  const auto found = texts_.find(name);
  if (found != texts_.end()) return found->second;
  const auto encoded = texts_.find(absl::StrCat(ToAbsl(name), ToAbsl(kBase64Suffix)));
  std::string bytes;
  if (encoded == texts_.end() || !absl::Base64Unescape(encoded->second, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<uint64_t> JsonLine::Number(std::string_view name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::vector<std::string>> JsonLine::Texts(std::string_view name) const {
  const auto found = lists_.find(name);
  if (found != lists_.end()) return found->second;
  const auto encoded = lists_.find(absl::StrCat(ToAbsl(name), ToAbsl(kBase64Suffix)));
  if (encoded == lists_.end()) return std::nullopt;
  std::vector<std::string> values;
  for (const std::string& value : encoded->second) {
    std::string bytes;
    if (!absl::Base64Unescape(value, &bytes)) return std::nullopt;
    values.push_back(std::move(bytes));
  }
  return values;
}

}  // namespace fraktor::inline v0
