// A folder of its own for a test of a store.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FIXTURE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FIXTURE_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace fraktor::inline v0 {

// Made with the object and removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "/store.XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no folder in " << testing::TempDir();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FIXTURE_H_
