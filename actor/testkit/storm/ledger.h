// The accounts of a storm: what was made, what was delivered, and every invariant that broke.
//
//   Ledger ledger(toolbox);
//   Tell(actor, Letter{Token(ledger, Token::Duty::kOwed), {}});
//
//   letter.token.Handle();  // By the recipient; the listener of dead letters calls Die().
//
//   EXPECT_EQ(ledger.in_flight(), 0);
//
// A message of the storm holds a Token. An owed token is settled exactly once: its recipient
// handles it, or it is published as a dead letter or as an unhandled message. A token that is
// settled twice, or that is destroyed without being settled, is a violation at that very moment.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_LEDGER_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_LEDGER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::storm {

class Ledger {
 public:
  // All counters are statistics that pair with nothing, unless they say otherwise. A check reads
  // them after all threads that write them have been joined, or repeats until it sees the value it
  // waits for.
  using Count = std::atomic<int64_t>;

  // The ledger reads the time of `clock`, which outlives it. `where` begins the text of each
  // violation: the seed and the round.
  explicit Ledger(const RuntimeToolbox& clock, std::string where = {})
      : clock_(clock), begin_(clock.Now()), where_(std::move(where)) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Records that an invariant broke, and prints it at once: a crash may follow.
  void Violate(std::string_view invariant, std::string_view detail);
  // The first violations, up to 20.
  std::vector<std::string> violations() const;
  bool ok() const { return violation_count_.load(std::memory_order_relaxed) == 0; }

  // Set before a system ends while threads send to it: a message that a thread pushes when the
  // workers have stopped is counted (DispatcherTable::LateDeadLetters), and not published.
  // `vanished` counts those that nobody settled.
  void SetLenient() { is_lenient_.store(true, std::memory_order_relaxed); }
  bool is_lenient() const { return is_lenient_.load(std::memory_order_relaxed); }

  int64_t in_flight() const { return owed_.load(std::memory_order_relaxed); }

  // The time since the ledger was made. Wraps after more than an hour.
  uint32_t MicrosecondsNow() const;

  Count tokens{0};     // Messages, answers and timers that exist.
  Count handled{0};    // Owed messages by how they were settled.
  Count dead{0};       //
  Count vanished{0};   //
  Count instances{0};  // Actor objects.
  Count lives{0};      // Recipes of actors, each with the state of one life.
  Count frames{0};     // Coroutines.
  Count open_asks{0};  // Asks whose result nobody has seen yet.
  Count asks{0};       // All asks.
  Count watches{0};    // All watches, and those that ended in a message.
  Count terminations{0};

 private:
  friend class Token;

  const RuntimeToolbox& clock_;
  const Instant begin_;
  const std::string where_;
  Count owed_{0};
  Count violation_count_{0};
  std::atomic<bool> is_lenient_{false};
  mutable Mutex mutex_;
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mutex_);
};

// The operation that this thread performs: a row of World::CountOperation. A token remembers which
// one made it.
void SetOperationOfThisThread(uint16_t row, std::string_view name);

// For the texts of violations: "tell letters, of a thread".
std::string NameOfOperation(uint16_t row);

class Token {
 public:
  enum class Duty : uint8_t {
    kOwed,  // Somebody must settle it.
    kFree,  // It is settled at most once, and may end unsettled, as the message of a cancelled timer does.
  };

  Token(Ledger& ledger, Duty duty) : Token(&ledger, duty == Duty::kOwed) {}
  // A copy is a message of its own.
  Token(const Token& other) : Token(other.ledger_, other.is_owed_) {
    made_us_ = other.made_us_;
    origin_ = other.origin_;
  }
  Token(Token&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)),
        made_us_(other.made_us_),
        origin_(other.origin_),
        is_owed_(other.is_owed_),
        is_settled_(other.is_settled_) {}
  Token& operator=(const Token&) = delete;
  Token& operator=(Token&&) = delete;
  ~Token();

  // A handler has received the message.
  void Handle() const { Settle(/*handled=*/true); }
  // The message was published as a dead letter.
  void Die() const { Settle(/*handled=*/false); }

  // Which operation made the token (NameOfOperation), and when (Ledger::MicrosecondsNow).
  uint16_t origin() const { return origin_; }
  uint32_t made_us() const { return made_us_; }

 private:
  Token(Ledger* ledger, bool is_owed);
  void Settle(bool handled) const;

  Ledger* ledger_;
  uint32_t made_us_;
  uint16_t origin_;
  bool is_owed_;
  // The listener of dead letters sees messages as constants.
  mutable bool is_settled_ = false;
};

// Counts an object for as long as it lives.
class Counted {
 public:
  explicit Counted(Ledger::Count& count) : count_(&count) { count.fetch_add(1, std::memory_order_relaxed); }
  Counted(Counted&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  Ledger::Count* count_;
};

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_LEDGER_H_
