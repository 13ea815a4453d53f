// CommitQueue: one thread that makes one synced write of whatever waits (group commit).
//
//   class Rename : public CommitQueue::Operation {
//     Outcome Prepare(rocksdb::WriteBatch& batch) override { batch.Put(...); return Outcome::kReady; }
//     void Complete(const absl::Status& committed) override { promise_.Set(committed); }
//   };
//   FRAKTOR_RETURN_IF_ERROR(queue->Submit(std::make_unique<Rename>(...)));
//
// While one group is being synced, the next one gathers: the more callers, the larger the groups, and nobody waits for
// a timer. One writer is faster than many that RocksDB would have to bring together, and gives one order to everything.
//
// Thread safety: Submit and Finish from any thread. Prepare and Complete run on the worker, one at a time, in the order
// of Submit.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_COMMIT_QUEUE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_COMMIT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/insert_hints.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

class CommitQueue {
 public:
  class Operation {
   public:
    enum class Outcome {
      kReady,        // all of it is in the batch
      kCommitFirst,  // needs what is in the batch to be committed; Prepare is called again for the rest
    };

    virtual ~Operation() = default;

    // Adds to the batch. An operation that fails or has nothing to add remembers that, and says so in Complete.
    virtual Outcome Prepare(rocksdb::WriteBatch& batch) = 0;
    // All that Prepare added is committed, or the error of the commit. Also called with an error, and without Prepare,
    // while the database cannot be used.
    virtual void Complete(const absl::Status& committed) = 0;
    // What it counts for against the limits.
    virtual size_t byte_size() const = 0;
    // How many events it writes, for the statistics.
    virtual size_t event_count() const { return 0; }
  };

  struct Options {
    std::string name = "commit";
    bool sync = true;
    // An operation is taken while those that wait are below both limits, however large it is
    // itself.
    size_t max_operations = 65'536;
    size_t max_bytes = size_t{64} << 20;
    // A group ends with the operation that reaches the limit. An operation that adds more than that
    // by itself has to say kCommitFirst.
    size_t max_group_bytes = size_t{4} << 20;
    // Of the families that are written to. May be null.
    std::shared_ptr<InsertHints> hints = {};
    // A commit has failed: whatever was derived from the operations in it no longer holds.
    std::function<void()> on_failure = {};
  };

  struct Statistics {
    uint64_t groups = 0;
    uint64_t operations = 0;
    uint64_t events = 0;
  };

  // `database` outlives it.
  static absl::StatusOr<std::unique_ptr<CommitQueue>> Start(RuntimeToolbox& toolbox, Database& database,
                                                            Options options);
  // Finish, if nobody did, and waits.
  ~CommitQueue();

  // Takes the operation, or destroys it without a call (kOverloaded).
  absl::Status Submit(std::unique_ptr<Operation> operation);
  // Takes what has to be done for something that was taken before: never refused. From an operation.
  void SubmitMore(std::unique_ptr<Operation> operation);

  // Runs `last` on the worker when everything that was taken is complete; the worker ends then. Nothing may be
  // submitted after it. Once.
  void Finish(absl::AnyInvocable<void() &&> last);

  // Waits for the end that Finish brings.
  absl::Status Join();

  Statistics statistics() const;

 private:
  class GroupWorker;

  CommitQueue(Database& database, Options options);

  void Push(std::unique_ptr<Operation> operation, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ToolboxWorker::Progress RunGroup();
  // Answers all operations of the group.
  void Complete(const absl::Status& committed);
  absl::Status Commit(rocksdb::WriteBatch& batch);
  absl::Status GoOn();

  Database& database_;
  const Options options_;
  WorkerHandle worker_;

  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Operation>> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void() &&> last_ ABSL_GUARDED_BY(mutex_);
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);

  // The worker's own.
  std::deque<std::unique_ptr<Operation>> taken_;
  std::vector<std::unique_ptr<Operation>> group_;
  rocksdb::WriteBatch batch_;
  bool failed_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_COMMIT_QUEUE_H_
