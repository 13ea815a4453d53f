// Stranger: a thread that is no worker, and what it does to a system from outside.
//
// A thread makes a Stranger, calls DoSomething as often as it likes, and then Finish, which checks
// that each of its asks has ended.
//
// Thread safety: belongs to one thread.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_STRANGER_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_STRANGER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/storm/messages.h"
#include "fraktor/actor/testkit/storm/operation_table.h"
#include "fraktor/actor/testkit/storm/world.h"
#include "fraktor/actor/timer/system_timers.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::storm {

// Where the rows of strangers begin in World::CountOperation.
inline constexpr size_t kFirstStrangerRow = 128;

class Stranger {
 public:
  Stranger(World& world, uint64_t seed);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // Performs one random operation of the table.
  void DoSomething();
  // Ends the systems that it has begun, and waits for its asks.
  void Finish();

  // For the operations.
  World& world() { return world_; }
  Random& random() { return random_; }
  Acquaintance Anybody() { return world_.Anybody(random_); }
  Place NextPlace(const Acquaintance& to) {
    ++sent_;
    return to.is_unordered ? Place() : PlaceOf({.sender = id_, .number = sent_}, to.ref, false);
  }
  Question MakeQuestion(const Acquaintance& to) { return {world_.FreeToken(), NextPlace(to), random_.Next()}; }
  void Keep(Future<Answer> future);

  // A system beside the one under test. All actors may send to its actors.
  void BeginSystem();
  void EndSystem();

  std::vector<EventSubscription>& subscriptions() { return subscriptions_; }
  std::vector<Cancellable>& system_timers() { return system_timers_; }

 private:
  struct OtherSystem;

  // Whether a further ask ends, for the text of a violation.
  std::string DescribeAsking();

  World& world_;
  Random random_;
  const uint32_t id_;
  uint32_t sent_ = 0;
  std::vector<Future<Answer>> asks_;
  std::vector<EventSubscription> subscriptions_;
  std::vector<Cancellable> system_timers_;
  std::vector<std::unique_ptr<OtherSystem>> systems_;
};

struct StrangerOperation {
  std::string_view name;
  int weight;
  void (*perform)(Stranger& stranger);
};
const OperationTable<StrangerOperation>& StrangerOperations();

// How the systems of a storm are set up.
ActorSystemOptions StormySystem(RuntimeToolbox* toolbox, int workers);

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_STRANGER_H_
