#include "fraktor/persistence/rocksdb/store_engine.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/rocksdb/commit_queue.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/reader_pool.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class StoreEngine::PartnerOperation final : public CommitQueue::Operation {
 public:
  PartnerOperation(StoreEngine& engine, std::string role, std::string id, Promise<void> promise)
      : engine_(engine), role_(std::move(role)), id_(std::move(id)), promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    // Commits alone: stores take an empty batch as the start of a group.
    if (batch.Count() > 0) return Outcome::kCommitFirst;
    rocksdb::WriteBatch own;
    engine_.database_->PutPartner(role_, id_, own);
    result_ = engine_.database_->Commit(engine_.options_.sync, own);
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    promise_.Set(committed.ok() ? result_ : committed);
    engine_.Leave();
  }
  size_t byte_size() const override { return role_.size() + id_.size() + 64; }

 private:
  StoreEngine& engine_;
  const std::string role_;
  const std::string id_;
  Promise<void> promise_;
  absl::Status result_;
};

absl::StatusOr<std::unique_ptr<StoreEngine>> StoreEngine::Open(RuntimeToolbox& toolbox, Options options) {
  auto engine = absl::WrapUnique(new StoreEngine(std::move(options)));
  const Options& own = engine->options_;
  FRAKTOR_ASSIGN_OR_RETURN(engine->database_, Database::Open(own.database));
  {
    MutexLock lock(engine->identity_mutex_);
    engine->identity_ = engine->database_->identity();
  }
  FRAKTOR_ASSIGN_OR_RETURN(engine->readers_, ReaderPool::Start(toolbox, {.name = absl::StrCat(own.thread_name, "-read"),
                                                                         .threads = own.reader_threads}));
  if (own.database.read_only) return engine;
  FRAKTOR_ASSIGN_OR_RETURN(engine->queue_, CommitQueue::Start(toolbox, *engine->database_,
                                                              {.name = absl::StrCat(own.thread_name, "-commit"),
                                                               .sync = own.sync,
                                                               .max_operations = own.max_waiting_requests,
                                                               .max_bytes = own.max_waiting_bytes,
                                                               .max_group_bytes = own.max_commit_bytes,
                                                               .hints = own.hints,
                                                               .on_failure = own.on_failure}));
  return engine;
}

StoreEngine::~StoreEngine() { Stop(); }

void StoreEngine::Stop() {
  // One that could not be opened.
  if (readers_ == nullptr || (queue_ == nullptr && !options_.database.read_only)) return;
  static_cast<void>(Close());
  // The last request lets the worker end; its reader is joined with the readers, which go before the queue.
  if (queue_ != nullptr) queue_->Join().IgnoreError();
  readers_.reset();
}

absl::Status StoreEngine::CheckWritable() const {
  if (!options_.database.read_only) return absl::OkStatus();
  return MakeError(absl::StatusCode::kPermissionDenied, JournalErrorKind::kReadOnly,
                   absl::StrCat("the ", options_.what, " ", options_.database.path,
                                " was opened for reading only; open it for writing"));
}

absl::Status StoreEngine::ClosedStatus() const {
  return ClosedError(absl::StrCat("the ", options_.what, " ", options_.database.path));
}

StoreIdentity StoreEngine::identity() const {
  MutexLock lock(identity_mutex_);
  return identity_;
}

Future<void> StoreEngine::RememberPartner(std::string role, std::string id) {
  {
    MutexLock lock(identity_mutex_);
    identity_.partners.insert_or_assign(role, id);
  }
  return Submit<void, PartnerOperation>(*this, std::move(role), std::move(id));
}

Future<void> StoreEngine::Close() {
  auto [promise, future] = MakePromise<void>();
  bool is_first = false;
  {
    MutexLock lock(close_mutex_);
    if (is_let_go_) return MakeReadyFuture<void>(close_status_);
    is_first = !has_begun_to_close_;
    has_begun_to_close_ = true;
    closing_.push_back(std::move(promise));
  }
  if (is_first) {
    const bool nobody_inside = gate_.Close();
    if (options_.on_close != nullptr) options_.on_close();
    if (nobody_inside) Finish();
  }
  return std::move(future);
}

void StoreEngine::Finish() {
  if (queue_ != nullptr) {
    queue_->Finish([this] { CloseDatabase(); });
  } else {
    // Nothing to write, so nothing to wait for. Not on a reader: they may be ending, with this one as the last.
    CloseDatabase();
  }
}

void StoreEngine::CloseDatabase() {
  const absl::Status closed = database_->Close();
  std::vector<Promise<void>> closing;
  {
    MutexLock lock(close_mutex_);
    is_let_go_ = true;
    close_status_ = closed;
    closing.swap(closing_);
  }
  for (Promise<void>& promise : closing) promise.Set(closed);
}

}  // namespace fraktor::inline v0
