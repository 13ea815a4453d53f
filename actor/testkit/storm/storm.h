// Storm: a stress test that mixes every public operation of actor systems at random, in rounds.
//
//   StormReport report = RunStorm({.seed = 7, .rounds = 5});
//   EXPECT_TRUE(report.violations.empty());
//
// A round makes an actor system, lets several threads and the actors themselves perform random
// operations, waits until all is quiet, checks the invariants, ends the system, and checks that
// nothing is left of it. All choices follow from the seed; the interleaving of the threads does
// not, so a replay of a seed performs the same operations in another order.
//
// The invariants:
// - Every message is handled or a dead letter, exactly once, and messages of one sender keep their
//   order.
// - Every ask ends once. Every watch ends once, after the end of its target.
// - One thread at a time is inside an actor.
// - Every actor that lives when all is quiet still replies. Systems terminate. Each task of the
//   coordinated shutdown runs once, and in the order of the phases.
// - A listing of the receptionist names the registered actors that live. Each transition of a state
//   machine begins where the one before ended.
// - Nothing is left after a round: messages, actors, coroutines, slots and nodes are back where
//   they were before the round.
// - The heap and the chunks of slots stop growing. A warm-up fills most of what the process keeps,
//   such as the limits of each slot, which goes on to grow more and more slowly. From then on the
//   least heap of the latest kTrendWindow rounds is at most kHeapSlack + kHeapPerRound * d above
//   the least heap of as many rounds, d rounds before. The chunks have limits of the same form.
//   Sanitizers do not tell the size of the heap.
//
// A fifth of the rounds end abruptly: Shutdown while everybody is busy. Then not everybody can be
// heard at the end, and messages to a system that has ended are counted instead of published. All
// other invariants hold, and after the end nobody lives, and asks and spawns fail at once.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_STORM_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_STORM_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fraktor::storm {

// Rounds whose footprint is not looked at, and the length of a window.
inline constexpr int kWarmUpRounds = 10;
inline constexpr int kTrendWindow = 5;  // One round of each ending.
inline constexpr int64_t kHeapSlack = int64_t{512} << 10;
inline constexpr int64_t kHeapPerRound = int64_t{8} << 10;
inline constexpr int64_t kChunkSlack = 2;
inline constexpr int64_t kRoundsPerChunk = 32;

struct StormOptions {
  uint64_t seed = 1;
  // Far enough beyond the warm-up to find a leak of 64 bytes in each ask.
  int rounds = kWarmUpRounds + 4 * kTrendWindow;
  // Ends after the round in which so much time has passed, instead of after `rounds`. Zero: after
  // `rounds`.
  absl::Duration time = absl::ZeroDuration();
  // Threads besides the workers, and the operations that each of them performs in a round.
  int strangers = 3;
  int operations = 3000;
  // Workers of the default pool. 0: one to four, which the seed of the round decides.
  int workers = 0;
  // Operations that are left out, by their names in the tables of operations.
  std::set<std::string, std::less<>> skipped = {};
  // Prints a line for each round.
  bool is_verbose = false;
};

struct StormReport {
  int rounds = 0;
  int64_t operations = 0;
  int64_t messages = 0;
  // Each names the seed, the round and the invariant.
  std::vector<std::string> violations;
};

// Ends after the first round that broke an invariant.
StormReport RunStorm(const StormOptions& options);

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_STORM_H_
