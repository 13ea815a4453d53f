// Simulate: runs a test with many schedules. Each schedule can be repeated.
//
//   TEST(Transfer, NeverLosesMoney) {
//     Simulate({.seeds = 100}, [](Simulation& sim) {
//       auto bank = sim.Spawn<Bank>();
//       Random random = sim.MakeRandom("transfers");
//       for (int i = 0; i < 100; ++i) bank.Tell(Transfer{random.UniformIn(1, 10)});
//       sim.Advance(absl::Minutes(1));
//       EXPECT_EQ(sim.AskAndWait(bank, GetTotal{}).value().total, 1000);
//     });
//   }
//
// A Simulation is a TestKit on a SimToolbox: one thread, virtual time, and a seed. The seed chooses
// which of the ready actors runs next, on how many workers, and for how many messages. All events
// go into a trace. The same seed gives the same trace hash, in every process. Each seed runs twice,
// and a difference is a failure that says where the two runs part. Then the scenario, or an actor,
// depends on something outside of the seed (an address, the order of a hash table, the real clock,
// std::shuffle, two draws in one argument list).
//
// The first seed that fails ends the test, and prints the line that repeats it:
//
//   FRAKTOR_SIM_SEED=17 bazel-bin/bank/transfer_test --gtest_filter=Transfer.NeverLosesMoney
//
// FRAKTOR_SIM_SEED runs that seed alone. FRAKTOR_SIM_SEEDS sets the number of seeds in place of the
// test. With sanitizers the number is a tenth of that of the test, at least 1, unless the variable
// is set.
//
// Other parts of the world (a network, a disk) are SimulationParts: they take chance from
// MakeRandom or Happens, time from the toolbox, and write their events into trace().
//
// Thread safety: one thread.
#ifndef FRAKTOR_ACTOR_TESTKIT_SIMULATION_H_
#define FRAKTOR_ACTOR_TESTKIT_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/testkit/actor_trace.h"
#include "fraktor/actor/testkit/test_failure.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/sim_trace.h"

namespace fraktor::inline v0 {

class Simulation;

// A part of the simulation that is no actor. It ends after all systems, and before the toolbox.
class SimulationPart {
 public:
  virtual ~SimulationPart() = default;
  // A line for the text of a failure: what the part has done. Empty for nothing.
  virtual std::string Describe() const { return {}; }
};

struct SimulationOptions {
  uint64_t seed = 1;
  // The workers of the default dispatcher, and the messages that an actor handles in a row. 0 lets
  // the seed choose.
  int workers = 0;
  int budget = 0;
  // The limit of steps in one call: see SimToolbox.
  int64_t max_steps = 1'000'000;
  // The number of events that are kept to find where two runs part.
  size_t history = size_t{1} << 20;
  TestKitOptions kit = {};
};

class Simulation final : public TestKit {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation() override;

  uint64_t seed() const { return toolbox().seed(); }
  SimToolbox& toolbox() const { return *sim_toolbox_; }
  SimTrace& trace() const { return toolbox().trace(); }
  ActorTrace& actors() { return *actors_; }

  // Returns a generator for one purpose. Each purpose has its own, so a new one does not change
  // others.
  Random MakeRandom(std::string_view purpose) const { return toolbox().MakeRandom(TraceKind(purpose)); }

  // Decides whether a fault happens now, with this probability. Each name has a generator of its
  // own. A fault goes into the trace, and is counted for the text of a failure.
  bool Happens(std::string_view fault, double probability);

  // Writes messages of type M into the trace with their contents. Integers, enums and strings need
  // no `hash`; for other types it must return the same value in every run.
  template <class M>
  void TracePayload() {
    static_assert(std::is_integral_v<M> || std::is_enum_v<M> || std::is_same_v<M, std::string>,
                  "say how it is hashed: TracePayload<M>([](const M& message) { ... })");
    TracePayload<M>([](const M& message) -> uint64_t {
      if constexpr (std::is_same_v<M, std::string>) {
        return TraceKind(message);
      } else {
        return static_cast<uint64_t>(message);
      }
    });
  }
  template <class M, class Hash>
  void TracePayload(Hash hash) {
    actors_->HashPayload(MessageTypeOf<M>(), [hash = std::move(hash)](const Envelope& message) -> uint64_t {
      return hash(message.As<M>());
    });
  }

  // Makes another system in the same simulation, as on another machine. The systems end with the
  // simulation, the latest first.
  TestKit& AddSystem(TestKitOptions options);

  template <class Part, class... Args>
  Part& AddPart(Args&&... args) {
    auto part = std::make_unique<Part>(std::forward<Args>(args)...);
    Part& added = *part;
    parts_.push_back(std::move(part));
    return added;
  }

  // Ends all systems, and completes the trace. Further calls do nothing.
  void Finish();

  std::string Surroundings() const override;
  std::vector<std::string> BusyActors() const override;

 private:
  struct Fault {
    explicit Fault(Random its_random) : random(its_random) {}
    Random random;
    uint64_t asked = 0;
    uint64_t happened = 0;
  };
  // The parts of the first system.
  struct Beginning {
    std::unique_ptr<SimToolbox> own;
    SimToolbox* toolbox;
    std::shared_ptr<ActorTrace> actors;
    TestKitOptions kit;
  };

  Simulation(Beginning beginning, std::nullptr_t);
  static Beginning Begin(const SimulationOptions& options);
  static void Trace(TestKitOptions& kit, const std::shared_ptr<ActorTrace>& actors);

  SimToolbox* const sim_toolbox_;
  const std::shared_ptr<ActorTrace> actors_;
  std::map<std::string, Fault, std::less<>> faults_;
  std::vector<std::unique_ptr<SimulationPart>> parts_;
  std::vector<std::unique_ptr<TestKit>> others_;
};

struct SimulateOptions {
  int seeds = 100;
  uint64_t first_seed = 1;
  // Runs each seed twice, and compares the traces.
  bool twice = true;
  // Compares only the first seed and the multiples of this number: for a scenario that takes long.
  uint64_t twice_every = 1;
  // The other options of each simulation. Simulate sets the seed.
  SimulationOptions each = {};
};

struct SimulateReport {
  // The hashes of the seeds, in the order of their runs.
  std::vector<uint64_t> hashes;
  // No expectation failed, and no seed gave two traces.
  bool ok = true;
};

// Runs the scenario with one seed after the other, until one fails.
SimulateReport Simulate(const SimulateOptions& options, absl::FunctionRef<void(Simulation&)> scenario,
                        TestLocation at = TestLocation::Here());

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_SIMULATION_H_
