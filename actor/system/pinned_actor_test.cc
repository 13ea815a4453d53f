// The end of a pinned actor, which takes its dispatcher with it. A sender that sends in that moment
// gets the answer of an ended actor.
#include <atomic>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor {

using actor_internal::DispatcherTable;
using actor_internal::UnwatchActor;
using actor_internal::WatchActor;
using system_internal::SystemTest;
using utils_internal::InboxPush;

namespace {

struct Question {};
struct Answer {};

// The second half of a send: the sender has seen that the actor lives, and pushes when it has
// ended.
void PushLate(ActorRef to, EnvelopePtr message) {
  message->set_target_word(to.word());
  ASSERT_TRUE(to.slot()->mailbox.Post(message.release()));
  DispatcherTable::RegisterOrEmpty(*to.slot());
}
void PushSystemLate(ActorRef to, EnvelopePtr message) {
  message->set_target_word(to.word());
  message->MarkAsSystem();
  ASSERT_EQ(to.slot()->mailbox.PostSystem(message.release()), InboxPush::kClaimed);
  DispatcherTable::RegisterOrEmpty(*to.slot());
}

class PinnedActor : public SystemTest {
 protected:
  ActorRef SpawnPinned(const std::string& name) { return Spawn(name, {}, {.dispatcher = DispatcherChoice::kPinned}); }

  // The reply promise of an ask that is open: the target has got the message and does not reply.
  ActorRef PromiseOf(Future<Answer>& answer) {
    ActorRef promise;
    const ActorRef target = Spawn("silent", {.other = [&](ActorContext& context, Envelope&) {
                                    promise = context.sender();
                                    return absl::OkStatus();
                                  }});
    answer = system().Ask<Answer>(target, Question{}, absl::Hours(1));
    Settle();
    EXPECT_TRUE(promise.IsPromise());
    return promise;
  }
};

// A45: Terminated comes, although the dispatcher of the actor is gone.
TEST_F(PinnedActor, TellsAWatcherThatComesInTheMomentOfItsEnd) {
  const ActorRef pinned = SpawnPinned("pinned");
  std::vector<ActorRef> heard;
  const ActorRef watcher = Spawn("watcher", {.terminated = [&](ActorContext&, const Terminated& ended) {
                                   heard.push_back(ended.actor);
                                   EXPECT_EQ(ended.path, "pekko://test/user/pinned");
                                   return absl::OkStatus();
                                 }});
  Let(watcher, [&](ActorContext& context) { return context.Watch(pinned); });
  // The actor forgets the watcher, which goes on waiting, as if its WatchActor were still on its
  // way.
  TellSystem(pinned, MakeEnvelope<UnwatchActor>(ActorRef(), watcher));
  Settle();
  Stop(pinned);
  EXPECT_EQ(heard, std::vector<ActorRef>());
  PushSystemLate(pinned, MakeEnvelope<WatchActor>(ActorRef(), watcher));
  Settle();
  EXPECT_EQ(heard, std::vector<ActorRef>({pinned}));
}

// An ask fails at once, with the text that an ask of an ended actor has.
TEST_F(PinnedActor, FailsAnAskThatComesInTheMomentOfItsEnd) {
  const ActorRef pinned = SpawnPinned("pinned");
  Stop(pinned);
  Future<Answer> answer;
  const ActorRef promise = PromiseOf(answer);
  PushLate(pinned, MakeEnvelope<Question>(promise));
  Settle();
  ASSERT_TRUE(answer.IsReady());
  const absl::Status late = answer.Take().status();
  Future<Answer> other = system().Ask<Answer>(pinned, Question{}, absl::Hours(1));
  Settle();
  ASSERT_TRUE(other.IsReady());
  EXPECT_EQ(late, other.Take().status());
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
}

// Other messages are dead letters of the system, and are not only counted by the process.
TEST_F(PinnedActor, MakesADeadLetterOfAMessageThatComesInTheMomentOfItsEnd) {
  std::vector<std::string> letters;
  const EventSubscription subscription = system().events().Listen<DeadLetter>(
      [&](const DeadLetter& letter) { letters.push_back(std::string(letter.recipient)); });
  const ActorRef pinned = SpawnPinned("pinned");
  Stop(pinned);
  const uint64_t before = DispatcherTable::LateDeadLetters();
  PushLate(pinned, MakeEnvelope<std::string>(ActorRef(), "late"));
  Settle();
  EXPECT_EQ(letters, std::vector<std::string>({"pekko://test/user/pinned"}));
  EXPECT_EQ(DispatcherTable::LateDeadLetters(), before);
}

// The slot is free again, and the next actor in it is not disturbed.
TEST_F(PinnedActor, LeavesItsSlotToOthersAfterALateMessage) {
  const ActorRef pinned = SpawnPinned("pinned");
  Stop(pinned);
  PushLate(pinned, MakeEnvelope<std::string>(ActorRef(), "late"));
  Settle();
  EXPECT_TRUE(pinned.slot()->mailbox.inbox.IsIdle());
}

struct WatchIt {
  ActorRef actor;
};

// Watches the actors that it is told, and signals each Terminated.
class Watcher final : public ActorInstance {
 public:
  explicit Watcher(std::counting_semaphore<>* heard) : heard_(*heard) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* watch = message.TryAs<WatchIt>()) return context.Watch(watch->actor);
    if (!message.Is<Terminated>()) return context.Unhandled(message);
    heard_.release();
    return absl::OkStatus();
  }

 private:
  std::counting_semaphore<>& heard_;
};

class Answerer final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (!message.Is<Question>()) return context.Unhandled(message);
    context.Reply(Answer{});
    return absl::OkStatus();
  }
};

// A thread asks and an actor watches while a pinned actor ends, again and again: each ask and each
// watch ends long before the timeout.
TEST(PinnedActorStress, AnswersEverybodyInTheMomentOfItsEnd) {
  constexpr int kRounds = 400;
  constexpr absl::Duration kTimeout = absl::Minutes(5);
  ActorSystemOptions options;
  options.config.system_name = "pinned";
  options.dead_letters.log_limit = 0;
  const auto system = ActorSystem::Create(options).value();
  std::counting_semaphore<> heard{0};
  const ActorRef watcher = system->Spawn(*MakeProps<Watcher>({}, &heard));
  const PropsPtr props = MakeProps<Answerer>({.dispatcher = DispatcherChoice::kPinned});

  std::binary_semaphore begin{0};
  std::binary_semaphore end{0};
  ActorRef pinned;  // The semaphores order the accesses.
  absl::StatusOr<Answer> answer = absl::UnknownError("");
  std::thread asker([&] {
    for (int round = 0; round < kRounds; ++round) {
      begin.acquire();
      answer = system->AskAndWait<Answer>(pinned, Question{}, kTimeout);
      end.release();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    pinned = system->Spawn(*props);
    begin.release();
    Tell(watcher, WatchIt{pinned});
    system->Stop(pinned);
    end.acquire();
    if (!answer.ok()) {
      EXPECT_NE(answer.status().message().find(" gets no reply: "), std::string::npos) << answer.status();
    }
    heard.acquire();
  }
  asker.join();
}

}  // namespace
}  // namespace fraktor
