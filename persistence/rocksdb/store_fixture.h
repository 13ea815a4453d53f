// What tests of stores need: a folder of their own, and to be somebody who may not do everything.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FIXTURE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FIXTURE_H_

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
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

// While it lives, the rights of files hold for this thread, and for threads that it starts, also if it is root's.
class BoundByRights {
 public:
  BoundByRights() {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    if (syscall(SYS_capget, &header, before_) != 0) return;
    __user_cap_data_struct without[2] = {before_[0], before_[1]};
    without[0].effective &= ~(uint32_t{1} << CAP_DAC_OVERRIDE | uint32_t{1} << CAP_DAC_READ_SEARCH);
    is_bound_ = syscall(SYS_capset, &header, without) == 0;
  }
  ~BoundByRights() {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    if (is_bound_ && syscall(SYS_capset, &header, before_) != 0) ADD_FAILURE() << "not what it was any more";
  }
  BoundByRights(const BoundByRights&) = delete;
  BoundByRights& operator=(const BoundByRights&) = delete;

  bool is_bound() const { return is_bound_; }

 private:
  __user_cap_data_struct before_[2] = {};
  bool is_bound_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FIXTURE_H_
