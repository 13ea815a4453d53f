// Routers of every kind, as children and as targets.
#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/router/router.h"
#include "fraktor/actor/router/routing_logic.h"
#include "fraktor/actor/testkit/storm/citizens.h"
#include "fraktor/actor/testkit/storm/person.h"

namespace fraktor::storm {
namespace {

// A router that asks its routees one after the other keeps a copy for the next one. If an actor
// tells a router that asks, the router asks in its own turn.
Acquaintance AsAcquaintance(Deed& deed, ActorRef router, const RouterStrategy& strategy) {
  const bool is_chopping = strategy.kind() == RoutingKind::kTailChopping;
  return {.ref = router,
          .is_free = is_chopping || &deed.context.system() != &deed.world().system(),
          .is_unordered = is_chopping || strategy.kind() == RoutingKind::kScatterGather};
}

// Chooses in every way, also those that are errors.
class WildLogic final : public RoutingLogic {
 public:
  RoutingChoice Choose(const RoutingCall& call) const override {
    const size_t routees = call.routees().size();
    switch (call.random() % 12) {
      case 0:
        throw std::runtime_error("a logic throws");
      case 1:
        return RoutingChoice::One(routees);
      case 2:
        return RoutingChoice::Nobody();
      case 3:
        return RoutingChoice::All();
      case 4:
        return RoutingChoice::Several({0, routees - 1, 0});
      case 5:
        return RoutingChoice::Several({});
      default:
        return RoutingChoice::One((call.key().has_value() ? *call.key() : call.ticket()) % routees);
    }
  }
};

RouterStrategy RandomStrategy(Random& random) {
  switch (random.Uniform(8)) {
    case 7:
      return RouterStrategy::Using<WildLogic>();
    case 0:
      return RouterStrategy::RoundRobin();
    case 1:
      return RouterStrategy::Random();
    case 2:
      return RouterStrategy::Broadcasting();
    case 3:
      return RouterStrategy::SmallestMailbox();
    case 4:
      return RouterStrategy::ConsistentHashing({.virtual_nodes = 4});
    case 5:
      return RouterStrategy::ScatterGather({.within = absl::Milliseconds(10)});
    default:
      return RouterStrategy::TailChopping({.within = absl::Milliseconds(10), .interval = absl::Milliseconds(2)});
  }
}

// Routers of routers copy a message more and more often. A supervisor may pass a message on to an
// actor that also gets messages directly, so the message loses its place.
bool MayBeRoutee(const Acquaintance& actor) {
  return (actor.ref.word() & ActorRef::kRouter) == 0 && !actor.ref.IsNoOne() && !actor.is_free && !actor.is_unordered;
}

absl::Status SpawnAPool(Deed& deed) {
  if (!deed.world().HasRoom()) return absl::OkStatus();
  PoolOptions options{.strategy = RandomStrategy(deed.random), .size = static_cast<int>(1 + deed.random.Uniform(4))};
  if (deed.random.Bernoulli(0.3)) options.resizer = PressureResizerOptions{.lower_bound = 1, .upper_bound = 6};
  if (deed.random.Bernoulli(0.5)) options.supervision = SupervisorStrategyOptions{};
  const PropsPtr pool = MakePool(options, *MakeRoutee(deed.world(), deed.random)).value();
  const absl::StatusOr<ActorRef> router = deed.context.TrySpawn(*pool, RandomName(deed.random));
  CheckSpawned(deed.world(), router.status());
  if (router.ok()) deed.world().Meet(deed.random, AsAcquaintance(deed, *router, options.strategy));
  return absl::OkStatus();
}

absl::Status SpawnAGroup(Deed& deed) {
  if (!deed.world().HasRoom()) return absl::OkStatus();
  GroupOptions options{.strategy = RandomStrategy(deed.random)};
  for (uint64_t i = deed.random.Uniform(4); i > 0; --i) {
    const Acquaintance routee = deed.Anybody();
    if (MayBeRoutee(routee)) options.routees.push_back(routee.ref);
  }
  const PropsPtr group = MakeGroup(options).value();
  const absl::StatusOr<ActorRef> router = deed.context.TrySpawn(*group, RandomName(deed.random));
  CheckSpawned(deed.world(), router.status());
  if (router.ok()) deed.world().Meet(deed.random, AsAcquaintance(deed, *router, options.strategy));
  return absl::OkStatus();
}

// To routers these are commands or wrapped messages; to others they are unhandled.
absl::Status BroadcastLetter(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.context.Tell(to.ref, Broadcast(Letter{deed.world().MakeToken(to), {}}));
  return absl::OkStatus();
}

absl::Status TellKeyedLetter(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.context.Tell(to.ref, Keyed(deed.random.Uniform(5), Letter{deed.world().MakeToken(to), {}}));
  return absl::OkStatus();
}

absl::Status ManageRouter(Deed& deed) {
  const ActorRef router = deed.Anybody().ref;
  switch (deed.random.Uniform(4)) {
    case 0:
      deed.context.Tell(router, AdjustPoolSize{deed.random.UniformIn(-2, 2)});
      return absl::OkStatus();
    case 1: {
      const Acquaintance routee = deed.Anybody();
      if (MayBeRoutee(routee)) deed.context.Tell(router, AddRoutee{routee.ref});
      return absl::OkStatus();
    }
    case 2:
      deed.context.Tell(router, RemoveRoutee{deed.Anybody().ref});
      return absl::OkStatus();
    default:
      deed.context.Ask<Routees>(router, GetRoutees{}, absl::Milliseconds(5)).Cancel();
      return absl::OkStatus();
  }
}

}  // namespace

std::vector<ActorOperation> RouterOperations() {
  return {
      {"spawn a pool", 2, &SpawnAPool},
      {"spawn a group", 2, &SpawnAGroup},
      {"broadcast a letter", 2, &BroadcastLetter},
      {"tell a keyed letter", 2, &TellKeyedLetter},
      {"manage a router", 3, &ManageRouter},
  };
}

}  // namespace fraktor::storm
