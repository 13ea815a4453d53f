// A handler that waits for other actors without blocking a thread: `co_await`.
#include <iostream>
#include <string>

#include "fraktor/actor/actor.h"

struct Price {
  int cents;
};
struct AskPrice {
  using Reply = Price;
  std::string item;
};
struct Total {
  int cents;
};
struct AddUp {
  using Reply = Total;
  std::string first;
  std::string second;
};

class PriceList : public fraktor::Actor<PriceList, AskPrice> {
 public:
  absl::StatusOr<Price> On(Context&, const AskPrice& ask) {
    if (ask.item == "milk") return Price{129};
    if (ask.item == "bread") return Price{349};
    return absl::NotFoundError("no price for " + ask.item);  // The asker gets this instead of a Price.
  }
};

class Till : public fraktor::Actor<Till, AddUp> {
 public:
  void PreStart(Context& context) { prices_ = context.Spawn<PriceList>("prices"); }

  fraktor::Task<Total> On(Context& context, AddUp add) {
    // Both asks are sent before the handler waits for the first reply.
    auto asking_first = context.Ask(prices_, AskPrice{add.first}, absl::Seconds(1));
    auto asking_second = context.Ask(prices_, AskPrice{add.second}, absl::Seconds(1));
    absl::StatusOr<Price> first = co_await asking_first;
    if (!first.ok()) co_return first.status();
    absl::StatusOr<Price> second = co_await asking_second;
    if (!second.ok()) co_return second.status();
    co_return Total{first->cents + second->cents};
  }

 private:
  fraktor::RefOf<PriceList> prices_;
};

int main() {
  fraktor::ActorSystem system("shop");
  auto till = system.Spawn<Till>("till");
  for (const char* item : {"bread", "honey"}) {
    absl::StatusOr<Total> total = system.AskAndWait(till, AddUp{"milk", item}, absl::Seconds(5));
    if (total.ok()) {
      std::cout << "milk and " << item << ": " << total->cents << " cents\n";
    } else {
      std::cout << "milk and " << item << ": " << total.status().message() << "\n";
    }
  }
  return 0;
}
