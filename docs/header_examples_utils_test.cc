// The examples at the top of the headers of utils/, compiled and mostly run. //tools/tidy:tidy_test
// checks that each paragraph of an example stands here, line by line.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/stoppable_task.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/future/when_all.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/queue/internal/work_stealing_ring.h"
#include "fraktor/utils/shared/shared.h"
#include "fraktor/utils/shared/shared_access.h"
#include "fraktor/utils/shared/shared_mutex.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/internal/no_wait_lock.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"
#include "fraktor/utils/testing/counted_allocations.h"
#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_atomic.h"
#include "fraktor/utils/testing/model_lock.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/sim_trace.h"
#include "fraktor/utils/toolbox/std_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

// The examples are formatted as in the headers.
// clang-format off
// Examples leave some of their variables to the reader.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

enum class JournalErrorKind { kStaleEpoch = 0, kCorrupt = 1 };        // stored and sent: never reuse a number
template <>
struct fraktor::ErrorKindTraits<JournalErrorKind> {
  static constexpr std::string_view kTypeUrl = "example.com/error/journal";  // stable; never a C++ type name
  static constexpr JournalErrorKind kLast = JournalErrorKind::kCorrupt;      // kinds are numbered 0 .. kLast
};

namespace fraktor {

using utils_internal::Inbox;
using utils_internal::InboxNode;
using utils_internal::InboxPush;
using utils_internal::NoWaitLock;
using utils_internal::SlotHandle;
using utils_internal::SlotPool;
using utils_internal::SlotTable;
using utils_internal::StdAtomics;
using utils_internal::TableSlot;
using utils_internal::WorkStealingRing;

namespace {

TEST(HeaderExamples, TypedError) {
  absl::Status status = MakeError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt,
                                  "journal \"orders\": record 7 has a bad checksum; restore it from a replica",
                                  {{"record", 7}});
  if (ErrorKindOf<JournalErrorKind>(status) == JournalErrorKind::kCorrupt) {
    std::optional<int64_t> record = ErrorDetailNumberOf<JournalErrorKind>(status, "record");
  }
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(status, "record"), 7);
}

namespace bytes_example {

absl::Status Decode() {
  std::string bytes;
  AppendVarint(bytes, 300);
  AppendSized(bytes, "text");
  ByteReader reader(bytes);
  uint64_t number = reader.Varint();
  std::string_view text = reader.Sized();
  if (!reader.ok()) return absl::DataLossError("the record is too short");   // one check, after the last read
  EXPECT_EQ(number, 300u);

  std::string record(VarintBytes(300) + SizedBytes(text.size()), '\0');
  char* const end = PutSized(PutVarint(record.data(), 300), text);           // into memory of the caller
  EXPECT_EQ(end, record.data() + record.size());
  EXPECT_EQ(record, bytes);
  return absl::OkStatus();
}

TEST(HeaderExamples, Bytes) { EXPECT_EQ(Decode(), absl::OkStatus()); }

}  // namespace bytes_example

namespace string_view_example {

absl::Status Refuse(std::string_view name) { return absl::NotFoundError(absl::StrCat("no actor ", ToAbsl(name))); }

TEST(HeaderExamples, StringView) {
  const absl::Status status = Refuse("x");
  std::string_view text = ToStd(status.message());
  EXPECT_EQ(text, "no actor x");
}

}  // namespace string_view_example

namespace mutex_example {

class Counter {
 public:
  void Add(int n) {
    MutexLock lock(mutex_);
    sum_ += n;
    changed_.notify_all();
  }
  void WaitFor(int n) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&] { mutex_.AssertHeld(); return sum_ >= n; });
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;        // from <condition_variable>
  int sum_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(HeaderExamples, Mutex) {
  Counter counter;
  counter.Add(2);
  counter.WaitFor(2);
}

}  // namespace mutex_example

namespace no_wait_lock_example {

void Trim(int& pool) { --pool; }

TEST(HeaderExamples, NoWaitLock) {
  int pool = 1;
  NoWaitLock lock;
  if (lock.TryLock()) {
    Trim(pool);            // one thread at a time; the others skip it
    lock.Unlock();
  }
  EXPECT_EQ(pool, 0);
}

}  // namespace no_wait_lock_example

namespace status_macros_example {

struct Snapshot { std::string body; };
struct Parts { int header; std::string body; };
struct Store {
  absl::Status CheckOpen() const { return absl::OkStatus(); }
  absl::StatusOr<std::string> Read(std::string_view id) const { return std::string(id); }
};
absl::StatusOr<Parts> Split(const std::string& bytes) { return Parts{static_cast<int>(bytes.size()), bytes}; }
absl::Status Check(int header) { return header > 0 ? absl::OkStatus() : absl::DataLossError("empty"); }
absl::StatusOr<Snapshot> Decode(std::string body) { return Snapshot{std::move(body)}; }

absl::StatusOr<Snapshot> Load(const Store& store, std::string_view id) {
  FRAKTOR_RETURN_IF_ERROR(store.CheckOpen());
  FRAKTOR_ASSIGN_OR_RETURN(std::string bytes, store.Read(id));
  FRAKTOR_ASSIGN_OR_RETURN((auto [header, body]), Split(bytes));  // parentheses: the left side has a comma
  FRAKTOR_RETURN_IF_ERROR(Annotate(Check(header), id));           // "id: message", with the same code and payloads
  return Decode(body);
}

TEST(HeaderExamples, StatusMacros) {
  EXPECT_EQ(Load(Store(), "a")->body, "a");
  EXPECT_EQ(Load(Store(), "").status(), absl::DataLossError("empty"));
}

}  // namespace status_macros_example

namespace shared_example {

int reads = 0;
void ReadFrom(int) { ++reads; }

class Connection : public SharedObject {
 public:
  explicit Connection(int socket) : socket_(socket) {}
  void OnReadable() { ReadFrom(socket_); }

 private:
  const int socket_;
};

struct Poller {
  void Register(int, std::function<void()> callback) { on_readable = std::move(callback); }
  std::function<void()> on_readable;
};

TEST(HeaderExamples, Shared) {
  Poller poller;
  const int socket = 1;
  Shared<Connection> connection = MakeShared<Connection>(socket);   // one allocation for counts and object
  poller.Register(socket, [weak = WeakShared<Connection>(connection)] {
    if (Shared<Connection> alive = weak.Lock()) alive->OnReadable();
  });
  poller.on_readable();
  connection.Reset();
  poller.on_readable();
  EXPECT_EQ(reads, 1);
}

TEST(HeaderExamples, SharedAccess) {
  SharedAccess<absl::flat_hash_map<std::string, int>> counts;
  counts.WithWrite([](auto& map) { ++map["a"]; });
  int a = counts.WithRead([](const auto& map) { auto it = map.find("a"); return it == map.end() ? 0 : it->second; });
  EXPECT_EQ(a, 1);
}

struct Table {
  void Insert(int key, int value) { values[key] = value; }
  int Find(int key) { return values[key]; }
  absl::flat_hash_map<int, int> values;
};

struct Guarded {
  SharedMutex mutex;
  Table table ABSL_GUARDED_BY(mutex);

  void Use(int key, int value) {
    { WriterMutexLock lock(mutex); table.Insert(key, value); }
    { ReaderMutexLock lock(mutex); table.Find(key); }
  }
};

TEST(HeaderExamples, SharedMutex) {
  Guarded guarded;
  guarded.Use(1, 2);
  ReaderMutexLock lock(guarded.mutex);
  EXPECT_EQ(guarded.table.Find(1), 2);
}

}  // namespace shared_example

namespace time_example {

absl::Status Check(RuntimeToolbox& toolbox) {
  Instant deadline = toolbox.Now() + absl::Seconds(5);
  if (toolbox.Now() >= deadline) return absl::DeadlineExceededError("no reply within 5s");
  return absl::OkStatus();
}

TEST(HeaderExamples, Instant) { EXPECT_EQ(Check(*LocalToolbox::Make({}).value()), absl::OkStatus()); }

TEST(HeaderExamples, TimingWheel) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  const RuntimeToolbox& clock = *toolbox;
  auto wheel = TimingWheel<std::string>::Make({.resolution = absl::Milliseconds(1), .start = clock.Now()}).value();
  TimerId id = wheel->Insert(clock.Now() + absl::Seconds(5), "ask timed out").value();
  wheel->Cancel(id);                                                            // true, once
  wheel->Advance(clock.Now(), [](auto& due) { std::cout << due.payload; });     // fires the timers that are due
  absl::Duration pause = wheel->NextDeadline() - clock.Now();
  EXPECT_EQ(pause, absl::InfiniteDuration());
}

}  // namespace time_example

namespace atomics_example {

template <typename Atomics = StdAtomics>
class BasicFlag {
 public:
  void Set(int value) {
    value_ = value;
    is_set_.store(true, std::memory_order_release);        // pairs with the acquire of a reader
  }

 private:
  typename Atomics::template Atomic<bool> is_set_{false};  // std::atomic<bool>
  typename Atomics::template Plain<int> value_{0};         // int
};
using Flag = BasicFlag<>;

TEST(HeaderExamples, Atomics) { Flag().Set(1); }

}  // namespace atomics_example

namespace queue_example {

struct Owner {
  Inbox inbox;
  InboxNode* private_list = nullptr;
  int scheduled = 0;
  int handled = 0;
};
void Schedule(Owner& owner) { ++owner.scheduled; }

class Runner {
 public:
  void Run(Owner& owner) {                       // on the thread that the owner was scheduled on: the holder
    for (;;) {
      Handle(owner.private_list);
      if (owner.inbox.TryGoIdle()) return;       // from here on a push may schedule the owner again
      owner.private_list = owner.inbox.TakeAll().first;
    }
  }

 private:
  void Handle(InboxNode* list) {
    for (; list != nullptr; list = list->next) ++handled_;
  }

 public:
  int handled_ = 0;
};

TEST(HeaderExamples, Inbox) {
  Owner owner;
  Inbox& inbox = owner.inbox;
  InboxNode memory;
  InboxNode* const node = &memory;
  switch (inbox.Push(node)) {                    // any thread
    case InboxPush::kQueued: break;              // the owner runs, will run, or is parked
    case InboxPush::kClaimed:                    // it was idle: the caller still has the node, and holds the inbox
      owner.private_list = node;
      [[fallthrough]];
    case InboxPush::kUnparked: Schedule(owner);  // only PushSystem returns this
  }
  EXPECT_EQ(owner.scheduled, 1);
  Runner runner;
  runner.Run(owner);
  EXPECT_EQ(runner.handled_, 1);
}

struct Cell {};
struct InjectionQueue {
  void Push(Cell*) {}
};

TEST(HeaderExamples, WorkStealingRing) {
  Cell memory;
  Cell* const cell = &memory;
  InjectionQueue injection;
  WorkStealingRing<Cell*> other;
  WorkStealingRing<Cell*> mine;
  if (!mine.TryPush(cell)) injection.Push(cell);              // full: the caller moves work to the shared queue
  Cell* next = mine.TryPop();                                 // null: empty
  if (next == nullptr) next = other.StealHalfInto(mine);      // returns one to run now, and adds the rest to `mine`
  EXPECT_EQ(next, cell);
}

}  // namespace queue_example

namespace table_example {

struct Cell : TableSlot { Inbox inbox; };

int system = 0;

TEST(HeaderExamples, SlotTable) {
  static auto& table = *new SlotTable<Cell>({.max_chunks = 1024});       // one per process, never destroyed
  SlotPool<Cell> pool(table, &system);                                   // slot_pool.h: the slots of one owner
  SlotHandle<Cell> handle = pool.Allocate().value();
  Cell* cell = table.Resolve(handle);                                    // null forever after pool.Free(handle)
  uint32_t number = table.IndexOf(handle.slot);                          // table.At(number) is the same slot
  EXPECT_EQ(cell, handle.slot);
  EXPECT_EQ(table.At(number), handle.slot);
  pool.Free(handle);
  EXPECT_EQ(table.Resolve(handle), nullptr);
}

TEST(HeaderExamples, SlotPool) {
  SlotTable<Cell> table({.max_chunks = 1});
  SlotPool<Cell> pool(table, &system);
  SlotPool<Cell>::Cache cache(pool);                    // one per worker: no lock, no read-modify-write
  absl::StatusOr<SlotHandle<Cell>> handle = cache.Allocate();
  cache.Free(*handle);                                  // any cache of the pool may free it
  EXPECT_EQ(table.Resolve(*handle), nullptr);
}

}  // namespace table_example

namespace future_example {

struct Io {
  template <class Callback>
  void ReadAsync(Callback callback) { callback(21); }
};

int printed = 0;
void Print(absl::StatusOr<int> n) { printed = n.value(); }

TEST(HeaderExamples, Future) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  const std::unique_ptr<SerialExecutor> serial = SerialExecutor::Make(*toolbox, {}).value();
  Executor& executor = *serial;
  Io io;
  auto [promise, future] = MakePromise<int>();
  // Any thread may set it, also with an error: Set(absl::NotFoundError("...")).
  io.ReadAsync([promise = std::move(promise)](int n) mutable { promise.Set(n); });
  Future<void> done = std::move(future)
                          .Map([](int n) { return n * 2; })                          // runs when the result is taken
                          .Then(executor, [](absl::StatusOr<int> n) { Print(n); });  // runs on the executor
  EXPECT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_EQ(printed, 42);
}

struct Money { int cents; };
struct Item { int id; Money price; };
struct Receipt { int id; Money paid; };
struct Order { int item; int account; };
struct Store {
  Future<Item> Reserve(int item) { return MakeReadyFuture<Item>(Item{item, {5}}); }
};
Task<Money> Pay(int, Money price) { co_return price; }

Task<Receipt> Buy(Store& store, Order order) {
  Future<Item> reserving = store.Reserve(order.item);
  absl::StatusOr<Item> item = co_await reserving;            // two lines: see below
  if (!item.ok()) co_return item.status();                   // an error
  Task<Money> paying = Pay(order.account, item->price);
  absl::StatusOr<Money> paid = co_await paying;
  if (!paid.ok()) co_return Annotate(paid.status(), "pay");
  co_return Receipt{item->id, *paid};                        // or a value
}

TEST(HeaderExamples, Task) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  const std::unique_ptr<SerialExecutor> serial = SerialExecutor::Make(*toolbox, {}).value();
  Executor& executor = *serial;
  Store store;
  const Order order{.item = 3, .account = 4};
  Future<Receipt> receipt = Buy(store, order).Start(executor);
  EXPECT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_EQ(receipt.Take()->paid.cents, 5);
}

struct Mailroom {
  void PostSystemMessage(uint64_t slot, uint64_t generation) { posted = {slot, generation}; }
  std::pair<uint64_t, uint64_t> posted;
};

void PostWakeUp(void* target, uint64_t slot, uint64_t generation) noexcept {
  static_cast<Mailroom*>(target)->PostSystemMessage(slot, generation);
}

TEST(HeaderExamples, Waker) {
  Mailroom mailroom;
  const uint64_t slot = 1;
  const uint64_t generation = 2;
  Waker waker{.function = &PostWakeUp, .target = &mailroom, .first = slot, .second = generation};
  waker.Wake();
  EXPECT_EQ(mailroom.posted, std::pair(slot, generation));
}

struct User {};
struct Cart {};
Future<User> LoadUser(int) { return MakeReadyFuture<User>(User{}); }
Future<Cart> LoadCart(int) { return MakeReadyFuture<Cart>(Cart{}); }

TEST(HeaderExamples, WhenAll) {
  std::vector<Future<int>> futures;
  futures.push_back(MakeReadyFuture<int>(1));
  std::vector<Future<int>> more;
  more.push_back(MakeReadyFuture<int>(absl::NotFoundError("gone")));
  std::vector<Future<void>> flushes;
  const int id = 1;
  Future<std::vector<int>> all = WhenAll(std::move(futures));                         // a vector of Future<int>
  Future<std::tuple<User, Cart>> both = WhenAll(LoadUser(id), LoadCart(id));
  Future<void> flushed = WhenAll(std::move(flushes));                                 // a vector of Future<void>
  Future<std::vector<absl::StatusOr<int>>> each = WhenAllResults(std::move(more));    // errors one by one
  EXPECT_EQ(all.Take().value(), std::vector<int>{1});
  EXPECT_TRUE(both.IsReady() && flushed.IsReady());
  EXPECT_EQ(each.Take().value()[0].status().code(), absl::StatusCode::kNotFound);
}

struct Page {};

[[maybe_unused]] Task<void> UseWithStop(std::function<Future<Page>(std::string)> Fetch, std::string url) {
  std::stop_source stop;
  Future<Page> page = WithStop(Fetch(url), stop.get_token());
  absl::StatusOr<Page> fetched = co_await page;          // Cancelled after stop.request_stop()
}

[[maybe_unused]] Task<void> Refresh(int) { co_return; }

[[maybe_unused]] void UseRunUntilStopped(int cache) {
  std::stop_source stop;
  Task<void> refreshing = RunUntilStopped(Refresh(cache), stop.get_token());
  stop.request_stop();                // Refresh ends at its present co_await
}

}  // namespace future_example

namespace toolbox_example {

std::string written;
void Write(const std::string& text) { written = text; }

void Reply(Executor& io, std::string text) {
  io.Post([text = std::move(text)] { Write(text); });   // returns at once; Write runs on the executor's thread
}

TEST(HeaderExamples, Executor) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  const std::unique_ptr<SerialExecutor> io = SerialExecutor::Make(*toolbox, {}).value();
  Reply(*io, "hello");
  EXPECT_EQ(written, "");
  EXPECT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_EQ(written, "hello");
}

Future<int> StartTheSystem(RuntimeToolbox& toolbox) {
  auto [promise, future] = MakePromise<int>();
  toolbox.ScheduleAfter(absl::Seconds(1), [p = std::move(promise)]() mutable { p.Set(1); }).value();
  return std::move(future);
}

TEST(HeaderExamples, LocalToolbox) {
  auto toolbox = LocalToolbox::Make({}).value();
  Future<int> future = StartTheSystem(*toolbox);
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());            // runs everything that can run now
  ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());    // and everything within the next hour of virtual time
  ASSERT_TRUE(toolbox->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());  // not future.Wait()
}

TEST(HeaderExamples, SimToolbox) {
  auto toolbox = SimToolbox::Make({.seed = SimToolbox::SeedFromEnvironment(17).value()}).value();
  Future<int> future = StartTheSystem(*toolbox);
  ASSERT_TRUE(toolbox->RunFor(absl::Minutes(10)).ok()) << toolbox->ReplayLine();
  ASSERT_TRUE(toolbox->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());  // not future.Wait()
}

TEST(HeaderExamples, PumpedToolbox) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  bool expired = false;
  toolbox->ScheduleAfter(absl::Minutes(59), [&] { expired = true; }).value();
  ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());     // takes microseconds
  EXPECT_TRUE(expired);
}

TEST(HeaderExamples, TimerId) {
  const std::unique_ptr<LocalToolbox> local = LocalToolbox::Make({}).value();
  RuntimeToolbox& toolbox = *local;
  bool rung = false;
  TimerId alarm = toolbox.ScheduleAfter(absl::Seconds(1), [&] { rung = true; }).value();
  toolbox.CancelTimer(alarm);                           // rung stays false
  ASSERT_TRUE(local->RunFor(absl::Hours(1)).ok());
  EXPECT_FALSE(rung);
}

struct End { uint64_t ordinal; };

void RecordADelivery(SimToolbox& toolbox) {
  const End receiver{1};
  const End sender{2};
  const uint64_t size = 3;
  SimToolbox& first = toolbox;
  SimToolbox& second = toolbox;
  toolbox.trace().Record(TraceKind("message.delivered"), receiver.ordinal, sender.ordinal, size);
  EXPECT_EQ(first.trace().hash(), second.trace().hash());
}

TEST(HeaderExamples, SimTrace) { RecordADelivery(*SimToolbox::Make({}).value()); }

void DropTheMessage() {}

TEST(HeaderExamples, Random) {
  const std::unique_ptr<LocalToolbox> owner = LocalToolbox::Make({}).value();
  const RuntimeToolbox& toolbox = *owner;
  Random random = toolbox.MakeRandom(/*stream=*/7);          // each purpose has a stream of its own
  absl::Duration wait = random.UniformDuration(absl::ZeroDuration(), absl::Seconds(1));
  if (random.Bernoulli(0.01)) DropTheMessage();
  EXPECT_LE(wait, absl::Seconds(1));
}

struct Peer {
  void SendHeartbeat() { ++heartbeats; }
  int heartbeats = 0;
};

void Heartbeat(RuntimeToolbox& toolbox, Peer& peer) {
  toolbox.SchedulePeriodic({.period = absl::Seconds(1)}, [&peer] { peer.SendHeartbeat(); }).value();
}

TEST(HeaderExamples, RuntimeToolbox) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  Peer peer;
  Heartbeat(*toolbox, peer);
  EXPECT_TRUE(toolbox->RunFor(absl::Seconds(3)).ok());
  EXPECT_EQ(peer.heartbeats, 3);
}

struct File {
  void Append(int) { ++appended; }
  int appended = 0;
};

TEST(HeaderExamples, SerialExecutor) {
  const std::unique_ptr<LocalToolbox> owner = LocalToolbox::Make({}).value();
  RuntimeToolbox& toolbox = *owner;
  File file;
  const int batch = 1;
  auto disk = SerialExecutor::Make(toolbox, {.name = "journal", .capacity = 1024}).value();
  absl::Status accepted = disk->TryPost([&] { file.Append(batch); });   // ResourceExhausted: slow down
  disk->Close();                                                       // rejects new tasks; accepted ones still run
  absl::Status joined = disk->Join();
  EXPECT_TRUE(accepted.ok() && joined.ok()) << accepted << joined;
  EXPECT_EQ(file.appended, 1);
}

class Till : public ToolboxWorker {
 public:
  Progress RunSome() override { return Progress::kIdle; }
};

TEST(HeaderExamples, StdToolbox) {
  auto toolbox = StdToolbox::Make({.name = "shop"}).value();
  WorkerHandle worker = toolbox->StartWorker({.name = "till"}, std::make_unique<Till>()).value();
  toolbox->ScheduleAfter(absl::Seconds(1), [worker] { worker.Wake(); }).value();
  EXPECT_FALSE(worker.done());
}

class Lines {
 public:
  void Push(std::string line) { lines_.WithWrite([&](auto& lines) { lines.push_back(std::move(line)); }); }
  std::optional<std::string> TryPop() {
    return lines_.WithWrite([](auto& lines) -> std::optional<std::string> {
      if (lines.empty()) return std::nullopt;
      std::string line = std::move(lines.back());
      lines.pop_back();
      return line;
    });
  }
  bool IsClosed() const { return false; }

 private:
  SharedAccess<std::vector<std::string>> lines_;
};

class Printer : public ToolboxWorker {
 public:
  explicit Printer(Lines& lines) : lines_(lines) {}
  Progress RunSome() override {
    std::optional<std::string> line = lines_.TryPop();
    if (!line) return lines_.IsClosed() ? Progress::kDone : Progress::kIdle;
    std::cout << *line;
    return Progress::kBusy;
  }

 private:
  Lines& lines_;        // guarded by a mutex
};

TEST(HeaderExamples, ToolboxWorker) {
  const std::unique_ptr<LocalToolbox> owner = LocalToolbox::Make({}).value();
  RuntimeToolbox& toolbox = *owner;
  Lines lines;
  WorkerHandle printer = toolbox.StartWorker({.name = "printer"}, std::make_unique<Printer>(lines)).value();
  lines.Push("hello\n");
  printer.Wake();
  EXPECT_TRUE(owner->RunUntilIdle().ok());
  EXPECT_EQ(lines.TryPop(), std::nullopt);
}

}  // namespace toolbox_example

namespace testing_example {

void SendAMessage() {}

TEST(HeaderExamples, CountedAllocations) {
  if (!kCountsAllocations) GTEST_SKIP() << kWhyNoAllocationsAreCounted;
  EXPECT_EQ(AllocationsIn([&] { SendAMessage(); }), 0);
}

TEST(HeaderExamples, Interleaving) {
  ModelResult result = CheckInterleavings({}, [](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    auto& ready = m.Make<ModelAtomic<bool>>(false);
    m.Thread("writer", [&] {
      data = 42;
      ready.store(true, std::memory_order_release);     // with relaxed, the checker reports the data race
    });
    m.Thread("reader", [&] {
      while (!ready.load(std::memory_order_acquire)) ModelYield();
      MODEL_ASSERT(data == 42);
    });
  });
  EXPECT_TRUE(result.ok()) << result;
}

template <typename Atomics>
struct Mail {
  typename Atomics::template Plain<int> text{0};
  typename Atomics::template Atomic<bool> sent{false};
};

template <typename Atomics, typename Lock>
class BasicCounter {
 public:
  void Add(int n) {
    lock_.Lock();
    sum_ = sum_ + n;
    lock_.Unlock();
  }

 private:
  Lock lock_;
  typename Atomics::template Plain<int> sum_{0};
};
using Counter = BasicCounter<StdAtomics, Mutex>;
using ModelCounter = BasicCounter<ModelAtomics, ModelLock>;       // only inside CheckInterleavings

TEST(HeaderExamples, ModelAtomic) {
  const ModelResult result = CheckInterleavings({}, [](Model&) {
    Mail<StdAtomics> for_programs;
    Mail<ModelAtomics> for_the_checker;               // only inside CheckInterleavings
  });
  EXPECT_TRUE(result.ok()) << result;
}

TEST(HeaderExamples, ModelLock) {
  Counter().Add(1);
  const ModelResult result = CheckInterleavings({}, [](Model& model) {
    auto& counter = model.Make<ModelCounter>();
    model.Thread([&] { counter.Add(1); });
    model.Thread([&] { counter.Add(2); });
  });
  EXPECT_TRUE(result.ok()) << result;
}

}  // namespace testing_example

}  // namespace
}  // namespace fraktor
