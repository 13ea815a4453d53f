// StateExtension: the stores of durable states of an actor system, for its durable actors.
//
//   auto& states = system.Extension<StateExtension>();
//   FRAKTOR_RETURN_IF_ERROR(states.AddStore("main", {.storage = store}));
//   auto cart = system.Spawn<Cart>("cart-7", "cart-7");
//
// The first that is added is the one of actors that name none. Its actor is started below /system
// when it is first asked for, and again if it has ended. Stores are let go when the system has
// ended.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_PERSISTENCE_DURABLE_STATE_EXTENSION_H_
#define FRAKTOR_PERSISTENCE_DURABLE_STATE_EXTENSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/durable/state_actor.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

struct StateStoreSetup {
  std::shared_ptr<StateStorage> storage = nullptr;
  // Instead of a storage: an actor that understands state_messages.h, perhaps on another node. Then
  // both nodes need the codecs of state_codecs.h.
  ActorRef actor = {};
  // To an actor of another node: a larger state is refused. RemoteOptions has the limits of the
  // transport.
  size_t max_message_bytes = kDefaultStoreMessageBytes;
  // As in JournalSetup.
  OnReplacedStore on_replaced_store = OnReplacedStore::kRefuse;
  StateActorOptions options = {};
};

class StateExtension {
 public:
  explicit StateExtension(ActorSystem& system);

  // InvalidArgument for an id that cannot be part of an actor's name, a setup without a store or
  // with two, and bad options; AlreadyExists if there is one with the id; FailedPrecondition as in
  // PersistenceExtension::AddJournal.
  absl::Status AddStore(std::string_view plugin_id, StateStoreSetup setup);

  // The actor; an empty id means the first. NotFound, with the ids that there are.
  absl::StatusOr<ActorRef> Store(std::string_view plugin_id = {});
  // Starts the actors of all stores that were added, so that other nodes find them (RemoteStores).
  absl::Status StartStores();
  // StateStoreSetup::max_message_bytes; 0 if there is no store with the id.
  size_t MessageBytes(std::string_view plugin_id = {});

  // A number for one incarnation of an actor, and who it is as a writer. Relaxed: they only have to
  // differ.
  uint64_t NextInstance() { return next_instance_.fetch_add(1, std::memory_order_relaxed); }
  WriterId WriterOf(uint64_t instance_id) const { return {.high = writer_base_, .low = instance_id}; }

 private:
  struct Entry {
    StateStoreSetup setup;
    ActorRef actor = {};
  };

  absl::StatusOr<ActorRef> ActorOf(std::string_view plugin_id, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ActorSystem& system_;
  const uint64_t writer_base_;
  std::atomic<uint64_t> next_instance_{1};
  Mutex mutex_;
  std::map<std::string, Entry, std::less<>> stores_ ABSL_GUARDED_BY(mutex_);
  std::string first_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_DURABLE_STATE_EXTENSION_H_
