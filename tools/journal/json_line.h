// One line of JSON: an object whose values are texts, numbers and lists of texts. What exports of a journal are made
// of.
//
//   JsonLineWriter writer;
//   writer.Text("id", id).Number("nr", 7).Texts("tags", tags);
//   out << writer.Finish() << "\n";
//   absl::StatusOr<JsonLine> line = JsonLine::Parse(text);
//   std::string id = line->Text("id").value_or("");
//
// JSON has no bytes: a text that is not UTF-8 is written in base64, under its name with "_base64" behind it. Texts and
// lists are read back under their own name in either form.
//
// Thread safety: values.
#ifndef FRAKTOR_TOOLS_JOURNAL_JSON_LINE_H_
#define FRAKTOR_TOOLS_JOURNAL_JSON_LINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

class JsonLineWriter {
 public:
  JsonLineWriter& Text(std::string_view name, std::string_view value);
  // Always in base64.
  JsonLineWriter& Bytes(std::string_view name, std::string_view value);
  JsonLineWriter& Number(std::string_view name, uint64_t value);
  JsonLineWriter& Texts(std::string_view name, const std::vector<std::string>& values);
  // The line, without an end of line.
  std::string Finish();

 private:
  void Begin(std::string_view name);

  std::string text_ = "{";
};

class JsonLine {
 public:
  // InvalidArgument, with the column, for anything else than such an object, and for what should be base64 and is not.
  static absl::StatusOr<JsonLine> Parse(std::string_view line);

  // None if it is missing or of another type.
  std::optional<std::string> Text(std::string_view name) const;
  std::optional<uint64_t> Number(std::string_view name) const;
  std::optional<std::vector<std::string>> Texts(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
  std::map<std::string, uint64_t, std::less<>> numbers_;
  std::map<std::string, std::vector<std::string>, std::less<>> lists_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_TOOLS_JOURNAL_JSON_LINE_H_
