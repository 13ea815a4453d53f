#include "fraktor/persistence/protocol/snapshot_actor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

absl::Status NoStore() {
  return absl::FailedPreconditionError(
      "there is no snapshot store: give one to PersistenceExtension::AddSnapshotStore, or do not save snapshots");
}

}  // namespace

absl::Status SnapshotActorOptions::Validate() const {
  if (max_load_attempts < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("SnapshotActorOptions::max_load_attempts is ", max_load_attempts, "; 1 is the least"));
  }
  return breaker.Validate();
}

SnapshotActor::SnapshotActor(std::shared_ptr<SnapshotStorage> storage, const SnapshotActorOptions& options)
    : storage_(std::move(storage)), options_(options) {}

absl::Status SnapshotActor::PreStart(ActorContext& context) {
  FRAKTOR_RETURN_IF_ERROR(options_.Validate());
  return breaker_.Start(context.system().toolbox(), options_.breaker);
}

absl::Status SnapshotActor::Receive(ActorContext& context, Envelope& message) {
  if (operations_.Resume(message)) return absl::OkStatus();
  if (auto* const load = message.TryAs<LoadSnapshot>()) {
    load->criteria = load->criteria.Limit(load->to_sequence_nr);
    Announce(context, std::move(*load));
  } else if (auto* const save = message.TryAs<SaveSnapshot>()) {
    Save(context, *save);
  } else if (auto* const one = message.TryAs<DeleteSnapshot>()) {
    Delete(context, *one);
  } else if (auto* const some = message.TryAs<DeleteSnapshots>()) {
    DeleteMatching(context, *some);
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

void SnapshotActor::Announce(ActorContext& context, LoadSnapshot request) {
  if (request.epoch == kNoEpoch || request.criteria.MatchesNothing()) {
    Load(context, std::move(request), 1, absl::OkStatus());
    return;
  }
  const auto announce = [this, id = request.persistence_id, epoch = request.epoch] {
    return storage_->OpenWriter(id, epoch);
  };
  breaker_.Run(context, operations_, announce,
               [this, &context, request = std::move(request)](const absl::Status& announced) mutable {
                 if (ErrorKindOf<JournalErrorKind>(announced) == JournalErrorKind::kFenced) {
                   // The journal decides about owners, and a load changes nothing.
                   Log(context, LogLevel::kWarning,
                       absl::StrCat("the snapshot store will refuse what the owner that recovers saves and deletes. "
                                    "Either another owner has followed it already, or the journal was lost or "
                                    "restored from a backup, and the snapshot store was not: ",
                                    announced.message()));
                 } else if (!announced.ok()) {
                   context.Tell(request.client, LoadSnapshotFailed{announced, request.instance_id});
                   return;
                 }
                 Load(context, std::move(request), 1, absl::OkStatus());
               });
}

void SnapshotActor::Load(ActorContext& context, LoadSnapshot request, int attempt, absl::Status unreadable) {
  if (request.criteria.MatchesNothing()) {
    AnswerLoad(context, std::move(request), attempt, std::move(unreadable), std::optional<Snapshot>());
    return;
  }
  const auto load = [this, id = request.persistence_id, criteria = request.criteria] {
    return storage_->Load(id, criteria);
  };
  breaker_.Run(context, operations_, load,
               [this, &context, request = std::move(request), attempt,
                unreadable = std::move(unreadable)](absl::StatusOr<std::optional<Snapshot>> loaded) mutable {
                 AnswerLoad(context, std::move(request), attempt, std::move(unreadable), std::move(loaded));
               });
}

void SnapshotActor::AnswerLoad(ActorContext& context, LoadSnapshot request, int attempt, absl::Status unreadable,
                               absl::StatusOr<std::optional<Snapshot>> loaded) {
  if (loaded.ok() && !loaded->has_value() && !unreadable.ok()) {
    // Events before the one that cannot be read may be gone: whoever goes on without it has to know.
    context.Tell(request.client, LoadSnapshotFailed{std::move(unreadable), request.instance_id});
    return;
  }
  if (loaded.ok()) {
    LoadSnapshotResult result{.found = loaded->has_value(),
                              .snapshot = {},
                              .to_sequence_nr = request.to_sequence_nr,
                              .instance_id = request.instance_id};
    if (result.found) result.snapshot = **std::move(loaded);
    context.Tell(request.client, std::move(result));
    return;
  }
  if (attempt < options_.max_load_attempts &&
      ErrorKindOf<JournalErrorKind>(loaded.status()) == JournalErrorKind::kCorrupt) {
    // An older one will do: there are more events to replay then.
    const std::optional<int64_t> nr = ErrorDetailNumberOf<JournalErrorKind>(loaded.status(), "nr");
    if (nr.has_value() && *nr > 0) {
      request.criteria = request.criteria.Limit(static_cast<uint64_t>(*nr) - 1);
      if (unreadable.ok()) unreadable = loaded.status();
      Load(context, std::move(request), attempt + 1, std::move(unreadable));
      return;
    }
  }
  context.Tell(request.client, LoadSnapshotFailed{loaded.status(), request.instance_id});
}

void SnapshotActor::Save(ActorContext& context, SaveSnapshot& request) {
  auto outcome = std::make_shared<SaveOutcome>();
  outcome->asked = request.snapshot.metadata;
  outcome->epoch = request.epoch;
  auto save = [this, &context, outcome, snapshot = std::move(request.snapshot)]() mutable {
    return Watch(context, storage_->Save(std::move(snapshot), outcome->epoch), outcome);
  };
  breaker_.Run(
      context, operations_, std::move(save),
      [this, &context, outcome, client = request.client,
       instance_id = request.instance_id](absl::StatusOr<SnapshotMetadata> saved) {
        outcome->is_answered = true;
        // The store may have answered in time, and the breaker has given up before its answer was
        // handled.
        if (!saved.ok() && outcome->saved.has_value()) saved = *std::move(outcome->saved);
        if (saved.ok()) {
          context.Tell(client, SaveSnapshotSuccess{*std::move(saved), instance_id});
          return;
        }
        DeleteUnacknowledged(context, *outcome, saved);
        context.Tell(client, SaveSnapshotFailure{outcome->asked, WithoutSnapshotTime(saved.status()), instance_id});
      });
}

Future<SnapshotMetadata> SnapshotActor::Watch(ActorContext& context, Future<SnapshotMetadata> saving,
                                              std::shared_ptr<SaveOutcome> outcome) {
  if (saving.IsReady()) return saving;
  auto [promise, future] = MakePromise<SnapshotMetadata>();
  operations_.Await(context, std::move(saving),
                    [this, &context, outcome = std::move(outcome),
                     promise = std::move(promise)](absl::StatusOr<SnapshotMetadata> saved) mutable {
                      if (!outcome->is_answered) {
                        if (saved.ok()) outcome->saved = *saved;
                        promise.Set(std::move(saved));
                      } else {
                        DeleteUnacknowledged(context, *outcome, saved);
                      }
                    });
  return std::move(future);
}

void SnapshotActor::DeleteUnacknowledged(ActorContext& context, const SaveOutcome& outcome,
                                         const absl::StatusOr<SnapshotMetadata>& saved) {
  const SnapshotMetadata& metadata = outcome.asked;
  const std::optional<absl::Time> time = saved.ok() ? saved->timestamp : SnapshotTimeOf(saved.status());
  if (is_ending_ || !time.has_value()) return;
  // Its time tells it from other snapshots of the same number, which may be acknowledged.
  const auto remove = [&] {
    return storage_->DeleteMatching(metadata.persistence_id,
                                    {.max_sequence_nr = metadata.sequence_nr,
                                     .max_timestamp = *time,
                                     .min_sequence_nr = metadata.sequence_nr,
                                     .min_timestamp = *time},
                                    outcome.epoch);
  };
  operations_.Await(context, protocol_internal::CheckedCall(remove), [&context, metadata](const absl::Status& deleted) {
    // A new owner may have recovered from the snapshot: then it stays.
    if (deleted.ok() || ErrorKindOf<JournalErrorKind>(deleted) == JournalErrorKind::kFenced) return;
    Log(context, LogLevel::kWarning,
        absl::StrCat(
            "snapshot ", metadata.sequence_nr, " of \"", metadata.persistence_id,
            "\", whose save was answered with a failure, is stored and could not be deleted: ", deleted.message()));
  });
}

void SnapshotActor::Delete(ActorContext& context, DeleteSnapshot& request) {
  if (options_.publish_commands) context.system().events().Publish(request);
  const auto remove = [this, id = request.metadata.persistence_id, nr = request.metadata.sequence_nr,
                       epoch = request.epoch] { return storage_->Delete(id, nr, epoch); };
  breaker_.Run(context, operations_, remove,
               [&context, client = request.client, metadata = std::move(request.metadata),
                instance_id = request.instance_id](const absl::Status& deleted) mutable {
                 if (deleted.ok()) {
                   context.Tell(client, DeleteSnapshotSuccess{std::move(metadata), instance_id});
                 } else {
                   context.Tell(client, DeleteSnapshotFailure{std::move(metadata), deleted, instance_id});
                 }
               });
}

void SnapshotActor::DeleteMatching(ActorContext& context, DeleteSnapshots& request) {
  if (options_.publish_commands) context.system().events().Publish(request);
  const auto remove = [&] {
    return storage_->DeleteMatching(std::move(request.persistence_id), request.criteria, request.epoch);
  };
  breaker_.Run(context, operations_, remove,
               [&context, client = request.client, criteria = request.criteria,
                instance_id = request.instance_id](const absl::Status& deleted) {
                 if (deleted.ok()) {
                   context.Tell(client, DeleteSnapshotsSuccess{criteria, instance_id});
                 } else {
                   context.Tell(client, DeleteSnapshotsFailure{criteria, deleted, instance_id});
                 }
               });
}

void SnapshotActor::PostStop(ActorContext& /*context*/) {
  is_ending_ = true;
  operations_.FailAll(
      MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kClosed,
                "the snapshot actor stops or is restarted: whether the request took effect is not known; ask again"));
}

absl::Status NoSnapshotStore::Receive(ActorContext& context, Envelope& message) {
  if (auto* const load = message.TryAs<LoadSnapshot>()) {
    context.Tell(
        load->client,
        LoadSnapshotResult{
            .found = false, .snapshot = {}, .to_sequence_nr = load->to_sequence_nr, .instance_id = load->instance_id});
  } else if (auto* const save = message.TryAs<SaveSnapshot>()) {
    context.Tell(save->client, SaveSnapshotFailure{std::move(save->snapshot.metadata), NoStore(), save->instance_id});
  } else if (auto* const one = message.TryAs<DeleteSnapshot>()) {
    context.Tell(one->client, DeleteSnapshotFailure{std::move(one->metadata), NoStore(), one->instance_id});
  } else if (auto* const some = message.TryAs<DeleteSnapshots>()) {
    context.Tell(some->client, DeleteSnapshotsFailure{some->criteria, NoStore(), some->instance_id});
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
