// Actors that spawn, ask and stop all the time, while other threads walk the tree and ask for the
// paths of actors that may have ended: on real workers, for ThreadSanitizer to look at. A slot goes
// from one actor to the next while a reader still has a reference to the first.
//
// SCH-5
#include <array>
#include <atomic>
#include <cstddef>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor {

using actor_internal::KinLock;

namespace {

constexpr size_t kParents = 8;
constexpr size_t kReaders = 3;
constexpr size_t kChildrenPerRound = 3;
constexpr int kRounds = 4000;

struct Go {};
struct Ping {};
struct Pong {};

// The references of the readers: the latest children, most of which have ended, and the latest
// promises.
class Known {
 public:
  struct Entry {
    ActorRef actor;
    size_t parent = 0;
  };

  void Add(Entry entry) {
    MutexLock lock(mutex_);
    entries_[next_++ % entries_.size()] = entry;
  }
  Entry At(size_t i) {
    MutexLock lock(mutex_);
    return entries_[i % entries_.size()];
  }
  static constexpr size_t kSize = 32;

  // Each parent counts it down after its last round.
  std::latch done{kParents};
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> answers{0};

 private:
  Mutex mutex_;
  std::array<Entry, kSize> entries_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

class Child final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Reply(Pong{});
    return absl::OkStatus();
  }
};

class Parent final : public ActorInstance {
 public:
  Parent(Known* known, size_t number) : known_(*known), number_(number) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    waiting_ = kChildrenPerRound;
    for (size_t i = 0; i < kChildrenPerRound; ++i) {
      absl::StatusOr<ActorRef> child = context.TrySpawn(PropsOf<Child>());
      if (!child.ok()) return child.status();
      known_.Add({*child, number_});
      absl::StatusOr<ActorRef> ask = context.AskOnReply(*child, Ping{}, absl::InfiniteDuration());
      if (!ask.ok()) return ask.status();
      known_.Add({*ask, number_});
    }
    return absl::OkStatus();
  }

  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) override {
    if (!answer.ok()) return answer.status();
    known_.answers.fetch_add(1, std::memory_order_relaxed);
    if (--waiting_ > 0) return absl::OkStatus();
    for (const ActorRef child : context.Children()) context.Stop(child);
    if (++rounds_ == kRounds) {
      known_.done.count_down();
    } else {
      context.Tell(context.self(), Go{});
    }
    return absl::OkStatus();
  }

 private:
  Known& known_;
  const size_t number_;
  size_t waiting_ = 0;
  int rounds_ = 0;
};

// Whether a text can be that of one of the children or promises of the parent.
bool IsPathOf(const std::string& path, const Known::Entry& entry) {
  if (entry.actor.IsNoOne()) return path == "no one";
  if (entry.actor.IsPromise()) {
    return absl::StartsWith(path, "pekko://stress/temp/") || absl::StartsWith(path, "an ask that is over (slot ");
  }
  return absl::StartsWith(path, absl::StrCat("pekko://stress/user/parent", entry.parent, "/$")) ||
         absl::StartsWith(path, "an actor that has ended (slot ");
}

TEST(LateReaderStress, TreeWalksAndPathsOfActorsThatEnd) {
  ActorSystemOptions options;
  options.config.system_name = "stress";
  options.workers = 3;
  Known known;
  std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
  std::vector<ActorRef> parents;
  for (size_t i = 0; i < kParents; ++i) {
    parents.push_back(system->TrySpawn(*MakeProps<Parent>({}, &known, i), ToStd(absl::StrCat("parent", i))).value());
  }

  std::vector<std::thread> readers;
  std::atomic<uint64_t> read{0};
  std::array<std::vector<std::string>, kReaders> wrong;
  for (size_t reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&, reader] {
      do {
        for (const std::string& path : system->NotStopped().not_stopped) {
          if (!absl::StartsWith(path, "pekko://stress/") && !absl::StartsWith(path, "an actor that has ended")) {
            wrong[reader].push_back("walk: " + path);
          }
        }
        for (size_t i = 0; i < Known::kSize; ++i) {
          const Known::Entry entry = known.At(i);
          if (std::string path = system->PathOf(entry.actor); !IsPathOf(path, entry)) {
            wrong[reader].push_back("path: " + path);
          }
        }
        read.fetch_add(1, std::memory_order_relaxed);
      } while (!known.is_over.load(std::memory_order_relaxed));
    });
  }
  // Otherwise the actors could be done before the first reader has a CPU.
  while (read.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
  for (const ActorRef parent : parents) Tell(parent, Go{});
  known.done.wait();
  known.is_over.store(true, std::memory_order_relaxed);
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());

  EXPECT_EQ(known.answers.load(), kParents * kChildrenPerRound * kRounds);
  for (const std::vector<std::string>& texts : wrong) EXPECT_EQ(texts, std::vector<std::string>());
}

// Stops all children but the one that has the name.
class Stopper final : public ActorInstance {
 public:
  Stopper(ActorRef* named, std::atomic<uint32_t>* leaving, std::atomic<int>* rounds)
      : named_(*named), leaving_(*leaving), rounds_(*rounds) {}

  absl::Status PreStart(ActorContext& context) override {
    absl::StatusOr<ActorRef> named = context.TrySpawn(PropsOf<Child>(), "taken");
    if (!named.ok()) return named.status();
    named_ = *named;
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    for (const ActorRef child : context.Children()) {
      if (child != named_) context.Stop(child);
    }
    {
      const KinLock lock(context.slot());
      leaving_.store(context.slot().leaving_children);
    }
    rounds_.fetch_add(1);
    if (message.Is<Go>()) context.Tell(context.self(), Go{});
    return absl::OkStatus();
  }

 private:
  ActorRef& named_;
  std::atomic<uint32_t>& leaving_;
  std::atomic<int>& rounds_;
};

// Other threads spawn children whose name is taken. The parent sees some of them for a moment, and
// stops them. It must not wait for the end of a child that has never begun.
TEST(LateReaderStress, ChildrenWhoseNameIsTakenAreNotAwaited) {
  constexpr int kSpawns = 5000;
  ActorSystemOptions options;
  options.config.system_name = "stress";
  options.workers = 2;
  std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
  ActorRef named;
  std::atomic<uint32_t> leaving{0};
  std::atomic<int> rounds{0};
  const ActorRef parent = system->TrySpawn(*MakeProps<Stopper>({}, &named, &leaving, &rounds), "parent").value();
  Tell(parent, Ping{});
  while (rounds.load() == 0) std::this_thread::yield();
  Tell(parent, Go{});
  std::vector<std::thread> spawners;
  for (int t = 0; t < 2; ++t) {
    spawners.emplace_back([&] {
      for (int i = 0; i < kSpawns; ++i) {
        EXPECT_FALSE(system->tree().SpawnChildOf(parent, PropsOf<Child>(), "taken").ok());
      }
    });
  }
  for (std::thread& spawner : spawners) spawner.join();
  const int before = rounds.load();
  while (rounds.load() < before + 2) std::this_thread::yield();
  EXPECT_EQ(leaving.load(), 0u);
  EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());
}

}  // namespace
}  // namespace fraktor
