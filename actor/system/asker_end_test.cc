// An actor ends at the moment at which its ask is answered, or restarts while its asks time out.
#include <memory>
#include <semaphore>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

struct Answer {};
struct Question {
  using Reply = Answer;
};
struct Begin {
  ActorRef other;
};
// The recipient replies to the ask that it has, and asks another actor.
struct AnswerAndAsk {
  ActorRef other;
};
struct Asked {};
struct HasAsked {
  using Reply = Asked;
};
struct State {
  bool is_ready;
};
struct GetState {
  using Reply = State;
};

// Two threads that wait for each other.
struct Meeting {
  std::binary_semaphore asker_ends{0};
  std::binary_semaphore may_go_on{0};
};

// The destructor of the instance runs after the references have become stale.
class Asker final : public ActorInstance {
 public:
  explicit Asker(Meeting* meeting) : meeting_(*meeting) {}
  ~Asker() override {
    meeting_.asker_ends.release();
    meeting_.may_go_on.acquire();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* begin = message.TryAs<Begin>()) {
      asking_ = context.Ask<Answer>(begin->other, Question{}, absl::Hours(1));
      return absl::OkStatus();
    }
    return context.Unhandled(message);
  }

 private:
  Meeting& meeting_;
  Future<Answer> asking_;
};

class Replier final : public ActorInstance {
 public:
  explicit Replier(Meeting* meeting) : meeting_(*meeting) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Question>()) {
      asker_ = context.sender();
    } else if (message.Is<HasAsked>()) {
      context.Reply(Asked{});
    } else if (const auto* now = message.TryAs<AnswerAndAsk>()) {
      meeting_.asker_ends.acquire();
      context.Tell(asker_, Answer{});
      // The slot of the first promise is free, and the next ask of this worker takes it.
      asking_ = context.Ask<Answer>(now->other, Question{}, absl::Hours(1));
      meeting_.may_go_on.release();
    } else if (message.Is<GetState>()) {
      context.Reply(State{asking_.IsReady()});
    } else {
      return context.Unhandled(message);
    }
    return absl::OkStatus();
  }

 private:
  Meeting& meeting_;
  ActorRef asker_;
  Future<Answer> asking_;
};

class Silent final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

TEST(AskerEnd, LeavesThePromisesOfOthersAlone) {
  Meeting meeting;
  ActorSystemOptions options;
  options.workers = 2;
  options.log_level = LogLevel::kOff;
  const std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
  const ActorRef silent = system->TrySpawn(PropsOf<Silent>()).value();
  const ActorRef replier = system->TrySpawn(*MakeProps<Replier>({}, &meeting)).value();
  const ActorRef asker = system->TrySpawn(*MakeProps<Asker>({}, &meeting)).value();
  Tell(asker, Begin{replier});
  // The ask comes first: the asker has sent it when it handles the Identify.
  ASSERT_TRUE(system->AskAndWait<ActorIdentity>(asker, Identify{1}, absl::Minutes(1)).ok());
  ASSERT_TRUE(system->AskAndWait(replier, HasAsked{}, absl::Minutes(1)).ok());
  Future<void> stopping = GracefulStop(*system, asker, absl::Minutes(1));
  Tell(replier, AnswerAndAsk{silent});
  ASSERT_TRUE(stopping.Wait().ok());
  const absl::StatusOr<State> state = system->AskAndWait(replier, GetState{}, absl::Minutes(1));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_FALSE(state->is_ready) << "the end of one asker has ended the ask of another";
}

struct EndedAsks {
  std::vector<ActorRef> asked;
  std::vector<ActorRef> failed;
  int starts = 0;
};

// Asks ten times. Fails when the third ask has failed.
class FailingAsker final : public ActorInstance {
 public:
  FailingAsker(ActorRef silent, EndedAsks* asks) : silent_(silent), asks_(*asks) {}

  absl::Status PreStart(ActorContext&) override {
    ++asks_.starts;
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope&) override {
    for (int i = 0; i < 10; ++i) {
      const absl::StatusOr<ActorRef> ask = context.AskOnReply(silent_, Question{}, absl::Seconds(1));
      if (!ask.ok()) return ask.status();
      asks_.asked.push_back(*ask);
    }
    return absl::OkStatus();
  }
  absl::Status OnReply(ActorContext&, ActorRef ask, absl::StatusOr<Envelope*> reply) override {
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kDeadlineExceeded);
    asks_.failed.push_back(ask);
    return asks_.failed.size() == 3 ? absl::InternalError("the third ask has failed") : absl::OkStatus();
  }

 private:
  const ActorRef silent_;
  EndedAsks& asks_;
};

// SCH-14
// Two asks time out in each turn.
TEST(AskerRestart, EndsEachAskOnceIfItComesWhileAsksTimeOut) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  options.log_level = LogLevel::kOff;
  options.scheduler.dispatchers.default_pool.budget = 2;
  const std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
  EndedAsks asks;
  const ActorRef silent = system->TrySpawn(PropsOf<Silent>()).value();
  const ActorRef asker = system->TrySpawn(*MakeProps<FailingAsker>({}, silent, &asks)).value();
  Tell(asker, Begin{});
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(2)).ok());
  EXPECT_EQ(asks.starts, 2);
  EXPECT_EQ(asks.asked.size(), 10u);
  EXPECT_EQ(asks.failed, asks.asked);
}

}  // namespace
}  // namespace fraktor
