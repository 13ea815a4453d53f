#include "fraktor/persistence/protocol/remote_snapshot_store.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

namespace remote_snapshot_store_internal {

// To itself.
struct Tick {};

// Numbers the incarnations of all proxies of a system.
class Incarnations {
 public:
  explicit Incarnations(ActorSystem& /*system*/) {}
  uint64_t Next() { return next_.fetch_add(1, std::memory_order_relaxed); }

 private:
  // Numbers that only have to differ: relaxed.
  std::atomic<uint64_t> next_{0};
};

}  // namespace remote_snapshot_store_internal

using remote_snapshot_store_internal::Incarnations;
using remote_snapshot_store_internal::Tick;

namespace {

constexpr size_t kMinMessageBytes = 1024;
// The size of a message without the bytes of a part and the head of the snapshot, at most.
constexpr size_t kOverheadBytes = 256;
// Requests that may wait behind one save, and loads that may wait for the store.
constexpr size_t kMaxWaiting = 10'000;

size_t HeadBytes(const Snapshot& snapshot) {
  return snapshot.metadata.persistence_id.size() + snapshot.metadata.metadata.size() + snapshot.manifest.size() +
         kOverheadBytes;
}

absl::Status SnapshotError(absl::StatusCode code, JournalErrorKind kind, const SnapshotMetadata& metadata,
                           std::string_view what) {
  return MakeError(
      code, kind,
      absl::StrCat("snapshot ", metadata.sequence_nr, " of \"", metadata.persistence_id, "\" ", ToAbsl(what)),
      {{"id", metadata.persistence_id}, {"nr", metadata.sequence_nr}});
}

void Fail(ActorContext& context, SaveSnapshot& request, const absl::Status& cause) {
  context.Tell(request.client, SaveSnapshotFailure{std::move(request.snapshot.metadata), cause, request.instance_id});
}
void Fail(ActorContext& context, DeleteSnapshot& request, const absl::Status& cause) {
  context.Tell(request.client, DeleteSnapshotFailure{std::move(request.metadata), cause, request.instance_id});
}
void Fail(ActorContext& context, DeleteSnapshots& request, const absl::Status& cause) {
  context.Tell(request.client, DeleteSnapshotsFailure{request.criteria, cause, request.instance_id});
}

const std::string& IdOf(const SaveSnapshot& request) { return request.snapshot.metadata.persistence_id; }
const std::string& IdOf(const DeleteSnapshot& request) { return request.metadata.persistence_id; }
const std::string& IdOf(const DeleteSnapshots& request) { return request.persistence_id; }

// The memory that a waiting request counts for.
size_t BytesOf(const SaveSnapshot& request) { return request.snapshot.payload.size(); }
size_t BytesOf(const DeleteSnapshot&) { return 0; }
size_t BytesOf(const DeleteSnapshots&) { return 0; }

}  // namespace

absl::Status RemoteSnapshotOptions::Validate() const {
  if (max_message_bytes < kMinMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("RemoteSnapshotOptions::max_message_bytes is ", max_message_bytes,
                                                   "; it must be at least ", kMinMessageBytes));
  }
  if (max_transfers == 0 || parts_in_flight == 0 || max_transfer_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat("RemoteSnapshotOptions::max_transfers is ", max_transfers,
                                                   ", parts_in_flight ", parts_in_flight, ", max_transfer_bytes ",
                                                   max_transfer_bytes, "; each must be at least 1"));
  }
  if (resend_after <= absl::ZeroDuration() || timeout < resend_after) {
    return absl::InvalidArgumentError(
        absl::StrCat("RemoteSnapshotOptions::resend_after is ", absl::FormatDuration(resend_after), " and timeout ",
                     absl::FormatDuration(timeout), "; the first must be above 0, and the second at least the first"));
  }
  return absl::OkStatus();
}

RemoteSnapshotStore::RemoteSnapshotStore(ActorRef store, uint64_t sender, const RemoteSnapshotOptions& options)
    : store_(store), seed_(sender), options_(options) {}

absl::Status RemoteSnapshotStore::PreStart(ActorContext& context) {
  // Differs from the number of a former incarnation, and of another proxy of this system.
  ActorSystem& system = context.system();
  Random random = system.toolbox()
                      .MakeRandom(static_cast<uint64_t>(absl::ToUnixNanos(system.toolbox().WallNow())))
                      .Fork(seed_)
                      .Fork(system.Extension<Incarnations>().Next());
  sender_ = random.Next();
  // Answers to loads name the number alone.
  next_number_ = random.Next() >> 1;
  return options_.Validate();
}

absl::Status RemoteSnapshotStore::Receive(ActorContext& context, Envelope& message) {
  if (auto* const load = message.TryAs<LoadSnapshot>()) {
    StartLoad(context, *load);
  } else if (auto* const save = message.TryAs<SaveSnapshot>()) {
    Handle(context, std::move(*save));
  } else if (auto* const one = message.TryAs<DeleteSnapshot>()) {
    Handle(context, std::move(*one));
  } else if (auto* const some = message.TryAs<DeleteSnapshots>()) {
    Handle(context, std::move(*some));
  } else if (const auto* const taken = message.TryAs<SnapshotPartsTaken>()) {
    OnTaken(context, *taken);
  } else if (auto* const saved = message.TryAs<SnapshotPartsSaved>()) {
    OnSaved(context, *saved);
  } else if (const auto* const confirmed = message.TryAs<LoadInPartsTaken>()) {
    OnConfirmed(context, *confirmed);
  } else if (auto* const result = message.TryAs<LoadSnapshotResult>()) {
    PassOn(context, *result);
  } else if (auto* const failed = message.TryAs<LoadSnapshotFailed>()) {
    PassOn(context, *failed);
  } else if (auto* const offer = message.TryAs<SnapshotOffer>()) {
    OnOffer(context, *offer);
  } else if (auto* const part = message.TryAs<SnapshotPart>()) {
    OnPart(context, *part);
  } else if (message.Is<Tick>()) {
    OnTick(context);
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

void RemoteSnapshotStore::PostStop(ActorContext& context) {
  const absl::Status cause = MakeError(
      absl::StatusCode::kUnavailable, JournalErrorKind::kClosed,
      "the actor that talks to the snapshot store of another node stops or is restarted: whether the request took "
      "effect is not known; ask again");
  for (auto& [number, upload] : uploads_) {
    Fail(context, upload.request, cause);
    for (Request& request : upload.behind) std::visit([&](auto& one) { Fail(context, one, cause); }, request);
  }
  for (auto& [number, load] : loads_) {
    context.Tell(load.request.client, LoadSnapshotFailed{cause, load.request.instance_id});
  }
  for (auto& [number, download] : downloads_) {
    context.Tell(download.client, LoadSnapshotFailed{cause, download.instance_id});
  }
}

// Saves and deletions.

void RemoteSnapshotStore::Handle(ActorContext& context, Request request) {
  const auto upload =
      uploads_.empty()
          ? upload_of_.end()
          : upload_of_.find(std::visit([](const auto& one) -> const std::string& { return IdOf(one); }, request));
  if (upload == upload_of_.end()) {
    if (auto* const save = std::get_if<SaveSnapshot>(&request)) {
      Save(context, std::move(*save));
    } else {
      std::visit([&](auto& one) { context.Tell(store_, std::move(one)); }, request);
    }
    return;
  }
  Upload& first = uploads_.find(upload->second)->second;
  const size_t bytes = std::visit([](const auto& one) { return BytesOf(one); }, request);
  if (first.behind.size() >= kMaxWaiting || (bytes > 0 && bytes + bytes_ > options_.max_transfer_bytes)) {
    const absl::Status cause = SnapshotError(
        absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded, first.request.snapshot.metadata,
        absl::StrCat("is on its way to its store, on another node, and ", first.behind.size(),
                     " requests wait behind it. The limits are ", kMaxWaiting, " requests, and ",
                     options_.max_transfer_bytes,
                     " bytes of snapshots (RemoteSnapshotOptions::max_transfer_bytes). Save less often"));
    std::visit([&](auto& one) { Fail(context, one, cause); }, request);
    return;
  }
  bytes_ += bytes;
  first.behind.push_back(std::move(request));
}

void RemoteSnapshotStore::Save(ActorContext& context, SaveSnapshot request) {
  const SnapshotMetadata& metadata = request.snapshot.metadata;
  const size_t head = HeadBytes(request.snapshot);
  const size_t bytes = request.snapshot.payload.size();
  if (head + bytes <= options_.max_message_bytes + kOverheadBytes) {
    context.Tell(store_, std::move(request));
    return;
  }
  if (head > options_.max_message_bytes / 2) {
    Fail(context, request,
         SnapshotError(
             absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge, metadata,
             absl::StrCat("has ", head, " bytes beside its payload; to a store on another node it may have ",
                          options_.max_message_bytes / 2, ", half of RemoteSnapshotOptions::max_message_bytes")));
    return;
  }
  if (bytes_ > 0 && bytes + bytes_ > options_.max_transfer_bytes) {
    Fail(context, request,
         SnapshotError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded, metadata,
                       absl::StrCat("has ", bytes, " bytes, and snapshots of ", bytes_,
                                    " bytes are on their way to their store, on another node. The limit, "
                                    "RemoteSnapshotOptions::max_transfer_bytes, is ",
                                    options_.max_transfer_bytes, ". Save less often, or raise it")));
    return;
  }
  bytes_ += bytes;
  const uint64_t number = ++next_number_;
  upload_of_.insert_or_assign(metadata.persistence_id, number);
  Upload upload;
  upload.part_bytes = options_.max_message_bytes - head;
  upload.request = std::move(request);
  uploads_.emplace(number, std::move(upload));
  StartTransfers(context);
}

void RemoteSnapshotStore::GoOn(ActorContext& context, uint64_t number, Upload& upload, size_t max_parts) {
  const Snapshot& snapshot = upload.request.snapshot;
  const uint64_t total = snapshot.payload.size();
  const uint64_t parts = upload.is_admitted ? max_parts : 1;
  const uint64_t limit = std::min<uint64_t>(total, upload.done + parts * upload.part_bytes);
  while (upload.begun < limit) {
    SaveSnapshotPart part{.transfer = {sender_, number},
                          .offset = upload.begun,
                          .total_bytes = total,
                          .bytes = snapshot.payload.substr(upload.begun, upload.part_bytes),
                          .client = context.self().Plain(),
                          .epoch = upload.request.epoch};
    if (upload.begun == 0) {
      part.head = {
          .metadata = snapshot.metadata, .manifest = snapshot.manifest, .manifest_version = snapshot.manifest_version};
    }
    upload.begun += part.bytes.size();
    context.Tell(store_, std::move(part));
  }
}

template <class T>
void RemoteSnapshotStore::Repeat(ActorContext& context, uint64_t number, T& transfer) {
  if (transfer.repeated_at == transfer.done) return;
  transfer.repeated_at = transfer.begun = transfer.done;
  GoOn(context, number, transfer);
}

void RemoteSnapshotStore::OnTaken(ActorContext& context, const SnapshotPartsTaken& taken) {
  const auto found = uploads_.find(taken.transfer.number);
  if (taken.transfer.sender != sender_ || found == uploads_.end()) return;
  Upload& upload = found->second;
  upload.is_refused = !taken.has_room;
  const uint64_t total = upload.request.snapshot.payload.size();
  if (upload.is_refused || taken.received_bytes > total) return;
  if (taken.received_bytes == 0) {
    // The store has forgotten the upload. Only the first part begins it again.
    upload.done = 0;
    upload.is_admitted = false;
  }
  if (taken.received_bytes <= upload.done) {
    if (taken.received_bytes == upload.done && upload.done < upload.begun) Repeat(context, found->first, upload);
    return;
  }
  upload.is_admitted = true;
  upload.done = taken.received_bytes;
  upload.begun = std::max(upload.begun, upload.done);
  Progress(context, upload);
  GoOn(context, found->first, upload);
}

void RemoteSnapshotStore::OnSaved(ActorContext& context, SnapshotPartsSaved& saved) {
  if (saved.transfer.sender != sender_ || !uploads_.contains(saved.transfer.number)) return;
  EndUpload(context, saved.transfer.number, saved.cause, std::move(saved.metadata));
}

void RemoteSnapshotStore::EndUpload(ActorContext& context, uint64_t number, const absl::Status& cause,
                                    SnapshotMetadata saved) {
  Upload upload = std::move(uploads_.extract(number).mapped());
  if (upload.is_active) --active_;
  bytes_ -= upload.request.snapshot.payload.size();
  upload_of_.erase(upload.request.snapshot.metadata.persistence_id);
  if (cause.ok()) {
    context.Tell(upload.request.client, SaveSnapshotSuccess{std::move(saved), upload.request.instance_id});
  } else {
    Fail(context, upload.request, cause);
  }
  for (Request& request : upload.behind) {
    bytes_ -= std::visit([](const auto& one) { return BytesOf(one); }, request);
    Handle(context, std::move(request));
  }
  StartTransfers(context);
}

// Loads.

void RemoteSnapshotStore::StartLoad(ActorContext& context, LoadSnapshot& request) {
  if (loads_.size() >= kMaxWaiting) {
    context.Tell(request.client,
                 LoadSnapshotFailed{MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded,
                                              absl::StrCat(loads_.size(),
                                                           " loads wait for a snapshot store on another node: see "
                                                           "whether that node can be reached, and ask again")),
                                    request.instance_id});
    return;
  }
  const uint64_t number = ++next_number_;
  const Instant now = context.system().toolbox().Now();
  const Load load{
      .request = std::move(request), .asked_at = now, .resend_after = options_.resend_after, .last_heard = now};
  AskInParts(context, number, load);
  loads_.emplace(number, load);
  StartTimer(context);
}

void RemoteSnapshotStore::AskInParts(ActorContext& context, uint64_t number, const Load& load) {
  LoadSnapshotInParts request{.request = load.request,
                              .client = context.self().Plain(),
                              .number = number,
                              .max_bytes = options_.max_message_bytes};
  request.request.client = context.self().Plain();
  request.request.instance_id = number;
  context.Tell(store_, std::move(request));
}

void RemoteSnapshotStore::OnConfirmed(ActorContext& context, const LoadInPartsTaken& confirmed) {
  has_warned_ = false;
  const auto found = loads_.find(confirmed.number);
  if (found == loads_.end()) return;
  // The store has begun to load. A repetition costs it another load, and helps only if the answer
  // is lost.
  constexpr int kIntervalsPerTimeout = 3;
  Load& load = found->second;
  load.is_confirmed = true;
  load.last_heard = context.system().toolbox().Now();
  load.resend_after = std::max(load.resend_after, options_.timeout / kIntervalsPerTimeout);
}

template <class Answer>
void RemoteSnapshotStore::PassOn(ActorContext& context, Answer& answer) {
  const auto found = loads_.find(answer.instance_id);
  if (found == loads_.end()) return;
  const LoadSnapshot request = std::move(loads_.extract(found).mapped().request);
  answer.instance_id = request.instance_id;
  context.Tell(request.client, std::move(answer));
}

void RemoteSnapshotStore::OnOffer(ActorContext& context, SnapshotOffer& offer) {
  const auto found = loads_.find(offer.number);
  if (found == loads_.end()) return;
  const LoadSnapshot request = std::move(loads_.extract(found).mapped().request);
  if (downloads_.size() >= kMaxWaiting) {
    context.Tell(
        request.client,
        LoadSnapshotFailed{
            SnapshotError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded, offer.head.metadata,
                          absl::StrCat("is one of more than ", downloads_.size(),
                                       " large snapshots that are loaded at once: recover fewer actors")),
            request.instance_id});
    return;
  }
  Download download;
  download.part_bytes = options_.max_message_bytes;
  download.offer = std::move(offer);
  download.client = request.client;
  download.instance_id = request.instance_id;
  downloads_.emplace(++next_number_, std::move(download));
  StartTransfers(context);
}

void RemoteSnapshotStore::GoOn(ActorContext& context, uint64_t number, Download& download, size_t max_parts) {
  const uint64_t total = download.offer.total_bytes;
  const uint64_t limit = std::min<uint64_t>(total, download.done + max_parts * download.part_bytes);
  for (; download.begun < limit; download.begun += std::min(download.part_bytes, total - download.begun)) {
    context.Tell(store_, GetSnapshotPart{.metadata = download.offer.head.metadata,
                                         .total_bytes = total,
                                         .offset = download.begun,
                                         .max_bytes = download.part_bytes,
                                         .client = context.self().Plain(),
                                         .number = number});
  }
}

void RemoteSnapshotStore::OnPart(ActorContext& context, SnapshotPart& part) {
  const auto found = downloads_.find(part.number);
  if (found == downloads_.end()) return;
  Download& download = found->second;
  if (!part.cause.ok()) {
    download.is_refused = ErrorKindOf<JournalErrorKind>(part.cause) == JournalErrorKind::kOverloaded;
    // Without room the timer asks again.
    if (!download.is_refused) FailDownload(context, found->first, part.cause);
    return;
  }
  download.is_refused = false;
  const uint64_t total = download.offer.total_bytes;
  if (part.offset > download.done) Repeat(context, found->first, download);
  if (part.offset != download.done || part.bytes.empty() || part.bytes.size() > total - download.done) return;
  download.payload += part.bytes;
  download.done += part.bytes.size();
  download.begun = std::max(download.begun, download.done);
  Progress(context, download);
  if (download.done < total) {
    GoOn(context, found->first, download);
    return;
  }
  LoadSnapshotResult result{.found = true,
                            .snapshot = std::move(download.offer.head),
                            .to_sequence_nr = download.offer.to_sequence_nr,
                            .instance_id = download.instance_id};
  result.snapshot.payload = std::move(download.payload);
  context.Tell(download.client, std::move(result));
  bytes_ -= total;
  --active_;
  downloads_.erase(found);
  StartTransfers(context);
}

void RemoteSnapshotStore::FailDownload(ActorContext& context, uint64_t number, const absl::Status& cause) {
  const auto found = downloads_.find(number);
  const Download& download = found->second;
  context.Tell(download.client, LoadSnapshotFailed{cause, download.instance_id});
  if (download.is_active) {
    --active_;
    bytes_ -= download.offer.total_bytes;
  }
  downloads_.erase(found);
  StartTransfers(context);
}

// All transfers.

void RemoteSnapshotStore::Progress(ActorContext& context, Transfer& transfer) {
  transfer.last_progress = transfer.last_message = context.system().toolbox().Now();
  transfer.resend_after = options_.resend_after;
}

absl::Duration RemoteSnapshotStore::Longer(absl::Duration interval) const {
  // Some repetitions have to arrive before the timeout, also on a link that loses many.
  constexpr int kIntervalsPerTimeout = 6;
  constexpr int kMaxGrowth = 8;
  const absl::Duration longest =
      std::clamp(options_.timeout / kIntervalsPerTimeout, options_.resend_after, kMaxGrowth * options_.resend_after);
  return std::min(2 * interval, longest);
}

template <class T>
void RemoteSnapshotStore::Probe(ActorContext& context, uint64_t number, T& transfer, Instant now) {
  if (now - transfer.last_message < transfer.resend_after) return;
  transfer.last_message = now;
  transfer.resend_after = Longer(transfer.resend_after);
  // The answer to the repeated part may report the next gap.
  transfer.repeated_at = std::numeric_limits<uint64_t>::max();
  transfer.begun = transfer.done;
  GoOn(context, number, transfer, 1);
}

void RemoteSnapshotStore::StartTransfers(ActorContext& context) {
  const auto start = [&](Transfer& transfer) {
    ++active_;
    transfer.is_active = true;
    Progress(context, transfer);
  };
  // Loads first: actors wait for them.
  for (auto& [number, download] : downloads_) {
    if (active_ >= options_.max_transfers) break;
    const uint64_t bytes = download.offer.total_bytes;
    const size_t room = options_.max_transfer_bytes - std::min(bytes_, options_.max_transfer_bytes);
    if (download.is_active || (bytes_ > 0 && bytes > room)) continue;
    bytes_ += bytes;
    start(download);
    GoOn(context, number, download);
  }
  for (auto& [number, upload] : uploads_) {
    if (active_ >= options_.max_transfers) break;
    if (upload.is_active) continue;
    start(upload);
    GoOn(context, number, upload);
  }
  StartTimer(context);
}

void RemoteSnapshotStore::StartTimer(ActorContext& context) {
  if (has_timer_ || (uploads_.empty() && downloads_.empty() && loads_.empty())) return;
  const absl::Status started = Timers(context).StartSingle("fraktor.transfers", Tick(), options_.resend_after);
  has_timer_ = started.ok();
  if (started.ok()) return;
  Log(context, LogLevel::kWarning,
      absl::StrCat("a part of a snapshot that is lost is not sent again, since there is no timer: ",
                   started.message()));
}

void RemoteSnapshotStore::OnTick(ActorContext& context) {
  has_timer_ = false;
  const Instant now = context.system().toolbox().Now();
  AskAgain(context);
  std::vector<uint64_t> lost;
  for (auto& [number, upload] : uploads_) {
    if (!upload.is_active) continue;
    if (IsLost(upload, now)) {
      lost.push_back(number);
    } else {
      // When all parts are confirmed, the first one asks for the result, which may be lost. If the
      // store has forgotten the upload, that part begins it again.
      const bool is_due = now - upload.last_message >= upload.resend_after;
      if (is_due && upload.done == upload.request.snapshot.payload.size()) upload.done = 0;
      Probe(context, number, upload, now);
    }
  }
  for (const uint64_t number : lost) {
    const Upload& upload = uploads_.find(number)->second;
    EndUpload(
        context, number,
        NoProgress(context, upload, upload.request.snapshot.metadata, "taken", upload.request.snapshot.payload.size()),
        {});
  }
  lost.clear();
  for (auto& [number, download] : downloads_) {
    if (!download.is_active) continue;
    if (IsLost(download, now)) {
      lost.push_back(number);
    } else {
      Probe(context, number, download, now);
    }
  }
  for (const uint64_t number : lost) {
    const Download& download = downloads_.find(number)->second;
    FailDownload(context, number,
                 NoProgress(context, download, download.offer.head.metadata, "sent", download.offer.total_bytes));
  }
  StartTimer(context);
}

void RemoteSnapshotStore::AskAgain(ActorContext& context) {
  const Instant now = context.system().toolbox().Now();
  for (auto entry = loads_.begin(); entry != loads_.end();) {
    auto& [number, load] = *entry;
    if (now - load.last_heard >= options_.timeout) {
      context.Tell(
          load.request.client,
          LoadSnapshotFailed{MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kClosed,
                                       absl::StrCat("the snapshot store ", context.system().PathOf(store_),
                                                    " has not answered a load of \"", load.request.persistence_id,
                                                    "\" for ", absl::FormatDuration(options_.timeout),
                                                    ": see whether that node can be reached, and recover again"),
                                       {{"id", load.request.persistence_id}}),
                             load.request.instance_id});
      entry = loads_.erase(entry);
      continue;
    }
    ++entry;
    if (now - load.asked_at < load.resend_after) continue;
    load.asked_at = now;
    // A confirmation must arrive before the timeout.
    load.resend_after = std::min(2 * load.resend_after, std::max(options_.resend_after, options_.timeout / 2));
    AskInParts(context, number, load);
    if (load.is_confirmed) continue;
    if (!has_warned_) {
      Log(context, LogLevel::kWarning,
          absl::StrCat("the snapshot store ", context.system().PathOf(store_), " has not confirmed a load for ",
                       absl::FormatDuration(options_.resend_after),
                       ". If its node is of an older version, snapshots above ", options_.max_message_bytes,
                       " bytes can be neither saved nor loaded: upgrade that node"));
    }
    has_warned_ = true;
    // As an older node understands it.
    LoadSnapshot plain = load.request;
    plain.client = context.self().Plain();
    plain.instance_id = number;
    context.Tell(store_, std::move(plain));
  }
}

bool RemoteSnapshotStore::IsLost(const Transfer& transfer, Instant now) const {
  return now - transfer.last_progress >= options_.timeout;
}

absl::Status RemoteSnapshotStore::NoProgress(ActorContext& context, const Transfer& transfer,
                                             const SnapshotMetadata& metadata, std::string_view what,
                                             uint64_t bytes) const {
  const std::string where = context.system().PathOf(store_);
  const std::string time = absl::FormatDuration(options_.timeout);
  if (transfer.is_refused) {
    return SnapshotError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded, metadata,
                         absl::StrCat("has waited for room at ", where, " for ", time,
                                      ": ask again, or raise SnapshotActorOptions::max_transfer_bytes there"));
  }
  return SnapshotError(
      absl::StatusCode::kUnavailable, JournalErrorKind::kClosed, metadata,
      absl::StrCat("has ", bytes, " bytes, of which ", where, " has ", std::string(what), " ", transfer.done,
                   ", and no more for ", time,
                   transfer.done == 0 ? absl::StrCat(". Either that node cannot be reached, or it is of an older "
                                                     "version, which takes only snapshots of up to ",
                                                     options_.max_message_bytes, " bytes: upgrade it")
                                      : std::string(": see whether that node can be reached, and ask again")));
}

}  // namespace fraktor::inline v0
