#include "fraktor/persistence/actor/persistence_extension.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/persistence/actor/recovery_permitter.h"
#include "fraktor/persistence/actor/writer_base.h"
#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/plugin_id.h"
#include "fraktor/persistence/protocol/remote_snapshot_store.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/store_family.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// Stores do as much as the users' actors want: the workers of the system's own actors are for
// others.
const PropsOptions kAmongUsers{.dispatcher = DispatcherChoice::kDefault};

bool IsAlive(ActorRef actor) { return actor.IsCurrent(); }

// Less would hardly hold an event and what goes with it.
constexpr size_t kMinMessageBytes = 1024;
// The limit for one journal.
constexpr size_t kMaxActors = 1024;

template <class Setup>
absl::Status CheckSetup(std::string_view what, std::string_view plugin_id, const Setup& setup) {
  FRAKTOR_RETURN_IF_ERROR(CheckPluginId(what, plugin_id));
  if ((setup.storage == nullptr) == setup.actor.IsNoOne()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", ToAbsl(what), " \"", ToAbsl(plugin_id), "\" needs either a storage or an actor"));
  }
  return setup.options.Validate();
}

template <class Entries>
absl::Status NoSuch(std::string_view what, std::string_view plugin_id, const Entries& entries) {
  const std::string known = absl::StrJoin(
      entries, ", ", [](std::string* out, const auto& entry) { absl::StrAppend(out, "\"", entry.first, "\""); });
  return absl::NotFoundError(absl::StrCat("there is no ", ToAbsl(what),
                                          plugin_id.empty() ? "" : absl::StrCat(" \"", ToAbsl(plugin_id), "\""), "; ",
                                          entries.empty() ? "none was added" : absl::StrCat("there are ", known),
                                          ": add it to the PersistenceExtension before actors are started"));
}

}  // namespace

PersistenceExtension::PersistenceExtension(ActorSystem& system)
    : system_(system), system_codec_(system), writer_base_(DrawWriterBase(system)) {}

PersistenceExtension::~PersistenceExtension() = default;

absl::Status PersistenceExtension::Configure(const PersistenceOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.actor.Validate());
  if (options.max_concurrent_recoveries == 0) {
    return absl::InvalidArgumentError("PersistenceOptions::max_concurrent_recoveries must be above 0");
  }
  MutexLock lock(mutex_);
  if (is_in_use_) {
    return absl::FailedPreconditionError("persistent actors have been started: configure the extension before that");
  }
  options_ = options;
  return absl::OkStatus();
}

absl::Status PersistenceExtension::AddJournal(std::string_view plugin_id, JournalSetup setup) {
  FRAKTOR_RETURN_IF_ERROR(CheckSetup("journal", plugin_id, setup));
  if (setup.max_message_bytes < kMinMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the journal \"", ToAbsl(plugin_id), "\" has max_message_bytes = ",
                                                   setup.max_message_bytes, "; ", kMinMessageBytes, " is the least"));
  }
  if (setup.actor.IsRemote() && CodecsOf(system_).Find<OpenWriter>() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the journal \"", ToAbsl(plugin_id),
                     "\" is on another node, and the system cannot talk to it: add ProtocolCodecs() to "
                     "ActorSystemOptions::codecs"));
  }
  if (setup.actors > kMaxActors) {
    return absl::InvalidArgumentError(absl::StrCat("the journal \"", ToAbsl(plugin_id), "\" is to have ", setup.actors,
                                                   " actors; ", kMaxActors, " are the most"));
  }
  std::vector<ActorRef> actors(1, setup.actor);
  if (setup.storage != nullptr) {
    const size_t count = setup.actors == 0 ? setup.storage->UsefulActors() : setup.actors;
    actors.resize(std::clamp<size_t>(count, 1, kMaxActors));
  }
  MutexLock lock(mutex_);
  if (journals_.contains(plugin_id)) {
    return absl::AlreadyExistsError(absl::StrCat("there is a journal \"", ToAbsl(plugin_id), "\" already"));
  }
  if (setup.storage != nullptr) {
    FRAKTOR_RETURN_IF_ERROR(system_.Extension<StoreFamily>().Join(absl::StrCat("journal:", ToAbsl(plugin_id)),
                                                                  setup.storage, setup.on_replaced_store));
  }
  journals_.try_emplace(std::string(plugin_id), JournalEntry{std::move(setup), std::move(actors)});
  if (first_journal_.empty()) first_journal_ = plugin_id;
  return absl::OkStatus();
}

absl::Status PersistenceExtension::AddSnapshotStore(std::string_view plugin_id, SnapshotStoreSetup setup) {
  FRAKTOR_RETURN_IF_ERROR(CheckSetup("snapshot store", plugin_id, setup));
  FRAKTOR_RETURN_IF_ERROR(setup.remote.Validate());
  if (setup.actor.IsRemote() && CodecsOf(system_).Find<LoadSnapshot>() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the snapshot store \"", ToAbsl(plugin_id),
                     "\" is on another node, and the system cannot talk to it: add ProtocolCodecs() to "
                     "ActorSystemOptions::codecs"));
  }
  MutexLock lock(mutex_);
  // The actor that stands for a store on another node starts when it is first asked for.
  const ActorRef actor = setup.actor.IsRemote() ? ActorRef() : setup.actor;
  if (snapshot_stores_.contains(plugin_id)) {
    return absl::AlreadyExistsError(absl::StrCat("there is a snapshot store \"", ToAbsl(plugin_id), "\" already"));
  }
  if (setup.storage != nullptr) {
    FRAKTOR_RETURN_IF_ERROR(system_.Extension<StoreFamily>().Join(absl::StrCat("snapshots:", ToAbsl(plugin_id)),
                                                                  setup.storage, setup.on_replaced_store));
  }
  snapshot_stores_.try_emplace(std::string(plugin_id), SnapshotEntry{std::move(setup), actor});
  if (first_snapshot_store_.empty()) first_snapshot_store_ = plugin_id;
  return absl::OkStatus();
}

absl::StatusOr<ActorRef> PersistenceExtension::Journal(std::string_view plugin_id, std::string_view persistence_id) {
  MutexLock lock(mutex_);
  const auto found = journals_.find(plugin_id.empty() ? first_journal_ : plugin_id);
  if (found == journals_.end()) return NoSuch("journal", plugin_id, journals_);
  JournalEntry& entry = found->second;
  // The same in every run.
  const size_t index =
      entry.actors.size() == 1 || persistence_id.empty() ? 0 : ExtendCrc32c(0, persistence_id) % entry.actors.size();
  return JournalActorOf(found->first, entry, index);
}

absl::StatusOr<ActorRef> PersistenceExtension::JournalActorOf(std::string_view plugin_id, JournalEntry& entry,
                                                              size_t index) {
  ActorRef& actor = entry.actors[index];
  if (entry.setup.storage == nullptr) return actor;
  if (!IsAlive(actor)) {
    FRAKTOR_ASSIGN_OR_RETURN(actor, system_.TrySpawnSystemActor(
                                        *MakeProps<JournalActor>(kAmongUsers, entry.setup.storage, entry.setup.options),
                                        JournalActorName(plugin_id, index)));
  }
  return actor;
}

absl::StatusOr<ActorRef> PersistenceExtension::SnapshotStore(std::string_view plugin_id) {
  MutexLock lock(mutex_);
  if (plugin_id.empty() && snapshot_stores_.empty()) {
    if (!IsAlive(no_snapshot_store_)) {
      system_.log().Log(LogLevel::kWarning,
                        {.at = system_.toolbox().WallNow(),
                         .text = "there is no snapshot store: persistent actors are brought back from all their "
                                 "events, and saving a snapshot fails"});
      FRAKTOR_ASSIGN_OR_RETURN(no_snapshot_store_,
                               system_.TrySpawnSystemActor(PropsOf<NoSnapshotStore>(), "no-snapshot-store"));
    }
    return no_snapshot_store_;
  }
  const auto found = snapshot_stores_.find(plugin_id.empty() ? first_snapshot_store_ : plugin_id);
  if (found == snapshot_stores_.end()) return NoSuch("snapshot store", plugin_id, snapshot_stores_);
  return SnapshotActorOf(found->first, found->second);
}

absl::StatusOr<ActorRef> PersistenceExtension::SnapshotActorOf(std::string_view plugin_id, SnapshotEntry& entry) {
  const SnapshotStoreSetup& setup = entry.setup;
  if ((setup.storage == nullptr && !setup.actor.IsRemote()) || IsAlive(entry.actor)) return entry.actor;
  if (setup.storage != nullptr) {
    FRAKTOR_ASSIGN_OR_RETURN(
        entry.actor, system_.TrySpawnSystemActor(*MakeProps<SnapshotActor>(kAmongUsers, setup.storage, setup.options),
                                                 SnapshotActorName(plugin_id)));
  } else {
    FRAKTOR_ASSIGN_OR_RETURN(entry.actor,
                             system_.TrySpawnSystemActor(
                                 *MakeProps<RemoteSnapshotStore>(kAmongUsers, setup.actor, writer_base_, setup.remote),
                                 absl::StrCat("remote-", SnapshotActorName(plugin_id))));
  }
  return entry.actor;
}

absl::Status PersistenceExtension::StartStores() {
  MutexLock lock(mutex_);
  for (auto& [id, entry] : journals_) {
    for (size_t i = 0; i < entry.actors.size(); ++i) FRAKTOR_RETURN_IF_ERROR(JournalActorOf(id, entry, i).status());
  }
  for (auto& [id, entry] : snapshot_stores_) FRAKTOR_RETURN_IF_ERROR(SnapshotActorOf(id, entry).status());
  return absl::OkStatus();
}

absl::StatusOr<const EventCodec*> PersistenceExtension::CodecOf(std::string_view journal_plugin_id) {
  MutexLock lock(mutex_);
  const auto found = journals_.find(journal_plugin_id.empty() ? first_journal_ : journal_plugin_id);
  if (found == journals_.end()) return NoSuch("journal", journal_plugin_id, journals_);
  const EventCodec* const codec = found->second.setup.codec.get();
  return codec == nullptr ? &system_codec_ : codec;
}

absl::StatusOr<ActorRef> PersistenceExtension::RecoveryPermitter() {
  MutexLock lock(mutex_);
  is_in_use_ = true;
  if (!IsAlive(permitter_)) {
    FRAKTOR_ASSIGN_OR_RETURN(
        permitter_, system_.TrySpawnSystemActor(
                        *MakeProps<fraktor::RecoveryPermitter>(kAmongUsers, options_.max_concurrent_recoveries),
                        "recovery-permitter"));
  }
  return permitter_;
}

size_t PersistenceExtension::JournalMessageBytes(std::string_view plugin_id) {
  MutexLock lock(mutex_);
  const auto found = journals_.find(plugin_id.empty() ? first_journal_ : plugin_id);
  return found == journals_.end() ? 0 : found->second.setup.max_message_bytes;
}

const PersistentActorOptions& PersistenceExtension::actor_options() {
  MutexLock lock(mutex_);
  is_in_use_ = true;
  // Does not change any more.
  return options_.actor;
}

}  // namespace fraktor::inline v0
