#include "fraktor/actor/system/coordinated_shutdown.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/termination_hook.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

extern char** environ;

namespace fraktor {
namespace {

using Lines = std::vector<std::string>;
namespace phase = shutdown_phase;

class RecordingSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override { lines.emplace_back(record.text); }
  Lines lines;
};

class ShutdownTest : public testing::Test {
 protected:
  void Make(CoordinatedShutdownOptions shutdown = {}) {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.log_sink = &sink_;
    options.coordinated_shutdown = std::move(shutdown);
    system_ = ActorSystem::Create(options).value();
    shutdown_ = &system_->coordinated_shutdown();
  }
  // A task that logs its name and is ready at once.
  CoordinatedShutdown::TaskFunction Says(std::string line) {
    return [this, line = std::move(line)] {
      log_.push_back(line);
      return MakeReadyFuture();
    };
  }
  void Add(std::string_view at, std::string_view name, CoordinatedShutdown::TaskFunction task) {
    const absl::StatusOr<CoordinatedShutdown::TaskId> added = shutdown_->AddTask(at, name, std::move(task));
    ASSERT_TRUE(added.ok()) << added.status();
  }
  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }
  void Advance(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }

  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  RecordingSink sink_;
  Lines log_;
  std::unique_ptr<ActorSystem> system_;
  CoordinatedShutdown* shutdown_ = nullptr;
};

// A128
TEST(ShutdownPhases, TheTwelveHaveAFixedOrder) {
  const std::vector<ShutdownPhase> ordered = OrderShutdownPhases(StandardShutdownPhases()).value();
  Lines names;
  for (const ShutdownPhase& one : ordered) names.push_back(one.name);
  EXPECT_EQ(names, Lines({"before-service-unbind", "service-unbind", "service-requests-done", "service-stop",
                          "before-cluster-shutdown", "cluster-sharding-shutdown-region", "cluster-leave",
                          "cluster-exiting", "cluster-exiting-done", "cluster-shutdown",
                          "before-actor-system-terminate", "actor-system-terminate"}));
  for (const ShutdownPhase& one : ordered) {
    const bool is_long = one.name == phase::kClusterShardingShutdownRegion || one.name == phase::kClusterExiting ||
                         one.name == phase::kActorSystemTerminate;
    EXPECT_EQ(one.timeout, is_long ? absl::Seconds(10) : absl::Seconds(5)) << one.name;
    EXPECT_TRUE(one.recover && one.enabled) << one.name;
  }
}

ShutdownPhase Named(std::string name, Lines depends_on) { return {.name = std::move(name), .depends_on = depends_on}; }

// A128
TEST(ShutdownPhases, DependenciesDecideAndCirclesAreErrors) {
  const auto order = [](const std::vector<ShutdownPhase>& phases) -> Lines {
    const absl::StatusOr<std::vector<ShutdownPhase>> ordered = OrderShutdownPhases(phases);
    if (!ordered.ok()) return {std::string(ordered.status().message())};
    Lines names;
    for (const ShutdownPhase& one : *ordered) names.push_back(one.name);
    return names;
  };
  EXPECT_EQ(order({Named("c", {"b", "a"}), Named("a", {}), Named("b", {"a"}), Named("d", {})}),
            Lines({"a", "b", "c", "d"}));
  EXPECT_EQ(order({Named("a", {"c"}), Named("b", {"a"}), Named("c", {"b"}), Named("d", {})}),
            Lines({"shutdown phases depend on each other in a circle: a, b, c"}));
  EXPECT_EQ(order({Named("a", {"a"})}), Lines({"shutdown phases depend on each other in a circle: a"}));
  EXPECT_EQ(
      order({Named("a", {"x"})}),
      Lines({"shutdown phase \"a\" depends on \"x\", which does not exist; add that phase, or remove the dependency"}));
  EXPECT_EQ(order({Named("a", {}), Named("a", {})}),
            Lines({"two shutdown phases are called \"a\"; give each its own name"}));
}

// A128
TEST_F(ShutdownTest, PhasesRunInOrderAndTheTasksOfOneTogether) {
  Make();
  Promise<void> first;
  Promise<void> second;
  const auto pending = [&](Promise<void>& promise, const char* line) {
    return [this, &promise, line] {
      log_.emplace_back(line);
      auto [made, future] = MakePromise<void>();
      promise = std::move(made);
      return std::move(future);
    };
  };
  Add(phase::kServiceStop, "stop", Says("stop"));
  Add(phase::kServiceUnbind, "one", pending(first, "one"));
  Add(phase::kServiceUnbind, "two", pending(second, "two"));
  Future<void> down = shutdown_->Run(ShutdownReason::Unknown());
  Settle();
  EXPECT_EQ(log_, Lines({"one", "two"})) << "both have begun";
  second.Set();
  Settle();
  EXPECT_EQ(log_.size(), 2u);
  first.Set();
  Settle();
  EXPECT_EQ(log_, Lines({"one", "two", "stop"}));
  EXPECT_TRUE(system_->IsTerminated());
  ASSERT_TRUE(down.IsReady());
  EXPECT_TRUE(down.Take().ok());
}

// A129
TEST_F(ShutdownTest, ATaskThatFailsOrIsLateIsLoggedAndTheShutdownGoesOn) {
  Make();
  auto [never, for_ever] = MakePromise<void>();
  Add(phase::kServiceUnbind, "late", [f = &for_ever] { return std::move(*f); });
  Add(phase::kServiceUnbind, "failing", [] { return MakeReadyFuture<void>(absl::InternalError("no")); });
  Add(phase::kServiceUnbind, "throwing", []() -> Future<void> { throw std::runtime_error("thrown"); });
  Add(phase::kServiceStop, "stop", Says("stop"));
  Future<void> down = shutdown_->Run(ShutdownReason::Unknown());
  Advance(absl::Seconds(5) - absl::Nanoseconds(1));
  EXPECT_TRUE(log_.empty());
  Advance(absl::Nanoseconds(1));
  EXPECT_EQ(log_, Lines({"stop"}));
  EXPECT_TRUE(down.Take().ok());
  ASSERT_GE(sink_.lines.size(), 3u);
  EXPECT_EQ(sink_.lines[0],
            "task \"late\" of shutdown phase \"service-unbind\" was not ready within 5s; the shutdown goes on");
  EXPECT_EQ(sink_.lines[1], "task \"failing\" of shutdown phase \"service-unbind\" failed: no; the shutdown goes on");
  EXPECT_NE(sink_.lines[2].find("thrown"), std::string::npos);
  EXPECT_TRUE(never.IsCancelled());
}

// A129
TEST_F(ShutdownTest, ATaskThatFailsWithTheTimeoutOfAnotherIsNotCalledLate) {
  Make();
  Add(phase::kServiceUnbind, "failing", [] {
    return MakeReadyFuture<void>(
        MakeError(absl::StatusCode::kDeadlineExceeded, FutureTimeoutKind::kNotInTime, "the database is slow"));
  });
  Future<void> down = shutdown_->Run(ShutdownReason::Unknown());
  Advance(absl::ZeroDuration());
  ASSERT_GE(sink_.lines.size(), 1u);
  EXPECT_EQ(sink_.lines[0],
            "task \"failing\" of shutdown phase \"service-unbind\" failed: the database is slow; the shutdown goes on");
}

// A129
TEST_F(ShutdownTest, AFailureEndsTheShutdownWhereThePhaseDoesNotRecover) {
  CoordinatedShutdownOptions options;
  options.phases[1].recover = false;
  Make(std::move(options));
  Add(phase::kServiceUnbind, "failing", [] { return MakeReadyFuture<void>(absl::DataLossError("no")); });
  Add(phase::kServiceStop, "stop", Says("stop"));
  Future<void> down = shutdown_->Run(ShutdownReason::Unknown());
  Settle();
  ASSERT_TRUE(down.IsReady());
  const absl::Status status = down.Take();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "task \"failing\" of shutdown phase \"service-unbind\" failed: no");
  EXPECT_TRUE(log_.empty());
  EXPECT_FALSE(system_->IsTerminated());
  EXPECT_TRUE(system_->Shutdown(absl::Seconds(1)).ok()) << "who insists ends it all the same";
  EXPECT_TRUE(system_->IsTerminated());
}

// A129
TEST_F(ShutdownTest, APhaseThatIsNotEnabledIsLeftOut) {
  CoordinatedShutdownOptions options;
  options.phases[1].enabled = false;
  Make(std::move(options));
  Add(phase::kServiceUnbind, "unbind", Says("unbind"));
  Add(phase::kServiceStop, "stop", Says("stop"));
  system_->Terminate();
  Settle();
  EXPECT_EQ(log_, Lines({"stop"}));
  EXPECT_TRUE(system_->IsTerminated());
}

// A130
TEST_F(ShutdownTest, RunsOnceAndKeepsTheFirstReason) {
  Make();
  Add(phase::kServiceStop, "stop", Says("stop"));
  EXPECT_FALSE(shutdown_->reason().has_value());
  Future<void> one = shutdown_->Run({.text = "first"});
  Future<void> two = shutdown_->Run({.text = "second"});
  system_->Terminate();
  Settle();
  EXPECT_EQ(log_, Lines({"stop"}));
  EXPECT_TRUE(one.Take().ok());
  EXPECT_TRUE(two.Take().ok()) << "who comes later waits too";
  EXPECT_EQ(shutdown_->reason()->text, "first");
  EXPECT_TRUE(shutdown_->Run({}).Take().ok()) << "and when it is over, is told at once";
}

// A130
TEST_F(ShutdownTest, CanBeginAtAPhase) {
  Make();
  Add(phase::kServiceUnbind, "unbind", Says("unbind"));
  Add(phase::kServiceStop, "stop", Says("stop"));
  Add(phase::kClusterLeave, "leave", Says("leave"));
  EXPECT_EQ(shutdown_->Run({}, "no-such-phase").Take().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(shutdown_->reason().has_value());
  Future<void> down = shutdown_->Run({}, phase::kServiceStop);
  Settle();
  EXPECT_EQ(log_, Lines({"stop", "leave"}));
  EXPECT_TRUE(down.Take().ok());
}

// A130
TEST_F(ShutdownTest, TasksOfLaterPhasesMayBeAddedAndCancelledWhileItRuns) {
  Make();
  const CoordinatedShutdown::TaskId cancelled = shutdown_->AddTask(phase::kServiceStop, "never", Says("never")).value();
  absl::Status too_late;
  Add(phase::kServiceUnbind, "change", [&] {
    Add(phase::kServiceStop, "added", Says("added"));
    EXPECT_TRUE(shutdown_->CancelTask(cancelled));
    EXPECT_FALSE(shutdown_->CancelTask(cancelled)) << "only once";
    too_late = shutdown_->AddTask(phase::kServiceUnbind, "late", Says("late")).status();
    return MakeReadyFuture();
  });
  Future<void> down = shutdown_->Run({});
  Settle();
  EXPECT_EQ(log_, Lines({"added"}));
  EXPECT_EQ(too_late.code(), absl::StatusCode::kFailedPrecondition) << too_late;
  EXPECT_TRUE(down.IsReady());
  EXPECT_EQ(shutdown_->AddTask(phase::kActorSystemTerminate, "x", Says("x")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(shutdown_->AddTask("no-such-phase", "x", Says("x")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(shutdown_->AddTask(phase::kServiceStop, "", Says("x")).status().code(), absl::StatusCode::kInvalidArgument);
}

// A131
TEST_F(ShutdownTest, TerminateRunsItUnlessSwitchedOff) {
  Make();
  Add(phase::kServiceStop, "stop", Says("stop"));
  EXPECT_TRUE(system_->Shutdown(absl::Seconds(10)).ok());
  EXPECT_EQ(log_, Lines({"stop"}));
  EXPECT_EQ(shutdown_->reason()->text, ShutdownReason::ActorSystemTerminate().text);
  log_.clear();
  Make({.run_by_terminate = false});
  Add(phase::kServiceStop, "stop", Says("stop"));
  system_->Terminate();
  Settle();
  EXPECT_TRUE(system_->IsTerminated());
  EXPECT_TRUE(log_.empty());
  EXPECT_FALSE(shutdown_->reason().has_value());
}

// A131
TEST_F(ShutdownTest, AShutdownThatDoesNotEndTheSystemIsNotRunByTerminate) {
  ActorSystemOptions options;
  options.toolbox = toolbox_.get();
  options.coordinated_shutdown = {.terminate_actor_system = false};
  const absl::Status refused = ActorSystem::Create(options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_NE(refused.message().find("run_by_terminate"), absl::string_view::npos) << refused;
  Make({.terminate_actor_system = false, .run_by_terminate = false});
  Add(phase::kServiceStop, "stop", Says("stop"));
  Future<void> down = shutdown_->Run({});
  Settle();
  EXPECT_TRUE(down.Take().ok());
  EXPECT_FALSE(system_->IsTerminated());
}

// A131
TEST_F(ShutdownTest, TheReasonSaysHowTheProcessExits) {
  for (const ShutdownReason& reason : {ShutdownReason::Unknown(), ShutdownReason::ClusterDowning()}) {
    std::vector<int> codes;
    CoordinatedShutdownOptions options;
    options.exit = [&](int code) { codes.push_back(code); };
    Make(std::move(options));
    Future<void> down = shutdown_->Run(reason);
    EXPECT_TRUE(system_->Shutdown(absl::Seconds(10)).ok());
    EXPECT_TRUE(system_->IsTerminated());
    EXPECT_EQ(codes, std::vector<int>({reason.exit_code}));
    EXPECT_TRUE(down.Take().ok());
  }
  EXPECT_EQ(ShutdownReason::Unknown().exit_code, 0);
  EXPECT_EQ(ShutdownReason::ClusterDowning().exit_code, -1);
}

TEST_F(ShutdownTest, ASystemThatGoesInTheMiddleOfItTellsWhoWaits) {
  Make();
  auto [never, for_ever] = MakePromise<void>();
  Add(phase::kServiceUnbind, "endless", [f = &for_ever] { return std::move(*f); });
  Future<void> down = shutdown_->Run({});
  Settle();
  EXPECT_FALSE(system_->Shutdown(absl::Seconds(1)).ok());
  system_.reset();
  EXPECT_EQ(down.Take().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(never.IsCancelled());
}

// The order in which guardians end.

class Noted final : public ActorInstance {
 public:
  Noted(Lines* log, std::string name, bool has_hook) : log_(*log), name_(std::move(name)), has_hook_(has_hook) {}
  absl::Status PreStart(ActorContext& context) override {
    if (has_hook_) context.Tell(context.parent(), RegisterTerminationHook{});
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (!message.Is<TerminationHook>()) return context.Unhandled(message);
    log_.push_back(name_ + " is asked");
    context.Reply(TerminationHookDone{});
    return absl::OkStatus();
  }
  void PostStop(ActorContext&) override { log_.push_back(name_ + " stops"); }

 private:
  Lines& log_;
  const std::string name_;
  const bool has_hook_;
};

// A132
TEST_F(ShutdownTest, UserActorsEndBeforeSystemActorsAndThenTheRoot) {
  Make();
  ASSERT_TRUE(system_->TrySpawnSystemActor(*MakeProps<Noted>({}, &log_, std::string("hook"), true)).ok());
  ASSERT_TRUE(system_->TrySpawnSystemActor(*MakeProps<Noted>({}, &log_, std::string("system"), false)).ok());
  ASSERT_TRUE(system_->TrySpawn(*MakeProps<Noted>({}, &log_, std::string("user"), false)).ok());
  Settle();
  ASSERT_TRUE(system_->OnTermination([&] { log_.emplace_back("first callback"); }).ok());
  ASSERT_TRUE(system_->OnTermination([&] { log_.emplace_back("second callback"); }).ok());
  system_->Terminate();
  Settle();
  EXPECT_TRUE(system_->IsTerminated());
  ASSERT_EQ(log_.size(), 6u);
  EXPECT_EQ(log_[0], "user stops");
  EXPECT_EQ(log_[1], "hook is asked");
  EXPECT_EQ(Lines(log_.begin() + 4, log_.end()), Lines({"second callback", "first callback"}));
  EXPECT_EQ(system_->OnTermination([] {}).code(), absl::StatusCode::kFailedPrecondition);
}

// SIGTERM, in another process: this test itself, with an environment variable that makes it the
// program.

constexpr char kProgramVariable[] = "FRAKTOR_SIGTERM_PROGRAM";

void Print(const char* line) {
  std::fputs(line, stdout);
  std::fflush(stdout);
}

// Its handler never returns.
class Stuck final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override {
    Print("stuck\n");
    for (;;) pause();
  }
};

int RunSigtermProgram(const std::string& kind) {
  ActorSystemOptions options;
  options.workers = 1;
  options.coordinated_shutdown.on_sigterm = true;
  if (kind == "stuck") options.coordinated_shutdown.sigterm_deadline = absl::Milliseconds(50);
  auto system = ActorSystem::Create(options).value();
  if (kind == "stuck") {
    Tell(system->TrySpawn(PropsOf<Stuck>(), "stone").value(), 1);
  } else {
    system->coordinated_shutdown()
        .AddTask(phase::kServiceUnbind, "unbind",
                 [] {
                   Print("task runs\n");
                   return MakeReadyFuture();
                 })
        .value();
    Print("ready\n");
  }
  if (!system->WhenTerminated().Wait().ok()) return 1;
  Print("terminated\n");
  return 7;
}

struct Ended {
  int status = 0;
  std::string output;
};

// Starts the program, sends it SIGTERM after it has printed `when`, and returns its output and exit
// status.
Ended RunAndSendSigterm(const std::string& kind, const char* when) {
  Ended ended;
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::vector<char*> variables;
  std::string program = std::string(kProgramVariable) + "=" + kind;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    // The variables of this test do not concern the program.
    const std::string text = *variable;
    if (text.rfind("GTEST_", 0) == 0 || text.rfind("TEST_", 0) == 0 || text.rfind("XML_OUTPUT", 0) == 0) continue;
    variables.push_back(*variable);
  }
  variables.push_back(program.data());
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::string path = "/proc/self/exe";
  std::string filter = "--gtest_filter=SigtermProgram.Runs";
  char* arguments[] = {path.data(), filter.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, path.c_str(), &actions, nullptr, arguments, variables.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const auto read_until = [&](const char* text) {
    while (ended.output.find(text) == std::string::npos) {
      char buffer[256];
      const ssize_t got = read(ends[0], buffer, sizeof buffer);
      if (got <= 0) return;
      ended.output.append(buffer, static_cast<size_t>(got));
    }
  };
  read_until(when);
  EXPECT_EQ(kill(child, SIGTERM), 0);
  read_until("no such line");
  close(ends[0]);
  EXPECT_EQ(waitpid(child, &ended.status, 0), child);
  return ended;
}

TEST(Sigterm, RunsTheShutdownOfAProcess) {
  const Ended ended = RunAndSendSigterm("orderly", "ready\n");
  const size_t runs = ended.output.find("task runs\n");
  ASSERT_NE(runs, std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("terminated\n", runs), std::string::npos) << ended.output;
  EXPECT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 7) << "it goes on to its own end";
}

TEST(Sigterm, EndsAProcessThatHasNotEndedByTheDeadlineAndSaysWhoIsLeft) {
  const Ended ended = RunAndSendSigterm("stuck", "stuck\n");
  EXPECT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_EQ(WTERMSIG(ended.status), SIGTERM);
  EXPECT_EQ(ended.output.find("terminated\n"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("has not ended within 50ms (CoordinatedShutdownOptions.sigterm_deadline)"),
            std::string::npos)
      << ended.output;
  EXPECT_NE(ended.output.find("pekko://default/user/stone"), std::string::npos) << ended.output;
}

TEST(Sigterm, NeedsADeadlineThatIsPositive) {
  CoordinatedShutdownOptions options;
  options.sigterm_deadline = absl::ZeroDuration();
  const absl::Status refused = options.Validate();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("sigterm_deadline is 0"), absl::string_view::npos) << refused;
  options.sigterm_deadline = absl::InfiniteDuration();
  EXPECT_TRUE(options.Validate().ok());
}

TEST_F(ShutdownTest, ListeningToSigtermNeedsThreads) {
  ActorSystemOptions options;
  options.toolbox = toolbox_.get();
  options.coordinated_shutdown.on_sigterm = true;
  const absl::Status refused = ActorSystem::Create(options).status();
  EXPECT_NE(refused.message().find("needs a thread"), absl::string_view::npos) << refused;
}

TEST(Sigterm, IsAsItWasWhenNobodyListensAnyMore) {
  struct sigaction before = {};
  sigaction(SIGTERM, nullptr, &before);
  for (int round = 0; round < 3; ++round) {
    ActorSystemOptions options;
    options.workers = 1;
    options.coordinated_shutdown.on_sigterm = true;
    auto one = ActorSystem::Create(options).value();
    auto two = ActorSystem::Create(options).value();
    raise(SIGTERM);
    EXPECT_TRUE(one->WhenTerminated().Wait().ok());
    EXPECT_TRUE(two->WhenTerminated().Wait().ok()) << "both have heard it";
    EXPECT_EQ(one->coordinated_shutdown().reason()->text, ShutdownReason::Signal().text);
    struct sigaction now = {};
    sigaction(SIGTERM, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << "a second signal ends the process";
  }
  struct sigaction after = {};
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

// The program that the tests above start. Does nothing in a usual run.
TEST(SigtermProgram, Runs) {
  const char* const kind = std::getenv(kProgramVariable);
  if (kind == nullptr) GTEST_SKIP();
  std::_Exit(RunSigtermProgram(kind));
}

}  // namespace
}  // namespace fraktor
