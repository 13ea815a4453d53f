// A stress test of slot reuse, also for ThreadSanitizer: many short-lived actors use a few slots
// one after the other, and senders keep stale references.
//
// SCH-5
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <memory>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/worker_executor.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::actor_internal {

using utils_internal::TableSlot;

namespace {

constexpr size_t kCells = 3;
constexpr int kLettersInALife = 4;
constexpr int kSenders = 3;
constexpr uint64_t kLives = 6000;

struct StopNow {};

// A message with the number of its recipient, which no other actor ever has.
struct Letter {
  uint64_t for_whom = 0;
  int forwards = 0;
};

// The data that senders have of an actor. Made once and kept until the end.
struct Address {
  ActorRef ref;
  uint64_t number = 0;
};

class Mortal;

// Keeps kCells actors alive: a new one replaces each that ends.
class Graveyard final : public ActorLifecycle {
 public:
  // Returns the actor of a cell, which may have ended meanwhile.
  const Address* Resident(size_t cell) const { return cells_[cell].load(std::memory_order_acquire); }

  void Populate(const WorkerExecutor& executor) {
    MutexLock lock(mutex_);
    dispatcher_ = executor.number();
    ending_.resize(static_cast<size_t>(executor.options().workers.value()));
    for (size_t cell = 0; cell < kCells; ++cell) SpawnIn(cell);
  }

  // From now on no new actor replaces one that ends.
  void StopAll() {
    MutexLock lock(mutex_);
    respawns_ = false;
    for (size_t cell = 0; cell < kCells; ++cell) {
      TellSystem(Resident(cell)->ref, MakeEnvelope<StopNow>(ActorRef()));
    }
  }
  void AwaitAllEnded() { all_ended_.acquire(); }

  uint64_t DeadLetters() {
    return dead_letters_.load() + mailboxes.core().foreign_dead_letters(DeadLetterReason::kStopped);
  }
  // All actors, also those that have ended.
  std::deque<Address> Addresses() {
    MutexLock lock(mutex_);
    return addresses_;
  }

  absl::Status OnStart(ActorSlot&) override { return absl::OkStatus(); }
  void OnSystemMessage(Turn turn, Envelope&) override { turn.state().gate |= static_cast<uint8_t>(Gate::kStopping); }
  void OnFailure(Turn, const absl::Status& error, FailureCause, Envelope*) override { ADD_FAILURE() << error; }
  bool StopChildrenFirst(ActorSlot&) override { return true; }
  void OnEnding(Turn turn) override;
  void OnEnded(Turn turn) override;
  void OnDeadLetter(NodeCache&, EnvelopePtr envelope, TableSlot*, DeadLetterReason) override {
    if (envelope->Is<Letter>()) dead_letters_.fetch_add(1);
  }

  MailboxRegistry mailboxes{/*threaded=*/true};
  std::atomic<uint64_t> lives{0};
  std::atomic<uint64_t> sent{0};
  std::atomic<uint64_t> handled{0};
  std::atomic<uint64_t> misdelivered{0};

 private:
  void SpawnIn(size_t cell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  uint16_t dispatcher_ ABSL_GUARDED_BY(mutex_) = 0;
  bool respawns_ ABSL_GUARDED_BY(mutex_) = true;
  size_t alive_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Address> addresses_ ABSL_GUARDED_BY(mutex_);
  std::array<std::atomic<const Address*>, kCells> cells_{};
  std::vector<size_t> ending_;  // The cell of the actor that ends, for each worker.
  std::atomic<uint64_t> dead_letters_{0};
  std::binary_semaphore all_ended_{0};
};

class Mortal final : public ActorInstance {
 public:
  Mortal(Graveyard& graveyard, size_t cell, uint64_t number)
      : graveyard_(graveyard), cell_(cell), number_(number), neighbour_(graveyard.Resident((cell + 1) % kCells)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const Letter letter = message.As<Letter>();
    graveyard_.handled.fetch_add(1);
    if (letter.for_whom != number_) graveyard_.misdelivered.fetch_add(1);
    // Sends to the actor that was the neighbour at the start, which may have ended. All messages
    // but the first wait in a chain for the end of this handler: the neighbour is alive when they
    // are sent, and has mostly ended when they are pushed.
    for (int i = 0; neighbour_ != nullptr && i < letter.forwards; ++i) {
      graveyard_.sent.fetch_add(1);
      context.Tell(neighbour_->ref, Letter{neighbour_->number, 0});
    }
    for (int i = 0; i < 20 && letter.forwards > 1 && graveyard_.Resident((cell_ + 1) % kCells) == neighbour_; ++i) {
      std::this_thread::yield();
    }
    if (++letters_ == kLettersInALife) TellSystem(context.self(), MakeEnvelope<StopNow>(ActorRef()));
    return absl::OkStatus();
  }

  size_t cell() const { return cell_; }

 private:
  Graveyard& graveyard_;
  const size_t cell_;
  const uint64_t number_;
  const Address* const neighbour_;
  int letters_ = 0;
};

void Graveyard::SpawnIn(size_t cell) {
  const uint64_t number = addresses_.size();
  auto instance = std::make_unique<Mortal>(*this, cell, number);
  ActorSlot* const slot = mailboxes.Register({.instance = instance.release(), .dispatcher = dispatcher_}).value();
  ++alive_;
  addresses_.push_back({slot->ref(), number});
  lives.fetch_add(1);
  MailboxRegistry::LetGo(*slot);
  cells_[cell].store(&addresses_.back(), std::memory_order_release);
}

void Graveyard::OnEnding(Turn turn) {
  const std::unique_ptr<Mortal> instance(static_cast<Mortal*>(std::exchange(turn.slot.instance, nullptr)));
  ending_[turn.worker.index] = instance->cell();
  MailboxRegistry::Unregister(turn.slot);
}

void Graveyard::OnEnded(Turn turn) {
  MutexLock lock(mutex_);
  mailboxes.Release(turn.slot);
  if (respawns_) SpawnIn(ending_[turn.worker.index]);
  if (--alive_ == 0) all_ended_.release();
}

void RunStress(CoordinatorKind coordinator) {
  Graveyard graveyard;
  std::unique_ptr<RuntimeToolbox> toolbox = StdToolbox::Make({}).value();
  std::unique_ptr<WorkerExecutor> executor =
      WorkerExecutor::Start({.workers = 3, .coordinator = coordinator}, {*toolbox, graveyard, graveyard.mailboxes})
          .value();
  graveyard.Populate(*executor);

  std::vector<std::thread> senders;
  for (int s = 0; s < kSenders; ++s) {
    senders.emplace_back([&graveyard, s] {
      // The last few actors that this sender has sent to. It sends to them as often as to live
      // ones.
      std::array<const Address*, 8> met{};
      met.fill(graveyard.Resident(0));
      for (int i = 0; graveyard.lives.load(std::memory_order_relaxed) < kLives; ++i) {
        const auto at = static_cast<size_t>(i);
        if (i % 2 == 0) met[at / 2 % met.size()] = graveyard.Resident((at + static_cast<size_t>(s)) % kCells);
        const Address& to = *met[i % 2 == 0 ? at / 2 % met.size() : at * 5 % met.size()];
        graveyard.sent.fetch_add(1);
        Tell(to.ref, Letter{to.number, i % 3});
        if (i % 4 == 3) std::this_thread::yield();
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  graveyard.StopAll();
  graveyard.AwaitAllEnded();
  // A late message schedules a free slot once more.
  ASSERT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
  executor->Stop();

  EXPECT_EQ(graveyard.misdelivered.load(), 0u);
  EXPECT_EQ(graveyard.sent.load(), graveyard.handled.load() + graveyard.DeadLetters());
  EXPECT_GT(graveyard.handled.load(), 0u);
  EXPECT_GT(graveyard.DeadLetters(), 0u);
  const std::deque<Address> addresses = graveyard.Addresses();
  std::set<ActorSlot*> slots;
  for (const Address& address : addresses) slots.insert(address.ref.slot());
  EXPECT_LT(slots.size(), addresses.size()) << "no slot was used twice";
  for (ActorSlot* const slot : slots) {
    EXPECT_TRUE(slot->mailbox.inbox.IsIdle());
    EXPECT_FALSE(slot->IsRegistered());
    EXPECT_EQ(slot->generation() % 2, 0u);
  }
  std::cout << graveyard.sent.load() << " letters, " << graveyard.handled.load() << " handled, "
            << graveyard.DeadLetters() << " dead, " << addresses.size() << " actors in " << slots.size() << " slots\n";
}

TEST(SlotReuseStress, LosesAndMisdeliversNothingWithWorkStealing) { RunStress(CoordinatorKind::kWorkStealing); }
TEST(SlotReuseStress, LosesAndMisdeliversNothingWithOneList) { RunStress(CoordinatorKind::kMutex); }

}  // namespace
}  // namespace fraktor::actor_internal
