#include "fraktor/utils/testing/interleaving.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fraktor/utils/testing/fiber.h"
#include "fraktor/utils/testing/model_engine.h"

namespace fraktor::inline v0 {

using model_internal::CompareExchangeKind;
using model_internal::Handle;
using model_internal::kMaxThreads;
using model_internal::Modify;
using model_internal::NotifyKind;
using model_internal::PlainState;
using model_internal::ValueKind;
using model_internal::ValueType;

namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr int kMainThread = 0;
constexpr std::size_t kMaxLines = 300;  // of the operations of an execution that failed

bool IsAcquire(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}

bool IsRelease(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

bool IsSeqCst(std::memory_order order) { return order == std::memory_order_seq_cst; }

const char* OrderName(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
      return "consume";
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      return "seq_cst";
  }
  return "?";
}

std::string_view LastPart(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// A vector clock: entry t is the number of operations of thread t that happen before.
struct Clock {
  std::array<uint32_t, kMaxThreads> at{};

  void Join(const Clock& other) {
    for (int i = 0; i < kMaxThreads; ++i) at[i] = std::max(at[i], other.at[i]);
  }
};

struct StoreRecord {
  uint64_t value;
  int thread;
  uint32_t step;
  Clock sync;  // the clock that an acquire load of it synchronizes with; zero if none
  Clock seen;  // entry t: the clock of thread t when it first saw this store; 0 if it has not
};

struct Location {
  // In modification order. Only the first `count` belong to this execution; the others are kept to
  // reuse their memory.
  std::vector<StoreRecord> stores;
  int count = 0;
  int seq_cst_floor = 0;                 // seq_cst loads see no older store
  std::array<int, kMaxThreads> floor{};  // the newest store that each thread has seen or made, or ModelYield reported
  Clock accessed;                        // the last operation of each thread
  int made_by = 0;
  uint32_t made_clock = 0;
  uint32_t waiting = 0;  // bit t: thread t is blocked until a notify
  ValueType type{};
  bool ended = false;
  const char* name = nullptr;
  uint32_t id = 0;

  // The store and value that each thread has seen here since its last yield, if seen_round is the
  // round of the thread.
  std::array<uint32_t, kMaxThreads> seen_round{};
  std::array<int, kMaxThreads> seen_store{};
  std::array<uint64_t, kMaxThreads> seen_value{};

  const StoreRecord& last() const { return stores[static_cast<std::size_t>(count) - 1]; }
};

// The next operation of a thread, which it performs when it is scheduled.
enum class PendingKind : uint8_t {
  kNothing,  // the thread has ended, or performs no operation of its own
  kLoad,
  kStore,
  kReadModifyWrite,
  kCompareExchange,
  kAcquirePermit,
  kWait,
  kBlocked,  // in a wait, and not notified
  kNotify,
  kYield,
};

struct Pending {
  PendingKind kind = PendingKind::kNothing;
  Location* location = nullptr;
  bool seq_cst = false;  // whether any of its orders is seq_cst
};

// One line of the trail.
struct LogEntry {
  enum class Kind : uint8_t {
    kLoad,
    kStore,
    kModify,
    kExchanged,
    kNotExchanged,
    kAcquired,
    kBlocks,
    kNotify,
    kYields,
    kGoesOn,
    kPlainRead,
    kPlainWrite,
    kDestroy,
    kChoice,
  };
  Kind kind;
  int thread;
  const Location* location = nullptr;
  uint32_t plain = 0;
  const char* name = "";
  std::memory_order order = std::memory_order_relaxed;
  uint64_t read = 0;
  uint64_t written = 0;
  uint32_t from_step = 0;
  ModelSite site{};
};

struct Choice {
  int chosen;
  int count;  // 0 if unknown: read from a replay string
};

std::string FormatTrail(const std::vector<Choice>& trail) {
  std::string text;
  for (std::size_t i = 0; i < trail.size();) {
    std::size_t end = i + 1;
    while (end < trail.size() && trail[end].chosen == trail[i].chosen) ++end;
    if (!text.empty()) text += '.';
    text += std::to_string(trail[i].chosen);
    if (end - i > 1) text += 'x' + std::to_string(end - i);
    i = end;
  }
  return text.empty() ? "-" : text;
}

// Returns false if the text is not a trail.
bool ParseTrail(std::string_view text, std::vector<Choice>& trail) {
  if (text == "-") return true;
  std::size_t at = 0;
  const auto number = [&](int& value) {
    const std::size_t start = at;
    value = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && value < 100'000'000) {
      value = value * 10 + (text[at++] - '0');
    }
    return at > start;
  };
  while (at < text.size()) {
    int chosen = 0;
    int times = 1;
    if (!number(chosen)) return false;
    if (at < text.size() && text[at] == 'x') {
      ++at;
      if (!number(times) || times > 1'000'000) return false;
    }
    trail.insert(trail.end(), static_cast<std::size_t>(times), Choice{.chosen = chosen, .count = 0});
    if (at == text.size()) return true;
    if (text[at++] != '.') return false;
  }
  return false;
}

// An operation in the source with an order that could be weaker.
struct UsedOrder {
  ModelSite site;
  const char* operation;
  bool on_failure;
  std::memory_order order;
};

}  // namespace

// Runs the executions. The trail is the path of a depth-first search: for each choice of an
// execution, the number of the chosen alternative and the number of alternatives. The next
// execution repeats all choices before the last one that has alternatives left, and takes the next
// alternative there.
//
// The reduction uses sleep sets. A transition is an operation of a thread together with the store
// that it reads. Two transitions are dependent if they are on one location and either both write,
// or one reads a store that the other would have to hide or to show (both seq_cst). In particular,
// a load of a given older store commutes with a later store. When all transitions of a thread have
// been explored from a state, they sleep in everything that is explored next from this state, until
// a dependent transition is executed. For a load this means that stores before `covered` need not
// be read again, but newer ones must.
class ModelEngine {
 public:
  ModelEngine(const ModelOptions& options, const std::function<void(Model&)>& test) : options_(options), test_(test) {
    threads_.reserve(kMaxThreads);
  }
  ~ModelEngine();
  ModelEngine(const ModelEngine&) = delete;
  ModelEngine& operator=(const ModelEngine&) = delete;

  ModelResult Run();

  static ModelEngine& Current();
  // Null outside of CheckInterleavings.
  static thread_local ModelEngine* current;

  std::vector<UsedOrder>* used_orders = nullptr;  // if set, the engine fills it

  // The implementations of the functions of model_internal.
  Handle NewLocation(uint64_t value, ValueType type);
  void EndLocation(const Handle& handle);
  void NameLocation(const Handle& handle, const char* name) { Find(handle).name = name; }
  uint64_t Load(const Handle& handle, std::memory_order order, ModelSite site);
  void Store(const Handle& handle, uint64_t value, std::memory_order order, ModelSite site);
  uint64_t ReadModifyWrite(const Handle& handle, const char* name, Modify modify, uint64_t operand,
                           std::memory_order order, ModelSite site);
  bool CompareExchange(const Handle& handle, CompareExchangeKind kind, uint64_t& expected, uint64_t desired,
                       std::memory_order success, std::memory_order failure, ModelSite site);
  void Wait(const Handle& handle, uint64_t old, std::memory_order order, ModelSite site);
  void Notify(const Handle& handle, NotifyKind kind, ModelSite site);
  void AcquirePermit(const Handle& handle, ModelSite site);
  void NewPlain(PlainState& state);
  void EndPlain(PlainState& state);
  void PlainRead(PlainState& state);
  void PlainWrite(PlainState& state) { WritePlain(state, LogEntry::Kind::kPlainWrite); }
  void Yield();
  int ChooseValue(int count);
  bool is_redundant() const { return redundant_; }
  [[noreturn]] void Fail(ModelFailure failure, std::string message);

 private:
  struct ThreadState;

  // A fiber with a loop that runs the threads that it is given. It outlives its engine, so that
  // later engines need not map a stack again.
  struct Worker {
    Worker();
    ThreadState* thread = nullptr;
    std::unique_ptr<Fiber> fiber;
  };
  static thread_local std::vector<std::unique_ptr<Worker>> idle_workers;

  struct ThreadState {
    std::unique_ptr<Worker> worker;
    ModelEngine* engine = nullptr;
    int index = 0;
    const char* name = nullptr;
    std::function<void()>* run = nullptr;
    bool ended = true;
    Pending pending;
    Clock clock;
    bool asleep = false;
    int covered = 0;           // the stores of the pending location before this one need not be read
    uint32_t round = 1;        // of ModelYield
    uint64_t yield_write = 0;  // the value of writes_ when it yielded
    std::vector<Location*> seen;
  };

  // Running executions.
  void RunOnce();
  void RunMain();
  void RunThread(ThreadState& thread);
  bool Backtrack();
  void EnsureWorkers(int count);
  void AbandonExecution();
  void SwitchTo(int next);

  // Scheduling.
  void Announce(PendingKind kind, Location* location, bool seq_cst);
  int PickNext();
  bool IsEnabled(const ThreadState& thread) const;
  int Choose(int count);
  void Sleep(ThreadState& thread);

  // Memory.
  Location& Find(const Handle& handle);
  Location& Access(const Handle& handle);
  int OldestVisible(const Location& location, bool seq_cst) const;
  void See(Location& location, int store, std::memory_order order);
  void Append(Location& location, uint64_t value, std::memory_order order, const Clock* continued);
  void NoteSeen(Location& location, int store, uint64_t value);
  int FirstNews(const Location& location, int thread) const;
  void WakeAfterWrite(const Location& location);
  void WakeAfterSeqCstLoad(const Location& location, int store);
  void WakeAll(const Location& location);
  std::memory_order Effective(std::memory_order order, const char* operation, bool on_failure, ModelSite site);
  void CheckPlain(const PlainState& state);
  void WritePlain(PlainState& state, LogEntry::Kind kind);
  [[noreturn]] void FailRace(const PlainState& state, const char* access, int other, const char* other_access,
                             uint32_t other_step);

  // Reporting.
  uint32_t Log(const LogEntry& entry);
  std::string ThreadName(int thread) const;
  static std::string LocationName(const Location& location);
  std::string FormatValue(ValueType type, uint64_t value);
  std::string FormatEntry(const LogEntry& entry);
  std::string FormatLog();

  ThreadState& self() { return threads_[static_cast<std::size_t>(current_thread_)]; }

  const ModelOptions& options_;
  const std::function<void(Model&)>& test_;
  ModelResult result_;
  Fiber root_;

  // State of all executions.
  std::vector<Choice> trail_;
  std::vector<std::unique_ptr<Location>> locations_;
  std::vector<ThreadState> threads_;  // never reallocated
  uint32_t epoch_ = 0;

  // State of this execution.
  std::unique_ptr<Model> model_;
  std::size_t depth_ = 0;
  uint32_t location_count_ = 0;
  uint32_t plain_count_ = 0;
  int thread_count_ = 1;
  int current_thread_ = kMainThread;
  int preemptions_ = 0;
  int spurious_failures_ = 0;
  uint64_t writes_ = 0;
  bool starting_ = false;   // threads run to their first operation
  bool exploring_ = false;  // threads run; if false, only the main thread does
  bool redundant_ = false;  // all remaining alternatives have been explored: just run to the end
  bool failed_ = false;
  std::vector<LogEntry> log_;
  std::vector<uint64_t> pointers_;  // in the order in which the trail shows them
};

thread_local ModelEngine* ModelEngine::current = nullptr;
thread_local std::vector<std::unique_ptr<ModelEngine::Worker>> ModelEngine::idle_workers;

ModelEngine& ModelEngine::Current() {
  if (current == nullptr) {
    std::fputs("model checker: a model variable or function is used outside of CheckInterleavings\n", stderr);
    std::abort();
  }
  return *current;
}

// Executions.

ModelResult ModelEngine::Run() {
  if (current != nullptr) {
    std::fputs("model checker: CheckInterleavings is called inside another one\n", stderr);
    std::abort();
  }
  if (!options_.replay.empty() && !ParseTrail(options_.replay, trail_)) {
    result_.failure = ModelFailure::kMisuse;
    result_.message = "replay: \"" + options_.replay + "\" is not a trail; give the `trail` of a result";
    return std::move(result_);
  }
  current = this;
  for (;;) {
    RunOnce();
    if (failed_) {
      AbandonExecution();
      break;
    }
    ++(redundant_ ? result_.redundant_executions : result_.executions);
    if (!options_.replay.empty()) break;
    if (!Backtrack()) {
      result_.complete = true;
      break;
    }
    if (result_.executions + result_.redundant_executions >= options_.max_executions) {
      if (!options_.allow_incomplete) {
        result_.failure = ModelFailure::kExecutionLimit;
        result_.message = "not complete after " + std::to_string(options_.max_executions) +
                          " executions: make the test smaller, raise max_executions, set a preemption_bound, or accept "
                          "it with allow_incomplete";
      }
      break;
    }
  }
  current = nullptr;
  return std::move(result_);
}

bool ModelEngine::Backtrack() {
  while (!trail_.empty() && trail_.back().chosen + 1 >= trail_.back().count) trail_.pop_back();
  if (trail_.empty()) return false;
  ++trail_.back().chosen;
  return true;
}

ModelEngine::Worker::Worker() {
  const auto loop = [](void* argument) {
    auto& worker = *static_cast<Worker*>(argument);
    for (;;) worker.thread->engine->RunThread(*worker.thread);
  };
  fiber = std::make_unique<Fiber>(kStackBytes, loop, this);
}

void ModelEngine::EnsureWorkers(int count) {
  while (static_cast<int>(threads_.size()) < count) {
    ThreadState& thread = threads_.emplace_back();
    thread.engine = this;
    thread.index = static_cast<int>(threads_.size()) - 1;
    if (idle_workers.empty()) {
      thread.worker = std::make_unique<Worker>();
    } else {
      thread.worker = std::move(idle_workers.back());
      idle_workers.pop_back();
    }
    thread.worker->thread = &thread;
  }
}

ModelEngine::~ModelEngine() {
  for (ThreadState& thread : threads_) idle_workers.push_back(std::move(thread.worker));
}

void ModelEngine::RunOnce() {
  ++epoch_;
  depth_ = 0;
  location_count_ = 0;
  plain_count_ = 0;
  thread_count_ = 1;
  current_thread_ = kMainThread;
  preemptions_ = 0;
  spurious_failures_ = 0;
  writes_ = 0;
  starting_ = false;
  exploring_ = false;
  redundant_ = false;
  log_.clear();
  if (model_ == nullptr) model_.reset(new Model());
  EnsureWorkers(1);
  ThreadState& main = threads_[kMainThread];
  main.clock = {};
  main.name = "main";
  main.pending = {};
  SwitchFiber(root_, *main.worker->fiber);
}

// A failure stops threads in the middle of their work. They cannot be unwound, since the code under
// test may be noexcept. So they, and everything that they could refer to, are leaked.
void ModelEngine::AbandonExecution() {
  for (ThreadState& thread : threads_) Fiber::Abandon(std::move(thread.worker->fiber));
  threads_.clear();
  static thread_local auto& abandoned = *new std::vector<std::unique_ptr<Model>>();
  abandoned.push_back(std::move(model_));
}

void ModelEngine::RunMain() {
  test_(*model_);
  const int count = static_cast<int>(model_->threads_.size()) + 1;
  EnsureWorkers(count);
  thread_count_ = count;
  ThreadState& main = threads_[kMainThread];
  ++main.clock.at[kMainThread];
  starting_ = true;
  for (int i = 1; i < count; ++i) {
    ThreadState& thread = threads_[static_cast<std::size_t>(i)];
    Model::ModelThread& given = model_->threads_[static_cast<std::size_t>(i) - 1];
    thread.name = given.name;
    thread.run = &given.run;
    thread.ended = false;
    thread.pending = {};
    thread.clock = main.clock;
    thread.asleep = false;
    thread.covered = 0;
    thread.round = 1;
    thread.seen.clear();
  }
  exploring_ = true;
  for (int i = 1; i < count; ++i) SwitchTo(i);
  starting_ = false;
  const int next = PickNext();
  if (next != kMainThread) SwitchTo(next);
  exploring_ = false;
  for (int i = 1; i < count; ++i) main.clock.Join(threads_[static_cast<std::size_t>(i)].clock);
  ++main.clock.at[kMainThread];
  for (std::function<void()>& after : model_->after_) after();
  model_->Clear();
}

void ModelEngine::RunThread(ThreadState& thread) {
  try {
    if (thread.index == kMainThread) {
      RunMain();
    } else {
      (*thread.run)();
    }
  } catch (const std::exception& e) {
    Fail(ModelFailure::kException, ThreadName(thread.index) + " threw an exception: " + e.what());
  } catch (...) {
    Fail(ModelFailure::kException, ThreadName(thread.index) + " threw something that is not a std::exception");
  }
  if (thread.index == kMainThread) {
    SwitchFiber(*thread.worker->fiber, root_);
    return;
  }
  ++thread.clock.at[static_cast<std::size_t>(thread.index)];  // orders its last plain accesses before the join
  thread.ended = true;
  thread.pending = {};
  SwitchTo(starting_ ? kMainThread : PickNext());
}

void ModelEngine::SwitchTo(int next) {
  Fiber& from = *self().worker->fiber;
  current_thread_ = next;
  SwitchFiber(from, *self().worker->fiber);
}

void ModelEngine::Fail(ModelFailure failure, std::string message) {
  if (!failed_) {
    failed_ = true;
    ++result_.executions;
    trail_.resize(std::min(trail_.size(), depth_));
    result_.failure = failure;
    result_.trail = FormatTrail(trail_);
    result_.message = std::move(message) + "\n" + FormatLog();
  }
  SwitchFiber(*self().worker->fiber, root_);
  std::abort();  // Nothing switches back.
}

// Scheduling.

// Called by a thread that is about to perform a visible operation. Returns when the thread is
// scheduled.
void ModelEngine::Announce(PendingKind kind, Location* location, bool seq_cst) {
  ThreadState& thread = self();
  thread.pending = {.kind = kind, .location = location, .seq_cst = seq_cst};
  if (!exploring_) return;
  const int next = starting_ ? kMainThread : PickNext();
  if (next != current_thread_) SwitchTo(next);
  thread.asleep = false;
  if (redundant_) thread.covered = 0;
}

bool ModelEngine::IsEnabled(const ThreadState& thread) const {
  switch (thread.pending.kind) {
    case PendingKind::kBlocked:
      return false;
    case PendingKind::kAcquirePermit:
      return thread.pending.location->last().value != 0;
    case PendingKind::kYield:
      if (thread.seen.empty()) return writes_ != thread.yield_write;
      return std::any_of(thread.seen.begin(), thread.seen.end(),
                         [&](const Location* location) { return FirstNews(*location, thread.index) >= 0; });
    default:
      return true;
  }
}

int ModelEngine::PickNext() {
  std::array<int, kMaxThreads> ways;
  int count = 0;
  bool live = false;
  // The running thread comes first: the first execution is the one with the fewest switches.
  for (int i = 0; i < thread_count_; ++i) {
    const int index = i == 0 ? current_thread_ : (i <= current_thread_ ? i - 1 : i);
    if (index == kMainThread) continue;
    const ThreadState& thread = threads_[static_cast<std::size_t>(index)];
    if (thread.ended) continue;
    live = true;
    if (IsEnabled(thread)) ways[static_cast<std::size_t>(count++)] = index;
  }
  if (!live) return kMainThread;
  if (count == 0) Fail(ModelFailure::kDeadlock, "deadlock: every thread that has not ended waits");
  if (redundant_) return ways[0];

  const bool can_go_on = ways[0] == current_thread_ && self().pending.kind != PendingKind::kYield;
  if (options_.preemption_bound.has_value()) {
    if (can_go_on && preemptions_ >= *options_.preemption_bound) count = 1;
  } else if (options_.reduce) {
    int awake = 0;
    for (int i = 0; i < count; ++i) {
      const int index = ways[static_cast<std::size_t>(i)];
      if (!threads_[static_cast<std::size_t>(index)].asleep) ways[static_cast<std::size_t>(awake++)] = index;
    }
    if (awake == 0) {
      redundant_ = true;
      return ways[0];
    }
    count = awake;
  }
  const int chosen = Choose(count);
  const int next = ways[static_cast<std::size_t>(chosen)];
  if (options_.preemption_bound.has_value()) {
    if (can_go_on && next != current_thread_) ++preemptions_;
  } else if (options_.reduce) {
    for (int i = 0; i < chosen; ++i) Sleep(threads_[static_cast<std::size_t>(ways[static_cast<std::size_t>(i)])]);
  }
  return next;
}

int ModelEngine::Choose(int count) {
  if (count == 1 || redundant_) return 0;
  if (depth_ == trail_.size()) {
    if (!options_.replay.empty()) {
      // A replay that ends early continues with the first alternatives.
      trail_.push_back({.chosen = 0, .count = 0});
    } else {
      trail_.push_back({.chosen = 0, .count = count});
    }
  }
  Choice& choice = trail_[depth_++];
  if (choice.count == 0) choice.count = count;
  if (choice.count != count || choice.chosen >= count) {
    Fail(
        ModelFailure::kNotRepeatable,
        options_.replay.empty()
            ? "the same choices led to a different execution: the test depends on addresses, time, random numbers, or "
              "ordinary variables that outlive an execution"
            : "the trail \"" + options_.replay + "\" does not fit: the test or the options are not those that gave it");
  }
  return choice.chosen;
}

int ModelEngine::ChooseValue(int count) {
  if (count <= 0) Fail(ModelFailure::kMisuse, "ModelChoose(" + std::to_string(count) + "): count must be positive");
  const int chosen = Choose(count);
  Log({.kind = LogEntry::Kind::kChoice, .thread = current_thread_, .written = static_cast<uint64_t>(chosen)});
  return chosen;
}

void ModelEngine::Sleep(ThreadState& thread) {
  thread.asleep = true;
  if (thread.pending.location != nullptr) thread.covered = thread.pending.location->count;
}

// A write wakes everything on its location. Stores that a sleeping load has already read stay
// covered.
void ModelEngine::WakeAfterWrite(const Location& location) {
  ++writes_;
  if (!exploring_) return;
  for (int i = 1; i < thread_count_; ++i) {
    ThreadState& thread = threads_[static_cast<std::size_t>(i)];
    if (thread.pending.location == &location || thread.pending.kind == PendingKind::kYield) thread.asleep = false;
  }
}

void ModelEngine::WakeAfterSeqCstLoad(const Location& location, int store) {
  if (!exploring_) return;
  for (int i = 1; i < thread_count_; ++i) {
    ThreadState& thread = threads_[static_cast<std::size_t>(i)];
    if (i == current_thread_ || thread.pending.location != &location || !thread.pending.seq_cst) continue;
    if (thread.pending.kind == PendingKind::kLoad) {
      // It could have seen no newer store before this load, and can see no older one after it.
      if (store + 1 >= location.count) continue;
      thread.covered = std::min(thread.covered, store + 1);
    } else {
      thread.covered = 0;
    }
    thread.asleep = false;
  }
}

void ModelEngine::WakeAll(const Location& location) {
  for (int i = 1; i < thread_count_; ++i) {
    ThreadState& thread = threads_[static_cast<std::size_t>(i)];
    if (i == current_thread_ || thread.pending.location != &location) continue;
    thread.asleep = false;
    thread.covered = 0;
  }
}

void ModelEngine::Yield() {
  if (!exploring_) return;
  ThreadState& thread = self();
  thread.yield_write = writes_;
  Log({.kind = LogEntry::Kind::kYields, .thread = current_thread_});
  Announce(PendingKind::kYield, nullptr, false);
  int with_news = 0;
  for (const Location* location : thread.seen) with_news += FirstNews(*location, thread.index) >= 0 ? 1 : 0;
  if (with_news > 0) {
    // The next round sees something new in at least one variable: explore each of them.
    int chosen = Choose(with_news);
    for (Location* location : thread.seen) {
      const int news = FirstNews(*location, thread.index);
      if (news < 0 || chosen-- > 0) continue;
      int& floor = location->floor[static_cast<std::size_t>(thread.index)];
      floor = std::max(floor, news);
      Log({.kind = LogEntry::Kind::kGoesOn, .thread = current_thread_, .location = location});
      break;
    }
  }
  thread.seen.clear();
  ++thread.round;
}

// Memory.

Handle ModelEngine::NewLocation(uint64_t value, ValueType type) {
  if (location_count_ == locations_.size()) locations_.push_back(std::make_unique<Location>());
  Location& location = *locations_[location_count_];
  ThreadState& thread = self();
  location.count = 0;
  location.seq_cst_floor = 0;
  location.floor = {};
  location.accessed = {};
  location.made_by = current_thread_;
  location.made_clock = thread.clock.at[static_cast<std::size_t>(current_thread_)] + 1;
  location.waiting = 0;
  location.type = type;
  location.ended = false;
  location.name = nullptr;
  location.id = location_count_;
  location.seen_round = {};
  Append(location, value, std::memory_order_relaxed, nullptr);
  location.stores[0].step = 0;
  return {.index = location_count_++, .epoch = epoch_};
}

Location& ModelEngine::Find(const Handle& handle) {
  if (handle.epoch != epoch_ || handle.index >= location_count_) {
    Fail(ModelFailure::kUseAfterFree,
         ThreadName(current_thread_) +
             " uses an atomic that was not made in this execution, or whose memory was written over");
  }
  return *locations_[handle.index];
}

void ModelEngine::EndLocation(const Handle& handle) {
  if (handle.epoch != epoch_ || failed_) return;
  Location& location = Find(handle);
  if (location.ended) {
    Fail(ModelFailure::kUseAfterFree, ThreadName(current_thread_) + " destroys " + LocationName(location) + " again");
  }
  const Clock& clock = self().clock;
  for (int i = 0; i < thread_count_; ++i) {
    const auto other = static_cast<std::size_t>(i);
    if (i == current_thread_ || location.accessed.at[other] <= clock.at[other]) continue;
    Fail(ModelFailure::kUseAfterFree, ThreadName(current_thread_) + " destroys " + LocationName(location) +
                                          ", and nothing orders that after its last use by " + ThreadName(i));
  }
  Log({.kind = LogEntry::Kind::kDestroy, .thread = current_thread_, .location = &location});
  location.ended = true;
}

// The common part of every operation, when its thread is scheduled.
Location& ModelEngine::Access(const Handle& handle) {
  Location& location = Find(handle);
  if (location.ended) {
    Fail(ModelFailure::kUseAfterFree,
         ThreadName(current_thread_) + " uses " + LocationName(location) + " after it was destroyed");
  }
  Clock& clock = self().clock;
  const auto me = static_cast<std::size_t>(current_thread_);
  if (location.made_by != current_thread_ &&
      clock.at[static_cast<std::size_t>(location.made_by)] < location.made_clock) {
    Fail(ModelFailure::kDataRace, ThreadName(current_thread_) + " uses " + LocationName(location) +
                                      ", and nothing orders that after its construction by " +
                                      ThreadName(location.made_by));
  }
  location.accessed.at[me] = ++clock.at[me];
  return location;
}

int ModelEngine::OldestVisible(const Location& location, bool seq_cst) const {
  const Clock& clock = threads_[static_cast<std::size_t>(current_thread_)].clock;
  int oldest = location.floor[static_cast<std::size_t>(current_thread_)];
  if (seq_cst) oldest = std::max(oldest, location.seq_cst_floor);
  for (int store = location.count - 1; store > oldest; --store) {
    const Clock& seen = location.stores[static_cast<std::size_t>(store)].seen;
    for (std::size_t i = 0; i < static_cast<std::size_t>(thread_count_); ++i) {
      if (seen.at[i] != 0 && seen.at[i] <= clock.at[i]) return store;
    }
  }
  return oldest;
}

void ModelEngine::NoteSeen(Location& location, int store, uint64_t value) {
  const auto me = static_cast<std::size_t>(current_thread_);
  ThreadState& thread = threads_[me];
  if (location.seen_round[me] != thread.round) {
    location.seen_round[me] = thread.round;
    thread.seen.push_back(&location);
  }
  location.seen_store[me] = store;
  location.seen_value[me] = value;
}

// The first store that a round of a waiting loop has not seen and that could change its behaviour,
// or -1.
int ModelEngine::FirstNews(const Location& location, int thread) const {
  const auto index = static_cast<std::size_t>(thread);
  for (int store = location.seen_store[index] + 1; store < location.count; ++store) {
    const StoreRecord& record = location.stores[static_cast<std::size_t>(store)];
    if (record.thread != thread && record.value != location.seen_value[index]) return store;
  }
  return -1;
}

void ModelEngine::See(Location& location, int store, std::memory_order order) {
  const auto me = static_cast<std::size_t>(current_thread_);
  ThreadState& thread = threads_[me];
  StoreRecord& record = location.stores[static_cast<std::size_t>(store)];
  if (record.seen.at[me] == 0) record.seen.at[me] = thread.clock.at[me];
  location.floor[me] = std::max(location.floor[me], store);
  if (IsAcquire(order)) thread.clock.Join(record.sync);
  if (IsSeqCst(order)) {
    location.seq_cst_floor = std::max(location.seq_cst_floor, store);
    WakeAfterSeqCstLoad(location, store);
  }
  NoteSeen(location, store, record.value);
}

// `continued` is the clock that the previous store released, if this is a read-modify-write of it.
void ModelEngine::Append(Location& location, uint64_t value, std::memory_order order, const Clock* continued) {
  const auto me = static_cast<std::size_t>(current_thread_);
  const Clock& clock = threads_[me].clock;
  Clock sync{};
  if (continued != nullptr) sync = *continued;
  if (IsRelease(order)) sync.Join(clock);
  if (static_cast<std::size_t>(location.count) == location.stores.size()) location.stores.emplace_back();
  StoreRecord& record = location.stores[static_cast<std::size_t>(location.count)];
  record.value = value;
  record.thread = current_thread_;
  record.step = static_cast<uint32_t>(log_.size()) + 1;
  record.sync = sync;
  record.seen = {};
  record.seen.at[me] = std::max<uint32_t>(clock.at[me], 1);
  location.floor[me] = location.count;
  if (IsSeqCst(order)) location.seq_cst_floor = location.count;
  ++location.count;
}

uint64_t ModelEngine::Load(const Handle& handle, std::memory_order order, ModelSite site) {
  if (order == std::memory_order_release || order == std::memory_order_acq_rel) {
    Fail(ModelFailure::kMisuse, std::string("load does not take the order ") + OrderName(order));
  }
  order = Effective(order, "load", false, site);
  Announce(PendingKind::kLoad, &Find(handle), IsSeqCst(order));
  Location& location = Access(handle);
  const int oldest = std::max(OldestVisible(location, IsSeqCst(order)), std::exchange(self().covered, 0));
  const int store = location.count - 1 - Choose(location.count - oldest);
  See(location, store, order);
  const StoreRecord& record = location.stores[static_cast<std::size_t>(store)];
  Log({.kind = LogEntry::Kind::kLoad,
       .thread = current_thread_,
       .location = &location,
       .name = "load",
       .order = order,
       .read = record.value,
       .from_step = record.step,
       .site = site});
  return record.value;
}

void ModelEngine::Store(const Handle& handle, uint64_t value, std::memory_order order, ModelSite site) {
  if (order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_consume) {
    Fail(ModelFailure::kMisuse, std::string("store does not take the order ") + OrderName(order));
  }
  order = Effective(order, "store", false, site);
  Announce(PendingKind::kStore, &Find(handle), IsSeqCst(order));
  Location& location = Access(handle);
  self().covered = 0;
  Append(location, value, order, nullptr);
  Log({.kind = LogEntry::Kind::kStore,
       .thread = current_thread_,
       .location = &location,
       .name = "store",
       .order = order,
       .written = value,
       .site = site});
  WakeAfterWrite(location);
}

uint64_t ModelEngine::ReadModifyWrite(const Handle& handle, const char* name, Modify modify, uint64_t operand,
                                      std::memory_order order, ModelSite site) {
  order = Effective(order, name, false, site);
  Announce(PendingKind::kReadModifyWrite, &Find(handle), IsSeqCst(order));
  Location& location = Access(handle);
  self().covered = 0;
  const int store = location.count - 1;
  See(location, store, order);
  const uint64_t read = location.last().value;
  const uint32_t from_step = location.last().step;
  const uint64_t written = modify(read, operand);
  const Clock continued = location.last().sync;
  Append(location, written, order, &continued);
  NoteSeen(location, store + 1, read);
  Log({.kind = LogEntry::Kind::kModify,
       .thread = current_thread_,
       .location = &location,
       .name = name,
       .order = order,
       .read = read,
       .written = written,
       .from_step = from_step,
       .site = site});
  WakeAfterWrite(location);
  return read;
}

bool ModelEngine::CompareExchange(const Handle& handle, CompareExchangeKind kind, uint64_t& expected, uint64_t desired,
                                  std::memory_order success, std::memory_order failure, ModelSite site) {
  if (failure == std::memory_order_release || failure == std::memory_order_acq_rel) {
    Fail(ModelFailure::kMisuse,
         std::string("the failure of a compare_exchange does not take the order ") + OrderName(failure));
  }
  success = Effective(success, "compare_exchange", false, site);
  failure = Effective(failure, "compare_exchange", true, site);
  Announce(PendingKind::kCompareExchange, &Find(handle), IsSeqCst(success) || IsSeqCst(failure));
  Location& location = Access(handle);
  const int oldest = std::max(OldestVisible(location, IsSeqCst(failure)), std::exchange(self().covered, 0));
  const int last = location.count - 1;
  const bool could_succeed = location.last().value == expected;

  // The alternatives: the last store; older ones that differ from the expected value; the last one
  // again, failing spuriously.
  int ways = 1;
  for (int store = oldest; store < last; ++store) {
    ways += location.stores[static_cast<std::size_t>(store)].value != expected ? 1 : 0;
  }
  const bool may_fail_spuriously =
      kind == CompareExchangeKind::kWeak && could_succeed && spurious_failures_ < options_.max_spurious_failures;
  int chosen = Choose(ways + (may_fail_spuriously ? 1 : 0));
  int store = last;
  bool exchanged = chosen == 0 && could_succeed;
  if (chosen == ways) {
    ++spurious_failures_;
  } else if (chosen > 0) {
    do {
      --store;
      if (location.stores[static_cast<std::size_t>(store)].value != expected) --chosen;
    } while (chosen > 0);
  }

  const uint64_t read = location.stores[static_cast<std::size_t>(store)].value;
  const uint32_t from_step = location.stores[static_cast<std::size_t>(store)].step;
  See(location, store, exchanged ? success : failure);
  if (exchanged) {
    const Clock continued = location.last().sync;
    Append(location, desired, success, &continued);
    NoteSeen(location, store + 1, read);
  }
  Log({.kind = exchanged ? LogEntry::Kind::kExchanged : LogEntry::Kind::kNotExchanged,
       .thread = current_thread_,
       .location = &location,
       .name = kind == CompareExchangeKind::kWeak ? "compare_exchange_weak" : "compare_exchange_strong",
       .order = exchanged ? success : failure,
       .read = read,
       .written = desired,
       .from_step = from_step,
       .site = site});
  if (exchanged) WakeAfterWrite(location);
  expected = read;
  return exchanged;
}

void ModelEngine::AcquirePermit(const Handle& handle, ModelSite site) {
  Announce(PendingKind::kAcquirePermit, &Find(handle), false);
  Location& location = Access(handle);
  self().covered = 0;
  if (location.last().value == 0) {
    Fail(ModelFailure::kDeadlock, "deadlock: " + LocationName(location) + " is acquired while no other thread runs");
  }
  const int store = location.count - 1;
  See(location, store, std::memory_order_acquire);
  const uint64_t permits = location.last().value;
  const uint32_t from_step = location.last().step;
  const Clock continued = location.last().sync;
  Append(location, permits - 1, std::memory_order_relaxed, &continued);
  NoteSeen(location, store + 1, permits - 1);
  Log({.kind = LogEntry::Kind::kAcquired,
       .thread = current_thread_,
       .location = &location,
       .name = "Acquire",
       .order = std::memory_order_acquire,
       .read = permits,
       .written = permits - 1,
       .from_step = from_step,
       .site = site});
  WakeAfterWrite(location);
}

void ModelEngine::Wait(const Handle& handle, uint64_t old, std::memory_order order, ModelSite site) {
  order = Effective(order, "wait", false, site);
  Announce(PendingKind::kWait, &Find(handle), IsSeqCst(order));
  for (;;) {
    ThreadState& thread = self();
    Location& location = Access(handle);
    const int oldest = std::max(OldestVisible(location, IsSeqCst(order)), std::exchange(thread.covered, 0));
    // The alternatives: a store that differs; or to block, if the last store does not differ. (An
    // older store that does not differ is checked again before blocking, which equals not having
    // seen it.)
    const bool may_block = location.last().value == old;
    int ways = 0;
    for (int store = oldest; store < location.count; ++store) {
      ways += location.stores[static_cast<std::size_t>(store)].value != old ? 1 : 0;
    }
    int chosen = Choose(ways + (may_block ? 1 : 0));
    if (chosen < ways) {
      int store = location.count;
      do {
        --store;
        if (location.stores[static_cast<std::size_t>(store)].value != old) --chosen;
      } while (chosen >= 0);
      const StoreRecord& record = location.stores[static_cast<std::size_t>(store)];
      See(location, store, order);
      Log({.kind = LogEntry::Kind::kLoad,
           .thread = current_thread_,
           .location = &location,
           .name = "wait",
           .order = order,
           .read = record.value,
           .from_step = record.step,
           .site = site});
      return;
    }
    Log({.kind = LogEntry::Kind::kBlocks,
         .thread = current_thread_,
         .location = &location,
         .name = "wait",
         .order = order,
         .read = old,
         .site = site});
    if (!exploring_) {
      Fail(ModelFailure::kDeadlock,
           "deadlock: " + LocationName(location) + " is waited for while no other thread runs");
    }
    WakeAll(location);
    location.waiting |= 1u << thread.index;
    thread.pending.kind = PendingKind::kBlocked;
    const int next = PickNext();
    if (next != current_thread_) SwitchTo(next);
    thread.asleep = false;
    if (redundant_) thread.covered = 0;
  }
}

void ModelEngine::Notify(const Handle& handle, NotifyKind kind, ModelSite site) {
  Announce(PendingKind::kNotify, &Find(handle), false);
  Location& location = Access(handle);
  self().covered = 0;
  uint32_t notified = location.waiting;
  if (kind == NotifyKind::kOne && notified != 0) {
    const int chosen = Choose(__builtin_popcount(notified));
    for (int i = 0; i < chosen; ++i) notified &= notified - 1;
    notified &= ~(notified - 1);
  }
  Log({.kind = LogEntry::Kind::kNotify,
       .thread = current_thread_,
       .location = &location,
       .name = kind == NotifyKind::kOne ? "notify_one" : "notify_all",
       .written = static_cast<uint64_t>(__builtin_popcount(notified)),
       .site = site});
  location.waiting &= ~notified;
  for (int i = 1; i < thread_count_; ++i) {
    if ((notified >> i & 1) != 0) threads_[static_cast<std::size_t>(i)].pending.kind = PendingKind::kWait;
  }
  WakeAll(location);
}

std::memory_order ModelEngine::Effective(std::memory_order order, const char* operation, bool on_failure,
                                         ModelSite site) {
  if (order == std::memory_order_consume) order = std::memory_order_acquire;
  if (site.file == nullptr || order == std::memory_order_relaxed) return order;
  if (used_orders != nullptr) {
    const auto same = [&](const UsedOrder& used) {
      return used.site.line == site.line && used.on_failure == on_failure && used.order == order &&
             std::strcmp(used.operation, operation) == 0 && std::strcmp(used.site.file, site.file) == 0;
    };
    if (std::none_of(used_orders->begin(), used_orders->end(), same)) {
      used_orders->push_back({.site = site, .operation = operation, .on_failure = on_failure, .order = order});
    }
  }
  if (options_.weakening.has_value()) {
    const ModelWeakening& weak = *options_.weakening;
    if (weak.line == site.line && weak.from == order && weak.on_failure == on_failure && weak.operation == operation &&
        weak.file == LastPart(site.file)) {
      return weak.to;
    }
  }
  return order;
}

// Plain variables. Their accesses are not visible operations: whether two accesses race does not
// depend on which one is executed first.

void ModelEngine::NewPlain(PlainState& state) {
  const auto me = static_cast<std::size_t>(current_thread_);
  state = {};
  state.epoch = epoch_;
  state.id = plain_count_++;
  state.write_thread = current_thread_;
  // An access counts as part of the next visible operation, which is the first one that can release
  // it.
  state.write_clock = threads_[me].clock.at[me] + 1;
  state.write_step = static_cast<uint32_t>(log_.size());
}

void ModelEngine::CheckPlain(const PlainState& state) {
  if (state.epoch != epoch_) {
    Fail(ModelFailure::kUseAfterFree,
         ThreadName(current_thread_) +
             (state.epoch == 0 ? " uses a plain variable after it was destroyed"
                               : " uses a plain variable that was not made in this execution, or whose memory was "
                                 "written over"));
  }
}

void ModelEngine::FailRace(const PlainState& state, const char* access, int other, const char* other_access,
                           uint32_t other_step) {
  Fail(ModelFailure::kDataRace, "data race on plain#" + std::to_string(state.id) + ": " + access + " by " +
                                    ThreadName(current_thread_) + " at step " + std::to_string(log_.size()) + ", and " +
                                    other_access + " by " + ThreadName(other) + " at step " +
                                    std::to_string(other_step) + ", which nothing orders");
}

void ModelEngine::PlainRead(PlainState& state) {
  CheckPlain(state);
  const auto me = static_cast<std::size_t>(current_thread_);
  const Clock& clock = threads_[me].clock;
  const uint32_t step = Log({.kind = LogEntry::Kind::kPlainRead, .thread = current_thread_, .plain = state.id});
  if (state.write_thread != current_thread_ &&
      clock.at[static_cast<std::size_t>(state.write_thread)] < state.write_clock) {
    FailRace(state, "a read", state.write_thread, "a write", state.write_step);
  }
  state.read_clock[me] = clock.at[me] + 1;
  state.read_step[me] = step;
}

void ModelEngine::WritePlain(PlainState& state, LogEntry::Kind kind) {
  CheckPlain(state);
  const auto me = static_cast<std::size_t>(current_thread_);
  const Clock& clock = threads_[me].clock;
  const uint32_t step = Log({.kind = kind, .thread = current_thread_, .plain = state.id});
  const char* access = kind == LogEntry::Kind::kDestroy ? "the destruction" : "a write";
  if (state.write_thread != current_thread_ &&
      clock.at[static_cast<std::size_t>(state.write_thread)] < state.write_clock) {
    FailRace(state, access, state.write_thread, "a write", state.write_step);
  }
  for (int i = 0; i < thread_count_; ++i) {
    const auto other = static_cast<std::size_t>(i);
    if (i != current_thread_ && clock.at[other] < state.read_clock[other]) {
      FailRace(state, access, i, "a read", state.read_step[other]);
    }
  }
  state.write_thread = current_thread_;
  state.write_clock = clock.at[me] + 1;
  state.write_step = step;
}

void ModelEngine::EndPlain(PlainState& state) {
  if (state.epoch != epoch_ || failed_) return;
  WritePlain(state, LogEntry::Kind::kDestroy);
  state.epoch = 0;
}

// Reporting.

uint32_t ModelEngine::Log(const LogEntry& entry) {
  log_.push_back(entry);
  if (log_.size() > static_cast<std::size_t>(options_.max_steps)) {
    Fail(ModelFailure::kStepLimit,
         "more than " + std::to_string(options_.max_steps) +
             " operations in one execution: a loop does not end, or it waits for another thread without ModelYield()");
  }
  return static_cast<uint32_t>(log_.size());
}

std::string ModelEngine::ThreadName(int thread) const {
  const char* name = threads_[static_cast<std::size_t>(thread)].name;
  std::string text = "thread " + std::to_string(thread);
  if (name != nullptr) text += std::string(" (") + name + ")";
  return text;
}

std::string ModelEngine::LocationName(const Location& location) {
  std::string text = "atomic#" + std::to_string(location.id);
  if (location.name != nullptr) text += std::string(" (") + location.name + ")";
  return text;
}

std::string ModelEngine::FormatValue(ValueType type, uint64_t value) {
  switch (type.kind) {
    case ValueKind::kBool:
      return value != 0 ? "true" : "false";
    case ValueKind::kSigned: {
      const int unused_bits = 64 - 8 * type.bytes;
      return std::to_string(static_cast<int64_t>(value << unused_bits) >> unused_bits);
    }
    case ValueKind::kUnsigned:
      if (value < (uint64_t{1} << 32)) return std::to_string(value);
      break;
    case ValueKind::kPointer:
      if (value == 0) return "null";
      break;
  }
  // An address, perhaps with flags in its low bits. Addresses are numbered in the order of
  // appearance, so that two runs print the same text.
  const uint64_t address = value & ~uint64_t{7};
  auto found = std::find(pointers_.begin(), pointers_.end(), address);
  const auto number = found - pointers_.begin();
  if (found == pointers_.end()) pointers_.push_back(address);
  std::string text = "pointer#" + std::to_string(number);
  if (value != address) text += "+" + std::to_string(value - address);
  return text;
}

std::string ModelEngine::FormatEntry(const LogEntry& entry) {
  const auto value = [&](uint64_t bits) { return FormatValue(entry.location->type, bits); };
  const std::string on = entry.location != nullptr ? LocationName(*entry.location) : "";
  const std::string call = on + "." + entry.name;
  const std::string read_from = entry.from_step == 0 ? "" : " of step " + std::to_string(entry.from_step);
  switch (entry.kind) {
    case LogEntry::Kind::kLoad:
      return call + "(" + OrderName(entry.order) + ") -> " + value(entry.read) + read_from;
    case LogEntry::Kind::kStore:
      return call + "(" + value(entry.written) + ", " + OrderName(entry.order) + ")";
    case LogEntry::Kind::kModify:
    case LogEntry::Kind::kAcquired:
      return call + "(" + OrderName(entry.order) + "): " + value(entry.read) + read_from + " -> " +
             value(entry.written);
    case LogEntry::Kind::kExchanged:
      return call + "(" + OrderName(entry.order) + "): " + value(entry.read) + read_from + " -> " +
             value(entry.written);
    case LogEntry::Kind::kNotExchanged:
      return call + "(" + OrderName(entry.order) + ") fails and reads " + value(entry.read) + read_from;
    case LogEntry::Kind::kBlocks:
      return call + "(" + value(entry.read) + ") blocks";
    case LogEntry::Kind::kNotify:
      return call + "() wakes " + std::to_string(entry.written);
    case LogEntry::Kind::kYields:
      return "yields";
    case LogEntry::Kind::kGoesOn:
      return "goes on, since " + on + " has changed";
    case LogEntry::Kind::kPlainRead:
      return "reads plain#" + std::to_string(entry.plain);
    case LogEntry::Kind::kPlainWrite:
      return "writes plain#" + std::to_string(entry.plain);
    case LogEntry::Kind::kDestroy:
      return "destroys " + (entry.location != nullptr ? on : "plain#" + std::to_string(entry.plain));
    case LogEntry::Kind::kChoice:
      return "chooses " + std::to_string(entry.written);
  }
  return "";
}

std::string ModelEngine::FormatLog() {
  pointers_.clear();
  std::ostringstream out;
  out << "execution " << result_.executions + result_.redundant_executions << ", replay with .replay = \""
      << result_.trail << "\"\n";
  std::size_t first = 0;
  if (log_.size() > kMaxLines) {
    first = log_.size() - kMaxLines;
    out << "  (" << first << " earlier operations are not shown)\n";
  }
  for (std::size_t i = first; i < log_.size(); ++i) {
    const LogEntry& entry = log_[i];
    out << "  " << i + 1 << "\t" << ThreadName(entry.thread) << "\t" << FormatEntry(entry);
    if (entry.site.file != nullptr) out << "\t" << LastPart(entry.site.file) << ":" << entry.site.line;
    out << "\n";
  }
  for (const ThreadState& thread : threads_) {
    if (!exploring_ || thread.index == kMainThread || thread.index >= thread_count_) continue;
    out << "  " << ThreadName(thread.index) << ": ";
    switch (thread.ended ? PendingKind::kNothing : thread.pending.kind) {
      case PendingKind::kNothing:
        out << (thread.ended ? "has ended" : "runs");
        break;
      case PendingKind::kBlocked:
        out << "waits for a notify of " << LocationName(*thread.pending.location);
        break;
      case PendingKind::kAcquirePermit:
        out << "acquires " << LocationName(*thread.pending.location);
        break;
      case PendingKind::kYield:
        out << "has yielded";
        break;
      default:
        out << (thread.index == current_thread_ ? "runs" : "is ready");
    }
    out << "\n";
  }
  return out.str();
}

// The public interface.

Model::~Model() = default;

void Model::Thread(const char* name, std::function<void()> run) {
  if (static_cast<int>(threads_.size()) + 1 >= kMaxThreads) {
    ModelEngine::Current().Fail(ModelFailure::kMisuse,
                                "a model has at most " + std::to_string(kMaxThreads - 1) + " threads");
  }
  threads_.push_back({.name = name, .run = std::move(run)});
}

void Model::After(std::function<void()> run) { after_.push_back(std::move(run)); }

bool Model::IsRedundant() const { return ModelEngine::Current().is_redundant(); }

void Model::DestroyObject(void* object) {
  for (auto it = objects_.rbegin(); it != objects_.rend(); ++it) {
    if (it->object != object) continue;
    it->object = nullptr;
    it->destroy(object);
    return;
  }
  ModelEngine::Current().Fail(ModelFailure::kUseAfterFree,
                              "Destroy of an object that Make has not made, or that was destroyed before");
}

void Model::Clear() {
  threads_.clear();
  after_.clear();
  // Newest first, like objects on a stack.
  for (auto it = objects_.rbegin(); it != objects_.rend(); ++it) {
    if (it->object != nullptr) it->destroy(it->object);
  }
  for (Object& object : objects_) object.release(object.memory);
  objects_.clear();
}

ModelResult CheckInterleavings(const ModelOptions& options, const std::function<void(Model&)>& test) {
  return ModelEngine(options, test).Run();
}

namespace {

// Runs the test unchanged, and returns the weakenings with which it can be run; none if it fails.
std::vector<ModelWeakening> WeakeningsOf(const ModelOptions& options, const std::function<void(Model&)>& test,
                                         ModelResult& unweakened) {
  std::vector<UsedOrder> used_orders;
  {
    ModelEngine engine(options, test);
    engine.used_orders = &used_orders;
    unweakened = engine.Run();
  }
  std::vector<ModelWeakening> weakenings;
  if (!unweakened.ok()) return weakenings;

  for (const UsedOrder& used : used_orders) {
    const auto add = [&](std::memory_order to) {
      weakenings.push_back({.file = std::string(LastPart(used.site.file)),
                            .line = used.site.line,
                            .function = used.site.function,
                            .operation = used.operation,
                            .on_failure = used.on_failure,
                            .from = used.order,
                            .to = to});
    };
    const bool reads_only =
        used.on_failure || std::strcmp(used.operation, "load") == 0 || std::strcmp(used.operation, "wait") == 0;
    const bool writes_only = std::strcmp(used.operation, "store") == 0;
    if (IsSeqCst(used.order)) {
      add(reads_only ? std::memory_order_acquire : writes_only ? std::memory_order_release : std::memory_order_acq_rel);
    } else if (used.order == std::memory_order_acq_rel) {
      add(std::memory_order_acquire);
      add(std::memory_order_release);
    } else {
      add(std::memory_order_relaxed);
    }
  }
  std::sort(weakenings.begin(), weakenings.end(), [](const ModelWeakening& a, const ModelWeakening& b) {
    return std::tie(a.file, a.line, a.operation, a.on_failure, a.to) <
           std::tie(b.file, b.line, b.operation, b.on_failure, b.to);
  });
  return weakenings;
}

ModelResult CheckWeakened(ModelOptions options, const std::function<void(Model&)>& test,
                          const ModelWeakening& weakening) {
  options.weakening = weakening;
  return CheckInterleavings(options, test);
}

}  // namespace

std::vector<ModelWeakenedResult> CheckEachWeakening(const ModelOptions& options,
                                                    const std::function<void(Model&)>& test) {
  std::vector<ModelWeakenedResult> results(1);
  for (ModelWeakening& weakening : WeakeningsOf(options, test, results.front().result)) {
    ModelResult result = CheckWeakened(options, test, weakening);
    results.push_back({.weakening = std::move(weakening), .result = std::move(result)});
  }
  return results;
}

ModelWeakeningReport FindUnnoticedWeakenings(const ModelOptions& options, const std::vector<ModelTest>& tests,
                                             std::string_view file) {
  struct Tried {
    ModelWeakening weakening;
    const char* noticed_by;
  };
  ModelWeakeningReport report;
  std::vector<Tried> all;
  for (const ModelTest& test : tests) {
    ModelResult unweakened;
    const std::vector<ModelWeakening> weakenings = WeakeningsOf(options, test.run, unweakened);
    if (!unweakened.ok()) {
      report.unweakened = std::move(unweakened);
      report.unweakened.message = std::string(test.name) + ": " + report.unweakened.message;
      return report;
    }
    for (const ModelWeakening& weakening : weakenings) {
      if (weakening.file != file) continue;
      auto found = std::find_if(all.begin(), all.end(), [&](const Tried& t) { return t.weakening == weakening; });
      if (found == all.end()) found = all.insert(all.end(), {.weakening = weakening, .noticed_by = nullptr});
      // One test that notices it is enough.
      if (found->noticed_by != nullptr) continue;
      if (!CheckWeakened(options, test.run, weakening).ok()) found->noticed_by = test.name;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Tried& a, const Tried& b) { return a.weakening.line < b.weakening.line; });
  std::ostringstream text;
  for (const Tried& tried : all) {
    ++report.weakenings;
    if (tried.noticed_by == nullptr) report.unnoticed.push_back(tried.weakening.Name());
    text << tried.weakening << ": " << (tried.noticed_by == nullptr ? "NOT NOTICED" : tried.noticed_by) << "\n";
  }
  report.text = text.str();
  return report;
}

void ModelYield() { ModelEngine::Current().Yield(); }

int ModelChoose(int count) { return ModelEngine::Current().ChooseValue(count); }

std::string_view ModelFailureName(ModelFailure failure) {
  switch (failure) {
    case ModelFailure::kNone:
      return "none";
    case ModelFailure::kAssertion:
      return "assertion";
    case ModelFailure::kDataRace:
      return "data race";
    case ModelFailure::kDeadlock:
      return "deadlock";
    case ModelFailure::kUseAfterFree:
      return "use after free";
    case ModelFailure::kStepLimit:
      return "step limit";
    case ModelFailure::kExecutionLimit:
      return "execution limit";
    case ModelFailure::kException:
      return "exception";
    case ModelFailure::kNotRepeatable:
      return "not repeatable";
    case ModelFailure::kMisuse:
      return "misuse";
  }
  return "?";
}

std::string ModelWeakening::Name() const {
  return function + " " + operation + (on_failure ? " (failure)" : "") + ": " + OrderName(from) + " -> " +
         OrderName(to);
}

std::ostream& operator<<(std::ostream& out, const ModelWeakening& weakening) {
  return out << weakening.file << ":" << weakening.line << " " << weakening.Name();
}

std::ostream& operator<<(std::ostream& out, const ModelResult& result) {
  out << (result.ok() ? "passed" : "failed: ") << (result.ok() ? "" : ModelFailureName(result.failure)) << ", "
      << result.executions << " executions, " << result.redundant_executions << " redundant, "
      << (result.complete ? "complete" : "not complete");
  if (!result.message.empty()) out << "\n" << result.message;
  return out;
}

namespace model_internal {

Handle NewLocation(uint64_t value, ValueType type) { return ModelEngine::Current().NewLocation(value, type); }

// A closure that outlives a failed check may destroy a variable late. That is ignored.
void EndLocation(const Handle& handle) {
  if (ModelEngine::current != nullptr) ModelEngine::current->EndLocation(handle);
}

void NameLocation(const Handle& handle, const char* name) { ModelEngine::Current().NameLocation(handle, name); }

uint64_t Load(const Handle& handle, std::memory_order order, ModelSite site) {
  return ModelEngine::Current().Load(handle, order, site);
}

void Store(const Handle& handle, uint64_t value, std::memory_order order, ModelSite site) {
  ModelEngine::Current().Store(handle, value, order, site);
}

uint64_t ReadModifyWrite(const Handle& handle, const char* name, Modify modify, uint64_t operand,
                         std::memory_order order, ModelSite site) {
  return ModelEngine::Current().ReadModifyWrite(handle, name, modify, operand, order, site);
}

bool CompareExchange(const Handle& handle, CompareExchangeKind kind, uint64_t& expected, uint64_t desired,
                     std::memory_order success, std::memory_order failure, ModelSite site) {
  return ModelEngine::Current().CompareExchange(handle, kind, expected, desired, success, failure, site);
}

void Wait(const Handle& handle, uint64_t old, std::memory_order order, ModelSite site) {
  ModelEngine::Current().Wait(handle, old, order, site);
}

void Notify(const Handle& handle, NotifyKind kind, ModelSite site) {
  ModelEngine::Current().Notify(handle, kind, site);
}

void AcquirePermit(const Handle& handle, ModelSite site) { ModelEngine::Current().AcquirePermit(handle, site); }

void NewPlain(PlainState& state) { ModelEngine::Current().NewPlain(state); }

void EndPlain(PlainState& state) {
  if (ModelEngine::current != nullptr) ModelEngine::current->EndPlain(state);
}

void PlainRead(PlainState& state) { ModelEngine::Current().PlainRead(state); }

void PlainWrite(PlainState& state) { ModelEngine::Current().PlainWrite(state); }

void FailAssertion(const char* expression, const char* file, int line, std::string message) {
  std::string text =
      "assertion failed at " + std::string(LastPart(file)) + ":" + std::to_string(line) + ": " + expression;
  if (!message.empty()) text += ": " + message;
  ModelEngine::Current().Fail(ModelFailure::kAssertion, std::move(text));
}

}  // namespace model_internal
}  // namespace fraktor::inline v0
