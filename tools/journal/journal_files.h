// JournalFiles: the files of a journal, looked at beside the journal itself: what they belong to, and whether they are
// damaged where the journal does not look.
//
//   std::unique_ptr<JournalFiles> files = JournalFiles::Open("/var/lib/shop/journal", env).value();
//   uint64_t damaged_files = files->Verify([](const std::string& damage) { std::cout << damage << "\n"; });
//
// A journal reads what it is asked for. Blocks of deleted events, of filters and of the index may be damaged for long
// before somebody asks; RocksDB finds them when it merges files, and then stops writing.
//
// Opened for reading only, also while a program has the journal open: it sees what was there when it was opened.
//
// Thread safety: one thread.
#ifndef FRAKTOR_TOOLS_JOURNAL_JOURNAL_FILES_H_
#define FRAKTOR_TOOLS_JOURNAL_JOURNAL_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"

#include "fraktor/persistence/rocksdb/log_files.h"

namespace fraktor::inline v0 {

class JournalFiles {
 public:
  // Any RocksDB database. NotFound if there is none. `env` outlives it.
  static absl::StatusOr<std::unique_ptr<JournalFiles>> Open(const std::string& path, rocksdb::Env& env);
  ~JournalFiles();
  JournalFiles(const JournalFiles&) = delete;
  JournalFiles& operator=(const JournalFiles&) = delete;

  // FailedPrecondition if it is the database of something else.
  absl::Status CheckIsJournal() const;
  // Whether the journal has met the id. Also true if that cannot be read: then reading the id says why.
  bool Knows(std::string_view persistence_id) const;
  // Whether there is a record under that number, good or damaged, that can be read from its file.
  bool HasRecord(std::string_view persistence_id, uint64_t sequence_nr) const;
  // The ids that can be read, in alphabetical order. For when the list that has them in the order of their use is damaged.
  std::vector<std::string> Ids() const;
  // Reads every block of every file, and every entry. Calls `damaged` with a text for each file that is damaged, and
  // answers how many.
  uint64_t Verify(const std::function<void(const std::string&)>& damaged) const;

 private:
  JournalFiles(std::string path, rocksdb::Env& env);

  // Null if it has none of that name.
  rocksdb::ColumnFamilyHandle* Family(std::string_view name) const;

  const std::string path_;
  rocksdb::Env& env_;
  // Without the parts of logs that cannot be read.
  const std::shared_ptr<LogFiles> files_;
  const std::unique_ptr<rocksdb::Env> db_env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_TOOLS_JOURNAL_JOURNAL_FILES_H_
