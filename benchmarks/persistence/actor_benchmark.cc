// Persistent actors against what they stand on, in one run: bare RocksDB on the same disk, a bare iterator over the same
// keys, asks of actors that store nothing.
//
// `of_bare` is the events per second of the actors against those of the bare loop that ran just before or after, in the
// same iteration: a disk that is slow for a while is slow for both.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/benchmarks/persistence/bare_reader.h"
#include "fraktor/benchmarks/persistence/filled_journal.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

struct Deposited {
  std::string payload = {};
};
struct Run {
  int64_t events = 0;
};
struct Next {};
struct Ping {};
struct Pong {};

}  // namespace

template <>
struct Codec<Deposited> {
  static constexpr std::string_view kManifest = "deposited";
  static void Encode(const Deposited& event, Encoder& out) { out.Raw(event.payload); }
  static Deposited Decode(Decoder& in) { return {std::string(in.Raw(in.rest().size()))}; }
};

namespace {

// A folder that is gone when the program ends.
class Folder {
 public:
  Folder() {
    const char* const parent = std::getenv("TMPDIR");
    path_ = absl::StrCat(parent == nullptr ? "/tmp" : parent, "/actor_benchmark.XXXXXX");
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

Instant Now() {
  static StdToolbox& clock = *StdToolbox::Make({}).value().release();
  return clock.Now();
}
double Seconds(Instant from) { return absl::ToDoubleSeconds(Now() - from); }

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// The most that was resident since ForgetPeak.
double PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kib = 0;
    status >> kib;
    return kib * 1024;
  }
  std::abort();
}
// False: this kernel does not let it. "5" is for the peak: proc(5).
bool ForgetPeak() {
  std::ofstream clear("/proc/self/clear_refs");
  return static_cast<bool>(clear << "5" << std::flush);
}

// Counts down, and says when all are done.
class Countdown {
 public:
  Future<void> Begin(int64_t count) {
    auto [promise, future] = MakePromise<void>();
    promise_ = std::move(promise);
    // Release: with the promise.
    left_.store(count, std::memory_order_release);
    return std::move(future);
  }
  void Done() {
    // Acquire, by the last: the promise, and what others did.
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) promise_.Set(absl::OkStatus());
  }
  // What actors have recovered, by when they are done.
  void AddRecovered(int64_t events) { recovered_.fetch_add(events, std::memory_order_relaxed); }  // Done releases it.
  int64_t recovered() const { return recovered_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_{0};
  std::atomic<int64_t> recovered_{0};
  Promise<void> promise_;
};

// Persists one event after the other, each in a command of its own.
class Account final : public PersistentActor {
 public:
  Account(std::string id, Countdown* done) : id_(std::move(id)), done_(done) {}

 private:
  std::string PersistenceId() const override { return id_; }
  absl::Status ReceiveRecover(ActorContext&, Envelope& event) override {
    benchmark::DoNotOptimize(event.As<Deposited>().payload.back());
    ++recovered_;
    return absl::OkStatus();
  }
  absl::Status OnRecoveryCompleted(ActorContext&) override {
    done_->AddRecovered(recovered_);
    done_->Done();
    return absl::OkStatus();
  }
  absl::Status ReceiveCommand(ActorContext& context, Envelope& command) override {
    if (const auto* const run = command.TryAs<Run>()) {
      left_ = run->events;
    } else if (command.Is<Ping>()) {
      Persist(Deposited{std::string(kPayloadBytes, 'x')}, [&context](const Deposited&) { context.Reply(Pong{}); });
      return absl::OkStatus();
    } else if (!command.Is<Next>()) {
      return Unhandled(command);
    }
    Persist(Deposited{std::string(kPayloadBytes, 'x')}, [this, &context](const Deposited&) {
      if (--left_ > 0) {
        context.Tell(context.self(), Next{});
      } else {
        done_->Done();
      }
    });
    return absl::OkStatus();
  }

  const std::string id_;
  Countdown* const done_;
  int64_t left_ = 0;
  int64_t recovered_ = 0;
};

class World {
 public:
  explicit World(std::shared_ptr<JournalStorage> journal, StdToolbox& toolbox) {
    ActorSystemOptions options;
    options.config.system_name = "bench";
    options.toolbox = &toolbox;
    options.workers = 2;
    options.log_level = LogLevel::kError;
    options.codecs = CodecSetup().Add<Deposited>().Build().value();
    system = ActorSystem::Create(options).value();
    if (!system->Extension<PersistenceExtension>().AddJournal("journal", {.storage = std::move(journal)}).ok()) {
      std::abort();
    }
  }

  // Starts them, and waits for their recoveries.
  std::vector<ActorRef> Start(size_t actors, Countdown& done) {
    Future<void> started = done.Begin(static_cast<int64_t>(actors));
    std::vector<ActorRef> refs;
    for (size_t i = 0; i < actors; ++i) {
      refs.push_back(system->TrySpawn(*MakeProps<Account>({}, IdOf(i), &done)).value());
    }
    started.Wait().IgnoreError();
    return refs;
  }

  std::unique_ptr<ActorSystem> system;
};

class BareWriter {
 public:
  BareWriter(const std::string& path, bool sync) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    rocksdb::DB* opened = nullptr;
    if (!rocksdb::DB::Open(options, path, &opened).ok()) std::abort();
    db_.reset(opened);
    write_.sync = sync;
  }
  // Seconds.
  double Write(int64_t events, int64_t batch_size) {
    while (ids_.size() < static_cast<size_t>(batch_size)) ids_.push_back(IdOf(ids_.size()));
    const std::string payload(kPayloadBytes, 'x');
    const Instant begin = Now();
    for (int64_t done = 0; done < events; done += batch_size) {
      ++number_;
      rocksdb::WriteBatch batch;
      for (int64_t i = 0; i < batch_size; ++i) batch.Put(EventKey(ids_[static_cast<size_t>(i)], number_), payload);
      if (!db_->Write(write_, &batch).ok()) std::abort();
    }
    return Seconds(begin);
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
  std::vector<std::string> ids_;
  uint64_t number_ = 0;
};

void BM_Persist(benchmark::State& state) {
  const bool sync = state.range(0) != 0;
  const auto actors = static_cast<size_t>(state.range(1));
  constexpr int64_t kEvents = 20'000;
  const auto toolbox = StdToolbox::Make({}).value();
  std::shared_ptr<RocksDbJournal> journal =
      RocksDbJournal::Open(*toolbox, {.path = TheFolder().Fresh("journal"), .sync = sync}).value();
  Countdown done;
  World world(journal, *toolbox);
  const std::vector<ActorRef> accounts = world.Start(actors, done);
  BareWriter bare(TheFolder().Fresh("bare"), sync);
  double actor_seconds = 0;
  double bare_seconds = 0;
  double events = 0;
  const RocksDbJournal::Statistics before = journal->statistics();
  for (auto _ : state) {
    const RocksDbJournal::Statistics begun = journal->statistics();
    const Instant begin = Now();
    Future<void> written = done.Begin(static_cast<int64_t>(actors));
    for (const ActorRef account : accounts) Tell(account, Run{kEvents / static_cast<int64_t>(actors)});
    written.Wait().IgnoreError();
    const double seconds = Seconds(begin);
    const RocksDbJournal::Statistics ended = journal->statistics();
    state.SetIterationTime(seconds);
    actor_seconds += seconds;
    events += kEvents;
    // Batches of 100; for more actors those that they have reached.
    const auto reached =
        static_cast<int64_t>((ended.events - begun.events) / std::max<uint64_t>(1, ended.commits - begun.commits));
    bare_seconds += bare.Write(kEvents, actors > 100 ? std::max<int64_t>(1, reached) : 100);
  }
  const RocksDbJournal::Statistics after = journal->statistics();
  state.SetItemsProcessed(static_cast<int64_t>(events));
  state.counters["of_bare"] = bare_seconds / actor_seconds;
  state.counters["mean_batch"] = static_cast<double>(after.events - before.events) /
                                 static_cast<double>(std::max<uint64_t>(1, after.commits - before.commits));
}
BENCHMARK(BM_Persist)
    ->ArgNames({"sync", "actors"})
    ->Args({1, 100})
    ->Args({1, 1000})
    ->Args({0, 100})
    ->Args({0, 1000})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// A journal with so many ids of so many events each, written once and flushed.
const std::string& Filled(size_t ids, uint64_t events) {
  static std::string paths[2];
  std::string& path = paths[ids == 1 ? 0 : 1];
  if (path.empty()) {
    path = FilledJournal(TheFolder().Fresh(absl::StrCat("filled-", ids)), {.ids = ids, .events = events});
  }
  return path;
}

void BM_Recover(benchmark::State& state) {
  const auto actors = static_cast<size_t>(state.range(0));
  const auto events = static_cast<uint64_t>(state.range(1));
  const std::string& path = Filled(actors, events);
  const auto all = static_cast<int64_t>(actors * events);
  double actor_seconds = 0;
  double bare_seconds = 0;
  double growth = 0;
  for (auto _ : state) {
    {
      BareReader bare(path);
      int64_t read = 0;
      const Instant begin = Now();
      for (size_t i = 0; i < actors; ++i) read += bare.Read(IdOf(i));
      bare_seconds += Seconds(begin);
      if (read != all) return state.SkipWithError("the bare iterator has missed events");
    }
    const auto toolbox = StdToolbox::Make({}).value();
    std::shared_ptr<RocksDbJournal> journal = RocksDbJournal::Open(*toolbox, {.path = path}).value();
    Countdown done;
    World world(journal, *toolbox);
    if (!ForgetPeak()) return state.SkipWithError("/proc/self/clear_refs cannot be written");
    const double before = ResidentBytes();
    const Instant begin = Now();
    world.Start(actors, done);
    const double seconds = Seconds(begin);
    growth = std::max(growth, PeakBytes() - before);
    if (done.recovered() != all) return state.SkipWithError("the actors have missed events");
    state.SetIterationTime(seconds);
    actor_seconds += seconds;
  }
  state.SetItemsProcessed(state.iterations() * all);
  state.counters["of_bare"] = bare_seconds / actor_seconds;
  state.counters["growth_mib"] = growth / (1 << 20);
}
BENCHMARK(BM_Recover)
    ->ArgNames({"actors", "events"})
    ->Args({1, 1'000'000})
    ->Args({10'000, 100})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

class Echo : public Actor<Echo, Ping> {
 public:
  Pong On(Context&, const Ping&) { return {}; }
};

// Asks one after the other.
class Asker : public Actor<Asker, Run> {
 public:
  Asker(ActorRef target, Countdown* done) : target_(target), done_(done) {}
  Task<> On(Context& context, Run run) {
    for (int64_t i = 0; i < run.events; ++i) {
      auto asking = context.Ask<Pong>(target_, Ping{}, absl::Seconds(30));
      const absl::StatusOr<Pong> answer = co_await asking;
      if (!answer.ok()) std::abort();
    }
    done_->Done();
  }

 private:
  const ActorRef target_;
  Countdown* const done_;
};

void BM_PersistInMemory(benchmark::State& state) {
  const auto pairs = static_cast<size_t>(state.range(0));
  constexpr int64_t kAsks = 100'000;
  constexpr int64_t kTurns = 10;
  const auto toolbox = StdToolbox::Make({}).value();
  double plain_seconds = 0;
  double persistent_seconds = 0;
  for (auto _ : state) {
    // A fresh one for each, since it keeps everything.
    Countdown done;
    World world(MemoryJournal::Open({}).value(), *toolbox);
    const std::vector<ActorRef> accounts = world.Start(pairs, done);
    const auto run = [&](const std::vector<ActorRef>& targets, int64_t asks) {
      std::vector<RefOf<Asker>> askers;
      for (const ActorRef target : targets) askers.push_back(world.system->Spawn<Asker>({}, target, &done));
      Future<void> ended = done.Begin(static_cast<int64_t>(askers.size()));
      const Instant begin = Now();
      for (const auto& asker : askers) asker.Tell(Run{asks / static_cast<int64_t>(askers.size())});
      ended.Wait().IgnoreError();
      return Seconds(begin);
    };
    std::vector<ActorRef> echoes;
    for (size_t i = 0; i < pairs; ++i) echoes.push_back(world.system->Spawn<Echo>().untyped());
    // Both are warm when they are measured, and in turn, so that a machine that is slow for a while is slow for both.
    run(echoes, kAsks / kTurns);
    run(accounts, kAsks / kTurns);
    double seconds = 0;
    for (int64_t turn = 0; turn < kTurns; ++turn) {
      const bool plain_is_first = turn % 2 == 0;
      if (plain_is_first) plain_seconds += run(echoes, kAsks / kTurns);
      seconds += run(accounts, kAsks / kTurns);
      if (!plain_is_first) plain_seconds += run(echoes, kAsks / kTurns);
    }
    persistent_seconds += seconds;
    state.SetIterationTime(seconds);
  }
  state.SetItemsProcessed(state.iterations() * kAsks);
  state.counters["of_asks"] = plain_seconds / persistent_seconds;
}
BENCHMARK(BM_PersistInMemory)
    ->ArgNames({"pairs"})
    ->Args({1})
    ->Args({10})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Keeps nothing, so that only actors are measured.
class NoJournal final : public JournalStorage {
 public:
  Future<WriterOpened> OpenWriter(std::string, std::optional<uint64_t>) override {
    return MakeReadyFuture<WriterOpened>(WriterOpened{.epoch = 1});
  }
  Future<WriteResults> Write(std::vector<AtomicWrite>) override {
    return MakeReadyFuture<WriteResults>(WriteResults());
  }
  Future<EventBatch> Replay(ReplayPage) override {
    EventBatch batch;
    batch.Finish(1, true);
    return MakeReadyFuture<EventBatch>(std::move(batch));
  }
  Future<uint64_t> HighestSequenceNr(std::string) override { return MakeReadyFuture<uint64_t>(uint64_t{0}); }
  Future<void> DeleteTo(std::string, uint64_t, uint64_t) override { return MakeReadyFuture(); }
  Future<EventBatch> EventsByTag(TagPage) override { return MakeReadyFuture<EventBatch>(EventBatch()); }
  Future<IdBatch> PersistenceIds(IdPage) override { return MakeReadyFuture<IdBatch>(IdBatch()); }
  Future<uint64_t> AwaitAdvance(JournalSubject, uint64_t) override {
    return MakeReadyFuture<uint64_t>(absl::UnimplementedError("nothing is kept"));
  }
  Future<void> Close() override { return MakeReadyFuture(); }
  const JournalLimits& limits() const override { return limits_; }

 private:
  const JournalLimits limits_;
};

// What a persistent actor that waits for commands costs more than a plain one with the same name in it.
class Plain : public Actor<Plain, Ping> {
 public:
  explicit Plain(std::string id) : id_(std::move(id)) {}
  Pong On(Context&, const Ping&) { return {}; }

 private:
  const std::string id_;
};

void BM_IdlePersistentActor(benchmark::State& state) {
  constexpr size_t kActors = 50'000;
  // They live until the program ends: memory that one run gives back would be free for the next.
  StdToolbox& toolbox = *StdToolbox::Make({}).value().release();
  Countdown& done = *new Countdown;
  World& world = *new World(std::make_shared<NoJournal>(), toolbox);
  for (auto _ : state) {
    const double empty = ResidentBytes();
    for (size_t i = 0; i < kActors; ++i) world.system->Spawn<Plain>({}, IdOf(i));
    const double plain = ResidentBytes();
    world.Start(kActors, done);
    const double persistent = ResidentBytes();
    state.counters["bytes_per_actor"] = (persistent - plain) / kActors;
    state.counters["bytes_more"] = (persistent - plain - (plain - empty)) / kActors;
  }
}
BENCHMARK(BM_IdlePersistentActor)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fraktor
