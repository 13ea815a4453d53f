#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/adapter/event_adapter.h"
#include "fraktor/persistence/adapter/event_adapters.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

// The actor's own.
struct Added {
  int64_t amount = 0;
};
// The journal's.
struct StoredAdded {
  int64_t cents = 0;
};
struct Pair {
  int64_t first = 0;
  int64_t second = 0;
};
struct Plain {
  int64_t amount = 0;
};

struct Add {
  int64_t amount = 0;
};
struct AddPlain {
  int64_t amount = 0;
};
struct AddPair {
  int64_t first = 0;
  int64_t second = 0;
};

}  // namespace

template <>
struct Codec<Added> : FieldCodec<Added, &Added::amount> {
  static constexpr std::string_view kManifest = "added";
};
template <>
struct Codec<StoredAdded> : FieldCodec<StoredAdded, &StoredAdded::cents> {
  static constexpr std::string_view kManifest = "stored_added";
};
template <>
struct Codec<Pair> : FieldCodec<Pair, &Pair::first, &Pair::second> {
  static constexpr std::string_view kManifest = "pair";
};
template <>
struct Codec<Plain> : FieldCodec<Plain, &Plain::amount> {
  static constexpr std::string_view kManifest = "plain";
};

namespace {

using Seen = std::vector<std::string>;

class Adder final : public PersistentActor {
 public:
  Adder(std::string journal, Seen* seen) : journal_(std::move(journal)), seen_(seen) {}

 private:
  std::string PersistenceId() const override { return "adder"; }
  std::string_view JournalPluginId() const override { return journal_; }

  absl::Status ReceiveCommand(ActorContext& context, Envelope& command) override {
    if (const auto* const add = command.TryAs<Add>()) {
      Persist(Added{add->amount}, [this, &context](const Added& event) {
        seen_->push_back(absl::StrCat("handled ", event.amount));
        context.Reply(event);
      });
    } else if (const auto* const plain = command.TryAs<AddPlain>()) {
      Persist(Plain{plain->amount}, [](const Plain&) {});
    } else if (const auto* const pair = command.TryAs<AddPair>()) {
      Persist(Pair{pair->first, pair->second}, [](const Pair&) {});
    }
    return absl::OkStatus();
  }
  absl::Status ReceiveRecover(ActorContext&, Envelope& event) override {
    if (const auto* const added = event.TryAs<Added>()) seen_->push_back(absl::StrCat("added ", added->amount));
    if (const auto* const stored = event.TryAs<StoredAdded>()) seen_->push_back(absl::StrCat("stored ", stored->cents));
    if (const auto* const pair = event.TryAs<Pair>()) {
      seen_->push_back(absl::StrCat("pair ", pair->first, " ", pair->second));
    }
    if (const auto* const plain = event.TryAs<Plain>()) seen_->push_back(absl::StrCat("plain ", plain->amount));
    return absl::OkStatus();
  }

  const std::string journal_;
  Seen* const seen_;
};

class AdapterTest : public testing::Test {
 protected:
  static TestKitOptions Options() {
    TestKitOptions options;
    options.system.codecs =
        CodecSetup().Add<Added, StoredAdded, Pair, Plain>().AddAlias<Added>("added.v0").Build().value();
    return options;
  }
  PersistenceExtension& persistence() { return kit_.system().Extension<PersistenceExtension>(); }

  // A journal of its own for each set of adapters, over the same storage.
  void AddJournal(const std::string& name, const EventAdapters& adapters) {
    absl::StatusOr<std::shared_ptr<const EventCodec>> codec = adapters.Build(kit_.system());
    ASSERT_TRUE(codec.ok()) << codec.status();
    ASSERT_TRUE(persistence().AddJournal(name, {.storage = storage_, .actors = 1, .codec = *std::move(codec)}).ok());
  }
  void AddPlainJournal() { ASSERT_TRUE(persistence().AddJournal("none", {.storage = storage_}).ok()); }

  ActorRef Start(const std::string& journal) {
    seen_.clear();
    const ActorRef adder = kit_.Spawn(*MakeProps<Adder>({}, journal, &seen_));
    kit_.Settle();
    return adder;
  }
  // What a recovery with these adapters gives.
  Seen Recovered(const std::string& journal) {
    End(Start(journal));
    return seen_;
  }
  void End(ActorRef adder) {
    kit_.system().Stop(adder);
    kit_.Settle();
  }
  template <class C>
  void Write(const std::string& journal, C command) {
    const ActorRef adder = Start(journal);
    Tell(adder, std::move(command));
    kit_.Settle();
    End(adder);
  }
  // "manifest tag tag" of each event.
  Seen Stored() {
    Seen stored;
    const EventBatch batch = storage_->Replay({.persistence_id = "adder"}).Take().value();
    for (const StoredEvent& event : batch) {
      std::string text(event.manifest);
      for (const std::string_view tag : event.tags()) absl::StrAppend(&text, " ", std::string(tag));
      stored.push_back(text);
    }
    return stored;
  }

  static std::shared_ptr<const EventAdapter> Cents() {
    return ReadWriteAdapter<Added, StoredAdded>([](const Added& event) { return StoredAdded{event.amount * 100}; },
                                                [](const StoredAdded& stored) { return Added{stored.cents / 100}; });
  }

  TestKit kit_{Options()};
  std::shared_ptr<MemoryJournal> storage_ = MemoryJournal::Open({}).value();
  Seen seen_;
};

// P119, PER-20
TEST_F(AdapterTest, ShowsTheActorItsOwnEventsAndTheJournalTheOthers) {
  AddJournal("cents", EventAdapters().Add("cents", Cents()).Bind<Added, StoredAdded>({"cents"}));
  const ActorRef adder = Start("cents");
  EXPECT_EQ(kit_.AskAndWait<Added>(adder, Add{3}).value().amount, 3);
  EXPECT_EQ(seen_, Seen{"handled 3"});
  End(adder);
  EXPECT_EQ(Stored(), Seen{"stored_added"});
  EXPECT_EQ(Recovered("cents"), Seen{"added 3"});
}

// P117
TEST_F(AdapterTest, AreChosenByTheEventsOwnTypeThenForAllOthersThenNot) {
  AddJournal("both", EventAdapters()
                         .Add("mine", TagEvents({"mine"}))
                         .Add("others", TagEvents({"others", "all"}))
                         .Bind<Added>({"mine"})
                         .BindOthers({"others"}));
  Write("both", Add{1});
  Write("both", AddPlain{1});
  AddJournal("one", EventAdapters().Add("mine", TagEvents({"mine"})).Bind<Added>({"mine"}));
  Write("one", AddPlain{2});
  EXPECT_EQ(Stored(), (Seen{"added mine", "plain others all", "plain"}));
  EXPECT_EQ(Recovered("both"), (Seen{"added 1", "plain 1", "plain 2"}));
}

// What others are declared as.
struct Anything {};
struct Change {};
struct Growth {};

// P117
TEST_F(AdapterTest, AreChosenByTheMostSpecificBaseThatIsDeclaredAndBound) {
  const auto adapters = [] {
    return EventAdapters()
        .Add("anything", TagEvents({"anything"}))
        .Add("change", TagEvents({"change"}))
        .Add("mine", TagEvents({"mine"}))
        .Add("others", TagEvents({"others"}))
        .BindOthers({"others"})
        .Declare<Anything, Change, Plain>()
        .Declare<Change, Growth, Plain>()
        .Declare<Growth, Added>();
  };
  // Growth has no binding: the next one above it has. Of two bases, the one that is the other's kind.
  AddJournal("near", adapters().Bind<Anything>({"anything"}).Bind<Change>({"change"}));
  Write("near", Add{1});
  Write("near", AddPlain{1});
  Write("near", AddPair{1, 2});
  EXPECT_EQ(Stored(), (Seen{"added change", "plain change", "pair others"}));
  // Its own type goes before all of them.
  AddJournal("own", adapters().Bind<Anything>({"anything"}).Bind<Added>({"mine"}));
  Write("own", Add{2});
  Write("own", AddPlain{2});
  EXPECT_EQ(Stored()[3], "added mine");
  EXPECT_EQ(Stored()[4], "plain anything");
  const EventAdapters circle = EventAdapters().Declare<Growth, Change>().Declare<Change, Growth>();
  EXPECT_FALSE(circle.Build(kit_.system()).ok());
}

// P118
TEST_F(AdapterTest, MayOnlyWrite) {
  AddJournal("write",
             EventAdapters()
                 .Add("write", WriteAdapter<Added>([](const Added& event) { return StoredAdded{event.amount}; }))
                 .Bind<Added, StoredAdded>({"write"}));
  Write("write", Add{4});
  EXPECT_EQ(Stored(), Seen{"stored_added"});
  EXPECT_EQ(Recovered("write"), Seen{"stored 4"});
}

// P118
TEST_F(AdapterTest, MayOnlyReadAndMakeNoneOneOrSeveralEventsOfOne) {
  AddPlainJournal();
  Write("none", AddPair{1, 2});
  Write("none", AddPlain{0});
  Write("none", AddPlain{7});
  AddJournal("read", EventAdapters()
                         .Add("pair", ReadAdapter<Pair>([](const Pair& pair) {
                                EventSeq events;
                                events.Add(Added{pair.first}).Add(Plain{pair.second}).Add(Added{pair.second});
                                return events;
                              }))
                         .Add("plain", ReadAdapter<Plain>([](const Plain& plain) {
                                return plain.amount == 0 ? std::nullopt : std::optional<Added>(Added{plain.amount});
                              }))
                         .Bind<Pair>({"pair"})
                         .Bind<Plain>({"plain"}));
  EXPECT_EQ(Recovered("read"), (Seen{"added 1", "plain 2", "added 2", "added 7"}));
  Write("read", AddPlain{8});
  EXPECT_EQ(Stored().back(), "plain");
}

// P118
TEST_F(AdapterTest, ReadAllOfThemIfThereAreSeveral) {
  const auto add = [](int64_t more) {
    return ReadAdapter<Plain>([more](const Plain& plain) {
      return std::vector<Added>{{plain.amount + more}, {plain.amount + more + 1}};
    });
  };
  AddJournal("several", EventAdapters().Add("10", add(10)).Add("20", add(20)).Bind<Plain>({"10", "20"}));
  Write("several", AddPlain{1});
  EXPECT_EQ(Recovered("several"), (Seen{"added 11", "added 12", "added 21", "added 22"}));
}

// P120
TEST_F(AdapterTest, AreNotBuiltIfOneIsMissingOrSeveralWrite) {
  const absl::Status missing =
      EventAdapters().Add("a", Cents()).Add("b", Cents()).Bind<Added>({"c"}).Build(kit_.system()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  for (const char* const word : {"Added", "\"c\"", "a, b"}) {
    EXPECT_NE(missing.message().find(word), absl::string_view::npos) << missing;
  }
  EXPECT_FALSE(EventAdapters().Bind<Added>({}).Build(kit_.system()).ok());
  // Neither would be written.
  const absl::Status two = EventAdapters()
                               .Add("cents", Cents())
                               .Add("tags", TagEvents({"red"}))
                               .Bind<Added>({"cents", "tags"})
                               .Build(kit_.system())
                               .status();
  EXPECT_EQ(two.code(), absl::StatusCode::kInvalidArgument);
  for (const char* const word : {"Added", "\"cents\"", "only reads"}) {
    EXPECT_NE(two.message().find(word), absl::string_view::npos) << two;
  }
  EXPECT_FALSE(EventAdapters().Add("a", Cents()).Bind<Added>({"a"}).Bind<Added>({"a"}).Build(kit_.system()).ok());
}

// P121
TEST_F(AdapterTest, ReadWhatWasWrittenWithoutThemAndWithOlderOnes) {
  AddPlainJournal();
  Write("none", Add{1});
  AddJournal("older", EventAdapters()
                          .Add("older", WriteAdapter<Added>([](const Added& event) { return Plain{event.amount}; }))
                          .Bind<Added>({"older"}));
  Write("older", Add{2});
  AddJournal("newer", EventAdapters()
                          .Add("cents", Cents())
                          .Add("plain", ReadAdapter<Plain>([](const Plain& plain) { return Added{plain.amount}; }))
                          .Bind<Added, StoredAdded>({"cents"})
                          .Bind<Plain>({"plain"}));
  Write("newer", Add{3});
  EXPECT_EQ(Stored(), (Seen{"added", "plain", "stored_added"}));
  EXPECT_EQ(Recovered("newer"), (Seen{"added 1", "added 2", "added 3"}));
}

TEST_F(AdapterTest, SeeHowAnEventIsStoredAndMayChooseTheManifest) {
  AddJournal("manifest", EventAdapters()
                             .Add("m", ReadWriteAdapter<Added, Added>(
                                           [](const Added& event) {
                                             return AdaptedEvent::Of(Added{event.amount})
                                                 .WithTags({"t"})
                                                 .WithManifest(event.amount < 0 ? "pair" : "added.v0");
                                           },
                                           [](const Added& event, const StoredEvent& stored) {
                                             return Added{stored.manifest == "added.v0" ? event.amount : -1};
                                           }))
                             .Bind<Added>({"m"}));
  Write("manifest", Add{5});
  EXPECT_EQ(Stored(), Seen{"added.v0 t"});
  EXPECT_EQ(Recovered("manifest"), Seen{"added 5"});
  // Nobody could read it.
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "\"pair\", under which they could not be read"}, 1,
                 [&] { Write("manifest", Add{-5}); });
  EXPECT_EQ(Stored(), Seen{"added.v0 t"});
}

TEST_F(AdapterTest, RejectAnEventThatTheyCannotWriteAndFailARecoveryThatTheyCannotRead) {
  AddJournal("refuse", EventAdapters()
                           .Add("w", WriteAdapter<Added>([](const Added& event) -> absl::StatusOr<StoredAdded> {
                                  if (event.amount == 0) return absl::InvalidArgumentError("nothing to add");
                                  return StoredAdded{event.amount};
                                }))
                           .Add("r", ReadAdapter<StoredAdded>([](const StoredAdded&) -> absl::StatusOr<Added> {
                                  return absl::OutOfRangeError("unreadable");
                                }))
                           .Bind<Added>({"w"})
                           .Bind<StoredAdded>({"r"}));
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "nothing to add"}, 1, [&] { Write("refuse", Add{0}); });
  Write("refuse", Add{1});
  ActorRef adder;
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "unreadable"}, 1, [&] {
    adder = Start("refuse");
    EXPECT_FALSE(kit_.IsAlive(adder));
  });
  // What is stored is good: it is the adapter that cannot read it.
  const absl::Status late = kit_.AskAndWait<std::string>(adder, Add{1}).status();
  EXPECT_TRUE(absl::IsOutOfRange(late)) << late;
  EXPECT_FALSE(ErrorKindOf<JournalErrorKind>(late).has_value()) << late;
  EXPECT_TRUE(absl::StrContains(late.message(), "event 1 of \"adder\": ")) << late;
  EXPECT_TRUE(absl::StrContains(late.message(), "the event adapter \"r\" cannot read a ")) << late;
}

TEST_F(AdapterTest, AreNamedIfTheyThrow) {
  AddJournal("throw", EventAdapters()
                          .Add("w", WriteAdapter<Added>([](const Added& event) {
                                 if (event.amount == 0) throw std::runtime_error("not this one");
                                 return StoredAdded{event.amount};
                               }))
                          .Add("r", ReadAdapter<StoredAdded>([](const StoredAdded& stored) -> Added {
                                 throw std::runtime_error(absl::StrCat("not ", stored.cents));
                               }))
                          .Bind<Added>({"w"})
                          .Bind<StoredAdded>({"r"}));
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "the event adapter \"w\" cannot write a "}, 1,
                 [&] { Write("throw", Add{0}); });
  Write("throw", Add{1});
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "the event adapter \"r\" cannot read a "}, 1,
                 [&] { EXPECT_FALSE(kit_.IsAlive(Start("throw"))); });
}

// P122
TEST_F(AdapterTest, AreThereWithoutTheJournal) {
  AddJournal("cents", EventAdapters().Add("cents", Cents()).Bind<Added>({"cents"}));
  EXPECT_TRUE(persistence().CodecOf("cents").ok());
  EXPECT_FALSE(kit_.system().Resolve("/system/journal-cents").ok());
  // So it is called when somebody writes.
  Write("cents", Add{1});
  EXPECT_TRUE(kit_.system().Resolve("/system/journal-cents").ok());
}

// PER-20
TEST_F(AdapterTest, GiveTagsThatQueriesFind) {
  AddJournal("tags", EventAdapters().Add("tags", TagEvents({"red"})).BindOthers({"tags"}));
  Write("tags", Add{1});
  Write("tags", AddPlain{2});
  EXPECT_EQ(storage_->EventsByTag({.tag = "red"}).Take().value().size(), 2u);
  EXPECT_EQ(storage_->EventsByTag({.tag = "blue"}).Take().value().size(), 0u);
}

}  // namespace
}  // namespace fraktor
