#include "fraktor/persistence/durable/state_actor.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/persistence/durable/state_messages.h"
#include "fraktor/persistence/protocol/pending_operations.h"
#include "fraktor/persistence/protocol/store_breaker.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

StateActor::StateActor(std::shared_ptr<StateStorage> storage) : storage_(std::move(storage)) {}

absl::Status StateActor::Receive(ActorContext& context, Envelope& message) {
  if (operations_.Resume(message)) return absl::OkStatus();
  if (auto* const load = message.TryAs<LoadState>()) {
    auto call = [&] { return storage_->Load(load->persistence_id); };
    operations_.Await(context, protocol_internal::CheckedCall(call),
                      [client = load->client, instance_id = load->instance_id](absl::StatusOr<StoredState> loaded) {
                        StateLoaded answer{.cause = loaded.status(), .instance_id = instance_id};
                        if (loaded.ok()) answer.stored = *std::move(loaded);
                        Tell(client, std::move(answer));
                      });
    return absl::OkStatus();
  }
  if (auto* const change = message.TryAs<ChangeState>()) {
    DurableState& state = change->change.state;
    const uint64_t revision = state.revision;
    auto call = [&] {
      return change->change.exists ? storage_->Upsert(std::move(state))
                                   : storage_->Delete(std::move(state.persistence_id), revision);
    };
    operations_.Await(context, protocol_internal::CheckedCall(call),
                      [client = change->client, instance_id = change->instance_id, revision](absl::Status changed) {
                        Tell(client, StateChanged{std::move(changed), revision, instance_id});
                      });
    return absl::OkStatus();
  }
  return context.Unhandled(message);
}

void StateActor::PostStop(ActorContext&) {
  operations_.FailAll(absl::UnavailableError("the state actor has stopped; whether the change is stored nobody knows"));
}

}  // namespace fraktor::inline v0
