// SimTrace: a running hash of all events of a simulation, so that two runs can be compared by one
// number.
//
//   toolbox.trace().Record(TraceKind("message.delivered"), receiver.ordinal, sender.ordinal, size);
//   EXPECT_EQ(first.trace().hash(), second.trace().hash());
//
// An event is (virtual time, kind, three numbers). The numbers must be the same in every run of a
// seed: ordinals, sizes, hashes of names and of encoded payloads. They must not be addresses,
// generations, uids, std or absl hashes, or anything from the real clock.
//
// Thread safety: only the simulation's thread.
#ifndef FRAKTOR_UTILS_TOOLBOX_SIM_TRACE_H_
#define FRAKTOR_UTILS_TOOLBOX_SIM_TRACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// A number for a name, the same everywhere (FNV-1a of its bytes). The compiler computes it for
// literals.
constexpr uint64_t TraceKind(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

class SimTrace {
 public:
  explicit SimTrace(const RuntimeToolbox& clock) : clock_(clock) {}
  SimTrace(const SimTrace&) = delete;
  SimTrace& operator=(const SimTrace&) = delete;

  void Record(uint64_t kind, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
    const Event event{clock_.Now().nanoseconds(), kind, a, b, c};
    hash_ = Chain(hash_, static_cast<uint64_t>(event.nanoseconds));
    hash_ = Chain(hash_, kind);
    hash_ = Chain(hash_, a);
    hash_ = Chain(hash_, b);
    hash_ = Chain(hash_, c);
    tail_[events_++ % kTail] = event;
    if (history_limit_ != 0) [[unlikely]]
      Remember();
  }

  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }

  // The last events, at most 32, one per line, to find where two runs differ.
  std::string Tail() const;

  // Makes Tail print the name of a kind instead of its number.
  void NameKind(std::string_view name) { names_.emplace(TraceKind(name), name); }
  // Makes Tail print the name of a kind, and the result of `describe` instead of the three numbers.
  using Describe = std::function<std::string(uint64_t a, uint64_t b, uint64_t c)>;
  void DescribeKind(std::string_view name, Describe describe) {
    NameKind(name);
    descriptions_.insert_or_assign(TraceKind(name), std::move(describe));
  }

  // Keeps the hash after each of the next `limit` events, to compare another run with it.
  void KeepHistory(size_t limit) { history_limit_ = limit; }
  const std::vector<uint64_t>& history() const { return history_; }

  // Compares each event from now on with the history of another run. Both must record from their
  // first event on. At the first difference the tail is kept; its last line is the event that
  // differs.
  void CompareWith(std::vector<uint64_t> other);
  // Empty if there was no difference so far, as far as the history of the other run goes.
  const std::string& difference() const { return difference_; }

 private:
  static constexpr size_t kTail = 32;

  struct Event {
    int64_t nanoseconds = 0;
    uint64_t kind = 0;
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t c = 0;
  };

  // Depends on the order of the values, and every value changes the hash.
  static constexpr uint64_t Chain(uint64_t hash, uint64_t value) {
    return MixBits(hash * 0x9e3779b97f4a7c15 + MixBits(value + 0x9e3779b97f4a7c15));
  }

  void Remember();

  const RuntimeToolbox& clock_;
  uint64_t hash_ = 0;
  uint64_t events_ = 0;
  std::array<Event, kTail> tail_;
  std::map<uint64_t, std::string> names_;
  std::map<uint64_t, Describe> descriptions_;
  size_t history_limit_ = 0;
  std::vector<uint64_t> history_;
  std::vector<uint64_t> other_;
  std::string difference_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_SIM_TRACE_H_
