// Scripted: an actor that calls a function for each message, such as a Go, and NoLifecycle: a
// lifecycle that does nothing. For tests that run actors without an actor tree.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_SCRIPTED_ACTOR_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_SCRIPTED_ACTOR_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::actor_internal {

struct Go {};

class NoLifecycle : public ActorLifecycle {
 public:
  absl::Status OnStart(ActorSlot&) override { return absl::OkStatus(); }
  void OnSystemMessage(Turn, Envelope&) override {}
  void OnFailure(Turn, const absl::Status& error, FailureCause, Envelope*) override { ADD_FAILURE() << error; }
  bool StopChildrenFirst(ActorSlot&) override { return true; }
  void OnEnding(Turn) override {}
  void OnEnded(Turn) override {}
  void OnDeadLetter(NodeCache&, EnvelopePtr, utils_internal::TableSlot*, DeadLetterReason) override {}
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

}  // namespace fraktor::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_SCRIPTED_ACTOR_H_
