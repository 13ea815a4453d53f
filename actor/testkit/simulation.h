// Simulate: a test that is run with many schedules, each of which can be run again.
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
// A Simulation is a TestKit on a SimToolbox: one thread, virtual time, and a seed that chooses who of those that are
// ready runs next, on how many workers, and for how many messages. Everything that happens goes into a trace: the same
// seed gives the same trace hash, in every process. Each seed is run twice, and a difference is a failure that says
// where the two runs part: then the scenario, or an actor, depends on something that is not the seed's (an address, the
// order of a hash table, the real clock, std::shuffle, two draws in one argument list).
//
// The first seed that fails ends the test, with the one line that runs it again:
//
//   FRAKTOR_SIM_SEED=17 bazel-bin/bank/transfer_test --gtest_filter=Transfer.NeverLosesMoney
//
// FRAKTOR_SIM_SEED runs that seed alone. FRAKTOR_SIM_SEEDS runs so many instead of what the test says: 1000 on request.
// With sanitizers it is a tenth of what the test says, 1 at least, unless the variable is set.
//
// Parts of the world (a network, a disk) are SimulationParts: they take chance from MakeRandom or Happens, time from
// the toolbox, and write what they do into trace().
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

// Something besides actors that takes part. It ends when all systems have, and before the toolbox.
class SimulationPart {
 public:
  virtual ~SimulationPart() = default;
  // For the text of a failure: what it has done, in a line; empty for nothing.
  virtual std::string Describe() const { return {}; }
};

struct SimulationOptions {
  uint64_t seed = 1;
  // Of the default pool, and how many messages an actor handles in a row; 0: the seed says.
  int workers = 0;
  int budget = 0;
  // Steps that one call may take: see SimToolbox.
  int64_t max_steps = 1'000'000;
  // So many events are kept to find out where two runs part.
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

  // A generator for one purpose. Others draw from others, so that a new one changes nothing for them.
  Random MakeRandom(std::string_view purpose) const { return toolbox().MakeRandom(TraceKind(purpose)); }

  // Whether a fault happens now, which it does with this probability. Each name draws from a generator of its own; what
  // happens goes into the trace, and is counted for the text of a failure.
  bool Happens(std::string_view fault, double probability);

  // Messages of type M go into the trace with their contents: of integers, enums and strings by themselves, of others
  // by what `hash` says, which must be the same in every run.
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

  // Another system in the same simulation, as on another machine. Ends with the simulation, the latest first.
  TestKit& AddSystem(TestKitOptions options);

  template <class Part, class... Args>
  Part& AddPart(Args&&... args) {
    auto part = std::make_unique<Part>(std::forward<Args>(args)...);
    Part& added = *part;
    parts_.push_back(std::move(part));
    return added;
  }

  // Ends all systems; then the trace is complete. Further calls do nothing.
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
  // What the first system is made of.
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
  // Each seed twice, and their traces compared.
  bool twice = true;
  // If so, then only the first seed and those that are multiples of this: for a scenario that takes long.
  uint64_t twice_every = 1;
  // The rest of what each simulation is like; its seed is set.
  SimulationOptions each = {};
};

struct SimulateReport {
  // Of the seeds that were run, in order.
  std::vector<uint64_t> hashes;
  // No expectation failed, and no seed gave two traces.
  bool ok = true;
};

// Runs the scenario with one seed after the other, until one fails.
SimulateReport Simulate(const SimulateOptions& options, absl::FunctionRef<void(Simulation&)> scenario,
                        TestLocation at = TestLocation::Here());

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_SIMULATION_H_
