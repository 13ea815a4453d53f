// JournalLayout: the names in the database of a RocksDbJournal, for whoever looks at its files beside it.
//
//   if (format != JournalLayout::kFormat) return NotAJournal(format);
//
// What is in the column families is said in rocksdb_journal.h.
//
// Thread safety: constants.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_JOURNAL_LAYOUT_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_JOURNAL_LAYOUT_H_

#include <string_view>

namespace fraktor::inline v0 {

// Under this key of the default column family each database of a store says what it is.
inline constexpr std::string_view kStoreFormatKey = "format";

struct JournalLayout {
  static constexpr std::string_view kFormat = "fraktor-journal";
  // Column families.
  static constexpr std::string_view kEvents = "events";
  static constexpr std::string_view kIds = "ids";
  static constexpr std::string_view kIndex = "index";
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_JOURNAL_LAYOUT_H_
