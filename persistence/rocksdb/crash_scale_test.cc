// A process with many persistent actors is killed at random moments, again and again. The actors
// persist single events and atomic ones, save snapshots, delete events and old snapshots, and are
// stopped and started while they do. A file that the process
// shares with the system has everything that the actors were told: a kill loses nothing of it. Each
// actor compares itself with the file when it recovers, and at the end the test reads both stores.
//
// FRAKTOR_CRASH_IDS and FRAKTOR_CRASH_ROUNDS make it larger; FRAKTOR_CRASH_SEED repeats its
// choices, but not the schedule of the threads.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

extern char** environ;

namespace fraktor {
namespace {

struct Added {
  uint64_t amount = 0;
};
struct Sum {
  uint64_t events = 0;
  uint64_t total = 0;
};

}  // namespace

template <>
struct Codec<Added> : FieldCodec<Added, &Added::amount> {
  static constexpr std::string_view kManifest = "added";
};
template <>
struct Codec<Sum> : FieldCodec<Sum, &Sum::events, &Sum::total> {
  static constexpr std::string_view kManifest = "sum";
};

namespace {

// Where the child says that it goes on: one byte for each kStride steps.
constexpr int kReportFd = 3;
constexpr uint64_t kStride = 16;
constexpr const char* kFolderVariable = "FRAKTOR_CRASH_FOLDER";
constexpr const char* kIdsVariable = "FRAKTOR_CRASH_IDS";
constexpr const char* kRoundsVariable = "FRAKTOR_CRASH_ROUNDS";
constexpr const char* kSeedVariable = "FRAKTOR_CRASH_SEED";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kDefaultIds = 200;
constexpr uint64_t kDefaultRounds = 2;
#else
constexpr size_t kDefaultIds = 1000;
constexpr uint64_t kDefaultRounds = 5;
#endif

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* const text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : fallback;
}

// The knowledge of one id. One process at a time writes it, and its actor alone; the parent reads
// it when that process has ended. So all accesses are relaxed, and a kill between two stores leaves
// the first of them.
struct Expected {
  // The highest number before the last atomic write that was begun, and with it.
  std::atomic<uint64_t> base;
  std::atomic<uint64_t> begun;
  // The highest number whose handler has run.
  std::atomic<uint64_t> acknowledged;
  // The number of the last acknowledged snapshot.
  std::atomic<uint64_t> snapshot;
  // How far the last deletion of events was to go, and the last acknowledged one.
  std::atomic<uint64_t> deletion_begun;
  std::atomic<uint64_t> deleted;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Counts that order nothing: relaxed.
struct Header {
  std::atomic<uint64_t> recoveries;
  std::atomic<uint64_t> acknowledged;
  std::atomic<uint64_t> snapshots;
  std::atomic<uint64_t> deletions;
  std::atomic<uint64_t> failures;
};

// Header and an Expected for each id, in a file that is mapped.
class ExpectedFile {
 public:
  ExpectedFile(const std::string& path, size_t ids) : bytes_(sizeof(Header) + ids * sizeof(Expected)) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes_)) != 0) std::abort();
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~ExpectedFile() { ::munmap(memory_, bytes_); }
  ExpectedFile(const ExpectedFile&) = delete;
  ExpectedFile& operator=(const ExpectedFile&) = delete;

  Header& header() { return *static_cast<Header*>(memory_); }
  Expected& of(size_t id) { return reinterpret_cast<Expected*>(static_cast<char*>(memory_) + sizeof(Header))[id]; }

 private:
  const size_t bytes_;
  void* memory_ = nullptr;
};

std::string IdOf(size_t id) { return absl::StrCat("account-", id); }

// The event with this number. So the total says which events were applied, and how often.
uint64_t AmountOf(size_t id, uint64_t number) { return MixBits(id * 1'000'003 + number) >> 20; }
uint64_t TotalOf(size_t id, uint64_t last) {
  uint64_t total = 0;
  for (uint64_t number = 1; number <= last; ++number) total += AmountOf(id, number);
  return total;
}

// The child.

struct Next {};
struct Restart {
  size_t id = 0;
};

void ReportProgress(uint64_t steps) {
  if (steps % kStride != 0) return;
  const char byte = '.';
  if (::write(kReportFd, &byte, 1) != 1) std::abort();
}

class Account final : public PersistentActor {
 public:
  Account(size_t id, ExpectedFile* file) : id_(id), file_(*file), random_(MixBits(id + 1)) {}

 private:
  Expected& expected() { return file_.of(id_); }
  std::string PersistenceId() const override { return IdOf(id_); }

  void Fail(const std::string& what) {
    file_.header().failures.fetch_add(1, std::memory_order_relaxed);
    std::fprintf(stderr, "%s: %s\n", IdOf(id_).c_str(), what.c_str());
  }

  absl::Status ReceiveRecover(ActorContext& /*context*/, Envelope& event) override {
    Apply(event.As<Added>());
    return absl::OkStatus();
  }
  absl::Status ReceiveSnapshot(ActorContext& /*context*/, const SnapshotMetadata& /*metadata*/,
                               Envelope& state) override {
    sum_ = state.As<Sum>();
    return absl::OkStatus();
  }
  absl::Status OnRecoveryCompleted(ActorContext& context) override {
    const uint64_t base = expected().base.load(std::memory_order_relaxed);
    const uint64_t begun = expected().begun.load(std::memory_order_relaxed);
    const uint64_t acknowledged = expected().acknowledged.load(std::memory_order_relaxed);
    // The last atomic write is there as a whole, or, if no handler of it has run, not at all.
    if (sum_.events != begun && (sum_.events != base || acknowledged > base)) {
      Fail(absl::StrCat("recovered ", sum_.events, " events; acknowledged were ", acknowledged,
                        ", and the last atomic write is ", base + 1, "..", begun));
    }
    if (sum_.total != TotalOf(id_, sum_.events)) {
      Fail(absl::StrCat("the total of ", sum_.events, " events is wrong: one is missing or was applied twice"));
    }
    expected().base.store(sum_.events, std::memory_order_relaxed);
    expected().begun.store(sum_.events, std::memory_order_relaxed);
    expected().acknowledged.store(sum_.events, std::memory_order_relaxed);
    random_ = random_.Fork(sum_.events);
    ReportProgress(file_.header().recoveries.fetch_add(1, std::memory_order_relaxed));
    context.Tell(context.self(), Next{});
    return absl::OkStatus();
  }
  absl::Status ReceiveCommand(ActorContext& context, Envelope& command) override {
    if (const auto* const saved = command.TryAs<SaveSnapshotSuccess>()) {
      const uint64_t number = saved->metadata.sequence_nr;
      file_.header().snapshots.fetch_add(1, std::memory_order_relaxed);
      expected().snapshot.store(number, std::memory_order_relaxed);
      expected().deletion_begun.store(number, std::memory_order_relaxed);
      DeleteMessages(number);
      DeleteSnapshots({.max_sequence_nr = number - 1});
      return absl::OkStatus();
    }
    if (const auto* const deleted = command.TryAs<DeleteMessagesSuccess>()) {
      file_.header().deletions.fetch_add(1, std::memory_order_relaxed);
      expected().deleted.store(deleted->to_sequence_nr, std::memory_order_relaxed);
      return absl::OkStatus();
    }
    if (command.Is<Next>()) PersistMore(context);
    return absl::OkStatus();
  }
  void PersistMore(ActorContext& context) {
    const uint64_t choice = random_.Uniform(20);
    // The bank starts it again.
    if (choice == 0) return context.Stop();
    if (choice < 3 && sum_.events > 0) SaveSnapshot(sum_);
    const uint64_t count = choice < 8 ? 2 + random_.Uniform(3) : 1;
    std::vector<Added> events;
    for (uint64_t i = 1; i <= count; ++i) events.push_back({AmountOf(id_, sum_.events + i)});
    expected().base.store(sum_.events, std::memory_order_relaxed);
    expected().begun.store(sum_.events + count, std::memory_order_relaxed);
    left_ = count;
    PersistAll(std::move(events), [this, &context](const Added& event) {
      Apply(event);
      expected().acknowledged.store(sum_.events, std::memory_order_relaxed);
      ReportProgress(file_.header().acknowledged.fetch_add(1, std::memory_order_relaxed));
      if (--left_ == 0) context.Tell(context.self(), Next{});
    });
  }
  void OnPersistFailure(const absl::Status& cause, Envelope& /*event*/, uint64_t nr) override {
    Fail(absl::StrCat("event ", nr, " cannot be stored: ", cause.ToString()));
  }
  void OnPersistRejected(const absl::Status& cause, Envelope& /*event*/, uint64_t nr) override {
    Fail(absl::StrCat("event ", nr, " is rejected: ", cause.ToString()));
  }
  void OnRecoveryFailure(const absl::Status& cause, Envelope* /*event*/) override {
    Fail(absl::StrCat("cannot recover: ", cause.ToString()));
  }

  void Apply(const Added& event) {
    ++sum_.events;
    sum_.total += event.amount;
  }

  const size_t id_;
  ExpectedFile& file_;
  Random random_;
  Sum sum_;
  uint64_t left_ = 0;
};

// Starts each account again that has stopped.
class Bank final : public ActorInstance {
 public:
  Bank(size_t ids, ExpectedFile* file) : ids_(ids), file_(file) {}

  absl::Status PreStart(ActorContext& context) override {
    for (size_t id = 0; id < ids_; ++id) {
      if (const absl::Status started = Start(context, id); !started.ok()) return started;
    }
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    return Start(context, message.As<Restart>().id);
  }

 private:
  absl::Status Start(ActorContext& context, size_t id) {
    const absl::StatusOr<ActorRef> account = context.TrySpawn(*MakeProps<Account>({}, id, file_));
    return account.ok() ? context.WatchWith(*account, Restart{id}) : account.status();
  }

  const size_t ids_;
  ExpectedFile* const file_;
};

// Not a test by itself: the program that CrashAtScale starts and kills.
TEST(CrashAtScaleChild, DISABLED_Persists) {
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr) GTEST_SKIP() << "only for the test of this file";
  const size_t ids = FromEnvironment(kIdsVariable, 1);
  ExpectedFile file(absl::StrCat(folder, "/expected"), ids);
  auto toolbox = StdToolbox::Make({}).value();
  std::shared_ptr<RocksDbJournal> journal =
      RocksDbJournal::Open(*toolbox, {.path = absl::StrCat(folder, "/journal"), .max_cached_ids = ids / 10 + 1})
          .value();
  std::shared_ptr<RocksDbSnapshotStore> snapshots =
      RocksDbSnapshotStore::Open(*toolbox, {.path = absl::StrCat(folder, "/snapshots")}).value();
  ActorSystemOptions options;
  options.config.system_name = "crash";
  options.toolbox = toolbox.get();
  options.workers = 2;
  options.codecs = CodecSetup().Add<Added>().Add<Sum>().Build().value();
  const auto system = ActorSystem::Create(options).value();
  auto& persistence = system->Extension<PersistenceExtension>();
  ASSERT_TRUE(persistence.AddJournal("rocksdb", {.storage = journal}).ok());
  ASSERT_TRUE(persistence.AddSnapshotStore("rocksdb", {.storage = snapshots}).ok());
  ASSERT_TRUE(system->TrySpawn(*MakeProps<Bank>({}, ids, &file), "bank").ok());
  // Until it is killed.
  static_cast<void>(system->WhenTerminated().Wait());
}

// The parent.

class CrashAtScale : public testing::Test {
 protected:
  // Starts a child and kills it after so many steps.
  void RunAndKill(uint64_t steps) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], kReportFd);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::string filter = "--gtest_filter=CrashAtScaleChild.DISABLED_Persists";
    std::string disabled = "--gtest_also_run_disabled_tests";
    std::string self = "/proc/self/exe";
    char* const arguments[] = {self.data(), filter.data(), disabled.data(), nullptr};
    std::string folder = absl::StrCat(kFolderVariable, "=", folder_.path(""));
    std::string ids = absl::StrCat(kIdsVariable, "=", ids_);
    std::vector<char*> variables;
    // Without what GoogleTest and Bazel would take for theirs, and with our own.
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text(*variable);
      if (!text.starts_with("GTEST_") && !text.starts_with("TEST_") && !text.starts_with("XML_OUTPUT") &&
          !text.starts_with("FRAKTOR_CRASH_")) {
        variables.push_back(*variable);
      }
    }
    variables.push_back(folder.data());
    variables.push_back(ids.data());
    variables.push_back(nullptr);
    pid_t child = 0;
    const int spawned = ::posix_spawn(&child, self.c_str(), &actions, nullptr, arguments, variables.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    ASSERT_EQ(spawned, 0);
    char bytes[256];
    ssize_t count = 0;
    bool is_killed = false;
    for (uint64_t seen = 0; (count = ::read(ends[0], bytes, sizeof(bytes))) > 0;) {
      seen += static_cast<uint64_t>(count) * kStride;
      if (is_killed || seen < steps) continue;
      is_killed = true;
      EXPECT_EQ(::kill(child, SIGKILL), 0);
    }
    ::close(ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(is_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "the child ended by itself, with status " << status;
    ASSERT_EQ(file_.header().failures.load(std::memory_order_relaxed), 0u) << "see what the child wrote above";
  }

  // Reads both stores: what was acknowledged is there, and each account can recover.
  void ReadStores() {
    const auto toolbox = StdToolbox::Make({}).value();
    const auto journal = RocksDbJournal::Open(*toolbox, {.path = folder_.path("journal")}).value();
    const auto snapshots = RocksDbSnapshotStore::Open(*toolbox, {.path = folder_.path("snapshots")}).value();
    const auto codecs = CodecSetup().Add<Added>().Add<Sum>().Build().value();
    for (size_t id = 0; id < ids_ && !HasFailure(); ++id) {
      SCOPED_TRACE(IdOf(id));
      const Expected& expected = file_.of(id);
      const uint64_t highest = journal->HighestSequenceNr(IdOf(id)).Wait().value();
      const uint64_t deleted_to = journal->DeletedTo(IdOf(id)).Wait().value();
      EXPECT_GE(highest, expected.acknowledged.load(std::memory_order_relaxed));
      EXPECT_LE(highest, expected.begun.load(std::memory_order_relaxed));
      EXPECT_GE(deleted_to, expected.deleted.load(std::memory_order_relaxed));
      EXPECT_LE(deleted_to, expected.deletion_begun.load(std::memory_order_relaxed));
      const auto snapshot = snapshots->Load(IdOf(id), SnapshotSelectionCriteria::Latest()).Wait().value();
      const uint64_t saved = snapshot.has_value() ? snapshot->metadata.sequence_nr : 0;
      EXPECT_GE(saved, expected.snapshot.load(std::memory_order_relaxed));
      EXPECT_GE(saved, deleted_to) << "nothing has the events that are deleted";
      if (snapshot.has_value()) {
        const auto sum = codecs->DecodeAs<Sum>({snapshot->manifest, snapshot->manifest_version, snapshot->payload});
        ASSERT_TRUE(sum.ok()) << sum.status();
        EXPECT_EQ(sum->events, saved);
        EXPECT_EQ(sum->total, TotalOf(id, saved));
      }
      const EventBatch events =
          journal->Replay({.persistence_id = IdOf(id), .limits = {.max_events = 1'000'000}}).Wait().value();
      uint64_t last = deleted_to;
      for (const StoredEvent& event : events) {
        EXPECT_EQ(event.sequence_nr, ++last);
        const auto added = codecs->DecodeAs<Added>({event.manifest, event.manifest_version, event.payload});
        EXPECT_EQ(added->amount, AmountOf(id, event.sequence_nr));
      }
      EXPECT_EQ(last, highest);
    }
  }

  TemporaryFolder folder_;
  const size_t ids_ = FromEnvironment(kIdsVariable, kDefaultIds);
  ExpectedFile file_ = ExpectedFile(folder_.path("expected"), ids_);
};

// PER-2, PER-14
TEST_F(CrashAtScale, LosesNothingThatWasAcknowledged) {
  const uint64_t rounds = FromEnvironment(kRoundsVariable, kDefaultRounds);
  Random random(FromEnvironment(kSeedVariable, 1));
  for (uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    // Sometimes while it recovers, mostly while it writes.
    RunAndKill(1 + random.Uniform(4 * ids_));
    if (HasFailure()) return;
    if (rounds > 5) {
      std::cout << "round " << round + 1 << " of " << rounds << ": "
                << file_.header().acknowledged.load(std::memory_order_relaxed) << " events acknowledged" << std::endl;
    }
  }
  ReadStores();
  Header& header = file_.header();
  std::cout << ids_ << " ids, " << rounds << " kills: " << header.recoveries.load(std::memory_order_relaxed)
            << " recoveries, " << header.acknowledged.load(std::memory_order_relaxed) << " events, "
            << header.snapshots.load(std::memory_order_relaxed) << " snapshots, "
            << header.deletions.load(std::memory_order_relaxed) << " deletions\n";
  EXPECT_GT(header.acknowledged.load(std::memory_order_relaxed), 0u);
}

}  // namespace
}  // namespace fraktor
