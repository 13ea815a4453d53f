#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/protocol/journal_actor.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/pending_operations.h"
#include "fraktor/persistence/protocol/snapshot_actor.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kInstance = 7;

using Numbers = std::vector<uint64_t>;

PersistentRepr EventOf(std::string_view id, uint64_t nr, uint64_t epoch) {
  PersistentRepr event;
  event.persistence_id = id;
  event.sequence_nr = nr;
  event.epoch = epoch;
  event.manifest = "text";
  event.payload = "event";
  return event;
}

AtomicWrites WritesOf(std::string_view id, uint64_t from, uint64_t to, uint64_t epoch) {
  AtomicWrites writes;
  for (uint64_t nr = from; nr <= to; ++nr) writes.push_back(AtomicWrite::Make(EventOf(id, nr, epoch)).value());
  return writes;
}

// A journal whose answers the test gives, over one in memory.
class HeldJournal final : public JournalStorage {
 public:
  struct Held {
    size_t writes;
    Promise<WriteResults> promise;
    WriteResults results;
  };

  Future<WriterOpened> OpenWriter(std::string id, std::optional<uint64_t> token) override {
    calls.push_back("open " + id);
    return inner->OpenWriter(std::move(id), token);
  }
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override {
    calls.push_back("write " + std::to_string(writes.size()));
    if (throws) throw std::runtime_error("no disk");
    if (!failure.ok()) return MakeReadyFuture<WriteResults>(failure);
    const size_t count = writes.size();
    WriteResults results = inner->Write(std::move(writes)).Take().value();
    if (wrong_result_count) results.resize(count + 1);
    if (!holds) return MakeReadyFuture<WriteResults>(std::move(results));
    auto [promise, future] = MakePromise<WriteResults>();
    held.push_back({count, std::move(promise), std::move(results)});
    return std::move(future);
  }
  bool WriteAtOnce(std::span<const AtomicWrite> writes, absl::StatusOr<WriteResults>& answer) override {
    return waits_for_nothing && inner->WriteAtOnce(writes, answer);
  }
  Future<EventBatch> Replay(ReplayPage page) override {
    if (empty_pages) {
      EventBatch empty;
      empty.Finish(page.from_sequence_nr + (gets_on ? 1 : 0), false);
      return MakeReadyFuture<EventBatch>(std::move(empty));
    }
    calls.push_back("replay");
    return inner->Replay(std::move(page));
  }
  Future<uint64_t> HighestSequenceNr(std::string id) override {
    calls.push_back("highest");
    if (!failure.ok()) return MakeReadyFuture<uint64_t>(failure);
    return inner->HighestSequenceNr(std::move(id));
  }
  Future<void> DeleteTo(std::string id, uint64_t to, uint64_t epoch) override {
    calls.push_back("delete");
    return inner->DeleteTo(std::move(id), to, epoch);
  }
  Future<EventBatch> EventsByTag(TagPage page) override { return inner->EventsByTag(std::move(page)); }
  Future<IdBatch> PersistenceIds(IdPage page) override { return inner->PersistenceIds(page); }
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override {
    return inner->AwaitAdvance(std::move(subject), after);
  }
  Future<void> Close() override { return inner->Close(); }
  const JournalLimits& limits() const override { return inner->limits(); }

  void Release() {
    std::vector<Held> now = std::exchange(held, {});
    for (Held& one : now) one.promise.Set(std::move(one.results));
  }

  std::unique_ptr<MemoryJournal> inner = MemoryJournal::Open({}).value();
  std::vector<std::string> calls;
  std::vector<Held> held;
  absl::Status failure;
  bool holds = false;
  bool waits_for_nothing = false;
  bool throws = false;
  bool wrong_result_count = false;
  bool empty_pages = false;
  bool gets_on = true;
};

// Waits for futures, and counts the messages that it gets.
class Waiter final : public ActorInstance {
 public:
  struct Await {
    std::shared_ptr<Future<int>> future;
  };

  explicit Waiter(std::vector<std::string>* log) : log_(*log) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (auto* const await = message.TryAs<Await>()) {
      operations_.Await(context, std::move(*await->future), [this](const absl::StatusOr<int>& result) {
        log_.push_back(result.ok() ? std::to_string(*result) : std::string(result.status().message()));
      });
      return absl::OkStatus();
    }
    log_.push_back("message");
    EXPECT_TRUE(operations_.Resume(message));
    return absl::OkStatus();
  }
  void PostStop(ActorContext& /*context*/) override { operations_.FailAll(absl::UnavailableError("ended")); }

 private:
  std::vector<std::string>& log_;
  PendingOperations operations_;
};

// PER-9
TEST(PendingOperations, GetOneMessageForEachResultThatComesLater) {
  using Log = std::vector<std::string>;
  Log log;
  TestKit kit;
  TestProbe probe = kit.Probe();
  const ActorRef waiter = kit.Spawn(*MakeProps<Waiter>({}, &log));
  std::vector<Promise<int>> promises;
  const auto await = [&] {
    auto [promise, future] = MakePromise<int>();
    promises.push_back(std::move(promise));
    probe.Send(waiter, Waiter::Await{std::make_shared<Future<int>>(std::move(future))});
    kit.Settle();
  };
  const auto take_log = [&] {
    kit.Settle();
    return std::exchange(log, {});
  };
  probe.Send(waiter, Waiter::Await{std::make_shared<Future<int>>(MakeReadyFuture<int>(1))});
  EXPECT_EQ(take_log(), (Log{"1"}));
  for (int i = 0; i < 4; ++i) await();
  EXPECT_EQ(take_log(), Log());
  promises[1].Set(12);
  EXPECT_EQ(take_log(), (Log{"message", "12"}));
  promises[0].Set(11);
  EXPECT_EQ(take_log(), (Log{"message", "11"}));
  // Those that are left fail when it ends, and what comes later is for nobody.
  kit.system().Stop(waiter);
  EXPECT_EQ(take_log(), (Log{"ended", "ended"}));
  promises[2].Set(13);
  EXPECT_EQ(take_log(), Log());
}

class JournalActorTest : public testing::Test {
 protected:
  void Start(const JournalActorOptions& options = {}) {
    journal_ = kit_.Spawn(*MakeProps<JournalActor>({}, std::shared_ptr<JournalStorage>(storage_), options));
  }
  uint64_t Open(std::string_view id) {
    probe_.Send(journal_, OpenWriter{std::string(id), 0, probe_.ref(), kInstance});
    return probe_.Expect<WriterIsOpen>().epoch;
  }
  void SendWrites(TestProbe& client, AtomicWrites writes, uint64_t batch = 1,
                  std::vector<DeferredEntry> deferred = {}) {
    client.Send(journal_, WriteMessages{std::move(writes), std::move(deferred), client.ref(), kInstance, batch});
  }
  // Events 1 to 5 of "a". Returns the epoch.
  uint64_t StoreFive() {
    const uint64_t epoch = Open("a");
    SendWrites(probe_, WritesOf("a", 1, 5, epoch));
    probe_.Expect<WriteMessagesSuccessful>();
    for (uint64_t nr = 1; nr <= 5; ++nr) EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, nr);
    return epoch;
  }
  // All pages of a replay, as a client asks for them.
  Numbers Replay(ReplayMessages request, uint64_t* highest = nullptr) {
    Numbers numbers;
    request.client = probe_.ref();
    request.instance_id = kInstance;
    for (;;) {
      probe_.Send(journal_, ReplayMessages(request));
      EnvelopePtr answer = probe_.Receive();
      if (answer == nullptr) return numbers;
      if (const auto* const page = answer->TryAs<ReplayedMessages>()) {
        EXPECT_LE(page->events.size(), request.limits.max_events);
        for (const StoredEvent& event : page->events) numbers.push_back(event.sequence_nr);
        if (!page->is_last) {
          request.from_sequence_nr = page->events.resume_at();
          request.max_events -= page->events.size();
          continue;
        }
        answer = probe_.Receive();
      }
      const auto success = answer->As<RecoverySuccess>();
      EXPECT_EQ(success.instance_id, kInstance);
      if (highest != nullptr) *highest = success.highest_sequence_nr;
      return numbers;
    }
  }

  TestKit kit_;
  std::shared_ptr<HeldJournal> storage_ = std::make_shared<HeldJournal>();
  TestProbe probe_ = kit_.Probe();
  ActorRef journal_;
};

// P1, PER-8
TEST_F(JournalActorTest, AnswersFirstForTheWriteAndThenForEachEventInOrder) {
  Start();
  const uint64_t epoch = Open("a");
  AtomicWrites writes = WritesOf("a", 1, 1, epoch);
  writes.push_back(AtomicWrite::Make({EventOf("a", 2, epoch), EventOf("a", 3, epoch)}).value());
  SendWrites(probe_, std::move(writes), 9);
  const auto whole = probe_.Expect<WriteMessagesSuccessful>();
  EXPECT_EQ(whole.instance_id, kInstance);
  EXPECT_EQ(whole.batch, 9u);
  for (uint64_t nr = 1; nr <= 3; ++nr) {
    const auto event = probe_.Expect<WriteMessageSuccess>();
    EXPECT_EQ(event.sequence_nr, nr);
    EXPECT_EQ(event.instance_id, kInstance);
    EXPECT_EQ(event.batch, 9u);
  }
  probe_.ExpectNoMessage();
}

TEST_F(JournalActorTest, AnswersOnlyForTheEventsIfThatIsEnough) {
  Start();
  const uint64_t epoch = Open("a");
  const auto write = [&](uint64_t nr) {
    probe_.Send(journal_, WriteMessages{.writes = WritesOf("a", nr, nr, epoch),
                                        .deferred = {{.position = 1, .token = 7}},
                                        .client = probe_.ref(),
                                        .instance_id = kInstance,
                                        .batch = nr,
                                        .only_events_are_answered = true});
  };
  write(1);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 1u);
  EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 7u);
  probe_.ExpectNoMessage();
  storage_->failure = absl::UnavailableError("no disk");
  write(2);
  EXPECT_EQ(probe_.Expect<WriteMessageFailure>().sequence_nr, 2u);
  EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 7u);
  probe_.ExpectNoMessage();
}

// P1
TEST_F(JournalActorTest, AnswersTheSameIfTheStoreWaitsForNothing) {
  Start();
  storage_->waits_for_nothing = true;
  const uint64_t epoch = Open("a");
  const auto write = [&](uint64_t nr, bool only_events) {
    probe_.Send(journal_, WriteMessages{.writes = WritesOf("a", nr, nr + 1, epoch),
                                        .client = probe_.ref(),
                                        .instance_id = kInstance,
                                        .batch = nr,
                                        .only_events_are_answered = only_events});
  };
  write(1, false);
  EXPECT_EQ(probe_.Expect<WriteMessagesSuccessful>().batch, 1u);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 1u);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 2u);
  probe_.ExpectNoMessage();
  write(3, true);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 3u);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 4u);
  probe_.ExpectNoMessage();
  EXPECT_EQ(storage_->calls, std::vector<std::string>{"open a"});
}

// P2, P3, P4, P5, P6, P7, P8, P9, P10, P12, P27, PER-3
TEST_F(JournalActorTest, ReplaysWhatIsAskedForAndThenSaysTheHighestNumber) {
  Start();
  StoreFive();
  uint64_t highest = 0;
  const auto replay = [&](uint64_t from, uint64_t to, uint64_t max = kMax) {
    Numbers numbers =
        Replay({.persistence_id = "a", .from_sequence_nr = from, .to_sequence_nr = to, .max_events = max}, &highest);
    EXPECT_EQ(highest, 5u);
    return numbers;
  };
  EXPECT_EQ(replay(1, kMax), (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(replay(3, kMax), (Numbers{3, 4, 5}));
  EXPECT_EQ(replay(1, 3), (Numbers{1, 2, 3}));
  EXPECT_EQ(replay(1, kMax, 3), (Numbers{1, 2, 3}));
  EXPECT_EQ(replay(2, 3), (Numbers{2, 3}));
  EXPECT_EQ(replay(2, 5, 2), (Numbers{2, 3}));
  EXPECT_EQ(replay(2, 2), (Numbers{2}));
  EXPECT_EQ(replay(1, kMax, 1), (Numbers{1}));
  EXPECT_EQ(replay(1, kMax, 0), (Numbers{}));
  EXPECT_EQ(replay(1, 0), (Numbers{}));
  EXPECT_EQ(Replay({.persistence_id = "nobody"}, &highest), (Numbers{}));
  EXPECT_EQ(highest, 0u);
}

// P33, P34: pages are asked for one by one, and the maximum counts over all of them.
TEST_F(JournalActorTest, ReplaysInPagesThatTheClientAsksFor) {
  Start();
  StoreFive();
  EXPECT_EQ(Replay({.persistence_id = "a", .limits = {.max_events = 2}}), (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(Replay({.persistence_id = "a", .max_events = 3, .limits = {.max_events = 2}}), (Numbers{1, 2, 3}));
  storage_->calls.clear();
  probe_.Send(
      journal_,
      ReplayMessages{
          .persistence_id = "a", .limits = {.max_events = 2}, .client = probe_.ref(), .instance_id = kInstance});
  EXPECT_FALSE(probe_.Expect<ReplayedMessages>().is_last);
  probe_.ExpectNoMessage(absl::Minutes(1));
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"highest", "replay"}));
}

// P13, P14, P15, P16, P18
TEST_F(JournalActorTest, DeletesAndKeepsTheHighestNumber) {
  Start({.publish_commands = true});
  const uint64_t epoch = StoreFive();
  kit_.ExpectEvents<DeleteMessagesTo>(
      1,
      [&] {
        probe_.Send(journal_, DeleteMessagesTo{"a", 3, probe_.ref(), kInstance, epoch});
        EXPECT_EQ(probe_.Expect<DeleteMessagesSuccess>().to_sequence_nr, 3u);
      },
      [](const DeleteMessagesTo& command) { return command.persistence_id == "a" && command.to_sequence_nr == 3; });
  uint64_t highest = 0;
  EXPECT_EQ(Replay({.persistence_id = "a"}, &highest), (Numbers{4, 5}));
  EXPECT_EQ(highest, 5u);
  EXPECT_EQ(Replay({.persistence_id = "a", .from_sequence_nr = 3}), (Numbers{4, 5}));
  EXPECT_EQ(Replay({.persistence_id = "a", .from_sequence_nr = 4}), (Numbers{4, 5}));
  probe_.Send(journal_, DeleteMessagesTo{"a", kMax, probe_.ref(), kInstance, epoch});
  probe_.Expect<DeleteMessagesSuccess>();
  EXPECT_EQ(Replay({.persistence_id = "a"}, &highest), (Numbers{}));
  EXPECT_EQ(highest, 5u);
}

// PER-19: a message of a node of an older version has no epoch.
TEST_F(JournalActorTest, DeletesNothingForAFormerWriterOrWithoutAnEpoch) {
  Start();
  const uint64_t former = StoreFive();
  const auto refused = [&](const char* id, uint64_t epoch) {
    probe_.Send(journal_, DeleteMessagesTo{id, 3, probe_.ref(), kInstance, epoch});
    const auto failure = probe_.Expect<DeleteMessagesFailure>();
    EXPECT_EQ(failure.to_sequence_nr, 3u);
    EXPECT_EQ(failure.instance_id, kInstance);
    return ErrorKindOf<JournalErrorKind>(failure.cause);
  };
  EXPECT_EQ(refused("a", kNoEpoch), JournalErrorKind::kFenced);
  const uint64_t owner = Open("a");
  EXPECT_EQ(refused("a", former), JournalErrorKind::kFenced);
  EXPECT_EQ(refused("a", kNoEpoch), JournalErrorKind::kFenced);
  EXPECT_EQ(Replay({.persistence_id = "a"}), (Numbers{1, 2, 3, 4, 5}));
  probe_.Send(journal_, DeleteMessagesTo{"a", 3, probe_.ref(), kInstance, owner});
  probe_.Expect<DeleteMessagesSuccess>();
  EXPECT_EQ(Replay({.persistence_id = "a"}), (Numbers{4, 5}));
  // This id was never opened.
  SendWrites(probe_, WritesOf("b", 1, 5, kNoEpoch));
  probe_.Expect<WriteMessagesSuccessful>();
  for (uint64_t nr = 1; nr <= 5; ++nr) probe_.Expect<WriteMessageSuccess>();
  probe_.Send(journal_, DeleteMessagesTo{"b", 3, probe_.ref(), kInstance});
  probe_.Expect<DeleteMessagesSuccess>();
  EXPECT_EQ(Replay({.persistence_id = "b"}), (Numbers{4, 5}));
}

TEST_F(JournalActorTest, PublishesNoCommandUnlessToldTo) {
  Start();
  kit_.ExpectEvents<DeleteMessagesTo>(0, [&] {
    probe_.Send(journal_, DeleteMessagesTo{"a", 3, probe_.ref(), kInstance});
    probe_.Expect<DeleteMessagesSuccess>();
  });
}

// PER-8
TEST_F(JournalActorTest, SaysTheHighestNumberOrWhyItCannot) {
  Start();
  StoreFive();
  probe_.Send(journal_, GetHighestSequenceNr{"a", probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<HighestSequenceNrSuccess>().highest_sequence_nr, 5u);
  storage_->failure = absl::UnavailableError("no disk");
  probe_.Send(journal_, GetHighestSequenceNr{"a", probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<HighestSequenceNrFailure>().cause, storage_->failure);
}

// P19, P87: the neighbours of a rejected write are stored, and the write as a whole went well.
TEST_F(JournalActorTest, RejectsOneWriteAndStoresItsNeighbours) {
  Start();
  const uint64_t epoch = Open("a");
  AtomicWrites writes = WritesOf("a", 1, 3, epoch);
  PersistentRepr large = EventOf("a", 2, epoch);
  large.payload.resize(storage_->limits().max_event_bytes + 1);
  writes[1] = AtomicWrite::Make(std::move(large)).value();
  SendWrites(probe_, std::move(writes));
  probe_.Expect<WriteMessagesSuccessful>();
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 1u);
  const auto rejected = probe_.Expect<WriteMessageRejected>();
  EXPECT_EQ(rejected.sequence_nr, 2u);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(rejected.cause), JournalErrorKind::kTooLarge);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 3u);
  EXPECT_EQ(Replay({.persistence_id = "a"}), (Numbers{1, 3}));
}

// PER-19: a rejection that ends the writer is a failure.
TEST_F(JournalActorTest, FailsTheEventsOfAWriterThatWasReplaced) {
  Start();
  const uint64_t old_epoch = Open("a");
  const uint64_t new_epoch = Open("a");
  EXPECT_GT(new_epoch, old_epoch);
  SendWrites(probe_, WritesOf("a", 1, 1, old_epoch));
  probe_.Expect<WriteMessagesSuccessful>();
  const auto failed = probe_.Expect<WriteMessageFailure>();
  EXPECT_EQ(failed.sequence_nr, 1u);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(failed.cause), JournalErrorKind::kFenced);
  probe_.Send(journal_, OpenWriter{"b", 5, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<WriterIsOpen>().epoch, 5u);
  probe_.Send(journal_, OpenWriter{"b", 4, probe_.ref(), kInstance});
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(probe_.Expect<OpenWriterFailure>().cause), JournalErrorKind::kFenced);
}

// P29, P26
TEST_F(JournalActorTest, FailsAWriteThatFailsThrowsOrIsAnsweredWithNonsense) {
  Start();
  const uint64_t epoch = Open("a");
  const auto expect_failure = [&] {
    SendWrites(probe_, WritesOf("a", 1, 2, epoch), 3, {{.position = 1, .token = 77}, {.position = 2, .token = 78}});
    const auto whole = probe_.Expect<WriteMessagesFailed>();
    EXPECT_EQ(whole.write_count, 2u);
    EXPECT_EQ(whole.batch, 3u);
    EXPECT_EQ(probe_.Expect<WriteMessageFailure>().sequence_nr, 1u);
    EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 77u);
    EXPECT_EQ(probe_.Expect<WriteMessageFailure>().sequence_nr, 2u);
    EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 78u);
    return whole.cause;
  };
  storage_->failure = absl::UnavailableError("no disk");
  EXPECT_EQ(expect_failure(), storage_->failure);
  storage_->failure = absl::OkStatus();
  storage_->throws = true;
  EXPECT_EQ(std::string(expect_failure().message()), "exception: no disk");
  storage_->throws = false;
  storage_->wrong_result_count = true;
  EXPECT_FALSE(expect_failure().ok());
}

// PER-14: something else is stored there, perhaps an earlier form of the event. Its writer must
// find out.
TEST_F(JournalActorTest, FailsAWriteWhoseNumberIsTaken) {
  Start();
  StoreFive();
  PersistentRepr other = EventOf("a", 5, Open("a"));
  other.payload = "another";
  SendWrites(probe_, {AtomicWrite::Make(other).value()});
  probe_.Expect<WriteMessagesSuccessful>();
  const auto failed = probe_.Expect<WriteMessageFailure>();
  EXPECT_EQ(failed.sequence_nr, 5u);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(failed.cause), JournalErrorKind::kSequenceMismatch);
}

// P31
TEST_F(JournalActorTest, AnswersDeferredEntriesWithoutTheStore) {
  Start();
  SendWrites(probe_, {}, 4, {{.position = 0, .token = 1}, {.position = 0, .token = 2}});
  EXPECT_EQ(probe_.Expect<WriteMessagesSuccessful>().batch, 4u);
  EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 1u);
  EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 2u);
  EXPECT_TRUE(storage_->calls.empty());
}

TEST_F(JournalActorTest, AnswersDeferredEntriesInTheirPlaces) {
  Start();
  const uint64_t epoch = Open("a");
  SendWrites(probe_, WritesOf("a", 1, 2, epoch), 1,
             {{.position = 0, .token = 1}, {.position = 1, .token = 2}, {.position = 2, .token = 3}});
  probe_.Expect<WriteMessagesSuccessful>();
  EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 1u);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 1u);
  EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 2u);
  EXPECT_EQ(probe_.Expect<WriteMessageSuccess>().sequence_nr, 2u);
  EXPECT_EQ(probe_.Expect<LoopMessageSuccess>().token, 3u);
}

// PER-9: a missing answer delays nobody. When it comes, the actor receives one message.
TEST_F(JournalActorTest, ServesOthersWhileAWriteIsUnderWay) {
  Start();
  TestProbe other = kit_.Probe();
  const uint64_t epoch = Open("a");
  storage_->holds = true;
  SendWrites(probe_, WritesOf("a", 1, 1, epoch));
  kit_.Settle();
  ASSERT_EQ(storage_->held.size(), 1u);
  probe_.ExpectNoMessage(absl::Seconds(5));
  other.Send(journal_, GetHighestSequenceNr{"b", other.ref(), 1});
  other.Expect<HighestSequenceNrSuccess>();
  storage_->Release();
  probe_.Expect<WriteMessagesSuccessful>();
  probe_.Expect<WriteMessageSuccess>();
  probe_.ExpectNoMessage(absl::Minutes(1));
}

// PER-9, PER-12: what waits goes to the storage as one write.
TEST_F(JournalActorTest, CollectsTheWritesOfAllClientsWhileOthersAreUnderWay) {
  Start({.max_writes_in_flight = 1});
  std::vector<TestProbe> clients;
  std::vector<uint64_t> epochs;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(kit_.Probe());
    epochs.push_back(Open("id" + std::to_string(i)));
  }
  storage_->holds = true;
  storage_->calls.clear();
  for (size_t i = 0; i < clients.size(); ++i) {
    SendWrites(clients[i], WritesOf("id" + std::to_string(i), 1, 2, epochs[i]), 10 + i);
  }
  kit_.Settle();
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"write 2"}));
  storage_->Release();
  kit_.Settle();
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"write 2", "write 8"}));
  storage_->Release();
  for (size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i].Expect<WriteMessagesSuccessful>().batch, 10 + i);
    EXPECT_EQ(clients[i].Expect<WriteMessageSuccess>().sequence_nr, 1u);
    EXPECT_EQ(clients[i].Expect<WriteMessageSuccess>().sequence_nr, 2u);
  }
}

// Clients that write all the time, of which one write is under way and the others are collected.
class HoldTest : public JournalActorTest {
 protected:
  using Calls = std::vector<std::string>;

  void StartClients() {
    Start({.max_writes_in_flight = 1});
    for (size_t i = 0; i < 3; ++i) {
      clients_.push_back(kit_.Probe());
      epochs_.push_back(Open("id" + std::to_string(i)));
      next_.push_back(1);
    }
    storage_->holds = true;
  }
  void Persist(size_t client) {
    SendWrites(clients_[client],
               WritesOf("id" + std::to_string(client), next_[client], next_[client], epochs_[client]));
    ++next_[client];
  }
  // The calls of the storage when the write under way has been there for `took`.
  Calls Answer(absl::Duration took) {
    kit_.Settle();
    kit_.Advance(took);
    storage_->calls.clear();
    storage_->Release();
    return Written();
  }
  Calls Written() {
    kit_.Settle();
    return std::exchange(storage_->calls, {});
  }

  std::vector<TestProbe> clients_;
  std::vector<uint64_t> epochs_;
  std::vector<uint64_t> next_;
};

// PER-9: so that all of them share a write, and not every other half.
TEST_F(HoldTest, HoldsAWriteBackUntilThoseWhoWereAnsweredHaveComeAgain) {
  StartClients();
  for (size_t i = 0; i < 3; ++i) Persist(i);
  EXPECT_EQ(Answer(absl::Milliseconds(40)), Calls());
  Persist(0);
  EXPECT_EQ(Written(), (Calls{"write 3"}));
  // Nobody was left, and nobody is waited for but those three.
  EXPECT_EQ(Answer(absl::Milliseconds(40)), Calls());
  Persist(2);
  Persist(1);
  EXPECT_EQ(Written(), Calls());
  Persist(0);
  EXPECT_EQ(Written(), (Calls{"write 3"}));
}

TEST_F(HoldTest, HoldsAWriteBackForAQuarterOfTheTimeOfTheLastOneAtMost) {
  StartClients();
  Persist(0);
  Persist(1);
  EXPECT_EQ(Answer(absl::Milliseconds(40)), Calls());
  kit_.Advance(absl::Milliseconds(9));
  EXPECT_EQ(Written(), Calls());
  kit_.Advance(absl::Milliseconds(2));
  EXPECT_EQ(Written(), (Calls{"write 1"}));
}

TEST_F(HoldTest, WritesAtOnceForWhoeverComesTooLate) {
  StartClients();
  Persist(0);
  EXPECT_EQ(Answer(absl::Milliseconds(40)), Calls());
  kit_.Advance(absl::Milliseconds(11));
  Persist(1);
  EXPECT_EQ(Written(), (Calls{"write 1"}));
}

TEST_F(HoldTest, HoldsNothingBackForAWhileAfterAHoldInVain) {
  StartClients();
  const auto answer_one_of_two = [&] {
    Persist(0);
    Persist(1);
    Calls calls = Answer(absl::Milliseconds(40));
    if (calls.empty()) {
      kit_.Advance(absl::Milliseconds(11));
      EXPECT_EQ(Written(), (Calls{"write 1"}));
      calls.push_back("held");
    }
    Answer(absl::ZeroDuration());
    return calls;
  };
  EXPECT_EQ(answer_one_of_two(), (Calls{"held"}));
  // Two writes each.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(answer_one_of_two(), (Calls{"write 1"})) << i;
  EXPECT_EQ(answer_one_of_two(), (Calls{"held"}));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(answer_one_of_two(), (Calls{"write 1"})) << i;
  EXPECT_EQ(answer_one_of_two(), (Calls{"held"}));
}

TEST_F(HoldTest, HoldsNothingBackThatIsOpenedOrDeletedFrom) {
  StartClients();
  Persist(0);
  Persist(1);
  EXPECT_EQ(Answer(absl::Milliseconds(40)), Calls());
  probe_.Send(journal_, OpenWriter{"id1", 0, probe_.ref(), kInstance});
  probe_.Expect<WriterIsOpen>();
  EXPECT_EQ(Written(), (Calls{"write 1", "open id1"}));
}

TEST_F(HoldTest, AnswersWhatIsHeldBackWithAFailureWhenTheActorStops) {
  StartClients();
  Persist(0);
  Persist(1);
  EXPECT_EQ(Answer(absl::Milliseconds(40)), Calls());
  kit_.system().Stop(journal_);
  clients_[1].Expect<WriteMessagesFailed>();
  clients_[1].Expect<WriteMessageFailure>();
  kit_.Advance(absl::Seconds(1));
  EXPECT_EQ(Written(), Calls());
}

// PER-19: otherwise a restarted actor would fence the writes of its earlier incarnation.
TEST_F(JournalActorTest, OpensAWriterBehindTheWritesThatCameBefore) {
  Start({.max_writes_in_flight = 1});
  const uint64_t epoch = Open("a");
  const uint64_t other = Open("b");
  storage_->holds = true;
  storage_->calls.clear();
  SendWrites(probe_, WritesOf("b", 1, 1, other), 1);
  SendWrites(probe_, WritesOf("a", 1, 1, epoch), 2);
  probe_.Send(journal_, OpenWriter{"a", 0, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<WriterIsOpen>().highest_sequence_nr, 1u);
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"write 1", "write 1", "open a"}));
  storage_->Release();
  EXPECT_EQ(probe_.Expect<WriteMessagesSuccessful>().batch, 1u);
  probe_.Expect<WriteMessageSuccess>();
  EXPECT_EQ(probe_.Expect<WriteMessagesSuccessful>().batch, 2u);
  probe_.Expect<WriteMessageSuccess>();
}

// Many actors that start must not cut what is collected from others into small pieces.
TEST_F(JournalActorTest, OpensAWriterWithoutWritingWhatIsCollectedOfOthers) {
  Start({.max_writes_in_flight = 1});
  const uint64_t epoch = Open("a");
  storage_->holds = true;
  storage_->calls.clear();
  SendWrites(probe_, WritesOf("a", 1, 1, epoch), 1);
  SendWrites(probe_, WritesOf("a", 2, 2, epoch), 2);
  probe_.Send(journal_, OpenWriter{"b", 0, probe_.ref(), kInstance});
  const uint64_t other = probe_.Expect<WriterIsOpen>().epoch;
  probe_.Send(journal_, DeleteMessagesTo{"b", 1, probe_.ref(), kInstance, other});
  probe_.Expect<DeleteMessagesSuccess>();
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"write 1", "open b", "delete"}));
  probe_.Send(journal_, DeleteMessagesTo{"a", 1, probe_.ref(), kInstance, epoch});
  probe_.Expect<DeleteMessagesSuccess>();
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"write 1", "open b", "delete", "write 1", "delete"}));
  storage_->Release();
}

// One write must not grow with the number of clients that wait: a store takes so many bytes at
// once, or nothing.
TEST_F(JournalActorTest, WritesNoMoreBytesAtATimeThanTheOptionSays) {
  constexpr size_t kClients = 20;
  Start({.max_writes_in_flight = 1, .max_write_bytes = 10'000});
  const auto large = [](std::string_view id, uint64_t nr, uint64_t epoch) {
    PersistentRepr event = EventOf(id, nr, epoch);
    event.payload.resize(3000);
    return event;
  };
  std::vector<TestProbe> clients;
  std::vector<uint64_t> epochs;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(kit_.Probe());
    epochs.push_back(Open("id" + std::to_string(i)));
  }
  storage_->holds = true;
  storage_->calls.clear();
  for (size_t i = 0; i < kClients; ++i) {
    SendWrites(clients[i], {AtomicWrite::Make(large("id" + std::to_string(i), 1, epochs[i])).value()}, 10 + i);
  }
  // The writes of one client stay together, however large they are.
  AtomicWrites five;
  for (uint64_t nr = 2; nr <= 6; ++nr) five.push_back(AtomicWrite::Make(large("id0", nr, epochs[0])).value());
  SendWrites(clients[0], std::move(five), 30);
  kit_.Settle();
  while (!storage_->held.empty()) {
    storage_->Release();
    kit_.Settle();
  }
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"write 1", "write 3", "write 3", "write 3", "write 3", "write 3",
                                                       "write 3", "write 1", "write 5"}));
  for (size_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(clients[i].Expect<WriteMessagesSuccessful>().batch, 10 + i);
    EXPECT_EQ(clients[i].Expect<WriteMessageSuccess>().sequence_nr, 1u);
  }
  EXPECT_EQ(clients[0].Expect<WriteMessagesSuccessful>().batch, 30u);
  for (uint64_t nr = 2; nr <= 6; ++nr) EXPECT_EQ(clients[0].Expect<WriteMessageSuccess>().sequence_nr, nr);
}

// PER-19: only the writes of that id go first, and those that it must not overtake.
TEST_F(JournalActorTest, OpensAWriterBehindItsOwnWritesAndNotBehindAllOthers) {
  Start({.max_writes_in_flight = 1, .max_write_bytes = 100});
  std::vector<TestProbe> clients;
  std::vector<uint64_t> epochs;
  for (size_t i = 0; i < 6; ++i) {
    clients.push_back(kit_.Probe());
    epochs.push_back(Open("id" + std::to_string(i)));
  }
  storage_->holds = true;
  storage_->calls.clear();
  const auto write = [&](size_t client, uint64_t nr) {
    PersistentRepr event = EventOf("id" + std::to_string(client), nr, epochs[client]);
    event.payload.resize(90);
    return AtomicWrite::Make(std::move(event)).value();
  };
  SendWrites(clients[0], {write(0, 1)}, 1);  // under way
  SendWrites(clients[1], {write(1, 1)}, 1);
  SendWrites(clients[2], {write(2, 1)}, 1);
  SendWrites(clients[3], {write(3, 1)}, 1);
  SendWrites(clients[4], {write(4, 1), write(2, 2)}, 1);  // Two ids: it must stay behind the write of client 2.
  SendWrites(clients[5], {write(5, 1)}, 1);
  SendWrites(clients[1], {write(1, 2)}, 2);
  probe_.Send(journal_, OpenWriter{"id4", 0, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<WriterIsOpen>().highest_sequence_nr, 1u);
  EXPECT_EQ(storage_->calls, (std::vector<std::string>{"write 1", "write 3", "open id4"}));
  for (int i = 0; i < 10; ++i) {
    storage_->Release();
    kit_.Settle();
  }
  EXPECT_EQ(storage_->calls,
            (std::vector<std::string>{"write 1", "write 3", "open id4", "write 1", "write 1", "write 1", "write 1"}));
  for (size_t i = 0; i < 6; ++i) {
    clients[i].Expect<WriteMessagesSuccessful>();
    EXPECT_EQ(clients[i].Expect<WriteMessageSuccess>().sequence_nr, 1u);
  }
  EXPECT_EQ(clients[4].Expect<WriteMessageSuccess>().sequence_nr, 2u);
  EXPECT_EQ(clients[1].Expect<WriteMessagesSuccessful>().batch, 2u);
  EXPECT_EQ(clients[1].Expect<WriteMessageSuccess>().sequence_nr, 2u);
}

// A store whose events of many numbers are deleted, and that says so one number at a time.
TEST_F(JournalActorTest, PassesOverEmptyPagesInALoopAndRefusesOneThatLeadsNowhere) {
  Start({});
  const auto replay = [&](uint64_t from) {
    probe_.Send(journal_, ReplayMessages{.persistence_id = "a",
                                         .from_sequence_nr = from,
                                         .knows_highest = true,
                                         .highest_sequence_nr = 100'000,
                                         .client = probe_.ref(),
                                         .instance_id = kInstance});
  };
  storage_->empty_pages = true;
  replay(1);
  EXPECT_EQ(probe_.Expect<RecoverySuccess>().highest_sequence_nr, 100'000u);
  storage_->gets_on = false;
  replay(5);
  const absl::Status cause = probe_.Expect<ReplayMessagesFailure>().cause;
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(cause, "nr"), 5) << cause;
}

// PER-9: nobody waits for an answer that will not come.
TEST_F(JournalActorTest, AnswersEverythingThatIsUnderWayWithAFailureWhenItStops) {
  Start({.max_writes_in_flight = 1});
  const uint64_t epoch = Open("a");
  storage_->holds = true;
  SendWrites(probe_, WritesOf("a", 1, 1, epoch), 1);
  SendWrites(probe_, WritesOf("a", 2, 2, epoch), 2);  // collected
  kit_.Settle();
  storage_->calls.clear();
  kit_.system().Stop(journal_);
  for (uint64_t batch = 1; batch <= 2; ++batch) {
    EXPECT_EQ(probe_.Expect<WriteMessagesFailed>().batch, batch);
    EXPECT_EQ(probe_.Expect<WriteMessageFailure>().sequence_nr, batch);
  }
  EXPECT_TRUE(storage_->calls.empty());
  storage_->Release();  // finds nobody
  probe_.ExpectNoMessage();
}

// P32
TEST_F(JournalActorTest, HasABreakerForWritesAndTheHighestNumberButNotForReplays) {
  Start({.breaker = {.name = "journal", .max_failures = 2, .reset_timeout = absl::Seconds(30)}});
  StoreFive();
  const uint64_t epoch = Open("a");
  storage_->failure = absl::UnavailableError("no disk");
  for (int i = 0; i < 2; ++i) {
    SendWrites(probe_, WritesOf("a", 6, 6, epoch));
    probe_.Expect<WriteMessagesFailed>();
    probe_.Expect<WriteMessageFailure>();
  }
  storage_->calls.clear();
  probe_.Send(journal_, GetHighestSequenceNr{"a", probe_.ref(), kInstance});
  EXPECT_EQ(ErrorKindOf<CircuitBreakerErrorKind>(probe_.Expect<HighestSequenceNrFailure>().cause),
            CircuitBreakerErrorKind::kOpen);
  probe_.Send(journal_, ReplayMessages{.persistence_id = "a", .client = probe_.ref(), .instance_id = kInstance});
  probe_.Expect<ReplayMessagesFailure>();  // without the highest number there is no replay
  EXPECT_TRUE(storage_->calls.empty());
  EXPECT_EQ(Replay({.persistence_id = "a", .knows_highest = true, .highest_sequence_nr = 5}), (Numbers{1, 2, 3, 4, 5}));
  storage_->failure = absl::OkStatus();
  kit_.Advance(absl::Seconds(31));
  SendWrites(probe_, WritesOf("a", 6, 6, epoch));
  probe_.Expect<WriteMessagesSuccessful>();
  probe_.Expect<WriteMessageSuccess>();
}

// An operator sees on the node of the journal that its disk is full, and that there is room again.
TEST_F(JournalActorTest, LogsThatItsStorageFailsAndWorksAgain) {
  Start();
  const uint64_t epoch = Open("a");
  const auto fails = [&](int times) {
    for (int i = 0; i < times; ++i) {
      SendWrites(probe_, WritesOf("a", 1, 1, epoch));
      probe_.Expect<WriteMessagesFailed>();
      probe_.Expect<WriteMessageFailure>();
    }
  };
  const auto full = MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull, "no room on the disk");
  storage_->failure = full;
  // Once, also while the breaker rejects the calls.
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "the journal fails: no room on the disk"}, 1,
                 [&] { fails(12); });
  kit_.Advance(absl::Seconds(11));
  storage_->failure = absl::UnavailableError("no disk");
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "the journal fails: no disk"}, 1, [&] { fails(1); });
  kit_.Advance(absl::Seconds(11));
  storage_->failure = absl::OkStatus();
  kit_.ExpectLog({.level = LogLevel::kInfo, .contains = "the journal works again"}, 1, [&] {
    SendWrites(probe_, WritesOf("a", 1, 1, epoch));
    probe_.Expect<WriteMessagesSuccessful>();
    probe_.Expect<WriteMessageSuccess>();
  });
}

// The store may use a circuit breaker of its own. Its error is a failure of the store all the same.
TEST_F(JournalActorTest, LogsThatItsStorageFailsWithTheErrorOfAnotherBreaker) {
  Start();
  const uint64_t epoch = Open("a");
  storage_->failure =
      MakeError(absl::StatusCode::kUnavailable, CircuitBreakerErrorKind::kOpen, "the breaker of the bucket is open");
  kit_.ExpectLog({.level = LogLevel::kError, .contains = "the journal fails: the breaker of the bucket"}, 1, [&] {
    // The last ones are rejected by the breaker of the journal.
    for (int i = 0; i < 12; ++i) {
      SendWrites(probe_, WritesOf("a", 1, 1, epoch));
      probe_.Expect<WriteMessagesFailed>();
      probe_.Expect<WriteMessageFailure>();
    }
  });
}

TEST_F(JournalActorTest, IsUsedAgainSoonAfterItsStorageWorksAgain) {
  Start();
  const uint64_t epoch = Open("a");
  storage_->failure =
      MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull, "no room on the disk");
  // For a long time.
  for (int second = 0; second < 100; ++second) {
    for (int i = 0; i < 11; ++i) {
      SendWrites(probe_, WritesOf("a", 1, 1, epoch));
      probe_.Expect<WriteMessagesFailed>();
      probe_.Expect<WriteMessageFailure>();
    }
    kit_.Advance(absl::Seconds(1));
  }
  storage_->failure = absl::OkStatus();
  kit_.Advance(absl::Seconds(10));
  SendWrites(probe_, WritesOf("a", 1, 1, epoch));
  probe_.Expect<WriteMessagesSuccessful>();
  probe_.Expect<WriteMessageSuccess>();
}

TEST_F(JournalActorTest, LetsTheOptionsSayWhatAFailureIs) {
  JournalActorOptions options;
  options.breaker.max_failures = 1;
  options.breaker.harmless_codes = {absl::StatusCode::kUnavailable};
  Start(options);
  const auto ask = [&] {
    probe_.Send(journal_, GetHighestSequenceNr{"a", probe_.ref(), kInstance});
    return probe_.Expect<HighestSequenceNrFailure>().cause;
  };
  storage_->failure = absl::UnavailableError("later");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(), storage_->failure);
  storage_->failure = absl::InternalError("broken");
  EXPECT_EQ(ask(), storage_->failure);
  EXPECT_EQ(ErrorKindOf<CircuitBreakerErrorKind>(ask()), CircuitBreakerErrorKind::kOpen);
}

TEST_F(JournalActorTest, OpensItsBreakerForAWriteThatIsLateAlsoIfOtherCallsHaveWorkedMeanwhile) {
  JournalActorOptions options;
  options.breaker.max_failures = 1;
  Start(options);
  const uint64_t epoch = Open("a");
  storage_->holds = true;
  SendWrites(probe_, WritesOf("a", 1, 1, epoch));
  probe_.Send(journal_, GetHighestSequenceNr{"a", probe_.ref(), kInstance});
  probe_.Expect<HighestSequenceNrSuccess>();
  probe_.Expect<WriteMessagesFailed>(absl::Seconds(11));
  probe_.Expect<WriteMessageFailure>();
  probe_.Send(journal_, GetHighestSequenceNr{"a", probe_.ref(), kInstance});
  EXPECT_EQ(ErrorKindOf<CircuitBreakerErrorKind>(probe_.Expect<HighestSequenceNrFailure>().cause),
            CircuitBreakerErrorKind::kOpen);
}

TEST_F(JournalActorTest, FailsAWriteThatTheStoreDoesNotAnswerInTime) {
  Start();
  const uint64_t epoch = Open("a");
  storage_->holds = true;
  SendWrites(probe_, WritesOf("a", 1, 1, epoch));
  kit_.Settle();
  probe_.ExpectNoMessage(absl::Seconds(9));
  const absl::Status late = probe_.Expect<WriteMessagesFailed>(absl::Seconds(2)).cause;
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_NE(late.message().find("circuit breaker \"journal\" has not answered within 10s"), absl::string_view::npos)
      << late;
  probe_.Expect<WriteMessageFailure>();
}

TEST(JournalActorOptions, NameWhatIsWrong) {
  EXPECT_TRUE(JournalActorOptions().Validate().ok());
  EXPECT_FALSE(JournalActorOptions{.max_writes_in_flight = 0}.Validate().ok());
  EXPECT_FALSE(JournalActorOptions{.max_write_bytes = 0}.Validate().ok());
  EXPECT_FALSE(SnapshotActorOptions{.max_load_attempts = 0}.Validate().ok());
}

// A snapshot store that can fail and be counted, over one in memory.
class WatchedSnapshots final : public SnapshotStorage {
 public:
  explicit WatchedSnapshots(RuntimeToolbox& toolbox)
      : inner(MemorySnapshotStore::Open({.toolbox = &toolbox}).value()) {}

  Future<void> OpenWriter(std::string id, uint64_t epoch) override {
    ++openings;
    if (!open_failure.ok()) return MakeReadyFuture<void>(open_failure);
    return inner->OpenWriter(std::move(id), epoch);
  }
  Future<SnapshotMetadata> Save(Snapshot snapshot, uint64_t epoch) override {
    if (!failure.ok()) return MakeReadyFuture<SnapshotMetadata>(failure);
    if (holds) {
      FutureResult<SnapshotMetadata> result = absl::UnavailableError("was not saved");
      if (saves_what_it_holds) result = inner->Save(std::move(snapshot), epoch).Take();
      auto [promise, future] = MakePromise<SnapshotMetadata>();
      held.push_back({std::move(promise), std::move(result)});
      return std::move(future);
    }
    if (!fails_late.ok()) {
      const absl::Time time = inner->Save(std::move(snapshot), epoch).Take().value().timestamp;
      return MakeReadyFuture<SnapshotMetadata>(WithSnapshotTime(fails_late, time));
    }
    return inner->Save(std::move(snapshot), epoch);
  }
  Future<std::optional<Snapshot>> Load(std::string id, SnapshotSelectionCriteria criteria) override {
    ++loads;
    if (!failure.ok()) return MakeReadyFuture<std::optional<Snapshot>>(failure);
    absl::StatusOr<std::optional<Snapshot>> found = inner->Load(std::move(id), criteria).Take();
    if (found.ok() && found->has_value() && (*found)->metadata.sequence_nr >= corrupt_from) {
      return MakeReadyFuture<std::optional<Snapshot>>(
          EventError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, (*found)->metadata.persistence_id,
                     (*found)->metadata.sequence_nr, "cannot be read"));
    }
    return MakeReadyFuture<std::optional<Snapshot>>(std::move(found));
  }
  Future<void> Delete(std::string id, uint64_t nr, uint64_t epoch) override {
    if (!failure.ok()) return MakeReadyFuture<void>(failure);
    return inner->Delete(std::move(id), nr, epoch);
  }
  Future<void> DeleteMatching(std::string id, SnapshotSelectionCriteria criteria, uint64_t epoch) override {
    if (!failure.ok()) return MakeReadyFuture<void>(failure);
    return inner->DeleteMatching(std::move(id), criteria, epoch);
  }
  Future<void> Close() override { return inner->Close(); }
  const SnapshotLimits& limits() const override { return inner->limits(); }

  // Answers the saves that are held.
  void Release() {
    std::vector<Held> now = std::exchange(held, {});
    for (Held& one : now) one.promise.Set(std::move(one.result));
  }

  struct Held {
    Promise<SnapshotMetadata> promise;
    FutureResult<SnapshotMetadata> result;
  };

  std::unique_ptr<MemorySnapshotStore> inner;
  absl::Status failure;
  absl::Status open_failure;
  uint64_t corrupt_from = kMax;
  int openings = 0;
  int loads = 0;
  bool holds = false;
  bool saves_what_it_holds = false;
  absl::Status fails_late;  // The answer to a save, after the save.
  std::vector<Held> held;
};

class SnapshotActorTest : public testing::Test {
 protected:
  SnapshotActorTest() {
    snapshots_ = kit_.Spawn(*MakeProps<SnapshotActor>({}, std::shared_ptr<SnapshotStorage>(storage_),
                                                      SnapshotActorOptions{.publish_commands = true}));
  }
  SnapshotMetadata Save(uint64_t nr, std::string payload = "state") {
    Snapshot snapshot;
    snapshot.metadata.persistence_id = "a";
    snapshot.metadata.sequence_nr = nr;
    snapshot.metadata.metadata = "about";
    snapshot.payload = std::move(payload);
    probe_.Send(snapshots_, SaveSnapshot{std::move(snapshot), probe_.ref(), kInstance});
    return probe_.Expect<SaveSnapshotSuccess>().metadata;
  }
  // Snapshots 11 to 15, a second apart.
  void SaveFive() {
    for (uint64_t nr = 11; nr <= 15; ++nr) {
      saved_.push_back(Save(nr));
      kit_.Advance(absl::Seconds(1));
    }
  }
  // The number of the one that is found; 0 for none.
  uint64_t Load(std::string_view id, const SnapshotSelectionCriteria& criteria, uint64_t to = kMax,
                uint64_t epoch = kNoEpoch) {
    probe_.Send(snapshots_, LoadSnapshot{std::string(id), criteria, to, probe_.ref(), kInstance, epoch});
    const auto result = probe_.Expect<LoadSnapshotResult>();
    EXPECT_EQ(result.to_sequence_nr, to);
    EXPECT_EQ(result.instance_id, kInstance);
    return result.found ? result.snapshot.metadata.sequence_nr : 0;
  }

  TestKit kit_;
  std::shared_ptr<WatchedSnapshots> storage_ = std::make_shared<WatchedSnapshots>(kit_.toolbox());
  TestProbe probe_ = kit_.Probe();
  ActorRef snapshots_;
  std::vector<SnapshotMetadata> saved_;
};

// P101, P102, PER-8
TEST_F(SnapshotActorTest, LoadsTheNewestThatMatches) {
  SaveFive();
  EXPECT_EQ(Load("nobody", {}), 0u);
  EXPECT_EQ(Load("a", {.max_timestamp = saved_[0].timestamp - absl::Nanoseconds(1)}), 0u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 10}), 0u);
  EXPECT_EQ(Load("a", {}, 10), 0u);
  EXPECT_EQ(Load("a", {}), 15u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 13}), 13u);
  EXPECT_EQ(Load("a", {}, 13), 13u);
  EXPECT_EQ(Load("a", {.max_timestamp = saved_[2].timestamp}), 13u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 14, .max_timestamp = saved_[2].timestamp}), 13u);
}

// P103, P104
TEST_F(SnapshotActorTest, DeletesOneOrThoseThatMatchAndPublishesThat) {
  SaveFive();
  kit_.ExpectEvents<DeleteSnapshot>(1, [&] {
    SnapshotMetadata other_time = saved_[4];
    other_time.timestamp += absl::Hours(1);
    probe_.Send(snapshots_, DeleteSnapshot{other_time, probe_.ref(), kInstance});
    EXPECT_EQ(probe_.Expect<DeleteSnapshotSuccess>().metadata.sequence_nr, 15u);
  });
  EXPECT_EQ(Load("a", {}), 14u);
  kit_.ExpectEvents<DeleteSnapshots>(1, [&] {
    probe_.Send(
        snapshots_,
        DeleteSnapshots{"a", {.max_sequence_nr = 13, .max_timestamp = saved_[1].timestamp}, probe_.ref(), kInstance});
    probe_.Expect<DeleteSnapshotsSuccess>();
  });
  EXPECT_EQ(Load("a", {.max_sequence_nr = 12}), 0u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 13}), 13u);
  probe_.Send(snapshots_, DeleteSnapshots{"a", {.max_timestamp = saved_[0].timestamp}, probe_.ref(), kInstance});
  probe_.Expect<DeleteSnapshotsSuccess>();
  EXPECT_EQ(Load("a", {.max_sequence_nr = 13}), 13u);
}

// P106, P107, P108
TEST_F(SnapshotActorTest, SavesWithTheTimeOfTheStoreAndFailsWithWhatWasAskedFor) {
  kit_.Advance(absl::Seconds(5));
  const SnapshotMetadata saved = Save(3, std::string(10'000, 's'));
  EXPECT_EQ(saved.timestamp, kit_.toolbox().WallNow());
  EXPECT_EQ(saved.metadata, "about");
  storage_->failure = absl::UnavailableError("no disk");
  Snapshot snapshot;
  snapshot.metadata.persistence_id = "a";
  snapshot.metadata.sequence_nr = 4;
  probe_.Send(snapshots_, SaveSnapshot{snapshot, probe_.ref(), kInstance});
  const auto failed = probe_.Expect<SaveSnapshotFailure>();
  EXPECT_EQ(failed.metadata, snapshot.metadata);
  EXPECT_EQ(failed.cause, storage_->failure);
  // Nothing is left of the failed one.
  storage_->failure = absl::OkStatus();
  EXPECT_EQ(Load("a", {}), 3u);
}

// P108: a failed save leaves nothing, also if it was stored. An earlier snapshot of the same number
// stays.
TEST_F(SnapshotActorTest, DeletesWhatIsLeftOfASaveThatFailed) {
  Save(3, "before");
  kit_.Advance(absl::Seconds(1));
  storage_->fails_late = absl::UnavailableError("the answer was lost");
  for (const uint64_t nr : {3, 4}) {
    probe_.Send(snapshots_, SaveSnapshot{{.metadata = {.persistence_id = "a", .sequence_nr = nr}, .payload = "partial"},
                                         probe_.ref(),
                                         kInstance});
    EXPECT_EQ(probe_.Expect<SaveSnapshotFailure>().cause, storage_->fails_late);
  }
  probe_.Send(snapshots_, LoadSnapshot{"a", {}, kMax, probe_.ref(), kInstance});
  const auto found = probe_.Expect<LoadSnapshotResult>();
  ASSERT_TRUE(found.found);
  EXPECT_EQ(found.snapshot.metadata.sequence_nr, 3u);
  EXPECT_EQ(found.snapshot.payload, "before");
}

// P108
TEST_F(SnapshotActorTest, DeletesASnapshotThatIsSavedTooLate) {
  storage_->holds = true;
  storage_->saves_what_it_holds = true;
  probe_.Send(snapshots_,
              SaveSnapshot{{.metadata = {.persistence_id = "a", .sequence_nr = 4}}, probe_.ref(), kInstance});
  kit_.Advance(SnapshotActorOptions().breaker.call_timeout);
  EXPECT_TRUE(absl::IsDeadlineExceeded(probe_.Expect<SaveSnapshotFailure>().cause));
  storage_->Release();
  kit_.Settle();
  EXPECT_EQ(Load("a", {}), 0u);
  probe_.ExpectNoMessage();
}

// P108: the time of a snapshot says which one it is, its number does not.
TEST_F(SnapshotActorTest, KeepsASecondSnapshotOfANumberWhoseFirstSaveTookTooLong) {
  storage_->holds = true;
  storage_->saves_what_it_holds = true;
  probe_.Send(snapshots_, SaveSnapshot{{.metadata = {.persistence_id = "a", .sequence_nr = 10}, .payload = "first"},
                                       probe_.ref(),
                                       kInstance});
  kit_.Settle();
  ASSERT_EQ(storage_->held.size(), 1u);
  storage_->holds = false;
  const SnapshotMetadata second = Save(10, "second");
  const auto newest = [&](const SnapshotSelectionCriteria& criteria) -> std::string {
    probe_.Send(snapshots_, LoadSnapshot{"a", criteria, kMax, probe_.ref(), kInstance});
    const auto result = probe_.Expect<LoadSnapshotResult>();
    return result.found ? result.snapshot.payload : "none";
  };
  kit_.Advance(SnapshotActorOptions().breaker.call_timeout);
  EXPECT_TRUE(absl::IsDeadlineExceeded(probe_.Expect<SaveSnapshotFailure>().cause));
  EXPECT_EQ(newest({}), "second");
  storage_->Release();
  kit_.Settle();
  EXPECT_EQ(newest({}), "second");
  EXPECT_EQ(newest({.max_timestamp = second.timestamp - absl::Nanoseconds(1)}), "none");
}

// P108: the same for a save that fails, and for a second one that is still under way.
TEST_F(SnapshotActorTest, KeepsOtherSnapshotsOfTheNumberOfASaveThatFailed) {
  storage_->holds = true;
  storage_->saves_what_it_holds = true;
  const auto send = [&](std::string payload) {
    probe_.Send(snapshots_,
                SaveSnapshot{{.metadata = {.persistence_id = "a", .sequence_nr = 10}, .payload = std::move(payload)},
                             probe_.ref(),
                             kInstance});
    kit_.Settle();
  };
  send("first");
  storage_->saves_what_it_holds = false;
  send("second");
  storage_->saves_what_it_holds = true;
  send("third");
  ASSERT_EQ(storage_->held.size(), 3u);
  // The second one fails first.
  storage_->held[1].promise.Set(std::move(storage_->held[1].result));
  storage_->held.erase(storage_->held.begin() + 1);
  probe_.Expect<SaveSnapshotFailure>();
  storage_->Release();
  probe_.Expect<SaveSnapshotSuccess>();
  const SnapshotMetadata third = probe_.Expect<SaveSnapshotSuccess>().metadata;
  probe_.Send(snapshots_, LoadSnapshot{"a", {}, kMax, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<LoadSnapshotResult>().snapshot.payload, "third");
  probe_.Send(
      snapshots_,
      LoadSnapshot{"a", {.max_timestamp = third.timestamp - absl::Nanoseconds(1)}, kMax, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<LoadSnapshotResult>().snapshot.payload, "first");
}

// P109
TEST_F(SnapshotActorTest, DoesNotTouchTheStoreForNoSnapshot) {
  SaveFive();
  EXPECT_EQ(Load("a", SnapshotSelectionCriteria::None()), 0u);
  EXPECT_EQ(Load("a", SnapshotSelectionCriteria::None(), kMax, 7), 0u);
  EXPECT_EQ(storage_->loads, 0);
  EXPECT_EQ(storage_->openings, 0);
}

// PER-19: a load of a recovery announces the owner; one of a node of an older version does not.
TEST_F(SnapshotActorTest, AnnouncesTheOwnerBeforeItLoads) {
  SaveFive();
  EXPECT_EQ(Load("a", {}), 15u);
  EXPECT_EQ(storage_->openings, 0);
  EXPECT_EQ(Load("a", {}, kMax, 2), 15u);
  EXPECT_EQ(storage_->openings, 1);
  for (const uint64_t epoch : {kNoEpoch, uint64_t{1}}) {
    const auto is_fenced = [](const absl::Status& cause) {
      return ErrorKindOf<JournalErrorKind>(cause) == JournalErrorKind::kFenced;
    };
    probe_.Send(snapshots_,
                SaveSnapshot{{.metadata = {.persistence_id = "a", .sequence_nr = 16}}, probe_.ref(), kInstance, epoch});
    EXPECT_TRUE(is_fenced(probe_.Expect<SaveSnapshotFailure>().cause));
    probe_.Send(snapshots_, DeleteSnapshot{{.persistence_id = "a", .sequence_nr = 15}, probe_.ref(), kInstance, epoch});
    EXPECT_TRUE(is_fenced(probe_.Expect<DeleteSnapshotFailure>().cause));
    probe_.Send(snapshots_, DeleteSnapshots{"a", {}, probe_.ref(), kInstance, epoch});
    EXPECT_TRUE(is_fenced(probe_.Expect<DeleteSnapshotsFailure>().cause));
  }
  EXPECT_EQ(Load("a", {}), 15u);
  EXPECT_EQ(Load("a", {.max_sequence_nr = 11}), 11u);
  probe_.Send(snapshots_, DeleteSnapshot{{.persistence_id = "a", .sequence_nr = 15}, probe_.ref(), kInstance, 2});
  probe_.Expect<DeleteSnapshotSuccess>();
  EXPECT_EQ(Load("a", {}), 14u);
}

// PER-19: otherwise former owners could go on.
TEST_F(SnapshotActorTest, DoesNotLoadIfItCannotAnnounceTheOwner) {
  SaveFive();
  storage_->open_failure = absl::UnavailableError("no disk");
  probe_.Send(snapshots_, LoadSnapshot{"a", {}, kMax, probe_.ref(), kInstance, 2});
  EXPECT_EQ(probe_.Expect<LoadSnapshotFailed>().cause, storage_->open_failure);
  EXPECT_EQ(storage_->loads, 0);
}

// A journal that was restored from a backup gives epochs again.
TEST_F(SnapshotActorTest, LoadsForAnOwnerThatTheStoreTakesForAFormerOne) {
  SaveFive();
  EXPECT_EQ(Load("a", {}, kMax, 9), 15u);
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "restored from a backup"}, 1,
                 [&] { EXPECT_EQ(Load("a", {}, kMax, 2), 15u); });
}

// PER-19: a new owner may have recovered from the snapshot of a save that failed. So the snapshot
// stays, and nobody is warned.
TEST_F(SnapshotActorTest, KeepsWhatIsLeftOfASaveWhenAnOwnerFollows) {
  storage_->holds = true;
  storage_->saves_what_it_holds = true;
  probe_.Send(snapshots_,
              SaveSnapshot{{.metadata = {.persistence_id = "a", .sequence_nr = 4}}, probe_.ref(), kInstance, 1});
  kit_.Settle();
  EXPECT_EQ(Load("a", {}, kMax, 2), 4u);
  kit_.ExpectLog({.level = LogLevel::kWarning, .contains = "the snapshot store fails"}, 1,
                 [&] { kit_.Advance(SnapshotActorOptions().breaker.call_timeout); });
  probe_.Expect<SaveSnapshotFailure>();
  kit_.ExpectLog({.level = LogLevel::kWarning}, 0, [&] {
    storage_->Release();
    kit_.Settle();
  });
  EXPECT_EQ(Load("a", {}), 4u);
}

// P113
TEST_F(SnapshotActorTest, SaysThatItCouldNotDeleteOrLoad) {
  storage_->failure = absl::UnavailableError("no disk");
  probe_.Send(snapshots_, DeleteSnapshot{{.persistence_id = "a", .sequence_nr = 1}, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<DeleteSnapshotFailure>().cause, storage_->failure);
  probe_.Send(snapshots_, DeleteSnapshots{"a", {}, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<DeleteSnapshotsFailure>().cause, storage_->failure);
  probe_.Send(snapshots_, LoadSnapshot{"a", {}, kMax, probe_.ref(), kInstance});
  EXPECT_EQ(probe_.Expect<LoadSnapshotFailed>().cause, storage_->failure);
}

TEST_F(SnapshotActorTest, PassesOverAFewThatCannotBeRead) {
  SaveFive();
  storage_->corrupt_from = 14;
  EXPECT_EQ(Load("a", {}), 13u);
  storage_->corrupt_from = 12;
  probe_.Send(snapshots_, LoadSnapshot{"a", {}, kMax, probe_.ref(), kInstance});
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(probe_.Expect<LoadSnapshotFailed>().cause), JournalErrorKind::kCorrupt);
}

// PER-18: events before it may be gone, so that is not the same as none.
TEST_F(SnapshotActorTest, FailsIfThereIsNoOlderOneThatCanBeRead) {
  for (const uint64_t nr : {1, 2}) {
    storage_->corrupt_from = kMax;
    Save(nr);
    storage_->corrupt_from = 1;
    for (const uint64_t lowest : {uint64_t{0}, nr}) {
      probe_.Send(snapshots_, LoadSnapshot{"a", {.min_sequence_nr = lowest}, kMax, probe_.ref(), kInstance});
      const absl::Status cause = probe_.Expect<LoadSnapshotFailed>().cause;
      EXPECT_EQ(ErrorKindOf<JournalErrorKind>(cause), JournalErrorKind::kCorrupt);
      // The newest, which is the one that is missed.
      EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(cause, "nr"), static_cast<int64_t>(nr));
    }
  }
}

// PER-9
TEST_F(SnapshotActorTest, ServesOthersWhileASaveIsUnderWayAndFailsItWhenItStops) {
  storage_->holds = true;
  probe_.Send(snapshots_, SaveSnapshot{{.metadata = {.persistence_id = "a"}}, probe_.ref(), kInstance});
  probe_.ExpectNoMessage(absl::Seconds(1));
  EXPECT_EQ(Load("a", {}), 0u);
  kit_.system().Stop(snapshots_);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(probe_.Expect<SaveSnapshotFailure>().cause), JournalErrorKind::kClosed);
  storage_->held.clear();
}

// P114
TEST(NoSnapshotStore, FindsNothingAndSavesNothing) {
  TestKit kit;
  TestProbe probe = kit.Probe();
  const ActorRef none = kit.Spawn(PropsOf<NoSnapshotStore>());
  probe.Send(none, LoadSnapshot{"a", {}, 9, probe.ref(), kInstance});
  EXPECT_FALSE(probe.Expect<LoadSnapshotResult>().found);
  probe.Send(none, SaveSnapshot{{}, probe.ref(), kInstance});
  EXPECT_TRUE(absl::IsFailedPrecondition(probe.Expect<SaveSnapshotFailure>().cause));
  probe.Send(none, DeleteSnapshot{{}, probe.ref(), kInstance});
  probe.Expect<DeleteSnapshotFailure>();
  probe.Send(none, DeleteSnapshots{"a", {}, probe.ref(), kInstance});
  probe.Expect<DeleteSnapshotsFailure>();
}

}  // namespace
}  // namespace fraktor
