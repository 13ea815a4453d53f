// PersistenceExtension: the journals and snapshot stores of an actor system, for its persistent
// actors.
//
//   auto& persistence = system.Extension<PersistenceExtension>();
//   FRAKTOR_RETURN_IF_ERROR(persistence.AddJournal("main", {.storage = journal}));
//   FRAKTOR_RETURN_IF_ERROR(persistence.AddSnapshotStore("main", {.storage = snapshots}));
//   system.TrySpawn(*MakeProps<Account>({}, ...), "account-7");
//
// The first that is added under any id is the one of actors that name none. Their actors are
// started below /system when they are first asked for, and again if they have ended. Without a
// snapshot store actors are brought back from their events alone, and saving fails.
//
// The stores are let go when the system has ended. A program that wants to know that all is written
// calls their Close then.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_PERSISTENCE_EXTENSION_H_
#define FRAKTOR_PERSISTENCE_ACTOR_PERSISTENCE_EXTENSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/actor/persistent_actor_options.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/protocol/journal_actor.h"
#include "fraktor/persistence/protocol/remote_snapshot_store.h"
#include "fraktor/persistence/protocol/snapshot_actor.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// Fits into a frame of the ordinary lane, with room to spare.
inline constexpr size_t kDefaultStoreMessageBytes = size_t{128} << 10;

struct JournalSetup {
  std::shared_ptr<JournalStorage> storage = nullptr;
  // Instead of a storage: an actor that understands journal_messages.h, perhaps on another node.
  // Then both nodes need the codecs of fraktor/persistence/protocol/protocol_codecs.h.
  ActorRef actor = {};
  // To and from an actor of another node. Larger writes go in several messages; what is stored
  // together and does not fit is rejected. RemoteOptions has the limits of the transport.
  size_t max_message_bytes = kDefaultStoreMessageBytes;
  // The number of actors that talk to the storage. Requests of one persistence id go to the same
  // one. 0: as many as the storage says.
  size_t actors = 0;
  // Null: the codecs of the system.
  std::shared_ptr<const EventCodec> codec = nullptr;
  // The effect if this store or another one of the system was replaced. kAccept in the setup of
  // either of the two is enough (StoreFamily).
  OnReplacedStore on_replaced_store = OnReplacedStore::kRefuse;
  JournalActorOptions options = {};
};

struct SnapshotStoreSetup {
  std::shared_ptr<SnapshotStorage> storage = nullptr;
  // Instead of a storage: an actor that understands snapshot_messages.h, perhaps on another node
  // (RemoteStores). To another node larger snapshots than `remote.max_message_bytes` go in parts. A
  // snapshot must arrive as a whole within PersistentActorOptions::recovery_event_timeout.
  ActorRef actor = {};
  RemoteSnapshotOptions remote = {.max_message_bytes = kDefaultStoreMessageBytes};
  // As in JournalSetup.
  OnReplacedStore on_replaced_store = OnReplacedStore::kRefuse;
  SnapshotActorOptions options = {};
};

struct PersistenceOptions {
  // The options of actors that have none of their own.
  PersistentActorOptions actor = {};
  size_t max_concurrent_recoveries = 50;
};

class PersistenceExtension {
 public:
  explicit PersistenceExtension(ActorSystem& system);
  ~PersistenceExtension();

  // Before the first persistent actor: FailedPrecondition afterwards. InvalidArgument that names
  // the option.
  absl::Status Configure(const PersistenceOptions& options);

  // InvalidArgument for an id that cannot be part of an actor's name, a setup without a store or
  // with two, and bad options; AlreadyExists if there is one with the id; FailedPrecondition for a
  // storage that was replaced, as when its folder was deleted, or that was used with another one
  // than was added.
  absl::Status AddJournal(std::string_view plugin_id, JournalSetup setup);
  absl::Status AddSnapshotStore(std::string_view plugin_id, SnapshotStoreSetup setup);

  // The actor; an empty id means the first. NotFound, with the ids that there are. Of several
  // actors of a journal it is the one that serves the persistence id; they are
  // /system/journal-main, /system/journal-main-1 and so on.
  absl::StatusOr<ActorRef> Journal(std::string_view plugin_id = {}, std::string_view persistence_id = {});
  // For a store on another node, the RemoteSnapshotStore that stands for it.
  absl::StatusOr<ActorRef> SnapshotStore(std::string_view plugin_id = {});
  // Starts the actors of all stores that were added, so that other nodes find them. Otherwise each
  // starts when it is first asked for.
  absl::Status StartStores();
  // Does not start the journal. Lives as long as the extension.
  absl::StatusOr<const EventCodec*> CodecOf(std::string_view journal_plugin_id = {});
  absl::StatusOr<ActorRef> RecoveryPermitter();
  // JournalSetup::max_message_bytes; 0 if there is no journal with the id.
  size_t JournalMessageBytes(std::string_view plugin_id = {});

  // Constant from the first persistent actor on.
  const PersistentActorOptions& actor_options();

  // A number for one incarnation of an actor, and who it is as a writer.
  uint64_t NextInstance() { return next_instance_.fetch_add(1, std::memory_order_relaxed); }
  WriterId WriterOf(uint64_t instance_id) const { return {.high = writer_base_, .low = instance_id}; }

 private:
  struct JournalEntry {
    JournalSetup setup;
    std::vector<ActorRef> actors;
  };
  struct SnapshotEntry {
    SnapshotStoreSetup setup;
    ActorRef actor;
  };

  absl::StatusOr<ActorRef> JournalActorOf(std::string_view plugin_id, JournalEntry& entry, size_t index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<ActorRef> SnapshotActorOf(std::string_view plugin_id, SnapshotEntry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ActorSystem& system_;
  const RegistryEventCodec system_codec_;
  const uint64_t writer_base_;
  // Numbers that only have to differ: relaxed.
  std::atomic<uint64_t> next_instance_{1};

  Mutex mutex_;
  PersistenceOptions options_ ABSL_GUARDED_BY(mutex_);
  bool is_in_use_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, JournalEntry, std::less<>> journals_ ABSL_GUARDED_BY(mutex_);
  std::string first_journal_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, SnapshotEntry, std::less<>> snapshot_stores_ ABSL_GUARDED_BY(mutex_);
  std::string first_snapshot_store_ ABSL_GUARDED_BY(mutex_);
  ActorRef no_snapshot_store_ ABSL_GUARDED_BY(mutex_);
  ActorRef permitter_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_PERSISTENCE_EXTENSION_H_
