// Two actors that send a ball back and forth, and a third that waits for the end of the game.
#include <iostream>

#include "fraktor/actor/actor.h"

struct Ball {
  int hits_left;
};
struct Start {
  using Reply = struct GameOver;
  int hits;
};
struct GameOver {
  int hits;
};

class Player : public fraktor::Actor<Player, Ball> {
 public:
  void On(Context& context, const Ball& ball) {
    // The ball goes back to its sender.
    context.Reply(Ball{ball.hits_left - 1});
  }
};

class Umpire : public fraktor::Actor<Umpire, Start, Ball> {
 public:
  void PreStart(Context& context) { player_ = context.Spawn<Player>("player"); }

  fraktor::Deferred<GameOver> On(Context& context, const Start& start) {
    // The reply comes at the end of the game.
    asker_ = fraktor::ReplyTo<GameOver>(context);
    hits_ = start.hits;
    context.Tell(player_, Ball{start.hits});
    return asker_;
  }
  void On(Context& context, const Ball& ball) {
    if (ball.hits_left > 0) {
      context.Reply(ball);
    } else {
      asker_.Reply(GameOver{hits_});
    }
  }

 private:
  fraktor::RefOf<Player> player_;
  fraktor::ReplyTo<GameOver> asker_;
  int hits_ = 0;
};

int main() {
  fraktor::ActorSystem system("tennis");
  auto umpire = system.Spawn<Umpire>("umpire");
  absl::StatusOr<GameOver> over = system.AskAndWait(umpire, Start{100'000}, absl::Seconds(60));
  if (!over.ok()) {
    std::cerr << over.status() << "\n";
    return 1;
  }
  std::cout << "The game is over after " << over->hits << " hits.\n";
  return 0;
}
