// ProbedFiles: the files of a RocksDB database without those that would end the program that opens them.
//
//   const ProbedFiles files("/var/lib/shop/journal");      // before the program has threads
//   options.env = &files.env();                            // what ends programs cannot be opened there: Corruption
//
// RocksDB parses what a file says of itself, its table properties, before it looks at their checksum. Versions such as
// 7.8 and 9.11 abort at some damage there if they are built with assertions, as Debian's are; newer ones refuse it.
// Whoever looks for damage would be left with the line of an assertion, and nothing could be taken out of the files
// that are good. So each file is opened in a child process first.
//
// Thread safety: any thread, once it is made.
#ifndef FRAKTOR_TOOLS_JOURNAL_PROBED_FILES_H_
#define FRAKTOR_TOOLS_JOURNAL_PROBED_FILES_H_

#include <memory>
#include <string>

#include "rocksdb/env.h"

namespace fraktor::inline v0 {

class ProbedFiles {
 public:
  // Opens all table files of the folder, which takes a small read or two each, in a child.
  explicit ProbedFiles(const std::string& folder);

  rocksdb::Env& env() const { return *env_; }

 private:
  const std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_TOOLS_JOURNAL_PROBED_FILES_H_
