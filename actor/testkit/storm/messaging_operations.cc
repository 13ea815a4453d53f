// Messages of actors: letters of all sizes, acts, events, and messages that end their recipient.
#include <stdexcept>
#include <utility>

#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_subscriber.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/testkit/storm/person.h"

namespace fraktor::storm {
namespace {

absl::Status TellLetters(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  // Sometimes more than an outbox chains.
  const uint64_t count = 1 + deed.random.Uniform(deed.random.Uniform(20) == 0 ? 100 : 4);
  for (uint64_t i = 0; i < count; ++i) {
    deed.context.Tell(to.ref, Letter{deed.world().MakeToken(to), deed.person.life().NextPlace(to)});
  }
  return absl::OkStatus();
}

absl::Status TellBulky(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.context.Tell(to.ref, Bulky{deed.world().MakeToken(to), deed.person.life().NextPlace(to)});
  return absl::OkStatus();
}

absl::Status TellParcel(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.context.Tell(to.ref, Parcel{deed.world().MakeToken(to), deed.person.life().NextPlace(to)});
  return absl::OkStatus();
}

absl::Status TellUrgent(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.context.Tell(to.ref, Urgent{deed.world().MakeToken(to)});
  return absl::OkStatus();
}

absl::Status TryTellLetter(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  deed.context.TryTell(to.ref, Letter{deed.world().MakeToken(to), deed.person.life().NextPlace(to)}).IgnoreError();
  if (deed.random.Bernoulli(0.5)) deed.context.Flush();
  return absl::OkStatus();
}

// Many messages to one actor, by ways that must not overtake each other. They fill a small mailbox.
absl::Status TellInAllWays(Deed& deed) {
  const Acquaintance to = deed.Anybody();
  for (uint64_t count = 8 + deed.random.Uniform(24); count > 0; --count) {
    const Place place = deed.person.life().NextPlace(to);
    switch (deed.random.Uniform(5)) {
      case 0:
        deed.context.Tell(to.ref, Bulky{deed.world().MakeToken(to), place});
        break;
      case 1:
        deed.context.TryTell(to.ref, Letter{deed.world().MakeToken(to), place}).IgnoreError();
        break;
      case 2: {
        Question question{deed.world().FreeToken(), place, deed.random.Next()};
        deed.context.Ask<Answer>(to.ref, std::move(question), absl::Milliseconds(3)).Cancel();
        break;
      }
      default:
        deed.context.Tell(to.ref, Letter{deed.world().MakeToken(to), place});
    }
  }
  return absl::OkStatus();
}

absl::Status TellSelf(Deed& deed) {
  const Acquaintance self{deed.context.self()};
  deed.context.Tell(self.ref, Letter{deed.world().MakeToken(self), deed.person.life().NextPlace(self)});
  return absl::OkStatus();
}

absl::Status RelayActs(Deed& deed) {
  for (int i = 0; i < 3; ++i) {
    const Acquaintance to = deed.Anybody();
    if (to.is_free || to.ref.IsNoOne() || !deed.world().TakeAct()) continue;
    deed.context.Tell(to.ref, Act{deed.world().MakeToken(to), deed.random.Next()});
  }
  return absl::OkStatus();
}

absl::Status TellSelection(Deed& deed) {
  static constexpr const char* kTexts[] = {"../*", "*", "/user/c1", "/user/c?", "c3", "../c2/*", "/user/no/such/actor"};
  const char* const text = kTexts[deed.random.Uniform(std::size(kTexts))];
  Select(deed.context, text).Tell(Letter{deed.world().FreeToken(), {}});
  return absl::OkStatus();
}

absl::Status PublishGust(Deed& deed) {
  deed.context.system().events().Publish(Gust{deed.random.Next()});
  return absl::OkStatus();
}

absl::Status SubscribeToGusts(Deed& deed) {
  SubscribeActor<Gust>(deed.context.system().events(), deed.context.self()).IgnoreError();
  return absl::OkStatus();
}

absl::Status UnsubscribeFromGusts(Deed& deed) {
  UnsubscribeActor<Gust>(deed.context.system().events(), deed.context.self());
  return absl::OkStatus();
}

absl::Status TellPoisonPill(Deed& deed) {
  deed.context.Tell(deed.Anybody().ref, PoisonPill{});
  return absl::OkStatus();
}

absl::Status TellKill(Deed& deed) {
  deed.context.Tell(deed.Anybody().ref, Kill{});
  return absl::OkStatus();
}

absl::Status TellIdentify(Deed& deed) {
  deed.context.Tell(deed.Anybody().ref, Identify{deed.random.Next()});
  return absl::OkStatus();
}

}  // namespace

std::vector<ActorOperation> MessagingOperations() {
  return {
      {"tell letters", 12, &TellLetters},
      {"tell a bulky letter", 3, &TellBulky},
      {"tell a parcel", 3, &TellParcel},
      {"tell an urgent message", 2, &TellUrgent},
      {"try to tell", 4, &TryTellLetter},
      {"tell in all ways", 4, &TellInAllWays},
      {"tell oneself", 4, &TellSelf},
      {"relay acts", 40, &RelayActs},
      {"tell a selection", 1, &TellSelection},
      {"publish an event", 1, &PublishGust},
      {"subscribe to events", 1, &SubscribeToGusts},
      {"unsubscribe from events", 1, &UnsubscribeFromGusts},
      {"tell PoisonPill", 2, &TellPoisonPill},
      {"tell Kill", 1, &TellKill},
      {"tell Identify", 1, &TellIdentify},
  };
}

}  // namespace fraktor::storm
