#include "fraktor/actor/testkit/storm/ledger.h"

#include <array>
#include <atomic>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::storm {
namespace {

constexpr size_t kMostKept = 20;

thread_local uint16_t operation_of_this_thread = 0;

// Indexed by row. Rows never change their names, so the order of the stores does not matter.
std::array<std::atomic<const char*>, 256> operation_names{};

std::string SentBy(uint16_t row) { return absl::StrCat(" (it was sent by: ", NameOfOperation(row), ")"); }

}  // namespace

void Ledger::Violate(std::string_view invariant, std::string_view detail) {
  violation_count_.fetch_add(1, std::memory_order_relaxed);
  const std::string text = absl::StrCat(where_, where_.empty() ? "" : ": ", ToAbsl(invariant), ": ", ToAbsl(detail));
  MutexLock lock(mutex_);
  if (violations_.size() >= kMostKept) return;
  std::fprintf(stderr, "storm: %s\n", text.c_str());
  violations_.push_back(text);
}

std::vector<std::string> Ledger::violations() const {
  MutexLock lock(mutex_);
  return violations_;
}

void SetOperationOfThisThread(uint16_t row, std::string_view name) {
  operation_of_this_thread = row;
  operation_names[row].store(name.data(), std::memory_order_relaxed);
}

std::string NameOfOperation(uint16_t row) {
  const char* const name = operation_names[row].load(std::memory_order_relaxed);
  return absl::StrCat(name == nullptr || *name == '\0' ? "no operation" : name, row >= 128 ? ", of a thread" : "");
}

uint32_t Ledger::MicrosecondsNow() const {
  return static_cast<uint32_t>(absl::ToInt64Microseconds(clock_.Now() - begin_));
}

Token::Token(Ledger* ledger, bool is_owed)
    : ledger_(ledger),
      made_us_(ledger == nullptr ? 0 : ledger->MicrosecondsNow()),
      origin_(operation_of_this_thread),
      is_owed_(is_owed) {
  if (ledger_ == nullptr) return;
  ledger_->tokens.fetch_add(1, std::memory_order_relaxed);
  if (is_owed_) ledger_->owed_.fetch_add(1, std::memory_order_relaxed);
}

Token::~Token() {
  if (ledger_ == nullptr) return;
  ledger_->tokens.fetch_sub(1, std::memory_order_relaxed);
  if (!is_owed_ || is_settled_) return;
  ledger_->owed_.fetch_sub(1, std::memory_order_relaxed);
  ledger_->vanished.fetch_add(1, std::memory_order_relaxed);
  if (!ledger_->is_lenient()) {
    ledger_->Violate("every message is handled or a dead letter",
                     absl::StrCat("a message was destroyed, and it was neither", SentBy(origin_)));
  }
}

void Token::Settle(bool handled) const {
  if (ledger_ == nullptr) return;
  if (is_settled_) {
    ledger_->Violate("every message is handled or a dead letter, once",
                     absl::StrCat(handled ? "a message was handled after it had been settled"
                                          : "a message was a dead letter after it had been settled",
                                  SentBy(origin_)));
    return;
  }
  is_settled_ = true;
  if (!is_owed_) return;
  (handled ? ledger_->handled : ledger_->dead).fetch_add(1, std::memory_order_relaxed);
  ledger_->owed_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace fraktor::storm
