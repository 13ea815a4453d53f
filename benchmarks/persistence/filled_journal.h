// FilledJournal: a journal on RocksDB with so many ids of so many events each, to compare replays and recoveries with.
//
//   const std::string& path = FilledJournal(folder.Fresh("one"), {.ids = 1, .events = 1'000'000});   // closed, in files
//
// Ends the program if it cannot be written.
#ifndef FRAKTOR_BENCHMARKS_PERSISTENCE_FILLED_JOURNAL_H_
#define FRAKTOR_BENCHMARKS_PERSISTENCE_FILLED_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {

// Of the events of all benchmarks.
inline constexpr size_t kPayloadBytes = 100;

inline std::string IdOf(size_t actor) { return absl::StrCat("account-", actor); }

struct JournalFilling {
  size_t ids = 1;
  uint64_t events = 100;  // of each id; a multiple of 100
};

inline std::string FilledJournal(std::string path, const JournalFilling& filling) {
  const auto toolbox = StdToolbox::Make({}).value();
  {
    const auto journal = RocksDbJournal::Open(*toolbox, {.path = path, .sync = false}).value();
    const std::string payload(kPayloadBytes, 'x');
    for (uint64_t from = 1; from <= filling.events; from += 100) {
      for (size_t i = 0; i < filling.ids; ++i) {
        std::vector<AtomicWrite> writes;
        for (uint64_t number = from; number < from + 100; ++number) {
          writes.push_back(AtomicWrite::Make(PersistentRepr{.persistence_id = IdOf(i),
                                                            .sequence_nr = number,
                                                            .manifest = "deposited",
                                                            .payload = payload})
                               .value());
        }
        if (!journal->Write(std::move(writes)).Wait().ok()) std::abort();
      }
    }
  }
  // Opening it again writes what is in the log to files.
  RocksDbJournal::Open(*toolbox, {.path = path}).value().reset();
  return path;
}

}  // namespace fraktor

#endif  // FRAKTOR_BENCHMARKS_PERSISTENCE_FILLED_JOURNAL_H_
