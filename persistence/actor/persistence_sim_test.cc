// Fifty persistent actors whose journal fails, rejects and delays a tenth of their writes, and that fail and are stopped
// at random. Whatever happens: what was acknowledged is recovered, a handler runs once in each incarnation, numbers rise
// and leave gaps only where the journal has rejected something, and in the end nobody waits for anything.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/testing/faulty_journal.h"
#include "fraktor/persistence/testing/faulty_snapshot_store.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor {
namespace {

constexpr int kActors = 50;
constexpr int kCommands = 40;  // in each round

// What is known of one persistence id.
struct Truth {
  // Events whose handlers have run, by their numbers.
  std::map<uint64_t, int64_t> acknowledged;
  // Numbers that the journal has rejected, and those of writes whose answers were lost.
  std::set<uint64_t> rejected;
  std::set<uint64_t> unknown;
};

struct World {
  std::string journal = "store";
  std::map<std::string, Truth> ids;
  int64_t next_value = 1;
  uint64_t handled = 0;
  uint64_t restarts = 0;
  uint64_t stops = 0;
};

// The stores, and what they have answered.
class Stores final : public SimulationPart, public JournalStorage {
 public:
  Stores(Simulation& sim, World& world, const JournalFaults& faults)
      : world_(world),
        executor_(SerialExecutor::Make(sim.toolbox(), {}).value()),
        journal_(MemoryJournal::Open({}).value()),
        snapshots_(MemorySnapshotStore::Open({.toolbox = &sim.toolbox()}).value()),
        faulty(*journal_, sim.toolbox(), *executor_, faults),
        faulty_snapshots(*snapshots_, sim.toolbox(), *executor_,
                         {.fail_save = 0.1, .max_delay = absl::Milliseconds(20)}, /*random_stream=*/2) {}

  Future<WriterOpened> OpenWriter(std::string id, std::optional<uint64_t> token) override {
    return faulty.OpenWriter(std::move(id), token);
  }
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override {
    struct Numbers {
      std::string id;
      uint64_t lowest;
      uint64_t highest;
    };
    std::vector<Numbers> numbers;
    for (const AtomicWrite& write : writes) {
      numbers.push_back({write.persistence_id(), write.lowest_sequence_nr(), write.highest_sequence_nr()});
    }
    return faulty.Write(std::move(writes))
        .MapResult([this, numbers = std::move(numbers)](absl::StatusOr<WriteResults> results) {
          for (size_t i = 0; i < numbers.size(); ++i) {
            for (uint64_t nr = numbers[i].lowest; nr <= numbers[i].highest; ++nr) {
              if (!results.ok()) {
                world_.ids[numbers[i].id].unknown.insert(nr);
              } else if (!results->empty() && !(*results)[i].ok()) {
                world_.ids[numbers[i].id].rejected.insert(nr);
              }
            }
          }
          return results;
        });
  }
  Future<EventBatch> Replay(ReplayPage page) override { return faulty.Replay(std::move(page)); }
  Future<uint64_t> HighestSequenceNr(std::string id) override { return faulty.HighestSequenceNr(std::move(id)); }
  Future<void> DeleteTo(std::string id, uint64_t to, uint64_t epoch) override {
    return faulty.DeleteTo(std::move(id), to, epoch);
  }
  Future<EventBatch> EventsByTag(TagPage page) override { return faulty.EventsByTag(std::move(page)); }
  Future<IdBatch> PersistenceIds(IdPage page) override { return faulty.PersistenceIds(page); }
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override {
    return faulty.AwaitAdvance(std::move(subject), after);
  }
  Future<void> Close() override { return faulty.Close(); }
  const JournalLimits& limits() const override { return faulty.limits(); }

  // What is stored, without any fault.
  std::map<uint64_t, int64_t> Stored(const std::string& id) {
    std::map<uint64_t, int64_t> events;
    EventBatch batch = journal_->Replay({.persistence_id = id, .limits = {.max_events = 1'000'000}}).Take().value();
    for (const StoredEvent& event : batch) {
      const auto value = CodecRegistry::BuiltIn().DecodeAs<int64_t>(
          {.manifest = event.manifest, .version = event.manifest_version, .bytes = event.payload});
      events.emplace(event.sequence_nr, value.value());
    }
    return events;
  }

 private:
  World& world_;
  std::unique_ptr<SerialExecutor> executor_;
  std::unique_ptr<MemoryJournal> journal_;
  std::unique_ptr<MemorySnapshotStore> snapshots_;

 public:
  FaultyJournal faulty;
  FaultySnapshotStore faulty_snapshots;
};

struct Put {
  enum class How : uint8_t { kPersist, kAsync, kAll, kNested, kDeferred } how;
  bool then_fails;
};
struct SaveNow {};
struct Fail {};
struct State {
  std::map<uint64_t, int64_t> events;
  uint64_t waiting = 0;  // handlers that have not run
};
struct GetState {
  using Reply = State;
};

class Teller final : public PersistentActor {
 public:
  Teller(World* world, std::string id) : world_(*world), id_(std::move(id)) {}

 private:
  std::string PersistenceId() const override { return id_; }
  std::string_view JournalPluginId() const override { return world_.journal; }
  const PersistentActorOptions& options() const override {
    static const PersistentActorOptions options = {.write_timeout = absl::Seconds(2),
                                                   .max_write_resends = 5,
                                                   .recovery_event_timeout = absl::Seconds(5),
                                                   .replay_page = {.max_events = 3}};
    return options;
  }

  int64_t Next() {
    ++waiting_;
    return world_.next_value++;
  }
  auto Handler() {
    return [this](int64_t value) { OnHandled(value); };
  }

  absl::Status ReceiveCommand(ActorContext& context, Envelope& command) override {
    if (const auto* const put = command.TryAs<Put>()) {
      switch (put->how) {
        case Put::How::kPersist:
          Persist(Next(), Handler());
          break;
        case Put::How::kAsync:
          PersistAsync(Next(), Handler());
          PersistAsync(Next(), Handler());
          break;
        case Put::How::kAll: {
          const int64_t first = Next();
          PersistAll(std::vector<int64_t>{first, Next(), Next()}, Handler());
          break;
        }
        case Put::How::kNested:
          PersistAsync(Next(), [this](int64_t value) {
            OnHandled(value);
            Persist(Next(), Handler());
          });
          break;
        case Put::How::kDeferred: {
          PersistAsync(Next(), Handler());
          ++waiting_;
          Defer(int64_t{0}, [this](int64_t) { --waiting_; });
          break;
        }
      }
      if (put->then_fails) return absl::InternalError("fails after it has persisted");
      return absl::OkStatus();
    }
    if (command.Is<SaveNow>()) {
      std::string state;
      for (const auto& [nr, value] : events_) absl::StrAppend(&state, nr, ":", value, ";");
      SaveSnapshot(std::move(state));
      return absl::OkStatus();
    }
    if (command.Is<Fail>()) return absl::InternalError("told to fail");
    if (command.Is<GetState>()) {
      context.Reply(State{events_, waiting_});
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status ReceiveRecover(ActorContext& /*context*/, Envelope& event) override {
    if (!events_.empty()) {
      EXPECT_GT(last_sequence_nr(), events_.rbegin()->first) << id_;
    }
    events_.emplace(last_sequence_nr(), event.As<int64_t>());
    return absl::OkStatus();
  }
  absl::Status ReceiveSnapshot(ActorContext& /*context*/, const SnapshotMetadata& /*metadata*/,
                               Envelope& state) override {
    for (absl::string_view entry : absl::StrSplit(state.As<std::string>(), ';', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, ':');
      uint64_t nr = 0;
      int64_t value = 0;
      EXPECT_TRUE(absl::SimpleAtoi(parts.first, &nr) && absl::SimpleAtoi(parts.second, &value));
      events_.emplace(nr, value);
    }
    return absl::OkStatus();
  }

  void OnHandled(int64_t value) {
    --waiting_;
    ++world_.handled;
    const uint64_t nr = last_sequence_nr();
    // Once, in order, and only here.
    EXPECT_TRUE(handled_.insert(value).second) << id_ << " has handled " << value << " twice";
    if (!events_.empty()) {
      EXPECT_GT(nr, events_.rbegin()->first) << id_;
    }
    events_.emplace(nr, value);
    // An event that was acknowledged is never another one later.
    EXPECT_EQ(world_.ids[id_].acknowledged.emplace(nr, value).first->second, value) << id_ << " " << nr;
  }
  void OnPersistRejected(const absl::Status& /*cause*/, Envelope& /*event*/, uint64_t nr) override {
    --waiting_;
    EXPECT_TRUE(world_.ids[id_].rejected.contains(nr)) << id_ << " " << nr;
  }
  absl::Status OnRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override {
    ++world_.restarts;
    return PersistentActor::OnRestart(context, reason, message);
  }
  void OnPersistFailure(const absl::Status&, Envelope&, uint64_t) override { ++world_.stops; }
  void OnRecoveryFailure(const absl::Status&, Envelope*) override { ++world_.stops; }

  World& world_;
  const std::string id_;
  std::map<uint64_t, int64_t> events_;
  std::set<int64_t> handled_;
  uint64_t waiting_ = 0;
};

// The way to a journal on another node: loses writes, and answers to them.
class LossyLink final : public ActorInstance {
 public:
  LossyLink(Simulation* sim, ActorRef journal) : sim_(*sim), journal_(journal) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (auto* const write = message.TryAs<WriteMessages>()) {
      if (sim_.Happens("lost write", 0.05)) return absl::OkStatus();
      clients_[write->instance_id] = write->client;
      write->client = context.self();
      // As another node would get it.
      write->only_events_are_answered = false;
      context.Forward(journal_);
      return absl::OkStatus();
    }
    if (const auto* const whole = message.TryAs<WriteMessagesSuccessful>()) {
      is_lost_ = sim_.Happens("lost answer", 0.05);
      return Answer(context, whole->instance_id);
    }
    if (const auto* const failed = message.TryAs<WriteMessagesFailed>()) {
      is_lost_ = false;
      return Answer(context, failed->instance_id);
    }
    if (const auto* const a = message.TryAs<WriteMessageSuccess>()) return Answer(context, a->instance_id);
    if (const auto* const a = message.TryAs<WriteMessageRejected>()) return Answer(context, a->instance_id);
    if (const auto* const a = message.TryAs<WriteMessageFailure>()) return Answer(context, a->instance_id);
    if (const auto* const a = message.TryAs<LoopMessageSuccess>()) return Answer(context, a->instance_id);
    context.Forward(journal_);
    return absl::OkStatus();
  }

 private:
  // Answers to one write come behind one another.
  absl::Status Answer(ActorContext& context, uint64_t instance_id) {
    if (!is_lost_) context.Forward(clients_[instance_id]);
    return absl::OkStatus();
  }

  Simulation& sim_;
  const ActorRef journal_;
  std::map<uint64_t, ActorRef> clients_;
  bool is_lost_ = false;
};

// PER-2, PER-12, PER-14, PER-19, P88, P89
TEST(PersistenceSimulation, LosesNothingThatWasAcknowledged) {
  uint64_t handled = 0;
  uint64_t restarts = 0;
  uint64_t stops = 0;
  uint64_t rejected = 0;
  const auto scenario = [&](Simulation& sim) {
    World world;
    Random random = sim.MakeRandom("commands");
    const bool loses_answers = random.Bernoulli(0.3);
    const bool has_link = random.Bernoulli(0.3);
    auto& stores = sim.AddPart<Stores>(sim, world,
                                       JournalFaults{.fail_write = 0.1,
                                                     .lose_answer = loses_answers ? 0.05 : 0.0,
                                                     .reject_write = 0.1,
                                                     .fail_open = 0.05,
                                                     .fail_read = 0.05,
                                                     .max_delay = absl::Milliseconds(30)});
    auto& persistence = sim.system().Extension<PersistenceExtension>();
    EXPECT_TRUE(persistence.Configure({.max_concurrent_recoveries = 10}).ok());
    // So many failures are no reason to give up here.
    JournalActorOptions options;
    options.breaker.max_failures = 1'000'000;
    options.max_writes_in_flight = 1 + random.Uniform(3);
    const std::shared_ptr<JournalStorage> storage(std::shared_ptr<void>(), &stores);
    EXPECT_TRUE(persistence.AddJournal("store", {.storage = storage, .options = options}).ok());
    if (has_link) {
      const ActorRef journal = persistence.Journal("store").value();
      const ActorRef link = sim.system().SpawnSystemActor(*MakeProps<LossyLink>({}, &sim, journal), "link");
      EXPECT_TRUE(persistence.AddJournal("remote", {.actor = link}).ok());
      world.journal = "remote";
    }
    EXPECT_TRUE(persistence
                    .AddSnapshotStore("main", {.storage = std::shared_ptr<SnapshotStorage>(std::shared_ptr<void>(),
                                                                                           &stores.faulty_snapshots)})
                    .ok());

    std::vector<ActorRef> tellers(kActors);
    const auto id_of = [](int i) { return absl::StrCat("teller-", i); };
    const auto start_those_that_have_ended = [&] {
      for (int i = 0; i < kActors; ++i) {
        if (sim.IsAlive(tellers[static_cast<size_t>(i)])) continue;
        tellers[static_cast<size_t>(i)] = sim.Spawn(*MakeProps<Teller>({}, &world, id_of(i)));
      }
    };
    for (int round = 0; round < 3; ++round) {
      start_those_that_have_ended();
      for (int n = 0; n < kCommands; ++n) {
        const ActorRef teller = tellers[random.Uniform(kActors)];
        const uint64_t choice = random.Uniform(20);
        if (choice == 0) {
          Tell(teller, Fail{});
        } else if (choice == 1) {
          sim.system().Stop(teller);
        } else if (choice < 4) {
          Tell(teller, SaveNow{});
        } else {
          const auto how = static_cast<Put::How>(random.Uniform(5));
          Tell(teller, Put{how, random.Bernoulli(0.1)});
        }
        if (random.Bernoulli(0.3)) sim.Advance(random.UniformDuration(absl::ZeroDuration(), absl::Milliseconds(10)));
      }
      sim.Advance(absl::Milliseconds(random.UniformIn(0, 200)));
    }
    // Now everything is well.
    stores.faulty.SetFaults({});
    stores.faulty_snapshots.SetFaults({});
    sim.Advance(absl::Minutes(2));
    start_those_that_have_ended();
    sim.Advance(absl::Minutes(2));
    for (int i = 0; i < kActors; ++i) {
      const std::string id = id_of(i);
      const absl::StatusOr<State> state =
          sim.system().AskAndWait<State>(tellers[static_cast<size_t>(i)], GetState{}, absl::Seconds(10));
      ASSERT_TRUE(state.ok()) << id << ": " << state.status();
      EXPECT_EQ(state->waiting, 0u) << id;
      const Truth& truth = world.ids[id];
      const std::map<uint64_t, int64_t> stored = stores.Stored(id);
      EXPECT_EQ(state->events, stored) << id;
      for (const auto& [nr, value] : truth.acknowledged) {
        const auto found = stored.find(nr);
        ASSERT_TRUE(found != stored.end()) << id << " has lost event " << nr;
        EXPECT_EQ(found->second, value) << id << " " << nr;
      }
      uint64_t expected = 1;
      for (const auto& [nr, value] : stored) {
        for (; expected < nr; ++expected) {
          EXPECT_TRUE(truth.rejected.contains(expected) || (loses_answers && truth.unknown.contains(expected)))
              << id << " has a gap at " << expected;
        }
        ++expected;
      }
      rejected += truth.rejected.size();
    }
    handled += world.handled;
    restarts += world.restarts;
    stops += world.stops;
    sim.Finish();
  };
  // Some of them twice, to see that they repeat.
  Simulate({.seeds = 20}, scenario);
  Simulate({.seeds = 180, .first_seed = 21, .twice = false}, scenario);
  // It has happened, and often.
  EXPECT_GT(handled, 1000u);
  EXPECT_GT(restarts, 100u);
  EXPECT_GT(stops, 100u);
  EXPECT_GT(rejected, 100u);
}

}  // namespace
}  // namespace fraktor
