#include "fraktor/persistence/rocksdb/reader_pool.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {

absl::Status CheckReaderThreads(std::string_view options_name, int threads) {
  if (threads >= 1 && threads <= 64) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(options_name), "::reader_threads is ", threads, "; it must be from 1 to 64"));
}

absl::StatusOr<std::unique_ptr<ReaderPool>> ReaderPool::Start(RuntimeToolbox& toolbox, const Options& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckReaderThreads("ReaderPool::Options", options.threads));
  std::vector<std::unique_ptr<SerialExecutor>> threads;
  for (int i = 0; i < options.threads; ++i) {
    FRAKTOR_ASSIGN_OR_RETURN(
        std::unique_ptr<SerialExecutor> thread,
        SerialExecutor::Make(toolbox, {.name = absl::StrCat(options.name, "-", i), .capacity = options.max_waiting}));
    threads.push_back(std::move(thread));
  }
  return absl::WrapUnique(new ReaderPool(std::move(threads)));
}

bool ReaderPool::IsBusy() const {
  size_t pending = 0;
  for (const std::unique_ptr<SerialExecutor>& thread : threads_) pending += thread->pending();
  return pending > threads_.size();
}

absl::Status ReaderPool::Post(absl::AnyInvocable<void() &&> task) {
  size_t best = 0;
  size_t least = threads_[0]->pending();
  for (size_t i = 1; i < threads_.size() && least > 0; ++i) {
    const size_t pending = threads_[i]->pending();
    if (pending < least) {
      best = i;
      least = pending;
    }
  }
  const absl::Status posted = threads_[best]->TryPost(std::move(task));
  if (posted.ok()) return posted;
  return MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded,
                   absl::StrCat("too many reads wait (", least,
                                " for each thread); try again later, or raise "
                                "reader_threads"));
}

}  // namespace fraktor::inline v0
