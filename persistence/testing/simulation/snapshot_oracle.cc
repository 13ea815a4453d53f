#include "fraktor/persistence/testing/simulation/snapshot_oracle.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/testing/simulation/owner_claims.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

void SnapshotOracle::SubmitOpening(uint64_t order, const std::string& id, uint64_t epoch) {
  id_of_[order] = id;
  Id& state = ids_[id];
  state.claims.Submit(order, epoch);
  state.openings[order] = epoch;
  log_.Note(id, absl::StrCat("snapshots #", order, " announce epoch ", epoch));
}

void SnapshotOracle::SubmitSave(uint64_t order, const Snapshot& snapshot, uint64_t epoch) {
  const std::string& id = snapshot.metadata.persistence_id;
  id_of_[order] = id;
  Id& state = ids_[id];
  state.claims.Submit(order, epoch);
  state.saves[order] = {.order = order, .snapshot = snapshot, .epoch = epoch};
  log_.Note(id, absl::StrCat("snapshots #", order, " save ", snapshot.metadata.sequence_nr, " of epoch ", epoch));
}

void SnapshotOracle::SubmitDeletion(uint64_t order, const std::string& id, uint64_t min, uint64_t max, uint64_t epoch) {
  id_of_[order] = id;
  Id& state = ids_[id];
  state.claims.Submit(order, epoch);
  state.deletions[order] = {.order = order, .min = min, .max = max, .epoch = epoch};
  log_.Note(id, absl::StrCat("snapshots #", order, " delete ", min, "..", max, " of epoch ", epoch));
}

bool SnapshotOracle::Judge(uint64_t order, const std::string& id, Id& state, uint64_t epoch, const absl::Status& answer,
                           bool heard, bool& is_gone) {
  is_gone = false;
  log_.Note(id, absl::StrCat("snapshots #", order, " ",
                             !heard        ? "not heard"
                             : answer.ok() ? "done"
                                           : StatusText(answer)));
  if (!heard) return false;
  const auto kind = ErrorKindOf<JournalErrorKind>(answer);
  if (answer.ok()) {
    settled_before_ = std::max(settled_before_, order);
    if (state.claims.KnownBefore(order) > epoch) {
      log_.Violate(id, absl::StrCat("snapshots #", order, " of epoch ", epoch, " was carried out although epoch ",
                                    state.claims.KnownBefore(order), " was announced before"));
    }
    state.claims.Confirm(order, epoch);
    return true;
  }
  if (kind == JournalErrorKind::kFenced) {
    settled_before_ = std::max(settled_before_, order);
    if (state.claims.PossibleBefore(order) <= epoch) {
      log_.Violate(
          id, absl::StrCat("snapshots #", order, " of epoch ", epoch, " is fenced, and no later epoch was announced"));
    }
    is_gone = true;
  }
  is_gone = is_gone || kind == JournalErrorKind::kOverloaded || kind == JournalErrorKind::kClosed;
  if (is_gone) state.claims.Withdraw(order);
  return false;
}

void SnapshotOracle::OnOpened(uint64_t order, const absl::Status& answer, bool heard) {
  const std::string id = id_of_.extract(order).mapped();
  Id& state = ids_[id];
  bool is_gone = false;
  Judge(order, id, state, state.openings.at(order), answer, heard, is_gone);
  state.openings.erase(order);
}

void SnapshotOracle::OnSaved(uint64_t order, const absl::StatusOr<SnapshotMetadata>& answer, bool heard) {
  const std::string id = id_of_.extract(order).mapped();
  Id& state = ids_[id];
  Save& save = state.saves.at(order);
  bool is_gone = false;
  if (Judge(order, id, state, save.epoch, answer.status(), heard, is_gone)) {
    save.is_acknowledged = true;
    ++acknowledged_;
    save.snapshot.metadata.timestamp = answer->timestamp;
    if (answer->timestamp <= last_time_) log_.Violate(id, "the time of a snapshot is not after the one before");
    last_time_ = answer->timestamp;
  }
  if (is_gone) state.saves.erase(order);
}

void SnapshotOracle::OnDeleted(uint64_t order, const absl::Status& answer, bool heard) {
  const std::string id = id_of_.extract(order).mapped();
  Id& state = ids_[id];
  Deletion& deletion = state.deletions.at(order);
  bool is_gone = false;
  if (Judge(order, id, state, deletion.epoch, answer, heard, is_gone)) deletion.is_acknowledged = true;
  if (is_gone) state.deletions.erase(order);
}

void SnapshotOracle::Audit(const std::string& id, const std::vector<Snapshot>& found) {
  Id& state = ids_[id];
  std::set<uint64_t> there;  // orders of saves
  for (const Snapshot& snapshot : found) {
    const SnapshotMetadata& metadata = snapshot.metadata;
    const auto save = std::find_if(state.saves.begin(), state.saves.end(), [&](const auto& entry) {
      const Snapshot& saved = entry.second.snapshot;
      return saved.metadata.sequence_nr == metadata.sequence_nr && saved.payload == snapshot.payload &&
             (!entry.second.is_acknowledged || saved.metadata.timestamp == metadata.timestamp);
    });
    if (save == state.saves.end()) {
      log_.Violate(id, absl::StrCat("snapshot ", metadata.sequence_nr, " is there, and nobody saved it"));
      continue;
    }
    if (!there.insert(save->first).second) {
      log_.Violate(id, absl::StrCat("snapshot ", metadata.sequence_nr, " is there twice"));
    }
    if (state.claims.KnownBefore(save->first) > save->second.epoch) {
      log_.Violate(id, absl::StrCat("the save #", save->first, " was fenced and is there"));
    }
    for (const auto& [order, deletion] : state.deletions) {
      if (deletion.is_acknowledged && deletion.Covers(save->second)) {
        log_.Violate(id, absl::StrCat("snapshot ", metadata.sequence_nr, " is deleted by #", order, " and is there"));
      }
    }
    save->second.snapshot.metadata.timestamp = metadata.timestamp;
  }
  for (auto entry = state.saves.begin(); entry != state.saves.end();) {
    Save& save = entry->second;
    const bool is_there = there.contains(entry->first);
    bool may_be_gone = !save.is_acknowledged;
    for (const auto& [order, deletion] : state.deletions) {
      const bool is_fenced = !deletion.is_acknowledged && state.claims.KnownBefore(order) > deletion.epoch;
      may_be_gone = may_be_gone || (deletion.Covers(save) && !is_fenced);
    }
    if (!is_there && !may_be_gone) {
      log_.Violate(id, absl::StrCat("snapshot ", save.snapshot.metadata.sequence_nr, " of #", entry->first,
                                    " was acknowledged and is gone"));
    }
    save.is_acknowledged = save.is_acknowledged || is_there;
    const bool is_settled = save.is_acknowledged || entry->first < settled_before_;
    entry = !is_there && is_settled ? state.saves.erase(entry) : std::next(entry);
  }
  for (auto entry = state.deletions.begin(); entry != state.deletions.end();) {
    // One that may still be carried out can take what is there now.
    const bool is_settled = entry->second.is_acknowledged || entry->first < settled_before_;
    entry = is_settled ? state.deletions.erase(entry) : std::next(entry);
  }
}

std::set<std::string> SnapshotOracle::ids() const {
  std::set<std::string> ids;
  for (const auto& [id, state] : ids_) ids.insert(id);
  return ids;
}

}  // namespace fraktor::inline v0
