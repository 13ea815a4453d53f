#include <iostream>
#include <string>

#include "fraktor/actor/actor.h"

struct Greeted {
  std::string text;
};
struct Greet {
  using Reply = Greeted;
  std::string name;
};

class Greeter : public fraktor::Actor<Greeter, Greet> {
 public:
  // The result is the reply.
  Greeted On(Context&, const Greet& greet) { return {"Hello, " + greet.name + "!"}; }
};

int main() {
  fraktor::ActorSystem system("hello");
  auto greeter = system.Spawn<Greeter>("greeter");
  absl::StatusOr<Greeted> reply = system.AskAndWait(greeter, Greet{"world"}, absl::Seconds(5));
  std::cout << (reply.ok() ? reply->text : reply.status().ToString()) << "\n";
  return reply.ok() ? 0 : 1;
}
