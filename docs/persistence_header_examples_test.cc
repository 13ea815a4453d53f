// The examples of headers of persistence/, so that they compile, and most of them run.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/memory/memory_state_store.h"
#include "fraktor/persistence/protocol/plugin_id.h"
#include "fraktor/persistence/protocol/remote_snapshot_store.h"
#include "fraktor/persistence/protocol/remote_stores.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/protocol/snapshot_transfers.h"
#include "fraktor/persistence/protocol/store_actor.h"
#include "fraktor/persistence/protocol/store_family.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

// clang-format off

// persistence/journal/store_identity.h
TEST(PersistenceHeaderExamples, StoreIdentity) {
  const std::shared_ptr<JournalStorage> journal = MemoryJournal::Open({}).value();
  TestKit kit;
  const std::shared_ptr<SnapshotStorage> snapshots = MemorySnapshotStore::Open({.toolbox = &kit.toolbox()}).value();
  StoreIdentity mine = journal->identity();   // {.id = "6f1c...", .partners = {{"states:main", "02ab..."}}}
  Future<void> remembered = journal->RememberPartner("snapshots:main", snapshots->identity().id);
  EXPECT_TRUE(mine.id.empty()) << "a store in memory has no identity";
}

// persistence/protocol/store_family.h
absl::Status FamilyExample(ActorSystem& system, std::shared_ptr<JournalStorage> journal,
                           std::shared_ptr<SnapshotStorage> snapshots) {
  auto& family = system.Extension<StoreFamily>();
  FRAKTOR_RETURN_IF_ERROR(family.Join("journal:main", journal, OnReplacedStore::kRefuse));
  FRAKTOR_RETURN_IF_ERROR(family.Join("snapshots:main", snapshots, OnReplacedStore::kRefuse));
  return absl::OkStatus();
}
TEST(PersistenceHeaderExamples, StoreFamily) {
  TestKit kit;
  EXPECT_TRUE(FamilyExample(kit.system(), MemoryJournal::Open({}).value(),
                            MemorySnapshotStore::Open({.toolbox = &kit.toolbox()}).value()).ok());
}

// persistence/protocol/remote_stores.h
absl::Status RemoteExample(ActorSystem& system, PersistenceExtension& persistence) {
  FRAKTOR_ASSIGN_OR_RETURN(RemoteStores far, RemoteStores::At(system, "10.0.0.7:2552"));
  FRAKTOR_ASSIGN_OR_RETURN(ActorRef journal, far.Journal("main"));
  FRAKTOR_RETURN_IF_ERROR(persistence.AddJournal("main", {.actor = journal}));
  FRAKTOR_ASSIGN_OR_RETURN(ActorRef snapshots, far.SnapshotStore("main"));
  FRAKTOR_RETURN_IF_ERROR(persistence.AddSnapshotStore("main", {.actor = snapshots}));
  return absl::OkStatus();
}
TEST(PersistenceHeaderExamples, RemoteStores) {
  TestKit kit;
  EXPECT_FALSE(RemoteExample(kit.system(), kit.system().Extension<PersistenceExtension>()).ok()) << "no remoting";
  for (const char* const authority : {"", "here", ":2552", "here:0", "here:65536", "here:port"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RemoteStores::At(kit.system(), authority).status())) << authority;
  }
}

// persistence/protocol/remote_snapshot_store.h
TEST(PersistenceHeaderExamples, RemoteSnapshotStore) {
  TestKit kit;
  ActorSystem& system = kit.system();
  const ActorRef far_store = kit.Probe().ref();
  const uint64_t writer_base = 3;
  const Snapshot snapshot{.metadata = {.persistence_id = "account-7", .sequence_nr = 100}};
  PropsPtr props = MakeProps<RemoteSnapshotStore>({}, far_store, writer_base, RemoteSnapshotOptions{});
  ActorRef snapshots = system.SpawnSystemActor(*props, "remote-snapshots-main");
  Tell(snapshots, SaveSnapshot{.snapshot = snapshot});      // of 16 MiB: 128 KiB per message
  kit.Settle();
}

// persistence/protocol/plugin_id.h
absl::Status PluginIdExample() {
  FRAKTOR_RETURN_IF_ERROR(CheckPluginId("journal", "my journal"));     // InvalidArgument: ' ' at 2 is not allowed
  std::string name = SnapshotActorName("main");                        // "snapshots-main"
  EXPECT_EQ(name, "snapshots-main");
  return absl::OkStatus();
}
TEST(PersistenceHeaderExamples, PluginId) { EXPECT_TRUE(absl::IsInvalidArgument(PluginIdExample())); }

// persistence/protocol/snapshot_transfers.h
TEST(PersistenceHeaderExamples, SnapshotTransfers) {
  using protocol_internal::SnapshotTransfers;
  TestKit kit;
  const std::shared_ptr<SnapshotStorage> store = MemorySnapshotStore::Open({.toolbox = &kit.toolbox()}).value();
  const SnapshotStorage& storage = *store;
  SaveSnapshotPart part{.transfer = {.sender = 3, .number = 1}, .total_bytes = 5, .bytes = "state"};
  const Instant now = kit.toolbox().Now();
  bool is_complete = false;
  const auto Save = [&](const Snapshot& snapshot) { is_complete = snapshot.payload == "state"; };
  SnapshotTransfers transfers({.max_bytes = size_t{256} << 20, .timeout = absl::Seconds(30)});
  SnapshotTransfers::Upload upload = transfers.Take(part, storage.limits().max_snapshot_bytes, now);
  if (upload.step == SnapshotTransfers::Step::kComplete) Save(std::move(upload.snapshot));
  EXPECT_TRUE(is_complete);
}

// persistence/protocol/snapshot_parts.h
[[maybe_unused]] void PartsExample(ActorContext& context, ActorRef store, const std::string& payload) {
  SaveSnapshotPart part{.transfer = {.sender = 3, .number = 1}, .offset = 0, .total_bytes = payload.size()};
  part.bytes = payload.substr(part.offset, 1024);
  part.head = {.metadata = {.persistence_id = "account-7", .sequence_nr = 100}};     // offset 0 only
  context.Tell(store, std::move(part));                       // SnapshotPartsTaken, at the end SnapshotPartsSaved
}

// persistence/protocol/store_actor.h
namespace example {

struct StateActorOptions {
  CircuitBreakerOptions breaker = {};
  absl::Status Validate() const { return breaker.Validate(); }
};
class StateActor final : public protocol_internal::StoreActor<StateStorage, StateActorOptions> {
 public:
  StateActor(std::shared_ptr<StateStorage> storage, const StateActorOptions& options)
      : StoreActor("state", std::move(storage), options) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (Resume(message)) return absl::OkStatus();
    const auto load = [this] { return storage().Load("cart-7"); };
    Run(context, load, [this](absl::StatusOr<StoredState> loaded) { is_loaded_ = loaded.ok(); });
    return absl::OkStatus();
  }

 private:
  bool is_loaded_ = false;
};

}  // namespace example
TEST(PersistenceHeaderExamples, StoreActor) {
  TestKit kit;
  const std::shared_ptr<StateStorage> store = MemoryStateStore::Open({}).value();
  const ActorRef actor = kit.Spawn(*MakeProps<example::StateActor>({}, store, example::StateActorOptions{}));
  kit.Probe().Send(actor, std::string("load"));
  kit.Settle();
}

// clang-format on

}  // namespace
}  // namespace fraktor
