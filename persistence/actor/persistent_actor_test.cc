#include "fraktor/persistence/actor/persistent_actor.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/config/remoting_config.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/timer/receive_timeout.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/recovery_permitter.h"
#include "fraktor/persistence/actor/replay_filter.h"
#include "fraktor/persistence/actor/scripted_actor.h"
#include "fraktor/persistence/actor/writer_base.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_disk.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

using actor_internal::BehaviorStack;

namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

using Lines = std::vector<std::string>;

// What the codecs of the system do not know.
struct Secret {};

struct Busy {
  std::string text;
  friend bool operator==(const Busy&, const Busy&) = default;
};

// An event with somebody in it.
struct Met {
  ActorRef who = {};
};

}  // namespace

template <>
struct Codec<Met> : FieldCodec<Met, &Met::who> {
  static constexpr std::string_view kManifest = "test.met";
};

namespace {

class PersistentActorTest : public testing::Test {
 protected:
  PersistentActorTest() : kit_(Options(&verdict_, &causes_)) {}

  static TestKitOptions Options(SupervisionDirective* verdict, std::vector<FailureCause>* causes) {
    TestKitOptions options;
    options.system.codecs = CodecSetup().Add<Met>().Build().value();
    options.system.guardian_strategy.decider = [verdict, causes](const Failure& failure) {
      causes->push_back(failure.cause);
      return failure.cause == FailureCause::kInitialization ? Stop() : *verdict;
    };
    return options;
  }

  // With stores in memory.
  void AddStores() {
    ASSERT_TRUE(persistence().AddJournal("main", {.storage = journal_}).ok());
    ASSERT_TRUE(persistence().AddSnapshotStore("main", {.storage = snapshots_}).ok());
  }
  // With a journal that answers a virtual moment later.
  void AddSlowStores(absl::Duration delay = absl::Milliseconds(10)) {
    journal_ = std::make_shared<KnobJournal>(
        MemoryJournalOptions{.toolbox = &kit_.toolbox(), .min_delay = delay, .max_delay = delay});
    AddStores();
  }
  // With the test in their place.
  void AddProbes() {
    ASSERT_TRUE(persistence().AddJournal("main", {.actor = journal_probe_.ref()}).ok());
    ASSERT_TRUE(persistence().AddSnapshotStore("main", {.actor = snapshot_probe_.ref()}).ok());
  }
  PersistenceExtension& persistence() { return kit_.system().Extension<PersistenceExtension>(); }

  // Opens the writer of "a" in the place of an actor, and returns the epoch.
  uint64_t NewEpoch() { return journal_->OpenWriter("a", std::nullopt).Take().value().epoch; }

  ActorRef Spawn(Script& script) { return kit_.Spawn(*MakeProps<ScriptedActor>({}, &script)); }
  ActorRef Spawn() { return Spawn(script_); }
  // Spawns it, and waits until it has recovered.
  ActorRef SpawnRecovered() {
    const ActorRef actor = Spawn();
    kit_.Advance(absl::Seconds(1));
    script_.log.clear();
    return actor;
  }
  void Run(ActorRef actor, std::function<absl::Status(ScriptedActor&)> todo) {
    probe_.Send(actor, Do{std::move(todo)});
  }
  // The same for what cannot fail.
  void RunVoid(ActorRef actor, std::function<void(ScriptedActor&)> todo) {
    Run(actor, [todo = std::move(todo)](ScriptedActor& a) {
      todo(a);
      return absl::OkStatus();
    });
  }
  // Answers the recovery of an actor that has no past, in the place of its stores.
  OpenWriter RecoverByProbes() {
    const auto open = journal_probe_.Expect<OpenWriter>();
    journal_probe_.Send(open.client, WriterIsOpen{1, 0, open.instance_id});
    snapshot_probe_.Expect<LoadSnapshot>();
    snapshot_probe_.Send(open.client, LoadSnapshotResult{.to_sequence_nr = kMax, .instance_id = open.instance_id});
    journal_probe_.Expect<ReplayMessages>();
    journal_probe_.Send(open.client, RecoverySuccess{0, open.instance_id});
    TakeLog();
    return open;
  }
  void Say(ActorRef actor, std::string text) { probe_.Send(actor, std::move(text)); }
  Lines TakeLog() {
    kit_.Advance(absl::Seconds(1));
    return std::exchange(script_.log, {});
  }
  void StopAndWait(ActorRef actor) {
    kit_.system().Stop(actor);
    probe_.ExpectTerminated(actor);
  }
  // Starts an actor that recovers in this way, and stops it. Returns what it has logged.
  Lines RecoverBy(const Recovery& recovery) {
    script_.recovery = recovery;
    const ActorRef actor = Spawn();
    Lines log = TakeLog();
    if (kit_.IsAlive(actor)) StopAndWait(actor);
    script_.log.clear();
    return log;
  }
  // Stores texts under "a", as an actor of the past did.
  void Store(std::vector<std::string> texts) {
    const ActorRef past = Spawn();
    for (std::string& text : texts) Say(past, std::move(text));
    kit_.Advance(absl::Seconds(1));
    StopAndWait(past);
    script_.log.clear();
  }
  // What a new actor recovers.
  Lines Recovered() {
    Script& fresh = scripts_.emplace_back();
    fresh.id = script_.id;
    fresh.recovery.allow_deleted_events = true;
    const ActorRef actor = Spawn(fresh);
    kit_.Advance(absl::Seconds(1));
    StopAndWait(actor);
    Lines lines;
    for (const std::string& line : fresh.log) {
      if (absl::StartsWith(line, "recover ")) lines.push_back(line.substr(8));
    }
    return lines;
  }

  // They outlive the actors.
  std::deque<Script> scripts_;
  Script script_;
  SupervisionDirective verdict_ = Restart();
  std::vector<FailureCause> causes_;
  TestKit kit_;
  TestProbe probe_ = kit_.Probe();
  TestProbe journal_probe_ = kit_.Probe("journal");
  TestProbe snapshot_probe_ = kit_.Probe("snapshots");
  std::shared_ptr<KnobJournal> journal_ = std::make_shared<KnobJournal>();
  std::shared_ptr<MemorySnapshotStore> snapshots_ = MemorySnapshotStore::Open({.toolbox = &kit_.toolbox()}).value();
};

// ---- The extension and the start.

// PER-17
TEST_F(PersistentActorTest, FindsItsStoresThroughTheExtension) {
  AddStores();
  EXPECT_TRUE(kit_.IsAlive(persistence().Journal().value()));
  EXPECT_EQ(persistence().Journal("main").value(), persistence().Journal().value());
  EXPECT_TRUE(absl::IsNotFound(persistence().Journal("other").status()));
  EXPECT_TRUE(absl::IsAlreadyExists(persistence().AddJournal("main", {.storage = journal_})));
  EXPECT_TRUE(absl::IsInvalidArgument(persistence().AddJournal("", {.storage = journal_})));
  EXPECT_TRUE(absl::IsInvalidArgument(persistence().AddJournal("none", {})));
  EXPECT_TRUE(absl::IsInvalidArgument(persistence().Configure({.max_concurrent_recoveries = 0})));
  Spawn();
  kit_.Settle();
  EXPECT_TRUE(absl::IsFailedPrecondition(persistence().Configure({})));
  // One that has ended is started again.
  const ActorRef ended = persistence().Journal().value();
  StopAndWait(ended);
  EXPECT_NE(persistence().Journal().value(), ended);
}

// P122
TEST_F(PersistentActorTest, AsksForTheCodecWithoutStartingTheJournal) {
  AddStores();
  EXPECT_TRUE(persistence().CodecOf().ok());
  EXPECT_FALSE(kit_.system().Resolve("/system/journal-main").ok());
  EXPECT_TRUE(persistence().Journal().ok());
  EXPECT_TRUE(kit_.system().Resolve("/system/journal-main").ok());
}

// P44, PER-18
TEST_F(PersistentActorTest, FailsAtTheStartWithoutAPersistenceId) {
  AddStores();
  for (const std::string blank : {"", " \t"}) {
    script_.id = blank;
    probe_.ExpectTerminated(Spawn());
  }
}

// P45
TEST_F(PersistentActorTest, FailsAtTheStartIfAPluginIsMissing) {
  probe_.ExpectTerminated(Spawn());
  AddStores();
  script_.journal = "other";
  probe_.ExpectTerminated(Spawn());
  script_.journal = "";
  script_.snapshots = "other";
  probe_.ExpectTerminated(Spawn());
  script_.snapshots = "";
  const ActorRef actor = SpawnRecovered();
  EXPECT_TRUE(kit_.IsAlive(actor));
}

// PER-10
TEST(PersistentActorState, FollowsOneAnotherInOrder) {
  using State = PersistentActorState;
  const std::vector<State> all = {State::kWaitingRecoveryPermit, State::kRecoveryStarted, State::kRecovering,
                                  State::kProcessingCommands, State::kPersistingEvents};
  const auto is_legal = [](State from, State to) {
    switch (from) {
      case State::kWaitingRecoveryPermit:
        return to == State::kRecoveryStarted;
      case State::kRecoveryStarted:
        return to == State::kRecovering || to == State::kProcessingCommands || to == State::kPersistingEvents;
      case State::kRecovering:
        return to == State::kProcessingCommands || to == State::kPersistingEvents;
      case State::kProcessingCommands:
        return to == State::kPersistingEvents;
      case State::kPersistingEvents:
        return to == State::kProcessingCommands;
    }
    return false;
  };
  for (const State from : all) {
    for (const State to : all) EXPECT_EQ(CheckTransition(from, to).ok(), is_legal(from, to)) << NameOf(from);
  }
  EXPECT_TRUE(absl::StrContains(std::string(CheckTransition(State::kRecovering, State::kRecoveryStarted).message()),
                                "recovery_started"));
}

// ---- Recovery.

// PER-14: a store on another node may answer twice, or so late that the actor was answered already.
TEST_F(PersistentActorTest, IgnoresAnswersThatItDoesNotWaitForWhileItRecovers) {
  AddProbes();
  script_.recovery.replay_max = 3;
  const ActorRef actor = Spawn();
  const auto open = journal_probe_.Expect<OpenWriter>();
  const uint64_t instance = open.instance_id;
  const auto send = [&](auto answer) { journal_probe_.Send(open.client, std::move(answer)); };
  const auto page_of = [&](uint64_t nr, bool is_last) {
    ReplayedMessages page{.is_last = is_last, .instance_id = instance};
    StoredEvent event;
    event.persistence_id = "a";
    event.sequence_nr = nr;
    event.manifest = "fraktor.string";
    event.payload = page.events.Keep(std::to_string(nr));
    page.events.Add(event);
    page.events.Finish(nr + 1, is_last);
    return page;
  };
  LoadSnapshotResult found{.found = true, .snapshot = {}, .to_sequence_nr = kMax, .instance_id = instance};
  found.snapshot.metadata = {.persistence_id = "a", .sequence_nr = 3};
  found.snapshot.manifest = "fraktor.string";
  found.snapshot.payload = "state";
  // Nothing is asked of the snapshot store and of the replay yet.
  send(LoadSnapshotResult(found));
  send(LoadSnapshotFailed{absl::UnavailableError("early"), instance});
  send(page_of(1, false));
  send(RecoverySuccess{6, instance});
  send(ReplayMessagesFailure{absl::UnavailableError("early"), instance});
  snapshot_probe_.ExpectNoMessage(absl::Seconds(1));
  send(WriterIsOpen{9, 6, instance});
  send(WriterIsOpen{9, 6, instance});
  send(OpenWriterFailure{absl::UnavailableError("late"), instance});
  snapshot_probe_.Expect<LoadSnapshot>();
  snapshot_probe_.ExpectNoMessage(absl::Seconds(1));
  EXPECT_EQ(TakeLog(), Lines());
  send(LoadSnapshotResult(found));
  EXPECT_EQ(journal_probe_.Expect<ReplayMessages>().from_sequence_nr, 4u);
  send(page_of(4, false));
  EXPECT_EQ(journal_probe_.Expect<ReplayMessages>().from_sequence_nr, 5u);
  // In the middle of the replay.
  send(LoadSnapshotResult(found));
  send(LoadSnapshotFailed{absl::UnavailableError("late"), instance});
  send(WriterIsOpen{9, 6, instance});
  send(page_of(4, false));
  journal_probe_.ExpectNoMessage(absl::Seconds(1));
  send(page_of(5, false));
  EXPECT_EQ(journal_probe_.Expect<ReplayMessages>().max_events, 1u);
  send(page_of(6, true));
  send(page_of(6, true));
  send(RecoverySuccess{6, instance});
  send(RecoverySuccess{6, instance});
  send(LoadSnapshotResult(found));
  EXPECT_EQ(TakeLog(), (Lines{"snapshot 3 state", "recover 4", "recover 5", "recover 6", "completed 6"}));
  EXPECT_TRUE(kit_.IsAlive(actor));
}

// P46, PER-11, PER-19, PER-8
TEST_F(PersistentActorTest, OpensTheWriterThenLoadsTheSnapshotThenReplays) {
  AddProbes();
  script_.token = 9;
  const ActorRef actor = Spawn();
  const auto open = journal_probe_.Expect<OpenWriter>();
  EXPECT_EQ(open.persistence_id, "a");
  EXPECT_EQ(open.token, 9u);
  const uint64_t instance = open.instance_id;
  snapshot_probe_.ExpectNoMessage(absl::Seconds(1));
  journal_probe_.Send(open.client, WriterIsOpen{9, 5, instance});
  const auto load = snapshot_probe_.Expect<LoadSnapshot>();
  EXPECT_EQ(load.persistence_id, "a");
  EXPECT_EQ(load.instance_id, instance);
  journal_probe_.ExpectNoMessage(absl::Seconds(1));
  LoadSnapshotResult found{.found = true, .snapshot = {}, .to_sequence_nr = kMax, .instance_id = instance};
  found.snapshot.metadata = {.persistence_id = "a", .sequence_nr = 3};
  found.snapshot.manifest = "fraktor.string";
  found.snapshot.payload = "state";
  // An answer to somebody else changes nothing.
  found.instance_id = instance + 1;
  snapshot_probe_.Send(load.client, LoadSnapshotResult(found));
  journal_probe_.ExpectNoMessage(absl::Seconds(1));
  found.instance_id = instance;
  snapshot_probe_.Send(load.client, LoadSnapshotResult(found));
  const auto replay = journal_probe_.Expect<ReplayMessages>();
  EXPECT_EQ(replay.from_sequence_nr, 4u);
  EXPECT_EQ(replay.to_sequence_nr, kMax);
  journal_probe_.Send(replay.client, RecoverySuccess{5, instance});
  EXPECT_EQ(TakeLog(), (Lines{"snapshot 3 state", "completed 5"}));
  EXPECT_TRUE(kit_.IsAlive(actor));
}

// P47, PER-11
TEST_F(PersistentActorTest, HandlesCommandsAfterTheRecoveryInTheOrderInWhichTheyCame) {
  AddSlowStores();
  Store({"x", "y"});
  script_.on_recover = [](ScriptedActor& actor, Envelope& event) {
    if (event.As<std::string>() == "x") Tell(actor.context().self(), std::string("own"));
    return absl::OkStatus();
  };
  script_.on_text = [](ScriptedActor&, const std::string&) { return absl::OkStatus(); };
  const ActorRef actor = Spawn();
  Say(actor, "1");
  Say(actor, "2");
  kit_.Advance(absl::Seconds(1));
  Say(actor, "3");
  EXPECT_EQ(TakeLog(),
            (Lines{"recover x", "recover y", "completed 2", "command 1", "command 2", "command own", "command 3"}));
}

// P48
TEST_F(PersistentActorTest, GetsItsEventsBackAfterARestartButNotWhatItDidNotPersist) {
  AddStores();
  const ActorRef actor = SpawnRecovered();
  Say(actor, "x");
  Say(actor, "y");
  RunVoid(actor, [](ScriptedActor& a) { a.events.push_back("not persisted"); });
  Run(actor, [](ScriptedActor&) { return absl::InternalError("oops"); });
  Lines events;
  RunVoid(actor, [&](ScriptedActor& a) { events = a.events; });
  EXPECT_EQ(TakeLog(), (Lines{"command x", "event x", "command y", "event y", "restart on Do", "stopped", "recover x",
                              "recover y", "completed 2"}));
  EXPECT_EQ(events, (Lines{"x", "y"}));
}

// P50, P52
TEST_F(PersistentActorTest, MayPersistWhenTheRecoveryIsCompletedAndThatGoesBeforeCommands) {
  AddSlowStores();
  script_.on_completed = [](ScriptedActor& actor) {
    EXPECT_FALSE(actor.is_recovering());
    actor.PersistAsync(std::string("first"), actor.Handler());
    actor.Persist(std::string("second"), actor.Handler());
    return absl::OkStatus();
  };
  const ActorRef actor = Spawn();
  Say(actor, "x");
  EXPECT_EQ(TakeLog(), (Lines{"completed 0", "event first", "event second", "command x", "event x"}));
}

// P51, PER-18
TEST_F(PersistentActorTest, MustNotPersistWhileItRecovers) {
  AddStores();
  Store({"x"});
  const std::vector<std::function<void(ScriptedActor&)>> misuses = {
      [](ScriptedActor& a) { a.Persist(std::string("y"), a.Handler()); },
      [](ScriptedActor& a) { a.PersistAsync(std::string("y"), a.Handler()); },
      [](ScriptedActor& a) { a.PersistAll(std::vector<std::string>{"y"}, a.Handler()); },
      [](ScriptedActor& a) { a.Defer(std::string("y"), a.Handler()); },
      [](ScriptedActor& a) { a.DeferAsync(std::string("y"), a.Handler()); },
      // It would have the number of an event that is yet to come, and the events after it would be applied twice.
      [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); },
  };
  for (const auto& misuse : misuses) {
    script_.on_recover = [&](ScriptedActor& a, Envelope&) {
      misuse(a);
      return absl::OkStatus();
    };
    probe_.ExpectTerminated(Spawn());
    const Lines log = TakeLog();
    ASSERT_EQ(log.size(), 3u);
    EXPECT_TRUE(absl::StartsWith(log[1], "recovery failed on x: event 1 of \"a\", a ")) << log[1];
    EXPECT_TRUE(absl::StrContains(log[1], ": \"a\" calls ")) << log[1];
  }
  script_.on_recover = nullptr;
  EXPECT_FALSE(snapshots_->Load("a", {}).Take()->has_value());
  EXPECT_EQ(Recovered(), (Lines{"x"}));
}

// PER-7, P54, P55, P56, P58, P102
TEST_F(PersistentActorTest, RecoversFromWhatItIsTold) {
  AddStores();
  const ActorRef past = SpawnRecovered();
  for (int i = 1; i <= 6; ++i) {
    Say(past, "e" + std::to_string(i));
    if (i == 2 || i == 4) {
      RunVoid(past, [i](ScriptedActor& a) { a.SaveSnapshot("s" + std::to_string(i)); });
    }
  }
  kit_.Advance(absl::Seconds(1));
  StopAndWait(past);
  script_.log.clear();
  const auto recover = [&](const Recovery& recovery) {
    script_.recovery = recovery;
    const ActorRef actor = Spawn();
    kit_.Advance(absl::Seconds(1));
    Lines log = std::exchange(script_.log, {});
    StopAndWait(actor);
    script_.log.clear();
    return log;
  };
  EXPECT_EQ(recover({}), (Lines{"snapshot 4 s4", "recover e5", "recover e6", "completed 6"}));
  EXPECT_EQ(recover({.to_sequence_nr = 3}), (Lines{"snapshot 2 s2", "recover e3", "completed 6"}));
  EXPECT_EQ(recover({.from_snapshot = {.max_sequence_nr = 2}}),
            (Lines{"snapshot 2 s2", "recover e3", "recover e4", "recover e5", "recover e6", "completed 6"}));
  EXPECT_EQ(recover({.from_snapshot = SnapshotSelectionCriteria::None()}),
            (Lines{"recover e1", "recover e2", "recover e3", "recover e4", "recover e5", "recover e6", "completed 6"}));
  EXPECT_EQ(recover({.replay_max = 1}), (Lines{"snapshot 4 s4", "recover e5", "completed 6"}));
  EXPECT_EQ(recover(Recovery::None()), (Lines{"completed 6"}));
  // New events go behind what is stored.
  script_.recovery = Recovery::None();
  const ActorRef actor = SpawnRecovered();
  Say(actor, "e7");
  RunVoid(actor, [](ScriptedActor& a) { a.Log(std::to_string(a.last_sequence_nr())); });
  EXPECT_EQ(TakeLog(), (Lines{"command e7", "event e7", "7"}));
}

// P59, PER-13
TEST_F(PersistentActorTest, StopsIfAnEventOfThePastCannotBeApplied) {
  AddStores();
  Store({"x", "y"});
  const ActorRef thrower = [&] {
    script_.on_recover = [](ScriptedActor&, Envelope& event) -> absl::Status {
      if (event.As<std::string>() == "y") throw std::runtime_error("cannot");
      return absl::OkStatus();
    };
    return Spawn();
  }();
  Say(thrower, "lost");
  kit_.ExpectDeadLetters<std::string>(1, [&] { probe_.ExpectTerminated(thrower); });
  const Lines log = TakeLog();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0], "recover x");
  EXPECT_TRUE(absl::StartsWith(log[1], "recovery failed on y: event 2 of \"a\", a ")) << log[1];
  EXPECT_TRUE(absl::StrContains(log[1], "mend the actor, or adapt the event")) << log[1];
  EXPECT_TRUE(absl::EndsWith(log[1], ": ReceiveRecover threw: cannot")) << log[1];
  EXPECT_EQ(log[2], "stopped");
}

// A codec that cannot read everything.
class Picky final : public EventCodec {
 public:
  explicit Picky(const ActorSystem& system) : codec_(system) {}

  absl::Status Encode(const Envelope& event, PersistentRepr& repr) const override { return codec_.Encode(event, repr); }
  absl::Status Decode(const StoredEvent& stored, EventSink sink) const override {
    if (stored.payload == "bad") return absl::InternalError("unreadable");
    if (stored.payload == "worse") throw std::runtime_error("no idea");
    return codec_.Decode(stored, sink);
  }
  absl::Status EncodeState(const Envelope& state, Snapshot& snapshot) const override {
    return codec_.EncodeState(state, snapshot);
  }
  absl::StatusOr<EnvelopePtr> DecodeState(const Snapshot& snapshot) const override {
    return codec_.DecodeState(snapshot);
  }

 private:
  const RegistryEventCodec codec_;
};

// PER-13
TEST_F(PersistentActorTest, NamesTheEventThatCannotBeRead) {
  ASSERT_TRUE(
      persistence().AddJournal("main", {.storage = journal_, .codec = std::make_shared<Picky>(kit_.system())}).ok());
  ASSERT_TRUE(persistence().AddSnapshotStore("main", {.storage = snapshots_}).ok());
  Store({"x", "bad"});
  probe_.ExpectTerminated(Spawn());
  EXPECT_EQ(TakeLog(), (Lines{"recover x", "recovery failed on nothing: event 2 of \"a\": unreadable", "stopped"}));
  script_.id = "b";
  Store({"worse"});
  probe_.ExpectTerminated(Spawn());
  EXPECT_EQ(TakeLog(),
            (Lines{"recovery failed on nothing: event 1 of \"b\": the codec of an event threw: no idea", "stopped"}));
}

// PER-13: records have checksums, so it is not the disk.
TEST_F(PersistentActorTest, SaysThatACodecHasChangedIfItWantsMoreThanWasWritten) {
  AddStores();
  const auto store = [this](const std::string& manifest) {
    std::vector<AtomicWrite> writes;
    writes.push_back(
        AtomicWrite::Make(PersistentRepr{.persistence_id = script_.id, .sequence_nr = 1, .manifest = manifest})
            .value());
    ASSERT_TRUE(journal_->inner->Write(std::move(writes)).Take().ok());
  };
  store("fraktor.int64");
  probe_.ExpectTerminated(Spawn());
  Lines log = TakeLog();
  ASSERT_FALSE(log.empty());
  EXPECT_TRUE(absl::StartsWith(log[0], "recovery failed on nothing: event 1 of \"a\": ")) << log[0];
  EXPECT_TRUE(absl::StrContains(log[0], "it ends before all of it was read. The bytes are as they were written"))
      << log[0];
  EXPECT_TRUE(
      absl::StrContains(log[0], "wants other fields, or more, than were written. If a field was added, raise kVersion"))
      << log[0];
  // That is not what is wrong with others.
  script_.id = "b";
  store("unknown");
  probe_.ExpectTerminated(Spawn());
  log = TakeLog();
  ASSERT_FALSE(log.empty());
  EXPECT_FALSE(absl::StrContains(log[0], "kVersion")) << log[0];
}

// PER-7: a journal that was opened in spite of a damaged log lacks what its actors' snapshots have seen.
TEST_F(PersistentActorTest, WarnsThatEventsAreLostIfItsSnapshotIsAboveTheHighestNumber) {
  AddStores();
  Store({"x", "y"});
  Snapshot snapshot{.metadata = {.persistence_id = "a", .sequence_nr = 2}, .manifest = "fraktor.string"};
  ASSERT_TRUE(snapshots_->Save(snapshot, NewEpoch()).Take().ok());
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "lost"}, 0, [&] { StopAndWait(SpawnRecovered()); });
  snapshot.metadata.sequence_nr = 9;
  ASSERT_TRUE(snapshots_->Save(snapshot, NewEpoch()).Take().ok());
  kit_.ExpectLog({.level = LogLevel::kWarning,
                  .contains = "the snapshot of \"a\" is of event 9, and the highest number in the journal is 2: events "
                              "3..9 were lost from the journal"},
                 1, [&] { Spawn(); });
  EXPECT_EQ(TakeLog(), (Lines{"stopped", "snapshot 9 ", "completed 9"}));
}

// PER-2, PER-14: a backup was restored under a living writer, which is on another node.
TEST_F(PersistentActorTest, StopsIfItsJournalHasLostEvents) {
  const auto disk = std::make_shared<MemoryDisk>();
  journal_ = std::make_shared<KnobJournal>(MemoryJournalOptions{.disk = disk});
  AddStores();
  const ActorRef actor = SpawnRecovered();
  Say(actor, "1");
  TakeLog();
  const size_t backup = disk->size();
  Say(actor, "2");
  // A rejected number leaves a gap, which is no loss.
  journal_->reject = [](const AtomicWrite& write) { return write.lowest_sequence_nr() == 3; };
  Say(actor, "3");
  Say(actor, "4");
  EXPECT_EQ(TakeLog(), (Lines{"command 2", "event 2", "command 3", "rejected 3 3", "command 4", "event 4"}));

  disk->Truncate(backup);
  journal_->inner = MemoryJournal::Open({.disk = disk}).value();
  Say(actor, "5");
  probe_.ExpectTerminated(actor);
  EXPECT_EQ(script_.log, (Lines{"command 5", "failed 5 5", "stopped"}));
  ASSERT_EQ(script_.failures.size(), 1u);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(script_.failures[0]), JournalErrorKind::kEventsLost);
  EXPECT_TRUE(absl::StrContains(script_.failures[0].message(),
                                "event 5 of \"a\": the writer knows that the events up to 4 were stored, but the "
                                "highest number in the journal is 1"))
      << script_.failures[0];
  EXPECT_EQ(Recovered(), Lines{"1"});
}

// PER-2: its snapshot may know more than the journal has. It goes on behind the snapshot.
TEST_F(PersistentActorTest, WritesBehindASnapshotThatIsAboveTheHighestNumber) {
  AddStores();
  Store({"x", "y"});
  ASSERT_TRUE(
      snapshots_
          ->Save({.metadata = {.persistence_id = "a", .sequence_nr = 9}, .manifest = "fraktor.string"}, NewEpoch())
          .Take()
          .ok());
  const ActorRef actor = SpawnRecovered();
  Say(actor, "10");
  Say(actor, "11");
  EXPECT_EQ(TakeLog(), (Lines{"command 10", "event 10", "command 11", "event 11"}));
}

// P60
TEST_F(PersistentActorTest, StopsIfTheJournalCannotReplay) {
  AddStores();
  Store({"x"});
  journal_->replay_failure = absl::DataLossError("torn");
  probe_.ExpectTerminated(Spawn());
  EXPECT_EQ(TakeLog(), (Lines{"recovery failed on nothing: \"a\": torn", "stopped"}));
  journal_->replay_failure = absl::OkStatus();
  journal_->open_failure = absl::UnavailableError("no disk");
  probe_.ExpectTerminated(Spawn());
  EXPECT_EQ(TakeLog(), (Lines{"recovery failed on nothing: \"a\": no disk", "stopped"}));
}

// P61, P62, P112, PER-18
TEST_F(PersistentActorTest, StopsIfTheSnapshotIsNotTakenUnlessItIsOptional) {
  AddStores();
  Store({"x"});
  script_.on_recover_from = []() -> Recovery { throw std::runtime_error("no idea"); };
  probe_.ExpectTerminated(Spawn());
  EXPECT_EQ(TakeLog(), (Lines{"recovery failed on nothing: RecoverFrom threw: no idea", "stopped"}));
  script_.on_recover_from = nullptr;

  // A store that fails to load it.
  ASSERT_TRUE(persistence().AddSnapshotStore("broken", {.actor = snapshot_probe_.ref()}).ok());
  script_.snapshots = "broken";
  const auto fail_to_load = [this] {
    const ActorRef actor = Spawn();
    const auto load = snapshot_probe_.Expect<LoadSnapshot>();
    snapshot_probe_.Send(load.client, LoadSnapshotFailed{absl::UnavailableError("no disk"), load.instance_id});
    return actor;
  };
  probe_.ExpectTerminated(fail_to_load());
  EXPECT_EQ(TakeLog(), (Lines{"recovery failed on nothing: \"a\": no disk", "stopped"}));
  script_.options.snapshot_is_optional = true;
  const ActorRef recovered = fail_to_load();
  EXPECT_EQ(TakeLog(), (Lines{"recover x", "completed 1"}));
  StopAndWait(recovered);
  script_.log.clear();
  script_.snapshots = {};

  // One that the actor itself refuses is no failure to load.
  ASSERT_TRUE(
      snapshots_
          ->Save(
              {.metadata = {.persistence_id = "a", .sequence_nr = 1}, .manifest = "fraktor.string", .payload = "bad"},
              NewEpoch())
          .Take()
          .ok());
  probe_.ExpectTerminated(Spawn());
  EXPECT_EQ(TakeLog(), (Lines{"snapshot 1 bad", "recovery failed on nothing: bad snapshot", "stopped"}));
}

// PER-11, PER-18: rather than to go on with a wrong state.
TEST_F(PersistentActorTest, FailsItsRecoveryIfEventsAreDeletedThatNoSnapshotCovers) {
  AddStores();
  Store({"1", "2", "3", "4", "5"});
  ASSERT_TRUE(
      snapshots_
          ->Save({.metadata = {.persistence_id = "a", .sequence_nr = 2}, .manifest = "fraktor.string", .payload = "12"},
                 NewEpoch())
          .Take()
          .ok());
  ASSERT_TRUE(
      snapshots_
          ->Save(
              {.metadata = {.persistence_id = "a", .sequence_nr = 4}, .manifest = "fraktor.string", .payload = "1234"},
              NewEpoch())
          .Take()
          .ok());
  ASSERT_TRUE(journal_->DeleteTo("a", 3, NewEpoch()).Take().ok());
  const auto expect_failure = [&](const Recovery& recovery, const std::string& events) {
    const Lines log = RecoverBy(recovery);
    ASSERT_GE(log.size(), 2u);
    EXPECT_TRUE(absl::StartsWith(log[log.size() - 2], absl::StrCat("recovery failed on nothing: \"a\": events ", events,
                                                                   " are deleted and there is no snapshot that covers "
                                                                   "them")))
        << log[log.size() - 2];
    EXPECT_TRUE(absl::StrContains(log[log.size() - 2], "allow_deleted_events")) << log[log.size() - 2];
    EXPECT_EQ(log.back(), "stopped");
  };
  // All is well with a snapshot that covers them, and where none of them is wanted.
  EXPECT_EQ(RecoverBy({}), (Lines{"snapshot 4 1234", "recover 5", "completed 5"}));
  EXPECT_EQ(RecoverBy({.to_sequence_nr = 2}), (Lines{"snapshot 2 12", "completed 5"}));
  EXPECT_EQ(RecoverBy({.from_snapshot = SnapshotSelectionCriteria::None(), .replay_max = 0}), (Lines{"completed 5"}));
  EXPECT_EQ(RecoverBy(Recovery::None()), (Lines{"completed 5"}));
  // Bounds that leave the snapshot out.
  expect_failure({.to_sequence_nr = 3}, "3..3");
  expect_failure({.to_sequence_nr = 1}, "1..1");
  expect_failure({.from_snapshot = SnapshotSelectionCriteria::None()}, "1..3");
  expect_failure({.from_snapshot = SnapshotSelectionCriteria::None(), .replay_max = 1}, "1..3");
  // Snapshots that are lost.
  ASSERT_TRUE(snapshots_->DeleteMatching("a", {.min_sequence_nr = 3}, NewEpoch()).Take().ok());
  expect_failure({}, "3..3");
  ASSERT_TRUE(snapshots_->DeleteMatching("a", {}, NewEpoch()).Take().ok());
  expect_failure({}, "1..3");
  ASSERT_TRUE(journal_->DeleteTo("a", kMax, NewEpoch()).Take().ok());
  expect_failure({}, "1..5");
  // It is meant to be so.
  EXPECT_EQ(RecoverBy({.allow_deleted_events = true}), (Lines{"completed 5"}));
}

// PER-11, PER-18: as after a rollback to an older program.
TEST_F(PersistentActorTest, RecoversFromAnOlderSnapshotIfItsCodecCannotReadTheNewest) {
  AddStores();
  Store({"1", "2", "3", "4", "5"});
  const auto save = [this](uint64_t nr, std::string manifest, std::string payload) {
    Snapshot snapshot{.metadata = {.persistence_id = "a", .sequence_nr = nr},
                      .manifest = std::move(manifest),
                      .payload = std::move(payload)};
    ASSERT_TRUE(snapshots_->Save(std::move(snapshot), NewEpoch()).Take().ok());
  };
  const auto expect_failure = [&](const Recovery& recovery, const std::string& text) {
    const Lines log = RecoverBy(recovery);
    ASSERT_GE(log.size(), 2u);
    EXPECT_TRUE(absl::StartsWith(log[log.size() - 2], "recovery failed on nothing: ")) << log[log.size() - 2];
    EXPECT_TRUE(absl::StrContains(log[log.size() - 2], text)) << log[log.size() - 2];
    EXPECT_EQ(log.back(), "stopped");
  };
  save(2, "fraktor.string", "12");
  save(3, "of a newer program", "");
  save(4, "of a newer program", "");
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "cannot be read and is passed over"}, 2, [&] {
    EXPECT_EQ(RecoverBy({}), (Lines{"snapshot 2 12", "recover 3", "recover 4", "recover 5", "completed 5"}));
  });
  EXPECT_EQ(RecoverBy({.to_sequence_nr = 4}), (Lines{"snapshot 2 12", "recover 3", "recover 4", "completed 5"}));
  // The bounds hold for the older one too. Without any, all events take its place.
  EXPECT_EQ(RecoverBy({.from_snapshot = {.min_sequence_nr = 3}}),
            (Lines{"recover 1", "recover 2", "recover 3", "recover 4", "recover 5", "completed 5"}));
  // The bound on their number may end the replay below the snapshot.
  expect_failure({.replay_max = 2}, "snapshot 4 of \"a\": ");
  // The older one needs events that are deleted. The actor cannot do without them.
  ASSERT_TRUE(journal_->DeleteTo("a", 2, NewEpoch()).Take().ok());
  EXPECT_EQ(RecoverBy({}), (Lines{"snapshot 2 12", "recover 3", "recover 4", "recover 5", "completed 5"}));
  ASSERT_TRUE(journal_->DeleteTo("a", 3, NewEpoch()).Take().ok());
  expect_failure({}, "\"a\": snapshot 4 cannot be read (snapshot 4 of \"a\": ");
  expect_failure({}, "), and the older snapshot 2 cannot take its place: events 3..3 are deleted");
  expect_failure({.allow_deleted_events = true}, "events 3..3 are deleted");
  expect_failure({.from_snapshot = {.min_sequence_nr = 3}},
                 "events alone cannot take its place: events 1..3 are deleted");
  // A newer one that it can read is as good as ever.
  save(5, "fraktor.string", "12345");
  EXPECT_EQ(RecoverBy({}), (Lines{"snapshot 5 12345", "completed 5"}));
  // Events that were lost are not there either.
  save(9, "of a newer program", "");
  expect_failure({},
                 "the older snapshot 5 cannot take its place: the highest number in the journal is 5: events 6..9 "
                 "are lost");
}

// P114: nobody has added the store that has the snapshots.
TEST_F(PersistentActorTest, FailsItsRecoveryWithoutTheStoreOfItsSnapshots) {
  ASSERT_TRUE(persistence().AddJournal("main", {.storage = journal_}).ok());
  Store({"1", "2"});
  ASSERT_TRUE(journal_->DeleteTo("a", 1, NewEpoch()).Take().ok());
  probe_.ExpectTerminated(Spawn());
  const Lines log = TakeLog();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_TRUE(absl::StrContains(log[0], "events 1..1 are deleted")) << log[0];
}

// PER-14: as it is told by a journal on another node.
TEST_F(PersistentActorTest, HearsFromItsJournalWhatIsDeleted) {
  AddProbes();
  const ActorRef actor = Spawn();
  const auto open = journal_probe_.Expect<OpenWriter>();
  journal_probe_.Send(open.client, WriterIsOpen{1, 7, open.instance_id, 6});
  snapshot_probe_.Expect<LoadSnapshot>();
  snapshot_probe_.Send(open.client, LoadSnapshotResult{.to_sequence_nr = kMax, .instance_id = open.instance_id});
  probe_.ExpectTerminated(actor);
  EXPECT_TRUE(absl::StrContains(script_.log.front(), "events 1..6 are deleted")) << script_.log.front();
  journal_probe_.ExpectNoMessage();
}

// PER-13: who asks need not wait until the time is over, and hears why.
TEST_F(PersistentActorTest, TellsThoseWhoHaveAskedWhyItStops) {
  AddStores();
  journal_->replay_failure = absl::DataLossError("torn");
  journal_->open_failure = absl::UnavailableError("no disk");
  ActorRef actor = Spawn();
  // One that was told is a dead letter, as ever.
  kit_.ExpectDeadLetters<std::string>(1, [&] {
    Say(actor, "told");
    const absl::Status refused = kit_.AskAndWait<std::string>(actor, std::string("asked")).status();
    EXPECT_EQ(refused.message(), "\"a\" could not be recovered: no disk");
    EXPECT_TRUE(absl::IsUnavailable(refused));
  });
  EXPECT_EQ(probe_.pending(), 0u);
  journal_->open_failure = journal_->replay_failure = absl::OkStatus();

  // Those that wait behind an event that cannot be stored.
  actor = SpawnRecovered();
  journal_->write_failure = absl::UnavailableError("no disk");
  Say(actor, "first");
  const absl::Status stopped = kit_.AskAndWait<std::string>(actor, std::string("second")).status();
  EXPECT_TRUE(absl::StrContains(stopped.message(), "an event of a command before it could not be stored: ")) << stopped;
  EXPECT_TRUE(absl::StrContains(stopped.message(), "no disk")) << stopped;
  // And those who come after it.
  const absl::Status late = kit_.AskAndWait<std::string>(actor, std::string("third")).status();
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
  EXPECT_TRUE(absl::StrContains(late.message(), ": it could not store an event: ")) << late;
  EXPECT_TRUE(absl::StrContains(late.message(), "event 1 of \"a\": no disk")) << late;
  // Whatever the storage says, it is known what it is about.
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(late), JournalErrorKind::kIo);
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(late, "id"), "a");
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(late, "nr"), 1);
}

// P63, PER-13: the time counts from event to event, however many events there are.
TEST_F(PersistentActorTest, RecoversFromASlowJournal) {
  AddStores();
  constexpr int kEvents = 3000;
  std::vector<AtomicWrite> writes;
  for (uint64_t nr = 1; nr <= kEvents; ++nr) {
    writes.push_back(AtomicWrite::Make(PersistentRepr{.persistence_id = "a",
                                                      .sequence_nr = nr,
                                                      .manifest = "fraktor.string",
                                                      .payload = std::to_string(nr)})
                         .value());
  }
  ASSERT_TRUE(journal_->inner->Write(std::move(writes)).Take().ok());
  journal_->toolbox = &kit_.toolbox();
  // A page of all events would take one minute, and ten.
  for (const absl::Duration time : {absl::Milliseconds(20), absl::Milliseconds(200)}) {
    journal_->time_per_event = time;
    const ActorRef actor = Spawn();
    kit_.Advance(time * kEvents + absl::Minutes(1));
    const Lines log = std::exchange(script_.log, {});
    ASSERT_FALSE(log.empty());
    EXPECT_EQ(log.back(), "completed 3000");
    EXPECT_EQ(log.size(), kEvents + 1u);
    kit_.system().Stop(actor);
    kit_.Settle();
    script_.log.clear();
  }
}

// P63, PER-13
TEST_F(PersistentActorTest, StopsIfTheRecoveryStandsStill) {
  AddProbes();
  const ActorRef without_snapshot = Spawn();
  auto open = journal_probe_.Expect<OpenWriter>();
  journal_probe_.Send(open.client, WriterIsOpen{1, 2, open.instance_id});
  snapshot_probe_.Expect<LoadSnapshot>();
  kit_.Advance(absl::Seconds(20));
  Say(without_snapshot, "not a sign of life of the journal");
  kit_.Advance(absl::Seconds(9));
  EXPECT_TRUE(kit_.IsAlive(without_snapshot));
  kit_.Advance(absl::Seconds(2));
  probe_.ExpectTerminated(without_snapshot);
  ASSERT_FALSE(script_.log.empty());
  EXPECT_TRUE(absl::StrContains(script_.log[0], "timed out"));

  // Each page begins anew.
  const ActorRef slow = Spawn();
  open = journal_probe_.Expect<OpenWriter>();
  journal_probe_.Send(open.client, WriterIsOpen{1, 2, open.instance_id});
  snapshot_probe_.Expect<LoadSnapshot>();
  snapshot_probe_.Send(open.client, LoadSnapshotResult{.to_sequence_nr = kMax, .instance_id = open.instance_id});
  for (int i = 0; i < 3; ++i) {
    journal_probe_.Expect<ReplayMessages>();
    kit_.Advance(absl::Seconds(25));
    EXPECT_TRUE(kit_.IsAlive(slow));
    journal_probe_.Send(open.client, ReplayedMessages{.instance_id = open.instance_id});
  }
  kit_.Advance(absl::Seconds(31));
  probe_.ExpectTerminated(slow);
}

// P64
TEST_F(PersistentActorTest, KeepsItsReceiveTimeout) {
  AddStores();
  script_.on_start = [](ScriptedActor& a) { return SetReceiveTimeout(a.context(), absl::Minutes(2)); };
  Spawn();
  kit_.Advance(absl::Minutes(1));
  EXPECT_EQ(std::exchange(script_.log, {}), (Lines{"completed 0"}));
  kit_.Advance(absl::Minutes(2));
  EXPECT_EQ(script_.log, (Lines{"message ReceiveTimeout"}));
}

// P65
TEST_F(PersistentActorTest, FailsToStartIfTheCompletionOfTheRecoveryFails) {
  AddStores();
  ASSERT_TRUE(persistence().Configure({.max_concurrent_recoveries = 1}).ok());
  script_.on_completed = [](ScriptedActor&) { return absl::InternalError("oops"); };
  probe_.ExpectTerminated(Spawn());
  // The permit is free again, also while those live that have had it.
  script_.on_completed = nullptr;
  script_.log.clear();
  Spawn();
  Script& other = scripts_.emplace_back();
  other.id = "b";
  Spawn(other);
  kit_.Settle();
  EXPECT_EQ(script_.log, (Lines{"completed 0"}));
  EXPECT_EQ(other.log, (Lines{"completed 0"}));
}

// P66, P67, P69, PER-11
TEST_F(PersistentActorTest, RecoverInTheOrderInWhichTheyCameSoManyAtATime) {
  AddProbes();
  ASSERT_TRUE(persistence().Configure({.max_concurrent_recoveries = 2}).ok());
  std::deque<Script>& scripts = scripts_;
  scripts.resize(6);
  std::vector<ActorRef> actors;
  for (size_t i = 0; i < scripts.size(); ++i) {
    scripts[i].id = std::to_string(i);
    actors.push_back(Spawn(scripts[i]));
    kit_.Settle();
  }
  const auto expect_next = [&](const std::string& id) {
    const auto open = journal_probe_.Expect<OpenWriter>();
    EXPECT_EQ(open.persistence_id, id);
    return open;
  };
  const auto first = expect_next("0");
  expect_next("1");
  journal_probe_.ExpectNoMessage();
  StopAndWait(actors[2]);  // waits: leaves the queue
  journal_probe_.ExpectNoMessage();
  StopAndWait(actors[1]);  // holds: returns it
  expect_next("3");
  journal_probe_.ExpectNoMessage();
  journal_probe_.Send(first.client, OpenWriterFailure{absl::UnavailableError("no disk"), first.instance_id});
  expect_next("4");
  journal_probe_.ExpectNoMessage();
  // One that nobody has is an error, and changes nothing.
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "did not have"}, 1,
                 [&] { probe_.Send(persistence().RecoveryPermitter().value(), ReturnRecoveryPermit{12345}); });
  journal_probe_.ExpectNoMessage();
}

// P68
TEST_F(PersistentActorTest, HeedsAPoisonPillWhileItWaitsForAPermit) {
  AddProbes();
  ASSERT_TRUE(persistence().Configure({.max_concurrent_recoveries = 1}).ok());
  Spawn();
  journal_probe_.Expect<OpenWriter>();
  Script& other = scripts_.emplace_back();
  other.id = "b";
  const ActorRef waiting = Spawn(other);
  probe_.Send(waiting, PoisonPill{});
  probe_.ExpectTerminated(waiting);
}

// A19: behind what was sent before, which is done when its events are stored and their handlers have run.
TEST_F(PersistentActorTest, HeedsAPoisonPillWhenWhatWasSentBeforeIsDone) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  Say(actor, "x");
  Say(actor, "y");
  probe_.Send(actor, PoisonPill{});
  Say(actor, "too late");
  probe_.ExpectTerminated(actor);
  EXPECT_EQ(script_.log, (Lines{"command x", "event x", "command y", "event y", "stopped"}));
  EXPECT_EQ(Recovered(), (Lines{"x", "y"}));
}

TEST_F(PersistentActorTest, HeedsAPoisonPillWhenWhatItPersistsByTheWayIsDone) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("x"), a.Handler()); });
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("y"), a.Handler()); });
  probe_.Send(actor, PoisonPill{});
  Say(actor, "too late");
  probe_.ExpectTerminated(actor);
  EXPECT_EQ(script_.log, (Lines{"event x", "event y", "stopped"}));
  EXPECT_EQ(Recovered(), (Lines{"x", "y"}));
}

// Otherwise it would be one too many, and the actor would fail for being told to end.
TEST_F(PersistentActorTest, HeedsAPoisonPillAtOnceIfThereIsNoRoomForIt) {
  AddSlowStores();
  script_.options.stash_capacity = 1;
  const ActorRef actor = SpawnRecovered();
  Say(actor, "x");
  Say(actor, "y");
  probe_.Send(actor, PoisonPill{});
  probe_.ExpectTerminated(actor);
  EXPECT_EQ(script_.log, (Lines{"command x", "stopped"}));
}

// P70
TEST_F(PersistentActorTest, LeaveOthersRunningWhileTheyWaitForPermits) {
  std::vector<std::unique_ptr<Script>> scripts;
  TestKit threaded({.patience = absl::Seconds(60), .threads = 5});
  TestProbe journal = threaded.Probe();
  TestProbe probe = threaded.Probe();
  auto& extension = threaded.system().Extension<PersistenceExtension>();
  ASSERT_TRUE(extension.Configure({.max_concurrent_recoveries = 3}).ok());
  ASSERT_TRUE(extension.AddJournal("main", {.actor = journal.ref()}).ok());
  for (int i = 0; i < 100; ++i) {
    scripts.push_back(std::make_unique<Script>());
    scripts.back()->id = std::to_string(i);
    threaded.Spawn(*MakeProps<ScriptedActor>({}, scripts.back().get()));
  }
  for (int i = 0; i < 3; ++i) journal.Expect<OpenWriter>();
  const ActorRef free = threaded.Spawn(PropsOf<NoSnapshotStore>());
  probe.Send(free, LoadSnapshot{"a", {}, 1, probe.ref(), 1});
  probe.Expect<LoadSnapshotResult>();
  EXPECT_EQ(journal.pending(), 0u);
}

// ---- Persisting.

// P71, P74, PER-12, PER-10
TEST_F(PersistentActorTest, RunsHandlersInOrderBeforeTheNextCommand) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    for (const std::string event : {"x", "y"}) {
      a.Persist(event, [&a](const std::string& stored) {
        EXPECT_EQ(a.state(), PersistentActorState::kPersistingEvents);
        a.Apply(stored);
        a.context().Reply(stored);
      });
    }
    EXPECT_EQ(a.state(), PersistentActorState::kProcessingCommands);
    a.Log("done");
  });
  TestProbe other = kit_.Probe();
  other.Send(actor, Do{[](ScriptedActor& a) {
               a.Log("next");
               EXPECT_EQ(a.state(), PersistentActorState::kProcessingCommands);
               return absl::OkStatus();
             }});
  kit_.Settle();
  EXPECT_EQ(script_.log, (Lines{"done"}));
  EXPECT_EQ(TakeLog(), (Lines{"done", "event x", "event y", "next"}));
  EXPECT_EQ(probe_.Expect<std::string>(), "x");
  EXPECT_EQ(probe_.Expect<std::string>(), "y");
  EXPECT_EQ(Recovered(), (Lines{"x", "y"}));
}

// P72
TEST_F(PersistentActorTest, PersistsNoEventsByDoingNothing) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAll(std::vector<std::string>(), a.Handler());
    a.PersistAllAsync(std::vector<std::string>(), a.Handler());
    a.Defer(std::string("d"), a.Handler());
    a.Log("done");
  });
  kit_.Settle();
  EXPECT_EQ(script_.log, (Lines{"event d", "done"}));
  EXPECT_TRUE(journal_->write_sizes.empty());
}

// P73, P74
TEST_F(PersistentActorTest, TakesFurtherCommandsWhileItPersistsAsynchronously) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  script_.on_text = [](ScriptedActor& a, const std::string& text) {
    for (const std::string n : {"1", "2"}) {
      a.PersistAsync(text + n, [&a](const std::string& stored) {
        a.Apply(stored);
        a.context().Reply(stored);
      });
    }
    return absl::OkStatus();
  };
  TestProbe other = kit_.Probe();
  Say(actor, "x");
  other.Send(actor, std::string("y"));
  EXPECT_EQ(TakeLog(), (Lines{"command x", "command y", "event x1", "event x2", "event y1", "event y2"}));
  EXPECT_EQ(probe_.Expect<std::string>(), "x1");
  EXPECT_EQ(probe_.Expect<std::string>(), "x2");
  EXPECT_EQ(other.Expect<std::string>(), "y1");
  EXPECT_EQ(other.Expect<std::string>(), "y2");
}

// P75
TEST_F(PersistentActorTest, RunsBothHandlersOfAnEventThatIsPersistedTwice) {
  AddStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    const std::string event = "x";
    a.Persist(event, [&a](const std::string&) { a.Log("first"); });
    a.Persist(event, [&a](const std::string&) { a.Log("second"); });
  });
  EXPECT_EQ(TakeLog(), (Lines{"first", "second"}));
}

// P76
TEST_F(PersistentActorTest, FinishesSyncAsyncSyncBeforeTheNextCommand) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    a.Persist(std::string("1"), a.Handler());
    a.PersistAsync(std::string("2"), a.Handler());
    a.Persist(std::string("3"), a.Handler());
  });
  RunVoid(actor, [](ScriptedActor& a) { a.Log("next"); });
  EXPECT_EQ(TakeLog(), (Lines{"event 1", "event 2", "event 3", "next"}));
}

// P79, P82
TEST_F(PersistentActorTest, HoldsCommandsBackForAPersistInAHandler) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAsync(std::string("outer"), [&a](const std::string& event) {
      a.Apply(event);
      a.Persist(std::string("inner"), [&a](const std::string& inner) {
        a.Apply(inner);
        a.Persist(std::string("innermost"), a.Handler());
      });
    });
  });
  kit_.Advance(absl::Milliseconds(15));
  EXPECT_EQ(script_.log, (Lines{"event outer"}));
  RunVoid(actor, [](ScriptedActor& a) { a.Log("next"); });
  kit_.Settle();
  EXPECT_EQ(script_.log, (Lines{"event outer"}));
  EXPECT_EQ(TakeLog(), (Lines{"event outer", "event inner", "event innermost", "next"}));
}

// P80, P81, P74, PER-12
TEST_F(PersistentActorTest, DefersInOrderWithWhatIsPending) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  // Nothing to wait for.
  RunVoid(actor, [](ScriptedActor& a) {
    a.Defer(std::string("at once"), a.Handler());
    a.DeferAsync(std::string("at once too"), a.Handler());
    a.Log("done");
  });
  EXPECT_EQ(TakeLog(), (Lines{"event at once", "event at once too", "done"}));
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAsync(std::string("1"), a.Handler());
    a.DeferAsync(std::string("2"), [&a](const std::string& event) {
      a.Apply(event);
      a.context().Reply(event);
    });
    a.PersistAsync(std::string("3"), a.Handler());
  });
  RunVoid(actor, [](ScriptedActor& a) { a.Log("not held back"); });
  EXPECT_EQ(TakeLog(), (Lines{"not held back", "event 1", "event 2", "event 3"}));
  EXPECT_EQ(probe_.Expect<std::string>(), "2");
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAsync(std::string("4"), a.Handler());
    a.Defer(std::string("5"), a.Handler());
  });
  RunVoid(actor, [](ScriptedActor& a) { a.Log("held back"); });
  EXPECT_EQ(TakeLog(), (Lines{"event 4", "event 5", "held back"}));
  EXPECT_EQ(Recovered(), (Lines{"1", "3", "4"}));
}

// P82
TEST_F(PersistentActorTest, WritesWhatACommandPersistsAsOneAndHasOneWriteUnderWay) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    for (int i = 0; i < 30; ++i) a.PersistAsync(std::to_string(i), a.Handler());
  });
  kit_.Settle();
  EXPECT_EQ(journal_->write_sizes, (std::vector<size_t>{30}));
  for (int i = 0; i < 5; ++i) {
    RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("later"), a.Handler()); });
  }
  kit_.Settle();
  EXPECT_EQ(journal_->write_sizes, (std::vector<size_t>{30}));
  EXPECT_EQ(TakeLog().size(), 35u);
  EXPECT_EQ(journal_->write_sizes, (std::vector<size_t>{30, 5}));
}

// PER-2, PER-12
TEST_F(PersistentActorTest, PersistsAllOrNothing) {
  AddStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAll(std::vector<std::string>{"x", "y", "z"}, a.Handler());
    a.PersistAllAsync(std::vector<std::string>{"u", "v"}, a.Handler());
  });
  EXPECT_EQ(TakeLog(), (Lines{"event x", "event y", "event z", "event u", "event v"}));
  EXPECT_EQ(journal_->write_sizes, (std::vector<size_t>{2}));
  // One that cannot be stored takes the others with it.
  RunVoid(actor, [](ScriptedActor& a) {
    std::vector<EnvelopePtr> events;
    events.push_back(a.MakeEvent(std::string("good")));
    events.push_back(a.MakeEvent(Secret{}));
    a.PersistEvents(std::move(events), [&a](Envelope&) {
      a.Log("never");
      return absl::OkStatus();
    });
    a.Persist(std::string("after"), a.Handler());
  });
  EXPECT_EQ(TakeLog(), (Lines{"rejected 6 good", "rejected 7 ?", "event after"}));
  EXPECT_EQ(Recovered(), (Lines{"x", "y", "z", "u", "v", "after"}));
}

// P83
TEST_F(PersistentActorTest, BecomesAnotherFromTheNextCommandOn) {
  AddStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    a.Persist(std::string("x"), [&a](const std::string&) {
      a.Become([&a](ActorContext&, Envelope& command) {
        a.Log("other " + command.As<std::string>());
        a.Unbecome();
        return absl::OkStatus();
      });
    });
  });
  script_.on_text = [](ScriptedActor& a, const std::string&) {
    a.BecomeStacked([&a](ActorContext&, Envelope& command) {
      a.Log("stacked " + command.As<std::string>());
      EXPECT_TRUE(a.Unbecome());
      EXPECT_FALSE(a.Unbecome());
      return absl::OkStatus();
    });
    return absl::OkStatus();
  };
  for (const std::string text : {"1", "2", "3", "4"}) Say(actor, text);
  EXPECT_EQ(TakeLog(), (Lines{"other 1", "command 2", "stacked 3", "command 4"}));
}

TEST_F(PersistentActorTest, FailsIfTooManyBehavioursAreStacked) {
  AddStores();
  script_.on_text = [](ScriptedActor& a, const std::string&) {
    for (size_t i = 0; i <= BehaviorStack::kMaxStacked; ++i) {
      a.BecomeStacked([](ActorContext&, Envelope&) { return absl::OkStatus(); });
    }
    return absl::OkStatus();
  };
  const ActorRef actor = SpawnRecovered();
  const absl::Status refused = kit_.AskAndWait<std::string>(actor, std::string("x")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

// A24: the supervisor hears how the actor failed, also where the actor itself catches what its code
// throws.
TEST_F(PersistentActorTest, TellsItsSupervisorHowItFailed) {
  using enum FailureCause;
  AddStores();
  const ActorRef actor = SpawnRecovered();
  Run(actor, [](ScriptedActor&) -> absl::Status { throw std::runtime_error("in the command"); });
  Run(actor, [](ScriptedActor&) -> absl::Status { throw 42; });
  Run(actor, [](ScriptedActor&) {
    return MakeError(absl::StatusCode::kInternal, ActorErrorKind::kThrownUnknown, "of another actor");
  });
  RunVoid(actor, [](ScriptedActor& a) { a.Persist(std::string("x"), [](const std::string&) { throw 42; }); });
  RunVoid(actor, [](ScriptedActor& a) { a.Defer(std::string("y"), [](const std::string&) { throw 42; }); });
  TakeLog();
  EXPECT_EQ(causes_, std::vector<FailureCause>({kThrown, kThrownUnknown, kReturned, kThrownUnknown, kThrownUnknown}));
  causes_.clear();
  script_.on_completed = [](ScriptedActor&) { return absl::InternalError("not ready"); };
  Run(actor, [](ScriptedActor&) { return absl::InternalError("so that it recovers again"); });
  TakeLog();
  EXPECT_EQ(causes_, std::vector<FailureCause>({kReturned, kInitialization}));
}

// P85, P88, P89
TEST_F(PersistentActorTest, KeepsItsEventsWhateverFails) {
  AddStores();
  for (const SupervisionDirective verdict : {Resume(), Restart()}) {
    verdict_ = verdict;
    script_.id = std::string(NameOf(verdict));
    const ActorRef actor = SpawnRecovered();
    // In the command, after it has persisted.
    Run(actor, [](ScriptedActor& a) -> absl::Status {
      a.Persist(std::string("x"), a.Handler());
      throw std::runtime_error("in the command");
    });
    if (verdict == Resume()) {
      EXPECT_EQ(TakeLog(), (Lines{"event x"}));
    } else {
      EXPECT_EQ(TakeLog(), (Lines{"restart on Do", "stopped", "recover x", "completed 1"}));
    }
    // In the handler of an event; the one after it is not concerned.
    RunVoid(actor, [](ScriptedActor& a) {
      a.Persist(std::string("y"), [](const std::string&) { throw std::runtime_error("in the handler"); });
      a.Persist(std::string("z"), a.Handler());
    });
    if (verdict == Resume()) {
      EXPECT_EQ(TakeLog(), (Lines{"event z"}));
    } else {
      EXPECT_EQ(TakeLog(), (Lines{"restart on y", "stopped", "recover x", "recover y", "recover z", "completed 3"}));
    }
    // And an error is as good as an exception.
    RunVoid(actor, [](ScriptedActor& a) {
      a.Persist(std::string("u"), [](const std::string&) { return absl::InternalError("in the handler"); });
    });
    TakeLog();
    StopAndWait(actor);
    EXPECT_EQ(Recovered(), (Lines{"x", "y", "z", "u"}));
  }
}

// P86, PER-13
TEST_F(PersistentActorTest, StopsIfItsEventsCannotBeStored) {
  AddStores();
  for (const bool is_async : {false, true}) {
    const ActorRef actor = SpawnRecovered();
    journal_->write_failure = absl::UnavailableError("no disk");
    RunVoid(actor, [is_async](ScriptedActor& a) {
      if (is_async) {
        a.PersistAsync(std::string("x"), a.Handler());
        a.PersistAsync(std::string("y"), a.Handler());
      } else {
        a.Persist(std::string("x"), a.Handler());
      }
    });
    probe_.ExpectTerminated(actor);
    EXPECT_EQ(TakeLog(), (Lines{"failed 1 x", "stopped"}));
    journal_->write_failure = absl::OkStatus();
  }
  EXPECT_EQ(Recovered(), Lines());
}

// P87, P30, PER-13
TEST_F(PersistentActorTest, GoesOnWithoutAnEventThatIsRejected) {
  AddStores();
  journal_->reject = [](const AtomicWrite& write) { return write.events()[0].payload == "bad"; };
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    a.Persist(std::string("x"), a.Handler());
    a.Persist(std::string("bad"), a.Handler());
    a.Persist(Secret{}, [&a](const Secret&) { a.Log("never"); });  // has no codec
    a.Persist(std::string("y"), a.Handler());
  });
  Say(actor, "z");
  EXPECT_EQ(TakeLog(), (Lines{"event x", "rejected 2 bad", "rejected 3 ?", "event y", "command z", "event z"}));
  RunVoid(actor, [](ScriptedActor& a) { a.Log(std::to_string(a.last_sequence_nr())); });
  EXPECT_EQ(TakeLog(), (Lines{"5"}));
  EXPECT_EQ(Recovered(), (Lines{"x", "y", "z"}));
}

// PER-13: whatever the cause, a program can see which event it is about.
TEST_F(PersistentActorTest, NamesTheEventThatIsRejectedOrNotStored) {
  // A breaker that is out of patience knows nothing of events.
  AddSlowStores(absl::Minutes(1));
  script_.options.recovery_event_timeout = script_.options.write_timeout = absl::Hours(1);
  const auto expect = [](const absl::Status& cause, JournalErrorKind kind, std::optional<int64_t> nr) {
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(cause), kind) << cause;
    EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(cause, "id"), "a") << cause;
    EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(cause, "nr"), nr) << cause;
  };
  Future<std::string> asked = kit_.system().Ask<std::string>(Spawn(), std::string("asked"), absl::Hours(1));
  kit_.Advance(absl::Minutes(2));
  ASSERT_TRUE(asked.IsReady());
  const absl::Status refused = asked.Take().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(refused)) << refused;
  expect(refused, JournalErrorKind::kIo, std::nullopt);

  // An event without a codec.
  journal_ = std::make_shared<KnobJournal>();
  ASSERT_TRUE(persistence().AddJournal("fast", {.storage = journal_}).ok());
  script_.journal = "fast";
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) { a.Persist(Secret{}, [](const Secret&) {}); });
  TakeLog();
  ASSERT_EQ(script_.rejections.size(), 1u);
  expect(script_.rejections[0], JournalErrorKind::kInvalid, 1);
}

// P91
TEST_F(PersistentActorTest, PersistsPrimitiveValues) {
  AddStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    a.Persist(int64_t{42}, [&a](int64_t n) { a.Log("number " + std::to_string(n)); });
    a.Persist(true, [&a](bool b) { a.Log(b ? "true" : "false"); });
  });
  EXPECT_EQ(TakeLog(), (Lines{"number 42", "true"}));
  EventBatch stored = journal_->inner->Replay({.persistence_id = "a"}).Take().value();
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].manifest, "fraktor.int64");
}

// PER-19
TEST_F(PersistentActorTest, StopsIfAnotherOneHasTakenItsPlace) {
  AddStores();
  const ActorRef old_one = SpawnRecovered();
  Script& newer = scripts_.emplace_back();
  const ActorRef new_one = Spawn(newer);
  kit_.Settle();
  Say(old_one, "x");
  probe_.ExpectTerminated(old_one);
  EXPECT_EQ(TakeLog(), (Lines{"command x", "failed 1 x", "stopped"}));
  Say(new_one, "y");
  kit_.Settle();
  EXPECT_EQ(Recovered(), (Lines{"y"}));
}

// PER-14: what was stored the first time is compared with it.
TEST_F(PersistentActorTest, SendsTheSameBytesAgainWhateverHasBecomeOfTheEventSince) {
  AddProbes();
  const ActorRef actor = Spawn();
  RecoverByProbes();
  const ActorRef somebody = Spawn(scripts_.emplace_back());
  journal_probe_.Expect<OpenWriter>();  // It recovers, and will not come to an end.
  RunVoid(actor, [somebody](ScriptedActor& a) { a.Persist(Met{somebody}, [](const Met&) {}); });
  const auto sent = journal_probe_.Expect<WriteMessages>();
  EXPECT_FALSE(sent.writes[0].events()[0].payload.empty());
  // Its path cannot be written any more.
  StopAndWait(somebody);
  const auto again = journal_probe_.Expect<WriteMessages>(absl::Seconds(16));
  EXPECT_EQ(again.writes[0].events(), sent.writes[0].events());
}

// One actor for all would be what they wait for, if the storage answers at once.
TEST_F(PersistentActorTest, SharesSeveralActorsOfAJournalByPersistenceId) {
  EXPECT_FALSE(persistence().AddJournal("many", {.storage = journal_, .actors = 5000}).ok());
  ASSERT_TRUE(persistence().AddJournal("main", {.storage = journal_, .actors = 4}).ok());
  std::vector<ActorRef> actors;
  for (int i = 0; i < 50; ++i) {
    const std::string id = "id-" + std::to_string(i);
    const ActorRef actor = persistence().Journal({}, id).value();
    EXPECT_EQ(persistence().Journal("main", id).value(), actor);
    if (std::find(actors.begin(), actors.end(), actor) == actors.end()) actors.push_back(actor);
  }
  EXPECT_EQ(actors.size(), 4u);
  // Who names no id gets the one that others find by its path.
  EXPECT_EQ(kit_.system().Resolve("/system/journal-main").value(), persistence().Journal().value());
  Store({"x", "y"});
  EXPECT_EQ(Recovered(), (Lines{"x", "y"}));
}

// What a bounded recovery has left out would be lost with the snapshot.
TEST_F(PersistentActorTest, SavesNoSnapshotAfterARecoveryThatHasLeftOutEvents) {
  AddStores();
  Store({"e1", "e2", "e3"});
  for (const Recovery& bounded : {Recovery{.to_sequence_nr = 2}, Recovery{.replay_max = 1}, Recovery::None()}) {
    Script& script = scripts_.emplace_back();
    script.recovery = bounded;
    const ActorRef actor = Spawn(script);
    RunVoid(actor, [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); });
    kit_.Advance(absl::Seconds(1));
    EXPECT_EQ(script.log.back(), "message SaveSnapshotFailure");
    StopAndWait(actor);
  }
  // One that has seen all of them may, whatever its bounds are.
  script_.recovery = {.to_sequence_nr = 3, .replay_max = 3};
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); });
  EXPECT_EQ(TakeLog().back(), "message SaveSnapshotSuccess");
}

// PER-14: a write that was sent twice is answered twice, and the second time others may be under way.
TEST_F(PersistentActorTest, TakesALateAnswerForNoOtherEvent) {
  AddProbes();
  const ActorRef actor = Spawn();
  const OpenWriter open = RecoverByProbes();
  Say(actor, "x");
  const auto sent = journal_probe_.Expect<WriteMessages>();
  journal_probe_.Expect<WriteMessages>(absl::Seconds(16));
  journal_probe_.Send(open.client, WriteMessageSuccess{1, open.instance_id, sent.batch});
  Say(actor, "y");
  const auto next = journal_probe_.Expect<WriteMessages>();
  EXPECT_EQ(TakeLog(), (Lines{"command x", "event x", "command y"}));
  journal_probe_.Send(open.client, WriteMessageSuccess{1, open.instance_id, sent.batch});
  journal_probe_.Send(open.client, WriteMessageFailure{1, absl::UnavailableError(""), open.instance_id, sent.batch});
  journal_probe_.Send(open.client, WriteMessageRejected{1, absl::UnavailableError(""), open.instance_id, sent.batch});
  EXPECT_EQ(TakeLog(), Lines());
  journal_probe_.Send(open.client, WriteMessageSuccess{2, open.instance_id, next.batch});
  EXPECT_EQ(TakeLog(), (Lines{"event y"}));
}

// PER-14: requests and answers get lost on the way to a journal on another node.
TEST_F(PersistentActorTest, SendsAWriteAgainThatIsNotAnswered) {
  AddProbes();
  const ActorRef actor = Spawn();
  const OpenWriter open = RecoverByProbes();
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAll(std::vector<std::string>{"x", "y"}, a.Handler());
    a.Defer(std::string("d"), a.Handler());
    a.Persist(Secret{}, [](const Secret&) {});
  });
  const auto sent = journal_probe_.Expect<WriteMessages>();
  journal_probe_.ExpectNoMessage(absl::Seconds(14));
  const auto again = journal_probe_.Expect<WriteMessages>(absl::Seconds(2));
  EXPECT_EQ(again.batch, sent.batch);
  // The journal is on the same node.
  EXPECT_TRUE(sent.only_events_are_answered && again.only_events_are_answered);
  ASSERT_EQ(again.writes.size(), 1u);
  EXPECT_EQ(again.writes[0].events(), sent.writes[0].events());
  ASSERT_EQ(again.deferred.size(), 2u);
  EXPECT_EQ(again.deferred[0].position, 1u);
  // Both are answered after all: handlers run once.
  for (int i = 0; i < 2; ++i) {
    journal_probe_.Send(open.client, WriteMessagesSuccessful{open.instance_id, sent.batch});
    journal_probe_.Send(open.client, WriteMessageSuccess{1, open.instance_id, sent.batch});
    journal_probe_.Send(open.client, WriteMessageSuccess{2, open.instance_id, sent.batch});
    for (const DeferredEntry& entry : sent.deferred) {
      journal_probe_.Send(open.client, LoopMessageSuccess{entry.token, open.instance_id, sent.batch});
    }
  }
  EXPECT_EQ(TakeLog(), (Lines{"event x", "event y", "event d", "rejected 3 ?"}));
  // One that is never answered fails in the end.
  Say(actor, "z");
  for (int i = 0; i < 4; ++i) journal_probe_.Expect<WriteMessages>(absl::Seconds(31));
  kit_.Advance(absl::Seconds(16));
  probe_.ExpectTerminated(actor);
  EXPECT_EQ(script_.log, (Lines{"command z", "failed 4 z", "stopped"}));
}

// PER-2, PER-14: so that the journal can tell a gap from a loss.
TEST_F(PersistentActorTest, SaysWithEachWriteWhatItKnowsToBeStored) {
  AddProbes();
  const ActorRef actor = Spawn();
  const auto open = journal_probe_.Expect<OpenWriter>();
  journal_probe_.Send(open.client, WriterIsOpen{1, 7, open.instance_id});
  snapshot_probe_.Expect<LoadSnapshot>();
  snapshot_probe_.Send(open.client, LoadSnapshotResult{.to_sequence_nr = kMax, .instance_id = open.instance_id});
  journal_probe_.Expect<ReplayMessages>();
  journal_probe_.Send(open.client, RecoverySuccess{7, open.instance_id});
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAsync(std::string("8"), a.Handler());
    a.PersistAllAsync(std::vector<std::string>{"9", "10"}, a.Handler());
    a.PersistAsync(std::string("11"), a.Handler());
  });
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("12"), a.Handler()); });
  const auto expect_known = [&](const WriteMessages& sent, size_t writes, uint64_t known) {
    EXPECT_EQ(sent.writes.size(), writes);
    for (const AtomicWrite& write : sent.writes) EXPECT_EQ(write.known_stored(), known);
  };
  const auto sent = journal_probe_.Expect<WriteMessages>();
  expect_known(sent, 3, 7);
  // An event that was stored meanwhile counts for the writes that are sent again.
  journal_probe_.Send(open.client, WriteMessageSuccess{8, open.instance_id, sent.batch});
  expect_known(journal_probe_.Expect<WriteMessages>(absl::Seconds(31)), 2, 8);
  journal_probe_.Send(open.client, WriteMessageSuccess{9, open.instance_id, sent.batch});
  journal_probe_.Send(open.client, WriteMessageSuccess{10, open.instance_id, sent.batch});
  // A rejected number is not stored.
  journal_probe_.Send(open.client,
                      WriteMessageRejected{11, absl::InvalidArgumentError(""), open.instance_id, sent.batch});
  expect_known(journal_probe_.Expect<WriteMessages>(), 1, 10);
}

// PER-14: a journal on an older node takes the number for a deferred entry, and answers it.
TEST_F(PersistentActorTest, IgnoresTheAnswerToTheEntryThatSaysWhatItKnows) {
  AddProbes();
  const ActorRef actor = Spawn();
  const OpenWriter open = RecoverByProbes();
  RunVoid(actor, [](ScriptedActor& a) {
    a.Persist(std::string("x"), a.Handler());
    a.Defer(std::string("d"), a.Handler());
  });
  const auto sent = journal_probe_.Expect<WriteMessages>();
  const auto answer_entry = [&] {
    journal_probe_.Send(open.client, LoopMessageSuccess{uint64_t{1} << 63, open.instance_id, sent.batch});
    return TakeLog();
  };
  EXPECT_EQ(answer_entry(), Lines());
  journal_probe_.Send(open.client, WriteMessageSuccess{1, open.instance_id, sent.batch});
  EXPECT_EQ(TakeLog(), Lines{"event x"});
  EXPECT_EQ(answer_entry(), Lines());
  journal_probe_.Send(open.client, LoopMessageSuccess{sent.deferred[0].token, open.instance_id, sent.batch});
  EXPECT_EQ(TakeLog(), Lines{"event d"});
  EXPECT_EQ(answer_entry(), Lines());
}

// PER-14
TEST_F(PersistentActorTest, SendsEachWriteAgainAsOftenAsTheFirst) {
  AddProbes();
  script_.options.max_write_resends = 1;
  const ActorRef actor = Spawn();
  const OpenWriter open = RecoverByProbes();
  for (uint64_t nr = 1; nr <= 3; ++nr) {
    Say(actor, "x");
    journal_probe_.Expect<WriteMessages>();
    const auto again = journal_probe_.Expect<WriteMessages>(absl::Seconds(31));
    journal_probe_.Send(open.client, WriteMessageSuccess{nr, open.instance_id, again.batch});
    // The timer finds nothing under way.
    kit_.Advance(absl::Seconds(16));
    EXPECT_EQ(TakeLog(), (Lines{"command x", "event x"}));
  }
  EXPECT_TRUE(kit_.IsAlive(actor));
}

// PER-14: what has been answered in part is stored as a whole. The other answers may be lost.
TEST_F(PersistentActorTest, GoesOnWithoutTheRestOfTheAnswersToAnAtomicWrite) {
  AddProbes();
  const ActorRef actor = Spawn();
  const OpenWriter open = RecoverByProbes();
  const auto persist_two = [](ScriptedActor& a) { a.PersistAll(std::vector<std::string>{"x", "y"}, a.Handler()); };
  RunVoid(actor, persist_two);
  uint64_t batch = journal_probe_.Expect<WriteMessages>().batch;
  journal_probe_.Send(open.client, WriteMessageSuccess{1, open.instance_id, batch});
  kit_.Advance(absl::Seconds(10));
  EXPECT_EQ(TakeLog(), (Lines{"event x"}));
  journal_probe_.Send(open.client, WriteMessageSuccess{2, open.instance_id, batch});
  EXPECT_EQ(TakeLog(), (Lines{"event y"}));
  // A lost answer.
  RunVoid(actor, persist_two);
  batch = journal_probe_.Expect<WriteMessages>().batch;
  journal_probe_.Send(open.client, WriteMessageSuccess{3, open.instance_id, batch});
  kit_.Advance(absl::Minutes(2));
  EXPECT_EQ(TakeLog(), (Lines{"event x", "event y"}));
  // There is nothing to ask the journal. An answer that comes late is for nothing else.
  journal_probe_.ExpectNoMessage();
  journal_probe_.Send(open.client, WriteMessageSuccess{4, open.instance_id, batch});
  RunVoid(actor, persist_two);
  batch = journal_probe_.Expect<WriteMessages>().batch;
  EXPECT_EQ(TakeLog(), Lines());
  // The same for a rejection.
  const absl::Status cause = absl::InvalidArgumentError("too red");
  journal_probe_.Send(open.client, WriteMessageRejected{5, cause, open.instance_id, batch});
  kit_.Advance(absl::Minutes(2));
  EXPECT_EQ(TakeLog(), (Lines{"rejected 5 x", "rejected 6 y"}));
  ASSERT_EQ(script_.rejections.size(), 2u);
  EXPECT_TRUE(absl::StrContains(script_.rejections[1].message(), "event 6 of \"a\": too red")) << script_.rejections[1];
  journal_probe_.ExpectNoMessage();
}

// PER-14: the writes behind it, whose answers came too early, are sent again.
TEST_F(PersistentActorTest, SendsAgainOnlyWhatIsBehindAnAtomicWriteThatIsAnsweredInPart) {
  AddProbes();
  script_.options.max_write_resends = 1;
  const ActorRef actor = Spawn();
  const OpenWriter open = RecoverByProbes();
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAllAsync(std::vector<std::string>{"1", "2", "3"}, a.Handler());
    a.DeferAsync(std::string("d"), a.Handler());
    a.PersistAllAsync(std::vector<std::string>{"4", "5"}, a.Handler());
    a.PersistAsync(std::string("6"), a.Handler());
  });
  const auto sent = journal_probe_.Expect<WriteMessages>();
  const auto answer = [&](std::initializer_list<uint64_t> numbers) {
    for (const uint64_t nr : numbers) {
      journal_probe_.Send(open.client, WriteMessageSuccess{nr, open.instance_id, sent.batch});
    }
    return TakeLog();
  };
  EXPECT_EQ(answer({1, 3, 4, 5, 6}), Lines{"event 1"});
  auto again = journal_probe_.Expect<WriteMessages>(absl::Seconds(31));
  EXPECT_EQ(TakeLog(), (Lines{"event 2", "event 3"}));
  ASSERT_EQ(again.writes.size(), 2u);
  EXPECT_EQ(again.writes[0].lowest_sequence_nr(), 4u);
  EXPECT_EQ(again.writes[1].lowest_sequence_nr(), 6u);
  ASSERT_EQ(again.deferred.size(), 1u);
  EXPECT_EQ(again.deferred[0].position, 0u);
  // So often as it has answers to show for it: only a journal that is silent has failed.
  journal_probe_.Send(open.client, LoopMessageSuccess{again.deferred[0].token, open.instance_id, sent.batch});
  EXPECT_EQ(TakeLog(), Lines{"event d"});
  again = journal_probe_.Expect<WriteMessages>(absl::Seconds(31));
  ASSERT_EQ(again.writes.size(), 2u);
  EXPECT_EQ(answer({4, 6}), Lines{"event 4"});
  again = journal_probe_.Expect<WriteMessages>(absl::Seconds(31));
  EXPECT_EQ(TakeLog(), Lines{"event 5"});
  ASSERT_EQ(again.writes.size(), 1u);
  EXPECT_EQ(again.writes[0].lowest_sequence_nr(), 6u);
  kit_.Advance(absl::Minutes(2));
  probe_.ExpectTerminated(actor);
  EXPECT_EQ(script_.log, (Lines{"failed 6 6", "stopped"}));
}

// P88: also what waits behind a write that is under way.
TEST_F(PersistentActorTest, StoresWhatItHasPersistedAlsoIfItIsRestartedOrStopped) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("1"), a.Handler()); });
  Run(actor, [](ScriptedActor& a) {
    a.Persist(std::string("2"), a.Handler());
    return absl::InternalError("oops");
  });
  EXPECT_EQ(TakeLog(), (Lines{"restart on Do", "stopped", "recover 1", "recover 2", "completed 2"}));
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("3"), a.Handler()); });
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("4"), a.Handler()); });
  kit_.Settle();
  StopAndWait(actor);
  EXPECT_EQ(TakeLog(), (Lines{"stopped"}));
  EXPECT_EQ(Recovered(), (Lines{"1", "2", "3", "4"}));
}

// P88, PER-2: nothing is stored without what was persisted before it.
TEST_F(PersistentActorTest, SendsAtItsEndWhatIsUnderWayAgainAndNothingBehindAFailure) {
  AddProbes();
  const ActorRef actor = Spawn();
  const OpenWriter open = RecoverByProbes();
  const auto persist = [](ScriptedActor& a) { a.PersistAsync(std::string("x"), a.Handler()); };
  RunVoid(actor, [](ScriptedActor& a) {
    a.PersistAllAsync(std::vector<std::string>{"x", "x"}, a.Handler());
    a.PersistAsync(std::string("x"), a.Handler());
  });
  RunVoid(actor, persist);
  const auto sent = journal_probe_.Expect<WriteMessages>();
  ASSERT_EQ(sent.writes.size(), 2u);
  // So the first write is stored, of the second nobody knows.
  journal_probe_.Send(open.client, WriteMessageSuccess{1, open.instance_id, sent.batch});
  Run(actor, [](ScriptedActor&) { return absl::InternalError("oops"); });
  const auto rest = journal_probe_.Expect<WriteMessages>();
  ASSERT_EQ(rest.writes.size(), 2u);
  EXPECT_EQ(rest.writes[0].events(), sent.writes[1].events());
  EXPECT_EQ(rest.writes[1].lowest_sequence_nr(), 4u);
  const OpenWriter next = RecoverByProbes();
  // A write fails.
  RunVoid(actor, persist);
  RunVoid(actor, persist);
  const uint64_t batch = journal_probe_.Expect<WriteMessages>().batch;
  journal_probe_.Send(next.client, WriteMessageFailure{1, absl::InternalError("no"), next.instance_id, batch});
  probe_.ExpectTerminated(actor);
  journal_probe_.ExpectNoMessage();
}

Task<void> PersistAfter(ScriptedActor& actor, Future<void> future) {
  const absl::Status done = co_await future;
  if (done.ok()) actor.Persist(std::string("late"), actor.Handler());
}

// PER-11
TEST_F(PersistentActorTest, KeepsTheOrderOfCommandsIfACoroutinePersistsBetweenThem) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  auto [promise, future] = MakePromise<void>();
  auto shared = std::make_shared<Promise<void>>(std::move(promise));
  auto waiting = std::make_shared<Future<void>>(std::move(future));
  Run(actor, [shared, waiting](ScriptedActor& a) {
    a.Persist(std::string("x"), [&a, shared](const std::string& event) {
      a.Apply(event);
      shared->Set(absl::OkStatus());
    });
    return a.context().Run(PersistAfter(a, std::move(*waiting)));
  });
  for (const char* text : {"1", "2", "3"}) Say(actor, text);
  EXPECT_EQ(TakeLog(),
            (Lines{"event x", "event late", "command 1", "event 1", "command 2", "event 2", "command 3", "event 3"}));
}

// PER-8: answers to a former self, with the number of an event that is under way again.
TEST_F(PersistentActorTest, TellsItsOwnAnswersFromThoseToItsFormerSelf) {
  AddProbes();
  const ActorRef actor = Spawn();
  const auto recover = [&] {
    const auto open = journal_probe_.Expect<OpenWriter>();
    journal_probe_.Send(open.client, WriterIsOpen{1, 0, open.instance_id});
    snapshot_probe_.Expect<LoadSnapshot>();
    snapshot_probe_.Send(open.client, LoadSnapshotResult{.to_sequence_nr = kMax, .instance_id = open.instance_id});
    journal_probe_.Expect<ReplayMessages>();
    journal_probe_.Send(open.client, RecoverySuccess{0, open.instance_id});
    return open;
  };
  const auto former = recover();
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("x"), a.Handler()); });
  EXPECT_EQ(journal_probe_.Expect<WriteMessages>().instance_id, former.instance_id);
  Run(actor, [](ScriptedActor&) { return absl::InternalError("oops"); });
  const auto now = recover();
  EXPECT_NE(now.instance_id, former.instance_id);
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("y"), a.Handler()); });
  EXPECT_EQ(journal_probe_.Expect<WriteMessages>().writes[0].lowest_sequence_nr(), 1u);
  script_.log.clear();
  journal_probe_.Send(now.client, WriteMessageSuccess{1, former.instance_id, 1});
  journal_probe_.Send(now.client, WriteMessageRejected{1, absl::InternalError("no"), former.instance_id, 1});
  journal_probe_.Send(now.client, WriteMessageFailure{1, absl::InternalError("no"), former.instance_id, 1});
  EXPECT_EQ(TakeLog(), Lines());
  journal_probe_.Send(now.client, WriteMessageSuccess{1, now.instance_id, 1});
  EXPECT_EQ(TakeLog(), (Lines{"event y"}));
}

// PER-8: answers to a former self.
TEST_F(PersistentActorTest, IgnoresAnswersToItsFormerSelf) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) { a.PersistAsync(std::string("x"), a.Handler()); });
  RunVoid(actor, [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); });
  Run(actor, [](ScriptedActor&) { return absl::InternalError("oops"); });
  kit_.Settle();
  Say(actor, "y");  // waits behind one of them
  EXPECT_EQ(TakeLog(),
            (Lines{"restart on Do", "stopped", "snapshot 0 s", "recover x", "completed 1", "command y", "event y"}));
}

TEST_F(PersistentActorTest, LimitsHowManyEventsWait) {
  AddSlowStores();
  script_.options.max_pending_events = 3;
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    for (int i = 0; i < 4; ++i) a.PersistAsync(std::to_string(i), a.Handler());
  });
  EXPECT_EQ(TakeLog(), (Lines{"restart on Do", "stopped", "recover 0", "recover 1", "recover 2", "completed 3"}));
  // To send slower would not help.
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "PersistAll for 4 events; at most 3 may wait"}, 1, [&] {
    RunVoid(actor, [](ScriptedActor& a) { a.PersistAll(Lines(4, "x"), a.Handler()); });
    kit_.Settle();
  });
}

// ---- Commands that wait.

// P92, P94
TEST_F(PersistentActorTest, StashesCommandsOfTheUserInOrder) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  bool stashing = true;
  script_.on_text = [&](ScriptedActor& a, const std::string& text) -> absl::Status {
    if (text[0] == 'a' && stashing) return a.Stash();
    if (text[0] == 'c') {
      stashing = false;
      a.Persist(text, [&a](const std::string& event) {
        a.Apply(event);
        a.UnstashAll();
      });
      return absl::OkStatus();
    }
    stashing = stashing || text[0] == 'b';
    a.Persist(text, a.Handler());
    return absl::OkStatus();
  };
  Lines expected;
  for (int round = 0; round < 10; ++round) {
    for (const char* text : {"b", "a1", "a2", "c", "d"}) Say(actor, text);
    for (const char* line : {"event b", "event c", "event a1", "event a2", "event d"}) expected.push_back(line);
  }
  Lines got;
  for (const std::string& line : TakeLog()) {
    if (absl::StartsWith(line, "event ")) got.push_back(line);
  }
  EXPECT_EQ(got, expected);
}

// P92
TEST_F(PersistentActorTest, HandlesAStashedCommandAfterThoseThatItLetPass) {
  AddSlowStores();
  const ActorRef actor = SpawnRecovered();
  bool seen = false;
  script_.on_text = [&](ScriptedActor& a, const std::string& text) -> absl::Status {
    if (text == "a" && !std::exchange(seen, true)) return a.Stash();
    if (text == "c") a.UnstashAll();
    a.Persist(text, a.Handler());
    return absl::OkStatus();
  };
  for (const char* text : {"a", "b", "c"}) Say(actor, text);
  EXPECT_EQ(TakeLog(), (Lines{"command a", "command b", "event b", "command c", "event c", "command a", "event a"}));
}

// P95
TEST_F(PersistentActorTest, LosesOnlyTheCommandThatFails) {
  AddSlowStores();
  for (const SupervisionDirective verdict : {Resume(), Restart()}) {
    verdict_ = verdict;
    script_.id = std::string(NameOf(verdict));
    script_.on_text = [](ScriptedActor& a, const std::string& text) -> absl::Status {
      if (text == "bad") return absl::InternalError("bad");
      a.Persist(text, a.Handler());
      return absl::OkStatus();
    };
    const ActorRef actor = SpawnRecovered();
    for (const char* text : {"1", "2", "bad", "3", "4"}) Say(actor, text);
    Lines got;
    for (const std::string& line : TakeLog()) {
      if (absl::StartsWith(line, "event ")) got.push_back(line);
    }
    EXPECT_EQ(got, (Lines{"event 1", "event 2", "event 3", "event 4"}));
    StopAndWait(actor);
  }
}

// P96, PER-18
TEST_F(PersistentActorTest, CannotStashInAHandlerOfAnEvent) {
  AddStores();
  verdict_ = Resume();
  const ActorRef actor = SpawnRecovered();
  RunVoid(actor, [](ScriptedActor& a) {
    const auto stash = [&a](const std::string& event) {
      const absl::Status stashed = a.Stash();
      a.Log(event + (absl::IsFailedPrecondition(stashed) ? " refused" : " stashed"));
      // Nor by the way of actors in general.
      EXPECT_EQ(a.context().Stash(), nullptr);
    };
    a.Persist(std::string("persist"), stash);
    a.PersistAsync(std::string("async"), stash);
    a.Defer(std::string("defer"), stash);
    a.DeferAsync(std::string("defer async"), stash);
  });
  EXPECT_EQ(TakeLog(), (Lines{"persist refused", "async refused", "defer refused", "defer async refused"}));
}

// P97
TEST_F(PersistentActorTest, FailsIfTooManyCommandsWait) {
  AddSlowStores(absl::Seconds(5));
  script_.options.stash_capacity = 3;
  verdict_ = Stop();
  const ActorRef actor = Spawn();
  kit_.Advance(absl::Minutes(1));
  script_.log.clear();
  RunVoid(actor, [](ScriptedActor& a) { a.Persist(std::string("x"), a.Handler()); });
  kit_.Settle();
  Lines lost;
  kit_.ExpectDeadLetters<std::string>(
      3,
      [&] {
        for (const char* text : {"1", "2", "3", "4"}) Say(actor, text);
        probe_.ExpectTerminated(actor);
      },
      [&](const std::string& text) {
        lost.push_back(text);
        return true;
      });
  EXPECT_EQ(lost, (Lines{"1", "2", "3"}));
}

// P97: each failure makes room, whether the actor recovers or stores something.
TEST_F(PersistentActorTest, ComesBackFromABurstOfManyMoreCommandsThanMayWait) {
  AddSlowStores();
  script_.options.stash_capacity = 10;
  for (const bool is_recovered : {true, false}) {
    script_.id = is_recovered ? "recovered" : "recovering";
    const ActorRef actor = is_recovered ? SpawnRecovered() : Spawn();
    Lines lost;
    const EventSubscription listening =
        kit_.system().events().Listen<AllDeadLetters>([&](const AllDeadLetters& letter) {
          if (letter.message.type != MessageTypeOf<std::string>()) return;
          EXPECT_EQ(letter.reason, DeadLetterReason::kStashFull);
          lost.push_back(*static_cast<const std::string*>(letter.message.message));
        });
    constexpr size_t kCommands = 100;
    for (size_t i = 0; i < kCommands; ++i) Say(actor, std::to_string(i));
    const Lines log = TakeLog();
    const size_t restarts = static_cast<size_t>(std::count_if(
        log.begin(), log.end(), [](const std::string& line) { return absl::StartsWith(line, "restart"); }));
    // One by the first that finds no room, and each takes those that wait along.
    EXPECT_EQ(restarts, kCommands / 11);
    EXPECT_EQ(lost.size(), 10 * restarts);
    script_.on_text = [](ScriptedActor& a, const std::string& text) {
      a.context().Reply(text);
      return absl::OkStatus();
    };
    EXPECT_EQ(kit_.AskAndWait<std::string>(actor, std::string("here")).value_or("none"), "here");
    script_.on_text = nullptr;
    StopAndWait(actor);
    EXPECT_EQ(Recovered().size() + lost.size() + restarts, kCommands);
  }
}

// P97
TEST_F(PersistentActorTest, LosesOnlyTheCommandThatFindsNoRoomIfItIsResumed) {
  AddSlowStores();
  script_.options.stash_capacity = 3;
  verdict_ = Resume();
  script_.on_text = [](ScriptedActor& a, const std::string& text) -> absl::Status {
    if (text == "1") return absl::InternalError("bad");
    a.Persist(text, a.Handler());
    return absl::OkStatus();
  };
  const ActorRef actor = SpawnRecovered();
  kit_.ExpectDeadLetters<std::string>(0, [&] {
    for (const char* text : {"0", "1", "2", "3", "4", "5"}) Say(actor, text);
    kit_.Settle();
    // A restart for another reason later loses nothing that waits.
    verdict_ = Restart();
    kit_.Advance(absl::Seconds(1));
  });
  EXPECT_EQ(Recovered(), (Lines{"0", "2", "3"}));
}

// P97
TEST_F(PersistentActorTest, TellsThoseWhoWaitThatTheyAreLostAndKeepsWhatIsPutAside) {
  AddSlowStores();
  script_.options.stash_capacity = 2;
  bool has_put_aside = false;
  script_.on_text = [&](ScriptedActor& a, const std::string& text) -> absl::Status {
    if (text == "aside" && !std::exchange(has_put_aside, true)) return a.Stash();
    a.Persist(text, a.Handler());
    return absl::OkStatus();
  };
  const ActorRef actor = SpawnRecovered();
  Say(actor, "aside");
  Say(actor, "x");
  kit_.Settle();
  Future<std::string> asked = kit_.system().Ask<std::string>(actor, std::string("asked"), absl::Minutes(1));
  for (const char* text : {"1", "2"}) Say(actor, text);
  kit_.Settle();
  ASSERT_TRUE(asked.IsReady());
  const absl::Status refused = asked.Take().status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  kit_.Advance(absl::Seconds(1));
  EXPECT_EQ(Recovered(), (Lines{"x", "aside"}));
}

// P98
TEST_F(PersistentActorTest, DiscardsCommandsThatAreTooManyIfItIsToldTo) {
  AddSlowStores();
  script_.options.stash_capacity = 2;
  script_.options.stash_overflow = StashOverflow::Discard();
  const ActorRef actor = SpawnRecovered();
  Lines lost;
  kit_.ExpectDeadLetters<std::string>(
      2,
      [&] {
        for (const char* text : {"1", "2", "3", "4", "5"}) Say(actor, text);
      },
      [&](const std::string& text) {
        lost.push_back(text);
        return true;
      });
  EXPECT_EQ(lost, (Lines{"4", "5"}));
  TakeLog();
  EXPECT_EQ(Recovered(), (Lines{"1", "2", "3"}));
}

// P99
TEST_F(PersistentActorTest, AnswersThatItIsBusyIfItIsToldTo) {
  AddSlowStores();
  script_.options.stash_capacity = 1;
  script_.options.stash_overflow = StashOverflow::ReplyWith(Busy{"later"});
  const ActorRef actor = SpawnRecovered();
  for (const char* text : {"1", "2", "3", "4"}) Say(actor, text);
  probe_.ExpectMessage(Busy{"later"});
  EXPECT_EQ(probe_.LastSender(), actor);
  probe_.ExpectMessage(Busy{"later"});
  probe_.ExpectNoMessage();
  // Of one that nobody has sent, somebody else hears.
  kit_.ExpectDeadLetters<std::string>(1, [&] { Tell(actor, std::string("5")); });
  TakeLog();
  EXPECT_EQ(Recovered(), (Lines{"1", "2"}));
}

// P100
TEST_F(PersistentActorTest, LosesNoMessageOfATimerWhileCommandsWait) {
  AddSlowStores(absl::Seconds(1));
  script_.on_text = [](ScriptedActor&, const std::string&) { return absl::OkStatus(); };
  const ActorRef actor = Spawn();
  kit_.Advance(absl::Seconds(10));
  script_.log.clear();
  Run(actor, [](ScriptedActor& a) {
    a.Persist(std::string("x"), a.Handler());
    return Timers(a.context()).StartSingle("tick", std::string("tick"), absl::Milliseconds(500));
  });
  kit_.Advance(absl::Milliseconds(600));
  EXPECT_EQ(script_.log, Lines());
  EXPECT_EQ(TakeLog(), (Lines{"event x", "command tick"}));
  // And what the runtime handles itself is no command, but waits for its turn.
  Run(actor, [](ScriptedActor& a) {
    a.Persist(std::string("y"), a.Handler());
    return Timers(a.context()).StartSingle("pill", PoisonPill{}, absl::Milliseconds(500));
  });
  kit_.Advance(absl::Milliseconds(600));
  probe_.ExpectTerminated(actor);
  EXPECT_EQ(script_.log, (Lines{"event y", "stopped"}));
}

TEST_F(PersistentActorTest, GetsTheJournalsAnswersWhenItsMailboxIsFull) {
  AddSlowStores();
  PropsOptions options;
  options.mailbox.capacity = 2;
  options.mailbox.overflow = OverflowStrategy::kDropNewest;
  const ActorRef actor = kit_.Spawn(*MakeProps<ScriptedActor>(options, &script_));
  kit_.Advance(absl::Seconds(1));
  script_.log.clear();
  // Their answers come all at once.
  RunVoid(actor, [](ScriptedActor& a) {
    for (int i = 0; i < 5; ++i) a.PersistAsync(std::to_string(i), a.Handler());
  });
  EXPECT_EQ(TakeLog(), (Lines{"event 0", "event 1", "event 2", "event 3", "event 4"}));
}

// ---- Snapshots and deletions.

// PER-15, P113, P116
TEST_F(PersistentActorTest, SavesAndDeletesByMessages) {
  AddStores();
  const ActorRef actor = SpawnRecovered();
  Say(actor, "x");
  Say(actor, "y");
  RunVoid(actor, [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); });
  RunVoid(actor, [](ScriptedActor& a) { a.DeleteMessages(1); });
  RunVoid(actor, [](ScriptedActor& a) { a.DeleteMessages(3); });  // above the last
  RunVoid(actor, [](ScriptedActor& a) { a.DeleteSnapshot(2); });
  RunVoid(actor, [](ScriptedActor& a) { a.DeleteSnapshots({}); });
  Lines messages;
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "the events of \"a\" up to 3 are not deleted: "}, 1, [&] {
    for (const std::string& line : TakeLog()) {
      if (absl::StartsWith(line, "message ")) messages.push_back(line.substr(8));
    }
  });
  std::sort(messages.begin(), messages.end());
  EXPECT_EQ(messages, (Lines{"DeleteMessagesFailure", "DeleteMessagesSuccess", "DeleteSnapshotSuccess",
                             "DeleteSnapshotsSuccess", "SaveSnapshotSuccess"}));
  EXPECT_EQ(Recovered(), (Lines{"y"}));
  // Another one has recovered since: this one deletes nothing any more.
  RunVoid(actor, [](ScriptedActor& a) { a.DeleteMessages(kMax); });
  TakeLog();
  EXPECT_EQ(Recovered(), (Lines{"y"}));
  script_.recovery.allow_deleted_events = true;
  RunVoid(SpawnRecovered(), [](ScriptedActor& a) { a.DeleteMessages(kMax); });
  TakeLog();
  EXPECT_EQ(Recovered(), Lines());
}

// P87: its number may be that of another event after a restart.
TEST_F(PersistentActorTest, SavesNoSnapshotWithTheNumberOfARejectedEvent) {
  AddStores();
  journal_->reject = [](const AtomicWrite& write) { return write.events()[0].payload == "bad"; };
  const ActorRef actor = SpawnRecovered();
  Say(actor, "x");
  Say(actor, "bad");
  RunVoid(actor, [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); });
  kit_.Settle();
  StopAndWait(actor);
  Store({"y"});
  Spawn();
  EXPECT_EQ(TakeLog(), (Lines{"snapshot 1 s", "recover y", "completed 2"}));
}

// P113, PER-13
TEST_F(PersistentActorTest, HearsOfSnapshotsThatCouldNotBeSaved) {
  AddStores();
  const ActorRef actor = SpawnRecovered();
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "no snapshot of \"a\" at 0 is saved: "}, 1, [&] {
    kit_.ExpectUnhandled<SaveSnapshotFailure>(0, [&] {
      RunVoid(actor, [](ScriptedActor& a) { a.SaveSnapshot(Secret{}); });
      kit_.Settle();
    });
  });
  const Lines log = TakeLog();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_TRUE(absl::StartsWith(log[0], "snapshot failure: "));
  EXPECT_EQ(log[1], "message SaveSnapshotFailure");
}

// P114
TEST_F(PersistentActorTest, WorksWithoutASnapshotStore) {
  ASSERT_TRUE(persistence().AddJournal("main", {.storage = journal_}).ok());
  ActorRef actor;
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "no snapshot store"}, 1, [&] {
    actor = SpawnRecovered();
    Script& other = scripts_.emplace_back();
    other.id = "b";
    const ActorRef second = Spawn(other);
    kit_.Settle();
    StopAndWait(second);
  });
  RunVoid(actor, [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); });
  EXPECT_EQ(TakeLog().back(), "message SaveSnapshotFailure");
  // One that is chosen works.
  ASSERT_TRUE(persistence().AddSnapshotStore("chosen", {.storage = snapshots_}).ok());
  Script& chosen = scripts_.emplace_back();
  chosen.id = "c";
  chosen.snapshots = "chosen";
  const ActorRef third = Spawn(chosen);
  RunVoid(third, [](ScriptedActor& a) { a.SaveSnapshot(std::string("s")); });
  kit_.Settle();
  EXPECT_EQ(chosen.log.back(), "message SaveSnapshotSuccess");
  StopAndWait(third);
}

// ---- Who has written.

StoredEvent By(uint64_t nr, uint64_t writer) {
  StoredEvent event;
  event.persistence_id = "a";
  event.sequence_nr = nr;
  event.writer = {.high = 0, .low = writer};
  return event;
}

// P36, P37, P38
TEST(ReplayFilter, PassesWritersThatFollowOneAnother) {
  ReplayFilter filter({});
  uint64_t nr = 0;
  for (const uint64_t writer : {0, 0, 1, 1, 0, 1, 2, 2, 3}) {
    EXPECT_EQ(filter.Judge(By(++nr, writer)), ReplayFilter::Verdict::kPass) << nr;
  }
}

// P40, P41, P42
TEST(ReplayFilter, FindsEventsOfWritersThatWereReplaced) {
  using Verdict = ReplayFilter::Verdict;
  const auto judge = [](ReplayFilterMode mode, size_t max_old_writers) {
    ReplayFilter filter({.mode = mode, .max_old_writers = max_old_writers});
    std::vector<Verdict> verdicts;
    uint64_t nr = 0;
    for (const uint64_t writer : {1, 2, 1, 3, 2, 1, 3}) verdicts.push_back(filter.Judge(By(++nr, writer)));
    return verdicts;
  };
  const auto expected = [](Verdict late) {
    return std::vector<Verdict>{Verdict::kPass, Verdict::kPass, late, Verdict::kPass, late, late, Verdict::kPass};
  };
  EXPECT_EQ(judge(ReplayFilterMode::kRepairByDiscardOld, 10), expected(Verdict::kDiscard));
  EXPECT_EQ(judge(ReplayFilterMode::kFail, 10), expected(Verdict::kFail));
  EXPECT_EQ(judge(ReplayFilterMode::kWarn, 10), expected(Verdict::kPassWithWarning));
  EXPECT_EQ(judge(ReplayFilterMode::kOff, 10), expected(Verdict::kPass));
  // One that is forgotten is taken for a new one.
  EXPECT_EQ(judge(ReplayFilterMode::kRepairByDiscardOld, 1)[5], Verdict::kPass);
}

// PER-19: who has opened the journal after all others is no zombie, though his id be that of one who was replaced.
TEST(ReplayFilter, PassesWhoHasOpenedTheJournalSince) {
  using Verdict = ReplayFilter::Verdict;
  ReplayFilter filter({});
  uint64_t nr = 0;
  const auto judge = [&](uint64_t writer, uint64_t epoch) {
    StoredEvent event = By(++nr, writer);
    event.epoch = epoch;
    return filter.Judge(event);
  };
  EXPECT_EQ(judge(1, 7), Verdict::kPass);
  EXPECT_EQ(judge(2, 8), Verdict::kPass);
  EXPECT_EQ(judge(1, 9), Verdict::kPass);
  EXPECT_EQ(judge(1, 9), Verdict::kPass);
  EXPECT_EQ(judge(2, 8), Verdict::kDiscard);
  EXPECT_EQ(judge(2, 9), Verdict::kDiscard) << "not later than the other";
  EXPECT_EQ(judge(1, 11), Verdict::kPass) << "the same, again";
  EXPECT_EQ(judge(2, 10), Verdict::kDiscard);
  EXPECT_EQ(judge(2, 12), Verdict::kPass);
  EXPECT_EQ(judge(1, 11), Verdict::kDiscard);
}

// P41: a storage that gives an event twice, or later than its number says.
TEST(ReplayFilter, FindsNumbersThatDoNotRise) {
  using Verdict = ReplayFilter::Verdict;
  const auto judge = [](ReplayFilterMode mode, const std::vector<uint64_t>& numbers) {
    ReplayFilter filter({.mode = mode});
    filter.StartAfter(10);
    std::vector<Verdict> verdicts;
    for (const uint64_t number : numbers) verdicts.push_back(filter.Judge(By(number, 1)));
    return verdicts;
  };
  const auto expected = [](Verdict third) {
    return std::vector<Verdict>{Verdict::kPass, Verdict::kPass, third, Verdict::kPass};
  };
  const std::vector<uint64_t> twice = {11, 12, 12, 13};
  const std::vector<uint64_t> twice_and_far = {11, 12, 11, 13};
  const std::vector<uint64_t> before = {11, 12, 10, 13};
  const std::vector<uint64_t> shuffled = {11, 13, 12, 14};
  for (const auto& repeated : {twice, twice_and_far, before}) {
    EXPECT_EQ(judge(ReplayFilterMode::kRepairByDiscardOld, repeated), expected(Verdict::kDiscard));
    EXPECT_EQ(judge(ReplayFilterMode::kFail, repeated), expected(Verdict::kFail));
    EXPECT_EQ(judge(ReplayFilterMode::kWarn, repeated), expected(Verdict::kPassWithWarning));
    EXPECT_EQ(judge(ReplayFilterMode::kOff, repeated), expected(Verdict::kPass));
  }
  EXPECT_EQ(judge(ReplayFilterMode::kRepairByDiscardOld, shuffled), expected(Verdict::kFail));
  EXPECT_EQ(judge(ReplayFilterMode::kFail, shuffled), expected(Verdict::kFail));
  EXPECT_EQ(judge(ReplayFilterMode::kWarn, shuffled), expected(Verdict::kPassWithWarning));
  EXPECT_EQ(judge(ReplayFilterMode::kOff, shuffled), expected(Verdict::kPass));
  // Numbers that were rejected leave gaps.
  EXPECT_EQ(judge(ReplayFilterMode::kFail, {13, 17, 18, 90}), expected(Verdict::kPass));
  // Too many gaps to remember: which event was there already is not known.
  std::vector<uint64_t> gaps;
  for (uint64_t number = 12; number < 2000; number += 2) gaps.push_back(number);
  gaps.push_back(14);
  EXPECT_EQ(judge(ReplayFilterMode::kRepairByDiscardOld, gaps).back(), Verdict::kFail);
}

// The nodes of a simulation have one toolbox, and begin at one time.
TEST(Writers, AreOthersOnEachNode) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    std::set<uint64_t> bases;
    std::vector<TestKitOptions> nodes(4);
    nodes[1].system.config.system_name = "other";
    nodes[2].system.config.remoting = RemotingConfig{.canonical_hostname = "a.test", .canonical_port = 1};
    nodes[3].system.config.remoting = RemotingConfig{.canonical_hostname = "b.test", .canonical_port = 1};
    for (const TestKitOptions& node : nodes) {
      ActorSystem& system = sim.AddSystem(node).system();
      bases.insert(DrawWriterBase(system));
      EXPECT_EQ(system.Extension<PersistenceExtension>().WriterOf(1).high, DrawWriterBase(system));
    }
    EXPECT_EQ(bases.size(), nodes.size());
  });
}

// P40, P41, P42
TEST_F(PersistentActorTest, FiltersWhatWritersOfThePastHaveWritten) {
  AddStores();
  uint64_t nr = 0;
  for (const auto& [text, writer] :
       std::vector<std::pair<std::string, uint64_t>>{{"1", 1}, {"2", 2}, {"late", 1}, {"3", 2}}) {
    PersistentRepr event;
    event.persistence_id = "a";
    event.sequence_nr = ++nr;
    event.writer = {.high = 5, .low = writer};
    event.manifest = "fraktor.string";
    event.payload = text;
    ASSERT_TRUE(journal_->inner->Write({AtomicWrite::Make(event).value()}).Take().ok());
  }
  const auto recover = [&](ReplayFilterMode mode) {
    script_.options.replay_filter.mode = mode;
    const ActorRef actor = Spawn();
    kit_.Settle();
    Lines log = std::exchange(script_.log, {});
    kit_.system().Stop(actor);
    kit_.Settle();
    script_.log.clear();
    return log;
  };
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "it is left out"}, 1, [&] {
    EXPECT_EQ(recover(ReplayFilterMode::kRepairByDiscardOld),
              (Lines{"recover 1", "recover 2", "recover 3", "completed 4"}));
  });
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "two actors have written"}, 1, [&] {
    EXPECT_EQ(recover(ReplayFilterMode::kWarn),
              (Lines{"recover 1", "recover 2", "recover late", "recover 3", "completed 4"}));
  });
  const Lines failed = recover(ReplayFilterMode::kFail);
  ASSERT_EQ(failed.size(), 4u);
  EXPECT_TRUE(absl::StartsWith(failed[2], "recovery failed on nothing: event 3 of \"a\"")) << failed[2];
}

// P41: the journal gives the events in another order than that of their numbers, or gives one
// twice.
TEST_F(PersistentActorTest, DoesNotRecoverFromEventsInTheWrongOrder) {
  AddStores();
  std::vector<AtomicWrite> writes;
  for (uint64_t nr = 1; nr <= 4; ++nr) {
    writes.push_back(AtomicWrite::Make(PersistentRepr{.persistence_id = "a",
                                                      .sequence_nr = nr,
                                                      .manifest = "fraktor.string",
                                                      .payload = std::to_string(nr)})
                         .value());
  }
  ASSERT_TRUE(journal_->inner->Write(std::move(writes)).Take().ok());
  const auto recover = [&](std::vector<size_t> order) {
    journal_->replay_order = std::move(order);
    const ActorRef actor = Spawn();
    kit_.Settle();
    Lines log = std::exchange(script_.log, {});
    kit_.system().Stop(actor);
    kit_.Settle();
    script_.log.clear();
    return log;
  };
  EXPECT_EQ(recover({0, 1, 2, 3}), (Lines{"recover 1", "recover 2", "recover 3", "recover 4", "completed 4"}));
  const Lines shuffled = recover({0, 2, 1, 3});
  ASSERT_EQ(shuffled.size(), 4u);
  EXPECT_TRUE(absl::StartsWith(shuffled[2], "recovery failed on nothing: event 2 of \"a\": it came after event 3"))
      << shuffled[2];
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "came twice"}, 1, [&] {
    EXPECT_EQ(recover({0, 1, 1, 2, 3}), (Lines{"recover 1", "recover 2", "recover 3", "recover 4", "completed 4"}));
  });
  script_.options.replay_filter.mode = ReplayFilterMode::kFail;
  const Lines twice = recover({0, 1, 1, 2, 3});
  ASSERT_EQ(twice.size(), 4u);
  EXPECT_TRUE(absl::StrContains(twice[2], "event 2 of \"a\": it came twice")) << twice[2];
}

// ---- Bulk.

// P24
TEST_F(PersistentActorTest, KeepsTheOrderOfManyEvents) {
  AddStores();
  constexpr int kEvents = 10'000;
  script_.options.replay_page.max_events = 100;
  const ActorRef actor = SpawnRecovered();
  script_.on_text = [](ScriptedActor& a, const std::string& text) {
    if (text[0] == 's') {
      a.Persist(text, a.Handler());
    } else {
      a.PersistAsync(text, a.Handler());
    }
    return absl::OkStatus();
  };
  Lines expected;
  for (int i = 0; i < kEvents; ++i) {
    const std::string text = (i < kEvents / 2 ? "s" : "a") + std::to_string(i);
    Say(actor, text);
    expected.push_back(text);
  }
  Lines got;
  for (const std::string& line : TakeLog()) {
    if (absl::StartsWith(line, "event ")) got.push_back(line.substr(6));
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(Recovered(), expected);
}

TEST(PersistentActorOptions, NameWhatIsWrong) {
  EXPECT_TRUE(PersistentActorOptions().Validate().ok());
  EXPECT_TRUE(absl::StrContains(PersistentActorOptions{.stash_capacity = 0}.Validate().message(), "stash_capacity"));
  EXPECT_FALSE(PersistentActorOptions{.max_pending_events = 0}.Validate().ok());
  EXPECT_FALSE(PersistentActorOptions{.write_timeout = absl::ZeroDuration()}.Validate().ok());
  EXPECT_FALSE(PersistentActorOptions{.max_write_resends = -1}.Validate().ok());
  EXPECT_FALSE(PersistentActorOptions{.recovery_event_timeout = absl::ZeroDuration()}.Validate().ok());
  EXPECT_FALSE(PersistentActorOptions{.replay_page = {.max_events = 0}}.Validate().ok());
  EXPECT_FALSE(PersistentActorOptions{.replay_page = {.max_bytes = 0}}.Validate().ok());
}

}  // namespace
}  // namespace fraktor
