// What RocksDB's prefix filters take for the prefix of a key: be16(length) and so many bytes.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_PREFIX_TRANSFORM_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_PREFIX_TRANSFORM_H_

#include <cstddef>

#include "rocksdb/slice.h"
#include "rocksdb/slice_transform.h"

#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {

class SizedPrefixTransform final : public rocksdb::SliceTransform {
 public:
  // Stored in the files; never changes its meaning.
  const char* Name() const override { return "fraktor.SizedPrefix"; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return key.size() >= 2 && key.size() >= size_t{2} + LoadSorted16(key.data());
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return rocksdb::Slice(key.data(), size_t{2} + LoadSorted16(key.data()));
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_PREFIX_TRANSFORM_H_
