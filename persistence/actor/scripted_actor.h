// For tests: a persistent actor that does what the test says and writes down what happens to it, and a journal that can be
// told to fail.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_SCRIPTED_ACTOR_H_
#define FRAKTOR_PERSISTENCE_ACTOR_SCRIPTED_ACTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/journal/delayed.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class ScriptedActor;

// What the test tells the actor, and what the actor tells the test. Outlives the actor.
struct Script {
  std::string id = "a";
  std::string journal = {};
  std::string snapshots = {};
  Recovery recovery = {};
  PersistentActorOptions options = {};
  uint64_t token = 0;
  std::function<absl::Status(ScriptedActor& actor)> on_start = nullptr;
  std::function<absl::Status(ScriptedActor& actor)> on_completed = nullptr;
  std::function<absl::Status(ScriptedActor& actor, Envelope& event)> on_recover = nullptr;
  std::function<Recovery()> on_recover_from = nullptr;
  // Commands that are texts. The usual one persists them.
  std::function<absl::Status(ScriptedActor& actor, const std::string& text)> on_text = nullptr;

  std::vector<std::string> log = {};
  // The causes, for whoever wants to know more than the log says.
  std::vector<absl::Status> rejections = {};
  std::vector<absl::Status> failures = {};
};

// A command: runs in the actor.
struct Do {
  std::function<absl::Status(ScriptedActor& actor)> run;
};

// Its events are texts.
class ScriptedActor final : public PersistentActor {
 public:
  explicit ScriptedActor(Script* script) : script_(*script) {}

  using PersistentActor::Become;
  using PersistentActor::BecomeStacked;
  using PersistentActor::context;
  using PersistentActor::Defer;
  using PersistentActor::DeferAsync;
  using PersistentActor::DeleteMessages;
  using PersistentActor::DeleteSnapshot;
  using PersistentActor::DeleteSnapshots;
  using PersistentActor::is_recovering;
  using PersistentActor::last_sequence_nr;
  using PersistentActor::MakeEvent;
  using PersistentActor::Persist;
  using PersistentActor::PersistAll;
  using PersistentActor::PersistAllAsync;
  using PersistentActor::PersistAsync;
  using PersistentActor::PersistEvents;
  using PersistentActor::SaveSnapshot;
  using PersistentActor::Stash;
  using PersistentActor::state;
  using PersistentActor::Unbecome;
  using PersistentActor::UnstashAll;
  using PersistentActor::writer;

  void Log(std::string line) { script_.log.push_back(std::move(line)); }

  // Handlers that write down.
  auto Handler() {
    return [this](const std::string& event) { Apply(event); };
  }
  void Apply(const std::string& event) {
    events.push_back(event);
    Log("event " + event);
  }

  std::vector<std::string> events;

 private:
  // Without its namespace.
  static std::string NameOf(const Envelope& message) {
    const std::string name(message.type()->name());
    return name.substr(name.rfind(':') + 1);
  }

  std::string PersistenceId() const override { return script_.id; }
  std::string_view JournalPluginId() const override { return script_.journal; }
  std::string_view SnapshotPluginId() const override { return script_.snapshots; }
  Recovery RecoverFrom() const override {
    return script_.on_recover_from == nullptr ? script_.recovery : script_.on_recover_from();
  }
  uint64_t FencingToken() const override { return script_.token; }
  const PersistentActorOptions& options() const override { return script_.options; }

  absl::Status OnStart(ActorContext& /*context*/) override {
    return script_.on_start == nullptr ? absl::OkStatus() : script_.on_start(*this);
  }
  void OnStop(ActorContext& /*context*/) override { Log("stopped"); }
  absl::Status OnRestart(ActorContext& its_context, const absl::Status& reason, Envelope* message) override {
    Log(absl::StrCat("restart on ", message == nullptr           ? "nothing"
                                    : message->Is<std::string>() ? message->As<std::string>()
                                                                 : NameOf(*message)));
    return PersistentActor::OnRestart(its_context, reason, message);
  }
  absl::Status ReceiveRecover(ActorContext& /*context*/, Envelope& event) override {
    if (script_.on_recover != nullptr) FRAKTOR_RETURN_IF_ERROR(script_.on_recover(*this, event));
    events.push_back(event.As<std::string>());
    Log(absl::StrCat("recover ", event.As<std::string>()));
    return absl::OkStatus();
  }
  absl::Status ReceiveSnapshot(ActorContext& /*context*/, const SnapshotMetadata& metadata, Envelope& state) override {
    events.push_back(state.As<std::string>());
    Log(absl::StrCat("snapshot ", metadata.sequence_nr, " ", state.As<std::string>()));
    if (state.As<std::string>() == "bad") return absl::InvalidArgumentError("bad snapshot");
    return absl::OkStatus();
  }
  absl::Status OnRecoveryCompleted(ActorContext& /*context*/) override {
    Log(absl::StrCat("completed ", last_sequence_nr()));
    return script_.on_completed == nullptr ? absl::OkStatus() : script_.on_completed(*this);
  }
  absl::Status ReceiveCommand(ActorContext& /*context*/, Envelope& command) override {
    if (auto* const todo = command.TryAs<Do>()) return todo->run(*this);
    if (auto* const text = command.TryAs<std::string>()) {
      Log("command " + *text);
      if (script_.on_text != nullptr) return script_.on_text(*this, *text);
      Persist(*text, Handler());
      return absl::OkStatus();
    }
    Log("message " + NameOf(command));
    return Unhandled(command);
  }
  void OnPersistFailure(const absl::Status& cause, Envelope& event, uint64_t nr) override {
    script_.failures.push_back(cause);
    Log(absl::StrCat("failed ", nr, " ", event.As<std::string>()));
  }
  void OnPersistRejected(const absl::Status& cause, Envelope& event, uint64_t nr) override {
    script_.rejections.push_back(cause);
    Log(absl::StrCat("rejected ", nr, " ", event.Is<std::string>() ? event.As<std::string>() : "?"));
  }
  void OnRecoveryFailure(const absl::Status& cause, Envelope* event) override {
    Log(absl::StrCat("recovery failed on ", event == nullptr ? "nothing" : event->As<std::string>(), ": ",
                     cause.message()));
  }
  void OnSnapshotFailure(const absl::Status& cause) override {
    Log(absl::StrCat("snapshot failure: ", cause.message()));
  }

  Script& script_;
};

// A journal in memory that fails when it is told to.
class KnobJournal final : public JournalStorage {
 public:
  explicit KnobJournal(const MemoryJournalOptions& options = {}) : inner(MemoryJournal::Open(options).value()) {}

  Future<WriterOpened> OpenWriter(std::string id, std::optional<uint64_t> token) override {
    if (!open_failure.ok()) return MakeReadyFuture<WriterOpened>(open_failure);
    return inner->OpenWriter(std::move(id), token);
  }
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override {
    write_sizes.push_back(writes.size());
    if (!write_failure.ok()) return MakeReadyFuture<WriteResults>(write_failure);
    WriteResults rejections(writes.size());
    std::vector<AtomicWrite> good;
    std::vector<size_t> places;
    for (size_t i = 0; i < writes.size(); ++i) {
      if (reject != nullptr && reject(writes[i])) {
        rejections[i] = absl::InvalidArgumentError("not wanted");
      } else {
        places.push_back(i);
        good.push_back(std::move(writes[i]));
      }
    }
    return inner->Write(std::move(good))
        .Map([rejections = std::move(rejections), places = std::move(places)](const WriteResults& results) mutable {
          for (size_t i = 0; i < results.size(); ++i) rejections[places[i]] = results[i];
          return rejections;
        });
  }
  Future<EventBatch> Replay(ReplayPage page) override {
    if (!replay_failure.ok()) return MakeReadyFuture<EventBatch>(replay_failure);
    if (toolbox != nullptr) {
      absl::StatusOr<EventBatch> batch = inner->Replay(std::move(page)).Take();
      const absl::Duration delay = batch.ok() ? time_per_event * batch->size() : absl::ZeroDuration();
      return ReadyAfter<EventBatch>(toolbox, delay, std::move(batch));
    }
    if (replay_order.empty()) return inner->Replay(std::move(page));
    return inner->Replay(std::move(page)).Map([order = replay_order](const EventBatch& batch) {
      EventBatch ordered;
      for (const size_t i : order) {
        StoredEvent event = batch[i];
        event.persistence_id = ordered.Keep(event.persistence_id);
        event.manifest = ordered.Keep(event.manifest);
        event.payload = ordered.Keep(event.payload);
        event.metadata = ordered.Keep(event.metadata);
        event.tag_bytes = ordered.Keep(event.tag_bytes);
        ordered.Add(event);
      }
      ordered.Finish(batch.resume_at(), batch.at_end());
      return ordered;
    });
  }
  Future<uint64_t> HighestSequenceNr(std::string id) override { return inner->HighestSequenceNr(std::move(id)); }
  Future<void> DeleteTo(std::string id, uint64_t to, uint64_t epoch) override {
    if (!delete_failure.ok()) return MakeReadyFuture<void>(delete_failure);
    return inner->DeleteTo(std::move(id), to, epoch);
  }
  Future<EventBatch> EventsByTag(TagPage page) override { return inner->EventsByTag(std::move(page)); }
  Future<IdBatch> PersistenceIds(IdPage page) override { return inner->PersistenceIds(page); }
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override {
    return inner->AwaitAdvance(std::move(subject), after);
  }
  Future<void> Close() override { return inner->Close(); }
  const JournalLimits& limits() const override { return inner->limits(); }

  std::unique_ptr<MemoryJournal> inner;
  absl::Status open_failure;
  absl::Status write_failure;
  absl::Status replay_failure;
  absl::Status delete_failure;
  std::function<bool(const AtomicWrite& write)> reject;
  std::vector<size_t> write_sizes;  // atomic writes
  // If there is a toolbox: a page takes so long for each of its events.
  RuntimeToolbox* toolbox = nullptr;
  absl::Duration time_per_event;
  // Which events of each page are given, in which order. Empty: all of them, as they are stored.
  std::vector<size_t> replay_order;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_SCRIPTED_ACTOR_H_
