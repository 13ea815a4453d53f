// A parent that decides what happens to a child that has failed: the child is restarted, and loses
// its state.
#include <iostream>
#include <stdexcept>
#include <string>

#include "fraktor/actor/actor.h"

struct Result {
  int value;
};
struct Divide {
  using Reply = Result;
  int dividend;
  int divisor;
};
struct Count {
  using Reply = Result;
};

// Counts what it has done; a new instance begins at zero.
class Divider : public fraktor::Actor<Divider, Divide, Count> {
 public:
  absl::StatusOr<Result> On(Context&, const Divide& divide) {
    if (divide.divisor == 0) throw std::invalid_argument("division by zero");  // Goes to the parent.
    ++done_;
    return Result{divide.dividend / divide.divisor};
  }
  Result On(Context&, const Count&) { return {done_}; }

 private:
  int done_ = 0;
};

class Calculator : public fraktor::Actor<Calculator, Divide, Count> {
 public:
  void PreStart(Context& context) { divider_ = context.Spawn<Divider>("divider"); }

  // The mailbox of the child is kept: it goes on with its next message.
  fraktor::SupervisionDirective OnChildFailure(const fraktor::Failure& failure) {
    std::cout << "restarting after: " + std::string(failure.error.message()) + "\n" << std::flush;
    return fraktor::Restart();
  }

  // The divider replies.
  fraktor::Forwarded<Result> On(Context& context, const Divide& divide) { return context.Forward(divider_, divide); }
  fraktor::Forwarded<Result> On(Context& context, const Count& count) { return context.Forward(divider_, count); }

 private:
  fraktor::RefOf<Divider> divider_;
};

int main() {
  fraktor::ActorSystem system("maths");
  auto calculator = system.Spawn<Calculator>("calculator");
  auto show = [&](std::string what, auto question) {
    absl::StatusOr<Result> result = system.AskAndWait(calculator, question, absl::Seconds(5));
    std::cout << what + (result.ok() ? std::to_string(result->value) : result.status().ToString()) + "\n" << std::flush;
  };

  show("7 / 2 = ", Divide{7, 2});
  show("done: ", Count{});
  calculator.Tell(Divide{1, 0});
  show("done: ", Count{});
  show("8 / 2 = ", Divide{8, 2});
  return 0;
}
