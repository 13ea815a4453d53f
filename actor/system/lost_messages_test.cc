// The messages of foreign threads that reach no actor: errors, events and log lines.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor {

using actor_internal::DispatcherTable;
using actor_internal::UnwatchActor;
using system_internal::Act;
using system_internal::Lines;
using system_internal::SystemTest;
using utils_internal::InboxPush;

namespace {

class LostMessages : public SystemTest {
 protected:
  // The dead letters of a system as texts: "no_recipient int to no one".
  EventSubscription Listen(ActorSystem& system, Lines& lines) {
    return system.events().Listen<AllDeadLetters>([&lines](const AllDeadLetters& letter) {
      lines.push_back(std::string(NameOf(letter.reason)) + " " + std::string(letter.message.type_name) + " to " +
                      std::string(letter.recipient));
    });
  }
};

// SCH-4
TEST_F(LostMessages, OfAThreadToNoOneAreDeadLetters) {
  Lines lines;
  const EventSubscription lost = Listen(system(), lines);
  Tell(ActorRef(), 7);
  EXPECT_EQ(TryTell(ActorRef(), 7).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(lines, (Lines{"no_recipient int to no one", "no_recipient int to no one"}));
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kNoRecipient), 2u);
}

// SCH-5
TEST_F(LostMessages, OfAThreadToWhomeverHasNeverBeenAreDeadLetters) {
  const ActorRef a = Spawn("a");
  Lines lines;
  const EventSubscription lost = Listen(system(), lines);
  Tell(ActorRef(a.slot(), a.generation() + 2), 7);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("stopped int to an actor that has ended (slot "), 0u) << lines[0];
}

TEST_F(LostMessages, ThatAreErrorsAreLoggedWithTheError) {
  Tell(Spawn("a"), ErrorReply{absl::UnavailableError("line cut")});
  Settle();
  EXPECT_EQ(Logged(), (Lines{"W pekko://test/user/a: got an error, and has no handler of ErrorReply: UNAVAILABLE: line "
                             "cut"}));
}

TEST_F(LostMessages, ToAnActorThatHasEndedNameItsPath) {
  options_.config.max_uid_reservations = 100;
  const ActorRef a = Spawn("a");
  Stop(a);
  const ActorRef next = Spawn("a");
  Lines lines;
  const EventSubscription lost = Listen(system(), lines);
  Tell(a, 7);
  EXPECT_EQ(lines, (Lines{"stopped int to pekko://test/user/a"}));
  // The system forgets old paths.
  for (int i = 0; i < 110; ++i) system().Stop(system().TrySpawn(*PropsFor("x"), "x" + std::to_string(i)).value());
  Settle();
  EXPECT_EQ(system().PathOf(a).find("an actor that has ended (slot "), 0u) << system().PathOf(a);
  EXPECT_EQ(system().PathOf(next), "pekko://test/user/a");
}

// A message to no one belongs to no system. The oldest system publishes it.
TEST_F(LostMessages, OfAThreadToNoOneAreOfTheOldestSystem) {
  Lines first;
  EventSubscription of_first = Listen(system(), first);
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options = options_;
  options.toolbox = toolbox.get();
  const std::unique_ptr<ActorSystem> younger = ActorSystem::Create(options).value();
  Lines second;
  const EventSubscription of_second = Listen(*younger, second);
  Tell(ActorRef(), 7);
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second.size(), 0u);
  of_first.Reset();
  system_.reset();
  Tell(ActorRef(), 7);
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second.size(), 1u);
}

// A subscriber that loses another message.
TEST_F(LostMessages, OfListenersAreCountedOnly) {
  int heard = 0;
  const EventSubscription lost = system().events().Listen<AllDeadLetters>([&](const AllDeadLetters&) {
    ++heard;
    Tell(ActorRef(), 8);
  });
  Tell(ActorRef(), 7);
  EXPECT_EQ(heard, 1);
}

// SCH-4, A58: the reply comes after the asker has handled its last system message, and before its
// references are stale.
TEST_F(LostMessages, ThatAreRepliesToAnAskerInItsLastMomentAreDeadLetters) {
  Lines lines;
  const EventSubscription lost = Listen(system(), lines);
  ActorRef promise;
  const ActorRef asked = Spawn("asked", {.other = [&](ActorContext& context, Envelope&) {
                                 promise = context.sender();
                                 return absl::OkStatus();
                               }});
  const ActorRef asker =
      Spawn("asker", {.post_stop = [&](ActorContext&) { Tell(promise, std::string("a late reply")); }});
  Let(asker, [&](ActorContext& context) { return context.AskOnReply(asked, 1, absl::Minutes(1)).status(); });
  Stop(asker);
  ASSERT_FALSE(IsAlive(asker));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("late_reply "), 0u) << lines[0];
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kLateReply), 1u);
}

// SCH-4: the reply passes its check before the asker ends, and reaches the mailbox afterwards.
TEST_F(LostMessages, ThatAreRepliesToTheNextActorOfASlotAreDeadLetters) {
  Lines lines;
  const EventSubscription lost = Listen(system(), lines);
  const ActorRef asked = Spawn("asked");
  const ActorRef parent = Spawn("parent");
  const ActorRef asker = SpawnUnder(parent, "asker");
  ActorRef promise;
  Let(asker, [&](ActorContext& context) {
    FRAKTOR_ASSIGN_OR_RETURN(promise, context.AskOnReply(asked, std::string("question"), absl::Minutes(1)));
    return absl::OkStatus();
  });
  Stop(asker);
  ActorRef next;
  for (int i = 0; i < 1000 && next.any_slot() != asker.any_slot(); ++i) {
    next = SpawnUnder(parent, "next" + std::to_string(i));
  }
  ASSERT_EQ(next.slot(), asker.slot());
  ASSERT_EQ(lines, Lines());
  EnvelopePtr reply = MakeEnvelope<std::string>(promise, "a late reply");
  reply->set_target_word(asker.word());
  reply->MarkAsSystem();
  if (next.slot()->mailbox.PostSystem(reply.release()) != InboxPush::kQueued) {
    DispatcherTable::RegisterOrEmpty(*next.slot());
  }
  Settle();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("late_reply "), 0u) << lines[0];
}

// An ask that its asker no longer waits for has no reply that could be lost.
TEST_F(LostMessages, AreNotAsksThatAnAskerWithdrawsInItsLastMoment) {
  Lines lines;
  const EventSubscription lost = Listen(system(), lines);
  const ActorRef asked = Spawn("asked");
  Future<std::string> reply;
  const ActorRef asker = Spawn("asker", {.post_stop = [&](ActorContext&) { reply = {}; }});
  Let(asker, [&](ActorContext& context) {
    reply = context.Ask<std::string>(asked, std::string("question"), absl::Minutes(1));
    return absl::OkStatus();
  });
  Stop(asker);
  EXPECT_EQ(lines, Lines());
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kLateReply), 0u);
}

// Messages of the runtime are no messages of the program.
TEST_F(LostMessages, OfTheRuntimeAreNotCounted) {
  const ActorRef watcher = Spawn("watcher");
  const ActorRef ends = Spawn("ends", {.post_stop = [&](ActorContext& context) {
                                TellSystem(context.self(), MakeEnvelope<UnwatchActor>(ActorRef(), watcher));
                              }});
  Stop(ends);
  double count = 0;
  for (const Metric& metric : system().hub().Snapshot(toolbox_->Now()).metrics) {
    if (metric.name == kDeadLettersTotal) count += metric.value;
  }
  EXPECT_EQ(count, 0);
}

// SCH-4: the error of a full mailbox names the actor and the capacity.
TEST_F(LostMessages, NameTheFullMailboxAndItsCapacity) {
  const ActorRef full =
      Spawn("full", {}, {.mailbox = {.capacity = 5, .overflow = OverflowStrategy::kReject, .reserve_for_system = 2}});
  const ActorRef sender = Spawn("sender");
  const std::string expected =
      "the mailbox of pekko://test/user/full is full (3 messages): int was not accepted; send less, or raise "
      "MailboxOptions.capacity";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(TryTell(full, i).ok());
  EXPECT_EQ(TryTell(full, 3).message(), expected);
  Settle();
  Let(sender, [&](ActorContext& context) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(context.TryTell(full, i).ok());
    EXPECT_EQ(context.TryTell(full, 3).message(), expected);
    return absl::OkStatus();
  });
  // A subscriber of dead letters holds the lock of the lifecycle, so the path is not known.
  std::string nested;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(TryTell(full, i).ok());
  const EventSubscription lost = system().events().Listen<AllDeadLetters>(
      [&](const AllDeadLetters&) { nested = std::string(TryTell(full, 4).message()); });
  Tell(ActorRef(), 7);
  EXPECT_EQ(nested.find("the mailbox of an actor is full (3 messages): int"), 0u) << nested;
}

// SCH-4
TEST_F(LostMessages, NameTheMailboxThatHadNoRoomInTime) {
  const ActorRef full = Spawn("full", {}, {.mailbox = {.capacity = 1, .overflow = OverflowStrategy::kBlockProducer}});
  EXPECT_TRUE(TryTell(full, 1).ok());
  const absl::Status late = TryTell(full, 2);
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(late.message().find("the mailbox of pekko://test/user/full is full (1 messages), and there was no room"),
            0u)
      << late;
}

TEST_F(LostMessages, AreNotLoggedAfterAPauseThatCannotBe) {
  options_.dead_letters.log_pause = -absl::Seconds(1);
  const absl::Status refused = ActorSystem::Create(options_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "ActorSystemOptions.dead_letters: DeadLetterOptions.log_pause is -1s; it must not be negative");
  options_.dead_letters.log_pause = absl::ZeroDuration();
  options_.log_limits.pause = -absl::Seconds(2);
  EXPECT_EQ(ActorSystem::Create(options_).status().message(),
            "ActorSystemOptions.log_limits: LogLimits.pause is -2s; it must not be negative");
}

// A log sink that hands its lines to an actor.
class TellingSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override {
    lines.emplace_back(record.text);
    if (!to.IsNoOne() && lines.size() < 100) Tell(to, std::string(record.text));
  }
  ActorRef to;
  Lines lines;
};

// On a worker: the writer ends with lines in its mailbox, and the log of each goes to the writer.
TEST_F(LostMessages, OfALogSinkAreNotLogged) {
  TellingSink sink;
  options_.log_sink = &sink;
  options_.dead_letters.log_limit = 10;
  const ActorRef writer = Spawn("writer");
  sink.to = writer;
  Tell(writer, Act{[](ActorContext& context) {
         context.Stop();
         return absl::OkStatus();
       }});
  for (int i = 0; i < 2; ++i) Say(writer, "left");
  Settle();
  ASSERT_FALSE(IsAlive(writer));
  EXPECT_EQ(sink.lines.size(), 2u);
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kStopped), 4u);
  // On a foreign thread.
  Say(writer, "late");
  EXPECT_EQ(sink.lines.size(), 3u);
  sink.to = ActorRef();
}

TEST_F(LostMessages, AreHeardOfByOthersIfAListenerThrows) {
  const ActorRef a = Spawn("a");
  const EventSubscription thrower =
      system().events().Listen<AllDeadLetters>([](const AllDeadLetters&) { throw std::runtime_error("broken ear"); });
  const EventSubscription other =
      system().events().Listen<UnhandledMessage>([](const UnhandledMessage&) { throw std::runtime_error("deaf"); });
  Lines lines;
  const EventSubscription lost = Listen(system(), lines);
  Logged();
  Tell(a, 7);
  Settle();
  EXPECT_TRUE(IsAlive(a));
  EXPECT_EQ(Logged(), (Lines{"E : a listener of UnhandledMessage threw: deaf; listeners must catch it"}));
  // On a worker: the messages in the mailbox of an ending actor.
  Tell(a, Act{[](ActorContext& context) {
         context.Stop();
         return absl::OkStatus();
       }});
  Say(a, "left");
  Settle();
  EXPECT_EQ(Logged(), (Lines{"E : a listener of DeadLetter threw: broken ear; listeners must catch it"}));
  // On a foreign thread, twice: the second is published too.
  for (int i = 0; i < 2; ++i) {
    EXPECT_NO_THROW(Tell(a, 7));
    EXPECT_EQ(Logged().size(), 1u);
  }
  EXPECT_EQ(lines.size(), 3u);
  EXPECT_EQ(system().events().throw_count(), 4u);
}

TEST_F(LostMessages, ToASystemThatHasEndedAreRefused) {
  const ActorRef a = Spawn("a");
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options = options_;
  options.toolbox = toolbox.get();
  std::unique_ptr<ActorSystem> brief = ActorSystem::Create(options).value();
  const ActorRef gone = brief->TrySpawn(*PropsFor("gone"), "gone").value();
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  brief.reset();
  const uint64_t before = DispatcherTable::LateDeadLetters();
  const absl::Status sent = TryTell(gone, 7);
  EXPECT_EQ(sent.code(), absl::StatusCode::kUnavailable) << sent;
  EXPECT_EQ(DispatcherTable::LateDeadLetters(), before + 1);
  // Each system of the process reports the count.
  const MetricsSnapshot snapshot = system().hub().Snapshot(system().toolbox().Now());
  const Metric* const late = snapshot.Find(kLateDeadLettersTotal);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->value, static_cast<double>(before + 1));
  // The end of an actor does not end its system.
  Stop(a);
  EXPECT_EQ(TryTell(a, 7).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fraktor
