#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/fencing_token.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/durable/durable_actor.h"
#include "fraktor/persistence/durable/state_actor.h"
#include "fraktor/persistence/durable/state_codecs.h"
#include "fraktor/persistence/durable/state_extension.h"
#include "fraktor/persistence/durable/state_messages.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_state_store.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

struct Items {
  std::string text = {};
};
struct AddItem {
  using Reply = Items;
  std::string item = {};
};
struct GetItems {
  using Reply = Items;
};
struct Clear {
  using Reply = Items;
};
struct ClearAndLeave {
  using Reply = Items;
};
struct AddAndFail {
  using Reply = Items;
};
struct Lock {};
struct Unlock {};
struct Fail {};

struct CartState {
  std::vector<std::string> items = {};
};
struct Stock {
  int64_t pieces = 0;
};

}  // namespace

template <>
struct Codec<CartState> : FieldCodec<CartState, &CartState::items> {
  static constexpr std::string_view kManifest = "cart";
};
template <>
struct Codec<Stock> : FieldCodec<Stock, &Stock::pieces> {
  static constexpr std::string_view kManifest = "stock";
};

namespace {

class Cart : public DurableActor<Cart, CartState,
                                 Commands<AddItem, GetItems, Clear, ClearAndLeave, AddAndFail, Lock, Unlock, Fail>> {
 public:
  explicit Cart(std::string id, uint64_t token = kNoEpoch) : id_(std::move(id)), token_(token) {}
  std::string PersistenceId() const override { return id_; }
  uint64_t FencingToken() const override { return token_; }

  Effect Handle(const CartState& state, const AddItem& command) {
    if (is_locked_) return Stash();
    CartState changed = state;
    changed.items.push_back(command.item);
    return Persist(std::move(changed)).ThenReply([](const CartState& now) {
      return Items{absl::StrJoin(now.items, " ")};
    });
  }
  Items Handle(const CartState& state, const GetItems&) { return {absl::StrJoin(state.items, " ")}; }
  Effect Handle(const CartState&, const Clear&) {
    return Delete().ThenReply([](const CartState& now) { return Items{absl::StrCat("cleared ", now.items.size())}; });
  }
  Effect Handle(ActorContext& context, const CartState&, const ClearAndLeave&) {
    context.Stop();
    return Delete().ThenReply([] { return Items{"left"}; });
  }
  Effect Handle(const CartState& state, const AddAndFail&) {
    return Persist(state).ThenRun([] { throw std::runtime_error("no printer"); });
  }
  void Handle(const CartState&, const Lock&) { is_locked_ = true; }
  Effect Handle(const CartState&, const Unlock&) {
    is_locked_ = false;
    return Nothing().ThenUnstashAll();
  }
  absl::Status Handle(const CartState&, const Fail&) { return absl::InternalError("asked to fail"); }

 private:
  const std::string id_;
  const uint64_t token_;
  bool is_locked_ = false;
};

struct SellOne {
  using Reply = Items;
};
struct Restock {
  using Reply = Items;
};

// Begins with ten pieces.
class Shelf : public DurableActor<Shelf, Stock, Commands<SellOne, Restock>> {
 public:
  Shelf() : DurableActor(Stock{.pieces = 10}) {}
  std::string PersistenceId() const override { return "shelf"; }
  ReplyEffect<Items> Handle(const Stock& state, const SellOne&) {
    return Persist(Stock{state.pieces - 1}).ThenReply(&Count);
  }
  ReplyEffect<Items> Handle(const Stock&, const Restock&) { return Delete().ThenReply(&Count); }

 private:
  static Items Count(const Stock& now) { return {absl::StrCat(now.pieces)}; }
};

// Answers when the test says so.
class HeldStore final : public StateStorage {
 public:
  Future<StoredState> Load(std::string persistence_id) override {
    if (throws) throw std::runtime_error("no disk");
    return store_->Load(std::move(persistence_id));
  }
  Future<void> OpenWriter(std::string persistence_id, uint64_t token) override {
    if (throws) throw std::runtime_error("no disk");
    return store_->OpenWriter(std::move(persistence_id), token);
  }
  Future<void> Upsert(DurableState state, uint64_t token) override {
    if (throws) throw std::runtime_error("no disk");
    if (!is_held) return store_->Upsert(std::move(state), token);
    auto [promise, future] = MakePromise<void>();
    held.push_back({std::move(state), token, std::move(promise)});
    return std::move(future);
  }
  Future<void> Delete(std::string persistence_id, uint64_t revision, WriterId writer, uint64_t token) override {
    return store_->Delete(std::move(persistence_id), revision, writer, token);
  }
  Future<void> Close() override { return store_->Close(); }
  const StateLimits& limits() const override { return store_->limits(); }

  void Release() {
    Held first = std::move(held.front());
    held.erase(held.begin());
    first.promise.Set(store_->Upsert(std::move(first.state), first.token).Take());
  }

  bool is_held = false;
  bool throws = false;
  struct Held {
    DurableState state;
    uint64_t token;
    Promise<void> promise;
  };
  std::vector<Held> held;

 private:
  const std::unique_ptr<MemoryStateStore> store_ = MemoryStateStore::Open({.limits = {.max_state_bytes = 100}}).value();
};

class DurableTest : public testing::Test {
 protected:
  DurableTest() {
    StateStoreSetup setup{.storage = store_};
    // The patience of the actors is looked at, not that of the breaker.
    setup.options.breaker.call_timeout = absl::Hours(1);
    EXPECT_TRUE(kit_.system().Extension<StateExtension>().AddStore("memory", setup).ok());
  }

  static TestKitOptions Options() {
    TestKitOptions options;
    options.system.codecs = CodecSetup().Add<CartState, Stock>().Build().value();
    return options;
  }
  RefOf<Cart> Start() { return kit_.Spawn<Cart>("cart"); }
  void End(const RefOf<Cart>& cart) {
    kit_.system().Stop(cart);
    kit_.Settle();
  }
  template <class Q>
  std::string Ask(const RefOf<Cart>& cart, Q question) {
    const absl::StatusOr<Items> items = kit_.AskAndWait(cart, std::move(question));
    return items.ok() ? items->text : std::string(items.status().message());
  }

  TestKit kit_{Options()};
  std::shared_ptr<HeldStore> store_ = std::make_shared<HeldStore>();
};

// P136
TEST_F(DurableTest, HasItsStateAgainWhenItComesBack) {
  auto cart = Start();
  EXPECT_EQ(Ask(cart, AddItem{"milk"}), "milk");
  EXPECT_EQ(Ask(cart, AddItem{"bread"}), "milk bread");
  End(cart);
  cart = Start();
  EXPECT_EQ(Ask(cart, GetItems{}), "milk bread");
  EXPECT_EQ(Ask(cart, AddItem{"jam"}), "milk bread jam");
  EXPECT_EQ(store_->Load("cart").Take()->state.revision, 3u);
}

// P136
TEST_F(DurableTest, DeletesItsStateAndGoesOn) {
  auto cart = Start();
  EXPECT_EQ(Ask(cart, AddItem{"milk"}), "milk");
  EXPECT_EQ(Ask(cart, Clear{}), "cleared 0");
  EXPECT_FALSE(store_->Load("cart").Take()->exists);
  End(cart);
  cart = Start();
  EXPECT_EQ(Ask(cart, GetItems{}), "");
  EXPECT_EQ(Ask(cart, AddItem{"jam"}), "jam");
}

TEST_F(DurableTest, LetsCommandsWaitWhileAChangeIsStoredAndKeepsTheirOrder) {
  const auto cart = Start();
  auto probe = kit_.Probe();
  kit_.Settle();
  store_->is_held = true;
  probe.Send(cart, AddItem{"a"});
  probe.Send(cart, GetItems{});
  probe.Send(cart, AddItem{"b"});
  probe.Send(cart, AddItem{"c"});
  probe.Send(cart, GetItems{});
  kit_.Settle();
  EXPECT_EQ(probe.pending(), 0u);
  ASSERT_EQ(store_->held.size(), 1u);
  store_->Release();
  EXPECT_EQ(probe.Expect<Items>().text, "a");
  EXPECT_EQ(probe.Expect<Items>().text, "a");
  kit_.Settle();
  EXPECT_EQ(probe.pending(), 0u);
  store_->Release();
  EXPECT_EQ(probe.Expect<Items>().text, "a b");
  kit_.Settle();
  store_->Release();
  EXPECT_EQ(probe.Expect<Items>().text, "a b c");
  EXPECT_EQ(probe.Expect<Items>().text, "a b c");
}

// A19
TEST_F(DurableTest, HeedsAPoisonPillWhenWhatWasSentBeforeIsStored) {
  const auto cart = Start();
  auto probe = kit_.Probe();
  kit_.Settle();
  store_->is_held = true;
  probe.Send(cart, AddItem{"a"});
  probe.Send(cart, AddItem{"b"});
  probe.Send(cart.untyped(), PoisonPill{});
  probe.Send(cart, AddItem{"too late"});
  kit_.Settle();
  store_->Release();
  EXPECT_EQ(probe.Expect<Items>().text, "a");
  kit_.Settle();
  store_->Release();
  EXPECT_EQ(probe.Expect<Items>().text, "a b");
  probe.ExpectTerminated(cart.untyped());
  EXPECT_EQ(store_->Load("cart").Take()->state.revision, 2u);
}

TEST_F(DurableTest, LosesNoCommandThatWaitsWhenItIsRestarted) {
  const auto cart = Start();
  auto probe = kit_.Probe();
  kit_.Settle();
  store_->is_held = true;
  probe.Send(cart, AddItem{"a"});
  probe.Send(cart, Fail{});
  probe.Send(cart, AddItem{"b"});
  probe.Send(cart, GetItems{});
  kit_.Settle();
  store_->is_held = false;
  store_->Release();
  EXPECT_EQ(probe.Expect<Items>().text, "a");
  EXPECT_EQ(probe.Expect<Items>().text, "a b");
  EXPECT_EQ(probe.Expect<Items>().text, "a b");
}

// Two may wait.
class SmallCart : public DurableActor<SmallCart, CartState, Commands<AddItem, GetItems>> {
 public:
  std::string PersistenceId() const override { return "small"; }
  DurableActorOptions options() const override { return {.stash_capacity = 2}; }
  Effect Handle(const CartState& state, const AddItem& command) {
    CartState changed = state;
    changed.items.push_back(command.item);
    return Persist(std::move(changed)).ThenReply([](const CartState& now) {
      return Items{absl::StrJoin(now.items, " ")};
    });
  }
  Items Handle(const CartState& state, const GetItems&) { return {absl::StrJoin(state.items, " ")}; }
};

// P97: each failure makes room.
TEST_F(DurableTest, ComesBackFromABurstOfManyMoreCommandsThanMayWait) {
  const auto cart = kit_.Spawn<SmallCart>();
  auto probe = kit_.Probe();
  kit_.Settle();
  // The first is stored. Of those behind it two wait, and one finds no room, again and again; the
  // last waits for the state.
  kit_.ExpectDeadLetters<AddItem>(6, [&] {
    for (int i = 0; i < 11; ++i) probe.Send(cart, AddItem{absl::StrCat(i)});
  });
  const absl::StatusOr<Items> items = kit_.AskAndWait(cart, GetItems{});
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_EQ(items->text, "0 10");
}

TEST_F(DurableTest, PutsCommandsAsideAndTakesThemBack) {
  const auto cart = Start();
  auto probe = kit_.Probe();
  probe.Send(cart, Lock{});
  probe.Send(cart, AddItem{"a"});
  probe.Send(cart, AddItem{"b"});
  probe.Send(cart, GetItems{});
  EXPECT_EQ(probe.Expect<Items>().text, "");
  probe.Send(cart, Unlock{});
  probe.Send(cart, AddItem{"c"});
  EXPECT_EQ(probe.Expect<Items>().text, "a");
  EXPECT_EQ(probe.Expect<Items>().text, "a b");
  EXPECT_EQ(probe.Expect<Items>().text, "a b c");
}

TEST_F(DurableTest, StopsIfSomebodyElseHasChangedItsState) {
  const auto cart = Start();
  EXPECT_EQ(Ask(cart, AddItem{"milk"}), "milk");
  ASSERT_TRUE(store_->Upsert({.persistence_id = "cart", .revision = 2, .manifest = "cart"}, kNoEpoch).Take().ok());
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "another writer has changed it"}, 1, [&] {
    // Nobody waits in vain.
    EXPECT_NE(Ask(cart, AddItem{"jam"}).find("another writer has changed it"), std::string::npos);
  });
  EXPECT_FALSE(kit_.IsAlive(cart));
}

TEST_F(DurableTest, StoresNothingIfItsHandlerHasStoppedIt) {
  const auto cart = Start();
  EXPECT_EQ(Ask(cart, AddItem{"milk"}), "milk");
  const std::string refused = Ask(cart, ClearAndLeave{});
  EXPECT_NE(refused.find("ThenStop()"), std::string::npos) << refused;
  kit_.Settle();
  EXPECT_FALSE(kit_.IsAlive(cart));
  EXPECT_TRUE(store_->Load("cart").Take()->exists);
}

TEST_F(DurableTest, SaysThatAChangeIsStoredIfWhatFollowsFails) {
  const std::string failed = Ask(Start(), AddAndFail{});
  EXPECT_NE(failed.find("what follows revision 1 of \"cart\" (ThenRun, ThenReply) fails; that is stored"),
            std::string::npos)
      << failed;
  EXPECT_NE(failed.find("it threw: no printer"), std::string::npos) << failed;
}

// Both come to the same bytes.
TEST_F(DurableTest, RefusesTheSecondOfTwoActorsThatStoreTheSame) {
  const auto first = Start();
  const auto second = Start();
  kit_.Settle();
  EXPECT_EQ(Ask(first, AddItem{"milk"}), "milk");
  const std::string refused = Ask(second, AddItem{"milk"});
  EXPECT_NE(refused.find("another writer has changed it, as a second actor with this id would"), std::string::npos)
      << refused;
  EXPECT_FALSE(kit_.IsAlive(second));
  EXPECT_EQ(Ask(first, Clear{}), "cleared 0");
}

// PER-19: the former owner would be the first to store, and its revision would be the next.
TEST_F(DurableTest, RefusesTheChangesOfAFormerOwner) {
  const auto former = kit_.Spawn<Cart>("cart", 1);
  EXPECT_EQ(Ask(former, AddItem{"milk"}), "milk");
  const auto owner = kit_.Spawn<Cart>("cart", 2);
  kit_.Settle();
  const std::string refused = Ask(former, AddItem{"sand"});
  EXPECT_NE(refused.find("another actor has taken over this persistence id"), std::string::npos) << refused;
  EXPECT_FALSE(kit_.IsAlive(former));
  EXPECT_EQ(Ask(owner, AddItem{"bread"}), "milk bread");
  // Nor can it come back.
  const auto late = kit_.Spawn<Cart>("cart", 1);
  const std::string too_late = Ask(late, GetItems{});
  EXPECT_NE(too_late.find("\"cart\" could not be loaded: "), std::string::npos) << too_late;
  EXPECT_FALSE(kit_.IsAlive(late));
  // The owner can.
  End(owner);
  EXPECT_EQ(Ask(kit_.Spawn<Cart>("cart", 2), Clear{}), "cleared 0");
}

// PER-19
TEST_F(DurableTest, RefusesADeletionAndAChangeThatComesLateOfAFormerOwner) {
  const auto former = kit_.Spawn<Cart>("cart", 1);
  auto probe = kit_.Probe();
  EXPECT_EQ(Ask(former, AddItem{"milk"}), "milk");
  store_->is_held = true;
  probe.Send(former, AddItem{"sand"});
  kit_.Settle();
  ASSERT_EQ(store_->held.size(), 1u);
  store_->is_held = false;
  const auto owner = kit_.Spawn<Cart>("cart", 2);
  EXPECT_EQ(Ask(owner, GetItems{}), "milk");
  store_->Release();
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(probe.Expect<ErrorReply>().status), JournalErrorKind::kFenced);
  const auto second = kit_.Spawn<Cart>("other", 1);
  kit_.Settle();
  const auto third = kit_.Spawn<Cart>("other", 2);
  kit_.Settle();
  EXPECT_NE(Ask(second, Clear{}).find("taken over"), std::string::npos);
  EXPECT_EQ(Ask(owner, AddItem{"bread"}), "milk bread");
  EXPECT_EQ(Ask(third, AddItem{"jam"}), "jam");
}

// PER-19: a grain gets its token in this way.
TEST_F(DurableTest, NamesTheTokenOfItsContext) {
  const FencingTokenScope scope(7);
  EXPECT_EQ(kit_.AskAndWait(kit_.Spawn<Shelf>(), SellOne{}).value().text, "9");
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(
                store_->Upsert({.persistence_id = "shelf", .revision = 2, .manifest = "stock"}, 6).Take()),
            JournalErrorKind::kFenced);
}

// The store was asked twice because its answer was lost on the way.
TEST_F(DurableTest, StoresAChangeOfTheSameWriterOnce) {
  StateExtension& states = kit_.system().Extension<StateExtension>();
  const ActorRef store = states.Store().value();
  auto probe = kit_.Probe();
  ChangeState change{.change = {.exists = true, .state = {.persistence_id = "cart", .revision = 1, .writer = {1, 2}}},
                     .client = probe.ref()};
  for (int i = 0; i < 2; ++i) {
    probe.Send(store, change);
    EXPECT_TRUE(probe.Expect<StateChanged>().cause.ok());
  }
  change.change.state.writer = {1, 3};
  probe.Send(store, change);
  EXPECT_FALSE(probe.Expect<StateChanged>().cause.ok());
}

TEST_F(DurableTest, GetsTheStoresAnswersWhenItsMailboxIsFull) {
  PropsOptions options;
  options.mailbox.capacity = 2;
  options.mailbox.overflow = OverflowStrategy::kDropNewest;
  const ActorRef cart = kit_.Spawn(*MakeProps<Cart>(options, "cart"));
  auto probe = kit_.Probe();
  kit_.Settle();
  store_->is_held = true;
  probe.Send(cart, AddItem{"a"});
  kit_.Settle();
  // The answer comes behind these.
  store_->Release();
  for (int i = 0; i < 3; ++i) probe.Send(cart, GetItems{});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(probe.Expect<Items>().text, "a");
}

TEST_F(DurableTest, HearsOfAStoreThatThrowsAndOthersAreNotConcerned) {
  const auto cart = Start();
  const auto other = kit_.Spawn<Cart>("other");
  auto probe = kit_.Probe();
  kit_.Settle();
  store_->is_held = true;
  probe.Send(other, AddItem{"milk"});
  kit_.Settle();
  store_->throws = true;
  EXPECT_NE(Ask(cart, AddItem{"jam"}).find("no disk"), std::string::npos);
  EXPECT_FALSE(kit_.IsAlive(cart));
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "could not be loaded; the actor stops: exception: no disk"}, 1,
                 [&] {
                   Start();
                   kit_.Settle();
                 });
  store_->throws = false;
  store_->Release();
  EXPECT_EQ(probe.Expect<Items>().text, "milk");
}

// A store that is down is not asked again and again.
TEST_F(DurableTest, HearsAtOnceWhileTheBreakerOfAStoreIsOpen) {
  StateExtension& states = kit_.system().Extension<StateExtension>();
  store_->throws = true;
  const ActorRef store = states.Store().value();
  auto probe = kit_.Probe();
  const auto load = [&] {
    probe.Send(store, LoadState{"cart", probe.ref(), 7});
    return probe.Expect<StateLoaded>().cause;
  };
  for (int i = 0; i < StateActorOptions().breaker.max_failures; ++i) {
    EXPECT_NE(load().message().find("no disk"), absl::string_view::npos);
  }
  store_->throws = false;
  EXPECT_TRUE(absl::IsUnavailable(load())) << load();
  kit_.Advance(StateActorOptions().breaker.reset_timeout);
  EXPECT_TRUE(load().ok());
}

// Cannot start as it is.
class Hasty final : public DurableActor<Hasty, CartState, Commands<GetItems>> {
 public:
  explicit Hasty(DurableActorOptions options) : options_(options) {}
  std::string PersistenceId() const override { return "hasty"; }
  DurableActorOptions options() const override { return options_; }
  Items Handle(const CartState&, const GetItems&) { return {}; }

 private:
  const DurableActorOptions options_;
};

TEST_F(DurableTest, DoesNotStartWithOptionsThatMakeNoSense) {
  for (const DurableActorOptions& options :
       {DurableActorOptions{.stash_capacity = 0}, DurableActorOptions{.store_timeout = absl::ZeroDuration()}}) {
    kit_.ExpectLog({.level = LogLevel::kError, .contains = "DurableActorOptions::"}, 1, [&] {
      const auto hasty = kit_.Spawn<Hasty>(options);
      kit_.Settle();
      EXPECT_FALSE(kit_.IsAlive(hasty));
    });
  }
}

// PER-14
TEST(StateCodecs, BringEveryMessageBackEqual) {
  const auto codecs = CodecSetup().Add(StateCodecs()).Build().value();
  const auto round = [&](auto message) {
    using M = decltype(message);
    std::string bytes;
    const auto codec = codecs->Encode(*MakeEnvelope<M>(ActorRef(), std::move(message)), bytes);
    EXPECT_TRUE(codec.ok()) << codec.status();
    return std::move((*codecs->Decode({(*codec)->manifest(), (*codec)->version(), bytes}).value()).template As<M>());
  };
  const DurableState state{.persistence_id = "cart",
                           .revision = 3,
                           .manifest = "m",
                           .manifest_version = 4,
                           .payload = "bytes",
                           .writer = {5, UINT64_MAX}};
  EXPECT_EQ(round(LoadState{"cart", {}, 8}).persistence_id, "cart");
  EXPECT_EQ(round(LoadState{"cart", {}, 8}).instance_id, 8u);
  EXPECT_EQ(round(LoadState{"cart", {}, 8, 3}).token, 3u);
  const auto change = round(ChangeState{{.exists = true, .state = state}, {}, 8, 3});
  EXPECT_EQ(change.token, 3u);
  EXPECT_EQ(change.change.state, state);
  EXPECT_TRUE(change.change.exists);
  EXPECT_EQ(change.instance_id, 8u);
  const absl::Status error = absl::UnavailableError("no disk");
  const auto loaded = round(StateLoaded{error, {.exists = true, .state = state}, 8});
  EXPECT_EQ(loaded.cause, error);
  EXPECT_EQ(loaded.stored.state, state);
  EXPECT_TRUE(loaded.stored.exists);
  EXPECT_EQ(loaded.instance_id, 8u);
  const auto changed = round(StateChanged{error, 5, 8});
  EXPECT_EQ(changed.cause, error);
  EXPECT_EQ(changed.revision, 5u);
  EXPECT_EQ(changed.instance_id, 8u);
}

// PER-19: a node of an older version does not send the token of the owner.
TEST(StateCodecs, ReadRequestsOfOlderNodesAsThoseOfNoToken) {
  const auto codecs = CodecSetup().Add(StateCodecs()).Build().value();
  const auto read_without_token = [&](auto message) {
    using M = decltype(message);
    message.token = 3;  // in one byte, which is the last one
    std::string bytes;
    const auto codec = codecs->Encode(*MakeEnvelope<M>(ActorRef(), std::move(message)), bytes);
    EXPECT_TRUE(codec.ok()) << codec.status();
    bytes.pop_back();
    return std::move((*codecs->Decode({(*codec)->manifest(), 0, bytes}).value()).template As<M>());
  };
  const auto load = read_without_token(LoadState{"cart", {}, 8});
  EXPECT_EQ(load.persistence_id, "cart");
  EXPECT_EQ(load.instance_id, 8u);
  EXPECT_EQ(load.token, kNoEpoch);
  const auto change = read_without_token(ChangeState{{.exists = true, .state = {.revision = 3}}, {}, 8});
  EXPECT_EQ(change.change.state.revision, 3u);
  EXPECT_EQ(change.instance_id, 8u);
  EXPECT_EQ(change.token, kNoEpoch);
}

TEST_F(DurableTest, RefusesAStateThatIsTooLargeAndGoesOnWithoutIt) {
  const auto cart = Start();
  EXPECT_NE(Ask(cart, AddItem{std::string(200, 'x')}).find("max_state_bytes"), std::string::npos);
  EXPECT_EQ(Ask(cart, AddItem{"milk"}), "milk");
}

TEST_F(DurableTest, StopsIfItsStateCannotBeReadOrTheStoreDoesNotAnswer) {
  ASSERT_TRUE(store_->Upsert({.persistence_id = "cart", .revision = 1, .manifest = "lost"}, kNoEpoch).Take().ok());
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "\"lost\""}, 1, [&] {
    const auto cart = Start();
    kit_.Settle();
    EXPECT_FALSE(kit_.IsAlive(cart));
  });
  const auto other = kit_.Spawn<Cart>("other");
  kit_.Settle();
  store_->is_held = true;
  other.Tell(AddItem{"milk"});
  kit_.Advance(absl::Seconds(29));
  EXPECT_TRUE(kit_.IsAlive(other));
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "has not answered for 30s"}, 1,
                 [&] { kit_.Advance(absl::Seconds(2)); });
  EXPECT_FALSE(kit_.IsAlive(other));
}

// PER-13: the asker need not wait until the time is over, and hears why.
TEST_F(DurableTest, TellsThoseWhoHaveAskedWhyItCannotBeLoadedOrStored) {
  ASSERT_TRUE(store_->Upsert({.persistence_id = "cart", .revision = 1, .manifest = "lost"}, kNoEpoch).Take().ok());
  const std::string refused = Ask(Start(), GetItems{});
  EXPECT_EQ(refused.find("\"cart\" could not be loaded: "), 0u) << refused;
  EXPECT_NE(refused.find("\"lost\""), std::string::npos) << refused;
  // Also who comes too late.
  const auto gone = Start();
  kit_.Settle();
  EXPECT_FALSE(kit_.IsAlive(gone));
  const std::string late = Ask(gone, GetItems{});
  EXPECT_NE(late.find("has ended"), std::string::npos) << late;
  EXPECT_NE(late.find(refused), std::string::npos) << late;

  const auto other = kit_.Spawn<Cart>("other");
  auto probe = kit_.Probe();
  kit_.Settle();
  store_->is_held = true;
  probe.Send(other, AddItem{"milk"});
  kit_.Settle();
  // Somebody else is faster.
  store_->is_held = false;
  ASSERT_TRUE(store_->Upsert({.persistence_id = "other", .revision = 1, .manifest = "cart"}, kNoEpoch).Take().ok());
  Future<Items> waiting = kit_.system().Ask(other, GetItems{}, absl::Seconds(5));
  kit_.Settle();
  store_->Release();
  kit_.Settle();
  EXPECT_NE(probe.Expect<ErrorReply>().status.message().find("another writer"), absl::string_view::npos);
  ASSERT_TRUE(waiting.IsReady());
  const absl::Status behind = waiting.Take().status();
  EXPECT_EQ(behind.message().find("\"other\" could not be stored: "), 0u) << behind;
}

TEST(DurableActor, BeginsWithAStateOfItsOwnAndHasItAgainWhenItIsDeleted) {
  TestKitOptions options;
  options.system.codecs = CodecSetup().Add<Stock>().Build().value();
  TestKit kit(options);
  ASSERT_TRUE(kit.system().Extension<StateExtension>().AddStore("s", {.storage = std::make_shared<HeldStore>()}).ok());
  auto shelf = kit.Spawn<Shelf>();
  EXPECT_EQ(kit.AskAndWait(shelf, SellOne{}).value().text, "9");
  kit.system().Stop(shelf);
  kit.Settle();
  shelf = kit.Spawn<Shelf>();
  EXPECT_EQ(kit.AskAndWait(shelf, SellOne{}).value().text, "8");
  EXPECT_EQ(kit.AskAndWait(shelf, Restock{}).value().text, "10");
  EXPECT_EQ(kit.AskAndWait(shelf, SellOne{}).value().text, "9");
}

TEST_F(DurableTest, NeedsAnIdAndAStore) {
  for (const char* const blank : {"", " "}) {
    const auto nameless = kit_.Spawn<Cart>(blank);
    kit_.Settle();
    EXPECT_FALSE(kit_.IsAlive(nameless));
  }
  TestKit bare{Options()};
  const auto homeless = bare.Spawn<Cart>("cart");
  bare.Settle();
  EXPECT_FALSE(bare.IsAlive(homeless));
  StateExtension& states = kit_.system().Extension<StateExtension>();
  EXPECT_EQ(states.AddStore("memory", {.storage = store_}).code(), absl::StatusCode::kAlreadyExists);
  for (const char* const id : {"", "my store", "$a", "a/b"}) {
    EXPECT_EQ(states.AddStore(id, {.storage = store_}).code(), absl::StatusCode::kInvalidArgument) << id;
  }
  EXPECT_EQ(states.AddStore("none", {}).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status missing = states.Store("other").status();
  EXPECT_NE(missing.message().find("\"memory\""), absl::string_view::npos) << missing;
}

}  // namespace
}  // namespace fraktor
