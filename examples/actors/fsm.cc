// A turnstile: a finite state machine with two states, data that goes along, and a timeout.
#include "fraktor/actor/pattern/fsm.h"

#include <iostream>
#include <string>

#include "fraktor/actor/actor.h"

enum class State { kLocked, kOpen };
struct Data {
  int coins = 0;
};

struct Coin {};
struct Push {};
struct Says {
  std::string text;
};

class Turnstile final : public fraktor::Fsm<State, Data> {
 public:
  Turnstile() {
    StartWith(State::kLocked, {});
    When(State::kLocked, [this](fraktor::ActorContext&, fraktor::Envelope& message) {
      if (message.Is<Push>()) return Stay().Replying(Says{"it does not move"});
      if (message.Is<Coin>()) return GoTo(State::kOpen).Using({data().coins + 1}).Replying(Says{"click"});
      return Unhandled();
    });
    When(
        State::kOpen,
        [this](fraktor::ActorContext&, fraktor::Envelope& message) {
          if (message.Is<Coin>()) return Stay().Replying(Says{"thank you, but it is open"});
          if (message.Is<Push>() || message.Is<fraktor::FsmStateTimeout>()) {
            return GoTo(State::kLocked).Replying(Says{"somebody went through; coins: " + std::to_string(data().coins)});
          }
          return Unhandled();
        },
        /*timeout=*/absl::Seconds(10));
  }
};

int main() {
  fraktor::ActorSystem system("station");
  const fraktor::ActorRef turnstile = system.TrySpawn(fraktor::PropsOf<Turnstile>(), "turnstile").value();
  auto say = [&](const absl::StatusOr<Says>& says) {
    std::cout << (says.ok() ? says->text : says.status().ToString()) << "\n";
  };
  say(system.AskAndWait<Says>(turnstile, Push{}, absl::Seconds(5)));
  say(system.AskAndWait<Says>(turnstile, Coin{}, absl::Seconds(5)));
  say(system.AskAndWait<Says>(turnstile, Coin{}, absl::Seconds(5)));
  say(system.AskAndWait<Says>(turnstile, Push{}, absl::Seconds(5)));
  return 0;
}
