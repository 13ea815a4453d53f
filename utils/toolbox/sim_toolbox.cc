#include "fraktor/utils/toolbox/sim_toolbox.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/sim_trace.h"

namespace fraktor::inline v0 {
namespace {

constexpr char kSeedVariable[] = "FRAKTOR_SIM_SEED";

constexpr uint64_t kStarted = TraceKind("worker.started");
constexpr uint64_t kStepped = TraceKind("worker.stepped");
constexpr uint64_t kWoken = TraceKind("worker.woken");
constexpr uint64_t kArmed = TraceKind("timer.armed");
constexpr uint64_t kFired = TraceKind("timer.fired");
constexpr uint64_t kCancelled = TraceKind("timer.cancelled");
constexpr uint64_t kChosen = TraceKind("chosen");

constexpr const char* kKinds[] = {"seed",        "worker.started", "worker.stepped",  "worker.woken",
                                  "timer.armed", "timer.fired",    "timer.cancelled", "chosen"};

// The schedule draws from a stream of its own, so it does not depend on the draws of the program.
constexpr uint64_t kScheduleStream = TraceKind("schedule");

}  // namespace

std::string SimTrace::Tail() const {
  std::string text;
  for (uint64_t i = events_ - std::min<uint64_t>(events_, kTail); i < events_; ++i) {
    const Event& event = tail_[i % kTail];
    const auto name = names_.find(event.kind);
    const auto described = descriptions_.find(event.kind);
    absl::StrAppendFormat(&text, "#%u at %dns %s: %s\n", i, event.nanoseconds,
                          name != names_.end() ? name->second : absl::StrFormat("kind %016x", event.kind),
                          described != descriptions_.end() ? described->second(event.a, event.b, event.c)
                                                           : absl::StrFormat("%u %u %u", event.a, event.b, event.c));
  }
  return text;
}

void SimTrace::Remember() {
  const size_t at = history_.size();
  if (at >= history_limit_) return;
  history_.push_back(hash_);
  if (at < other_.size() && other_[at] != hash_ && difference_.empty()) difference_ = Tail();
}

void SimTrace::CompareWith(std::vector<uint64_t> other) {
  other_ = std::move(other);
  KeepHistory(std::max(history_limit_, other_.size()));
}

absl::StatusOr<std::unique_ptr<SimToolbox>> SimToolbox::Make(const SimToolboxOptions& options) {
  Limits limits{.name = options.name,
                .max_workers = options.max_workers,
                .max_timers = options.max_timers,
                .max_steps = options.max_steps};
  absl::Status checked = CheckLimits(limits);
  if (!checked.ok()) return checked;
  return std::unique_ptr<SimToolbox>(new SimToolbox(options.seed, std::move(limits), options.wall_start));
}

SimToolbox::SimToolbox(uint64_t seed, Limits limits, absl::Time wall_start)
    : PumpedToolbox(seed, std::move(limits), wall_start, [this](uint64_t ordinal) { OnWoken(ordinal); }),
      thread_(std::this_thread::get_id()),
      schedule_(MakeRandom(kScheduleStream)),
      trace_(*this) {
  for (const char* const kind : kKinds) trace_.NameKind(kind);
  trace_.Record(TraceKind("seed"), seed);
}

absl::StatusOr<uint64_t> SimToolbox::SeedFromEnvironment(uint64_t fallback) {
  const char* text = std::getenv(kSeedVariable);
  if (text == nullptr) return fallback;
  uint64_t seed = 0;
  if (!absl::SimpleAtoi(text, &seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable ", kSeedVariable, " is \"", text, "\"; use a number from 0 to 2^64 - 1"));
  }
  return seed;
}

uint64_t SimToolbox::Choose(uint64_t n) {
  if (n < 2) return 0;
  const uint64_t choice = schedule_.Uniform(n);
  trace_.Record(kChosen, n, choice);
  return choice;
}

std::string SimToolbox::ReplayLine() const {
  return absl::StrFormat("%s=%u replays \"%s\": %u steps, %s, %u events, trace 0x%016x", kSeedVariable, seed(), name(),
                         steps(), absl::FormatDuration(Now() - Instant()), trace_.events(), trace_.hash());
}

size_t SimToolbox::PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) {
  return static_cast<size_t>(Choose(ordinals.size() + (timer_due ? 1 : 0)));
}

void SimToolbox::OnStarted(uint64_t ordinal) { trace_.Record(kStarted, ordinal); }

void SimToolbox::OnArmed(uint64_t ordinal, Instant deadline) {
  trace_.Record(kArmed, ordinal, static_cast<uint64_t>(deadline.nanoseconds()));
}

void SimToolbox::OnCancelled(uint64_t ordinal) { trace_.Record(kCancelled, ordinal); }

void SimToolbox::OnTurn(const Turn& turn) {
  trace_.Record(turn.is_timer ? kFired : kStepped, turn.ordinal, turn.outcome);
}

void SimToolbox::OnWoken(uint64_t ordinal) {
  if (std::this_thread::get_id() != thread_) {
    std::fprintf(stderr,
                 "fraktor: worker %llu of simulation \"%s\" is woken by another thread; such a run cannot be repeated. "
                 "Use LocalToolbox or "
                 "StdToolbox where other threads take part\n",
                 static_cast<unsigned long long>(ordinal), name().c_str());  // NOLINT(google-runtime-int): for printf
    std::abort();
  }
  trace_.Record(kWoken, ordinal);
}

std::string SimToolbox::OnRestless() {
  const std::string line = ReplayLine();
  std::fprintf(stderr, "%s\n", line.c_str());
  return absl::StrCat("; seed ", seed(), ". ", line);
}

}  // namespace fraktor::inline v0
