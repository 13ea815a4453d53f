#include "fraktor/persistence/testing/remote_journal_scenario.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/actor/recovery.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/protocol_codecs.h"
#include "fraktor/persistence/protocol/remote_stores.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/testing/forwarding_journal.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace remote_journal_internal {

// The event and the state.
struct Noted {
  int64_t number = 0;
  std::string text = {};
};
struct Notes {
  std::vector<int64_t> numbers = {};
  std::string padding = {};
};

// Commands. They stay on their node.
struct Note {
  int64_t first = 0;
  int64_t count = 1;
  size_t text_bytes = 0;
  bool waits = true;
};
struct Remember {
  size_t padding_bytes = 0;
};
struct Forget {};

}  // namespace remote_journal_internal

using remote_journal_internal::Forget;
using remote_journal_internal::Note;
using remote_journal_internal::Noted;
using remote_journal_internal::Notes;
using remote_journal_internal::Remember;

template <>
struct Codec<Noted> : FieldCodec<Noted, &Noted::number, &Noted::text> {
  static constexpr std::string_view kManifest = "fraktor.test.noted";
};
template <>
struct Codec<Notes> : FieldCodec<Notes, &Notes::numbers, &Notes::padding> {
  static constexpr std::string_view kManifest = "fraktor.test.notes";
};

namespace {

constexpr std::string_view kId = "ledger";
constexpr size_t kLargeSnapshotBytes = size_t{16} << 20;
// Longer than the patience of the scenario.
constexpr absl::Duration kNever = absl::Hours(1);

// What the actors tell the test.
class Notebook {
 public:
  struct Pages {
    std::vector<int64_t> handled = {};   // by handlers of events, in all lives
    std::vector<int64_t> state = {};     // of the last life
    std::vector<int64_t> replayed = {};  // in the last recovery, without what the snapshot had
    std::vector<absl::Status> rejected = {};
    absl::Status failure = {};
    std::vector<absl::Status> refused = {};  // saves and deletions
    size_t padding_bytes = 0;                // of the snapshot that was loaded last
    int recovered = 0;
    int saved = 0;
    int ended = 0;
  };

  Pages Read() {
    MutexLock lock(mutex_);
    return pages_;
  }
  void Write(absl::FunctionRef<void(Pages&)> write) {
    MutexLock lock(mutex_);
    write(pages_);
  }

 private:
  Mutex mutex_;
  Pages pages_ ABSL_GUARDED_BY(mutex_);
};
using Pages = Notebook::Pages;

class Ledger final : public PersistentActor {
 public:
  explicit Ledger(std::shared_ptr<Notebook> notebook, std::string_view id = kId,
                  uint64_t recover_to = std::numeric_limits<uint64_t>::max())
      : id_(id), recover_to_(recover_to), shared_(std::move(notebook)), notebook_(*shared_) {}

 private:
  std::string PersistenceId() const override { return id_; }
  Recovery RecoverFrom() const override { return {.to_sequence_nr = recover_to_}; }

  absl::Status ReceiveRecover(ActorContext&, Envelope& event) override {
    numbers_.push_back(event.As<Noted>().number);
    replayed_.push_back(numbers_.back());
    return absl::OkStatus();
  }
  absl::Status ReceiveSnapshot(ActorContext&, const SnapshotMetadata&, Envelope& state) override {
    numbers_ = state.As<Notes>().numbers;
    notebook_.Write([&](Pages& pages) { pages.padding_bytes = state.As<Notes>().padding.size(); });
    return absl::OkStatus();
  }
  absl::Status OnRecoveryCompleted(ActorContext&) override {
    notebook_.Write([this](Pages& pages) {
      ++pages.recovered;
      pages.replayed = replayed_;
      pages.state = numbers_;
    });
    return absl::OkStatus();
  }

  absl::Status ReceiveCommand(ActorContext&, Envelope& command) override {
    if (const auto* const note = command.TryAs<Note>()) {
      for (int64_t i = 0; i < note->count; ++i) {
        Noted noted{note->first + i, std::string(note->text_bytes, 'x')};
        const auto handle = [this](const Noted& event) {
          numbers_.push_back(event.number);
          notebook_.Write([&](Pages& pages) {
            pages.handled.push_back(event.number);
            pages.state = numbers_;
          });
        };
        if (note->waits) {
          Persist(std::move(noted), handle);
        } else {
          PersistAsync(std::move(noted), handle);
        }
      }
      return absl::OkStatus();
    }
    if (const auto* const remember = command.TryAs<Remember>()) {
      SaveSnapshot(Notes{numbers_, std::string(remember->padding_bytes, 'p')});
      return absl::OkStatus();
    }
    if (command.Is<Forget>()) {
      DeleteMessages(last_sequence_nr());
      DeleteSnapshot(snapshot_sequence_nr());
      DeleteSnapshots({});
      return absl::OkStatus();
    }
    if (const auto* const save = command.TryAs<SaveSnapshotFailure>()) return Refused(save->cause);
    if (const auto* const events = command.TryAs<DeleteMessagesFailure>()) return Refused(events->cause);
    if (const auto* const one = command.TryAs<DeleteSnapshotFailure>()) return Refused(one->cause);
    if (const auto* const some = command.TryAs<DeleteSnapshotsFailure>()) return Refused(some->cause);
    if (command.Is<SaveSnapshotSuccess>()) {
      notebook_.Write([](Pages& pages) { ++pages.saved; });
      return absl::OkStatus();
    }
    return Unhandled(command);
  }

  absl::Status Refused(const absl::Status& cause) {
    notebook_.Write([&](Pages& pages) { pages.refused.push_back(cause); });
    return absl::OkStatus();
  }
  void OnPersistRejected(const absl::Status& cause, Envelope&, uint64_t) override {
    notebook_.Write([&](Pages& pages) { pages.rejected.push_back(cause); });
  }
  void OnPersistFailure(const absl::Status& cause, Envelope&, uint64_t) override {
    notebook_.Write([&](Pages& pages) { pages.failure = cause; });
  }
  void OnRecoveryFailure(const absl::Status& cause, Envelope*) override {
    notebook_.Write([&](Pages& pages) { pages.failure = cause; });
  }
  void OnStop(ActorContext&) override {
    notebook_.Write([](Pages& pages) { ++pages.ended; });
  }

  const std::string id_;
  const uint64_t recover_to_;
  const std::shared_ptr<Notebook> shared_;
  Notebook& notebook_;
  std::vector<int64_t> numbers_;
  std::vector<int64_t> replayed_;
};

// A journal in whose place an older backup can be restored.
class RestorableJournal final : public ForwardingJournal {
 public:
  using ForwardingJournal::ForwardingJournal;

  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override { return current()->Write(std::move(writes)); }

  void Restore(std::shared_ptr<JournalStorage> backup) {
    MutexLock lock(mutex_);
    backup_ = std::move(backup);
  }

 private:
  std::shared_ptr<JournalStorage> current() {
    MutexLock lock(mutex_);
    return backup_ == nullptr ? journal() : backup_;
  }

  Mutex mutex_;
  std::shared_ptr<JournalStorage> backup_ ABSL_GUARDED_BY(mutex_);
};

std::vector<int64_t> UpTo(int64_t last) {
  std::vector<int64_t> numbers(static_cast<size_t>(last));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

class Scenario {
 public:
  explicit Scenario(const RemoteJournalNodes& nodes) : nodes_(nodes) {}

  void Run() {
    ASSERT_NO_FATAL_FAILURE(Connect());
    ASSERT_NO_FATAL_FAILURE(StoresOverTheLink());
    ASSERT_NO_FATAL_FAILURE(OutlivesACut());
    if (nodes_.cut_answers != nullptr) {
      ASSERT_NO_FATAL_FAILURE(OutlivesLostAnswers());
    }
    if (nodes_.disturb != nullptr) {
      ASSERT_NO_FATAL_FAILURE(OutlivesABadLink());
    }
    ASSERT_NO_FATAL_FAILURE(SendsInPieces());
    ASSERT_NO_FATAL_FAILURE(RejectsWhatDoesNotFit());
    ASSERT_NO_FATAL_FAILURE(RecoversOverTheLink());
    ASSERT_NO_FATAL_FAILURE(HearsThatAnEventDoesNotFit());
    ASSERT_NO_FATAL_FAILURE(HearsThatItIsFenced());
    ASSERT_NO_FATAL_FAILURE(HearsThatTheJournalHasLostEvents());
  }

 private:
  void Connect() {
    auto& keeper = nodes_.keeper->Extension<PersistenceExtension>();
    ASSERT_TRUE(keeper.AddJournal("main", {.storage = storage_}).ok());
    ASSERT_TRUE(keeper.AddSnapshotStore("main", {.storage = snapshots_}).ok());
    ASSERT_TRUE(keeper.StartStores().ok());

    auto& writer = nodes_.writer->Extension<PersistenceExtension>();
    PersistenceOptions options;
    options.actor.write_timeout = nodes_.write_timeout;
    options.actor.max_write_resends = 100;
    // Only a hang reaches these, however slow the machine is.
    options.actor.recovery_event_timeout = kNever;
    ASSERT_TRUE(writer.Configure(options).ok());
    const RemoteStores there = RemoteStores::At(*nodes_.writer, nodes_.keeper_authority).value();
    ASSERT_TRUE(writer.AddJournal("there", {.actor = there.Journal("main").value()}).ok());
    ASSERT_TRUE(
        writer
            .AddSnapshotStore("there", {.actor = there.SnapshotStore("main").value(),
                                        .remote = {.max_message_bytes = kDefaultStoreMessageBytes, .timeout = kNever}})
            .ok());
    Start();
    Await("the first recovery", [](const Pages& pages) { return pages.recovered == 1; });
  }

  void StoresOverTheLink() {
    for (int64_t i = 1; i <= 10; ++i) Tell(ledger_, Note{.first = i});
    AwaitHandled(10);
  }

  void OutlivesACut() {
    // Some are on their way when the link goes, some come while it is away.
    Tell(ledger_, Note{.first = 11, .count = 5, .waits = false});
    nodes_.cut();
    Tell(ledger_, Note{.first = 16, .count = 5, .waits = false});
    nodes_.pass_time(2 * nodes_.write_timeout);
    Tell(ledger_, Note{.first = 21});
    nodes_.pass_time(nodes_.write_timeout);
    EXPECT_LT(notebook_->Read().handled.size(), 21u) << "the link was not cut";
    nodes_.heal();
    AwaitHandled(21);
  }

  void OutlivesLostAnswers() {
    nodes_.cut_answers();
    Tell(ledger_, Note{.first = 22, .count = 3, .waits = false});
    Await("events that are stored and not answered", [this](const Pages&) { return Stored() == UpTo(24); });
    nodes_.pass_time(2 * nodes_.write_timeout);
    EXPECT_EQ(notebook_->Read().handled.size(), 21u) << "answers were not lost";
    nodes_.heal();
    AwaitHandled(24);
  }

  void OutlivesABadLink() {
    nodes_.disturb();
    for (int i = 0; i < 25; ++i) {
      Tell(ledger_, Note{.first = last_ + 1});
      Tell(ledger_, Note{.first = last_ + 2, .count = 3, .waits = false});
      last_ += 4;
    }
    AwaitHandled(last_);
    nodes_.heal();
  }

  void SendsInPieces() {
    // More than a frame holds.
    Tell(ledger_, Note{.first = last_ + 1, .count = 2000, .text_bytes = 500, .waits = false});
    Tell(ledger_, Note{.first = last_ + 2001});
    last_ += 2001;
    AwaitHandled(last_);
  }

  void RejectsWhatDoesNotFit() {
    Tell(ledger_, Note{.first = -1, .text_bytes = kDefaultStoreMessageBytes});
    Await("a rejection", [](const Pages& pages) { return pages.rejected.size() == 1; });
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(notebook_->Read().rejected[0]), JournalErrorKind::kTooLarge)
        << notebook_->Read().rejected[0];
    Tell(ledger_, Note{.first = ++last_});
    AwaitHandled(last_);
  }

  void RecoversOverTheLink() {
    Tell(ledger_, Remember{});
    Await("a snapshot", [](const Pages& pages) { return pages.saved == 1; });
    // Many times what a message holds, also while parts are lost.
    if (nodes_.disturb != nullptr) nodes_.disturb();
    Tell(ledger_, Remember{.padding_bytes = kLargeSnapshotBytes / 8});
    Await("a snapshot in parts", [](const Pages& pages) { return pages.saved == 2; });
    nodes_.heal();
    Tell(ledger_, Remember{.padding_bytes = kLargeSnapshotBytes});
    Await("a large snapshot", [](const Pages& pages) { return pages.saved == 3; });
    Tell(ledger_, Note{.first = last_ + 1, .count = 1000, .text_bytes = 300});
    last_ += 1000;
    AwaitHandled(last_);
    nodes_.writer->Stop(ledger_);
    Await("the end of the actor", [](const Pages& pages) { return pages.ended == 1; });
    Start();
    Await("the second recovery", [](const Pages& pages) { return pages.recovered == 2; });
    const Pages pages = notebook_->Read();
    EXPECT_EQ(pages.state, UpTo(last_));
    EXPECT_EQ(pages.padding_bytes, kLargeSnapshotBytes);
    EXPECT_EQ(pages.replayed.size(), 1000u);  // The others were in the snapshot.
    Tell(ledger_, Note{.first = ++last_});
    AwaitHandled(last_);
  }

  // An event that was stored on the journal's own node, and that no message to another node holds.
  void HearsThatAnEventDoesNotFit() {
    constexpr std::string_view kLarge = "large";
    const auto there = std::make_shared<Notebook>();
    const ActorRef owner = nodes_.keeper->TrySpawn(*MakeProps<Ledger>({}, there, kLarge)).value();
    Tell(owner, Note{.first = 1, .text_bytes = size_t{1} << 20});
    AwaitIn(*there, "a large event", [](const Pages& pages) { return pages.handled.size() == 1; });
    nodes_.keeper->Stop(owner);
    AwaitIn(*there, "the end of its owner", [](const Pages& pages) { return pages.ended == 1; });
    ASSERT_NO_FATAL_FAILURE(HearsThatTheLastEventIsMissing(kLarge, std::numeric_limits<uint64_t>::max()));
    // It is the last one of a bounded recovery, and not of the journal.
    const ActorRef next = nodes_.keeper->TrySpawn(*MakeProps<Ledger>({}, there, kLarge)).value();
    Tell(next, Note{.first = 2});
    AwaitIn(*there, "a small event", [](const Pages& pages) { return pages.handled.size() == 2; });
    nodes_.keeper->Stop(next);
    AwaitIn(*there, "the end of the next owner", [](const Pages& pages) { return pages.ended == 2; });
    ASSERT_NO_FATAL_FAILURE(HearsThatTheLastEventIsMissing(kLarge, 1));
  }

  void HearsThatTheLastEventIsMissing(std::string_view id, uint64_t recover_to) {
    const auto here = std::make_shared<Notebook>();
    ASSERT_TRUE(nodes_.writer->TrySpawn(*MakeProps<Ledger>({}, here, id, recover_to)).ok());
    AwaitIn(*here, "the end of a recovery",
            [](const Pages& pages) { return pages.ended == 1 || pages.recovered == 1; });
    EXPECT_EQ(here->Read().recovered, 0);
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(here->Read().failure), JournalErrorKind::kIo) << here->Read().failure;
  }

  void HearsThatItIsFenced() {
    const auto rivals = std::make_shared<Notebook>();
    const ActorRef rival = nodes_.keeper->TrySpawn(*MakeProps<Ledger>({}, rivals)).value();
    AwaitIn(*rivals, "the recovery of a rival", [](const Pages& pages) { return pages.recovered == 1; });
    EXPECT_EQ(rivals->Read().state, UpTo(last_));
    const int saved = notebook_->Read().saved;
    Tell(ledger_, Forget{});
    Tell(ledger_, Remember{});
    Await("four refusals", [](const Pages& pages) { return pages.refused.size() == 4; });
    for (const absl::Status& cause : notebook_->Read().refused) {
      EXPECT_EQ(ErrorKindOf<JournalErrorKind>(cause), JournalErrorKind::kFenced) << cause;
    }
    EXPECT_EQ(notebook_->Read().saved, saved);
    Tell(ledger_, Note{.first = last_ + 1});
    Await("the end of the former writer", [](const Pages& pages) { return pages.ended == 2; });
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(notebook_->Read().failure), JournalErrorKind::kFenced)
        << notebook_->Read().failure;
    EXPECT_EQ(Stored(), UpTo(last_));
    nodes_.keeper->Stop(rival);
    AwaitIn(*rivals, "the end of the rival", [](const Pages& pages) { return pages.ended == 1; });
  }

  void HearsThatTheJournalHasLostEvents() {
    Start();
    Await("the third recovery", [](const Pages& pages) { return pages.recovered == 3; });
    notebook_->Write([](Pages& pages) { pages.failure = absl::OkStatus(); });
    Tell(ledger_, Note{.first = ++last_});
    AwaitHandled(last_);
    // The backup knows the writer, and only the first of its events.
    const std::string id(kId);
    const uint64_t highest = journal_->HighestSequenceNr(id).Take().value();
    PersistentRepr first =
        journal_->Replay({.persistence_id = id, .from_sequence_nr = highest}).Take().value().back().ToRepr();
    first.sequence_nr = 1;
    const std::shared_ptr<MemoryJournal> backup = MemoryJournal::Open({}).value();
    ASSERT_TRUE(backup->OpenWriter(id, first.epoch).Take().ok());
    std::vector<AtomicWrite> writes;
    writes.push_back(AtomicWrite::Make(std::move(first)).value());
    ASSERT_TRUE(backup->Write(std::move(writes)).Take().ok());
    storage_->Restore(backup);
    Tell(ledger_, Note{.first = last_ + 1});
    Await("the end of the writer", [](const Pages& pages) { return pages.ended == 3; });
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(notebook_->Read().failure), JournalErrorKind::kEventsLost)
        << notebook_->Read().failure;
    EXPECT_EQ(backup->HighestSequenceNr(id).Take().value(), 1u);
  }

  void Start() { ledger_ = nodes_.writer->TrySpawn(*MakeProps<Ledger>({}, notebook_)).value(); }

  // Each event was handled once and stored once, in order.
  void AwaitHandled(int64_t last) {
    last_ = last;
    Await(absl::StrCat(last, " events"),
          [last](const Pages& pages) { return pages.handled.size() >= UpTo(last).size(); });
    const Pages pages = notebook_->Read();
    ASSERT_EQ(pages.handled, UpTo(last));
    ASSERT_EQ(Stored(), UpTo(last));
    ASSERT_TRUE(pages.failure.ok()) << pages.failure;
  }

  std::vector<int64_t> Stored() {
    std::vector<int64_t> numbers;
    for (uint64_t from = 1;;) {
      // In memory: it is ready.
      const EventBatch page =
          journal_->Replay({.persistence_id = std::string(kId), .from_sequence_nr = from}).Take().value();
      for (const StoredEvent& event : page) {
        const CodecContext context;
        Decoder in(event.payload, 0, 0, context);
        numbers.push_back(Codec<Noted>::Decode(in).number);
      }
      if (page.at_end()) return numbers;
      from = page.resume_at();
    }
  }

  void Await(const std::string& what, absl::FunctionRef<bool(const Pages&)> done) { AwaitIn(*notebook_, what, done); }
  void AwaitIn(Notebook& notebook, const std::string& what, absl::FunctionRef<bool(const Pages&)> done) {
    constexpr absl::Duration kStep = absl::Milliseconds(20);
    for (absl::Duration waited; waited < nodes_.patience; waited += kStep) {
      if (done(notebook.Read())) return;
      nodes_.pass_time(kStep);
    }
    FAIL() << what << " did not come; " << notebook.Read().handled.size()
           << " events were handled; failure: " << notebook.Read().failure;
  }

  const RemoteJournalNodes& nodes_;
  const std::shared_ptr<MemoryJournal> journal_ = MemoryJournal::Open({}).value();
  const std::shared_ptr<RestorableJournal> storage_ = std::make_shared<RestorableJournal>(journal_);
  const std::shared_ptr<MemorySnapshotStore> snapshots_ =
      MemorySnapshotStore::Open({.toolbox = &nodes_.keeper->toolbox()}).value();
  const std::shared_ptr<Notebook> notebook_ = std::make_shared<Notebook>();
  ActorRef ledger_;
  int64_t last_ = 0;
};

}  // namespace

CodecSetup RemoteJournalCodecs() {
  CodecSetup codecs;
  codecs.Add<Noted, Notes>().Add(ProtocolCodecs());
  return codecs;
}

void RunRemoteJournalScenario(const RemoteJournalNodes& nodes) { Scenario(nodes).Run(); }

}  // namespace fraktor::inline v0
