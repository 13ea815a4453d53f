// A program of somebody else, against @fraktor//actor and nothing more.
#include <iostream>

#include "fraktor/actor/actor.h"

struct Count {
  int value;
};
struct Add {
  using Reply = Count;
  int amount;
};

class Counter : public fraktor::Actor<Counter, Add> {
 public:
  Count On(Context&, const Add& add) { return {count_ += add.amount}; }

 private:
  int count_ = 0;
};

int main() {
  fraktor::ActorSystem system("consumer");
  auto counter = system.Spawn<Counter>("counter");
  counter.Tell(Add{40});
  absl::StatusOr<Count> count = system.AskAndWait(counter, Add{2}, absl::Seconds(30));
  std::cout << (count.ok() ? count->value : -1) << "\n";
  return count.ok() && count->value == 42 ? 0 : 1;
}
