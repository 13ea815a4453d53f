#include "fraktor/persistence/rocksdb/insert_hints.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "rocksdb/write_batch.h"

#include "fraktor/utils/bytes/bytes.h"

namespace fraktor {
namespace {

std::string Key(const std::string& id) {
  std::string key;
  AppendSorted16(key, static_cast<uint16_t>(id.size()));
  return key + id + "number";
}

TEST(InsertHints, AreForWritesInsideOfAUse) {
  InsertHints hints;
  rocksdb::WriteBatch batch;
  batch.Put(Key("a"), "event");
  EXPECT_FALSE(hints.InDomain(Key("a"))) << "as while a log is read";
  {
    const InsertHints::Use use(&hints, batch);
    EXPECT_TRUE(hints.InDomain(Key("a")));
    EXPECT_FALSE(hints.InDomain("x")) << "no key of an event";
    EXPECT_EQ(hints.Transform(Key("a")).ToString(), Key("a").substr(0, 3));
  }
  EXPECT_FALSE(hints.InDomain(Key("a")));
}

TEST(InsertHints, AreNotForRangeDeletions) {
  InsertHints hints;
  rocksdb::WriteBatch batch;
  batch.Put(Key("a"), "event");
  batch.DeleteRange(Key("b"), Key("c"));
  const InsertHints::Use use(&hints, batch);
  EXPECT_FALSE(hints.InDomain(Key("a")));
}

TEST(InsertHints, MayBeLeftOut) {
  const rocksdb::WriteBatch batch;
  const InsertHints::Use use(nullptr, batch);
}

}  // namespace
}  // namespace fraktor
