#include "fraktor/actor/pattern/backoff_supervisor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

struct Fail {
  absl::Status with = absl::UnavailableError("fails");
};
struct End {};
struct Ping {
  int number = 0;
};
struct Pong {
  int number = 0;
};
struct Report {
  std::string text;
};
struct SayToParent {};
struct Busy {};

using Log = std::vector<std::string>;

class Child : public Actor<Child, Fail, End, Ping, SayToParent> {
 public:
  explicit Child(Log* log) : log_(*log) {}
  void PreStart(Context&) { log_.push_back("starts"); }
  void PostStop(Context&) { log_.push_back("stops"); }
  absl::Status On(Context&, const Fail& fail) { return fail.with; }
  void On(Context& context, const End&) { context.Stop(); }
  Pong On(Context&, const Ping& ping) { return {ping.number}; }
  void On(Context& context, const SayToParent&) { context.Tell(context.parent(), Report{"hello"}); }

 private:
  Log& log_;
};

// The parent of the supervisor; asks it on behalf of the test.
struct Give {
  PropsPtr props;
};
class Grandparent : public Actor<Grandparent, Give, Ping, Pong, Report, Busy, RestartCount, CurrentChild> {
 public:
  Grandparent(Log* log, ActorRef* supervisor) : log_(*log), supervisor_(*supervisor) {}
  absl::Status On(Context& context, const Give& give) {
    supervisor_ = context.ActorContext::Spawn(*give.props, "supervisor");
    return context.Watch(supervisor_);
  }
  void On(Context& context, const Ping& ping) { context.Tell(supervisor_, ping); }
  void On(Context&, const Pong& pong) { log_.push_back("pong " + std::to_string(pong.number)); }
  void On(Context& context, const Report& report) {
    log_.push_back("report " + report.text +
                   (context.sender() == supervisor_ ? " of the supervisor" : " of the child"));
  }
  void On(Context&, const Busy&) { log_.push_back("busy"); }
  void On(Context&, const RestartCount&) {}
  void On(Context&, const CurrentChild&) {}
  void On(Context&, const Terminated&) { log_.push_back("supervisor ended"); }

 private:
  Log& log_;
  ActorRef& supervisor_;
};

class BackoffTest : public testing::Test {
 protected:
  BackoffTest() : toolbox_(LocalToolbox::Make({}).value()) {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.log_level = LogLevel::kOff;
    system_ = ActorSystem::Create(options).value();
    parent_ = system_->Spawn<Grandparent>("parent", &log_, &supervisor_);
  }

  BackoffSupervisorOptions Options(BackoffTrigger trigger) {
    BackoffSupervisorOptions options;
    options.trigger = trigger;
    options.child = MakeTypedProps<Child>({}, &log_);
    options.min_backoff = absl::Seconds(1);
    options.max_backoff = absl::Seconds(5);
    options.jitter = 0;
    return options;
  }
  void Begin(BackoffSupervisorOptions options) {
    parent_.Tell(Give{MakeBackoffProps(std::move(options)).value()});
    Settle();
  }
  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }
  void Advance(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }
  Log TakeLog() {
    Settle();
    return std::exchange(log_, {});
  }
  int64_t Restarts() {
    return system_->AskAndWait<RestartCount>(supervisor_, GetRestartCount{}, absl::Seconds(1)).value().count;
  }
  ActorRef CurrentOne() {
    return system_->AskAndWait<CurrentChild>(supervisor_, GetCurrentChild{}, absl::Seconds(1)).value().child;
  }

  Log log_;
  Log other_;
  std::unique_ptr<LocalToolbox> toolbox_;
  std::unique_ptr<ActorSystem> system_;
  ActorRef supervisor_;
  TypedRef<Give, Ping, Pong, Report, Busy, RestartCount, CurrentChild> parent_;
};

// A118
TEST_F(BackoffTest, OnStopAChildThatHasEndedComesAgainAfterAPauseThatGrows) {
  Begin(Options(BackoffTrigger::kOnStop));
  EXPECT_EQ(TakeLog(), Log({"starts"}));
  // 1, 2 and 4 seconds, then the maximum.
  for (const int seconds : {1, 2, 4, 5, 5}) {
    Tell(supervisor_, End{});
    EXPECT_EQ(TakeLog(), Log({"stops"}));
    EXPECT_TRUE(CurrentOne().IsNoOne());
    Advance(absl::Seconds(seconds) - absl::Nanoseconds(1));
    EXPECT_EQ(TakeLog(), Log());
    Advance(absl::Nanoseconds(1));
    EXPECT_EQ(TakeLog(), Log({"starts"})) << seconds;
  }
  EXPECT_EQ(Restarts(), 5);
  Tell(supervisor_, Fail{});
  EXPECT_EQ(TakeLog(), Log({"stops", "starts"})) << "a failure is decided on as usual: a restart without a pause";
}

// A118
TEST_F(BackoffTest, OnFailureAChildThatFailsComesAgainAfterAPause) {
  Begin(Options(BackoffTrigger::kOnFailure));
  for (const int seconds : {1, 2}) {
    Tell(supervisor_, Fail{});
    EXPECT_EQ(TakeLog(), seconds == 1 ? Log({"starts", "stops"}) : Log({"stops"}));
    Advance(absl::Seconds(seconds) - absl::Nanoseconds(1));
    EXPECT_EQ(TakeLog(), Log());
    Advance(absl::Nanoseconds(1));
    EXPECT_EQ(TakeLog(), Log({"starts"}));
  }
  EXPECT_EQ(Restarts(), 2);
}

// The mailbox of the supervisor is full when the pause is over.
TEST_F(BackoffTest, AFullMailboxDoesNotKeepTheChildAway) {
  parent_.Tell(Give{MakeBackoffProps(Options(BackoffTrigger::kOnFailure),
                                     {.mailbox = {.capacity = 1, .overflow = OverflowStrategy::kReject}})
                        .value()});
  EXPECT_EQ(TakeLog(), Log({"starts"}));
  // Due with the start of the child, and armed before it.
  bool is_full = false;
  toolbox_
      ->ScheduleAfter(absl::Seconds(1),
                      [&] {
                        EXPECT_TRUE(TryTell(supervisor_, Ping{1}).ok());
                        is_full = !TryTell(supervisor_, Ping{2}).ok();
                      })
      .value();
  Tell(supervisor_, Fail{});
  EXPECT_EQ(TakeLog(), Log({"stops"}));
  Advance(absl::Seconds(1));
  EXPECT_TRUE(is_full);
  EXPECT_EQ(TakeLog(), Log({"starts"}));
}

// A118
TEST_F(BackoffTest, MessagesGoThroughBothWays) {
  Begin(Options(BackoffTrigger::kOnFailure));
  parent_.Tell(Ping{7});
  Tell(supervisor_, SayToParent{});
  EXPECT_EQ(TakeLog(), Log({"starts", "pong 7", "report hello of the child"}));
  EXPECT_EQ(system_->PathOf(CurrentOne()), "pekko://default/user/parent/supervisor/child");
}

// A120
TEST_F(BackoffTest, AQuietTimeResetsTheCount) {
  BackoffSupervisorOptions options = Options(BackoffTrigger::kOnStop);
  options.auto_reset = absl::Seconds(10);
  Begin(std::move(options));
  for (const int seconds : {1, 2}) {
    Tell(supervisor_, End{});
    Settle();
    Advance(absl::Seconds(seconds));
  }
  Advance(absl::Seconds(9));
  EXPECT_EQ(Restarts(), 2) << "the first child's quiet time does not count for the second";
  Advance(absl::Seconds(1));
  EXPECT_EQ(Restarts(), 0);
  Tell(supervisor_, ResetBackoff{});
  EXPECT_EQ(Restarts(), 0);
}

// A120
TEST_F(BackoffTest, WithoutAnAutomaticResetItIsDoneOnRequest) {
  BackoffSupervisorOptions options = Options(BackoffTrigger::kOnStop);
  options.auto_reset = absl::InfiniteDuration();
  Begin(std::move(options));
  Tell(supervisor_, End{});
  Settle();
  Advance(absl::Hours(100));
  EXPECT_EQ(Restarts(), 1);
  Tell(supervisor_, ResetBackoff{});
  EXPECT_EQ(Restarts(), 0);
}

// A121
TEST_F(BackoffTest, WhileTheChildIsAwayAConfiguredReplyIsGiven) {
  BackoffSupervisorOptions options = Options(BackoffTrigger::kOnFailure);
  options.while_away = [](ActorContext& context) { context.Reply(Busy{}); };
  Begin(std::move(options));
  Tell(supervisor_, Fail{});
  Settle();
  parent_.Tell(Ping{1});
  EXPECT_EQ(TakeLog(), Log({"starts", "stops", "busy"}));
  Advance(absl::Seconds(1));
  parent_.Tell(Ping{2});
  EXPECT_EQ(TakeLog(), Log({"starts", "pong 2"}));
}

// A121
TEST_F(BackoffTest, WhileTheChildIsAwayAnotherActorTakesItsMessages) {
  BackoffSupervisorOptions options = Options(BackoffTrigger::kOnStop);
  options.handler_while_away = system_->Spawn<Child>("other", &other_).untyped();
  Begin(std::move(options));
  Tell(supervisor_, End{});
  Settle();
  parent_.Tell(Ping{1});
  EXPECT_EQ(TakeLog(), Log({"starts", "stops", "pong 1"}));
}

// A121
TEST_F(BackoffTest, WhileTheChildIsAwayMessagesAreDeadLetters) {
  Begin(Options(BackoffTrigger::kOnStop));
  Tell(supervisor_, End{});
  Settle();
  const uint64_t before = system_->dead_letters().total();
  parent_.Tell(Ping{1});
  Settle();
  EXPECT_EQ(system_->dead_letters().total(), before + 1);
}

TEST_F(BackoffTest, WhoAsksWhileTheChildIsAwayHearsWhenItComesBack) {
  BackoffSupervisorOptions options = Options(BackoffTrigger::kOnFailure);
  options.child_name = "line";
  Begin(std::move(options));
  std::vector<std::string> letters;
  const EventSubscription listening = system_->events().Listen<AllDeadLetters>([&](const AllDeadLetters& letter) {
    letters.push_back(std::string(letter.message.type_name) + " to " + std::string(letter.recipient));
  });
  Tell(supervisor_, Fail{});
  Settle();
  Advance(absl::Milliseconds(400));
  const absl::StatusOr<Pong> away = system_->AskAndWait<Pong>(supervisor_, Ping{1}, absl::Seconds(1));
  EXPECT_EQ(away.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(away.status().message().find("/user/parent/supervisor/line is away, and starts again in 600ms"),
            absl::string_view::npos)
      << away.status();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_NE(letters[0].find("Ping to pekko://default/user/parent/supervisor/line"), std::string::npos) << letters[0];
  Advance(absl::Milliseconds(600));
  EXPECT_TRUE(system_->AskAndWait<Pong>(supervisor_, Ping{2}, absl::Seconds(1)).ok());
}

// A122
TEST_F(BackoffTest, TooManyRestartsEndTheSupervisor) {
  for (const BackoffTrigger trigger : {BackoffTrigger::kOnStop, BackoffTrigger::kOnFailure}) {
    BackoffSupervisorOptions options = Options(trigger);
    options.max_restarts = 2;
    options.auto_reset = absl::Hours(1);
    Begin(std::move(options));
    for (int i = 0; i < 3; ++i) {
      if (trigger == BackoffTrigger::kOnStop) {
        Tell(supervisor_, End{});
      } else {
        Tell(supervisor_, Fail{});
      }
      Settle();
      Advance(absl::Seconds(10));
    }
    EXPECT_EQ(TakeLog(), Log({"starts", "stops", "starts", "stops", "starts", "stops", "supervisor ended"}));
  }
}

// A122
TEST_F(BackoffTest, AFinalStopMessageEndsTheSupervisorWithTheChild) {
  const auto with_final = [&] {
    BackoffSupervisorOptions options = Options(BackoffTrigger::kOnStop);
    options.is_final_stop = [](const Envelope& message) { return message.Is<End>(); };
    return options;
  };
  Begin(with_final());
  Tell(supervisor_, End{});
  EXPECT_EQ(TakeLog(), Log({"starts", "stops", "supervisor ended"}));
  Begin(with_final());
  Tell(supervisor_, PoisonPill{});
  EXPECT_EQ(TakeLog(), Log({"starts", "stops", "supervisor ended"})) << "that is the supervisor's own";
  Begin(with_final());
  const ActorRef child = CurrentOne();
  Tell(child, End{});
  EXPECT_EQ(TakeLog(), Log({"starts", "stops"})) << "not through the supervisor: the child comes again";
  Tell(supervisor_, End{});
  EXPECT_EQ(TakeLog(), Log({"supervisor ended"})) << "at once while the child is away";
}

// A122
TEST_F(BackoffTest, AVerdictToStopEndsTheSupervisor) {
  BackoffSupervisorOptions options = Options(BackoffTrigger::kOnFailure);
  options.decider = [](const Failure& failure) {
    return failure.error.code() == absl::StatusCode::kDataLoss ? Stop() : Restart();
  };
  Begin(std::move(options));
  Tell(supervisor_, Fail{});
  Settle();
  Advance(absl::Seconds(1));
  Tell(supervisor_, Fail{absl::DataLossError("lost")});
  EXPECT_EQ(TakeLog(), Log({"starts", "stops", "starts", "stops", "supervisor ended"}));
}

TEST_F(BackoffTest, APauseGrowsToItsLimitAndIsLongerByChance) {
  const BackoffSupervisorOptions options = [&] {
    BackoffSupervisorOptions some = Options(BackoffTrigger::kOnStop);
    some.jitter = 0.5;
    return some;
  }();
  EXPECT_EQ(BackoffAfter(options, 0, 0.0), absl::Seconds(1));
  EXPECT_EQ(BackoffAfter(options, 0, 1.0), absl::Milliseconds(1500));
  EXPECT_EQ(BackoffAfter(options, 1'000'000'000'000, 0.0), absl::Seconds(5));
}

TEST_F(BackoffTest, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [&](auto change) {
    BackoffSupervisorOptions options = Options(BackoffTrigger::kOnStop);
    change(options);
    return std::string(MakeBackoffProps(std::move(options)).status().message());
  };
  EXPECT_NE(refused([](auto& o) { o.child = nullptr; }).find(".child "), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.min_backoff = absl::ZeroDuration(); }).find(".min_backoff"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.max_backoff = absl::Milliseconds(1); }).find(".max_backoff"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.jitter = 1.5; }).find(".jitter"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.max_restarts = -2; }).find(".max_restarts"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.auto_reset = absl::ZeroDuration(); }).find(".auto_reset"), std::string::npos);
  EXPECT_NE(refused([&](auto& o) {
              o.handler_while_away = parent_.untyped();
              o.while_away = [](ActorContext&) {};
            }).find(".while_away"),
            std::string::npos);
}

}  // namespace
}  // namespace fraktor
