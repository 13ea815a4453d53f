// For tests that need an actor and no life cycle: an actor made of a function, which gets a Go.
#ifndef FRAKTOR_ACTOR_DISPATCH_SCRIPTED_ACTOR_H_
#define FRAKTOR_ACTOR_DISPATCH_SCRIPTED_ACTOR_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/message_invoker.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor {

struct Go {};

class NoLifecycle : public ActorLifecycle {
 public:
  absl::Status OnStart(ActorWorker&, ActorSlot&) override { return absl::OkStatus(); }
  void OnSystemMessage(ActorWorker&, ActorSlot&, Envelope&) override {}
  void OnFailure(ActorWorker&, ActorSlot&, const absl::Status& error, FailureCause, Envelope*) override {
    ADD_FAILURE() << error;
  }
  bool MayEnd(ActorWorker&, ActorSlot&) override { return true; }
  void OnEnding(ActorWorker&, ActorSlot&) override {}
  void OnEnded(ActorWorker&, ActorSlot&) override {}
  void OnDeadLetter(NodeCache&, EnvelopePtr, TableSlot*, DeadLetterReason) override {}
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

}  // namespace fraktor

#endif  // FRAKTOR_ACTOR_DISPATCH_SCRIPTED_ACTOR_H_
