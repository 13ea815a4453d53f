#include "fraktor/persistence/rocksdb/rocksdb_text.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "rocksdb/status.h"

namespace fraktor::inline v0 {

std::string RocksDbText(const rocksdb::Status& status) {
  static constexpr std::string_view kOldEnding = ".ldb";
  std::string text = status.ToString();
  for (size_t at = text.find(kOldEnding); at != std::string::npos; at = text.find(kOldEnding, at + 1)) {
    const size_t end = at + kOldEnding.size();
    const bool is_file = at > 0 && absl::ascii_isdigit(static_cast<unsigned char>(text[at - 1])) &&
                         (end == text.size() || text[end] != '/');
    if (is_file) text.replace(at, kOldEnding.size(), ".sst");
  }
  return text;
}

}  // namespace fraktor::inline v0
