// How long a program of actors takes, and how often it runs.
#ifndef FRAKTOR_BENCHMARKS_MEASURING_PROGRAM_TIME_H_
#define FRAKTOR_BENCHMARKS_MEASURING_PROGRAM_TIME_H_

#include <time.h>

#include <chrono>

#include "benchmark/benchmark.h"

namespace fraktor::inline v0 {

using ProgramClock = std::chrono::steady_clock;

inline double Seconds(ProgramClock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// What the process has used of processors.
inline double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A program runs once per process, as long as it takes: the more often pools are used, the more they are shuffled, and
// what a second run measures is mostly the cache. `tools/bench` gives each benchmark a process of its own.
inline void Once(benchmark::internal::Benchmark* benchmark) { benchmark->UseManualTime()->Iterations(1); }

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_BENCHMARKS_MEASURING_PROGRAM_TIME_H_
