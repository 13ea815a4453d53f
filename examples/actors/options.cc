// An actor with options: a thread of its own, because it blocks, and a mailbox that rejects
// messages when it is full.
#include <iostream>
#include <latch>
#include <string>

#include "fraktor/actor/actor.h"

struct Print {
  std::string text;
};

struct Office {
  std::latch begun{1};
  std::latch paper{1};
  std::latch printed{3};
};

class Printer : public fraktor::Actor<Printer, Print> {
 public:
  explicit Printer(Office* office) : office_(*office) {}

  void On(Context&, const Print& print) {
    if (!office_.begun.try_wait()) office_.begun.count_down();
    office_.paper.wait();  // On a worker of the default pool, this would delay other actors.
    std::cout << print.text + "\n" << std::flush;
    office_.printed.count_down();
  }

 private:
  Office& office_;
};

int main() {
  Office office;
  fraktor::ActorSystem system("office");
  auto printer = system.Spawn<Printer>(
      "printer", {.dispatcher = fraktor::DispatcherChoice::kPinned, .mailbox = {.capacity = 2}}, &office);

  printer.Tell(Print{"page 1"});
  office.begun.wait();  // The printer handles page 1, and its mailbox is empty.
  for (int page = 2; page <= 4; ++page) {
    absl::Status sent = printer.TryTell(Print{"page " + std::to_string(page)});
    if (!sent.ok()) std::cout << "page " + std::to_string(page) + " is refused\n" << std::flush;
  }
  office.paper.count_down();
  office.printed.wait();
  return 0;
}
