// StoreEngine: what every store on RocksDB is made of: a database, a queue of commits, threads that read, and the order
// in which they end.
//
//   class Core {
//     Future<void> Rename(...) { return engine_->Submit<void, RenameOperation>(*this, ...); }   // ..., Promise<void>
//     Future<Names> List() { return engine_->Read<Names>([this] { return ReadNames(); }); }
//     ~Core() { if (engine_ != nullptr) engine_->Stop(); }                                      // before all else ends
//     std::unique_ptr<StoreEngine> engine_;
//   };
//
// A request is inside from Submit or Read until it is answered; an operation says so itself, by Leave. Close takes no more
// requests, and the database is let go when the last has left.
//
// Thread safety: all methods may be called from any thread but the destructor, which waits and must not run on one of the
// engine's own threads.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_STORE_ENGINE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_STORE_ENGINE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/db.h"
#include "rocksdb/slice.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/rocksdb/commit_queue.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/insert_hints.h"
#include "fraktor/persistence/rocksdb/reader_pool.h"
#include "fraktor/persistence/rocksdb/store_gate.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

inline rocksdb::Slice ToSlice(std::string_view text) { return rocksdb::Slice(text.data(), text.size()); }
inline std::string_view ToView(const rocksdb::Slice& slice) { return std::string_view(slice.data(), slice.size()); }

class StoreEngine {
 public:
  struct Options {
    // In texts: "journal". The threads are named after `thread_name`.
    std::string what = "store";
    std::string thread_name = "store";
    Database::Options database = {};
    bool sync = true;
    size_t max_waiting_requests = 65'536;
    size_t max_waiting_bytes = size_t{64} << 20;
    size_t max_commit_bytes = size_t{4} << 20;
    int reader_threads = 2;
    // As in CommitQueue::Options.
    std::shared_ptr<InsertHints> hints = {};
    std::function<void()> on_failure = {};
    // Called once, by the first Close, when no more requests are taken.
    std::function<void()> on_close = {};
  };

  static absl::StatusOr<std::unique_ptr<StoreEngine>> Open(RuntimeToolbox& toolbox, Options options);
  ~StoreEngine();
  StoreEngine(const StoreEngine&) = delete;
  StoreEngine& operator=(const StoreEngine&) = delete;

  // Makes an Op(args..., Promise<T>) and queues it. kReadOnly, kClosed, kOverloaded.
  template <class T, class Op, class... Args>
  Future<T> Submit(Args&&... args) {
    if (const absl::Status writable = CheckWritable(); !writable.ok()) return MakeReadyFuture<T>(writable);
    if (!gate_.Enter()) return MakeReadyFuture<T>(ClosedStatus());
    auto [promise, future] = MakePromise<T>();
    const absl::Status submitted =
        queue_->Submit(std::make_unique<Op>(std::forward<Args>(args)..., std::move(promise)));
    if (submitted.ok()) return std::move(future);
    Leave();
    return MakeReadyFuture<T>(submitted);
  }
  // Of every operation that Submit has made, when it is answered.
  void Leave() {
    if (gate_.Leave()) Finish();
  }
  // For operations that add much: whether they have to say kCommitFirst before they add more. An
  // empty batch is never full.
  bool IsFull(const rocksdb::WriteBatch& batch) const {
    return batch.Count() > 0 && batch.GetDataSize() >= options_.max_commit_bytes;
  }
  // See CommitQueue.
  void SubmitMore(std::unique_ptr<CommitQueue::Operation> operation) { queue_->SubmitMore(std::move(operation)); }

  // Answers what `read()` returns on a thread that may wait for a disk. kClosed, kOverloaded.
  template <class T, class Fn>
  Future<T> Read(Fn read) {
    return Run<T>([this, read = std::move(read)](Promise<T> promise) mutable {
      const Database::Lease lease(*database_);
      if (lease.status().ok()) {
        promise.Set(read());
      } else {
        promise.Set(lease.status());
      }
    });
  }
  // The same for `work(promise)`, which takes leases and answers by itself, and may go on when it has.
  template <class T, class Fn>
  Future<T> Run(Fn work) {
    if (!gate_.Enter()) return MakeReadyFuture<T>(ClosedStatus());
    auto [promise, future] = MakePromise<T>();
    const absl::Status posted = readers_->Post([this, promise = std::move(promise), work = std::move(work)]() mutable {
      work(std::move(promise));
      Leave();
    });
    if (posted.ok()) return std::move(future);
    Leave();
    return MakeReadyFuture<T>(posted);
  }

  // Whether reads wait for a thread.
  bool HasWaitingReads() const { return readers_->IsBusy(); }

  // As IdentifiedStore.
  StoreIdentity identity() const;
  Future<void> RememberPartner(std::string role, std::string id);

  // As JournalStorage::Close.
  Future<void> Close();
  // Closes, and waits until none of its threads runs: for the destructor of whoever has it and is used by operations and
  // readers. On another thread than those.
  void Stop();
  bool is_closed() const { return gate_.is_closed(); }

  absl::Status CheckWritable() const;
  absl::Status ClosedStatus() const;

  Database& database() { return *database_; }
  rocksdb::DB& db() { return database_->db(); }
  rocksdb::ColumnFamilyHandle* family(size_t i) { return database_->column_family(i); }
  const RocksDbOpenReport& report() const { return database_->report(); }
  CommitQueue::Statistics statistics() const {
    return queue_ == nullptr ? CommitQueue::Statistics() : queue_->statistics();
  }

 private:
  class PartnerOperation;

  explicit StoreEngine(Options options) : options_(std::move(options)) {}

  void Finish();
  void CloseDatabase();

  const Options options_;
  StoreGate gate_;
  Mutex close_mutex_;
  bool has_begun_to_close_ ABSL_GUARDED_BY(close_mutex_) = false;
  bool is_let_go_ ABSL_GUARDED_BY(close_mutex_) = false;
  absl::Status close_status_ ABSL_GUARDED_BY(close_mutex_);
  std::vector<Promise<void>> closing_ ABSL_GUARDED_BY(close_mutex_);

  mutable Mutex identity_mutex_;
  StoreIdentity identity_ ABSL_GUARDED_BY(identity_mutex_);

  // Ended the other way round: readers, queue, database.
  std::unique_ptr<Database> database_;
  std::unique_ptr<CommitQueue> queue_;  // none if read only
  std::unique_ptr<ReaderPool> readers_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_STORE_ENGINE_H_
