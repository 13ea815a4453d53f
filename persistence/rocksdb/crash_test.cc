// A process that persists from a hundred actors is killed at random points, again and again: whatever it said was stored
// is there afterwards, in order and without a gap. Variants damage the part of the log that nobody was told about.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"

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
#include "fraktor/persistence/rocksdb/commit_mark.h"
#include "fraktor/persistence/rocksdb/log_files.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

extern char** environ;

namespace fraktor {
namespace {

struct Written {
  uint64_t number = 0;
};
struct Next {};

}  // namespace

template <>
struct Codec<Written> : FieldCodec<Written, &Written::number> {
  static constexpr std::string_view kManifest = "written";
};

namespace {

constexpr int kActors = 100;
// Where the child says what it knows: a line is written at once or not at all.
constexpr int kReportFd = 3;
constexpr const char* kFolderVariable = "FRAKTOR_CRASH_FOLDER";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRounds = 6;
#else
constexpr int kRounds = 50;
#endif

std::string NewestLog(const std::string& path) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".log") newest = std::max(newest, entry.path().string());
  }
  return newest;
}

std::string IdOf(int actor) { return absl::StrCat("actor-", actor); }

// The child.

void Report(const std::string& line) {
  if (::write(kReportFd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

// Persists one event after the other.
class Writer final : public PersistentActor {
 public:
  Writer(int number, int log_fd) : number_(number), log_fd_(log_fd) {}

 private:
  std::string PersistenceId() const override { return IdOf(number_); }

  absl::Status ReceiveRecover(ActorContext&, Envelope& event) override {
    const uint64_t number = event.As<Written>().number;
    if (number != last_ + 1) Report(absl::StrCat("bad ", number_, " has ", number, " after ", last_, "\n"));
    last_ = number;
    return absl::OkStatus();
  }
  absl::Status OnRecoveryCompleted(ActorContext& context) override {
    Report(absl::StrCat("recovered ", number_, " ", last_, "\n"));
    context.Tell(context.self(), Next{});
    return absl::OkStatus();
  }
  absl::Status ReceiveCommand(ActorContext& context, Envelope& command) override {
    if (!command.Is<Next>()) return Unhandled(command);
    Persist(Written{last_ + 1}, [this, &context](const Written& event) {
      last_ = event.number;
      // All that is acknowledged until now is in what the log has now.
      struct stat log {};
      ::fstat(log_fd_, &log);
      Report(absl::StrCat("stored ", number_, " ", last_, " ", log.st_size, "\n"));
      context.Tell(context.self(), Next{});
    });
    return absl::OkStatus();
  }

  const int number_;
  const int log_fd_;
  uint64_t last_ = 0;
};

// Not a test by itself: the program that Crash.* starts and kills.
TEST(CrashChild, DISABLED_Persists) {
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr) GTEST_SKIP() << "only for the tests of this file";
  Report("started\n");
  auto toolbox = StdToolbox::Make({}).value();
  std::shared_ptr<RocksDbJournal> journal = RocksDbJournal::Open(*toolbox, {.path = folder}).value();
  Report("open\n");
  const int log_fd = ::open(NewestLog(folder).c_str(), O_RDONLY | O_CLOEXEC);
  ActorSystemOptions options;
  options.config.system_name = "crash";
  options.toolbox = toolbox.get();
  options.workers = 2;
  options.codecs = CodecSetup().Add<Written>().Build().value();
  const auto system = ActorSystem::Create(options).value();
  ASSERT_TRUE(system->Extension<PersistenceExtension>().AddJournal("rocksdb", {.storage = journal}).ok());
  for (int i = 0; i < kActors; ++i) ASSERT_TRUE(system->TrySpawn(*MakeProps<Writer>({}, i, log_fd), IdOf(i)).ok());
  // Until it is killed.
  static_cast<void>(system->WhenTerminated().Wait());
}

// The parent.

// What a child has said.
struct Heard {
  int64_t log_size = 0;
  int lines = 0;
  int acknowledged = 0;
};

class Crash : public testing::Test {
 protected:
  enum class KillWhen { kAtOnce, kSilent };

  // Starts a child, kills it after so many lines, and notes all that it has said until then. A child that is silent has
  // probably written something that it waits for.
  void RunAndKill(int lines, KillWhen when = KillWhen::kAtOnce) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], kReportFd);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::string filter = "--gtest_filter=CrashChild.DISABLED_Persists";
    std::string disabled = "--gtest_also_run_disabled_tests";
    std::string self = "/proc/self/exe";
    char* const arguments[] = {self.data(), filter.data(), disabled.data(), nullptr};
    std::string folder = absl::StrCat(kFolderVariable, "=", path_);
    std::vector<char*> variables;
    // Without what GoogleTest and Bazel would take for theirs.
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text(*variable);
      if (!text.starts_with("GTEST_") && !text.starts_with("TEST_") && !text.starts_with("XML_OUTPUT")) {
        variables.push_back(*variable);
      }
    }
    variables.push_back(folder.data());
    variables.push_back(nullptr);
    pid_t child = 0;
    const int spawned = ::posix_spawn(&child, self.c_str(), &actions, nullptr, arguments, variables.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    ASSERT_EQ(spawned, 0);

    heard_ = Heard();
    std::FILE* const report = ::fdopen(ends[0], "r");
    // What it has said is in the pipe or heard, so that silence can be seen.
    std::setvbuf(report, nullptr, _IONBF, 0);
    char line[256];
    bool is_killed = false;
    while (std::fgets(line, sizeof(line), report) != nullptr) {
      Hear(line);
      if (heard_.lines < lines || is_killed) continue;
      if (when == KillWhen::kSilent && heard_.lines < lines + 1000) {
        pollfd more = {.fd = ends[0], .events = POLLIN, .revents = 0};
        const timespec patience = {.tv_sec = 0, .tv_nsec = 300'000};
        if (::ppoll(&more, 1, &patience, nullptr) > 0) continue;
      }
      is_killed = true;
      EXPECT_EQ(::kill(child, SIGKILL), 0);
    }
    std::fclose(report);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(is_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "the child ended by itself, with status " << status << ", after " << heard_.lines << " lines";
  }

  void Hear(const char* line) {
    ++heard_.lines;
    const std::string_view text(line);
    unsigned actor = 0;
    unsigned long number = 0;
    long size = 0;
    if (std::sscanf(line, "stored %u %lu %ld", &actor, &number, &size) == 3) {
      ASSERT_LT(actor, unsigned{kActors});
      EXPECT_EQ(number, acknowledged_[actor] + 1) << "actor " << actor;
      acknowledged_[actor] = number;
      ++heard_.acknowledged;
      heard_.log_size = std::max<int64_t>(heard_.log_size, size);
    } else if (std::sscanf(line, "recovered %u %lu", &actor, &number) == 2) {
      ASSERT_LT(actor, unsigned{kActors});
      // What was not acknowledged may be there too: one event.
      EXPECT_GE(number, acknowledged_[actor]) << "actor " << actor << " has lost events";
      EXPECT_LE(number, acknowledged_[actor] + 1) << "actor " << actor;
      acknowledged_[actor] = number;
    } else {
      EXPECT_TRUE(text == "started\n" || text == "open\n") << text;
    }
  }

  // Opens what is left. Every acknowledged event is there, in order.
  void OpenAndCheck(size_t min_dropped) {
    const auto toolbox = StdToolbox::Make({}).value();
    absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(*toolbox, {.path = path_});
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_GE((*journal)->open_report().dropped.size(), min_dropped);
    const auto registry = CodecSetup().Add<Written>().Build().value();
    for (int i = 0; i < kActors; ++i) {
      const absl::StatusOr<EventBatch> events =
          (*journal)->Replay({.persistence_id = IdOf(i), .limits = {.max_events = 1'000'000}}).Wait();
      ASSERT_TRUE(events.ok()) << events.status();
      ASSERT_TRUE(events->at_end());
      uint64_t last = 0;
      for (const StoredEvent& event : *events) {
        ASSERT_EQ(event.sequence_nr, ++last) << IdOf(i);
        EXPECT_EQ(registry->DecodeAs<Written>({event.manifest, event.manifest_version, event.payload})->number, last);
      }
      EXPECT_GE(last, acknowledged_[i]) << IdOf(i) << " has lost acknowledged events";
      EXPECT_LE(last, acknowledged_[i] + 1) << IdOf(i);
    }
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("journal");
  std::vector<uint64_t> acknowledged_ = std::vector<uint64_t>(kActors, 0);
  Heard heard_;
};

TEST_F(Crash, LosesNoAcknowledgedEventOfAHundredActors) {
  Random random(20);
  int acknowledged = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    // Sometimes while it opens, sometimes while it recovers, mostly while it writes.
    RunAndKill(1 + static_cast<int>(random.Uniform(2) == 0 ? random.Uniform(150) : random.Uniform(1000)));
    if (HasFatalFailure()) return;
    acknowledged += heard_.acknowledged;
    // Each recovery by actors is also one by a child; this one looks at what is really there.
    if (round % 10 == 9) OpenAndCheck(0);
    if (HasFatalFailure()) return;
  }
  OpenAndCheck(0);
  EXPECT_GT(acknowledged, kRounds * 20);
}

TEST_F(Crash, DropsAndNamesWhatIsTornBehindTheAcknowledgedPartOfTheLog) {
  Random random(21);
  const int rounds = std::max(3, kRounds / 5);
  // Whether there is a part that nobody was told about is for the moment of the kill to say: until there was one.
  int cut = 0;
  for (int round = 0; round < rounds || (cut == 0 && round < 200); ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    RunAndKill(200 + static_cast<int>(random.Uniform(500)), KillWhen::kSilent);
    if (HasFatalFailure()) return;
    ASSERT_GT(heard_.log_size, 0);
    const std::string log = NewestLog(path_);
    const auto size = static_cast<int64_t>(std::filesystem::file_size(log));
    ASSERT_GE(size, heard_.log_size);
    // The mark covers all that the journal has acknowledged. The child may have seen a longer log,
    // which already had a part of the next group.
    const std::vector<LogPosition> mark = CommitMark::Read(*rocksdb::Env::Default(), path_);
    ASSERT_FALSE(mark.empty());
    ASSERT_EQ(LogNumberOf(log), mark.back().log);
    const auto acknowledged = static_cast<int64_t>(mark.back().bytes);
    if (size > acknowledged && (round % 3 != 0 || round >= rounds)) {
      // Somewhere in the part that was written and never acknowledged.
      std::filesystem::resize_file(
          log, static_cast<uintmax_t>(
                   acknowledged + static_cast<int64_t>(random.Uniform(static_cast<uint64_t>(size - acknowledged)))));
      ++cut;
    }
    {
      std::ofstream file(log, std::ios::binary | std::ios::app);
      for (uint64_t i = random.Uniform(round % 2 == 0 ? 100 : 40'000) + 10; i > 0; --i) {
        file.put(static_cast<char>(random.Next() | 1));
      }
    }
    OpenAndCheck(1);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(cut, 0);
}

}  // namespace
}  // namespace fraktor
