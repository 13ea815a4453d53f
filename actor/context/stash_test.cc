// ActorContext::Stash and Unstash.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor {

using actor_internal::EnvelopeList;
using actor_internal::InvokerTest;
using actor_internal::Mark;
using actor_internal::Number;

namespace {

class StashTest : public InvokerTest {
 protected:
  ~StashTest() override {
    while (Envelope* const envelope = stashed_.PopFront()) EnvelopePtr ended(envelope);
  }

  // Stashes numbers until it gets 0, and then unstashes all of them.
  ActorRef SpawnStasher(const MailboxOptions* options = nullptr) {
    return Spawn(
        [this](ActorContext& context, Envelope& message) {
          const int value = message.As<Number>().value;
          if (value == 0) {
            open_ = true;
            context.Unstash(stashed_);
            stashed_ = {};
          } else if (!open_) {
            stashed_.PushBack(context.Stash().release());
            return absl::OkStatus();
          }
          log_.push_back(std::to_string(value));
          return absl::OkStatus();
        },
        options);
  }

  EnvelopeList stashed_;
  bool open_ = false;
};

// A64, A69: unstashed messages keep their order and come before later messages.
TEST_F(StashTest, ComesBackInFrontInItsOrder) {
  ActorRef actor = SpawnStasher();
  for (int value : {1, 2, 0, 3, 4}) Tell(actor, Number{value});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"0", "1", "2", "3", "4"}));
}

// A69: the same over several turns, between which the mailbox is idle.
TEST_F(StashTest, OutlivesTheRun) {
  ActorRef actor = SpawnStasher();
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  Tell(actor, Number{2});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_TRUE(log_.empty());
  Tell(actor, Number{0});
  Run(actor);
  EXPECT_EQ(log_, Log({"0", "1", "2"}));
}

// A56
TEST_F(StashTest, WhatIsUnstashedStaysBehindSystemMessages) {
  ActorRef actor = Spawn([this](ActorContext& context, Envelope& message) {
    const int value = message.As<Number>().value;
    if (value == 1 && log_.empty()) {
      stashed_.PushBack(context.Stash().release());
      return absl::OkStatus();
    }
    log_.push_back(std::to_string(value));
    if (value == 0) {
      context.Unstash(stashed_);
      stashed_ = {};
      TellSystem(context.self(), MakeEnvelope<Mark>(ActorRef(), 7));
    }
    return absl::OkStatus();
  });
  Tell(actor, Number{1});
  Tell(actor, Number{0});
  Run(actor);
  EXPECT_EQ(log_, Log({"0", "system 7", "1"}));
}

// A57: an unstashed message counts against the budget of a turn like any other.
TEST_F(StashTest, TheBudgetHolds) {
  ActorRef actor = SpawnStasher();
  for (int value : {1, 2, 3}) Tell(actor, Number{value});
  Run(actor);
  Tell(actor, Number{0});
  EXPECT_EQ(Run(actor, 2), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"0", "1"}));
  Tell(actor, Number{4});
  Run(actor);
  EXPECT_EQ(log_, Log({"0", "1", "2", "3", "4"}));
}

// SCH-4: a stashed message does not count against the mailbox limit, nor does it when it returns.
TEST_F(StashTest, DoesNotCountAgainstALimit) {
  const MailboxOptions options{.capacity = 2, .overflow = OverflowStrategy::kReject};
  ActorRef actor = SpawnStasher(&options);
  EXPECT_TRUE(TryTell(actor, Number{1}).ok());
  EXPECT_TRUE(TryTell(actor, Number{2}).ok());
  Run(actor);
  EXPECT_EQ(actor.slot()->limits.load()->depth(), 0u);
  EXPECT_TRUE(TryTell(actor, Number{0}).ok());
  EXPECT_TRUE(TryTell(actor, Number{3}).ok());
  EXPECT_EQ(Run(actor, 1), InvokeResult::kYielded);
  EXPECT_EQ(actor.slot()->limits.load()->depth(), 1u);
  Run(actor);
  EXPECT_EQ(log_, Log({"0", "1", "2", "3"}));
  EXPECT_EQ(actor.slot()->limits.load()->depth(), 0u);
}

TEST_F(StashTest, ComesBackBeforeWhatADropOldestMailboxKeeps) {
  const MailboxOptions options{.capacity = 4, .overflow = OverflowStrategy::kDropOldest};
  ActorRef actor = SpawnStasher(&options);
  for (int value : {1, 2, 0, 3}) Tell(actor, Number{value});
  Run(actor);
  EXPECT_EQ(log_, Log({"0", "1", "2", "3"}));
}

// A58
TEST_F(StashTest, WhatWasUnstashedWhenTheActorStopsIsADeadLetter) {
  ActorRef actor = SpawnDoer();
  Order(actor, [this](ActorContext& context) { stashed_.PushBack(context.Stash().release()); });
  Run(actor);
  Order(actor, [this](ActorContext& context) {
    context.Unstash(stashed_);
    stashed_ = {};
    context.Stop();
  });
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
  EXPECT_EQ(dead_, Dead({{-1, DeadLetterReason::kStopped}}));
}

// A reply is no user message: it cannot be stashed, and is destroyed after the call.
TEST_F(StashTest, IsForUserMessagesOnly) {
  bool has_stashed = true;
  ActorRef asker = SpawnDoer({}, nullptr, [&](ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) {
    has_stashed = context.Stash() != nullptr;
    log_.push_back(std::to_string((*answer)->As<Number>().value));
    return absl::OkStatus();
  });
  ActorRef ask;
  Order(asker,
        [&](ActorContext& context) { ask = *context.AskOnReply(context.self(), Number{1}, absl::InfiniteDuration()); });
  Run(asker);
  Tell(ask, Number{2});
  Run(asker);
  EXPECT_FALSE(has_stashed);
  EXPECT_EQ(log_, Log({"1", "2"}));
}

}  // namespace
}  // namespace fraktor
