// Behaviours of typed actors (Become, BecomeStacked, Unbecome) together with waiting handlers.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

using Lines = std::vector<std::string>;

// A system on virtual time.
class BehaviorTest : public testing::Test {
 protected:
  static ActorSystemOptions OptionsFor(LocalToolbox& toolbox) {
    ActorSystemOptions options;
    options.toolbox = &toolbox;
    options.log_level = LogLevel::kOff;
    return options;
  }

  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }
  void Pass(absl::Duration time) { ASSERT_TRUE(toolbox_->RunFor(time).ok()); }
  template <class Ref, class Q>
  auto Ask(Ref ref, Q question) {
    return system_->AskAndWait(ref, std::move(question), absl::Seconds(10));
  }

  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  std::unique_ptr<ActorSystem> system_ = ActorSystem::Create(OptionsFor(*toolbox_)).value();
};

struct Note {
  std::string text;
};
// The handler waits for a second, and replies with the name of the behaviour that the handler
// belongs to.
struct WaitAndTell {
  using Reply = Note;
};
// The same, and other messages are handled meanwhile.
struct WaitBeside {
  using Reply = Note;
};
// The handler becomes another behaviour first, and then waits.
struct ChangeAndWait {
  using Reply = Note;
};
struct Change {
  using Reply = Note;
};
struct GoBack {
  using Reply = Note;
};
// Begins a task that waits for a second and writes a line.
struct BeginTask {};
struct Break {};

// Behaviours "0", "1", ...: each change goes to the next one.
class Changing : public Actor<Changing, WaitAndTell, WaitBeside, ChangeAndWait, Change, GoBack, BeginTask, Break> {
 public:
  class Numbered {
   public:
    Numbered(Changing& actor, int number) : actor_(actor), name_(std::to_string(number)) {}
    ~Numbered() { actor_.lines_.push_back("end of " + name_); }

    Task<Note> On(Context& context, const WaitAndTell&) { return Wait(context); }
    InterleavingTask<Note> On(Context& context, const WaitBeside&) { return Wait(context); }
    Task<Note> On(Context& context, const ChangeAndWait&) {
      actor_.BecomeNext(context);
      return Wait(context);
    }
    Note On(Context& context, const Change&) {
      actor_.BecomeNext(context);
      return {name_};
    }
    Note On(Context& context, const GoBack&) {
      context.Unbecome();
      return {name_};
    }
    absl::Status On(Context& context, const BeginTask&) { return context.Run(WaitAndWrite(context)); }
    absl::Status On(Context&, const Break&) { return absl::InternalError("broken"); }

   private:
    Task<Note> Wait(Context& context) {
      auto delay = context.Delay(absl::Seconds(1));
      (co_await delay).IgnoreError();
      co_return Note{name_};
    }
    Task<void> WaitAndWrite(Context& context) {
      {
        auto delay = context.Delay(absl::Seconds(1));
        (co_await delay).IgnoreError();
      }
      // A task that this task begins belongs to the same behaviour.
      context.Run(Write(context)).IgnoreError();
    }
    Task<void> Write(Context& context) {
      auto delay = context.Delay(absl::Seconds(1));
      (co_await delay).IgnoreError();
      actor_.lines_.push_back("task of " + name_);
    }

    Changing& actor_;
    const std::string name_;
  };

  explicit Changing(Lines* lines) : lines_(*lines) {}

  void PreStart(Context& context) { BecomeNext(context); }
  void PreRestart(Context&, const absl::Status&, Envelope*) { lines_.push_back("PreRestart"); }
  void PostStop(Context&) { lines_.push_back("PostStop"); }

  template <class M>
  Note On(Context&, const M&) {
    return {"the actor itself"};
  }

 private:
  void BecomeNext(Context& context) { context.Become<Numbered>(*this, next_++); }

  Lines& lines_;
  int next_ = 0;
};

TEST_F(BehaviorTest, LivesUntilItsOwnHandlerThatReplacedItIsDone) {
  Lines lines;
  auto actor = system_->Spawn<Changing>("changing", &lines);
  auto told = system_->Ask(actor, ChangeAndWait{}, absl::Seconds(10));
  Settle();
  EXPECT_EQ(lines, Lines());
  Pass(absl::Seconds(1));
  EXPECT_EQ(told.Take()->text, "0");
  EXPECT_EQ(lines, Lines({"end of 0"}));
  EXPECT_EQ(Ask(actor, Change{})->text, "1");
  EXPECT_EQ(lines, Lines({"end of 0", "end of 1"})) << "one that nothing waits in ends with the message";
  system_.reset();
}

TEST_F(BehaviorTest, LivesUntilTheLastOfItsInterleavingHandlersIsDone) {
  Lines lines;
  auto actor = system_->Spawn<Changing>("changing", &lines);
  auto first = system_->Ask(actor, WaitBeside{}, absl::Seconds(10));
  Settle();
  Pass(absl::Milliseconds(500));
  auto second = system_->Ask(actor, WaitBeside{}, absl::Seconds(10));
  EXPECT_EQ(Ask(actor, Change{})->text, "0");
  auto other = system_->Ask(actor, WaitBeside{}, absl::Seconds(10));
  EXPECT_EQ(Ask(actor, Change{})->text, "1");
  Pass(absl::Milliseconds(500));
  EXPECT_EQ(first.Take()->text, "0");
  EXPECT_EQ(lines, Lines());
  Pass(absl::Milliseconds(500));
  EXPECT_EQ(second.Take()->text, "0");
  EXPECT_EQ(other.Take()->text, "1");
  EXPECT_EQ(lines, Lines({"end of 0", "end of 1"}));
  system_.reset();
}

TEST_F(BehaviorTest, LivesUntilItsHandlersAreDoneAfterUnbecome) {
  Lines lines;
  auto actor = system_->Spawn<Changing>("changing", &lines);
  auto told = system_->Ask(actor, WaitBeside{}, absl::Seconds(10));
  EXPECT_EQ(Ask(actor, GoBack{})->text, "0");
  EXPECT_EQ(Ask(actor, Change{})->text, "the actor itself");
  EXPECT_EQ(lines, Lines());
  Pass(absl::Seconds(1));
  EXPECT_EQ(told.Take()->text, "0");
  EXPECT_EQ(lines, Lines({"end of 0"}));
  system_.reset();
}

TEST_F(BehaviorTest, LivesUntilItsTasksAreDone) {
  Lines lines;
  auto actor = system_->Spawn<Changing>("changing", &lines);
  actor.Tell(BeginTask{});
  EXPECT_EQ(Ask(actor, Change{})->text, "0");
  Pass(absl::Seconds(1));
  EXPECT_EQ(lines, Lines());
  Pass(absl::Seconds(1));
  EXPECT_EQ(lines, Lines({"task of 0", "end of 0"}));
  system_.reset();
}

TEST_F(BehaviorTest, EndsWithItsWaitingHandlersBeforePreRestart) {
  Lines lines;
  auto actor = system_->Spawn<Changing>("changing", &lines);
  auto told = system_->Ask(actor, WaitBeside{}, absl::Seconds(10));
  EXPECT_EQ(Ask(actor, Change{})->text, "0");
  auto other = system_->Ask(actor, WaitBeside{}, absl::Seconds(10));
  actor.Tell(Break{});
  Settle();
  EXPECT_EQ(told.Take().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(other.Take().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(lines, Lines({"end of 0", "PreRestart", "end of 1"}));
  EXPECT_EQ(Ask(actor, Change{})->text, "0");
  system_.reset();
}

TEST_F(BehaviorTest, EndsWithItsWaitingHandlersBeforePostStop) {
  Lines lines;
  auto actor = system_->Spawn<Changing>("changing", &lines);
  auto told = system_->Ask(actor, WaitBeside{}, absl::Seconds(10));
  EXPECT_EQ(Ask(actor, Change{})->text, "0");
  system_->Stop(actor);
  Settle();
  EXPECT_EQ(told.Take().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(lines, Lines({"end of 0", "PostStop", "end of 1"}));
}

struct StackMany {};

// Stacks behaviours until the limit, and removes one.
class Stacking : public Actor<Stacking, StackMany, Change> {
 public:
  struct Above {
    void On(Context&, const StackMany&) {}
    Note On(Context& context, const Change&) { return {context.Unbecome() ? "above" : "below all"}; }
  };

  explicit Stacking(absl::Status* refused) : refused_(*refused) {}
  void On(Context& context, const StackMany&) {
    while (refused_.ok()) refused_ = context.BecomeStacked<Above>();
  }
  Note On(Context&, const Change&) { return {"initial"}; }

 private:
  absl::Status& refused_;
};

TEST_F(BehaviorTest, AreRefusedBeyondTheLimit) {
  absl::Status refused;
  auto actor = system_->Spawn<Stacking>("stacking", &refused);
  actor.Tell(StackMany{});
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Ask(actor, Change{})->text, "above");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(Ask(actor, Change{})->text, "initial");
}

}  // namespace
}  // namespace fraktor
