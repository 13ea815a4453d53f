// The child of a fork(): every call that would wait for the threads of the parent fails at once,
// with a text.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/internal/fork_guard.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

#if defined(__SANITIZE_THREAD__)
#define FRAKTOR_TEST_CANNOT_FORK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FRAKTOR_TEST_CANNOT_FORK 1
#endif
#endif

namespace fraktor {

using toolbox_internal::IsForkedFromThreads;

namespace {

struct Question {};
struct Answer {};

class Answerer final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Question>()) context.Reply(Answer{});
    return absl::OkStatus();
  }
};

// Returns the result of `work` in a child process, or how the child ended without one. A child that
// hangs is killed.
std::string InChild(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(30);
    const std::string text = work();
    const bool is_written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(size));
  }
  close(ends[0]);
  int how = 0;
  waitpid(child, &how, 0);
  if (WIFSIGNALED(how)) return WTERMSIG(how) == SIGALRM ? "it hung" : "signal " + std::to_string(WTERMSIG(how));
  return text;
}

constexpr char kText[] =
    ": this process is the child of a fork(), and the threads that would do the work are in the parent only; call exec "
    "or _exit in the child, or fork before the first actor system is made";

class ForkTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef FRAKTOR_TEST_CANNOT_FORK
    GTEST_SKIP() << "ThreadSanitizer has threads of its own, and starts none after a fork()";
#endif
    system_.emplace("forked");
    actor_ = system_->Spawn(PropsOf<Answerer>());
    ASSERT_TRUE(system_->AskAndWait<Answer>(actor_, Question{}, absl::Minutes(5)).ok());
  }
  // The parent process is not affected.
  void TearDown() override {
    if (!system_.has_value()) return;
    EXPECT_FALSE(IsForkedFromThreads());
    EXPECT_TRUE(system_->AskAndWait<Answer>(actor_, Question{}, absl::Minutes(5)).ok());
    EXPECT_TRUE(system_->Shutdown(absl::Minutes(5)).ok());
  }

  std::optional<ActorSystem> system_;
  ActorRef actor_;
};

TEST_F(ForkTest, RefusesToWaitForAnActor) {
  EXPECT_EQ(InChild([&] {
              return std::string(
                  system_->AskAndWait<Answer>(actor_, Question{}, absl::InfiniteDuration()).status().message());
            }),
            std::string("AskAndWait") + kText);
}

TEST_F(ForkTest, FailsAnAskAtOnce) {
  EXPECT_EQ(InChild([&] {
              Future<Answer> answer = system_->Ask<Answer>(actor_, Question{}, absl::InfiniteDuration());
              return answer.IsReady() ? std::string(answer.Take().status().message()) : std::string("it is open");
            }),
            std::string("Ask") + kText);
}

TEST_F(ForkTest, RefusesToWaitForAFuture) {
  Future<void> end = system_->WhenTerminated();
  EXPECT_EQ(InChild([&] { return std::string(end.Wait().message()); }), std::string("Wait") + kText);
  EXPECT_EQ(InChild([&] { return std::string(end.WaitFor(absl::Hours(1))->message()); }), std::string("Wait") + kText);
}

TEST_F(ForkTest, RefusesToSpawn) {
  EXPECT_EQ(InChild([&] { return std::string(system_->TrySpawn(PropsOf<Answerer>()).status().message()); }),
            std::string("Spawn") + kText);
}

TEST_F(ForkTest, RefusesToMakeAnotherSystem) {
  EXPECT_EQ(InChild([] {
              ActorSystemOptions options;
              options.config.system_name = "second";
              const absl::Status refused = ActorSystem::Create(options).status();
              return std::string(refused.message());
            }),
            std::string("the actor system is not up: to make toolbox \"second\"") + kText);
}

TEST_F(ForkTest, ReportsThatTheSystemHasNotStopped) {
  EXPECT_EQ(InChild([&] {
              system_->Terminate();
              const ShutdownReport report = system_->Shutdown(absl::InfiniteDuration());
              return report.not_stopped.size() == 1 ? report.not_stopped.front() : std::string("?");
            }),
            "pekko://forked/");
}

TEST_F(ForkTest, DestroysASystemWithoutWaiting) {
  EXPECT_EQ(InChild([&] {
              system_.reset();
              return std::string("destroyed");
            }),
            "destroyed");
}

TEST_F(ForkTest, DoesNotWaitForRoomInAMailbox) {
  const PropsPtr props = MakeProps<Answerer>(
      {.mailbox = {
           .capacity = 1, .overflow = OverflowStrategy::kBlockProducer, .push_timeout = absl::InfiniteDuration()}});
  const ActorRef bounded = system_->Spawn(*props);
  EXPECT_EQ(InChild([&] {
              for (int i = 0; i < 3; ++i) Tell(bounded, Question{});
              return std::string("told");
            }),
            "told");
}

TEST_F(ForkTest, ToolboxesDoNotWaitForTheirThreads) {
  auto toolbox = StdToolbox::Make({}).value();
  class Idle final : public ToolboxWorker {
   public:
    Progress RunSome() override { return Progress::kIdle; }
  };
  const WorkerHandle worker = toolbox->StartWorker({.name = "idle"}, std::make_unique<Idle>()).value();
  EXPECT_EQ(InChild([&] { return std::string(worker.Join().message()); }),
            std::string("to join worker \"idle\"") + kText);
  EXPECT_EQ(InChild([&] {
              return std::string(toolbox->StartWorker({.name = "second"}, std::make_unique<Idle>()).status().message());
            }),
            std::string("to start worker \"second\"") + kText);
  EXPECT_EQ(InChild([&] { return std::string(toolbox->ScheduleAfter(absl::Seconds(1), [] {}).status().message()); }),
            std::string("to arm a timer") + kText);
  EXPECT_EQ(InChild([&] {
              toolbox.reset();
              return std::string("destroyed");
            }),
            "destroyed");
}

// After the last system has ended, a child process can make systems.
TEST(ForkWithoutSystemsTest, LeavesAChildInWhichEverythingWorks) {
#ifdef FRAKTOR_TEST_CANNOT_FORK
  GTEST_SKIP() << "ThreadSanitizer starts no threads after a fork()";
#endif
  const auto play = [] {
    ActorSystem system("child");
    const absl::StatusOr<Answer> answer =
        system.AskAndWait<Answer>(system.Spawn(PropsOf<Answerer>()), Question{}, absl::Minutes(5));
    return answer.ok() ? std::string("answered") : std::string(answer.status().message());
  };
  EXPECT_EQ(play(), "answered");
  EXPECT_EQ(InChild(play), "answered");
}

}  // namespace
}  // namespace fraktor
