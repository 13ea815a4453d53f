// World: the state that all actors and threads of one round of a storm share: the system under
// test, the actors that they know of, and the accounts.
//
// Thread safety: any thread may call anything, except the constructor, the destructor and what says
// otherwise.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_WORLD_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_WORLD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/dispatch/internal/guest_seat.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/actor/testkit/storm/messages.h"
#include "fraktor/actor/testkit/storm/shutdown_tasks.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::storm {

// The kinds of threads that send.
enum class ThreadKind : uint8_t {
  kWorker,
  kForeign,
  kInStay,  // A foreign thread that has the guest seat.
};
ThreadKind KindOfThisThread();
void SetKindOfThisThread(ThreadKind kind);

// An actor that somebody may send to. It may have ended.
struct Acquaintance {
  ActorRef ref;
  // Messages to it are not owed. It is of another system than that of the round, which may have
  // ended: a foreign thread's message to an ended system is counted and not published. Or it is a
  // router that keeps a copy of each message.
  bool is_free = false;
  // A router or a supervisor that sends in its own turn: messages that pass it lose their place.
  bool is_unordered = false;
  // It may reply that its child is away.
  bool is_supervisor = false;
};

// A number of its own for each thread that asks; it wraps.
uint16_t NumberOfThisThread();

// Adds to a place how the message goes from this thread to an actor.
Place PlaceOf(Place place, ActorRef to, bool sender_is_actor);

struct WorldOptions {
  uint64_t seed = 1;
  // Begins the text of each violation.
  std::string where = {};
  // How many acts actors may send each other, besides those that threads send.
  int64_t acts = 0;
  // Operations that are left out, by their names: to find out which ones a violation needs.
  std::set<std::string, std::less<>> skipped = {};
  // Actors that may live at one time.
  int64_t most_actors = 250;
};

class World;

// The state of one life of an actor: made with its recipe, kept across restarts, touched in the
// actor's turns only.
struct Life {
  explicit Life(World& of);
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // The next place in what this actor sends.
  Place NextPlace(const Acquaintance& to) {
    ++sent;
    if (to.is_unordered) return {};
    return PlaceOf({.sender = id, .number = sent, .turn = static_cast<uint16_t>(events.turns)}, to.ref, true);
  }
  // The actor has no instance until it is restarted, and nobody hears of the ends of its asks.
  void MissReplies() {
    may_have_missed_replies = true;
    asked.clear();
  }
  // Checks that messages of one sender come in their order. `what` names the message, and outlives
  // the life.
  void CheckPlace(const Place& place, const Token& token, std::string_view what);
  // For the text of a violation: what this actor is, and what has happened to it.
  std::string Describe() const;
  // The same: the last messages of a sender, and how many others came between them.
  std::string DescribeArrivals(uint32_t sender) const;

  World& world;
  const Counted counted;
  const uint32_t id;
  // For what the actor decides by itself, as in its hooks.
  Random random;
  // A routee of a pool: all routees share one recipe, so a restart begins a new Life. Nothing of an
  // earlier one is known.
  bool is_anonymous = false;
  // A restart failed, so that the actor had no instance for a while: replies to asks of the
  // instance before may have been unhandled.
  bool may_have_missed_replies = false;
  bool is_fifo = true;
  bool is_limited = false;  // Messages may be lost on their way.
  bool may_block = false;
  bool is_typed = false;
  uint32_t sent = 0;
  // The history of this actor, for the text of a violation.
  struct Events {
    int turns = 0;  // How often a handler or a hook has begun or resumed.
    int instances = 0;
    int stashed = 0;
    int unstashed = 0;  // Calls that unstash.
    int received = 0;   // Messages with a place.
  };
  Events events;
  std::string_view class_name = "untyped";
  std::string mailbox_text;  // The mailbox and the dispatcher.
  // A message with a place that this actor has received.
  struct Arrival {
    Place place;
    uint32_t made_us = 0;
    uint32_t handled_us = 0;
    uint16_t origin = 0;
    uint16_t thread = 0;  // The thread that ran this actor.
    std::string_view what;
    Events before;
  };
  absl::flat_hash_map<uint32_t, Arrival> seen;  // The last message of each sender.
  // The last messages of all senders; the oldest is at `events.received` modulo the size.
  std::array<Arrival, 48> arrivals = {};
  enum class WatchKind : uint8_t {
    kTerminated,
    kNote,
    kForgotten,  // ActorContext::StopChildren ended the watch, unless the child had ended just before.
  };
  absl::flat_hash_map<ActorRef, WatchKind> watched;
  absl::flat_hash_map<ActorRef, Counted> asked;  // By AskOnReply.
  // By the number of the service, the actors of the last listing, for services that the actor has
  // subscribed to.
  absl::flat_hash_map<int, std::optional<std::vector<ActorRef>>> listings;
  absl::flat_hash_set<int> registered;          // The services that the actor offers.
  absl::flat_hash_map<ActorRef, int> machines;  // The last known state of each machine.
  int stashes = 0;                              // The number of next letters to stash.
  std::vector<ActorRef> owed_replies;           // Askers that get their reply with the next message.
};

class World {
 public:
  static constexpr size_t kCells = 96;

  // `clock` outlives the world: see Ledger.
  World(const WorldOptions& options, const RuntimeToolbox& clock);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // The system under test. Once, before any thread uses the world.
  void Attach(ActorSystem& system);
  // Settles what is lost in a system. They end before the system is destroyed.
  using Listeners = std::vector<EventSubscription>;
  [[nodiscard]] Listeners Listen(ActorSystem& system);

  ActorSystem& system() { return *system_; }
  // The actor that watches others for threads. Set once, before any thread uses the world.
  ActorRef guard() const { return guard_; }
  void SetGuard(ActorRef guard) { guard_ = guard; }
  // The guest seat of the default pool. A thread may take it while the system ends.
  const std::shared_ptr<actor_internal::GuestSeat>& guest_seat() const { return guest_seat_; }
  Ledger& ledger() { return ledger_; }

  // Somebody that is known: mostly alive.
  Acquaintance Anybody(Random& random);
  // Remembers an actor in place of another one.
  void Meet(Random& random, const Acquaintance& who);
  // Returns the acquaintance for an actor that somebody has found by its path.
  Acquaintance Recognize(ActorRef actor);

  // Stop tokens that all share: some thread or actor requests the stop sooner or later.
  std::stop_token StopToken(Random& random);
  void RequestStop(Random& random);

  // Actors that the guard watches from their beginning (ActorSystem::SpawnWatched).
  void AddGuarded(ActorRef actor);
  void EndGuarded(ActorRef actor);
  // Checks that the guard was told of each end. Call it when all is quiet.
  void CheckGuarded();

  ShutdownTasks& shutdown_tasks() { return shutdown_tasks_; }

  // Whether one more actor may be spawned.
  bool HasRoom() const { return ledger_.lives.load(std::memory_order_relaxed) < options_.most_actors; }
  // Whether an actor may send one more act.
  bool TakeAct() { return !is_over() && acts_.fetch_sub(1, std::memory_order_relaxed) > 0; }

  // No operation begins any more.
  void SetOver() { is_over_.store(true, std::memory_order_relaxed); }
  bool is_over() const { return is_over_.load(std::memory_order_relaxed); }

  const WorldOptions& options() const { return options_; }

  uint32_t NewSenderId() { return next_sender_.fetch_add(1, std::memory_order_relaxed); }
  Token MakeToken(const Acquaintance& to) {
    return Token(ledger_, to.is_free ? Token::Duty::kFree : Token::Duty::kOwed);
  }
  Token FreeToken() { return Token(ledger_, Token::Duty::kFree); }

  bool Skips(std::string_view operation) const { return options_.skipped.contains(operation); }
  // How often each operation ran, for the report.
  void CountOperation(size_t row, std::string_view name) {
    operations_[row].fetch_add(1, std::memory_order_relaxed);
    SetOperationOfThisThread(static_cast<uint16_t>(row), name);
  }
  int64_t operations(size_t row) const { return operations_[row].load(std::memory_order_relaxed); }

 private:
  const WorldOptions options_;
  Ledger ledger_;
  ShutdownTasks shutdown_tasks_{ledger_};
  ActorSystem* system_ = nullptr;
  ActorRef guard_;
  std::shared_ptr<actor_internal::GuestSeat> guest_seat_;
  // Statistics and limits; they pair with nothing.
  std::atomic<int64_t> acts_;
  std::atomic<bool> is_over_{false};
  std::atomic<uint32_t> next_sender_{1};
  std::array<std::atomic<int64_t>, 256> operations_{};

  Mutex mutex_;
  std::array<Acquaintance, kCells> cells_ ABSL_GUARDED_BY(mutex_);
  // Routers and supervisors.
  absl::flat_hash_map<ActorRef, Acquaintance> special_ ABSL_GUARDED_BY(mutex_);
  std::array<std::stop_source, 8> stop_sources_ ABSL_GUARDED_BY(mutex_);
  struct Guarded {
    bool is_known = false;
    bool has_ended = false;
  };
  absl::flat_hash_map<ActorRef, Guarded> guarded_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_WORLD_H_
