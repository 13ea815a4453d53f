#include "fraktor/actor/pattern/behaviors.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/internal/pattern_fixture.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/utils/future/task.h"

namespace fraktor {

using pattern_internal::PatternTest;

namespace {

using Lines = std::vector<std::string>;

// Records which behaviour handled a message, and changes behaviours by text.
class Changing final : public BehaviorActor {
 public:
  Changing(Lines* lines, bool begins_as_a) : lines_(*lines) {
    if (begins_as_a) Become(&Changing::A);
  }

 private:
  absl::Status ReceiveInitially(ActorContext& context, Envelope& message) override {
    return Note("initially", context, message);
  }
  absl::Status A(ActorContext& context, Envelope& message) { return Note("a", context, message); }
  absl::Status B(ActorContext& context, Envelope& message) { return Note("b", context, message); }

  absl::Status Note(const std::string& how, ActorContext& context, Envelope& message) {
    const std::string word = message.As<std::string>();
    lines_.push_back(absl::StrCat(how, ": ", word));
    if (word == "be a") Become(&Changing::A);
    if (word == "be b") Become(&Changing::B);
    if (word == "b above") return BecomeStacked(&Changing::B);
    if (word == "back" && !Unbecome()) lines_.push_back("nothing to go back to");
    if (word == "fail") return absl::InternalError("as told");
    if (word == "many") {
      absl::Status stacked;
      while (stacked.ok()) stacked = BecomeStacked(&Changing::B);
      lines_.push_back(std::string(stacked.message()));
    }
    if (word == "function") {
      // The function replaces itself, and goes on with its captures.
      Become([this, text = std::string(100, 'x')](ActorContext&, Envelope&) {
        Become(&Changing::A);
        lines_.push_back(absl::StrCat("function of ", text.size()));
        return absl::OkStatus();
      });
    }
    static_cast<void>(context);
    return absl::OkStatus();
  }

  Lines& lines_;
};

class BehaviorsTest : public PatternTest {
 protected:
  ActorRef SpawnChanging(bool begins_as_a) {
    return system_->TrySpawn(*MakeProps<Changing>({}, &lines_, begins_as_a)).value();
  }
  Lines Say(ActorRef actor, const Lines& words) {
    for (const std::string& word : words) Tell(actor, word);
    Settle();
    return std::exchange(lines_, {});
  }

  Lines lines_;
};

// A74
TEST_F(BehaviorsTest, BeginWithWhatTheConstructorSays) {
  EXPECT_EQ(Say(SpawnChanging(true), {"x"}), Lines({"a: x"}));
  EXPECT_EQ(Say(SpawnChanging(false), {"x"}), Lines({"initially: x"}));
}

// A74
TEST_F(BehaviorsTest, ReplaceTheOneOnTop) {
  EXPECT_EQ(Say(SpawnChanging(true), {"be b", "x", "back", "y"}), Lines({"a: be b", "b: x", "b: back", "initially: y"}))
      << "a was replaced";
}

// A74
TEST_F(BehaviorsTest, StackAndGoBack) {
  EXPECT_EQ(Say(SpawnChanging(true), {"b above", "b above", "x", "back", "y", "back", "z"}),
            Lines({"a: b above", "b: b above", "b: x", "b: back", "b: y", "b: back", "a: z"}));
}

// A74
TEST_F(BehaviorsTest, GoBackToTheInitialOneAndNoFurther) {
  EXPECT_EQ(Say(SpawnChanging(true), {"back", "back", "x"}),
            Lines({"a: back", "initially: back", "nothing to go back to", "initially: x"}));
}

// A5
TEST_F(BehaviorsTest, BeginAnewAfterARestart) {
  EXPECT_EQ(Say(SpawnChanging(true), {"b above", "fail", "x", "back", "y"}),
            Lines({"a: b above", "b: fail", "a: x", "a: back", "initially: y"}));
}

TEST_F(BehaviorsTest, MayBeFunctionsThatReplaceThemselves) {
  EXPECT_EQ(Say(SpawnChanging(false), {"function", "x", "y"}),
            Lines({"initially: function", "function of 100", "a: y"}));
}

TEST_F(BehaviorsTest, AreRefusedBeyondTheLimit) {
  EXPECT_EQ(Say(SpawnChanging(true), {"many", "x"}),
            Lines({"a: many", "1000 behaviours are stacked already; use Become, or remove some by Unbecome", "b: x"}));
}

// A coroutine uses the captures of its function after the function was replaced.
class Waiting final : public BehaviorActor {
 public:
  explicit Waiting(Lines* lines) : lines_(*lines) {
    Become([this, text = std::string(100, 'x')](ActorContext& context, Envelope& message) {
      lines_.push_back(message.As<std::string>());
      const auto wait = [](ActorContext& its_context, Lines& its_lines, const std::string& its_text) -> Task<void> {
        auto delay = its_context.Delay(absl::Seconds(1));
        (co_await delay).IgnoreError();
        its_lines.push_back(absl::StrCat("waited with ", its_text));
      };
      absl::Status begun = context.Run(wait(context, lines_, text));
      Become([this](ActorContext&, Envelope& next) {
        lines_.push_back(next.As<std::string>());
        return absl::OkStatus();
      });
      return begun;
    });
  }

 private:
  Lines& lines_;
};

TEST_F(BehaviorsTest, LiveUntilTheirTasksAreDone) {
  const ActorRef actor = system_->TrySpawn(*MakeProps<Waiting>({}, &lines_)).value();
  EXPECT_EQ(Say(actor, {"a", "b", "c"}), Lines({"a", "b", "c"}));
  RunFor(absl::Seconds(1));
  EXPECT_EQ(lines_, Lines({absl::StrCat("waited with ", std::string(100, 'x'))}));
}

class Plain final : public BehaviorActor {};

TEST_F(BehaviorsTest, HandleNothingIfThereIsNone) {
  const ActorRef actor = system_->TrySpawn(PropsOf<Plain>()).value();
  Tell(actor, std::string("x"));
  Settle();
  EXPECT_EQ(dead_letters(DeadLetterReason::kUnhandled), 1u);
}

}  // namespace
}  // namespace fraktor
