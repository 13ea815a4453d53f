#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/delivery/at_least_once_delivery.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/testing/faulty_journal.h"
#include "fraktor/persistence/typed/event_sourced.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor {
namespace {

// To the sender.
struct Order {
  std::string to = "/system/probe";
  std::string text = {};
  bool is_checked = false;
};
struct CountTimers {
  using Reply = uint64_t;
};
struct GetUnconfirmed {
  using Reply = uint64_t;
};
struct Accepted {
  std::string text = {};
};
// From the sender, and back.
struct Parcel {
  uint64_t id = 0;
  std::string text = {};
  friend bool operator==(const Parcel&, const Parcel&) = default;
};
struct Receipt {
  uint64_t id = 0;
};
struct ReceiptTaken {
  bool was_first = false;
};

struct Ordered {
  std::string to = {};
  std::string text = {};
};
struct Received {
  uint64_t id = 0;
};

struct SenderState {
  DeliverySnapshot deliveries = {};
  int64_t ordered = 0;
};

}  // namespace

template <>
struct Codec<Ordered> : FieldCodec<Ordered, &Ordered::to, &Ordered::text> {
  static constexpr std::string_view kManifest = "ordered";
};
template <>
struct Codec<Received> : FieldCodec<Received, &Received::id> {
  static constexpr std::string_view kManifest = "received";
};
template <>
struct Codec<Parcel> : FieldCodec<Parcel, &Parcel::id, &Parcel::text> {
  static constexpr std::string_view kManifest = "parcel";
};
template <>
struct Codec<SenderState> : FieldCodec<SenderState, &SenderState::deliveries, &SenderState::ordered> {
  static constexpr std::string_view kManifest = "sender";
};

namespace {

struct SenderSetup {
  DeliveryOptions options = {};
  uint64_t snapshot_every = 0;
  std::vector<UnconfirmedDelivery>* warnings = nullptr;
};

class Sender : public EventSourced<Sender, SenderState,
                                   Commands<Order, Receipt, UnconfirmedWarning, CountTimers, GetUnconfirmed>,
                                   Events<Ordered, Received>> {
 public:
  explicit Sender(const SenderSetup& setup) : setup_(setup), delivery_(setup.options) {}
  std::string PersistenceId() const override { return "sender"; }
  Retention retention() const override { return {.snapshot_every = setup_.snapshot_every}; }
  AtLeastOnceDelivery* delivery() override { return &delivery_; }

  Effect Handle(const SenderState&, const Order& order) {
    if (order.is_checked) {
      const absl::Status status = delivery_.CheckDelivery(order.to);
      if (!status.ok()) return Reply(ErrorReply{status});
    }
    return Persist(Ordered{order.to, order.text}).ThenReply([text = order.text] { return Accepted{text}; });
  }
  uint64_t Handle(ActorContext& context, const SenderState&, const CountTimers&) { return Timers(context).size(); }
  uint64_t Handle(const SenderState&, const GetUnconfirmed&) { return delivery_.unconfirmed_count(); }
  Effect Handle(const SenderState&, const Receipt& receipt) { return Persist(Received{receipt.id}); }
  void Handle(const SenderState&, const UnconfirmedWarning& warning) {
    for (const UnconfirmedDelivery& delivery : warning.deliveries) setup_.warnings->push_back(delivery);
  }
  void Apply(SenderState& state, const Ordered& event) {
    ++state.ordered;
    delivery_.Deliver(event.to, [&](uint64_t id) { return Parcel{id, event.text}; });
  }
  void Apply(SenderState&, const Received& event) {
    if (delivery_.Confirm(event.id) && !is_recovering()) {
      context().Tell(context().sender(), ReceiptTaken{true});
    } else if (!is_recovering()) {
      context().Tell(context().sender(), ReceiptTaken{false});
    }
  }

 private:
  const SenderSetup setup_;
  AtLeastOnceDelivery delivery_;
};

TestKitOptions KitWithCodecs() {
  TestKitOptions options;
  options.system.codecs = CodecSetup().Add<Ordered, Received, Parcel, SenderState>().Build().value();
  return options;
}

class DeliveryTest : public testing::Test {
 protected:
  DeliveryTest() : kit_(Options(&verdict_)) {
    auto& persistence = kit_.system().Extension<PersistenceExtension>();
    EXPECT_TRUE(persistence.AddJournal("memory", {.storage = journal_}).ok());
    EXPECT_TRUE(persistence.AddSnapshotStore("memory", {.storage = snapshots_}).ok());
  }
  static TestKitOptions Options(const SupervisionDirective* verdict) {
    TestKitOptions options = KitWithCodecs();
    options.system.guardian_strategy.decider = [verdict](const Failure&) { return *verdict; };
    return options;
  }
  RefOf<Sender> Start(SenderSetup setup = {}) {
    setup.warnings = &warnings_;
    return kit_.Spawn<Sender>(setup);
  }
  void End(const RefOf<Sender>& sender) {
    kit_.system().Stop(sender);
    kit_.Settle();
  }
  // Without waiting for what is to come.
  std::vector<uint64_t> Arrived(TestProbe& probe) {
    kit_.Settle();
    std::vector<uint64_t> ids;
    while (probe.pending() > 0) ids.push_back(probe.Expect<Parcel>().id);
    return ids;
  }

  SupervisionDirective verdict_ = Restart();
  TestKit kit_;
  std::shared_ptr<MemoryJournal> journal_ = MemoryJournal::Open({}).value();
  std::shared_ptr<MemorySnapshotStore> snapshots_ = MemorySnapshotStore::Open({.toolbox = &kit_.toolbox()}).value();
  std::vector<UnconfirmedDelivery> warnings_;
};

using Ids = std::vector<uint64_t>;

// P123, P126, PER-16
TEST_F(DeliveryTest, SendsOnceIfItIsConfirmedAndConfirmsOnce) {
  auto probe = kit_.Probe("probe");
  const auto sender = Start();
  sender.Tell(Order{.text = "a"});
  EXPECT_EQ(probe.Expect<Parcel>(), (Parcel{1, "a"}));
  EXPECT_EQ(probe.LastSender(), sender.untyped());
  probe.Send(sender, Receipt{1});
  EXPECT_TRUE(probe.Expect<ReceiptTaken>().was_first);
  probe.Send(sender, Receipt{1});
  EXPECT_FALSE(probe.Expect<ReceiptTaken>().was_first);
  probe.Send(sender, Receipt{7});
  EXPECT_FALSE(probe.Expect<ReceiptTaken>().was_first);
  kit_.Advance(absl::Hours(1));
  EXPECT_EQ(Arrived(probe), Ids{});
}

// P124, PER-16
TEST_F(DeliveryTest, SendsAgainAfterTheIntervalUntilItIsConfirmed) {
  auto probe = kit_.Probe("probe");
  const auto sender = Start({.options = {.redeliver_interval = absl::Seconds(4)}});
  sender.Tell(Order{.text = "a"});
  EXPECT_EQ(Arrived(probe), Ids{1});
  kit_.Advance(absl::Seconds(3));
  sender.Tell(Order{.text = "b"});
  EXPECT_EQ(Arrived(probe), Ids{2});
  // The first is overdue at 4 s, which the tick at 4 s sees; the second at 7 s, which the tick at 8 s sees.
  kit_.Advance(absl::Seconds(2));
  EXPECT_EQ(Arrived(probe), Ids{1});
  kit_.Advance(absl::Milliseconds(2900));
  EXPECT_EQ(Arrived(probe), Ids{});
  kit_.Advance(absl::Milliseconds(200));
  EXPECT_EQ(Arrived(probe), (Ids{1, 2}));
  probe.Send(sender, Receipt{1});
  probe.Expect<ReceiptTaken>();
  kit_.Advance(absl::Seconds(4));
  EXPECT_EQ(Arrived(probe), Ids{2});
}

// P126
TEST_F(DeliveryTest, HasNoTimerWhenNothingIsPending) {
  auto probe = kit_.Probe("probe");
  const auto sender = Start();
  sender.Tell(Order{.text = "a"});
  EXPECT_EQ(Arrived(probe), Ids{1});
  EXPECT_EQ(kit_.AskAndWait(sender, CountTimers{}).value(), 1u);
  probe.Send(sender, Receipt{1});
  probe.Expect<ReceiptTaken>();
  EXPECT_EQ(kit_.AskAndWait(sender, CountTimers{}).value(), 0u);
}

// P127, PER-16
TEST_F(DeliveryTest, CountsOverAllDestinationsAndAfterARestart) {
  auto probe = kit_.Probe("probe");
  auto other = kit_.Probe("other");
  auto sender = Start();
  sender.Tell(Order{.text = "a"});
  sender.Tell(Order{.to = "/system/other", .text = "b"});
  sender.Tell(Order{.text = "c"});
  EXPECT_EQ(Arrived(probe), (Ids{1, 3}));
  EXPECT_EQ(Arrived(other), Ids{2});
  probe.Send(sender, Receipt{1});
  probe.Expect<ReceiptTaken>();
  End(sender);
  sender = Start();
  EXPECT_EQ(Arrived(probe), Ids{3});
  EXPECT_EQ(Arrived(other), Ids{2});
  sender.Tell(Order{.text = "d"});
  EXPECT_EQ(Arrived(probe), Ids{4});
}

// P127, P128, PER-16
TEST_F(DeliveryTest, IsRestoredFromASnapshot) {
  auto probe = kit_.Probe("probe");
  auto sender = Start({.snapshot_every = 4});
  for (const char* const text : {"a", "b", "c"}) sender.Tell(Order{.text = text});
  EXPECT_EQ(Arrived(probe), (Ids{1, 2, 3}));
  probe.Send(sender, Receipt{2});
  probe.Expect<ReceiptTaken>();
  End(sender);
  // The events are gone: all is in the snapshot.
  const uint64_t epoch = journal_->OpenWriter("sender", std::nullopt).Take()->epoch;
  ASSERT_TRUE(journal_->DeleteTo("sender", 4, epoch).Take().ok());
  sender = Start();
  kit_.Settle();
  EXPECT_EQ(probe.Expect<Parcel>(), (Parcel{1, "a"}));
  EXPECT_EQ(probe.Expect<Parcel>(), (Parcel{3, "c"}));
  sender.Tell(Order{.text = "d"});
  EXPECT_EQ(Arrived(probe), Ids{4});
}

// P133
TEST_F(DeliveryTest, SendsNothingIfTheActorDiesDuringItsReplay) {
  auto probe = kit_.Probe("probe");
  const auto sender = Start();
  sender.Tell(Order{.text = "a"});
  EXPECT_EQ(Arrived(probe), Ids{1});
  End(sender);
  std::vector<AtomicWrite> unreadable;
  const uint64_t epoch = journal_->OpenWriter("sender", std::nullopt).Take().value().epoch;
  unreadable.push_back(
      AtomicWrite::Make({.persistence_id = "sender", .sequence_nr = 2, .epoch = epoch, .manifest = "lost"}).value());
  ASSERT_TRUE(journal_->Write(std::move(unreadable)).Take().ok());
  const auto dying = Start();
  EXPECT_EQ(Arrived(probe), Ids{});
  EXPECT_FALSE(kit_.IsAlive(dying));
  kit_.Advance(absl::Hours(1));
  EXPECT_EQ(Arrived(probe), Ids{});
}

// P129
TEST(AtLeastOnceDelivery, RefusesWildcardsAndWhatIsNoPath) {
  const AtLeastOnceDelivery delivery;
  for (const char* const path :
       {"/user/*", "/user/a?c", "pekko://s/user/*/b", "", "user/a", "/", "bob", "//", "pekko://s", "/user/a b",
        "/user/%zz", "/user/a#b", "/user/", "/user", "/system", "pekko://s/user"}) {
    EXPECT_EQ(delivery.CheckDelivery(path).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  for (const char* const path : {"/user/a", "/user/a/b#7", "pekko://s/user/a", "pekko://s@host:1/user/a"}) {
    EXPECT_TRUE(delivery.CheckDelivery(path).ok()) << delivery.CheckDelivery(path);
  }
}

// P132
TEST_F(DeliveryTest, RefusesMoreThanMayBeUnconfirmed) {
  auto probe = kit_.Probe("probe");
  const auto sender = Start({.options = {.max_unconfirmed = 2}});
  for (const char* const text : {"a", "b"}) sender.Tell(Order{.text = text, .is_checked = true});
  EXPECT_EQ(Arrived(probe), (Ids{1, 2}));
  probe.Send(sender, Order{.text = "c", .is_checked = true});
  EXPECT_EQ(probe.Expect<ErrorReply>().status.code(), absl::StatusCode::kResourceExhausted);
  // Nobody asks: it is a failure, which an actor that is resumed gets over.
  verdict_ = Resume();
  kit_.ExpectLog({.contains = "2 deliveries are unconfirmed"}, 1, [&] {
    sender.Tell(Order{.text = "c"});
    kit_.Settle();
  });
  EXPECT_EQ(kit_.AskAndWait(sender, GetUnconfirmed{}).value(), 2u);
  probe.Send(sender, Receipt{1});
  probe.Expect<ReceiptTaken>();
  sender.Tell(Order{.text = "d", .is_checked = true});
  EXPECT_EQ(Arrived(probe), Ids{4});
}

// P132, P127
TEST_F(DeliveryTest, ComesBackWithMoreThanMayBeUnconfirmed) {
  auto probe = kit_.Probe("probe");
  auto sender = Start({.options = {.max_unconfirmed = 2}});
  for (const char* const text : {"a", "b"}) sender.Tell(Order{.text = text});
  EXPECT_EQ(Arrived(probe), (Ids{1, 2}));
  // Its event is stored: so when the actor is restarted, it is delivered.
  sender.Tell(Order{.text = "c"});
  EXPECT_EQ(Arrived(probe), (Ids{1, 2, 3}));
  End(sender);
  sender = Start({.options = {.max_unconfirmed = 1}});
  EXPECT_EQ(Arrived(probe), (Ids{1, 2, 3}));
  for (const uint64_t id : {1, 2, 3}) {
    probe.Send(sender, Receipt{id});
    EXPECT_TRUE(probe.Expect<ReceiptTaken>().was_first);
  }
  sender.Tell(Order{.text = "d"});
  EXPECT_EQ(Arrived(probe), Ids{4});
}

// P127, P129
TEST_F(DeliveryTest, ComesBackWithADestinationThatIsNoneAndWithTheSameIds) {
  auto probe = kit_.Probe("probe");
  verdict_ = Resume();
  auto sender = Start();
  sender.Tell(Order{.to = "/user/*", .text = "a"});
  sender.Tell(Order{.to = "/user/a b", .text = "b"});
  sender.Tell(Order{.text = "c"});
  EXPECT_EQ(Arrived(probe), Ids{3});
  End(sender);
  sender = Start({.options = {.redeliver_interval = absl::Seconds(2), .warn_after_attempts = 1}});
  EXPECT_EQ(Arrived(probe), Ids{3});
  kit_.Advance(absl::Seconds(3));
  ASSERT_EQ(warnings_.size(), 3u);
  EXPECT_EQ(warnings_[0].destination, "/user/*");
  EXPECT_EQ(warnings_[1].destination, "/user/a b");
}

TEST(AtLeastOnceDelivery, ChecksItsOptions) {
  EXPECT_TRUE(DeliveryOptions().Validate().ok());
  EXPECT_FALSE(DeliveryOptions{.redeliver_interval = absl::ZeroDuration()}.Validate().ok());
  EXPECT_FALSE(DeliveryOptions{.redelivery_burst_limit = 0}.Validate().ok());
  EXPECT_FALSE(DeliveryOptions{.warn_after_attempts = -1}.Validate().ok());
  EXPECT_FALSE(DeliveryOptions{.max_unconfirmed = 0}.Validate().ok());
  EXPECT_THROW(AtLeastOnceDelivery({.redelivery_burst_limit = 0}), DeliveryError);
}

// P131
TEST_F(DeliveryTest, SendsNoMoreThanABurstAgainAtATime) {
  auto probe = kit_.Probe("probe");
  const auto sender = Start({.options = {.redeliver_interval = absl::Seconds(2), .redelivery_burst_limit = 3}});
  for (int i = 0; i < 5; ++i) sender.Tell(Order{.text = "x"});
  EXPECT_EQ(Arrived(probe), (Ids{1, 2, 3, 4, 5}));
  kit_.Advance(absl::Seconds(2));
  EXPECT_EQ(Arrived(probe), (Ids{1, 2, 3}));
  kit_.Advance(absl::Seconds(1));
  EXPECT_EQ(Arrived(probe), (Ids{4, 5}));
}

// P131
TEST_F(DeliveryTest, GivesEachItsTurnIfMoreThanABurstGoToNobody) {
  auto probe = kit_.Probe("probe");
  const SenderSetup setup = {.options = {.redeliver_interval = absl::Seconds(2), .redelivery_burst_limit = 2}};
  auto sender = Start(setup);
  for (int i = 0; i < 5; ++i) sender.Tell(Order{.to = "/user/nobody", .text = "x"});
  sender.Tell(Order{.text = "y"});
  EXPECT_EQ(Arrived(probe), Ids{6});
  kit_.Advance(absl::Seconds(10));
  EXPECT_EQ(Arrived(probe), (Ids{6, 6, 6}));
  // Also for the first time after a recovery.
  End(sender);
  sender = Start(setup);
  kit_.Advance(absl::Seconds(3));
  EXPECT_EQ(Arrived(probe), Ids{6});
}

// PER-16
TEST_F(DeliveryTest, WarnsOnceAfterSomeAttempts) {
  const auto sender = Start({.options = {.redeliver_interval = absl::Seconds(2), .warn_after_attempts = 3}});
  sender.Tell(Order{.to = "/user/nobody", .text = "x"});
  kit_.Settle();
  kit_.Advance(absl::Seconds(5));
  EXPECT_EQ(warnings_.size(), 0u);
  kit_.Advance(absl::Seconds(60));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0].delivery_id, 1u);
  EXPECT_EQ(warnings_[0].destination, "/user/nobody");
  EXPECT_NE(warnings_[0].message.find("Parcel"), std::string::npos);
}

TEST_F(DeliveryTest, FindsADestinationThatComesLater) {
  const auto sender = Start();
  sender.Tell(Order{.to = "/system/late", .text = "x"});
  kit_.Settle();
  auto late = kit_.Probe("late");
  kit_.Advance(absl::Seconds(6));
  EXPECT_EQ(Arrived(late), Ids{1});
}

// Takes parcels, loses some, and confirms the others.
class Customer : public Actor<Customer, Parcel, ReceiptTaken> {
 public:
  Customer(Simulation* sim, std::set<std::string>* got) : sim_(sim), got_(got) {}
  void On(Context& context, const Parcel& parcel) {
    if (sim_->Happens("parcel lost", 0.3)) return;
    got_->insert(parcel.text);
    if (sim_->Happens("receipt lost", 0.3)) return;
    context.Reply(Receipt{parcel.id});
  }
  void On(Context&, const ReceiptTaken&) {}

 private:
  Simulation* const sim_;
  std::set<std::string>* const got_;
};

struct FaultyPart : public SimulationPart {
  explicit FaultyPart(Simulation& sim)
      : executor(SerialExecutor::Make(sim.toolbox(), {}).value()),
        journal(MemoryJournal::Open({}).value()),
        faulty(*journal, sim.toolbox(), *executor,
               {.fail_write = 0.3,
                .fail_open = 0.1,
                .fail_read = 0.3,
                .min_delay = absl::Milliseconds(1),
                .max_delay = absl::Milliseconds(20)}) {}

  std::unique_ptr<SerialExecutor> executor;
  std::unique_ptr<MemoryJournal> journal;
  FaultyJournal faulty;
  // What actors write to, until they end.
  std::set<std::string> got;
  std::vector<UnconfirmedDelivery> warnings;
};

// P134
TEST(DeliverySimulation, BringsEverythingToItsEndThoughAThirdOfAllFails) {
  Simulate({.seeds = 30, .each = {.kit = KitWithCodecs()}}, [](Simulation& sim) {
    FaultyPart& part = sim.AddPart<FaultyPart>(sim);
    ASSERT_TRUE(sim.system()
                    .Extension<PersistenceExtension>()
                    .AddJournal("faulty", {.storage = {std::shared_ptr<void>(), &part.faulty}})
                    .ok());
    sim.SpawnNamed<Customer>("customer", &sim, &part.got);
    auto probe = sim.Probe();
    probe.Ignore<ErrorReply>();
    RefOf<Sender> sender;
    const auto ensure = [&] {
      if (!sim.IsAlive(sender)) {
        sender = sim.Spawn<Sender>(
            SenderSetup{.options = {.redeliver_interval = absl::Seconds(2)}, .warnings = &part.warnings});
      }
    };
    std::set<std::string> missing;
    for (int i = 0; i < 20; ++i) missing.insert(absl::StrCat("parcel ", i));
    const std::set<std::string> all = missing;
    // An order that is not accepted is given again: whether it was stored nobody knows.
    for (int round = 0; round < 1000 && !missing.empty(); ++round) {
      ensure();
      for (const std::string& text : missing) probe.Send(sender, Order{.to = "/user/customer", .text = text});
      sim.Advance(absl::Seconds(1));
      while (probe.pending() > 0) missing.erase(probe.Expect<Accepted>().text);
    }
    ASSERT_TRUE(missing.empty());
    uint64_t unconfirmed = 1;
    for (int round = 0; round < 1000 && unconfirmed > 0; ++round) {
      ensure();
      sim.Advance(absl::Seconds(5));
      if (sim.IsAlive(sender)) unconfirmed = sim.AskAndWait(sender, GetUnconfirmed{}).value_or(1);
    }
    EXPECT_EQ(unconfirmed, 0u);
    EXPECT_EQ(part.got, all);
    EXPECT_GT(part.faulty.counts().failed, 0u);
  });
}

}  // namespace
}  // namespace fraktor
