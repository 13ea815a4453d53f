#include "fraktor/persistence/testing/simulation/store_simulation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/rocksdb_state_store.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/persistence/testing/rocksdb/sim_disk.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"

namespace fraktor::inline v0 {
namespace {

constexpr size_t kMaxPayload = 600;
constexpr int kTags = 4;
constexpr int kMaxOpenings = 20;
constexpr absl::Duration kPatience = absl::Hours(1);

std::string TagOf(uint64_t i) { return absl::StrCat("tag-", i); }

bool IsFenced(const absl::Status& status) { return ErrorKindOf<JournalErrorKind>(status) == JournalErrorKind::kFenced; }

}  // namespace

StoreSimulationOptions StoreSimulationOptions::Draw(uint64_t seed) {
  Random random = Random(seed).Fork(3);
  StoreSimulationOptions options{.seed = seed};
  switch (random.Uniform(8)) {
    case 0:  // thousands of ids in one group
      options.ids = 1000 + random.Uniform(2000);
      options.rounds = 4;
      options.requests = static_cast<int>(options.ids) * 2;
      break;
    case 1:
      options.ids = 100 + random.Uniform(200);
      options.rounds = 10;
      options.requests = static_cast<int>(options.ids) * 2;
      break;
    default:
      options.ids = 1 + random.Uniform(12);
      options.rounds = 10 + static_cast<int>(random.Uniform(20));
      options.requests = 5 + static_cast<int>(random.Uniform(60));
  }
  return options;
}

StoreSimulation::StoreSimulation(const StoreSimulationOptions& options)
    : options_(options),
      disk_(options.seed),
      toolbox_(SimToolbox::Make({.seed = options.seed}).value()),
      random_(toolbox_->MakeRandom(1)),
      weather_(toolbox_->MakeRandom(2)),
      journal_oracle_(log_, kMaxPayload),
      snapshot_oracle_(log_),
      state_oracle_(log_),
      answers_([this] { return disk_.is_off(); },
               [this](const std::string& what) { log_.Violate({}, absl::StrCat(what, " was dropped unanswered")); }) {
  disk_.set_listener([this](const std::string& what) { log_.Note(what); });
  const auto warn = [this](const std::string& line) { log_.Note(absl::StrCat("warning: ", line)); };
  const auto one_of = [this](std::initializer_list<size_t> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(random_.Uniform(choices.size())));
  };
  // Small groups and logs of many ids take long, and show no more than those of few.
  const bool has_many = options.ids >= 100;
  journal_options_ = {.path = "/journal",
                      .on_warning = warn,
                      .max_commit_bytes = one_of({has_many ? size_t{40'000} : 300, 4000, size_t{4} << 20}),
                      .reader_threads = static_cast<int>(1 + random_.Uniform(3)),
                      .max_cached_ids = one_of({1, 5, 100, 65'536}),
                      .block_cache_bytes = size_t{1} << 20,
                      // The sizes of logs, not those of tables in memory, say when these become
                      // files: RocksDB draws a part of the latter by chance.
                      .max_log_bytes = one_of(
                          {has_many ? size_t{200'000} : 1000, has_many ? size_t{100'000} : 20'000, size_t{1} << 20}),
                      .env = disk_.env()};
  journal_options_.limits.max_event_bytes = kMaxPayload + 100;
  snapshot_options_ = {.path = "/snapshots",
                       .on_warning = warn,
                       .block_cache_bytes = size_t{1} << 20,
                       .min_blob_bytes = 100,
                       .env = disk_.env()};
  state_options_ = {.path = "/states",
                    .on_warning = warn,
                    .block_cache_bytes = size_t{1} << 20,
                    .min_blob_bytes = 100,
                    .env = disk_.env()};
  for (size_t i = 0; i < options.ids; ++i) {
    const bool has_tokens = i % 2 == 1;
    for (int copy = 0; copy < 2; ++copy) {
      Owner owner{.id = absl::StrCat("a-", i)};
      if (has_tokens) owner.token = ++next_token_[owner.id];
      owner.state_token = owner.token.value_or(0);
      owners_.push_back(std::move(owner));
    }
  }
}

StoreSimulation::~StoreSimulation() { CloseStores(); }

std::string StoreSimulation::Summary() const {
  return absl::StrCat(options_.ids, " ids: ", journal_oracle_.acknowledged(), " events, ",
                      snapshot_oracle_.acknowledged(), " snapshots, ", state_oracle_.acknowledged(), " states, ",
                      crashes_, " crashes, ", restarts_, " restarts, ", disk_.fault_count(), " faults, ",
                      disk_.points(), " points");
}

// The stores.

bool StoreSimulation::TryToOpenStores() {
  const auto note = [this](const char* what, const absl::Status& status) {
    if (!status.ok()) log_.Note(absl::StrCat("cannot open the ", what, ": ", StatusText(status)));
    return status.ok();
  };
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(*toolbox_, journal_options_);
  if (!note("journal", journal.status())) return false;
  journal_ = *std::move(journal);
  absl::StatusOr<std::unique_ptr<RocksDbSnapshotStore>> snapshots =
      RocksDbSnapshotStore::Open(*toolbox_, snapshot_options_);
  if (!note("snapshot store", snapshots.status())) return false;
  snapshots_ = *std::move(snapshots);
  absl::StatusOr<std::unique_ptr<RocksDbStateStore>> states = RocksDbStateStore::Open(*toolbox_, state_options_);
  if (!note("state store", states.status())) return false;
  states_ = *std::move(states);
  return true;
}

bool StoreSimulation::OpenStores() {
  for (int attempt = 0; attempt < kMaxOpenings; ++attempt) {
    const uint64_t faults = disk_.fault_count();
    if (TryToOpenStores()) {
      journal_oracle_.OnRestart(next_order_);
      snapshot_oracle_.OnRestart(next_order_);
      state_oracle_.OnRestart(next_order_);
      return true;
    }
    CloseStores();
    if (disk_.is_off()) {
      ++crashes_;
      disk_.PowerOn();
    } else if (disk_.fault_count() == faults) {
      log_.Violate({}, "the stores cannot be opened on a disk that works");
      return false;
    } else {
      disk_.set_faults({});
    }
  }
  log_.Violate({}, "the stores cannot be opened");
  return false;
}

void StoreSimulation::CloseStores() {
  if (!disk_.is_off()) {
    // Step by step: destructors would not run RocksDB's jobs between two commits.
    const auto close = [this](auto& store, const char* what) {
      if (store != nullptr) answers_.Await(what, store->Close(), [](const absl::Status&, bool) {});
    };
    close(journal_, "close of the journal");
    close(snapshots_, "close of the snapshot store");
    close(states_, "close of the state store");
    Pump();
  }
  journal_.reset();
  snapshots_.reset();
  states_.reset();
  answers_.Deliver();
  if (!answers_.empty()) {
    log_.Violate(
        {}, absl::StrCat(answers_.size(),
                         " requests have no answer although the stores are closed; the first: ", answers_.first()));
  }
}

void StoreSimulation::Pump() {
  const auto is_done = [this] {
    disk_.RunJobs();
    answers_.Deliver();
    return answers_.empty() || disk_.is_off();
  };
  const absl::Status pumped = toolbox_->RunUntil(is_done, kPatience);
  if (!pumped.ok() && !disk_.is_off()) {
    log_.Violate({}, absl::StrCat(answers_.size(), " requests are never answered; the first: ", answers_.first(), "; ",
                                  StatusText(pumped)));
  }
}

template <class T>
auto StoreSimulation::Answer(Future<T> future) {
  std::optional<FutureResult<T>> answer;
  answers_.Await("audit", std::move(future),
                 [&answer](FutureResult<T> result, bool /*heard*/) { answer.emplace(std::move(result)); });
  Pump();
  if (!answer.has_value()) answer.emplace(absl::UnavailableError("the power has gone"));
  return *std::move(answer);
}

void StoreSimulation::RecoverFromCrash() {
  ++crashes_;
  log_.Note("crash: the process ends");
  CloseStores();
  for (Owner& owner : owners_) {
    owner.stage = Owner::Stage::kClosed;
    owner.state_stage = Owner::StateStage::kClosed;
    ++owner.incarnation;
  }
  gathered_.clear();
  disk_.PowerOn();
  // Also crashes while it opens.
  if (options_.crash_at == 0 && weather_.Bernoulli(0.2)) disk_.CrashAtPoint(1 + weather_.Uniform(60));
  if (!OpenStores()) return;
  disk_.CrashAtPoint(0);
  AuditAll();
}

// The audits.

void StoreSimulation::AuditId(const std::string& id) {
  const auto check = [&](const absl::Status& status, const char* what) {
    if (!status.ok()) log_.Violate(id, absl::StrCat("an audit cannot read ", what, ": ", StatusText(status)));
    return status.ok();
  };
  JournalOracle::Found found;
  const absl::StatusOr<uint64_t> highest = Answer(journal_->HighestSequenceNr(id));
  const absl::StatusOr<uint64_t> deleted_to = Answer(journal_->DeletedTo(id));
  if (!check(highest.status(), "the highest number") || !check(deleted_to.status(), "the deletions")) return;
  found.highest = *highest;
  found.deleted_to = *deleted_to;
  fraktor::ReplayPage page{.persistence_id = id,
                           .limits = {.max_events = static_cast<size_t>(1 + random_.Uniform(50))}};
  if (random_.Bernoulli(0.5)) page.to_sequence_nr = std::max<uint64_t>(1, *highest);
  while (true) {
    const absl::StatusOr<EventBatch> batch = Answer(journal_->Replay(page));
    if (!check(batch.status(), "events")) return;
    for (const StoredEvent& event : *batch) found.events.push_back(event.ToRepr());
    if (batch->at_end()) break;
    page.from_sequence_nr = batch->resume_at();
  }
  journal_oracle_.Audit(id, found);

  std::vector<Snapshot> snapshots;
  SnapshotSelectionCriteria criteria;
  while (true) {
    absl::StatusOr<std::optional<Snapshot>> snapshot = Answer(snapshots_->Load(id, criteria));
    if (!check(snapshot.status(), "a snapshot")) return;
    if (snapshot->has_value()) {
      // The next older one of that number.
      const uint64_t number = (*snapshot)->metadata.sequence_nr;
      criteria = {.max_sequence_nr = number,
                  .max_timestamp = (*snapshot)->metadata.timestamp - absl::Nanoseconds(1),
                  .min_sequence_nr = number};
      snapshots.push_back(**std::move(snapshot));
    } else if (criteria.max_timestamp != absl::InfiniteFuture() && criteria.max_sequence_nr > 0) {
      criteria = {.max_sequence_nr = criteria.max_sequence_nr - 1};
    } else {
      break;
    }
  }
  snapshot_oracle_.Audit(id, snapshots);

  const absl::StatusOr<StoredState> state = Answer(states_->Load(id));
  if (check(state.status(), "the state")) state_oracle_.Audit(id, *state);
}

void StoreSimulation::AuditTags() {
  for (int i = 0; i < kTags; ++i) {
    std::vector<std::pair<std::string, uint64_t>> found;
    TagPage page{.tag = TagOf(static_cast<uint64_t>(i)),
                 .limits = {.max_events = static_cast<size_t>(1 + random_.Uniform(200))}};
    uint64_t last_offset = 0;
    while (true) {
      const absl::StatusOr<EventBatch> batch = Answer(journal_->EventsByTag(page));
      if (!batch.ok()) {
        log_.Violate({}, absl::StrCat("an audit cannot read ", page.tag, ": ", StatusText(batch.status())));
        return;
      }
      for (const StoredEvent& event : *batch) {
        if (event.offset <= last_offset) log_.Violate({}, absl::StrCat(page.tag, " gives an offset out of order"));
        last_offset = event.offset;
        found.emplace_back(std::string(event.persistence_id), event.sequence_nr);
      }
      if (batch->at_end()) break;
      page.from_offset = batch->resume_at();
    }
    journal_oracle_.AuditTag(page.tag, found);
  }
}

void StoreSimulation::AuditIds() {
  std::vector<std::string> found;
  IdPage page{.max_ids = static_cast<size_t>(1 + random_.Uniform(500))};
  while (true) {
    const absl::StatusOr<IdBatch> batch = Answer(journal_->PersistenceIds(page));
    if (!batch.ok()) {
      log_.Violate({}, absl::StrCat("an audit cannot read the ids: ", StatusText(batch.status())));
      return;
    }
    found.insert(found.end(), batch->ids.begin(), batch->ids.end());
    if (batch->at_end) break;
    page.from_offset = batch->resume_at;
  }
  journal_oracle_.AuditIds(found);
}

void StoreSimulation::AuditAll() {
  if (log_.has_violations()) return;
  for (size_t i = 0; i < owners_.size(); i += 2) AuditId(owners_[i].id);
  AuditTags();
  AuditIds();
}

// The owners.

std::string StoreSimulation::MakePayload() {
  std::string payload = absl::StrCat(next_payload_++, " ");
  payload.resize(payload.size() + random_.Uniform(random_.Bernoulli(0.1) ? 500 : 60), 'x');
  return payload;
}

AtomicWrite StoreSimulation::MakeWrite(Owner& owner, size_t events, bool is_too_large) {
  AtomicWrite write = AtomicWrite::Fill(events, [&](size_t i, PersistentRepr& event) {
                        event.persistence_id = owner.id;
                        event.sequence_nr = owner.next_number + i;
                        event.writer = owner.writer;
                        event.epoch = owner.epoch;
                        event.manifest = "event";
                        event.payload = MakePayload();
                        if (is_too_large && i == 0) event.payload.resize(kMaxPayload + 200, 'x');
                        if (random_.Bernoulli(0.3)) event.tags.push_back(TagOf(random_.Uniform(kTags)));
                        return absl::OkStatus();
                      }).value();
  write.set_known_stored(owner.known_stored);
  owner.next_number += events;
  return write;
}

void StoreSimulation::Gather(size_t owner, AtomicWrite write, bool is_resend) {
  gathered_.push_back(
      {.owner = owner, .incarnation = owners_[owner].incarnation, .write = std::move(write), .is_resend = is_resend});
}

// As the journal actor does: one request has the writes of many owners.
void StoreSimulation::SubmitGathered() {
  while (!gathered_.empty()) {
    const size_t count = 1 + random_.Uniform(random_.Bernoulli(0.5) ? 4 : gathered_.size());
    const auto end = gathered_.begin() + static_cast<std::ptrdiff_t>(std::min(count, gathered_.size()));
    std::vector<GatheredWrite> part(std::make_move_iterator(gathered_.begin()), std::make_move_iterator(end));
    gathered_.erase(gathered_.begin(), end);
    std::vector<AtomicWrite> writes;
    const uint64_t first_order = next_order_;
    for (const GatheredWrite& gathered : part) {
      journal_oracle_.SubmitWrite(next_order_++, gathered.write, gathered.is_resend);
      writes.push_back(gathered.write);
    }
    answers_.Await(
        absl::StrCat("write of ", part.size(), " atomic writes"), journal_->Write(std::move(writes)),
        [this, part = std::move(part), first_order](const absl::StatusOr<WriteResults>& results, bool heard) {
          if (heard && results.ok() && !CheckWriteResults(*results, part.size()).ok()) {
            log_.Violate({},
                         absl::StrCat("a write of ", part.size(), " atomic writes has ", results->size(), " results"));
            return;
          }
          for (size_t i = 0; i < part.size(); ++i) {
            const absl::Status status = !results.ok()      ? results.status()
                                        : results->empty() ? absl::OkStatus()
                                                           : (*results)[i];
            journal_oracle_.OnWritten(first_order + i, status, !results.ok(), heard);
            OnWritten(part[i], status, !results.ok(), heard);
          }
        });
  }
}

void StoreSimulation::OnWritten(const GatheredWrite& gathered, const absl::Status& status, bool is_whole, bool heard) {
  Owner& owner = owners_[gathered.owner];
  if (!heard || owner.incarnation != gathered.incarnation) return;
  if (status.ok()) {
    owner.known_stored = std::max(owner.known_stored, gathered.write.highest_sequence_nr());
  } else if (IsFenced(status)) {
    owner.has_heard_fence = true;
  } else if (is_whole || gathered.is_resend) {
    owner.unknown = gathered.write;
  }
}

void StoreSimulation::OpenOwner(size_t index) {
  Owner& owner = owners_[index];
  owner.stage = Owner::Stage::kOpening;
  owner.has_heard_fence = false;
  owner.unknown = AtomicWrite();
  const uint64_t incarnation = ++owner.incarnation;
  owner.writer = WriterId::Draw(random_);
  if (owner.token.has_value()) {
    if (random_.Bernoulli(0.7)) {
      owner.token = ++next_token_[owner.id];
    } else {
      // With the same token the writes of the former incarnation count, so they have to come first.
      SubmitGathered();
    }
  }
  const uint64_t order = next_order_++;
  journal_oracle_.SubmitOpening(order, owner.id, owner.token);
  answers_.Await(absl::StrCat("opening of ", owner.id), journal_->OpenWriter(owner.id, owner.token),
                 [this, index, order, incarnation](const absl::StatusOr<WriterOpened>& opened, bool heard) {
                   journal_oracle_.OnOpened(order, opened, heard);
                   Owner& opening = owners_[index];
                   if (!heard || opening.incarnation != incarnation) return;
                   opening.stage = Owner::Stage::kClosed;
                   if (!opened.ok()) return;
                   opening.epoch = opened->epoch;
                   opening.next_number = opened->highest_sequence_nr + 1;
                   opening.known_stored = opened->highest_sequence_nr;
                   opening.stage = Owner::Stage::kOpening;
                   const uint64_t announcement = next_order_++;
                   snapshot_oracle_.SubmitOpening(announcement, opening.id, opening.epoch);
                   answers_.Await(
                       absl::StrCat("announcement of ", opening.id), snapshots_->OpenWriter(opening.id, opening.epoch),
                       [this, index, announcement, incarnation](const absl::Status& announced, bool is_heard) {
                         snapshot_oracle_.OnOpened(announcement, announced, is_heard);
                         Owner& announcing = owners_[index];
                         if (!is_heard || announcing.incarnation != incarnation) return;
                         announcing.stage = announced.ok() ? Owner::Stage::kOpen : Owner::Stage::kClosed;
                       });
                   ReplayPage(opening);
                 });
}

void StoreSimulation::ReplayPage(Owner& owner) {
  fraktor::ReplayPage page{.persistence_id = owner.id,
                           .from_sequence_nr = 1 + random_.Uniform(owner.next_number),
                           .limits = {.max_events = static_cast<size_t>(1 + random_.Uniform(20))}};
  // As a recovery asks, which makes the journal read ahead.
  if (random_.Bernoulli(0.5)) page.to_sequence_nr = std::max(page.from_sequence_nr, owner.next_number - 1);
  std::vector<uint64_t> expected = journal_oracle_.SubmitReplay(owner.id, page.from_sequence_nr);
  while (!expected.empty() && expected.back() > page.to_sequence_nr) expected.pop_back();
  answers_.Await(
      absl::StrCat("replay of ", owner.id), journal_->Replay(page),
      [this, id = owner.id, expected = std::move(expected)](const absl::StatusOr<EventBatch>& batch, bool heard) {
        // A disk that does not work may refuse reads too.
        if (heard && batch.ok()) journal_oracle_.OnReplayed(id, expected, *batch);
      });
}

void StoreSimulation::DeleteEvents(Owner& owner) {
  const uint64_t to = random_.Bernoulli(0.1) ? owner.next_number + 5 : random_.Uniform(owner.known_stored + 1);
  if (to == 0) return;
  const uint64_t order = next_order_++;
  journal_oracle_.SubmitDeletion(order, owner.id, to, owner.epoch);
  answers_.Await(
      absl::StrCat("deletion of events of ", owner.id), journal_->DeleteTo(owner.id, to, owner.epoch),
      [this, order](const absl::Status& status, bool heard) { journal_oracle_.OnDeleted(order, status, heard); });
}

void StoreSimulation::SaveSnapshot(size_t index) {
  Owner& owner = owners_[index];
  if (owner.known_stored == 0) return;
  const Snapshot snapshot{.metadata = {.persistence_id = owner.id, .sequence_nr = owner.known_stored},
                          .manifest = "snapshot",
                          .payload = MakePayload()};
  const uint64_t order = next_order_++;
  snapshot_oracle_.SubmitSave(order, snapshot, owner.epoch);
  // Retention: what is older goes when the snapshot is acknowledged, unless the owner has ended.
  const bool has_retention = random_.Bernoulli(0.5);
  answers_.Await(absl::StrCat("save of a snapshot of ", owner.id), snapshots_->Save(snapshot, owner.epoch),
                 [this, order, index, has_retention, number = owner.known_stored, incarnation = owner.incarnation](
                     const absl::StatusOr<SnapshotMetadata>& saved, bool heard) {
                   snapshot_oracle_.OnSaved(order, saved, heard);
                   Owner& saving = owners_[index];
                   if (!heard || !saved.ok() || !has_retention || saving.incarnation != incarnation) return;
                   if (number > 1) DeleteSnapshots(saving, 0, number - 1);
                   if (saving.known_stored > 0) DeleteEvents(saving);
                 });
}

void StoreSimulation::DeleteSnapshots(Owner& owner, uint64_t min, uint64_t max) {
  const uint64_t order = next_order_++;
  snapshot_oracle_.SubmitDeletion(order, owner.id, min, max, owner.epoch);
  Future<void> deleted =
      min == max ? snapshots_->Delete(owner.id, min, owner.epoch)
                 : snapshots_->DeleteMatching(owner.id, {.max_sequence_nr = max, .min_sequence_nr = min}, owner.epoch);
  answers_.Await(
      absl::StrCat("deletion of snapshots of ", owner.id), std::move(deleted),
      [this, order](const absl::Status& status, bool heard) { snapshot_oracle_.OnDeleted(order, status, heard); });
}

void StoreSimulation::ActOnJournal(size_t index) {
  Owner& owner = owners_[index];
  if (owner.stage == Owner::Stage::kOpening) return;
  if (owner.stage == Owner::Stage::kClosed) return OpenOwner(index);
  // A former owner does not always stop at once, and a new incarnation may come at any time.
  if (random_.Bernoulli(owner.has_heard_fence ? 0.4 : 0.04)) return OpenOwner(index);
  if (!owner.unknown.is_none()) {
    // Nobody knows whether it is stored: it is sent again, or its owner recovers.
    if (random_.Bernoulli(0.5)) return OpenOwner(index);
    return Gather(index, std::exchange(owner.unknown, AtomicWrite()), /*is_resend=*/true);
  }
  const uint64_t choice = random_.Uniform(100);
  if (choice < 45) {
    Gather(index, MakeWrite(owner, 1, /*is_too_large=*/false), /*is_resend=*/false);
  } else if (choice < 60) {
    Gather(index, MakeWrite(owner, 2 + random_.Uniform(5), /*is_too_large=*/false), /*is_resend=*/false);
  } else if (choice < 64) {
    Gather(index, MakeWrite(owner, 1 + random_.Uniform(2), /*is_too_large=*/true), /*is_resend=*/false);
  } else if (choice < 68) {
    // One request names the write twice.
    const AtomicWrite write = MakeWrite(owner, 1 + random_.Uniform(3), /*is_too_large=*/false);
    Gather(index, write, /*is_resend=*/false);
    Gather(index, write, /*is_resend=*/true);
  } else if (choice < 76) {
    SubmitGathered();
    DeleteEvents(owner);
  } else if (choice < 88) {
    SaveSnapshot(index);
  } else if (choice < 92) {
    const uint64_t number = random_.Uniform(owner.known_stored + 1);
    DeleteSnapshots(owner, random_.Bernoulli(0.5) ? number : 0, number);
  } else {
    ReplayPage(owner);
  }
}

void StoreSimulation::LoadState(size_t index) {
  Owner& owner = owners_[index];
  answers_.Await(absl::StrCat("load of the state of ", owner.id), states_->Load(owner.id),
                 [this, index, incarnation = owner.incarnation](const absl::StatusOr<StoredState>& state, bool heard) {
                   Owner& loading = owners_[index];
                   if (!heard) return;
                   loading.state_stage = state.ok() ? Owner::StateStage::kOpen : Owner::StateStage::kClosed;
                   if (state.ok()) loading.revision = state->state.revision;
                 });
}

void StoreSimulation::ActOnState(size_t index) {
  Owner& owner = owners_[index];
  if (owner.state_stage == Owner::StateStage::kBusy) return;
  const bool is_closed = owner.state_stage == Owner::StateStage::kClosed;
  owner.state_stage = Owner::StateStage::kBusy;
  if (is_closed) {
    if (!owner.token.has_value()) return LoadState(index);
    if (random_.Bernoulli(0.5)) owner.state_token = ++next_token_[owner.id];
    const uint64_t order = next_order_++;
    state_oracle_.SubmitOpening(order, owner.id, owner.state_token);
    answers_.Await(absl::StrCat("announcement of the state of ", owner.id),
                   states_->OpenWriter(owner.id, owner.state_token),
                   [this, index, order](const absl::Status& status, bool heard) {
                     state_oracle_.OnOpened(order, status, heard);
                     owners_[index].state_stage = Owner::StateStage::kClosed;
                     if (IsFenced(status)) owners_[index].state_token = ++next_token_[owners_[index].id];
                     if (heard && status.ok()) {
                       owners_[index].state_stage = Owner::StateStage::kBusy;
                       LoadState(index);
                     }
                   });
    return;
  }
  StoredState change{
      .exists = random_.Bernoulli(0.8),
      .state = {.persistence_id = owner.id, .revision = owner.revision + 1, .writer = WriterId::Draw(random_)}};
  if (change.exists) {
    change.state.manifest = "state";
    change.state.payload = MakePayload();
  }
  const uint64_t order = next_order_++;
  state_oracle_.SubmitChange(order, change, owner.state_token);
  Future<void> changed = change.exists
                             ? states_->Upsert(change.state, owner.state_token)
                             : states_->Delete(owner.id, change.state.revision, change.state.writer, owner.state_token);
  answers_.Await(absl::StrCat("change of the state of ", owner.id), std::move(changed),
                 [this, index, order](const absl::Status& status, bool heard) {
                   state_oracle_.OnChanged(order, status, heard);
                   Owner& changing = owners_[index];
                   changing.state_stage = Owner::StateStage::kOpen;
                   if (heard && status.ok()) ++changing.revision;
                   // A former owner tries on now and then.
                   const bool tries_on = IsFenced(status) && random_.Bernoulli(0.5);
                   if (!status.ok() && !tries_on) changing.state_stage = Owner::StateStage::kClosed;
                 });
}

void StoreSimulation::Act() {
  for (int i = 0; i < options_.requests; ++i) {
    const size_t owner = random_.Uniform(owners_.size());
    if (random_.Bernoulli(0.2)) {
      ActOnState(owner);
    } else {
      ActOnJournal(owner);
    }
    if (random_.Bernoulli(0.02)) SubmitGathered();
  }
  SubmitGathered();
}

void StoreSimulation::DrawWeather() {
  if (!options_.has_faults) return;
  disk_.SetFull(false);
  SimDisk::Faults faults;
  if (weather_.Bernoulli(0.2)) faults.max_sync_micros = 500'000;
  switch (weather_.Uniform(10)) {
    case 0:
      faults.fail_sync = 0.1;
      break;
    case 1:
      faults.fail_append = 0.05;
      break;
    case 2:
      faults.fail_rename = 0.3;
      faults.fail_sync = 0.05;
      break;
    case 3:
      faults.fail_making = 0.2;
      faults.fail_sync = 0.05;
      break;
    case 4:
      disk_.SetFull(true);
      log_.Note("the disk is full");
      break;
    default:
      break;
  }
  disk_.set_faults(faults);
  if (options_.crash_at == 0 && weather_.Bernoulli(0.3)) disk_.CrashAtPoint(1 + weather_.Uniform(30));
}

void StoreSimulation::Run() {
  if (options_.crash_at != 0) disk_.CrashAtPoint(options_.crash_at);
  if (!OpenStores()) return;
  for (int round = 0; round < options_.rounds && !log_.has_violations(); ++round) {
    DrawWeather();
    Act();
    // A process may also end in order while requests are under way.
    const bool restarts = options_.has_faults && weather_.Bernoulli(0.1);
    if (!restarts) Pump();
    if (disk_.is_off()) {
      RecoverFromCrash();
    } else if (restarts) {
      ++restarts_;
      log_.Note("restart");
      CloseStores();
      for (Owner& owner : owners_) {
        owner.stage = Owner::Stage::kClosed;
        owner.state_stage = Owner::StateStage::kClosed;
        ++owner.incarnation;
      }
      if (disk_.is_off()) {
        RecoverFromCrash();
      } else {
        disk_.SetFull(false);
        if (!OpenStores()) return;
      }
    }
  }
  points_of_rounds_ = disk_.points();
  if (log_.has_violations()) return;
  // A disk that works again: requests that it refused before work too.
  disk_.set_faults({});
  disk_.SetFull(false);
  disk_.CrashAtPoint(0);
  Act();
  Pump();
  AuditAll();
  CloseStores();
  if (log_.has_violations() || !OpenStores()) return;
  AuditAll();
}

}  // namespace fraktor::inline v0
