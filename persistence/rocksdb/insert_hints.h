// InsertHints: lets RocksDB remember where the last event of an id went in memory, so that the next one goes behind it
// without a search.
//
//   auto hints = std::make_shared<InsertHints>();
//   family.memtable_insert_with_hint_prefix_extractor = hints;
//   {
//     const InsertHints::Use use(hints.get(), batch);
//     db.Write(options, &batch);
//   }
//
// Hints are for writes inside a Use only, and not for a batch with a range deletion: RocksDB 7.8 keeps range deletions in
// a table of their own, but the hints of both tables in one place, and would walk from a key of one to those of the other.
// What is read from a log while a database opens may have range deletions, and is outside.
//
// Thread safety: one thread writes and uses.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_INSERT_HINTS_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_INSERT_HINTS_H_

#include <atomic>

#include "rocksdb/slice.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/rocksdb/prefix_transform.h"

namespace fraktor::inline v0 {

class InsertHints final : public rocksdb::SliceTransform {
 public:
  class Use {
   public:
    // `hints` may be null: nothing happens then.
    Use(InsertHints* hints, const rocksdb::WriteBatch& batch) : hints_(batch.HasDeleteRange() ? nullptr : hints) {
      if (hints_ != nullptr) hints_->is_used_.store(true, std::memory_order_relaxed);
    }
    ~Use() {
      if (hints_ != nullptr) hints_->is_used_.store(false, std::memory_order_relaxed);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    InsertHints* const hints_;
  };

  const char* Name() const override { return "fraktor.InsertHints"; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return is_used_.load(std::memory_order_relaxed) && prefixes_.InDomain(key);
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override { return prefixes_.Transform(key); }

 private:
  const SizedPrefixTransform prefixes_;
  // Relaxed: RocksDB asks on the thread that writes.
  std::atomic<bool> is_used_{false};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_INSERT_HINTS_H_
