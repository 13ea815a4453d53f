#include "fraktor/persistence/testing/simulation/journal_oracle.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/testing/simulation/owner_claims.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

bool IsKind(const absl::Status& status, JournalErrorKind kind) { return ErrorKindOf<JournalErrorKind>(status) == kind; }

// The store has not taken the request.
bool HadNoEffect(const absl::Status& status) {
  return IsKind(status, JournalErrorKind::kOverloaded) || IsKind(status, JournalErrorKind::kClosed);
}

std::string RangeOf(const AtomicWrite& write) {
  return absl::StrCat(write.lowest_sequence_nr(), "..", write.highest_sequence_nr(), " of epoch ", write.epoch());
}

}  // namespace

void JournalOracle::SubmitOpening(uint64_t order, const std::string& id, std::optional<uint64_t> token) {
  Id& state = At(id);
  id_of_[order] = id;
  state.openings[order] = token;
  state.claims.Submit(order, token.value_or(OwnerClaims::kAnyEpoch));
  log_.Note(id, token.has_value() ? absl::StrCat("#", order, " open with token ", *token)
                                  : absl::StrCat("#", order, " open"));
}

void JournalOracle::SubmitWrite(uint64_t order, const AtomicWrite& write, bool is_resend) {
  const std::string& id = write.persistence_id();
  id_of_[order] = id;
  At(id).writes.push_back({.order = order, .write = write, .is_resend = is_resend});
  log_.Note(id, absl::StrCat("#", order, is_resend ? " write again " : " write ", RangeOf(write)));
}

void JournalOracle::SubmitDeletion(uint64_t order, const std::string& id, uint64_t to, uint64_t epoch) {
  id_of_[order] = id;
  At(id).deletions.push_back({.order = order, .to = to, .epoch = epoch});
  log_.Note(id, absl::StrCat("#", order, " delete to ", to, " of epoch ", epoch));
}

void JournalOracle::OnOpened(uint64_t order, const absl::StatusOr<WriterOpened>& answer, bool heard) {
  const std::string id = IdOf(order);
  id_of_.erase(order);
  Id& state = At(id);
  const std::optional<uint64_t> token = state.openings.at(order);
  state.openings.erase(order);
  if (!heard) {
    log_.Note(id, absl::StrCat("#", order, " not heard"));
    return;
  }
  log_.Note(id,
            absl::StrCat("#", order, " ",
                         answer.ok() ? absl::StrCat("opened epoch ", answer->epoch, ", highest ",
                                                    answer->highest_sequence_nr, ", deleted to ", answer->deleted_to)
                                     : StatusText(answer.status())));
  if (!answer.ok()) {
    if (HadNoEffect(answer.status())) {
      state.claims.Withdraw(order);
    } else if (IsKind(answer.status(), JournalErrorKind::kFenced)) {
      if (!token.has_value() || state.claims.PossibleBefore(order) <= *token) {
        log_.Violate(id, absl::StrCat("opening #", order, " is fenced, and no later epoch was opened"));
      }
      state.claims.Withdraw(order);
      Settle(order);
    }
    return;
  }
  Settle(order);
  const uint64_t known = state.claims.KnownBefore(order);
  if (token.has_value()) {
    if (answer->epoch != *token || known > *token) {
      log_.Violate(id, absl::StrCat("opening with token ", *token, " gave epoch ", answer->epoch, "; epoch ", known,
                                    " was opened before"));
    }
  } else if (answer->epoch <= known) {
    log_.Violate(id, absl::StrCat("opening gave epoch ", answer->epoch, " again; ", known, " was opened before"));
  }
  if (answer->highest_sequence_nr < state.highest) {
    log_.Violate(id, absl::StrCat("opening says that the highest number is ", answer->highest_sequence_nr, "; ",
                                  state.highest, " was acknowledged"));
  }
  if (answer->highest_sequence_nr > PossibleHighest(state, order)) {
    log_.Violate(id, absl::StrCat("opening says that the highest number is ", answer->highest_sequence_nr,
                                  ", which nobody wrote"));
  }
  if (answer->deleted_to < state.deleted_to || answer->deleted_to > PossibleDeletedTo(state)) {
    log_.Violate(id, absl::StrCat("opening says that events are deleted to ", answer->deleted_to,
                                  "; acknowledged is the deletion to ", state.deleted_to));
  }
  state.claims.Confirm(order, answer->epoch);
  state.is_known = true;
}

void JournalOracle::OnWritten(uint64_t order, const absl::Status& answer, bool is_whole, bool heard) {
  const std::string id = IdOf(order);
  id_of_.erase(order);
  Id& state = At(id);
  const auto found = std::find_if(state.writes.begin(), state.writes.end(),
                                  [order](const Write& write) { return write.order == order; });
  found->is_answered = true;
  if (!heard) {
    log_.Note(id, absl::StrCat("#", order, " not heard"));
    return;
  }
  log_.Note(id, absl::StrCat("#", order, " ", answer.ok() ? "stored" : StatusText(answer)));
  const Write submitted = *found;
  const AtomicWrite& write = submitted.write;
  // Nothing is known: it may be there or not.
  if (is_whole && !HadNoEffect(answer)) return;
  state.writes.erase(found);
  if (is_whole) return;
  Settle(order);
  if (answer.ok()) {
    if (state.claims.KnownBefore(order) > write.epoch()) {
      log_.Violate(id, absl::StrCat("write ", RangeOf(write), " was stored although epoch ",
                                    state.claims.KnownBefore(order), " was opened before"));
    }
    if (IsTooLarge(write)) log_.Violate(id, absl::StrCat("write ", RangeOf(write), " is too large and was stored"));
    Acknowledge(id, state, write);
  } else if (IsKind(answer, JournalErrorKind::kFenced)) {
    if (state.claims.PossibleBefore(order) <= write.epoch()) {
      log_.Violate(id, absl::StrCat("write ", RangeOf(write), " is fenced, and no later epoch was opened"));
    }
  } else if (IsKind(answer, JournalErrorKind::kTooLarge)) {
    if (!IsTooLarge(write)) log_.Violate(id, absl::StrCat("write ", RangeOf(write), " is refused as too large"));
  } else if (!IsKind(answer, JournalErrorKind::kSequenceMismatch) || !submitted.is_resend) {
    log_.Violate(id, absl::StrCat("write ", RangeOf(write), " is refused: ", StatusText(answer)));
  }
}

void JournalOracle::OnDeleted(uint64_t order, const absl::Status& answer, bool heard) {
  const std::string id = IdOf(order);
  id_of_.erase(order);
  Id& state = At(id);
  const auto found = std::find_if(state.deletions.begin(), state.deletions.end(),
                                  [order](const Deletion& deletion) { return deletion.order == order; });
  found->is_answered = true;
  if (!heard) return;
  log_.Note(id, absl::StrCat("#", order, " ", answer.ok() ? "deleted" : StatusText(answer)));
  const Deletion deletion = *found;
  const bool is_fenced = IsKind(answer, JournalErrorKind::kFenced);
  if (!answer.ok() && !is_fenced && !HadNoEffect(answer)) return;
  state.deletions.erase(found);
  if (HadNoEffect(answer)) return;
  Settle(order);
  if (is_fenced) {
    if (state.claims.PossibleBefore(order) <= deletion.epoch) {
      log_.Violate(id, absl::StrCat("deletion #", order, " is fenced, and no later epoch was opened"));
    }
    return;
  }
  if (state.claims.KnownBefore(order) > deletion.epoch) {
    log_.Violate(id, absl::StrCat("a deletion of epoch ", deletion.epoch, " was carried out although epoch ",
                                  state.claims.KnownBefore(order), " was opened before"));
  }
  state.deleted_to = std::max(state.deleted_to, std::min(deletion.to, state.highest));
  // It may have covered what was stored without an answer.
  const uint64_t possible = std::min(deletion.to, PossibleHighest(state, order));
  if (possible > state.deleted_to) {
    state.deletions.push_back({.order = order, .to = possible, .epoch = deletion.epoch, .is_answered = true});
  }
}

void JournalOracle::Settle(uint64_t order) { settled_before_ = std::max(settled_before_, order); }

bool JournalOracle::IsTooLarge(const AtomicWrite& write) const {
  return std::any_of(write.events().begin(), write.events().end(),
                     [this](const PersistentRepr& event) { return event.payload.size() > max_payload_; });
}

uint64_t JournalOracle::PossibleHighest(const Id& state, uint64_t before) {
  uint64_t highest = state.highest;
  for (const Write& write : state.writes) {
    if (write.order < before) highest = std::max(highest, write.write.highest_sequence_nr());
  }
  return highest;
}

uint64_t JournalOracle::PossibleDeletedTo(const Id& state) {
  uint64_t to = state.deleted_to;
  for (const Deletion& deletion : state.deletions) to = std::max(to, deletion.to);
  return std::min(to, PossibleHighest(state, kMax));
}

void JournalOracle::Acknowledge(const std::string& id, Id& state, const AtomicWrite& write) {
  state.is_known = true;
  for (size_t i = 0; i < write.events().size(); ++i) {
    const PersistentRepr& event = write.events()[i];
    const auto [entry, is_new] = state.events.try_emplace(event.sequence_nr, Event{write, i});
    acknowledged_ += is_new ? 1 : 0;
    if (!is_new && !(entry->second.repr() == event)) {
      log_.Violate(id, absl::StrCat("event ", event.sequence_nr, " was acknowledged twice, with two contents"));
    }
  }
  state.highest = std::max(state.highest, write.highest_sequence_nr());
}

std::vector<uint64_t> JournalOracle::SubmitReplay(const std::string& id, uint64_t from) const {
  std::vector<uint64_t> expected;
  const auto state = ids_.find(id);
  if (state == ids_.end()) return expected;
  const uint64_t first = std::max(from, state->second.deleted_to + 1);
  for (auto event = state->second.events.lower_bound(first); event != state->second.events.end(); ++event) {
    expected.push_back(event->first);
  }
  return expected;
}

void JournalOracle::OnReplayed(const std::string& id, const std::vector<uint64_t>& expected, const EventBatch& page) {
  const Id& state = At(id);
  std::set<uint64_t> seen;
  for (const StoredEvent& stored : page) {
    const PersistentRepr event = stored.ToRepr();
    if (!seen.empty() && event.sequence_nr <= *seen.rbegin()) {
      log_.Violate(id, absl::StrCat("a replay gives ", event.sequence_nr, " after ", *seen.rbegin()));
    }
    seen.insert(event.sequence_nr);
    const auto known = state.events.find(event.sequence_nr);
    bool is_legal = known != state.events.end() && known->second.repr() == event;
    for (const Write& write : state.writes) {
      for (const PersistentRepr& written : write.write.events()) is_legal = is_legal || written == event;
    }
    if (!is_legal) log_.Violate(id, absl::StrCat("a replay gives an event ", event.sequence_nr, " that nobody wrote"));
  }
  const uint64_t end = page.at_end() ? kMax : page.resume_at();
  for (const uint64_t number : expected) {
    if (number < end && number > PossibleDeletedTo(state) && !seen.contains(number)) {
      log_.Violate(id, absl::StrCat("a replay lacks event ", number, ", which was acknowledged before"));
    }
  }
}

void JournalOracle::Audit(const std::string& id, const Found& found) {
  Id& state = At(id);
  if (found.highest < state.highest || found.highest > PossibleHighest(state, kMax)) {
    log_.Violate(id, absl::StrCat("the highest number is ", found.highest, "; acknowledged is ", state.highest));
  }
  if (found.deleted_to < state.deleted_to || found.deleted_to > PossibleDeletedTo(state)) {
    log_.Violate(id, absl::StrCat("events are deleted to ", found.deleted_to, "; acknowledged is ", state.deleted_to,
                                  ", possible ", PossibleDeletedTo(state)));
  }
  std::map<uint64_t, const PersistentRepr*> events;
  uint64_t epoch = 0;
  for (const PersistentRepr& event : found.events) {
    const uint64_t number = event.sequence_nr;
    if (number <= found.deleted_to) log_.Violate(id, absl::StrCat("event ", number, " is deleted and is there"));
    if (!events.empty() && number <= events.rbegin()->first) {
      log_.Violate(id, absl::StrCat("event ", number, " comes after ", events.rbegin()->first));
    }
    if (event.epoch < epoch) {
      log_.Violate(id, absl::StrCat("event ", number, " has epoch ", event.epoch, "; the one before has ", epoch));
    }
    epoch = event.epoch;
    events[number] = &event;
    const auto known = state.events.find(number);
    bool is_legal = known != state.events.end() && known->second.repr() == event;
    for (const Write& write : state.writes) {
      if (is_legal) break;
      for (const PersistentRepr& written : write.write.events()) is_legal = is_legal || written == event;
    }
    if (!is_legal) {
      log_.Violate(id, absl::StrCat("event ", number, " of epoch ", event.epoch, " is there, and ",
                                    known == state.events.end() ? "nobody wrote it" : "another was acknowledged"));
    }
  }
  for (const auto& [number, event] : state.events) {
    if (number > found.deleted_to && !events.contains(number)) {
      log_.Violate(id, absl::StrCat("event ", number, " was acknowledged and is gone"));
    }
  }
  std::vector<Write> unsettled;
  for (const Write& write : state.writes) {
    size_t expected = 0;
    size_t stored = 0;
    for (const PersistentRepr& event : write.write.events()) {
      if (event.sequence_nr <= found.deleted_to) continue;
      ++expected;
      const auto there = events.find(event.sequence_nr);
      stored += there != events.end() && *there->second == event ? 1 : 0;
    }
    if (stored != 0 && stored != expected) {
      log_.Violate(id, absl::StrCat("of the atomic write ", RangeOf(write.write), ", ", stored, " of ", expected,
                                    " events are there"));
    }
    // A write that was sent again may be there by its first copy, which comes before it here.
    const PersistentRepr& last = write.write.events().back();
    const auto known = state.events.find(last.sequence_nr);
    const bool is_copy = known != state.events.end() && known->second.repr() == last;
    if (stored > 0 && !is_copy && state.claims.KnownBefore(write.order) > write.write.epoch()) {
      log_.Violate(id, absl::StrCat("write ", RangeOf(write.write), " was fenced and is there"));
    }
    if (stored > 0) {
      Acknowledge(id, state, write.write);
    } else if (write.order >= settled_before_) {
      unsettled.push_back(write);
    }
  }
  state.writes = std::move(unsettled);
  for (const Deletion& deletion : state.deletions) {
    if (found.deleted_to > state.deleted_to && found.deleted_to <= deletion.to &&
        state.claims.KnownBefore(deletion.order) > deletion.epoch &&
        std::none_of(state.deletions.begin(), state.deletions.end(), [&](const Deletion& other) {
          return found.deleted_to <= other.to && state.claims.KnownBefore(other.order) <= other.epoch;
        })) {
      log_.Violate(id, absl::StrCat("the deletion to ", deletion.to, " of epoch ", deletion.epoch,
                                    " was fenced and carried out"));
    }
  }
  state.deletions.erase(std::remove_if(state.deletions.begin(), state.deletions.end(),
                                       [this](const Deletion& deletion) { return deletion.order < settled_before_; }),
                        state.deletions.end());
  // A later audit demands what this one has seen.
  state.deleted_to = std::max(state.deleted_to, found.deleted_to);
  state.highest = std::max(state.highest, found.highest);
  state.events.erase(state.events.begin(), state.events.upper_bound(state.deleted_to));
}

void JournalOracle::AuditTag(const std::string& tag, const std::vector<std::pair<std::string, uint64_t>>& found) {
  std::set<std::pair<std::string, uint64_t>> seen;
  for (const auto& [id, number] : found) {
    if (!seen.emplace(id, number).second) {
      log_.Violate(id, absl::StrCat("tag ", tag, " gives event ", number, " twice"));
    }
    const auto state = ids_.find(id);
    if (state == ids_.end()) {
      log_.Violate(id, absl::StrCat("tag ", tag, " gives an id that nobody wrote"));
      continue;
    }
    const auto event = state->second.events.find(number);
    const bool is_known = event != state->second.events.end();
    const std::vector<std::string> no_tags;
    const std::vector<std::string>& tags = is_known ? event->second.repr().tags : no_tags;
    const bool is_tagged = std::find(tags.begin(), tags.end(), tag) != tags.end();
    const bool may_be_there =
        std::any_of(state->second.writes.begin(), state->second.writes.end(), [number](const Write& write) {
          return write.write.lowest_sequence_nr() <= number && number <= write.write.highest_sequence_nr();
        });
    if (!is_tagged && !may_be_there) {
      log_.Violate(id, absl::StrCat("tag ", tag, " gives event ", number, ", which does not have it"));
    }
  }
  for (const auto& [id, state] : ids_) {
    for (const auto& [number, event] : state.events) {
      const std::vector<std::string>& tags = event.repr().tags;
      if (std::find(tags.begin(), tags.end(), tag) == tags.end() || number <= PossibleDeletedTo(state)) continue;
      if (!seen.contains({id, number})) {
        log_.Violate(id, absl::StrCat("tag ", tag, " lacks event ", number, ", which was acknowledged"));
      }
    }
  }
}

void JournalOracle::AuditIds(const std::vector<std::string>& found) {
  std::set<std::string> seen;
  for (const std::string& id : found) {
    if (!seen.insert(id).second) log_.Violate(id, "the list of ids has it twice");
    if (!ids_.contains(id)) log_.Violate(id, "the list of ids has it, and nobody opened it");
  }
  for (const auto& [id, state] : ids_) {
    if (state.is_known && !seen.contains(id)) log_.Violate(id, "the list of ids lacks it");
  }
}

std::set<std::string> JournalOracle::ids() const {
  std::set<std::string> ids;
  for (const auto& [id, state] : ids_) ids.insert(id);
  return ids;
}

}  // namespace fraktor::inline v0
