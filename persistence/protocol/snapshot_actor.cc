#include "fraktor/persistence/protocol/snapshot_actor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/protocol/snapshot_transfers.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

namespace snapshot_actor_internal {

// To itself.
struct ForgetTransfers {};

}  // namespace snapshot_actor_internal

using snapshot_actor_internal::ForgetTransfers;

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
  if (max_transfer_bytes == 0) {
    return absl::InvalidArgumentError("SnapshotActorOptions::max_transfer_bytes is 0; it must be at least 1");
  }
  if (transfer_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("SnapshotActorOptions::transfer_timeout is ",
                                                   absl::FormatDuration(transfer_timeout), "; it must be above 0"));
  }
  return breaker.Validate();
}

SnapshotActor::SnapshotActor(std::shared_ptr<SnapshotStorage> storage, const SnapshotActorOptions& options)
    : StoreActor("snapshot", std::move(storage), options),
      transfers_({.max_bytes = options.max_transfer_bytes, .timeout = options.transfer_timeout}) {}

absl::Status SnapshotActor::Receive(ActorContext& context, Envelope& message) {
  if (Resume(message)) return absl::OkStatus();
  if (auto* const load = message.TryAs<LoadSnapshot>()) {
    Announce(context, {.request = std::move(*load)});
  } else if (auto* const save = message.TryAs<SaveSnapshot>()) {
    Save(context, std::move(save->snapshot), save->epoch,
         [&context, client = save->client, instance_id = save->instance_id](absl::StatusOr<SnapshotMetadata> saved,
                                                                            const SnapshotMetadata& asked) {
           if (saved.ok()) {
             context.Tell(client, SaveSnapshotSuccess{*std::move(saved), instance_id});
           } else {
             context.Tell(client, SaveSnapshotFailure{asked, saved.status(), instance_id});
           }
         });
  } else if (auto* const one = message.TryAs<DeleteSnapshot>()) {
    Delete(context, *one);
  } else if (auto* const some = message.TryAs<DeleteSnapshots>()) {
    DeleteMatching(context, *some);
  } else {
    return ReceiveParts(context, message);
  }
  return absl::OkStatus();
}

absl::Status SnapshotActor::ReceiveParts(ActorContext& context, Envelope& message) {
  if (auto* const part = message.TryAs<SaveSnapshotPart>()) {
    TakePart(context, *part);
  } else if (auto* const get = message.TryAs<GetSnapshotPart>()) {
    SendPart(context, *get);
  } else if (auto* const load = message.TryAs<LoadSnapshotInParts>()) {
    context.Tell(load->client, LoadInPartsTaken{load->number});
    Announce(context, {.request = std::move(load->request),
                       .takes_offer = load->client,
                       .max_bytes = load->max_bytes,
                       .number = load->number});
  } else if (message.Is<ForgetTransfers>()) {
    watches_transfers_ = false;
    transfers_.ForgetIdle(context.system().toolbox().Now());
    WatchTransfers(context);
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

void SnapshotActor::Announce(ActorContext& context, LoadOutcome load) {
  load.request.criteria = load.request.criteria.Limit(load.request.to_sequence_nr);
  if (load.request.epoch == kNoEpoch || load.request.criteria.MatchesNothing()) {
    Load(context, std::move(load));
    return;
  }
  const auto announce = [this, id = load.request.persistence_id, epoch = load.request.epoch] {
    return storage().OpenWriter(id, epoch);
  };
  Run(context, announce, [this, &context, load = std::move(load)](const absl::Status& announced) mutable {
    if (ErrorKindOf<JournalErrorKind>(announced) == JournalErrorKind::kFenced) {
      // The journal decides about owners, and a load changes nothing.
      Log(context, LogLevel::kWarning,
          absl::StrCat("the snapshot store will refuse what the owner that recovers saves and deletes. "
                       "Either another owner has followed it already, or the journal was lost or "
                       "restored from a backup, and the snapshot store was not: ",
                       announced.message()));
    } else if (!announced.ok()) {
      context.Tell(load.request.client, LoadSnapshotFailed{announced, load.request.instance_id});
      return;
    }
    Load(context, std::move(load));
  });
}

void SnapshotActor::Load(ActorContext& context, LoadOutcome load) {
  if (load.request.criteria.MatchesNothing()) {
    AnswerLoad(context, std::move(load), std::optional<Snapshot>());
    return;
  }
  const auto read = [this, id = load.request.persistence_id, criteria = load.request.criteria] {
    return storage().Load(id, criteria);
  };
  Run(context, read, [this, &context, load = std::move(load)](absl::StatusOr<std::optional<Snapshot>> loaded) mutable {
    AnswerLoad(context, std::move(load), std::move(loaded));
  });
}

void SnapshotActor::AnswerLoad(ActorContext& context, LoadOutcome load,
                               absl::StatusOr<std::optional<Snapshot>> loaded) {
  LoadSnapshot& request = load.request;
  if (loaded.ok() && !loaded->has_value() && !load.unreadable.ok()) {
    // Events before the unreadable one may be gone: an actor that goes on without it has to know.
    context.Tell(request.client, LoadSnapshotFailed{std::move(load.unreadable), request.instance_id});
    return;
  }
  if (loaded.ok()) {
    if (loaded->has_value()) {
      Offer(context, load, **std::move(loaded));
    } else {
      context.Tell(request.client, LoadSnapshotResult{.found = false,
                                                      .snapshot = {},
                                                      .to_sequence_nr = request.to_sequence_nr,
                                                      .instance_id = request.instance_id});
    }
    return;
  }
  if (load.attempt < options().max_load_attempts &&
      ErrorKindOf<JournalErrorKind>(loaded.status()) == JournalErrorKind::kCorrupt) {
    // An older one will do: there are more events to replay then.
    const std::optional<int64_t> nr = ErrorDetailNumberOf<JournalErrorKind>(loaded.status(), "nr");
    if (nr.has_value() && *nr > 0) {
      request.criteria = request.criteria.Limit(static_cast<uint64_t>(*nr) - 1);
      if (load.unreadable.ok()) load.unreadable = loaded.status();
      ++load.attempt;
      Load(context, std::move(load));
      return;
    }
  }
  context.Tell(request.client, LoadSnapshotFailed{loaded.status(), request.instance_id});
}

void SnapshotActor::Offer(ActorContext& context, const LoadOutcome& load, Snapshot snapshot) {
  const LoadSnapshot& request = load.request;
  const uint64_t bytes = snapshot.payload.size();
  if (load.takes_offer.IsNoOne() ||
      bytes + snapshot.manifest.size() + snapshot.metadata.metadata.size() <= load.max_bytes) {
    context.Tell(request.client, LoadSnapshotResult{.found = true,
                                                    .snapshot = std::move(snapshot),
                                                    .to_sequence_nr = request.to_sequence_nr,
                                                    .instance_id = request.instance_id});
    return;
  }
  SnapshotOffer offer{.number = load.number,
                      .head = {.metadata = snapshot.metadata,
                               .manifest = snapshot.manifest,
                               .manifest_version = snapshot.manifest_version},
                      .total_bytes = bytes,
                      .to_sequence_nr = request.to_sequence_nr};
  transfers_.Keep(std::move(snapshot), context.system().toolbox().Now());
  WatchTransfers(context);
  context.Tell(load.takes_offer, std::move(offer));
}

void SnapshotActor::SendPart(ActorContext& context, GetSnapshotPart& request) {
  const Instant now = context.system().toolbox().Now();
  if (transfers_.Has(request)) {
    context.Tell(request.client, transfers_.Part(request, now));
    return;
  }
  const absl::StatusOr<bool> begins = transfers_.BeginLoad(request, now);
  if (!begins.ok()) {
    context.Tell(request.client,
                 SnapshotPart{.number = request.number, .offset = request.offset, .cause = begins.status()});
    return;
  }
  WatchTransfers(context);
  if (!*begins) return;
  const SnapshotMetadata metadata = std::move(request.metadata);
  const auto read = [this, &metadata] {
    return storage().Load(metadata.persistence_id, {.max_sequence_nr = metadata.sequence_nr,
                                                    .max_timestamp = metadata.timestamp,
                                                    .min_sequence_nr = metadata.sequence_nr,
                                                    .min_timestamp = metadata.timestamp});
  };
  Run(context, read, [this, &context, metadata](absl::StatusOr<std::optional<Snapshot>> loaded) {
    absl::Status cause = loaded.status();
    if (loaded.ok() && !loaded->has_value()) {
      cause = MakeError(absl::StatusCode::kNotFound, JournalErrorKind::kDeleted,
                        absl::StrCat("snapshot ", metadata.sequence_nr, " of \"", metadata.persistence_id,
                                     "\" was deleted while it was loaded: recover again"));
    }
    const Instant loaded_at = context.system().toolbox().Now();
    for (GetSnapshotPart& waiting :
         transfers_.EndLoad(metadata, cause.ok() ? *std::move(loaded) : std::optional<Snapshot>(), loaded_at)) {
      if (cause.ok()) {
        // If a request before it has taken the last part, the load begins again.
        SendPart(context, waiting);
      } else {
        context.Tell(waiting.client, SnapshotPart{.number = waiting.number, .offset = waiting.offset, .cause = cause});
      }
    }
  });
}

void SnapshotActor::TakePart(ActorContext& context, SaveSnapshotPart& part) {
  using protocol_internal::SnapshotTransfers;
  const ActorRef client = part.client;
  const SnapshotTransferId transfer = part.transfer;
  const uint64_t epoch = part.epoch;
  SnapshotTransfers::Upload upload =
      transfers_.Take(std::move(part), storage().limits().max_snapshot_bytes, context.system().toolbox().Now());
  if (!transfers_.empty()) WatchTransfers(context);
  switch (upload.step) {
    case SnapshotTransfers::Step::kTaken:
      context.Tell(client, upload.taken);
      return;
    case SnapshotTransfers::Step::kEnded:
      context.Tell(client, std::move(upload.saved));
      return;
    case SnapshotTransfers::Step::kComplete:
      break;
  }
  context.Tell(client, upload.taken);
  Save(context, std::move(upload.snapshot), epoch,
       [this, &context, client, transfer](absl::StatusOr<SnapshotMetadata> saved, const SnapshotMetadata& asked) {
         SnapshotPartsSaved answer{
             .transfer = transfer, .cause = saved.status(), .metadata = saved.ok() ? *std::move(saved) : asked};
         transfers_.EndUpload(answer, context.system().toolbox().Now());
         context.Tell(client, std::move(answer));
       });
}

void SnapshotActor::WatchTransfers(ActorContext& context) {
  if (watches_transfers_ || transfers_.empty()) return;
  const absl::Status started =
      Timers(context).StartSingle("fraktor.transfers", ForgetTransfers(), options().transfer_timeout);
  watches_transfers_ = started.ok();
  if (started.ok()) return;
  Log(context, LogLevel::kWarning,
      absl::StrCat("parts of snapshots whose transfer is aborted stay in memory, since there is no timer: ",
                   started.message()));
}

void SnapshotActor::Save(
    ActorContext& context, Snapshot snapshot, uint64_t epoch,
    absl::AnyInvocable<void(absl::StatusOr<SnapshotMetadata> saved, const SnapshotMetadata& asked)> done) {
  auto outcome = std::make_shared<SaveOutcome>();
  outcome->asked = snapshot.metadata;
  outcome->epoch = epoch;
  auto save = [this, &context, outcome, snapshot = std::move(snapshot)]() mutable {
    return Watch(context, storage().Save(std::move(snapshot), outcome->epoch), outcome);
  };
  Run(context, std::move(save),
      [this, &context, outcome, done = std::move(done)](absl::StatusOr<SnapshotMetadata> saved) mutable {
        outcome->is_answered = true;
        // The store may have answered in time, and the breaker has given up before its answer was
        // handled.
        if (!saved.ok() && outcome->saved.has_value()) saved = *std::move(outcome->saved);
        if (!saved.ok()) {
          DeleteUnacknowledged(context, *outcome, saved);
          saved = WithoutSnapshotTime(saved.status());
        }
        done(std::move(saved), outcome->asked);
      });
}

Future<SnapshotMetadata> SnapshotActor::Watch(ActorContext& context, Future<SnapshotMetadata> saving,
                                              std::shared_ptr<SaveOutcome> outcome) {
  if (saving.IsReady()) return saving;
  auto [promise, future] = MakePromise<SnapshotMetadata>();
  Await(context, std::move(saving),
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
  if (is_ending() || !time.has_value()) return;
  // Its time tells it from other snapshots of the same number, which may be acknowledged.
  const auto remove = [&] {
    return storage().DeleteMatching(metadata.persistence_id,
                                    {.max_sequence_nr = metadata.sequence_nr,
                                     .max_timestamp = *time,
                                     .min_sequence_nr = metadata.sequence_nr,
                                     .min_timestamp = *time},
                                    outcome.epoch);
  };
  Await(context, protocol_internal::CheckedCall(remove), [&context, metadata](const absl::Status& deleted) {
    // A new owner may have recovered from the snapshot: then it stays.
    if (deleted.ok() || ErrorKindOf<JournalErrorKind>(deleted) == JournalErrorKind::kFenced) return;
    Log(context, LogLevel::kWarning,
        absl::StrCat(
            "snapshot ", metadata.sequence_nr, " of \"", metadata.persistence_id,
            "\", whose save was answered with a failure, is stored and could not be deleted: ", deleted.message()));
  });
}

void SnapshotActor::Delete(ActorContext& context, DeleteSnapshot& request) {
  if (options().publish_commands) context.system().events().Publish(request);
  const auto remove = [this, id = request.metadata.persistence_id, nr = request.metadata.sequence_nr,
                       epoch = request.epoch] { return storage().Delete(id, nr, epoch); };
  Run(context, remove,
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
  if (options().publish_commands) context.system().events().Publish(request);
  const auto remove = [&] {
    return storage().DeleteMatching(std::move(request.persistence_id), request.criteria, request.epoch);
  };
  Run(context, remove,
      [&context, client = request.client, criteria = request.criteria,
       instance_id = request.instance_id](const absl::Status& deleted) {
        if (deleted.ok()) {
          context.Tell(client, DeleteSnapshotsSuccess{criteria, instance_id});
        } else {
          context.Tell(client, DeleteSnapshotsFailure{criteria, deleted, instance_id});
        }
      });
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
