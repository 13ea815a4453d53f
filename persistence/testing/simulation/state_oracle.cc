#include "fraktor/persistence/testing/simulation/state_oracle.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/persistence/testing/simulation/owner_claims.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

bool IsSame(const StoredState& a, const StoredState& b) { return a.exists == b.exists && a.state == b.state; }

}  // namespace

void StateOracle::SubmitOpening(uint64_t order, const std::string& id, uint64_t token) {
  id_of_[order] = id;
  ids_[id].claims.Submit(order, token);
  ids_[id].openings[order] = token;
  log_.Note(id, absl::StrCat("state #", order, " announce token ", token));
}

void StateOracle::SubmitChange(uint64_t order, const StoredState& change, uint64_t token) {
  const std::string& id = change.state.persistence_id;
  id_of_[order] = id;
  Id& state = ids_[id];
  state.claims.Submit(order, token);
  state.changes[order] = {.state = change, .token = token};
  log_.Note(id, absl::StrCat("state #", order, change.exists ? " upsert " : " delete ", change.state.revision,
                             " of token ", token));
}

bool StateOracle::Judge(uint64_t order, const std::string& id, Id& state, uint64_t token, const absl::Status& answer,
                        bool heard, bool& is_gone) {
  is_gone = false;
  log_.Note(id, absl::StrCat("state #", order, " ", !heard ? "not heard" : answer.ok() ? "done" : StatusText(answer)));
  if (!heard) return false;
  const auto kind = ErrorKindOf<JournalErrorKind>(answer);
  if (answer.ok()) {
    settled_before_ = std::max(settled_before_, order);
    if (state.claims.KnownBefore(order) > token) {
      log_.Violate(id, absl::StrCat("state #", order, " of token ", token, " was carried out although token ",
                                    state.claims.KnownBefore(order), " was announced before"));
    }
    state.claims.Confirm(order, token);
    return true;
  }
  if (kind == JournalErrorKind::kFenced) {
    settled_before_ = std::max(settled_before_, order);
    if (state.claims.PossibleBefore(order) <= token) {
      log_.Violate(
          id, absl::StrCat("state #", order, " of token ", token, " is fenced, and no higher token was announced"));
    }
    is_gone = true;
  }
  is_gone = is_gone || kind == JournalErrorKind::kOverloaded || kind == JournalErrorKind::kClosed;
  if (is_gone) state.claims.Withdraw(order);
  return false;
}

void StateOracle::OnOpened(uint64_t order, const absl::Status& answer, bool heard) {
  const std::string id = id_of_.extract(order).mapped();
  Id& state = ids_[id];
  bool is_gone = false;
  Judge(order, id, state, state.openings.at(order), answer, heard, is_gone);
  state.openings.erase(order);
}

void StateOracle::OnChanged(uint64_t order, const absl::Status& answer, bool heard) {
  const std::string id = id_of_.extract(order).mapped();
  Id& state = ids_[id];
  const Change change = state.changes.at(order);
  const uint64_t revision = change.state.state.revision;
  if (heard && ErrorKindOf<JournalErrorKind>(answer) == JournalErrorKind::kSequenceMismatch) {
    // Its token counts all the same.
    log_.Note(id, absl::StrCat("state #", order, " ", StatusText(answer)));
    settled_before_ = std::max(settled_before_, order);
    state.changes.erase(order);
    bool has_reason = state.last.has_value() && state.last->state.revision >= revision;
    for (const auto& [other_order, other] : state.changes) {
      has_reason = has_reason || (other_order < order && other.state.state.revision >= revision);
    }
    if (!has_reason) log_.Violate(id, absl::StrCat("change ", revision, " is refused as not the next one"));
    return;
  }
  bool is_gone = false;
  if (Judge(order, id, state, change.token, answer, heard, is_gone)) {
    ++acknowledged_;
    state.changes.erase(order);
    if (!state.last.has_value() || revision > state.last->state.revision) {
      state.last = change.state;
    } else if (!IsSame(*state.last, change.state)) {
      log_.Violate(id, absl::StrCat("change ", revision, " was acknowledged after ", state.last->state.revision));
    }
  }
  if (is_gone) state.changes.erase(order);
}

void StateOracle::Audit(const std::string& id, const StoredState& found) {
  Id& state = ids_[id];
  const uint64_t revision = found.state.revision;
  const uint64_t last = state.last.has_value() ? state.last->state.revision : 0;
  if (revision < last) {
    log_.Violate(id, absl::StrCat("the state has revision ", revision, "; ", last, " was acknowledged"));
  } else if (revision == last) {
    if (state.last.has_value() && !IsSame(*state.last, found)) {
      log_.Violate(id, absl::StrCat("revision ", revision, " is not what was acknowledged"));
    }
  } else {
    bool is_legal = false;
    for (const auto& [order, change] : state.changes) {
      is_legal = is_legal || (IsSame(change.state, found) && state.claims.KnownBefore(order) <= change.token);
    }
    if (!is_legal)
      log_.Violate(id, absl::StrCat("the state has revision ", revision, ", which nobody may have stored"));
    state.last = found;
  }
  state.changes.erase(state.changes.begin(), state.changes.lower_bound(settled_before_));
}

std::set<std::string> StateOracle::ids() const {
  std::set<std::string> ids;
  for (const auto& [id, state] : ids_) ids.insert(id);
  return ids;
}

}  // namespace fraktor::inline v0
