#include "fraktor/persistence/durable/state_actor.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/durable/state_messages.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

StateActor::StateActor(std::shared_ptr<StateStorage> storage, const StateActorOptions& options)
    : StoreActor("state", std::move(storage), options) {}

absl::Status StateActor::Receive(ActorContext& context, Envelope& message) {
  if (Resume(message)) return absl::OkStatus();
  if (auto* const load = message.TryAs<LoadState>()) {
    Open(context, std::move(*load));
  } else if (auto* const change = message.TryAs<ChangeState>()) {
    Change(context, *change);
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

void StateActor::Open(ActorContext& context, LoadState request) {
  if (request.token == kNoEpoch) {
    Load(context, std::move(request));
    return;
  }
  const auto open = [this, id = request.persistence_id, token = request.token] {
    return storage().OpenWriter(id, token);
  };
  Run(context, open, [this, &context, request = std::move(request)](const absl::Status& opened) mutable {
    if (opened.ok()) {
      Load(context, std::move(request));
    } else {
      context.Tell(request.client, StateLoaded{.cause = opened, .instance_id = request.instance_id});
    }
  });
}

void StateActor::Load(ActorContext& context, LoadState request) {
  const auto load = [this, id = std::move(request.persistence_id)] { return storage().Load(id); };
  Run(context, load,
      [&context, client = request.client, instance_id = request.instance_id](absl::StatusOr<StoredState> loaded) {
        StateLoaded answer{.cause = loaded.status(), .instance_id = instance_id};
        if (loaded.ok()) answer.stored = *std::move(loaded);
        context.Tell(client, std::move(answer));
      });
}

void StateActor::Change(ActorContext& context, ChangeState& request) {
  const uint64_t revision = request.change.state.revision;
  auto change = [this, to = std::move(request.change), revision, token = request.token]() mutable {
    return to.exists ? storage().Upsert(std::move(to.state), token)
                     : storage().Delete(std::move(to.state.persistence_id), revision, to.state.writer, token);
  };
  Run(context, std::move(change),
      [&context, client = request.client, instance_id = request.instance_id, revision](absl::Status changed) {
        context.Tell(client, StateChanged{std::move(changed), revision, instance_id});
      });
}

}  // namespace fraktor::inline v0
