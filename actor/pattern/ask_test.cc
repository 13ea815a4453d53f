// Asks as programs use them: replies, errors, timeouts and their texts, circles of asks, promises
// as references.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/context/stop_because.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/when_all.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor {

using actor_internal::AwaitingHandler;
using actor_internal::AwaitMode;
using actor_internal::Gate;
using actor_internal::RunHandler;
using utils_internal::TableSlot;

namespace {

struct Answer {
  int value = 0;
};
struct Question {
  using Reply = Answer;
  int value = 0;
};
struct Noise {};
struct Link {
  ActorRef next;
};

class AskTest : public testing::Test {
 protected:
  AskTest() : toolbox_(LocalToolbox::Make({}).value()) {
    ActorSystemOptions options;
    options.config.system_name = "s";
    options.toolbox = toolbox_.get();
    options.log_level = LogLevel::kOff;
    system_ = ActorSystem::Create(options).value();
  }

  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }
  void Advance(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }
  uint64_t late_replies() { return system_->dead_letters().count(DeadLetterReason::kLateReply); }

  std::unique_ptr<LocalToolbox> toolbox_;
  std::unique_ptr<ActorSystem> system_;
};

bool Has(const absl::Status& status, std::string_view part) {
  return std::string_view(status.message().data(), status.message().size()).find(part) != std::string_view::npos;
}

// Keeps the askers.
class Silent : public Actor<Silent, Question, Noise> {
 public:
  explicit Silent(std::vector<ActorRef>* asked) : asked_(*asked) {}
  Deferred<Answer> On(Context& context, const Question&) {
    asked_.push_back(context.sender());
    return ReplyTo<Answer>(context);
  }
  void On(Context&, const Noise&) {}

 private:
  std::vector<ActorRef>& asked_;
};

class Teller : public Actor<Teller, Question> {
 public:
  absl::StatusOr<Answer> On(Context& context, const Question& question) {
    if (question.value < 0) return absl::OutOfRangeError("negative");
    context.Reply(Answer{question.value + 1});
    return Answer{question.value + 100};
  }
};

// Replies on request, to the latest ask first.
struct AnswerAll {};
class Collector : public Actor<Collector, Question, AnswerAll> {
 public:
  Deferred<Answer> On(Context& context, const Question& question) {
    const ReplyTo<Answer> reply_to(context);
    asked_.push_back({reply_to, question.value});
    return reply_to;
  }
  void On(Context&, const AnswerAll&) {
    for (; !asked_.empty(); asked_.pop_back()) asked_.back().first.Reply(Answer{asked_.back().second});
  }

 private:
  std::vector<std::pair<ReplyTo<Answer>, int>> asked_;
};

Task<void> AskAndAdd(ActorSystem& system, Collector::Ref collector, int value, std::vector<int>& answers) {
  Future<Answer> asking = system.Ask(collector, Question{value}, absl::InfiniteDuration());
  const absl::StatusOr<Answer> answer = co_await asking;
  if (answer.ok()) answers.push_back(answer->value);
}

TEST_F(AskTest, TasksThatWaitGoOnInTheOrderInWhichTheyAreWoken) {
  auto collector = system_->Spawn<Collector>("collector");
  for (const int count : {3, 1000}) {
    std::vector<int> answers;
    for (int i = 0; i < count; ++i) system_->Run(AskAndAdd(*system_, collector, i, answers));
    Settle();
    EXPECT_TRUE(answers.empty());
    collector.Tell(AnswerAll{});
    Settle();
    std::vector<int> latest_first;
    for (int i = count - 1; i >= 0; --i) latest_first.push_back(i);
    EXPECT_EQ(answers, latest_first);
  }
}

// Asks in a loop, and waits for each reply.
Task<void> AskManyTimes(ActorSystem& system, Collector::Ref collector, int value, int times,
                        std::vector<int>& answers) {
  for (int i = 0; i < times; ++i) {
    Future<Answer> asking = system.Ask(collector, Question{value}, absl::InfiniteDuration());
    const absl::StatusOr<Answer> answer = co_await asking;
    if (answer.ok()) answers.push_back(answer->value);
  }
}

TEST_F(AskTest, TasksThatWaitAgainAreWokenAgain) {
  auto collector = system_->Spawn<Collector>("collector");
  for (const int count : {1, 5, 30}) {
    std::vector<int> answers;
    // Those with even numbers end earlier.
    for (int i = 0; i < count; ++i) system_->Run(AskManyTimes(*system_, collector, i, 2 + i % 2, answers));
    for (int round = 0; round < 4; ++round) {
      Settle();
      collector.Tell(AnswerAll{});
      Settle();
      std::vector<int> expected;
      for (int i = 0; i < count; ++i) {
        if (round < 2 + i % 2) expected.push_back(i);
      }
      if (round % 2 == 0) std::reverse(expected.begin(), expected.end());
      EXPECT_EQ(answers, expected) << count << " tasks, round " << round;
      answers.clear();
    }
  }
}

// A future of one actor that another waits for: the reply comes in the turns of the first.
struct Wait {
  Future<Answer> answer;
};
class OtherWaits : public Actor<OtherWaits, Wait, Noise> {
 public:
  explicit OtherWaits(std::vector<int>* heard, int last = 0, absl::Notification* done = nullptr)
      : heard_(*heard), last_(last), done_(done) {}
  Task<> On(Context&, Wait wait) {
    Future<Answer> answer = std::move(wait.answer);
    const absl::StatusOr<Answer> got = co_await answer;
    heard_.push_back(got.ok() ? got->value : -1);
    if (done_ != nullptr && heard_.back() == last_) done_->Notify();
  }
  void On(Context&, const Noise&) { heard_.push_back(0); }

 private:
  std::vector<int>& heard_;
  const int last_;
  absl::Notification* const done_;
};
class HandsOver : public Actor<HandsOver, Question> {
 public:
  HandsOver(Collector::Ref target, OtherWaits::Ref waits, absl::Duration timeout)
      : target_(target), waits_(waits), timeout_(timeout) {}
  Deferred<Answer> On(Context& context, const Question& question) {
    context.Tell(waits_, Wait{context.Ask(target_, question, timeout_)});
    return ReplyTo<Answer>(context);  // Nobody waits.
  }

 private:
  const Collector::Ref target_;
  const OtherWaits::Ref waits_;
  const absl::Duration timeout_;
};

TEST_F(AskTest, AnotherActorMayWaitForTheAnswer) {
  std::vector<int> heard;
  auto collector = system_->Spawn<Collector>("collector");
  auto waits = system_->Spawn<OtherWaits>("waits", &heard);
  auto hands_over = system_->Spawn<HandsOver>("hands-over", collector, waits, absl::Seconds(1));
  hands_over.Tell(Question{7});
  Settle();
  waits.Tell(Noise{});
  Settle();
  EXPECT_TRUE(heard.empty());
  collector.Tell(AnswerAll{});
  Settle();
  EXPECT_EQ(heard, std::vector<int>({7, 0}));
  hands_over.Tell(Question{8});
  Advance(absl::Seconds(1));
  EXPECT_EQ(heard, std::vector<int>({7, 0, -1}));
}

// The same where the two run at the same time.
TEST(AskWithThreads, AnotherActorMayWaitForTheAnswerOnAnotherThread) {
  constexpr int kQuestions = 2000;
  std::vector<int> heard;
  absl::Notification done;
  ActorSystemOptions options;
  options.workers = 2;
  options.log_level = LogLevel::kOff;
  auto system = ActorSystem::Create(options).value();
  class Echo : public Actor<Echo, Question, AnswerAll> {
   public:
    Answer On(Context&, const Question& question) { return {question.value}; }
    void On(Context&, const AnswerAll&) {}
  };
  auto echo = system->Spawn<Echo>("echo");
  auto waits = system->Spawn<OtherWaits>("waits", &heard, int{kQuestions}, &done);
  auto hands_over = system->Spawn<HandsOver>("hands-over", echo, waits, absl::InfiniteDuration());
  for (int i = 1; i <= kQuestions; ++i) hands_over.Tell(Question{i});
  done.WaitForNotification();
  EXPECT_TRUE(system->Shutdown(absl::Seconds(60)).ok());
  ASSERT_EQ(heard.size(), static_cast<size_t>(kQuestions));
  for (int i = 1; i <= kQuestions; ++i) EXPECT_EQ(heard[i - 1], i);
}

// A future that outlives the handler that waited for it. The next handler waits for it again.
class Keeps : public Actor<Keeps, Question, Noise> {
 public:
  Keeps(Collector::Ref target, std::vector<int>* heard, std::shared_ptr<Future<Answer>> asking)
      : target_(target), heard_(*heard), asking_(std::move(asking)) {}
  // The first message asks and waits; any other message waits for the same future.
  InterleavingTask<Deferred<Answer>> On(Context& context, Question question) {
    if (!asking_->valid()) *asking_ = context.Ask(target_, question, absl::Hours(1));
    const absl::StatusOr<Answer> answer = co_await *asking_;
    heard_.push_back(answer.ok() ? answer->value : -1);
    co_return ReplyTo<Answer>(context);  // Nobody waits.
  }
  absl::Status On(Context&, const Noise&) { return absl::AbortedError("restart"); }

 private:
  const Collector::Ref target_;
  std::vector<int>& heard_;
  const std::shared_ptr<Future<Answer>> asking_;
};

TEST_F(AskTest, AFutureMayOutliveTheHandlerThatWaitedForIt) {
  std::vector<int> heard;
  auto asking = std::make_shared<Future<Answer>>();
  auto collector = system_->Spawn<Collector>("collector");
  auto keeps = system_->Spawn<Keeps>("keeps", collector, &heard, asking);
  keeps.Tell(Question{1});
  Settle();
  keeps.Tell(Noise{});  // The waiting handler ends with the object.
  Settle();
  keeps.Tell(Question{2});
  Settle();
  EXPECT_TRUE(heard.empty());
  collector.Tell(AnswerAll{});
  Settle();
  EXPECT_EQ(heard, std::vector<int>({1}));
}

// A handler as the runtime has them. Its step throws when it resumes.
class ThrowsLater final : public AwaitingHandler {
 public:
  explicit ThrowsLater(Task<void> task) : running_(std::move(task), static_cast<TaskDriver&>(*this)) {}
  bool Step() override {
    if (steps_++ > 0) throw std::runtime_error("later");
    return running_.Resume();
  }
  absl::Status Finish(ActorContext&) override { return absl::OkStatus(); }

 private:
  RunningTask<void> running_;
  int steps_ = 0;
};
Task<void> Sleep(ActorContext& context) {
  Future<void> delay = context.Delay(absl::Seconds(1));
  const absl::Status slept = co_await delay;
  EXPECT_TRUE(slept.ok());
}
class Thrower final : public ActorInstance {
 public:
  explicit Thrower(std::string* log) : log_(*log) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (!message.Is<Question>()) {
      log_ += "noise ";
      return absl::OkStatus();
    }
    return RunHandler(context, std::make_unique<ThrowsLater>(Sleep(context)), AwaitMode::kExclusive);
  }
  absl::Status PreRestart(ActorContext&, const absl::Status& reason, Envelope* message) override {
    log_ += Has(reason, "later") && message != nullptr && message->Is<Question>() ? "question " : "? ";
    return absl::OkStatus();
  }

 private:
  std::string& log_;
};

TEST_F(AskTest, AHandlerThatThrowsWhenItGoesOnIsAFailureOnItsMessage) {
  std::string log;
  const ActorRef thrower = system_->TrySpawn(*MakeProps<Thrower>({}, &log), "thrower").value();
  Tell(thrower, Question{});
  Tell(thrower, Noise{});
  Settle();
  EXPECT_EQ(log, "");
  Advance(absl::Seconds(1));
  EXPECT_EQ(log, "question noise ");
}

// An actor whose handler throws, and a parent that stops it for that.
class Unlucky : public Actor<Unlucky, Noise> {
 public:
  void On(Context&, const Noise&) { throw 42; }
};
class ParentOfUnlucky : public Actor<ParentOfUnlucky, Noise> {
 public:
  static const SupervisorStrategy& Supervision() { return SupervisorStrategy::Stopping(); }
  void On(Context& context, const Noise&) { context.Forward(context.Spawn<Unlucky>("unlucky").untyped()); }
};
class CannotStart : public Actor<CannotStart, Noise> {
 public:
  absl::Status PreStart(Context&) { return absl::InternalError("no"); }
  void On(Context&, const Noise&) {}
};
// Fails with the error of the actor that it asks.
struct AskOther {
  ActorRef other;
};
class PassesErrorsOn : public Actor<PassesErrorsOn, AskOther> {
 public:
  explicit PassesErrorsOn(std::vector<absl::Status>* failures) : failures_(*failures) {}
  absl::Status On(Context& context, const AskOther& ask) {
    return context.AskOnReply<&PassesErrorsOn::OnAnswer>(ask.other, Noise{}, absl::Seconds(5));
  }
  absl::Status OnAnswer(Context&, const absl::StatusOr<Answer>& answer) { return answer.status(); }
  void PreRestart(Context&, const absl::Status& reason, Envelope*) { failures_.push_back(reason); }

 private:
  std::vector<absl::Status>& failures_;
};

// A24
TEST_F(AskTest, AnActorThatFailsWithTheErrorOfAnotherIsRestartedWhateverHappenedToTheOther) {
  const std::pair<ActorRef, ActorErrorKind> others[] = {
      {system_->Spawn<ParentOfUnlucky>("parent").untyped(), ActorErrorKind::kThrownUnknown},
      {system_->Spawn<CannotStart>("cannot-start").untyped(), ActorErrorKind::kInitialization}};
  std::vector<absl::Status> failures;
  auto asker = system_->Spawn<PassesErrorsOn>("asker", &failures);
  for (const auto& [other, kind] : others) {
    failures.clear();
    asker.Tell(AskOther{other});
    Settle();
    EXPECT_FALSE(system_->IsTerminated());
    ASSERT_TRUE(asker.untyped().slot()->IsAt(asker.untyped().generation()));
    ASSERT_EQ(failures.size(), 1u) << "The old instance hears of its restart.";
    EXPECT_EQ(ErrorKindOf<ActorErrorKind>(failures[0]), kind) << "The asker still sees what happened to the other.";
  }
}

// Ends because its own ask has timed out.
class GivesUp : public Actor<GivesUp, Noise> {
 public:
  void On(Context& context, const Noise&) {
    StopBecause(context, MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout, "no database"));
  }
};

TEST_F(AskTest, TheCauseOfAnEndTellsNothingOfTheAskOfAnother) {
  auto gives_up = system_->Spawn<GivesUp>("gives-up");
  gives_up.Tell(Noise{});
  Settle();
  const absl::Status why = system_->AskAndWait<Answer>(gives_up.untyped(), Noise{}, absl::Seconds(1)).status();
  EXPECT_TRUE(Has(why, "no database")) << why;
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(why), std::nullopt) << "This ask has not timed out.";
}

// A97
TEST_F(AskTest, TheFirstReplyCompletesTheFutureAndLaterOnesAreDeadLetters) {
  auto teller = system_->Spawn<Teller>("teller");
  const absl::StatusOr<Answer> answer = system_->AskAndWait(teller, Question{1}, absl::Seconds(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->value, 2);
  Settle();
  EXPECT_EQ(late_replies(), 1u);
  const absl::Status failed = system_->AskAndWait(teller, Question{-1}, absl::Seconds(1)).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kOutOfRange) << "an ErrorReply fails the future with what it says";
  EXPECT_EQ(late_replies(), 1u);
  EXPECT_EQ(system_->AskAndWait<Noise>(teller, Question{1}, absl::Seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument)
      << "an answer of another type is an error";
}

// Records its messages in order.
class Recorder : public Actor<Recorder, Question, Noise> {
 public:
  explicit Recorder(std::string* came) : came_(*came) {}
  Answer On(Context&, const Question& question) {
    came_ += '?';
    return {question.value};
  }
  void On(Context&, const Noise&) { came_ += '.'; }

 private:
  std::string& came_;
};

TEST_F(AskTest, AQuestionFromOutsideKeepsItsPlaceAmongWhatIsTold) {
  std::string came;
  auto recorder = system_->Spawn<Recorder>("recorder", &came);
  recorder.Tell(Noise{});
  Future<Answer> first = system_->Ask(recorder, Question{1}, absl::Seconds(1));
  recorder.Tell(Noise{});
  Future<Answer> second = system_->Ask(recorder, Question{2}, absl::Seconds(1));
  Settle();
  EXPECT_EQ(came, ".?.?");
  EXPECT_EQ(first.Take()->value, 1);
  EXPECT_EQ(second.Take()->value, 2);
}

TEST_F(AskTest, AQuestionFromOutsideEndsWithTheSystem) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  Future<Answer> arrived = system_->Ask(silent, Question{}, absl::InfiniteDuration());
  Settle();
  ASSERT_EQ(asked.size(), 1u);
  Future<Answer> on_its_way = system_->Ask(silent, Question{}, absl::InfiniteDuration());
  system_->Terminate();
  Settle();
  EXPECT_EQ(arrived.Take().status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(on_its_way.Take().ok());
  Future<Answer> too_late = system_->Ask(silent, Question{}, absl::InfiniteDuration());
  EXPECT_FALSE(too_late.Take().ok());
  // Asks whose system ends while the target handles them.
  ActorSystemOptions options;
  options.toolbox = toolbox_.get();
  options.shutdown_timeout = absl::ZeroDuration();
  system_ = ActorSystem::Create(options).value();
  auto other = system_->Spawn<Silent>("silent", &asked);
  Future<Answer> not_even_opened = system_->Ask(other, Question{}, absl::InfiniteDuration());
  system_.reset();
  EXPECT_FALSE(not_even_opened.Take().ok());
}

// A98; no one stands for the dead letters. There is no null, because a message is a value.
TEST_F(AskTest, AskingNobodyFailsAtOnce) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  const Instant before = toolbox_->Now();
  const absl::Status of_no_one = system_->AskAndWait<Answer>(ActorRef(), Question{}, absl::Seconds(1)).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(of_no_one), ActorErrorKind::kAskTimeout) << of_no_one;
  system_->Stop(silent);
  Settle();
  const absl::Status of_dead = system_->AskAndWait(silent, Question{}, absl::Seconds(1)).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(of_dead), ActorErrorKind::kAskTimeout) << of_dead;
  EXPECT_TRUE(Has(of_dead, "Question gets no reply: pekko://s/user/silent has ended")) << of_dead;
  EXPECT_EQ(toolbox_->Now(), before);
  EXPECT_EQ(system_->dead_letters().count(DeadLetterReason::kStopped), 1u);
  EXPECT_EQ(system_->dead_letters().count(DeadLetterReason::kNoRecipient), 1u);
}

// A98
TEST_F(AskTest, ATimeoutThatIsNotPositiveIsAnErrorAndNothingIsSent) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  for (const absl::Duration timeout : {absl::ZeroDuration(), -absl::Seconds(1)}) {
    const absl::Status failed = system_->AskAndWait(silent, Question{}, timeout).status();
    EXPECT_EQ(failed.code(), absl::StatusCode::kInvalidArgument) << failed;
    EXPECT_TRUE(Has(failed, absl::FormatDuration(timeout))) << failed;
  }
  Settle();
  EXPECT_TRUE(asked.empty());
}

TEST_F(AskTest, AQuestionThatWaitsInAMailboxFailsWhenTheActorEnds) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  Future<Answer> answer = system_->Ask(silent, Question{}, absl::Hours(1));
  system_->Stop(silent);
  Settle();
  ASSERT_TRUE(answer.IsReady());
  const absl::Status status = answer.Take().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Has(status, "pekko://s/user/silent has ended")) << status;
}

TEST_F(AskTest, TryTellSaysThatAnAskHasEnded) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  EXPECT_FALSE(system_->AskAndWait(silent, Question{}, absl::Seconds(1)).ok());
  ASSERT_EQ(asked.size(), 1u);
  const absl::Status late = TryTell(asked[0], Answer{});
  EXPECT_EQ(late.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Has(late, "Answer has no recipient: the ask has ended")) << late;
}

// Cannot start.
class Stillborn : public Actor<Stillborn, Question> {
 public:
  absl::Status PreStart(Context&) { return absl::NotFoundError("there is no lamp"); }
  Answer On(Context&, const Question&) { return {}; }
};

// The ask may arrive before the failure or after it.
TEST_F(AskTest, AQuestionToAnActorThatCouldNotStartGetsTheCause) {
  auto early = system_->Spawn<Stillborn>("early");
  Future<Answer> waiting = system_->Ask(early, Question{}, absl::Hours(1));
  Settle();
  ASSERT_TRUE(waiting.IsReady());
  auto late = system_->Spawn<Stillborn>("late");
  Settle();
  const absl::Status of_late = system_->AskAndWait(late, Question{}, absl::Seconds(1)).status();
  EXPECT_TRUE(Has(of_late, "Question gets no reply: pekko://s/user/late could not be started: there is no lamp"))
      << of_late;
  for (const absl::Status& status : {waiting.Take().status(), of_late}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_EQ(ErrorKindOf<ActorErrorKind>(status), ActorErrorKind::kInitialization) << status;
  }
}

// Asks that get no reply.

enum class Ending { kAtOnce, kLate, kReplyFirst, kForwardFirst, kNever };
struct Break {};
// Fails on asks, in one of several ways.
class Failing : public Actor<Failing, Question, Break> {
 public:
  explicit Failing(Ending ending, ActorRef helper = {}) : ending_(ending), helper_(helper) {}

  absl::Status On(Context&, const Break&) { return absl::DataLossError("broken"); }
  InterleavingTask<Deferred<Answer>> On(Context& context, Question) {
    if (ending_ == Ending::kReplyFirst) context.Reply(Answer{1});
    if (ending_ == Ending::kForwardFirst) context.Forward(helper_, Question{1});
    if (ending_ == Ending::kLate || ending_ == Ending::kNever) {
      auto delay = context.Delay(ending_ == Ending::kNever ? absl::Hours(9) : absl::Seconds(1));
      const absl::Status waited = co_await delay;
      EXPECT_TRUE(waited.ok()) << waited;
    }
    throw std::runtime_error("oh");
  }

 private:
  const Ending ending_;
  const ActorRef helper_;
};
// Without a coroutine.
class FailingAtOnce : public Actor<FailingAtOnce, Question> {
 public:
  Deferred<Answer> On(Context&, const Question& question) {
    if (question.value == 1) throw std::runtime_error("oh");
    return absl::OutOfRangeError("too far");
  }
};

TEST_F(AskTest, AQuestionWhoseHandlerFailsFailsAtOnceWithItsError) {
  const Instant before = toolbox_->Now();
  auto plain = system_->Spawn<FailingAtOnce>("plain");
  const absl::Status error = system_->AskAndWait(plain, Question{}, absl::Hours(1)).status();
  EXPECT_EQ(error.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(error.message(), "pekko://s/user/plain failed on fraktor::(anonymous namespace)::Question: too far");
  const absl::Status thrown = system_->AskAndWait(plain, Question{1}, absl::Hours(1)).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(thrown), ActorErrorKind::kThrown) << thrown;
  EXPECT_TRUE(Has(thrown, "pekko://s/user/plain failed on ")) << thrown;
  EXPECT_TRUE(Has(thrown, "threw: oh")) << thrown;
  auto failing = system_->Spawn<Failing>("failing", Ending::kAtOnce);
  const absl::Status failed = system_->AskAndWait(failing, Question{}, absl::Hours(1)).status();
  EXPECT_TRUE(Has(failed, "pekko://s/user/failing failed on ")) << failed;
  EXPECT_TRUE(Has(failed, "threw: oh")) << failed;
  EXPECT_EQ(toolbox_->Now(), before);
  auto late = system_->Spawn<Failing>("late", Ending::kLate);
  EXPECT_TRUE(Has(system_->AskAndWait(late, Question{}, absl::Hours(1)).status(), "/user/late failed on "));
  EXPECT_EQ(toolbox_->Now() - before, absl::Seconds(1)) << "a coroutine fails when it does";
  Settle();
  EXPECT_EQ(late_replies(), 0u);
}

TEST_F(AskTest, AnAnswerThatWasGivenOrLeftToOthersStaysWhatItIs) {
  auto replies = system_->Spawn<Failing>("replies", Ending::kReplyFirst);
  EXPECT_EQ(system_->AskAndWait(replies, Question{}, absl::Hours(1))->value, 1);
  auto teller = system_->Spawn<Teller>("teller");
  auto forwards = system_->Spawn<Failing>("forwards", Ending::kForwardFirst, teller.untyped());
  EXPECT_EQ(system_->AskAndWait(forwards, Question{}, absl::Hours(1))->value, 2);
  Settle();
  EXPECT_EQ(late_replies(), 1u) << "the second one of the teller, and no failure";
}

TEST_F(AskTest, AQuestionFailsWhenTheHandlerThatWaitsForItIsGivenUp) {
  const Instant before = toolbox_->Now();
  auto stopped = system_->Spawn<Failing>("stopped", Ending::kNever);
  auto restarted = system_->Spawn<Failing>("restarted", Ending::kNever);
  Future<Answer> of_stopped = system_->Ask(stopped, Question{}, absl::Hours(2));
  Future<Answer> of_restarted = system_->Ask(restarted, Question{}, absl::Hours(2));
  Settle();
  EXPECT_FALSE(of_stopped.IsReady());
  system_->Stop(stopped);
  restarted.Tell(Break{});
  Settle();
  ASSERT_TRUE(of_stopped.IsReady() && of_restarted.IsReady());
  const absl::Status ended = of_stopped.Take().status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(ended), ActorErrorKind::kAskTimeout) << ended;
  EXPECT_TRUE(Has(ended, "pekko://s/user/stopped is stopped while its handler waits")) << ended;
  EXPECT_TRUE(Has(ended, "PoisonPill")) << ended;
  const absl::Status given_up = of_restarted.Take().status();
  EXPECT_EQ(given_up.code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Has(given_up, "pekko://s/user/restarted has failed")) << given_up;
  EXPECT_TRUE(Has(given_up, "broken")) << given_up;
  EXPECT_EQ(toolbox_->Now(), before);
}

// Records when a waiting handler is cancelled, and when the actor and its child end.
struct GiveUp {
  explicit GiveUp(std::vector<std::string>* log) : log_(*log) {}
  ~GiveUp() { log_.push_back("gave up"); }
  std::vector<std::string>& log_;
};
class Waits : public Actor<Waits, Question, Noise> {
 public:
  explicit Waits(std::vector<std::string>* log, bool has_child = true) : log_(*log), has_child_(has_child) {}
  void PreStart(Context& context) {
    if (has_child_) context.Spawn<Waits>("child", &log_, false);
  }
  void PostStop(Context&) { log_.push_back(has_child_ ? "ended" : "child ended"); }
  Task<Answer> On(Context& context, const Question& question) {
    const GiveUp given_up(&log_);
    Future<void> delay = context.Delay(absl::Seconds(1));
    const absl::Status waited = co_await delay;
    if (!waited.ok()) co_return waited;
    log_.push_back("answers");
    co_return Answer{question.value};
  }
  InterleavingTask<> On(Context& context, const Noise&) {
    const GiveUp given_up(&log_);
    Future<void> delay = context.Delay(absl::Hours(1));
    const absl::Status waited = co_await delay;
    EXPECT_FALSE(waited.ok());
  }

 private:
  std::vector<std::string>& log_;
  const bool has_child_;
};

// A18: a waiting handler does not run. Its asker need not wait until the children have ended.
TEST_F(AskTest, StopGivesUpAHandlerThatWaitsBeforeItWaitsForTheChildren) {
  std::vector<std::string> log;
  auto waits = system_->Spawn<Waits>("waits", &log);
  Future<Answer> asked = system_->Ask(waits, Question{1}, absl::Hours(1));
  Settle();
  system_->Stop(waits);
  Settle();
  EXPECT_EQ(log, std::vector<std::string>({"gave up", "child ended", "ended"}));
  ASSERT_TRUE(asked.IsReady());
  EXPECT_TRUE(Has(asked.Take().status(), "is stopped while its handler waits"));
}

// A19: the message of the waiting handler came before the stop.
TEST_F(AskTest, APoisonPillWaitsForAHandlerThatWaits) {
  std::vector<std::string> log;
  auto waits = system_->Spawn<Waits>("waits", &log);
  Future<Answer> asked = system_->Ask(waits, Question{1}, absl::Hours(1));
  waits.Tell(PoisonPill{});
  Future<Answer> too_late = system_->Ask(waits, Question{2}, absl::Hours(1));
  Settle();
  EXPECT_EQ(log, std::vector<std::string>());
  Advance(absl::Seconds(1));
  EXPECT_EQ(log, std::vector<std::string>({"answers", "gave up", "child ended", "ended"}));
  EXPECT_EQ(asked.Take()->value, 1);
  ASSERT_TRUE(too_late.IsReady());
  EXPECT_FALSE(too_late.Take().ok());
}

// The handler lets the actor handle other messages while it waits, and the pill is one of them.
TEST_F(AskTest, APoisonPillGivesUpAnInterleavingHandlerThatWaits) {
  std::vector<std::string> log;
  auto waits = system_->Spawn<Waits>("waits", &log);
  Future<Done> asked = system_->Ask<Done>(waits.untyped(), Noise{}, absl::Hours(2));
  Settle();
  waits.Tell(PoisonPill{});
  Settle();
  EXPECT_EQ(log, std::vector<std::string>({"gave up", "child ended", "ended"}));
  ASSERT_TRUE(asked.IsReady());
  EXPECT_TRUE(Has(asked.Take().status(), "is stopped while its handler waits"));
}

// A38
class AnswersInHook : public Actor<AnswersInHook, Question> {
 public:
  Deferred<Answer> On(Context&, const Question&) { return absl::OutOfRangeError("too far"); }
  void PreRestart(Context& context, const absl::Status&, Envelope*) { context.Reply(Answer{7}); }
};
// Supervises a child whose restart is delayed.
struct GetChild {
  using Reply = Link;
};
class Patient : public Actor<Patient, GetChild> {
 public:
  void PreStart(Context& context) { child_ = context.Spawn<FailingAtOnce>("child"); }
  Link On(Context&, const GetChild&) { return {child_.untyped()}; }
  static const SupervisorStrategy& Supervision() {
    static const SupervisorStrategy strategy({.backoff = {.min = absl::Minutes(1), .max = absl::Minutes(1)}});
    return strategy;
  }

 private:
  RefOf<FailingAtOnce> child_;
};

TEST_F(AskTest, AHookMayAnswerBeforeTheFailureDoes) {
  auto hook = system_->Spawn<AnswersInHook>("hook");
  const absl::StatusOr<Answer> answer = system_->AskAndWait(hook, Question{}, absl::Hours(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->value, 7);
}

TEST_F(AskTest, AQuestionDoesNotWaitForARestartThatIsPutOff) {
  auto patient = system_->Spawn<Patient>("patient");
  const ActorRef child = system_->AskAndWait(patient, GetChild{}, absl::Hours(1))->next;
  const Instant before = toolbox_->Now();
  const absl::Status failed = system_->AskAndWait<Answer>(child, Question{}, absl::Hours(1)).status();
  EXPECT_TRUE(Has(failed, "pekko://s/user/patient/child failed on ")) << failed;
  EXPECT_EQ(toolbox_->Now(), before);
  Settle();
  EXPECT_EQ(late_replies(), 0u);
}

TEST_F(AskTest, AQuestionThatIsNotHandledFailsAtOnce) {
  const Instant before = toolbox_->Now();
  auto teller = system_->Spawn<Teller>("teller");
  const absl::Status unknown = system_->AskAndWait<Answer>(teller.untyped(), Noise{}, absl::Hours(1)).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(unknown.message(), "pekko://s/user/teller does not handle fraktor::(anonymous namespace)::Noise");
  EXPECT_EQ(toolbox_->Now(), before);
}

TEST_F(AskTest, AQuestionForWhichThereIsNoRoomSaysSo) {
  std::vector<ActorRef> asked;
  auto full = system_->Spawn<Silent>("full", {.mailbox = {.capacity = 1}}, &asked);
  full.Tell(Noise{});
  Future<Answer> answer = system_->Ask(full, Question{}, absl::Hours(1));
  Settle();
  ASSERT_TRUE(answer.IsReady());
  const absl::Status status = answer.Take().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Has(status, "::Question gets no reply: the mailbox of pekko://s/user/full is full; ask less, or "))
      << status;
}

TEST_F(AskTest, ASystemThatHasEndedIsUnavailable) {
  auto teller = system_->Spawn<Teller>("teller");
  system_->Terminate();
  Settle();
  ASSERT_TRUE(system_->IsTerminated());
  Future<Answer> answer = system_->Ask(teller, Question{1}, absl::Seconds(1));
  ASSERT_TRUE(answer.IsReady());
  const absl::Status asked = answer.Take().status();
  EXPECT_EQ(asked.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(asked.message(), "the actor system \"s\" has ended");
  const absl::Status spawned = system_->TrySpawn<Teller>("other").status();
  EXPECT_EQ(spawned.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(spawned), ActorErrorKind::kTerminating);
  EXPECT_EQ(spawned.message(), asked.message());
}

// Asks a target in a handler, and reports the result.
template <class Mode>
class Asker : public Actor<Asker<Mode>, Question, Noise> {
 public:
  using Context = typename Actor<Asker, Question, Noise>::Context;
  Asker(ActorRef target, std::vector<std::string>* heard) : target_(target), heard_(*heard) {}

  Mode On(Context& context, Question question) {
    auto asking = context.template Ask<Answer>(target_, Question{question.value}, absl::Seconds(2));
    absl::StatusOr<Answer> answer = co_await asking;
    heard_.push_back(answer.ok() ? "answered" : std::string(answer.status().message()));
    if (!answer.ok()) co_return answer.status();
    co_return *answer;
  }
  void On(Context&, const Noise&) {}

 private:
  const ActorRef target_;
  std::vector<std::string>& heard_;
};
using Waiting = Asker<Task<Answer>>;
using Interleaving = Asker<InterleavingTask<Answer>>;

// A99, with the status report of the target.
TEST_F(AskTest, ATimeoutNamesTargetMessageAskerDurationQueueAndHandler) {
  std::vector<ActorRef> asked;
  std::vector<std::string> heard;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto first = system_->Spawn<Waiting>("first", silent.untyped(), &heard);
  auto second = system_->Spawn<Waiting>("second", first.untyped(), &heard);
  second.Tell(Question{});
  Settle();
  // They wait behind the ask that `first` handles.
  for (int i = 0; i < 3; ++i) first.Tell(Noise{});
  Advance(absl::Seconds(1));
  EXPECT_TRUE(heard.empty());
  Advance(absl::Seconds(1));
  ASSERT_EQ(heard.size(), 2u) << "exactly when the time is over: the targets report at once";
  EXPECT_EQ(heard[0],
            "ask timed out: pekko://s/user/silent has not replied to fraktor::(anonymous namespace)::Question of "
            "pekko://s/user/first within 2s; no message waits in its mailbox, and none of its handlers is waiting: if "
            "it has handled the message, it has forgotten to reply (return the reply from the handler, or call "
            "context.Reply)");
  EXPECT_NE(heard[1].find("pekko://s/user/first has not replied to"), std::string::npos) << heard[1];
  EXPECT_NE(heard[1].find("3 messages wait in its mailbox, and its handler of "), std::string::npos) << heard[1];
  EXPECT_NE(heard[1].find("Question is waiting"), std::string::npos) << heard[1];
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(late_replies(), 1u) << "what `first` has then to say to `second`";
  Tell(asked[0], Answer{});
  Settle();
  EXPECT_EQ(late_replies(), 2u) << "a question that has timed out is over, whatever its asker has heard";
}

// An actor between asker and target may reword an error of the runtime, but not the reply of the
// target.
TEST_F(AskTest, AnErrorThatIsNoAnswerMayBeExplained) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  const auto explain = [](const absl::Status& error) {
    return absl::DataLossError(absl::StrCat("explained: ", error.message()));
  };
  Future<Answer> late = system_->Ask<Answer>(silent.untyped(), Question{}, absl::Seconds(2), explain);
  Future<Answer> refused = system_->Ask<Answer>(silent.untyped(), Question{}, absl::Seconds(2), explain);
  Settle();
  ASSERT_EQ(asked.size(), 2u);
  Tell(asked[1], ErrorReply{absl::NotFoundError("what the target says")});
  Advance(absl::Seconds(3));
  ASSERT_TRUE(late.IsReady());
  const absl::Status why = late.Take().status();
  EXPECT_TRUE(absl::IsDataLoss(why)) << why;
  EXPECT_EQ(why.message().find("explained: ask timed out: pekko://s/user/silent has not replied to"), 0u) << why;
  ASSERT_TRUE(refused.IsReady());
  EXPECT_EQ(refused.Take().status(), absl::NotFoundError("what the target says"));
}

TEST_F(AskTest, AnErrorWhoseExplanationThrowsStaysAsItIs) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  const auto explain = [](const absl::Status&) -> absl::Status { throw std::runtime_error("no words"); };
  Future<Answer> late = system_->Ask<Answer>(silent.untyped(), Question{}, absl::Seconds(2), explain);
  Advance(absl::Seconds(3));
  ASSERT_TRUE(late.IsReady());
  const absl::Status why = late.Take().status();
  EXPECT_EQ(why.message().find("ask timed out: pekko://s/user/silent has not replied to"), 0u) << why;
}

TEST_F(AskTest, ManyQuestionsThatTimeOutTogetherAllFail) {
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto other = system_->Spawn<Silent>("other", &asked);
  std::vector<Future<Answer>> answers;
  for (int i = 0; i < 100; ++i) {
    answers.push_back(system_->Ask(i % 10 == 0 ? other : silent, Question{i}, absl::Seconds(1)));
  }
  Advance(absl::Seconds(1));
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].IsReady()) << i;
    const absl::Status status = answers[i].Take().status();
    EXPECT_EQ(ErrorKindOf<ActorErrorKind>(status), ActorErrorKind::kAskTimeout);
    EXPECT_TRUE(Has(status, i % 10 == 0 ? "/user/other" : "/user/silent")) << status;
  }
}

// The toolbox has a timer for each of the two targets, and none for a further status request.
TEST(AskWithTwoTimers, AsksOfTwoTargetsInTurnShareOneStatusRequestForEach) {
  const auto toolbox = LocalToolbox::Make({.max_timers = 2}).value();
  ActorSystemOptions options;
  options.config.system_name = "s";
  options.toolbox = toolbox.get();
  options.log_level = LogLevel::kOff;
  const auto system = ActorSystem::Create(options).value();
  std::vector<ActorRef> asked;
  auto silent = system->Spawn<Silent>("silent", &asked);
  auto other = system->Spawn<Silent>("other", &asked);
  std::vector<Future<Answer>> answers;
  for (int i = 0; i < 6; ++i) {
    answers.push_back(system->Ask(i % 2 == 0 ? other : silent, Question{i}, absl::Seconds(1)));
  }
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(2)).ok());
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].IsReady()) << i;
    const absl::Status status = answers[i].Take().status();
    EXPECT_TRUE(Has(status, i % 2 == 0 ? "/user/other" : "/user/silent")) << status;
    EXPECT_TRUE(Has(status, "none of its handlers is waiting")) << i << ": " << status;
  }
}

// An asker that ends during the ask.
TEST_F(AskTest, AnAskerMayEndBeforeTheTargetHasReported) {
  std::vector<ActorRef> asked;
  std::vector<std::string> heard;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto asker = system_->Spawn<Waiting>("asker", silent.untyped(), &heard);
  asker.Tell(Question{});
  Settle();
  toolbox_->ScheduleAfter(absl::Seconds(2), [&] { system_->Stop(asker); }).value();
  Advance(absl::Seconds(3));
  EXPECT_LE(heard.size(), 1u);
  EXPECT_FALSE(system_->Resolve("/user/asker").ok());
}

// The timer that waits for the first target's report is the last one of the toolbox. So the second
// target cannot be asked for a report, and the error describes it from outside.
TEST(AskWithOneTimer, ATimeoutSaysThatATargetWithoutAReportIsIdle) {
  const auto toolbox = LocalToolbox::Make({.max_timers = 1}).value();
  ActorSystemOptions options;
  options.config.system_name = "s";
  options.toolbox = toolbox.get();
  options.log_level = LogLevel::kOff;
  const auto system = ActorSystem::Create(options).value();
  std::vector<ActorRef> asked;
  auto reports = system->Spawn<Silent>("reports", &asked);
  auto idle = system->Spawn<Silent>("idle", &asked);
  Future<Answer> first = system->Ask(reports, Question{}, absl::Seconds(1));
  Future<Answer> second = system->Ask(idle, Question{}, absl::Seconds(1));
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(2)).ok());
  ASSERT_TRUE(first.IsReady() && second.IsReady());
  const absl::Status of_report = first.Take().status();
  EXPECT_TRUE(Has(of_report, "no message waits in its mailbox, and none of its handlers is waiting")) << of_report;
  const absl::Status from_outside = second.Take().status();
  EXPECT_TRUE(Has(from_outside, "; it is idle, and no message waits in its mailbox")) << from_outside;
}

struct Description {
  std::string text;
};
// Describes an actor from outside, after a message to it if `tells`.
struct Describe {
  using Reply = Description;
  ActorRef actor;
  bool tells = false;
};
class Observer : public Actor<Observer, Describe> {
 public:
  Description On(Context& context, const Describe& describe) {
    if (describe.tells) Tell(describe.actor, Question{});
    context.Flush();
    return {ActorContext::lifecycle().DescribeFromOutside(describe.actor)};
  }
};

TEST_F(AskTest, AnActorIsDescribedFromOutsideByItsState) {
  std::vector<ActorRef> asked;
  std::vector<std::string> heard;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto waiting = system_->Spawn<Waiting>("waiting", silent.untyped(), &heard);
  auto observer = system_->Spawn<Observer>("observer");
  const auto describe = [&](ActorRef actor, bool tells = false) {
    return system_->AskAndWait(observer, Describe{actor, tells}, absl::Seconds(1))->text;
  };
  Settle();
  EXPECT_EQ(describe(silent.untyped()), "it is idle, and no message waits in its mailbox");
  EXPECT_EQ(describe(silent.untyped(), true), "messages wait in its mailbox, and it waits for a worker");
  EXPECT_EQ(describe(observer.untyped()),
            "it is in a handler that has not returned, so how many messages wait in its mailbox is not known");
  waiting.Tell(Question{});
  Settle();
  EXPECT_EQ(describe(waiting.untyped(), true), "it is suspended, and handles no messages");
  system_->Stop(silent);
  Settle();
  EXPECT_EQ(describe(silent.untyped()), "it has ended");
}

// A target in the middle of a handler cannot report: after a moment the asker learns what is
// visible from outside.
TEST(AskWithThreads, ATimeoutSaysThatTheTargetIsInAHandler) {
  struct Gate {
    absl::Notification entered;
    absl::Notification leave;
  };
  static Gate* gate = nullptr;
  class Stuck : public Actor<Stuck, Question> {
   public:
    Deferred<Answer> On(Context& context, const Question& question) {
      if (question.value > 0) gate->entered.Notify();
      gate->leave.WaitForNotification();
      return ReplyTo<Answer>(context);
    }
  };
  Gate here;
  gate = &here;
  ActorSystemOptions options;
  options.config.system_name = "s";
  options.workers = 2;
  options.log_level = LogLevel::kOff;
  auto system = ActorSystem::Create(options).value();
  auto stuck = system->Spawn<Stuck>("stuck");
  const Future<Answer> first = system->Ask(stuck, Question{1}, absl::InfiniteDuration());
  here.entered.WaitForNotification();
  const absl::Status status = system->AskAndWait(stuck, Question{}, absl::Milliseconds(1)).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(status), ActorErrorKind::kAskTimeout);
  EXPECT_TRUE(Has(status, "it is in a handler that has not returned")) << status;
  here.leave.Notify();
  EXPECT_TRUE(system->Shutdown(absl::Seconds(30)).ok());
}

// A handler that blocks its thread.

struct WaitResults {
  absl::Status of_context;
  absl::Status of_system;
  absl::Status of_all;
  absl::Status of_tuple;
  absl::Status with_timeout;
  absl::Status of_all_of_system;
  absl::Status of_end;
  absl::Status of_ready;
};
struct WaitForAll {
  using Reply = WaitResults;
};
class Blocking : public Actor<Blocking, WaitForAll> {
 public:
  explicit Blocking(Teller::Ref teller) : teller_(teller) {}

  WaitResults On(Context& context, const WaitForAll&) {
    WaitResults results;
    results.of_context = context.Ask(teller_, Question{1}, absl::Seconds(60)).Wait().status();
    results.of_system = context.system().Ask(teller_, Question{1}, absl::Seconds(60)).Wait().status();
    std::vector<Future<Answer>> asks;
    asks.push_back(MakeReadyFuture<Answer>(Answer{1}));
    asks.push_back(context.Ask(teller_, Question{1}, absl::Seconds(60)));
    results.of_all = WhenAll(std::move(asks)).Wait().status();
    results.of_tuple = WhenAll(MakeReadyFuture<Answer>(Answer{1}), context.Ask(teller_, Question{1}, absl::Seconds(60)))
                           .Wait()
                           .status();
    results.with_timeout = WithTimeout(context.system().toolbox(), context.Ask(teller_, Question{1}, absl::Seconds(60)),
                                       absl::InfiniteDuration())
                               .Wait()
                               .status();
    results.of_all_of_system =
        WhenAll(context.system().Ask(teller_, Question{1}, absl::Seconds(60)),
                WithTimeout(context.system().toolbox(), context.system().Ask(teller_, Question{1}, absl::Seconds(60)),
                            absl::InfiniteDuration()))
            .Wait()
            .status();
    results.of_end = context.system().WhenTerminated().Wait();
    results.of_ready = MakeReadyFuture().Wait();
    return results;
  }

 private:
  const Teller::Ref teller_;
};

TEST(AskWithThreads, AWorkerThatWaitsIsToldInsteadOfHanging) {
  ActorSystemOptions options;
  options.workers = 1;
  auto system = ActorSystem::Create(options).value();
  auto teller = system->Spawn<Teller>("teller");
  auto blocking = system->Spawn<Blocking>("blocking", teller);
  const absl::StatusOr<WaitResults> waited = system->AskAndWait(blocking, WaitForAll{}, absl::Seconds(60));
  ASSERT_TRUE(waited.ok()) << waited.status();
  for (const absl::Status& status : {waited->of_context, waited->of_system, waited->of_all, waited->of_tuple,
                                     waited->with_timeout, waited->of_all_of_system, waited->of_end}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(Has(status, "Wait blocks the worker")) << status;
    EXPECT_TRUE(Has(status, "co_await")) << status;
  }
  EXPECT_TRUE(waited->of_ready.ok());
  EXPECT_TRUE(system->Shutdown(absl::Seconds(60)).ok());
}

TEST(AskWithThreads, APinnedActorMayWaitForOthersButNotForItself) {
  ActorSystemOptions options;
  options.workers = 1;
  auto system = ActorSystem::Create(options).value();
  auto teller = system->Spawn<Teller>("teller");
  auto blocking = system->Spawn<Blocking>("blocking", {.dispatcher = DispatcherChoice::kPinned}, teller);
  const absl::StatusOr<WaitResults> waited = system->AskAndWait(blocking, WaitForAll{}, absl::Seconds(60));
  ASSERT_TRUE(waited.ok()) << waited.status();
  EXPECT_TRUE(waited->of_system.ok()) << waited->of_system;
  EXPECT_TRUE(waited->of_all_of_system.ok()) << waited->of_all_of_system;
  for (const absl::Status& status : {waited->of_context, waited->of_all, waited->of_tuple, waited->with_timeout}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(Has(status, "context.system().Ask")) << status;
  }
  EXPECT_EQ(waited->of_end.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Has(waited->of_end, "the end of the system")) << waited->of_end;
  EXPECT_TRUE(system->Shutdown(absl::Seconds(60)).ok());
}

// Circles of asks.

// Passes each ask on to the next actor.
template <class Mode>
class Ring : public Actor<Ring<Mode>, Question, Link> {
 public:
  using Context = typename Actor<Ring, Question, Link>::Context;
  void On(Context&, const Link& link) { next_ = link.next; }
  Mode On(Context& context, Question question) {
    if (question.value == 0) co_return Answer{1};
    auto asking = context.template Ask<Answer>(next_, Question{question.value - 1}, absl::Hours(1));
    absl::StatusOr<Answer> answer = co_await asking;
    if (!answer.ok()) co_return answer.status();
    co_return Answer{answer->value + 1};
  }

 private:
  ActorRef next_;
};
using Strict = Ring<Task<Answer>>;
using Loose = Ring<InterleavingTask<Answer>>;

TEST_F(AskTest, AnAskAroundACircleFailsAtOnceAndNamesTheCircle) {
  const std::vector<std::string> texts = {
      "pekko://s/user/r1-0 asks pekko://s/user/r1-0",
      "pekko://s/user/r2-0 asks pekko://s/user/r2-1 asks pekko://s/user/r2-0",
      "pekko://s/user/r3-0 asks pekko://s/user/r3-1 asks pekko://s/user/r3-2 asks pekko://s/user/r3-0"};
  for (size_t size = 1; size <= 3; ++size) {
    std::vector<RefOf<Strict>> ring;
    for (size_t i = 0; i < size; ++i) {
      ring.push_back(system_->Spawn<Strict>(absl::StrCat("r", size, "-", i)));
    }
    for (size_t i = 0; i < size; ++i) ring[i].Tell(Link{ring[(i + 1) % size].untyped()});
    const Instant before = toolbox_->Now();
    const absl::Status status = system_->AskAndWait(ring[0], Question{100}, absl::Hours(2)).status();
    EXPECT_EQ(ErrorKindOf<ActorErrorKind>(status), ActorErrorKind::kAskCircle) << status;
    EXPECT_TRUE(Has(status, texts[size - 1])) << status;
    EXPECT_EQ(toolbox_->Now(), before);
    // They are free again.
    EXPECT_TRUE(system_->AskAndWait(ring[0], Question{static_cast<int>(size) - 1}, absl::Hours(1)).ok());
  }
}

TEST_F(AskTest, InterleavingHandlersMayAskAroundACircle) {
  std::vector<RefOf<Loose>> ring;
  for (int i = 0; i < 3; ++i) ring.push_back(system_->Spawn<Loose>());
  for (size_t i = 0; i < 3; ++i) ring[i].Tell(Link{ring[(i + 1) % 3].untyped()});
  const absl::StatusOr<Answer> answer = system_->AskAndWait(ring[0], Question{10}, absl::Hours(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->value, 11);
  auto alone = system_->Spawn<Loose>();
  alone.Tell(Link{alone.untyped()});
  EXPECT_TRUE(system_->AskAndWait(alone, Question{5}, absl::Hours(1)).ok());
}

// An actor that waits exclusively, in a circle of actors that interleave, is asked while it waits:
// that does not end.
TEST_F(AskTest, ACircleThroughOneThatDoesNotInterleaveIsNotMissed) {
  auto strict = system_->Spawn<Strict>("strict");
  auto loose = system_->Spawn<Loose>("loose");
  strict.Tell(Link{loose.untyped()});
  loose.Tell(Link{strict.untyped()});
  const absl::Status status = system_->AskAndWait(strict, Question{5}, absl::Hours(2)).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(status), ActorErrorKind::kAskCircle) << status;
}

enum class Cut { kForward, kForwardMessage, kReply };
// Drops its ask, and then asks back.
class Cutter : public Actor<Cutter, Question, Link> {
 public:
  Cutter(Cut cut, ActorRef helper, std::vector<std::string>* heard) : cut_(cut), helper_(helper), heard_(*heard) {}
  void On(Context&, const Link& link) { back_ = link.next; }
  Task<Deferred<Answer>> On(Context& context, Question) {
    const ReplyTo<Answer> reply_to(context);
    if (cut_ == Cut::kForward) context.Forward(helper_);
    if (cut_ == Cut::kForwardMessage) context.Forward(helper_, Question{7});
    if (cut_ == Cut::kReply) context.Reply(Answer{8});
    auto asking = context.Ask<Answer>(back_, Question{0}, absl::Seconds(1));
    absl::StatusOr<Answer> answer = co_await asking;
    heard_.push_back(answer.ok() ? "answered" : std::string(answer.status().message()));
    co_return reply_to;
  }

 private:
  const Cut cut_;
  const ActorRef helper_;
  std::vector<std::string>& heard_;
  ActorRef back_;
};

TEST_F(AskTest, ForwardAndReplyCutTheChain) {
  for (const Cut cut : {Cut::kForward, Cut::kForwardMessage, Cut::kReply}) {
    std::vector<std::string> heard;
    auto helper = system_->Spawn<Strict>();
    auto asker = system_->Spawn<Strict>();
    auto cutter = system_->Spawn<Cutter>("", cut, helper.untyped(), &heard);
    helper.Tell(Link{system_->Spawn<Teller>().untyped()});
    asker.Tell(Link{cutter.untyped()});
    cutter.Tell(Link{asker.untyped()});
    const absl::StatusOr<Answer> answer = system_->AskAndWait(asker, Question{2}, absl::Hours(1));
    EXPECT_TRUE(answer.ok()) << answer.status() << " " << static_cast<int>(cut);
    Settle();
    EXPECT_EQ(heard, std::vector<std::string>({"answered"})) << static_cast<int>(cut);
  }
}

// Promises as references.

struct WatchIt {
  ActorRef what;
};
struct Forget {
  ActorRef what;
};
class Watcher : public Actor<Watcher, WatchIt, Forget> {
 public:
  explicit Watcher(std::vector<ActorRef>* ended) : ended_(*ended) {}
  absl::Status On(Context& context, const WatchIt& it) { return context.Watch(it.what); }
  void On(Context& context, const Forget& it) { context.Unwatch(it.what); }
  void On(Context&, const Terminated& terminated) { ended_.push_back(terminated.actor); }

 private:
  std::vector<ActorRef>& ended_;
};

// A100
TEST_F(AskTest, APromiseCanBeWatchedAndEndsWithItsAnswer) {
  std::vector<ActorRef> asked;
  std::vector<ActorRef> ended;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto watcher = system_->Spawn<Watcher>("watcher", &ended);
  Future<Answer> answered = system_->Ask(silent, Question{}, absl::Hours(1));
  Future<Answer> timed_out = system_->Ask(silent, Question{}, absl::Seconds(1));
  Future<Answer> forgotten = system_->Ask(silent, Question{}, absl::Hours(1));
  Settle();
  ASSERT_EQ(asked.size(), 3u);
  const std::string path = system_->PathOf(asked[0]);
  EXPECT_EQ(path.rfind("pekko://s/temp/silent$", 0), 0u) << "its name begins with that of its target: " << path;
  for (const ActorRef promise : asked) watcher.Tell(WatchIt{promise});
  Settle();
  EXPECT_TRUE(ended.empty());
  Tell(asked[2], Answer{1});
  watcher.Tell(Forget{asked[2]});
  Tell(asked[0], Answer{2});
  Settle();
  EXPECT_EQ(ended, std::vector<ActorRef>({asked[0]}));
  EXPECT_EQ(answered.Take().value().value, 2);
  Advance(absl::Seconds(1));
  EXPECT_EQ(ended, std::vector<ActorRef>({asked[0], asked[1]})) << "a timeout ends it too";
  watcher.Tell(WatchIt{asked[0]});
  Settle();
  EXPECT_EQ(ended.size(), 3u) << "one that is over already is told at once";
  EXPECT_EQ(system_->PathOf(asked[0]), path) << "its path stays readable";
  EXPECT_EQ(system_->PathOf(asked[2]).rfind("an ask that is over (slot ", 0), 0u) << system_->PathOf(asked[2]);
  EXPECT_TRUE(forgotten.IsReady());
}

// The asker does not wait any more: the promise does not stay until the timeout.
TEST_F(AskTest, APromiseEndsWithItsFuture) {
  std::vector<ActorRef> asked;
  std::vector<ActorRef> ended;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto watcher = system_->Spawn<Watcher>("watcher", &ended);
  std::stop_source stop;
  std::optional<Future<Answer>> dropped = system_->Ask(silent, Question{}, absl::InfiniteDuration());
  Future<Answer> cancelled = system_->Ask(silent, Question{}, absl::InfiniteDuration());
  Future<Answer> stopped = system_->Ask(silent, Question{}, absl::InfiniteDuration(), stop.get_token());
  Future<Answer> kept = system_->Ask(silent, Question{}, absl::InfiniteDuration());
  Settle();
  ASSERT_EQ(asked.size(), 4u);
  for (const ActorRef promise : asked) watcher.Tell(WatchIt{promise});
  Settle();
  EXPECT_TRUE(ended.empty());
  dropped.reset();
  EXPECT_TRUE(cancelled.Cancel());
  EXPECT_TRUE(cancelled.Cancel()) << "once more";
  stop.request_stop();
  Settle();
  EXPECT_EQ(ended, std::vector<ActorRef>(asked.begin(), asked.begin() + 3));
  EXPECT_TRUE(absl::IsCancelled(cancelled.Take().status()));
  EXPECT_TRUE(absl::IsCancelled(stopped.Take().status()));
  EXPECT_EQ(late_replies(), 0u);
  for (const ActorRef promise : asked) Tell(promise, Answer{4});
  Settle();
  EXPECT_EQ(late_replies(), 3u) << "nobody waits for them";
  EXPECT_EQ(kept.Take()->value, 4);
}

// Asks another, and forgets that it has.
class Forgetful : public Actor<Forgetful, Link> {
 public:
  void On(Context& context, const Link& link) {
    static_cast<void>(context.Ask<Answer>(link.next, Question{}, absl::InfiniteDuration()));
  }
};

TEST_F(AskTest, AsksWhoseFuturesAreDroppedUseTheSamePromisesAgain) {
  constexpr int kAsks = 1000;
  std::vector<ActorRef> asked;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto forgetful = system_->Spawn<Forgetful>("forgetful");
  for (int i = 0; i < kAsks; ++i) {
    static_cast<void>(system_->Ask(silent, Question{}, absl::InfiniteDuration()));
    forgetful.Tell(Link{silent.untyped()});
    Settle();
  }
  ASSERT_EQ(asked.size(), 2u * kAsks);
  std::set<const TableSlot*> slots;
  for (const ActorRef promise : asked) slots.insert(promise.any_slot());
  // Workers and the system have some free promises at hand, and take turns with them.
  EXPECT_LT(slots.size(), kAsks / 2u) << "each of them kept its promise";
}

// Futures end on other threads than the asker's, while the replies come.
TEST(AskThreads, FuturesAreDroppedWhileRepliesCome) {
  constexpr int kThreads = 3;
  constexpr int kAsks = 3000;
  ActorSystemOptions options{.config = {.system_name = "s"}, .workers = 2};
  options.log_level = LogLevel::kOff;
  const auto system = ActorSystem::Create(options).value();
  auto teller = system->Spawn<Teller>("teller");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::vector<Future<Answer>> kept;
      for (int i = 0; i < kAsks; ++i) {
        std::stop_source stop;
        Future<Answer> asking = i % 2 == 0 ? system->Ask(teller, Question{i}, absl::Hours(1))
                                           : system->Ask(teller, Question{i}, absl::Hours(1), stop.get_token());
        if (i % 3 == 0) stop.request_stop();
        if (i % 3 == 1) kept.push_back(std::move(asking));
        // A third is dropped some asks later, when the reply may be there.
        if (kept.size() == 16) {
          for (size_t k = 0; k < kept.size(); k += 2) EXPECT_TRUE(kept[k].Wait().ok());
          kept.clear();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(system->AskAndWait(teller, Question{1}, absl::Hours(1)).ok());
}

TEST_F(AskTest, APromiseEndsWithWhoAsked) {
  std::vector<ActorRef> asked;
  std::vector<ActorRef> ended;
  std::vector<std::string> heard;
  auto silent = system_->Spawn<Silent>("silent", &asked);
  auto watcher = system_->Spawn<Watcher>("watcher", &ended);
  auto asker = system_->Spawn<Interleaving>("asker", silent.untyped(), &heard);
  asker.Tell(Question{});
  Settle();
  watcher.Tell(WatchIt{asked.at(0)});
  Settle();
  EXPECT_TRUE(ended.empty());
  system_->Stop(asker);
  Settle();
  EXPECT_EQ(ended, asked);
}

}  // namespace
}  // namespace fraktor
