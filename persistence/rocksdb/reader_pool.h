// ReaderPool: threads that read from a database, so that neither callers nor the commit queue wait for a disk.
//
//   FRAKTOR_RETURN_IF_ERROR(readers->Post([promise = std::move(promise)]() mutable { promise.Set(Read()); }));
//
// Thread safety: Post from any thread.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_READER_POOL_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_READER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {

// InvalidArgument, naming `options_name`, unless a pool can have so many threads. For stores, before they touch a disk.
absl::Status CheckReaderThreads(std::string_view options_name, int threads);

class ReaderPool {
 public:
  struct Options {
    std::string name = "reader";
    // As CheckReaderThreads.
    int threads = 2;
    int64_t max_waiting = 65'536;
  };

  static absl::StatusOr<std::unique_ptr<ReaderPool>> Start(RuntimeToolbox& toolbox, const Options& options);

  // Runs `task` on the thread that has least to do. kOverloaded: it is destroyed unrun.
  absl::Status Post(absl::AnyInvocable<void() &&> task);

  // Whether more waits and runs than there are threads.
  bool IsBusy() const;

 private:
  explicit ReaderPool(std::vector<std::unique_ptr<SerialExecutor>> threads) : threads_(std::move(threads)) {}

  const std::vector<std::unique_ptr<SerialExecutor>> threads_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_READER_POOL_H_
