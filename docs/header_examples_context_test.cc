// The examples of the headers of actor/ask, context and send, so that they compile, and most of
// them run. //tools/tidy:tidy_test checks that each paragraph of an example stands here, line by
// line.
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/ask/reply_promise.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/context/internal/misuse.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/context/stop_because.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/internal/deferred_target.h"
#include "fraktor/actor/send/internal/foreign_burst.h"
#include "fraktor/actor/send/internal/ready_keeper.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

// The examples stand as they do in the headers.
// clang-format off
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace fraktor {

using actor_internal::ActorSlot;
using actor_internal::ActorWorker;
using actor_internal::DeferredTarget;
using actor_internal::ForeignBurst;
using actor_internal::ReadyKeeper;

namespace {

struct Add { int64_t n = 0; };
struct Pong {};
struct Question {};
struct Greet { std::string name; };

class Counter final : public ActorInstance {
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Add>()) sum_ += message.As<Add>().n;
    return absl::OkStatus();
  }
  int64_t sum_ = 0;
};

class Ponger final : public ActorInstance {
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    context.Tell(context.sender(), Pong{});
    return absl::OkStatus();
  }
};

// An actor that cannot read its journal.
class Reader final : public ActorInstance {
  absl::Status Receive(ActorContext& context, Envelope&) override {
    StopBecause(context, absl::DataLossError("the journal cannot be read"));      // in a handler
    return absl::OkStatus();
  }
};

TEST(HeaderExamples, ActorInstanceAndActorContext) {
  TestKit kit;
  const ActorRef counter = kit.Spawn(PropsOf<Counter>());
  Tell(counter, Add{.n = 1});
  auto probe = kit.Probe();
  probe.Send(kit.Spawn(PropsOf<Ponger>()), Add{});
  probe.Expect<Pong>();
}

TEST(HeaderExamples, StopBecause) {
  TestKit kit;
  const ActorRef reader = kit.Spawn(PropsOf<Reader>());
  Tell(reader, Question{});
  const absl::Status error = kit.system().AskAndWait<Pong>(reader, Question{}, absl::Seconds(1)).status();
  EXPECT_TRUE(absl::IsDataLoss(error)) << error;
}

class Account : public Actor<Account, Add> {
 public:
  void On(Context&, const Add&) {}
};

TEST(HeaderExamples, SpawnError) {
  TestKit kit;
  ActorSystem& system = kit.system();
  system.Spawn<Account>("alice");
  testing::internal::CaptureStderr();
  try {
    system.Spawn<Account>("alice");
  } catch (const SpawnError& error) {
    std::cerr << error.status() << "\n";                 // AlreadyExists: the name is taken
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ALREADY_EXISTS"), std::string::npos);
}

struct Leak { ActorContext** context; };

class Leaky final : public ActorInstance {
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    *message.As<Leak>().context = &context;
    return absl::OkStatus();
  }
};

TEST(HeaderExamples, Misuse) {
  TestKit kit;
  const ActorRef actor = kit.Spawn(PropsOf<Leaky>());
  ActorContext* kept_context = nullptr;
  Tell(actor, Leak{&kept_context});
  kit.Settle();
  ASSERT_NE(kept_context, nullptr);
  const RefusedMisuse as_with_ndebug;                              // in a test
  EXPECT_EQ(kept_context->Watch(actor).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(HeaderExamples, Mailing) {
  TestKit kit;
  auto probe = kit.Probe();
  const ActorRef ref = probe.ref();
  Tell(ref, Greet{"world"});                         // in a handler, the sender is its actor
  absl::Status sent = TryTell(ref, Greet{"world"});  // an error if the mailbox is full, or the actor has ended
  EXPECT_TRUE(sent.ok());
  probe.Expect<Greet>();
  probe.Expect<Greet>();
}

TEST(HeaderExamples, ForeignBurst) {
  TestKit kit;
  auto probe = kit.Probe();
  const ActorRef to = probe.ref();
  std::vector<EnvelopePtr> messages;
  for (int i = 0; i < 3; ++i) messages.push_back(MakeEnvelope<Add>(ActorRef(), Add{i}));
  ForeignBurst burst;
  for (EnvelopePtr& message : messages) burst.Send(to, std::move(message));  // as SendForeign
  burst.Flush();                                                             // or its destructor
  for (int i = 0; i < 3; ++i) EXPECT_EQ(probe.Expect<Add>().n, i);
}

void Keep(ReadyKeeper& keeper, ActorRef to, EnvelopePtr message) {
  ReadyKeeper::SetOfThisThread(&keeper);
  absl::Status sent = SendForeign(to, std::move(message));  // calls keeper.Keep if `to` was idle
  ReadyKeeper::SetOfThisThread(nullptr);
}

class RefusingKeeper final : public ReadyKeeper {
 public:
  bool Keep(ActorSlot&) override { ++offered; return false; }
  int offered = 0;
};

TEST(HeaderExamples, ReadyKeeper) {
  TestKit kit;
  auto probe = kit.Probe();
  RefusingKeeper keeper;
  Keep(keeper, probe.ref(), MakeEnvelope<Pong>(ActorRef()));
  EXPECT_EQ(keeper.offered, 1);
  probe.Expect<Pong>();
}

ActorSlot* PutAndTake(DeferredTarget& deferred, ActorSlot& slot) {
  deferred.Put(&slot);                                  // the worker, which holds the mailbox
  ActorSlot* mine = deferred.Take();                    // the worker, later; null: it was stolen
  ActorSlot* stolen = deferred.Steal(deferred.Peek());  // any other thread
  EXPECT_EQ(stolen, nullptr);
  return mine;
}

TEST(HeaderExamples, DeferredTarget) {
  TestKit kit;
  DeferredTarget deferred;
  ActorSlot& slot = *kit.Probe().ref().slot();
  EXPECT_EQ(PutAndTake(deferred, slot), &slot);
}

// Asks `server` by hand, and forwards the reply to `to`.
class Asker final : public ActorInstance {
 public:
  Asker(ActorRef server, ActorRef to) : server_(server), to_(to) {}
  absl::Status Receive(ActorContext&, Envelope&) override { return Ask(ActorContext::worker(), server_); }
  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> reply) override {
    if (reply.ok() && (*reply)->Is<Pong>()) context.Tell(to_, Pong{});
    return absl::OkStatus();
  }

 private:
  static absl::Status Ask(ActorWorker& worker, ActorRef server) {
    const PromiseOptions options{.timeout = absl::Seconds(1), .target = server};
    absl::StatusOr<ActorRef> ask = OpenPromise(worker, options);
    worker.Send(server, MakeEnvelope<Question>(worker.cache(), *ask).release());
    return ask.status();
  }

  const ActorRef server_;
  const ActorRef to_;
};

TEST(HeaderExamples, ReplyPromise) {
  TestKit kit;
  auto probe = kit.Probe();
  const ActorRef server = kit.Spawn(PropsOf<Ponger>());
  Tell(kit.Spawn(*MakeProps<Asker>({}, server, probe.ref())), Question{});
  probe.Expect<Pong>();
}

// Replies only if the ask has not timed out.
class Punctual final : public ActorInstance {
  absl::Status Receive(ActorContext& context, Envelope&) override {
    const RuntimeToolbox& toolbox = *ActorContext::worker().toolbox;
    const bool is_late = DeadlineOf(context.sender()) < toolbox.Now();
    if (!is_late) context.Reply(Pong{});
    return absl::OkStatus();
  }
};

TEST(HeaderExamples, OpenPromise) {
  TestKit kit;
  const ActorRef punctual = kit.Spawn(PropsOf<Punctual>());
  EXPECT_TRUE(kit.system().AskAndWait<Pong>(punctual, Question{}, absl::Seconds(1)).ok());
}

}  // namespace
}  // namespace fraktor
