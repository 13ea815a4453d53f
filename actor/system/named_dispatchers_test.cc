// Named pools: ActorSystemOptions::dispatchers.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <semaphore>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/observe/prometheus_text.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// The properties of the thread that runs a handler.
struct Thread {
  std::string name;
  std::vector<int> cpus;
  int nice = 0;

  static Thread This() {
    Thread thread;
    char text[16] = {};
    pthread_getname_np(pthread_self(), text, sizeof(text));
    thread.name = text;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &mine)) thread.cpus.push_back(cpu);
    }
    thread.nice = getpriority(PRIO_PROCESS, 0);
    return thread;
  }
};
struct WhereAreYou {
  using Reply = Thread;
};
// The same for the thread of a new child.
struct WhereIsYourChild {
  using Reply = Thread;
};
// The handler signals that it runs, and blocks.
struct Block {
  std::counting_semaphore<>* is_blocked;
  std::counting_semaphore<>* go_on;
};

class Scout : public Actor<Scout, WhereAreYou, WhereIsYourChild, Block> {
 public:
  Thread On(Context&, const WhereAreYou&) { return Thread::This(); }
  Forwarded<Thread> On(Context& context, const WhereIsYourChild&) {
    return context.Forward(context.Spawn<Scout>(), WhereAreYou{});
  }
  void On(Context&, const Block& block) {
    block.is_blocked->release();
    block.go_on->acquire();
  }
};

std::unique_ptr<ActorSystem> MakeSystem(std::vector<DispatcherOptions> dispatchers) {
  ActorSystemOptions options{.config = {.system_name = "pools"}, .workers = 2};
  options.dispatchers = std::move(dispatchers);
  options.log_level = LogLevel::kOff;
  return ActorSystem::Create(options).value();
}

bool Has(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST(NamedDispatchers, RunTheirActorsOnTheirOwnThreadsOnly) {
  const auto system = MakeSystem({{.name = "db", .workers = 2}, {.name = "io"}});
  std::vector<RefOf<Scout>> of_db;
  for (int i = 0; i < 8; ++i) of_db.push_back(system->Spawn<Scout>("", {.dispatcher = "db"}));
  auto of_io = system->Spawn<Scout>("io", {.dispatcher = std::string("io")});
  auto of_default = system->Spawn<Scout>("default");
  auto pinned = system->Spawn<Scout>("pinned", {.dispatcher = DispatcherChoice::kPinned});
  std::set<std::string> threads;
  for (int round = 0; round < 50; ++round) {
    std::vector<Future<Thread>> asking;
    for (const auto& worker : of_db) asking.push_back(system->Ask(worker, WhereAreYou{}, kPatience));
    for (Future<Thread>& asked : asking) threads.insert(asked.Wait()->name);
    EXPECT_EQ(system->AskAndWait(of_io, WhereAreYou{}, kPatience)->name, "io-0");
    EXPECT_EQ(system->AskAndWait(of_default, WhereAreYou{}, kPatience)->name.rfind("default-", 0), 0u);
    EXPECT_EQ(system->AskAndWait(pinned, WhereAreYou{}, kPatience)->name, "pinned-0-0");
  }
  for (const std::string& thread : threads) EXPECT_TRUE(thread == "db-0" || thread == "db-1") << thread;
}

TEST(NamedDispatchers, AreNotInherited) {
  const auto system = MakeSystem({{.name = "db"}});
  auto parent = system->Spawn<Scout>("parent", {.dispatcher = "db"});
  const std::string thread = system->AskAndWait(parent, WhereIsYourChild{}, kPatience)->name;
  EXPECT_EQ(thread.rfind("default-", 0), 0u) << thread;
}

TEST(NamedDispatchers, HoldNobodyUpWhileTheyAreBlocked) {
  std::counting_semaphore<> is_blocked{0};
  std::counting_semaphore<> go_on{0};
  const auto system = MakeSystem({{.name = "db", .workers = 2}, {.name = "blocking", .may_block = true}});
  std::vector<RefOf<Scout>> stuck;
  for (const char* const pool : {"db", "db", "blocking"}) {
    stuck.push_back(system->Spawn<Scout>("", {.dispatcher = pool}));
    stuck.back().Tell(Block{&is_blocked, &go_on});
  }
  for (size_t i = 0; i < stuck.size(); ++i) is_blocked.acquire();
  auto free = system->Spawn<Scout>("free");
  std::binary_semaphore fired{0};
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(system->AskAndWait(free, WhereAreYou{}, kPatience).ok());
    ASSERT_TRUE(system->toolbox().ScheduleAfter(absl::Microseconds(10), [&] { fired.release(); }).ok());
    fired.acquire();
  }
  Future<Thread> waits = system->Ask(stuck[0], WhereAreYou{}, kPatience);
  EXPECT_FALSE(waits.IsReady());
  go_on.release(static_cast<std::ptrdiff_t>(stuck.size()));
  EXPECT_TRUE(waits.Wait().ok());
}

// Messages between pools.
struct Number {
  int value;
};
struct Count {
  using Reply = Number;
  RefOf<Scout> other;
};
constexpr int kCapacity = 4;
struct Flood {
  ActorRef sink;
  int count;
};
struct Total {
  using Reply = Number;
};

// Counts the numbers that come in order. Signals when it has `expected`.
class Sink : public Actor<Sink, Number, Total> {
 public:
  Sink(int expected, std::binary_semaphore* has_all) : expected_(expected), has_all_(has_all) {}
  void On(Context&, const Number& number) {
    if (number.value == in_order_) ++in_order_;
    if (in_order_ == expected_ && has_all_ != nullptr) has_all_->release();
  }
  Number On(Context&, const Total&) { return {in_order_}; }

 private:
  const int expected_;
  std::binary_semaphore* const has_all_;
  int in_order_ = 0;
};

class Talker : public Actor<Talker, Count, Flood> {
 public:
  // Asks another, watches it, stops it, and replies when it has ended.
  Task<Deferred<Number>> On(Context& context, Count count) {
    ended_.emplace_back(count.other.untyped(), ReplyTo<Number>(context));
    auto asking = context.Ask(count.other, WhereAreYou{}, kPatience);
    const absl::StatusOr<Thread> thread = co_await asking;
    EXPECT_TRUE(thread.ok()) << thread.status();
    EXPECT_TRUE(context.Watch(count.other.untyped()).ok());
    context.Stop(count.other.untyped());
    co_return ended_.back().second;
  }
  void On(Context&, const Terminated& terminated) {
    for (const auto& [actor, reply_to] : ended_) {
      if (actor == terminated.actor) reply_to.Reply(Number{1});
    }
  }
  void On(Context& context, const Flood& flood) {
    // As many senders as the full mailbox may hold.
    for (int i = 0; i < kCapacity && sent_ < flood.count; ++i) context.Tell(flood.sink, Number{sent_++});
    if (sent_ < flood.count) context.Tell(context.self(), Flood(flood));
  }

 private:
  std::vector<std::pair<ActorRef, ReplyTo<Number>>> ended_;
  int sent_ = 0;
};

TEST(NamedDispatchers, LetActorsAskWatchAndHoldBackEachOther) {
  constexpr int kMessages = 2000;
  const auto system = MakeSystem({{.name = "a", .workers = 2}, {.name = "b", .workers = 2}});
  for (const auto& [mine, others] : std::vector<std::pair<DispatcherSelector, DispatcherSelector>>{
           {"a", "b"}, {"b", "a"}, {"a", {}}, {{}, "a"}, {"b", DispatcherChoice::kPinned}, {"a", "a"}}) {
    auto talker = system->Spawn<Talker>("", {.dispatcher = mine});
    for (int i = 0; i < 20; ++i) {
      auto other = system->Spawn<Scout>("", {.dispatcher = others});
      EXPECT_EQ(system->AskAndWait(talker, Count{other}, kPatience)->value, 1);
    }
    std::binary_semaphore has_all{0};
    auto sink = system->Spawn<Sink>(
        "", {.dispatcher = others, .mailbox = {.capacity = kCapacity, .overflow = OverflowStrategy::kBlockProducer}},
        kMessages, &has_all);
    talker.Tell(Flood{sink.untyped(), kMessages});
    has_all.acquire();
  }
}

class KeptLines final : public LogSink {
 public:
  void Write(const LogRecord& record) override {
    const MutexLock lock(mutex_);
    // On a busy machine a worker of another pool may be slow too.
    if (record.text.find("has held worker db-") == std::string_view::npos) return;
    lines_.emplace_back(record.text);
    stalled_.release();
  }
  std::string AwaitStall() {
    stalled_.acquire();
    const MutexLock lock(mutex_);
    return lines_.front();
  }

 private:
  std::counting_semaphore<> stalled_{0};
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST(NamedDispatchers, AreNamedInMetricsAndInReportsOfStalls) {
  KeptLines log;
  std::counting_semaphore<> is_blocked{0};
  std::counting_semaphore<> go_on{0};
  ActorSystemOptions options{.config = {.system_name = "pools"}, .workers = 1, .log_sink = &log};
  options.dispatchers = {{.name = "db", .watch = {.stall_after = absl::Milliseconds(1)}}};
  const auto system = ActorSystem::Create(options).value();
  auto stuck = system->Spawn<Scout>("stuck", {.dispatcher = "db"});
  stuck.Tell(Block{&is_blocked, &go_on});
  EXPECT_EQ(log.AwaitStall().rfind("has held worker db-0 for ", 0), 0u);
  is_blocked.acquire();  // The stall may be that of an earlier turn, on a busy machine.
  // An actor is scheduled and cannot run.
  auto waits = system->Ask(system->Spawn<Scout>("", {.dispatcher = "db"}), WhereAreYou{}, kPatience);
  const std::string text = ToPrometheusText(system->hub().Snapshot(system->toolbox().Now()));
  EXPECT_NE(text.find("scheduler_ready_queue_depth{dispatcher=\"db\"} 1"), std::string::npos) << text;
  EXPECT_NE(text.find("worker=\"db-0\""), std::string::npos) << text;
  EXPECT_EQ(text.find("db-guest"), std::string::npos) << "only the default pool takes guests";
  go_on.release();
  EXPECT_TRUE(waits.Wait().ok());
}

TEST(NamedDispatchers, HaveTheirCpusAndTheirPriority) {
  const Thread mine = Thread::This();
  const int nice = std::min(mine.nice + 2, 19);
  const auto system =
      MakeSystem({{.name = "last", .workers = 2, .cpus = {mine.cpus.back()}, .nice = nice}, {.name = "any"}});
  auto last = system->Spawn<Scout>("last", {.dispatcher = "last"});
  const Thread thread = system->AskAndWait(last, WhereAreYou{}, kPatience).value();
  EXPECT_EQ(thread.cpus, std::vector<int>({mine.cpus.back()}));
  EXPECT_EQ(thread.nice, nice);
  auto any = system->Spawn<Scout>("any", {.dispatcher = "any"});
  EXPECT_EQ(system->AskAndWait(any, WhereAreYou{}, kPatience)->cpus, mine.cpus);
  EXPECT_EQ(system->AskAndWait(last, WhereIsYourChild{}, kPatience)->cpus, mine.cpus);
}

TEST(NamedDispatchers, AreNotOnCpusWhereThereAreNoThreads) {
  const auto toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options{.config = {.system_name = "pools"}, .toolbox = toolbox.get()};
  options.dispatchers = {{.name = "far", .cpus = {1023}, .nice = -20}};
  const auto system = ActorSystem::Create(options).value();
  auto far = system->Spawn<Scout>("far", {.dispatcher = "far"});
  EXPECT_EQ(system->AskAndWait(far, WhereAreYou{}, kPatience)->cpus, Thread::This().cpus);
}

absl::Status CreateWith(std::vector<DispatcherOptions> dispatchers) {
  ActorSystemOptions options{.config = {.system_name = "pools"}, .workers = 1};
  options.dispatchers = std::move(dispatchers);
  return ActorSystem::Create(options).status();
}

TEST(NamedDispatchers, AreRefusedWithATextThatSaysWhatToDo) {
  EXPECT_EQ(CreateWith({{.name = "db"}, {.name = "io"}, {.name = "db"}}),
            absl::InvalidArgumentError("two dispatchers have the name \"db\"; each needs a name of its own"));
  for (const char* const name : {"default", "system", "pinned", "pinned-7"}) {
    EXPECT_EQ(CreateWith({{.name = name}}),
              absl::InvalidArgumentError("a dispatcher has the name \"" + std::string(name) +
                                         "\", which belongs to a pool of the system; choose another"));
  }
  EXPECT_EQ(CreateWith({{.name = "db", .workers = 0}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Has(CreateWith({{.name = "db", .workers = 0}}),
                  "dispatcher \"db\": WorkerExecutorOptions.workers is 0; it must be from 1 to "));
  EXPECT_TRUE(Has(CreateWith({{.name = "db", .budget = 0}}),
                  "dispatcher \"db\": WorkerExecutorOptions.budget is 0; it must be from 1 to "));
  EXPECT_TRUE(Has(CreateWith({{.name = "db", .cpus = {-1}}}), "worker \"db\": cpus has -1; use 0 to 1023"));
  EXPECT_TRUE(Has(CreateWith({{.name = "db", .nice = 20}}), "worker \"db\": nice is 20; use -20 to 19"));
  EXPECT_TRUE(Has(CreateWith({{.name = "io"}, {.name = "db", .cpus = {0, 1023}}}),
                  "worker \"db-0\": cpus has 1023, and this process may use the CPUs "));
}

// A66
TEST(NamedDispatchers, AreSearchedByNameWhenAnActorIsSpawned) {
  const auto system = MakeSystem({{.name = "db"}, {.name = "io"}});
  const absl::Status unknown = system->TrySpawn<Scout>("a", {.dispatcher = "dv"}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Has(unknown, "no dispatcher has the name \"dv\"; ActorSystemOptions.dispatchers has \"db\", \"io\""))
      << unknown;
  EXPECT_THROW(system->Spawn<Scout>("a", {.dispatcher = "Db"}), SpawnError);
  EXPECT_FALSE(system->TrySpawn<Scout>("a", {.dispatcher = ""}).ok());
  EXPECT_TRUE(system->TrySpawn<Scout>("a", {.dispatcher = "io"}).ok()) << "the name is free";
  const absl::Status none = MakeSystem({})->TrySpawn<Scout>("a", {.dispatcher = "db"}).status();
  EXPECT_TRUE(Has(none, "\"db\"; ActorSystemOptions.dispatchers has none; the pools of the system are chosen by "))
      << none;
}

size_t Threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(NamedDispatchers, BeginAndEndWithTheirSystem) {
  constexpr int kRounds = 100;
  constexpr int kPools = 8;
  const size_t before = Threads();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<DispatcherOptions> dispatchers;
    for (int i = 0; i < kPools; ++i) dispatchers.push_back({.name = "pool-" + std::to_string(i)});
    const auto system = MakeSystem(dispatchers);
    std::vector<Future<Thread>> asking;
    for (const DispatcherOptions& pool : dispatchers) {
      asking.push_back(
          system->Ask(system->Spawn<Scout>(pool.name, {.dispatcher = pool.name}), WhereAreYou{}, kPatience));
    }
    for (size_t i = 0; i < asking.size(); ++i) ASSERT_EQ(asking[i].Wait()->name, dispatchers[i].name + "-0");
    EXPECT_GE(Threads(), before + kPools);
    // The destructor ends the others.
    if (round % 2 == 0) {
      EXPECT_TRUE(system->Shutdown(kPatience).ok());
    }
  }
  // A thread that was joined is listed until the kernel has ended it.
  while (Threads() > before) std::this_thread::yield();
}

TEST(NamedDispatchers, ComeToTheSameInEachRunOfASeed) {
  SimulationOptions options;
  options.kit.system.dispatchers = {{.name = "a", .workers = 2, .cpus = {1023}}, {.name = "b", .workers = 3}};
  Simulate({.seeds = 30, .each = options}, [](Simulation& sim) {
    auto in_a = sim.Spawn<Talker>(SpawnOptions{.dispatcher = "a"});
    auto in_b = sim.Spawn<Talker>(SpawnOptions{.dispatcher = "b"});
    auto sink = sim.Spawn<Sink>(SpawnOptions{.dispatcher = "b"}, 100, nullptr);
    in_a.Tell(Flood{sink.untyped(), 100});
    auto first = sim.system().Ask(in_b, Count{sim.Spawn<Scout>(SpawnOptions{.dispatcher = "a"})}, kPatience);
    auto second = sim.system().Ask(in_a, Count{sim.Spawn<Scout>(SpawnOptions{.dispatcher = "b"})}, kPatience);
    sim.Settle();
    EXPECT_EQ(first.Take()->value, 1);
    EXPECT_EQ(second.Take()->value, 1);
    EXPECT_EQ(sim.AskAndWait(sink, Total{})->value, 100);
  });
}

}  // namespace
}  // namespace fraktor
