// BareReader: what RocksDB alone does on the journal's database, to compare replays and recoveries with.
//
//   BareReader reader(path);                 // of a journal that is closed
//   int64_t events = reader.Read("account-1");
//
// Ends the program if the database cannot be opened.
#ifndef FRAKTOR_BENCHMARKS_PERSISTENCE_BARE_READER_H_
#define FRAKTOR_BENCHMARKS_PERSISTENCE_BARE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

#include "fraktor/persistence/journal/event_record.h"

namespace fraktor {

class BareReader {
 public:
  explicit BareReader(const std::string& path) {
    std::vector<std::string> names;
    rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), path, &names).PermitUncheckedError();
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DB* db = nullptr;
    if (!rocksdb::DB::OpenForReadOnly(rocksdb::DBOptions(), path, families, &handles_, &db).ok()) std::abort();
    db_.reset(db);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "events") events_ = handles_[i];
    }
  }
  ~BareReader() {
    for (rocksdb::ColumnFamilyHandle* const handle : handles_) {
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
  }
  // Iterates over one id, and looks at each value.
  int64_t Read(const std::string& id) {
    const std::string upper = EventKey(id, UINT64_MAX);
    const rocksdb::Slice upper_slice = upper;
    rocksdb::ReadOptions read;
    read.iterate_upper_bound = &upper_slice;
    const std::unique_ptr<rocksdb::Iterator> events(db_->NewIterator(read, events_));
    int64_t count = 0;
    for (events->Seek(EventKey(id, 0)); events->Valid(); events->Next()) {
      char last = events->value().data()[events->value().size() - 1];
      benchmark::DoNotOptimize(last);
      ++count;
    }
    return count;
  }

 private:
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* events_ = nullptr;
};

}  // namespace fraktor

#endif  // FRAKTOR_BENCHMARKS_PERSISTENCE_BARE_READER_H_
