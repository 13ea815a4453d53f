// The journal on RocksDB against bare RocksDB on the same disk: writes of many writers in a closed loop, and replays.
//
// Writers are logical: one thread plays them all, as a journal actor does. "each" sends a request for each writer,
// "collected" one for all that are ready.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

#include "fraktor/benchmarks/persistence/bare_reader.h"
#include "fraktor/benchmarks/persistence/filled_journal.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/replay_cursor.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

constexpr int64_t kEventsPerRound = 20'000;

// A folder that is gone when the program ends.
class Folder {
 public:
  Folder() {
    const char* const parent = std::getenv("TMPDIR");
    path_ = absl::StrCat(parent == nullptr ? "/tmp" : parent, "/storage_benchmark.XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string Fresh(const std::string& name) const {
    std::filesystem::remove_all(path_ + "/" + name);
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

const Folder& TheFolder() {
  static const Folder folder;
  return folder;
}

void BM_BareWrite(benchmark::State& state) {
  const int64_t batch_size = state.range(1);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(options, TheFolder().Fresh("bare"), &opened).ok()) return state.SkipWithError("open");
  const std::unique_ptr<rocksdb::DB> db(opened);
  rocksdb::WriteOptions write;
  write.sync = state.range(0) != 0;
  const std::string payload(kPayloadBytes, 'x');
  std::vector<std::string> ids;
  for (int64_t i = 0; i < batch_size; ++i) ids.push_back(absl::StrCat("account-", i));
  uint64_t number = 0;
  for (auto _ : state) {
    for (int64_t events = 0; events < kEventsPerRound; events += batch_size) {
      ++number;
      rocksdb::WriteBatch batch;
      for (const std::string& id : ids) batch.Put(EventKey(id, number), payload);
      if (!db->Write(write, &batch).ok()) return state.SkipWithError("write");
    }
  }
  state.SetItemsProcessed(state.iterations() * kEventsPerRound);
}
BENCHMARK(BM_BareWrite)
    ->ArgNames({"sync", "batch"})
    ->Args({1, 30})
    ->Args({1, 50})
    ->Args({1, 100})
    ->Args({1, 500})
    ->Args({0, 100})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Who is ready to write again. Wakers come from the journal's thread.
class ReadyList {
 public:
  static void OnWake(void* target, uint64_t index, uint64_t) noexcept {
    static_cast<ReadyList*>(target)->Push(static_cast<size_t>(index));
  }
  Waker WakerOf(size_t index) { return Waker{.function = &OnWake, .target = this, .first = index}; }
  void Push(size_t index) {
    MutexLock lock(mutex_);
    ready_.push_back(index);
    if (ready_.size() == 1) changed_.notify_one();
  }
  void Take(std::vector<size_t>& taken) {
    taken.clear();
    MutexLock lock(mutex_);
    changed_.wait(lock, [this] {
      mutex_.AssertHeld();
      return !ready_.empty();
    });
    taken.swap(ready_);
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<size_t> ready_ ABSL_GUARDED_BY(mutex_);
};

class Writers {
 public:
  Writers(JournalStorage& storage, size_t count) : storage_(storage), numbers_(count, 0) {
    for (size_t i = 0; i < count; ++i) ids_.push_back(absl::StrCat("account-", i));
  }

  AtomicWrite NextWrite(size_t writer) {
    return AtomicWrite::Make(PersistentRepr{.persistence_id = ids_[writer],
                                            .sequence_nr = ++numbers_[writer],
                                            .manifest = "deposited",
                                            .payload = payload_})
        .value();
  }

  // Every writer always has one request under way.
  bool RunEach(int64_t events) {
    std::vector<Future<WriteResults>> flights(ids_.size());
    ReadyList ready;
    int64_t begun = 0;
    int64_t done = 0;
    const auto begin = [&](size_t writer) {
      std::vector<AtomicWrite> writes;
      writes.push_back(NextWrite(writer));
      flights[writer] = storage_.Write(std::move(writes));
      ++begun;
      if (flights[writer].Poll(ready.WakerOf(writer))) ready.Push(writer);
    };
    for (size_t writer = 0; writer < ids_.size(); ++writer) begin(writer);
    std::vector<size_t> taken;
    while (done < begun) {
      ready.Take(taken);
      for (const size_t writer : taken) {
        const absl::StatusOr<WriteResults> results = flights[writer].Take();
        if (!results.ok() || !results->empty()) return false;
        ++done;
        if (begun < events) begin(writer);
      }
    }
    return true;
  }

  // The same, with one request for all writers that are ready.
  bool RunCollected(int64_t events) {
    struct Flight {
      Future<WriteResults> future;
      std::vector<size_t> writers;
    };
    std::vector<Flight> flights(ids_.size());
    std::vector<size_t> free;
    for (size_t i = 0; i < flights.size(); ++i) free.push_back(i);
    ReadyList ready;
    int64_t begun = 0;
    size_t under_way = 0;
    const auto begin = [&](std::vector<size_t> writers) {
      const size_t flight = free.back();
      free.pop_back();
      std::vector<AtomicWrite> writes;
      writes.reserve(writers.size());
      for (const size_t writer : writers) writes.push_back(NextWrite(writer));
      begun += static_cast<int64_t>(writers.size());
      flights[flight] = {storage_.Write(std::move(writes)), std::move(writers)};
      ++under_way;
      if (flights[flight].future.Poll(ready.WakerOf(flight))) ready.Push(flight);
    };
    std::vector<size_t> all;
    for (size_t writer = 0; writer < ids_.size(); ++writer) all.push_back(writer);
    begin(std::move(all));
    std::vector<size_t> taken;
    while (under_way > 0) {
      ready.Take(taken);
      std::vector<size_t> writers;
      for (const size_t flight : taken) {
        const absl::StatusOr<WriteResults> results = flights[flight].future.Take();
        if (!results.ok() || !results->empty()) return false;
        writers.insert(writers.end(), flights[flight].writers.begin(), flights[flight].writers.end());
        free.push_back(flight);
        --under_way;
      }
      if (begun < events) begin(std::move(writers));
    }
    return true;
  }

 private:
  JournalStorage& storage_;
  const std::string payload_ = std::string(kPayloadBytes, 'x');
  std::vector<std::string> ids_;
  std::vector<uint64_t> numbers_;
};

void RunWriters(benchmark::State& state, JournalStorage& journal, bool collected, size_t count) {
  Writers writers(journal, count);
  for (auto _ : state) {
    if (!(collected ? writers.RunCollected(kEventsPerRound) : writers.RunEach(kEventsPerRound))) {
      return state.SkipWithError("write");
    }
  }
  state.SetItemsProcessed(state.iterations() * kEventsPerRound);
}

void WriteToRocksDb(benchmark::State& state, bool collected) {
  const auto toolbox = StdToolbox::Make({}).value();
  const auto journal =
      RocksDbJournal::Open(*toolbox, {.path = TheFolder().Fresh("journal"), .sync = state.range(0) != 0}).value();
  RunWriters(state, *journal, collected, static_cast<size_t>(state.range(1)));
  const RocksDbJournal::Statistics statistics = journal->statistics();
  state.counters["mean_batch"] =
      static_cast<double>(statistics.events) / static_cast<double>(std::max<uint64_t>(1, statistics.commits));
}

void BM_JournalWriteEach(benchmark::State& state) { WriteToRocksDb(state, false); }
BENCHMARK(BM_JournalWriteEach)
    ->ArgNames({"sync", "writers"})
    ->Args({1, 100})
    ->Args({1, 1000})
    ->Args({0, 100})
    ->Args({0, 1000})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_JournalWriteCollected(benchmark::State& state) { WriteToRocksDb(state, true); }
BENCHMARK(BM_JournalWriteCollected)
    ->ArgNames({"sync", "writers"})
    ->Args({1, 100})
    ->Args({1, 1000})
    ->Args({0, 100})
    ->Args({0, 1000})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_MemoryJournalWrite(benchmark::State& state) {
  const auto journal = MemoryJournal::Open({}).value();
  RunWriters(state, *journal, false, static_cast<size_t>(state.range(0)));
}
BENCHMARK(BM_MemoryJournalWrite)
    ->ArgNames({"writers"})
    ->Args({100})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// A database with so many ids of so many events each, written once and flushed.
const std::string& Filled(size_t ids, uint64_t events) {
  static std::string paths[2];
  std::string& path = paths[ids == 1 ? 0 : 1];
  if (path.empty()) {
    path = FilledJournal(TheFolder().Fresh(absl::StrCat("filled-", ids)), {.ids = ids, .events = events});
  }
  return path;
}

double ResidentMebibytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Reads the payload of an event, as a handler does. DoNotOptimize takes no constants.
void TouchLastByte(const StoredEvent& event) {
  char last = event.payload.back();
  benchmark::DoNotOptimize(last);
}

constexpr uint64_t kLongReplay = 1'000'000;
constexpr size_t kManyIds = 10'000;
constexpr uint64_t kShortReplay = 100;

void BM_BareReplayOne(benchmark::State& state) {
  BareReader reader(Filled(1, kLongReplay));
  int64_t events = 0;
  for (auto _ : state) events += reader.Read("account-0");
  if (events != state.iterations() * static_cast<int64_t>(kLongReplay)) state.SkipWithError("events");
  state.SetItemsProcessed(events);
}
BENCHMARK(BM_BareReplayOne)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_JournalReplayOne(benchmark::State& state) {
  const auto toolbox = StdToolbox::Make({}).value();
  const auto journal = RocksDbJournal::Open(*toolbox, {.path = Filled(1, kLongReplay)}).value();
  int64_t events = 0;
  double growth = 0;
  for (auto _ : state) {
    const double before = ResidentMebibytes();
    ReplayCursor cursor({.persistence_id = "account-0"});
    Future<EventBatch> reading = journal->Replay(cursor.NextPage({}));
    while (!cursor.done()) {
      const absl::StatusOr<EventBatch> batch = reading.Wait();
      if (!batch.ok()) return state.SkipWithError("read");
      cursor.Advance(*batch);
      // The next page is read while this one is used.
      if (!cursor.done()) reading = journal->Replay(cursor.NextPage({}));
      for (const StoredEvent& event : *batch) TouchLastByte(event);
      events += static_cast<int64_t>(batch->size());
    }
    growth = std::max(growth, ResidentMebibytes() - before);
  }
  if (events != state.iterations() * static_cast<int64_t>(kLongReplay)) state.SkipWithError("events");
  state.SetItemsProcessed(events);
  state.counters["growth_mib"] = growth;
}
BENCHMARK(BM_JournalReplayOne)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_BareReplayMany(benchmark::State& state) {
  BareReader reader(Filled(kManyIds, kShortReplay));
  std::vector<std::string> ids;
  for (size_t i = 0; i < kManyIds; ++i) ids.push_back(absl::StrCat("account-", i));
  int64_t events = 0;
  for (auto _ : state) {
    for (const std::string& id : ids) events += reader.Read(id);
  }
  if (events != state.iterations() * static_cast<int64_t>(kManyIds * kShortReplay)) state.SkipWithError("events");
  state.SetItemsProcessed(events);
}
BENCHMARK(BM_BareReplayMany)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_JournalReplayMany(benchmark::State& state) {
  constexpr size_t kAtOnce = 50;
  const auto toolbox = StdToolbox::Make({}).value();
  const auto journal = RocksDbJournal::Open(*toolbox, {.path = Filled(kManyIds, kShortReplay)}).value();
  int64_t events = 0;
  for (auto _ : state) {
    std::vector<Future<EventBatch>> flights(kAtOnce);
    ReadyList ready;
    size_t next = 0;
    size_t done = 0;
    const auto begin = [&](size_t slot) {
      flights[slot] = journal->Replay({.persistence_id = absl::StrCat("account-", next++)});
      if (flights[slot].Poll(ready.WakerOf(slot))) ready.Push(slot);
    };
    for (size_t slot = 0; slot < kAtOnce; ++slot) begin(slot);
    std::vector<size_t> taken;
    while (done < kManyIds) {
      ready.Take(taken);
      for (const size_t slot : taken) {
        const absl::StatusOr<EventBatch> batch = flights[slot].Take();
        if (!batch.ok() || !batch->at_end()) return state.SkipWithError("read");
        for (const StoredEvent& event : *batch) TouchLastByte(event);
        events += static_cast<int64_t>(batch->size());
        ++done;
        if (next < kManyIds) begin(slot);
      }
    }
  }
  if (events != state.iterations() * static_cast<int64_t>(kManyIds * kShortReplay)) state.SkipWithError("events");
  state.SetItemsProcessed(events);
}
BENCHMARK(BM_JournalReplayMany)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fraktor
