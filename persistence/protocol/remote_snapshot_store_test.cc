#include "fraktor/persistence/protocol/remote_snapshot_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/protocol/snapshot_actor.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

constexpr uint64_t kInstance = 7;
constexpr size_t kLargeBytes = 100'000;

// Sees each message between the two nodes. False: the message is lost.
using Filter = std::function<bool(Envelope& message)>;

// The size of a frame of the transport.
constexpr size_t kFrameBytes = 4096;

template <class M>
size_t PayloadOf(const M& message) {
  if constexpr (requires { message.snapshot.payload; }) return message.snapshot.payload.size();
  if constexpr (requires { message.bytes; }) return message.bytes.size();
  return 0;
}

// Passes answers on to one client, as the network does.
class LinkBack final : public ActorInstance {
 public:
  LinkBack(ActorRef client, std::shared_ptr<Filter> filter) : client_(client), filter_(std::move(filter)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (*filter_ != nullptr && !(*filter_)(message)) return absl::OkStatus();
    PassOn<SnapshotPartsTaken, SnapshotPartsSaved, LoadInPartsTaken, SnapshotOffer, SnapshotPart, LoadSnapshotResult,
           LoadSnapshotFailed, SaveSnapshotSuccess, SaveSnapshotFailure, DeleteSnapshotSuccess, DeleteSnapshotFailure,
           DeleteSnapshotsSuccess, DeleteSnapshotsFailure>(context, message);
    return absl::OkStatus();
  }

 private:
  template <class... Ms>
  void PassOn(ActorContext& context, Envelope& message) {
    (PassOnOne<Ms>(context, message), ...);
  }
  template <class M>
  void PassOnOne(ActorContext& context, Envelope& message) {
    auto* const answer = message.TryAs<M>();
    if (answer != nullptr && PayloadOf(*answer) <= kFrameBytes) context.Tell(client_, std::move(*answer));
  }

  const ActorRef client_;
  const std::shared_ptr<Filter> filter_;
};

// Passes requests on, and their answers back.
class Link final : public ActorInstance {
 public:
  Link(ActorRef store, std::shared_ptr<Filter> filter) : store_(store), filter_(std::move(filter)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (*filter_ != nullptr && !(*filter_)(message)) return absl::OkStatus();
    PassOn<SaveSnapshot, LoadSnapshot, DeleteSnapshot, DeleteSnapshots, SaveSnapshotPart, LoadSnapshotInParts,
           GetSnapshotPart>(context, message);
    return absl::OkStatus();
  }

 private:
  template <class... Ms>
  void PassOn(ActorContext& context, Envelope& message) {
    (PassOnOne<Ms>(context, message), ...);
  }
  template <class M>
  void PassOnOne(ActorContext& context, Envelope& message) {
    auto* const request = message.TryAs<M>();
    if (request == nullptr || PayloadOf(*request) > kFrameBytes) return;
    request->client = WayBackTo(context, request->client);
    if constexpr (requires { request->request.client; }) {
      request->request.client = WayBackTo(context, request->request.client);
    }
    context.Tell(store_, std::move(*request));
  }
  ActorRef WayBackTo(ActorContext& context, ActorRef client) {
    for (const auto& [known, way] : ways_) {
      if (known == client) return way;
    }
    const ActorRef way = context.Spawn(*MakeProps<LinkBack>({}, client, filter_));
    ways_.emplace_back(client, way);
    return way;
  }

  const ActorRef store_;
  const std::shared_ptr<Filter> filter_;
  std::vector<std::pair<ActorRef, ActorRef>> ways_;
};

class RemoteSnapshotStoreTest : public testing::Test {
 protected:
  RemoteSnapshotStoreTest() { Start({}); }

  void Start(const SnapshotActorOptions& options) {
    store_ = kit_.Spawn(*MakeProps<SnapshotActor>({}, std::shared_ptr<SnapshotStorage>(storage_), options));
    link_ = kit_.Spawn(*MakeProps<Link>({}, store_, filter_));
    remote_ = SpawnRemote();
  }
  ActorRef SpawnRemote() {
    return kit_.Spawn(*MakeProps<RemoteSnapshotStore>(
        {}, link_, uint64_t{3}, RemoteSnapshotOptions{.max_message_bytes = 1024, .parts_in_flight = 3}));
  }

  static std::string Payload(size_t bytes) {
    std::string payload;
    while (payload.size() < bytes) payload += std::to_string(payload.size()) + " ";
    payload.resize(bytes);
    return payload;
  }
  void BeginSave(uint64_t nr, size_t bytes = kLargeBytes) { BeginSaveAt(remote_, nr, bytes); }
  void BeginSaveAt(ActorRef remote, uint64_t nr, size_t bytes = kLargeBytes) {
    Snapshot snapshot{.metadata = {.persistence_id = "a", .sequence_nr = nr, .metadata = "about"},
                      .manifest = "state",
                      .manifest_version = 5,
                      .payload = Payload(bytes)};
    probe_.Send(remote, SaveSnapshot{std::move(snapshot), probe_.ref(), kInstance});
  }
  LoadSnapshotResult Load() {
    probe_.Send(remote_, LoadSnapshot{.persistence_id = "a", .client = probe_.ref(), .instance_id = kInstance});
    return probe_.Expect<LoadSnapshotResult>();
  }
  void ExpectWhole(const LoadSnapshotResult& result, uint64_t nr, size_t bytes = kLargeBytes) {
    ASSERT_TRUE(result.found);
    EXPECT_EQ(result.instance_id, kInstance);
    EXPECT_EQ(result.snapshot.metadata.sequence_nr, nr);
    EXPECT_EQ(result.snapshot.metadata.metadata, "about");
    EXPECT_EQ(result.snapshot.manifest, "state");
    EXPECT_EQ(result.snapshot.manifest_version, 5u);
    EXPECT_EQ(result.snapshot.payload, Payload(bytes));
  }
  // Loses the messages of one type for which `lost` says so.
  template <class M>
  void Lose(std::function<bool(const M&)> lost) {
    *filter_ = [lost = std::move(lost)](Envelope& message) {
      const M* const request = message.TryAs<M>();
      return request == nullptr || !lost(*request);
    };
  }

  // Loses the first `count` messages of one type.
  template <class M>
  void LoseFirst(int count) {
    auto left = std::make_shared<int>(count);
    Lose<M>([left](const M&) { return (*left)-- > 0; });
  }
  // One save and one load of a large snapshot: each is answered once.
  void SaveAndLoad(uint64_t nr) {
    BeginSave(nr);
    EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>(absl::Minutes(5)).metadata.sequence_nr, nr);
    probe_.Send(remote_, LoadSnapshot{.persistence_id = "a", .client = probe_.ref(), .instance_id = kInstance});
    ExpectWhole(probe_.Expect<LoadSnapshotResult>(absl::Minutes(5)), nr);
    probe_.ExpectNoMessage(absl::Minutes(1));
  }
  template <class M>
  void SaveAndLoadWithout(uint64_t nr) {
    SCOPED_TRACE(MessageTypeOf<M>()->name());
    LoseFirst<M>(2);
    SaveAndLoad(nr);
  }

  TestKit kit_;
  std::shared_ptr<MemorySnapshotStore> storage_ = MemorySnapshotStore::Open({.toolbox = &kit_.toolbox()}).value();
  TestProbe probe_ = kit_.Probe();
  std::shared_ptr<Filter> filter_ = std::make_shared<Filter>();
  ActorRef store_;
  ActorRef link_;
  ActorRef remote_;
};

TEST_F(RemoteSnapshotStoreTest, SavesAndLoadsALargeSnapshotInParts) {
  size_t largest = 0;
  Lose<SaveSnapshotPart>([&](const SaveSnapshotPart& part) {
    largest = std::max(largest, part.bytes.size());
    return false;
  });
  BeginSave(1);
  const auto saved = probe_.Expect<SaveSnapshotSuccess>();
  EXPECT_EQ(saved.metadata.sequence_nr, 1u);
  EXPECT_EQ(saved.instance_id, kInstance);
  EXPECT_GT(largest, 0u);
  EXPECT_LE(largest, 1024u);
  ExpectWhole(Load(), 1);
}

TEST_F(RemoteSnapshotStoreTest, PassesSmallRequestsOnAsTheyAre) {
  Lose<SaveSnapshotPart>([](const SaveSnapshotPart&) -> bool {
    ADD_FAILURE() << "a part";
    return false;
  });
  BeginSave(1, 100);
  EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>().instance_id, kInstance);
  ExpectWhole(Load(), 1, 100);
  probe_.Send(remote_, DeleteSnapshot{{.persistence_id = "a", .sequence_nr = 1}, probe_.ref(), kInstance});
  probe_.Expect<DeleteSnapshotSuccess>();
  EXPECT_FALSE(Load().found);
}

// PER-14
TEST_F(RemoteSnapshotStoreTest, SendsPartsAgainThatAreLost) {
  int count = 0;
  *filter_ = [&](Envelope&) { return ++count % 10 != 3; };
  SaveAndLoad(1);
}

// PER-14: each kind of message, in both directions.
TEST_F(RemoteSnapshotStoreTest, GoesOnWhateverMessageIsLost) {
  SaveAndLoadWithout<SaveSnapshotPart>(1);
  SaveAndLoadWithout<SnapshotPartsTaken>(2);
  SaveAndLoadWithout<SnapshotPartsSaved>(3);
  SaveAndLoadWithout<LoadSnapshotInParts>(4);
  SaveAndLoadWithout<LoadInPartsTaken>(5);
  SaveAndLoadWithout<SnapshotOffer>(6);
  SaveAndLoadWithout<GetSnapshotPart>(7);
  SaveAndLoadWithout<SnapshotPart>(8);
}

// PER-14: a second result would reset an actor that replays its events.
TEST_F(RemoteSnapshotStoreTest, AnswersALoadOnceIfItsConfirmationIsLost) {
  BeginSave(1, 100);
  probe_.Expect<SaveSnapshotSuccess>();
  LoseFirst<LoadInPartsTaken>(1);
  ExpectWhole(Load(), 1, 100);
  probe_.ExpectNoMessage(absl::Minutes(1));
  // The result is lost.
  LoseFirst<LoadSnapshotResult>(2);
  probe_.Send(remote_, LoadSnapshot{.persistence_id = "a", .client = probe_.ref(), .instance_id = kInstance});
  ExpectWhole(probe_.Expect<LoadSnapshotResult>(absl::Minutes(1)), 1, 100);
  probe_.ExpectNoMessage(absl::Minutes(1));
}

// The plugin ids of one system may lead to the same store.
TEST_F(RemoteSnapshotStoreTest, SharesAStoreWithAnotherProxyOfItsSystem) {
  const ActorRef other = SpawnRemote();
  BeginSave(1);
  BeginSaveAt(other, 2);
  EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>().metadata.sequence_nr +
                probe_.Expect<SaveSnapshotSuccess>().metadata.sequence_nr,
            3u);
  ExpectWhole(Load(), 2);
}

TEST_F(RemoteSnapshotStoreTest, SaysThatTheStoreHasNoRoomAndSendsItNoMoreThanTheFirstPart) {
  Start({.max_transfer_bytes = kLargeBytes + 1, .transfer_timeout = absl::Hours(1)});
  // An upload that does not go on.
  probe_.Send(store_, SaveSnapshotPart{.transfer = {.sender = 9, .number = 1},
                                       .total_bytes = kLargeBytes,
                                       .bytes = "first",
                                       .client = probe_.ref()});
  probe_.Expect<SnapshotPartsTaken>();
  int later_parts = 0;
  Lose<SaveSnapshotPart>([&](const SaveSnapshotPart& part) {
    later_parts += part.offset > 0 ? 1 : 0;
    return false;
  });
  BeginSave(1);
  const auto failed = probe_.Expect<SaveSnapshotFailure>(absl::Minutes(1));
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(failed.cause), JournalErrorKind::kOverloaded) << failed.cause;
  EXPECT_EQ(later_parts, 0);
}

// Two clients wait for one load of the store, and the first one takes the last part.
TEST_F(RemoteSnapshotStoreTest, SendsTheLastPartToAllThatWaitForIt) {
  storage_ = MemorySnapshotStore::Open(
                 {.toolbox = &kit_.toolbox(), .min_delay = absl::Milliseconds(10), .max_delay = absl::Milliseconds(10)})
                 .value();
  Start({});
  BeginSave(1);
  const auto saved = probe_.Expect<SaveSnapshotSuccess>();
  for (uint64_t number = 1; number <= 3; ++number) {
    probe_.Send(store_, GetSnapshotPart{.metadata = saved.metadata,
                                        .total_bytes = kLargeBytes,
                                        .offset = kLargeBytes - 5,
                                        .max_bytes = 1024,
                                        .client = probe_.ref(),
                                        .number = number});
  }
  for (uint64_t number = 1; number <= 3; ++number) {
    const auto part = probe_.Expect<SnapshotPart>();
    EXPECT_TRUE(part.cause.ok()) << part.cause;
    EXPECT_EQ(part.bytes, Payload(kLargeBytes).substr(kLargeBytes - 5)) << part.number;
  }
}

TEST_F(RemoteSnapshotStoreTest, FailsASaveWithoutProgressAndSavesTheNextTime) {
  int count = 0;
  Lose<SaveSnapshotPart>([&](const SaveSnapshotPart&) { return ++count > 10; });
  BeginSave(1);
  const auto failed = probe_.Expect<SaveSnapshotFailure>(absl::Minutes(1));
  EXPECT_EQ(failed.metadata.sequence_nr, 1u);
  EXPECT_EQ(failed.instance_id, kInstance);
  EXPECT_TRUE(absl::IsUnavailable(failed.cause)) << failed.cause;
  EXPECT_TRUE(absl::StrContains(failed.cause.message(), "and no more for 15s")) << failed.cause;
  // The window that was lost, and one part at a time.
  EXPECT_LE(count, 20);
  EXPECT_FALSE(Load().found);
  *filter_ = nullptr;
  BeginSave(1);
  probe_.Expect<SaveSnapshotSuccess>();
  ExpectWhole(Load(), 1);
}

TEST_F(RemoteSnapshotStoreTest, BeginsAnUploadAgainThatTheStoreHasForgotten) {
  // The store waits for nobody: what is not heard of for a moment is forgotten.
  Start({.transfer_timeout = absl::Milliseconds(100)});
  int count = 0;
  int first_parts = 0;
  Lose<SaveSnapshotPart>([&](const SaveSnapshotPart& part) {
    first_parts += part.offset == 0 ? 1 : 0;
    return ++count >= 20 && count <= 22;
  });
  BeginSave(1);
  EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>(absl::Minutes(1)).metadata.sequence_nr, 1u);
  EXPECT_EQ(first_parts, 2);
  ExpectWhole(Load(), 1);
}

TEST_F(RemoteSnapshotStoreTest, CarriesOutTheRequestsOfAnIdInTheirOrder) {
  BeginSave(1);
  probe_.Send(remote_, DeleteSnapshots{"a", {.max_sequence_nr = 1}, probe_.ref(), kInstance});
  BeginSave(2, 100);
  BeginSave(3);
  EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>().metadata.sequence_nr, 1u);
  probe_.Expect<DeleteSnapshotsSuccess>();
  EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>().metadata.sequence_nr, 2u);
  EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>().metadata.sequence_nr, 3u);
  ExpectWhole(Load(), 3);
  probe_.Send(
      remote_,
      LoadSnapshot{
          .persistence_id = "a", .criteria = {.max_sequence_nr = 1}, .client = probe_.ref(), .instance_id = kInstance});
  EXPECT_FALSE(probe_.Expect<LoadSnapshotResult>().found);
}

TEST_F(RemoteSnapshotStoreTest, RefusesWhatDoesNotFitIntoItsMemory) {
  remote_ = kit_.Spawn(*MakeProps<RemoteSnapshotStore>(
      {}, store_, uint64_t{4},
      RemoteSnapshotOptions{.max_message_bytes = 1024, .max_transfer_bytes = kLargeBytes + 10}));
  BeginSave(1);
  BeginSave(2);
  const auto failed = probe_.Expect<SaveSnapshotFailure>();
  EXPECT_EQ(failed.metadata.sequence_nr, 2u);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(failed.cause), JournalErrorKind::kOverloaded) << failed.cause;
  EXPECT_EQ(probe_.Expect<SaveSnapshotSuccess>().metadata.sequence_nr, 1u);
  BeginSave(3);
  probe_.Expect<SaveSnapshotSuccess>();
}

// A node of an older version drops the messages that it does not know.
TEST_F(RemoteSnapshotStoreTest, LoadsSmallSnapshotsFromAnOlderNodeAndSaysWhyItCannotSaveLargeOnes) {
  BeginSave(1, 100);
  probe_.Expect<SaveSnapshotSuccess>();
  *filter_ = [](Envelope& message) {
    return !message.Is<SaveSnapshotPart>() && !message.Is<LoadSnapshotInParts>() && !message.Is<GetSnapshotPart>();
  };
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "older version"}, 1, [&] { ExpectWhole(Load(), 1, 100); });
  BeginSave(2);
  const auto failed = probe_.Expect<SaveSnapshotFailure>(absl::Minutes(1));
  EXPECT_TRUE(absl::StrContains(failed.cause.message(), "older version")) << failed.cause;
  // A node that cannot be reached at all.
  *filter_ = [](Envelope&) { return false; };
  probe_.Send(remote_, LoadSnapshot{.persistence_id = "a", .client = probe_.ref(), .instance_id = kInstance});
  const auto lost = probe_.Expect<LoadSnapshotFailed>(absl::Minutes(1));
  EXPECT_EQ(lost.instance_id, kInstance);
  EXPECT_TRUE(absl::IsUnavailable(lost.cause)) << lost.cause;
}

TEST_F(RemoteSnapshotStoreTest, AnswersEverythingThatIsUnderWayWhenItStops) {
  *filter_ = [](Envelope&) { return false; };
  BeginSave(1);
  probe_.Send(remote_, DeleteSnapshot{{.persistence_id = "a", .sequence_nr = 1}, probe_.ref(), kInstance});
  probe_.Send(remote_, LoadSnapshot{.persistence_id = "b", .client = probe_.ref(), .instance_id = kInstance});
  kit_.Settle();
  kit_.system().Stop(remote_);
  probe_.Expect<SaveSnapshotFailure>();
  probe_.Expect<DeleteSnapshotFailure>();
  probe_.Expect<LoadSnapshotFailed>();
}

TEST(RemoteSnapshotOptions, NameWhatIsWrong) {
  EXPECT_TRUE(RemoteSnapshotOptions().Validate().ok());
  EXPECT_FALSE(RemoteSnapshotOptions{.max_message_bytes = 1023}.Validate().ok());
  EXPECT_FALSE(RemoteSnapshotOptions{.max_transfers = 0}.Validate().ok());
  EXPECT_FALSE(RemoteSnapshotOptions{.resend_after = absl::ZeroDuration()}.Validate().ok());
  EXPECT_FALSE(RemoteSnapshotOptions{.timeout = absl::Milliseconds(1)}.Validate().ok());
}

}  // namespace
}  // namespace fraktor
