#include "fraktor/persistence/rocksdb/commit_queue.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/insert_hints.h"
#include "fraktor/persistence/rocksdb/mutation.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

class CommitQueue::GroupWorker final : public ToolboxWorker {
 public:
  explicit GroupWorker(CommitQueue& queue) : queue_(queue) {}
  Progress RunSome() override { return queue_.RunGroup(); }

 private:
  CommitQueue& queue_;
};

CommitQueue::CommitQueue(Database& database, Options options) : database_(database), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<CommitQueue>> CommitQueue::Start(RuntimeToolbox& toolbox, Database& database,
                                                                Options options) {
  auto queue = absl::WrapUnique(new CommitQueue(database, std::move(options)));
  absl::StatusOr<WorkerHandle> worker = toolbox.StartWorker({.name = queue->options_.name, .drives_timers = false},
                                                            std::make_unique<GroupWorker>(*queue));
  if (!worker.ok()) return worker.status();
  queue->worker_ = *std::move(worker);
  return queue;
}

CommitQueue::~CommitQueue() {
  if (!worker_.valid()) return;
  bool finished;
  {
    MutexLock lock(mutex_);
    finished = finishing_;
  }
  if (!finished) Finish([] {});
  worker_.Join().IgnoreError();
}

absl::Status CommitQueue::Submit(std::unique_ptr<Operation> operation) {
  const size_t bytes = operation->byte_size();
  {
    MutexLock lock(mutex_);
    // By what waits, not by what comes: a large operation must not be refused because a small one
    // waits.
    if (waiting_.size() >= options_.max_operations || waiting_bytes_ >= options_.max_bytes) {
      return MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded,
                       absl::StrCat(database_.path(), ": ", waiting_.size(), " requests of ", waiting_bytes_,
                                    " bytes wait already; the limits are ", options_.max_operations, " and ",
                                    options_.max_bytes, ". Send less at a time and try again later"));
    }
    Push(std::move(operation), bytes);
  }
  worker_.Wake();
  return absl::OkStatus();
}

void CommitQueue::SubmitMore(std::unique_ptr<Operation> operation) {
  const size_t bytes = operation->byte_size();
  {
    MutexLock lock(mutex_);
    Push(std::move(operation), bytes);
  }
  worker_.Wake();
}

void CommitQueue::Push(std::unique_ptr<Operation> operation, size_t bytes) {
  waiting_.push_back(std::move(operation));
  waiting_bytes_ += bytes;
}

void CommitQueue::Finish(absl::AnyInvocable<void() &&> last) {
  {
    MutexLock lock(mutex_);
    finishing_ = true;
    last_ = std::move(last);
  }
  worker_.Wake();
}

absl::Status CommitQueue::Join() { return worker_.Join(); }

CommitQueue::Statistics CommitQueue::statistics() const {
  MutexLock lock(mutex_);
  return statistics_;
}

ToolboxWorker::Progress CommitQueue::RunGroup() {
  if (taken_.empty()) {
    absl::AnyInvocable<void() &&> last;
    {
      MutexLock lock(mutex_);
      taken_.swap(waiting_);
      waiting_bytes_ = 0;
      if (taken_.empty()) {
        if (!finishing_) return ToolboxWorker::Progress::kIdle;
        last = std::move(last_);
      }
    }
    if (taken_.empty()) {
      if (last) std::move(last)();
      return ToolboxWorker::Progress::kDone;
    }
  }
  const absl::Status usable = failed_ ? GoOn() : absl::OkStatus();
  Statistics made;
  batch_.Clear();
  bool is_cut = false;
  size_t bytes = 0;
  while (!taken_.empty() && bytes < options_.max_group_bytes) {
    is_cut = usable.ok() && taken_.front()->Prepare(batch_) == Operation::Outcome::kCommitFirst;
    if (is_cut) break;
    made.events += taken_.front()->event_count();
    bytes = usable.ok() ? batch_.GetDataSize() : bytes + taken_.front()->byte_size();
    group_.push_back(std::move(taken_.front()));
    taken_.pop_front();
  }
  if (IsMutated("answer_before_commit")) Complete(usable);
  const absl::Status committed = usable.ok() ? Commit(batch_) : usable;
  if (is_cut && !committed.ok()) {
    // A part of it was in the batch.
    group_.push_back(std::move(taken_.front()));
    taken_.pop_front();
  }
  made.groups = batch_.Count() > 0 ? 1 : 0;
  made.operations = group_.size();
  {
    MutexLock lock(mutex_);
    statistics_.groups += made.groups;
    statistics_.operations += made.operations;
    statistics_.events += made.events;
  }
  Complete(committed);
  return ToolboxWorker::Progress::kBusy;
}

void CommitQueue::Complete(const absl::Status& committed) {
  for (std::unique_ptr<Operation>& operation : group_) {
    operation->Complete(committed);
    operation.reset();
  }
  group_.clear();
}

absl::Status CommitQueue::GoOn() {
  FRAKTOR_RETURN_IF_ERROR(database_.Reopen());
  failed_ = false;
  return absl::OkStatus();
}

absl::Status CommitQueue::Commit(rocksdb::WriteBatch& batch) {
  if (batch.Count() == 0) return absl::OkStatus();
  absl::Status committed;
  {
    const InsertHints::Use use(options_.hints.get(), batch);
    committed = database_.Commit(options_.sync, batch);
  }
  if (!committed.ok()) {
    failed_ = true;
    if (options_.on_failure) options_.on_failure();
  }
  return committed;
}

}  // namespace fraktor::inline v0
