#include "fraktor/actor/tree/internal/not_created.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {
namespace {

class NotCreatedInstance final : public ActorInstance {
  absl::Status Receive(ActorContext&, Envelope&) override {
    return absl::InternalError("an actor without an instance received a message");
  }
  // An ask of the previous instance ends while the actor waits for the verdict on a failed start.
  // That is no further failure: the reply is unhandled, and an error is ignored.
  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) override {
    return answer.ok() ? context.Unhandled(**answer) : absl::OkStatus();
  }
};

}  // namespace

ActorInstance& NotCreated() {
  static auto& instance = *new NotCreatedInstance();
  return instance;
}

}  // namespace fraktor::inline v0::actor_internal
