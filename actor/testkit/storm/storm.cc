#include "fraktor/actor/testkit/storm/storm.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/actor/testkit/storm/citizens.h"
#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/actor/testkit/storm/messages.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/actor/testkit/storm/stranger.h"
#include "fraktor/actor/testkit/storm/world.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::storm {

using actor_internal::DispatcherTable;
using actor_internal::FindLiving;
using actor_internal::MayLive;
using actor_internal::NodeCache;
using actor_internal::NodeClass;
using actor_internal::NodePool;
using actor_internal::ProcessPromises;

namespace {

constexpr absl::Duration kLongEnough = absl::Seconds(60);

// The memory that outlives systems, which a round must not leave behind.
struct Footprint {
  size_t slots_in_use = 0;
  size_t nodes_in_use = 0;
  size_t slot_chunks = 0;
  size_t heap_bytes = 0;

  // The slots of a table that somebody uses.
  template <class Table>
  static size_t InUse(const Table& table) {
    size_t in_use = 0;
    for (size_t chunk = 0; chunk < table.chunks(); ++chunk) {
      for (size_t i = 0; i < Table::kSlotsPerChunk; ++i) {
        const auto number = static_cast<uint32_t>(chunk << std::bit_width(Table::kSlotsPerChunk - 1) | i);
        const auto* const slot = table.At(number);
        if (slot != nullptr && slot->generation() % 2 != 0) ++in_use;
      }
    }
    return in_use;
  }

  // While no system exists, and no thread but this one has nodes.
  static Footprint Now() {
    Footprint now;
    NodeCache::OfThisThread().Flush();
    now.slots_in_use = InUse(ProcessSlots()) + InUse(ProcessPromises());
    now.slot_chunks = ProcessSlots().chunks() + ProcessPromises().chunks();
    for (const NodeClass node_class : {NodeClass::k64, NodeClass::k128, NodeClass::k192}) {
      now.nodes_in_use += NodePool::Stats(node_class).issued_nodes;
    }
    const struct mallinfo2 heap = mallinfo2();
    now.heap_bytes = heap.uordblks + heap.hblkhd;
    return now;
  }
};

// A size of the process after each round, and whether it stops growing.
class Trend {
 public:
  Trend(std::string_view what, int64_t slack, double per_round) : what_(what), slack_(slack), per_round_(per_round) {}

  // The text of a violation, or an empty one.
  std::string Add(size_t size) {
    sizes_.push_back(static_cast<int64_t>(size));
    const auto rounds = static_cast<int>(sizes_.size());
    // The earlier window is half the way back, so that a long run has a small tolerance per round.
    const int earlier = std::max(kWarmUpRounds, rounds / 2 - kTrendWindow);
    const int latest = rounds - kTrendWindow;
    if (latest < earlier + kTrendWindow) return "";
    const int64_t growth = LeastFrom(latest) - LeastFrom(earlier);
    const int64_t allowed = slack_ + static_cast<int64_t>(per_round_ * (latest - earlier));
    if (growth <= allowed) return "";
    return absl::StrCat(ToAbsl(what_), " grew by ", growth, " from the rounds ", earlier, " to ",
                        earlier + kTrendWindow - 1, " to the rounds ", latest, " to ", rounds - 1, ", and by at most ",
                        allowed, " is allowed");
  }

 private:
  int64_t LeastFrom(int round) const {
    return *std::min_element(sizes_.begin() + round, sizes_.begin() + round + kTrendWindow);
  }

  const std::string_view what_;
  const int64_t slack_;
  const double per_round_;
  std::vector<int64_t> sizes_;
};

// How a round ends.
enum class Ending : uint8_t {
  kShutdown,   // All is quiet, then Shutdown.
  kTerminate,  // All is quiet, then Terminate, and the future of the end.
  kRun,        // All is quiet, then the coordinated shutdown.
  kDestroy,    // All is quiet, then the destructor.
  kAbruptly,   // Shutdown while everybody is busy.
};
constexpr int kEndings = kTrendWindow;

class Round {
 public:
  Round(const StormOptions& options, int number, const RuntimeToolbox& clock)
      : options_(options),
        clock_(clock),
        seed_(MixBits(options.seed + static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15)),
        ending_(static_cast<Ending>(number % kEndings)),
        world_({.seed = seed_,
                .where = absl::StrCat("seed ", options.seed, ", round ", number, " with ", Workers(), " workers"),
                .acts = int64_t{options.strangers} * options.operations,
                .skipped = options.skipped},
               clock) {}

  void Run() {
    if (ending_ == Ending::kAbruptly) ledger().SetLenient();
    const uint64_t late_before = DispatcherTable::LateDeadLetters();
    system_ = ActorSystem::Create(StormySystem(nullptr, Workers())).value();
    world_.Attach(*system_);
    world_.SetGuard(system_->TrySpawn(*MakeGuard(world_)).value());
    World::Listeners listeners = world_.Listen(*system_);
    Random random(seed_);
    for (int i = 0; i < 20; ++i) SpawnCitizen(world_, random, *system_).IgnoreError();

    std::vector<std::thread> threads;
    for (int i = 0; i < options_.strangers; ++i) {
      threads.emplace_back([this, seed = random.Next()] {
        Stranger stranger(world_, seed);
        for (int n = 0; n < options_.operations; ++n) stranger.DoSomething();
        stranger.Finish();
      });
    }
    if (ending_ == Ending::kAbruptly) ShutDown();
    for (std::thread& thread : threads) thread.join();
    world_.SetOver();
    if (ending_ != Ending::kAbruptly) {
      const bool is_calm = AwaitCalm();
      // Also if it is not calm: an actor that waits in vain says so.
      AuditAll();
      world_.CheckGuarded();
      if (!is_calm) return Abandon();
    }
    End();
    if (ending_ != Ending::kDestroy) CheckEnded();
    listeners.clear();
    system_.reset();
    world_.shutdown_tasks().CheckEnded();
    CheckNothingIsLeft();
    const auto late = static_cast<int64_t>(DispatcherTable::LateDeadLetters() - late_before);
    if (ledger().vanished.load() > late) {
      ledger().Violate("every message is handled or a dead letter",
                       absl::StrCat(ledger().vanished.load(), " messages were neither, and ", late, " were counted"));
    }
  }

  Ledger& ledger() { return world_.ledger(); }
  World& world() { return world_; }
  int Workers() const { return options_.workers > 0 ? options_.workers : static_cast<int>(1 + seed_ % 4); }
  int64_t Operations() const {
    int64_t sum = 0;
    for (size_t row = 0; row < 256; ++row) sum += world_.operations(row);
    return sum;
  }

 private:
  // Waits until every message has been settled and every ask has ended.
  bool AwaitCalm() {
    const Instant end = clock_.Now() + kLongEnough;
    while (true) {
      for (const ActorRef actor : Living()) Tell(actor, Calm{});
      const bool is_quiet = system_->scheduler().dispatchers().AwaitQuiet(absl::Seconds(1));
      if (is_quiet && ledger().in_flight() == 0 && ledger().open_asks.load() == 0) return true;
      if (clock_.Now() > end) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ledger().Violate("every message and every ask comes to its end",
                     absl::StrCat(ledger().in_flight(), " messages, ", ledger().open_asks.load(), " asks and ",
                                  ledger().frames.load(), " coroutines are pending although nothing happens any more"));
    return false;
  }

  // Everybody that lives replies, and waits for nothing that has happened already.
  void AuditAll() {
    std::vector<std::pair<ActorRef, Future<Audited>>> audits;
    for (const ActorRef actor : Living()) {
      audits.emplace_back(actor, system_->Ask<Audited>(actor, Audit{}, kLongEnough));
    }
    for (auto& [actor, audit] : audits) {
      const absl::StatusOr<Audited> audited = audit.Wait();
      // An actor of the runtime that runs somebody's task says that it does not know the message.
      // A supervisor says that its child is away.
      const bool has_replied = audited.ok() || absl::IsUnimplemented(audited.status()) ||
                               (absl::IsUnavailable(audited.status()) && world_.Recognize(actor).is_supervisor);
      if (!has_replied && MayLive(actor)) {
        ledger().Violate("every living actor replies",
                         absl::StrCat(system_->PathOf(actor), ": ", audited.status().ToString()));
      }
    }
  }

  // The actors of the storm that live. Routers are left out: a message to one is for its routees.
  std::vector<ActorRef> Living() {
    std::vector<ActorRef> living;
    for (const ActorRef guardian : {system_->user_guardian(), system_->system_guardian()}) {
      for (const ActorRef actor : FindLiving(guardian, 100'000)) {
        if (actor != guardian && (actor.word() & ActorRef::kRouter) == 0) living.push_back(actor);
      }
    }
    return living;
  }

  void ShutDown() {
    const ShutdownReport report = system_->Shutdown(kLongEnough);
    if (!report.ok()) {
      ledger().Violate("systems terminate", absl::StrCat(report.not_stopped.size(), " actors did not stop, as ",
                                                         report.not_stopped.front()));
    }
  }

  void End() {
    switch (ending_) {
      case Ending::kShutdown:
        return ShutDown();
      case Ending::kTerminate: {
        Future<void> ended = system_->WhenTerminated();
        system_->Terminate();
        const auto result = ended.WaitFor(kLongEnough);
        if (!result.has_value()) {
          ledger().Violate("systems terminate", "the system did not terminate");
        } else if (!result->ok()) {
          ledger().Violate("systems terminate in order", result->ToString());
        }
        return;
      }
      case Ending::kRun: {
        const auto result = system_->coordinated_shutdown().Run(ShutdownReason::Unknown()).WaitFor(kLongEnough);
        if (!result.has_value() || !result->ok()) {
          ledger().Violate("systems terminate in order", "the coordinated shutdown did not end, or failed");
        }
        return ShutDown();
      }
      case Ending::kDestroy:
      case Ending::kAbruptly:
        return;
    }
  }

  // Nothing lives or begins in a system that has ended.
  void CheckEnded() {
    const Future<void> ended = system_->WhenTerminated();
    if (!ended.IsReady()) ledger().Violate("systems terminate", "Shutdown returned before WhenTerminated was ready");
    for (const std::string& path : system_->NotStopped().not_stopped) {
      ledger().Violate("systems terminate", absl::StrCat(path, " has not stopped, and the system has ended"));
    }
    for (const ActorRef actor : FindLiving(system_->root_guardian(), 10)) {
      ledger().Violate("systems terminate", absl::StrCat(system_->PathOf(actor), " lives after the end"));
    }
    Future<Audited> asking = system_->Ask<Audited>(system_->user_guardian(), Audit{}, kLongEnough);
    const auto answer = asking.WaitFor(kLongEnough);
    if (!answer.has_value() || answer->ok()) {
      ledger().Violate("every ask ends once", "an ask of a system that has ended did not fail");
    }
    Random random(seed_);
    if (SpawnCitizen(world_, random, *system_).ok()) {
      ledger().Violate("systems terminate", "an actor was spawned after the end");
    }
  }

  // The system hangs: it stays as it is, for a debugger.
  void Abandon() { static_cast<void>(system_.release()); }

  void CheckNothingIsLeft() {
    const auto check = [this](std::string_view what, const Ledger::Count& count) {
      if (count.load() != 0) ledger().Violate("nothing is left", absl::StrCat(count.load(), " ", ToAbsl(what)));
    };
    check("messages", ledger().tokens);
    check("actor objects", ledger().instances);
    check("recipes", ledger().lives);
    check("coroutines", ledger().frames);
    check("asks", ledger().open_asks);
  }

  const StormOptions& options_;
  const RuntimeToolbox& clock_;
  const uint64_t seed_;
  const Ending ending_;
  World world_;
  std::unique_ptr<ActorSystem> system_;
};

}  // namespace

StormReport RunStorm(const StormOptions& options) {
  StormReport report;
  // It is never destroyed, because the actors of an abandoned round still read it.
  static const RuntimeToolbox& clock = *StdToolbox::Make({}).value().release();
  const Instant begin = clock.Now();
  Footprint before = Footprint::Now();
  Trend heap("the heap in bytes", kHeapSlack, kHeapPerRound);
  Trend chunks("the number of chunks of slots", kChunkSlack, 1.0 / kRoundsPerChunk);
  for (int number = 0;; ++number) {
    const absl::Duration elapsed = clock.Now() - begin;
    if (options.time > absl::ZeroDuration() ? elapsed >= options.time : number >= options.rounds) {
      break;
    }
    // Kept if it is abandoned: actors still refer to it.
    auto* const round = new Round(options, number, clock);
    round->Run();
    ++report.rounds;
    report.operations += round->Operations();
    report.messages += round->ledger().handled.load() + round->ledger().dead.load();
    const Footprint now = round->ledger().ok() ? Footprint::Now() : Footprint();
    if (round->ledger().ok()) {
      if (now.slots_in_use > before.slots_in_use) {
        round->ledger().Violate("nothing is left", absl::StrCat(now.slots_in_use, " slots are in use after ",
                                                                before.slots_in_use, " in the round before"));
      }
      if (now.nodes_in_use > before.nodes_in_use) {
        round->ledger().Violate("nothing is left", absl::StrCat(now.nodes_in_use, " nodes are in use after ",
                                                                before.nodes_in_use, " in the round before"));
      }
      for (const std::string& grown : {heap.Add(now.heap_bytes), chunks.Add(now.slot_chunks)}) {
        if (!grown.empty()) round->ledger().Violate("the process stops growing", grown);
      }
      before = now;
    }
    if (options.is_verbose) {
      std::fprintf(stderr,
                   "storm: round %d with %d workers: %lld operations, %lld messages, %lld watches of which %lld ended; "
                   "%zu slots and %zu nodes in use, %zu chunks of slots, %zu KiB of heap\n",
                   number, round->Workers(), static_cast<long long>(round->Operations()),
                   static_cast<long long>(round->ledger().handled.load() + round->ledger().dead.load()),
                   static_cast<long long>(round->ledger().watches.load()),
                   static_cast<long long>(round->ledger().terminations.load()), now.slots_in_use, now.nodes_in_use,
                   now.slot_chunks, now.heap_bytes / 1024);
    }
    for (const std::string& violation : round->ledger().violations()) {
      report.violations.push_back(violation);
    }
    if (!report.violations.empty()) break;
    delete round;
  }
  return report;
}

}  // namespace fraktor::storm
