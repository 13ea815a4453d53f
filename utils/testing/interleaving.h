// A model checker for code made of atomics: runs a test of a few threads in every way that the
// memory model allows.
//
//   ModelResult result = CheckInterleavings({}, [](Model& m) {
//     auto& data = m.Make<ModelPlain<int>>(0);
//     auto& ready = m.Make<ModelAtomic<bool>>(false);
//     m.Thread("writer", [&] {
//       data = 42;
//       ready.store(true, std::memory_order_release);     // with relaxed, the checker reports the data race
//     });
//     m.Thread("reader", [&] {
//       while (!ready.load(std::memory_order_acquire)) ModelYield();
//       MODEL_ASSERT(data == 42);
//     });
//   });
//   EXPECT_TRUE(result.ok()) << result;
//
// The checker calls the function once per execution. The function makes the variables, adds the
// threads, and returns. Then the threads run, each on a stack of its own, one at a time. Where
// several things could happen (which thread runs next, which of several stores a load sees) the
// checker chooses one, and explores the others in further executions until none is left. It uses no
// time, no addresses and no random numbers: it explores the same code in the same order.
//
// It reports: a failed MODEL_ASSERT; a data race on a ModelPlain; a deadlock, which is what a lost
// wake-up looks like; a variable that is used after it was destroyed, or destroyed while a use is
// not ordered before; a thread that never ends; an exception that leaves a thread. The result then
// shows every operation of that execution, and a `trail`: CheckInterleavings({.replay = "..."},
// ...) runs just that execution again, for a debugger.
//
// Rules for the code under test
// - Threads must share only model variables. The checker skips interleavings that differ only in
//   the order of steps which share no model variable; an ordinary variable would see one of these
//   orders, and not the others. A variable that one thread writes and only m.After() reads may be
//   ordinary.
// - Nothing may depend on the addresses that malloc returns, on the clock, or on anything else that
//   differs between two runs. If the same choices lead to a different execution, that is a failure
//   (kNotRepeatable).
// - A loop that waits for another thread calls ModelYield() in each round that found nothing. Any
//   other loop must end by itself.
// - A thread may allocate and free. To have the checker report a use after free instead of
//   committing one, make objects with m.Make() and end them with m.Destroy(): their memory stays
//   until the end of the execution.
//
// The memory model
//
// Vector clocks keep the view of each thread, and each atomic has the history of its stores. A load
// may see any store that is not older than one which it, or something that happens before it, has
// seen or made.
// - Release, acquire, relaxed, release sequences (continued by read-modify-writes only), coherence:
//   as in C++20. Consume is acquire. There are no fences.
// - A read-modify-write reads the last store. A compare_exchange that fails may read an older store
//   that differs from the expected value. Spurious failures are explored as far as
//   max_spurious_failures allows.
// - The modification order of an atomic is the order in which its stores are executed, and so is
//   the total order of the sequentially consistent operations. A sequentially consistent load sees
//   no store older than the last one that a sequentially consistent operation on this atomic has
//   made or seen.
//
// So C++20 allows every explored execution: there are no false alarms. The checker does not explore
// executions that C++20 allows only with a cycle of sequenced-before, reads-from, modification
// order and total order of sequentially consistent operations:
// - load buffering (each of two relaxed loads sees the store after the other one), and values out
//   of thin air;
// - relaxed or release stores that enter the modification order before one that was executed
//   earlier, as in 2+2W;
// - the executions that C++20 newly allows where sequentially consistent and weaker operations on
//   one atomic are mixed (the total order need not respect happens-before). Operations that are all
//   sequentially consistent are exact.
//
// Cost: about two microseconds for an execution of two threads with six operations each in an
// optimized build, and ten to fifteen otherwise. The number of executions grows exponentially with
// operations on the same atomics: two or three threads with up to ten operations each are usual.
//
// Thread safety: CheckInterleavings runs on the thread that calls it. Several may run at the same
// time on several threads, but none inside another.
#ifndef FRAKTOR_UTILS_TESTING_INTERLEAVING_H_
#define FRAKTOR_UTILS_TESTING_INTERLEAVING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fraktor/utils/testing/model_atomic.h"
#include "fraktor/utils/testing/model_engine.h"

namespace fraktor::inline v0 {

// A memory order in the source that the check makes one step weaker.
struct ModelWeakening {
  std::string file;  // the last part of the path: "inbox.h"
  int line = 0;
  std::string function;     // "Push"
  std::string operation;    // "load", "store", "exchange", "fetch_add", "compare_exchange", ...
  bool on_failure = false;  // of a compare_exchange: whether this is the order of its failure
  std::memory_order from = std::memory_order_seq_cst;
  std::memory_order to = std::memory_order_seq_cst;

  friend bool operator==(const ModelWeakening&, const ModelWeakening&) = default;
  friend std::ostream& operator<<(std::ostream& out, const ModelWeakening& weakening);

  // Without the line, so that it survives an edit: "Push compare_exchange (failure): acquire ->
  // relaxed".
  std::string Name() const;
};

struct ModelOptions {
  // The number of executions after which the check gives up, including redundant ones. That is a
  // failure (kExecutionLimit) unless allow_incomplete is set.
  int64_t max_executions = 2'000'000;
  bool allow_incomplete = false;

  // The number of operations in one execution, including accesses to plain variables, after which
  // the execution counts as endless (kStepLimit).
  int max_steps = 5'000;

  // If set, the check explores only executions with at most this many preemptions: switches away
  // from a thread that could go on. Most bugs need one or two. Turns the reduction off, which is
  // not sound together with a bound, so try without a bound first.
  std::optional<int> preemption_bound = std::nullopt;

  // How many times in an execution a compare_exchange_weak fails although it could succeed.
  int max_spurious_failures = 0;

  // Explores only one of several interleavings that differ only in the order of independent
  // operations. Tests of the checker turn it off.
  bool reduce = true;

  // Runs one execution: the trail of an earlier result with otherwise equal options.
  std::string replay = {};

  // See CheckEachWeakening.
  std::optional<ModelWeakening> weakening = std::nullopt;
};

enum class ModelFailure : uint8_t {
  kNone,
  kAssertion,       // a MODEL_ASSERT
  kDataRace,        // accesses to a ModelPlain, or to an atomic and its construction, that nothing orders
  kDeadlock,        // at least one thread waits, and none can go on
  kUseAfterFree,    // a destroyed variable is used, or a variable is destroyed that may still be in use
  kStepLimit,       // max_steps
  kExecutionLimit,  // max_executions
  kException,       // an exception left a thread
  kNotRepeatable,   // the same choices led to a different execution, or `replay` does not fit
  kMisuse,          // an order that an operation does not take, more than seven threads, ...
};
std::string_view ModelFailureName(ModelFailure failure);

class ModelResult {
 public:
  // True if every execution was explored (or allow_incomplete or replay is set), and none failed.
  bool ok() const { return failure == ModelFailure::kNone; }

  ModelFailure failure = ModelFailure::kNone;
  std::string message;  // the failure, and each operation of the execution that failed
  std::string trail;    // for ModelOptions::replay

  // The number of executions that differ in more than the order of independent operations. With a
  // failure, up to and including it.
  int64_t executions = 0;
  // The number of executions that turned out, in the end, to equal an earlier one: the reduction
  // could not avoid them.
  int64_t redundant_executions = 0;
  // True if nothing is left to explore.
  bool complete = false;

  friend std::ostream& operator<<(std::ostream& out, const ModelResult& result);
};

// One execution, during its setup.
class Model {
 public:
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  // Makes an object that lives until the end of the execution, or until Destroy.
  template <typename T, typename... Args>
  T& Make(Args&&... args) {
    void* memory = ::operator new (sizeof(T), std::align_val_t{alignof(T)});
    T* object = ::new (memory) T(std::forward<Args>(args)...);
    objects_.push_back({.memory = memory,
                        .object = object,
                        .destroy = [](void* p) { static_cast<T*>(p)->~T(); },
                        .release = [](void* p) { ::operator delete (p, std::align_val_t{alignof(T)}); }});
    return *object;
  }

  // Destroys an object that Make has made, from any model thread.
  template <typename T>
  void Destroy(T& object) {
    DestroyObject(&object);
  }

  // Adds a thread, up to seven. Everything before is ordered before it.
  void Thread(std::function<void()> run) { Thread(nullptr, std::move(run)); }
  void Thread(const char* name, std::function<void()> run);

  // Runs after all threads have ended, and is ordered after them.
  void After(std::function<void()> run);

  // For After: true if this execution differs from an earlier one only in the order of independent
  // operations. It still runs to its end; code that counts or collects may skip it.
  bool IsRedundant() const;

 private:
  friend class ModelEngine;
  struct Object {
    void* memory;
    void* object;  // null after it was destroyed
    void (*destroy)(void*);
    void (*release)(void*);
  };
  struct ModelThread {
    const char* name;
    std::function<void()> run;
  };

  Model() = default;
  void DestroyObject(void* object);
  void Clear();

  std::vector<ModelThread> threads_;
  std::vector<std::function<void()>> after_;
  std::vector<Object> objects_;
};

// Explores the executions of `test` until one fails.
ModelResult CheckInterleavings(const ModelOptions& options, const std::function<void(Model&)>& test);

// One of the runs of CheckEachWeakening.
struct ModelWeakenedResult {
  ModelWeakening weakening;
  ModelResult result;
};

// Tells which memory orders a test depends on. Runs the test unchanged. If that passes, runs it
// again for each order of each operation in the source, with this order one step weaker (seq_cst,
// acq_rel, acquire or release, relaxed). If all these runs fail, the test would notice any such
// mistake. A weakening that still passes means that the order is stronger than needed, or that the
// test lacks a case.
//
// Operations are identified by file, line and name; operators are left out. The first element is
// the run without a weakening (`from` and `to` are equal); it is the only element if it failed.
std::vector<ModelWeakenedResult> CheckEachWeakening(const ModelOptions& options,
                                                    const std::function<void(Model&)>& test);

// The result of FindUnnoticedWeakenings.
struct ModelWeakeningReport {
  // A test that failed without a weakening; the other members have no meaning then.
  ModelResult unweakened;
  // The number of weakenings that were tried.
  int weakenings = 0;
  // ModelWeakening::Name() of the weakenings with which every test still passes, by line.
  std::vector<std::string> unnoticed;
  // A line for each weakening: which test failed with it.
  std::string text;
};

struct ModelTest {
  const char* name;
  std::function<void(Model&)> run;
};

// Runs CheckEachWeakening for each of the tests, and for each memory order in the file whose last
// part is `file`.
ModelWeakeningReport FindUnnoticedWeakenings(const ModelOptions& options, const std::vector<ModelTest>& tests,
                                             std::string_view file);

// A model thread calls this in each round of a loop that waits. The thread goes on only when
// another thread has changed a variable that it has read since its last yield, and then it sees at
// least one such value. So loops end without a fair scheduler, and nothing is lost if a round
// without news has no effect.
void ModelYield();

// Explores every value from 0 to count - 1.
int ModelChoose(int count);

// Ends the check with a failure if the condition is false. An optional second argument is a
// message: anything that converts to std::string.
#define MODEL_ASSERT(condition, ...) \
  (static_cast<bool>(condition)      \
       ? static_cast<void>(0)        \
       : ::fraktor::model_internal::FailAssertion(#condition, __FILE__, __LINE__, ::std::string{__VA_ARGS__}))

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_INTERLEAVING_H_
