// The functions by which ModelAtomic, ModelPlain and ModelSemaphore call the model checker.
// Internal: users include interleaving.h.
//
// Every function acts for the running model thread, and must be called while CheckInterleavings
// runs. A function that performs a visible operation (on a location) may run other model threads
// before it returns. A function that finds a failure does not return.
#ifndef FRAKTOR_UTILS_TESTING_MODEL_ENGINE_H_
#define FRAKTOR_UTILS_TESTING_MODEL_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fraktor::inline v0 {

// A place in the source that calls an operation.
struct ModelSite {
  const char* file = nullptr;  // null if it is unknown (an operator)
  int line = 0;
  const char* function = nullptr;

  // The place of the caller, if it is a default argument.
  static constexpr ModelSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                                  const char* function = __builtin_FUNCTION()) {
    return {.file = file, .line = line, .function = function};
  }
};

namespace model_internal {

// The thread that sets up and ends an execution, and seven more.
inline constexpr int kMaxThreads = 8;

// The format of a value in the trail.
enum class ValueKind : uint8_t { kSigned, kUnsigned, kBool, kPointer };

struct ValueType {
  ValueKind kind;
  uint8_t bytes;
};

// Names an atomic of one execution.
struct Handle {
  uint32_t index = 0;
  uint32_t epoch = 0;  // the execution that it belongs to
};

Handle NewLocation(uint64_t value, ValueType type);
void EndLocation(const Handle& handle);
void NameLocation(const Handle& handle, const char* name);

uint64_t Load(const Handle& handle, std::memory_order order, ModelSite site);
void Store(const Handle& handle, uint64_t value, std::memory_order order, ModelSite site);

// Writes modify(value read, operand) and returns the value read.
using Modify = uint64_t (*)(uint64_t current, uint64_t operand);
uint64_t ReadModifyWrite(const Handle& handle, const char* name, Modify modify, uint64_t operand,
                         std::memory_order order, ModelSite site);

enum class CompareExchangeKind : uint8_t { kWeak, kStrong };
bool CompareExchange(const Handle& handle, CompareExchangeKind kind, uint64_t& expected, uint64_t desired,
                     std::memory_order success, std::memory_order failure, ModelSite site);

// std::atomic's wait and notify.
void Wait(const Handle& handle, uint64_t old, std::memory_order order, ModelSite site);
enum class NotifyKind : uint8_t { kOne, kAll };
void Notify(const Handle& handle, NotifyKind kind, ModelSite site);

// Waits until the value of the location is not 0, and decrements it: an acquire.
void AcquirePermit(const Handle& handle, ModelSite site);

// The state of a plain variable: the last write, and the last read of each thread since then.
struct PlainState {
  uint32_t epoch = 0;  // the execution that it belongs to; 0 if destroyed
  uint32_t id = 0;
  uint32_t write_clock = 0;
  uint32_t write_step = 0;
  int write_thread = 0;
  uint32_t read_clock[kMaxThreads] = {};
  uint32_t read_step[kMaxThreads] = {};
};

void NewPlain(PlainState& state);
void EndPlain(PlainState& state);
void PlainRead(PlainState& state);
void PlainWrite(PlainState& state);

[[noreturn]] void FailAssertion(const char* expression, const char* file, int line, std::string message);

}  // namespace model_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_MODEL_ENGINE_H_
