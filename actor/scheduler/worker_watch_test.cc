#include "fraktor/actor/scheduler/worker_watch.h"

#include <atomic>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/scheduler/actor_context.h"
#include "fraktor/actor/scheduler/actor_instance.h"
#include "fraktor/actor/scheduler/actor_slot.h"
#include "fraktor/actor/scheduler/dispatcher_table.h"
#include "fraktor/actor/scheduler/mailbox_registry.h"
#include "fraktor/actor/scheduler/mailing.h"
#include "fraktor/actor/scheduler/message_invoker.h"
#include "fraktor/actor/scheduler/mutex_coordinator.h"
#include "fraktor/actor/scheduler/worker_executor.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

struct Go {};

class NoLifecycle : public ActorLifecycle {
 public:
  absl::Status OnStart(ActorWorker&, ActorSlot&) override { return absl::OkStatus(); }
  void OnSystemMessage(ActorWorker&, ActorSlot&, Envelope&) override {}
  void OnFailure(ActorWorker&, ActorSlot&, const absl::Status& error, Envelope*) override { ADD_FAILURE() << error; }
  bool MayEnd(ActorWorker&, ActorSlot&) override { return true; }
  void OnEnding(ActorWorker&, ActorSlot&) override {}
  void OnEnded(ActorWorker&, ActorSlot&) override {}
  void OnDeadLetter(NodeCache&, EnvelopePtr, ActorSlot*, DeadLetterReason) override {}
};

class Scripted final : public ActorInstance {
 public:
  using Script = std::function<void(ActorContext&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  absl::Status Receive(ActorContext& context, Envelope&) override {
    script_(context);
    return absl::OkStatus();
  }

 private:
  Script script_;
};

// Actors on threads, whose handlers wait for each other.
class BlockingHandlersTest : public testing::Test {
 protected:
  ExecutorServices Services() { return {*toolbox_, lifecycle_, mailboxes_}; }

  ActorRef Spawn(const WorkerExecutor& executor, Scripted::Script script, uint16_t type = 0) {
    instances_.push_back(std::make_unique<Scripted>(std::move(script)));
    ActorSlot* const slot =
        mailboxes_
            .Register({.instance = instances_.back().get(), .dispatcher = executor.number(), .type = type})
            .value();
    const ActorRef ref = slot->ref();
    MailboxRegistry::LetGo(*slot);
    return ref;
  }

  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
  NoLifecycle lifecycle_;
  MailboxRegistry mailboxes_{/*threaded=*/true};
  std::vector<std::unique_ptr<ActorInstance>> instances_;
};

// The peer is made ready at the handler's end, which waits for the peer: without the watch this never ends.
TEST_F(BlockingHandlersTest, GoOnWhenTheyWaitForAPeerOnTheSameExecutor) {
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::binary_semaphore handled{0};
  std::binary_semaphore over{0};
  const ActorRef peer = Spawn(*executor, [&](ActorContext&) { handled.release(); });
  const ActorRef blocking = Spawn(*executor, [&](ActorContext& context) {
    context.Tell(peer, Go{});
    handled.acquire();
    over.release();
  });
  for (int i = 0; i < 20; ++i) {
    Tell(blocking, Go{});
    over.acquire();
    if (i % 2 == 0) {
      EXPECT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
    }
  }
  EXPECT_GE(executor->watch()->published(), 1u);
  executor->Stop();
}

}  // namespace
}  // namespace fraktor
