// The example that actor/actor.h begins with: snippets_test compares the two.
// clang-format off
#include <iostream>
#include <string>

#include "fraktor/actor/actor.h"

struct Greeted { std::string text; };
struct Greet { using Reply = Greeted; std::string name; };

class Greeter : public fraktor::Actor<Greeter, Greet> {
 public:
  Greeted On(Context&, const Greet& greet) { return {"Hello, " + greet.name}; }
};

int main() {
  fraktor::ActorSystem system("hello");
  auto greeter = system.Spawn<Greeter>("greeter");
  absl::StatusOr<Greeted> reply = system.AskAndWait(greeter, Greet{"world"}, absl::Seconds(1));
  std::cout << reply.value().text << "\n";
}
