// An actor that gets more messages than it can handle. Its work blocks, so it runs on a pool of
// threads for blocking work. Its mailbox has a limit, and senders get an error when it is full.
#include <iostream>
#include <memory>
#include <semaphore>
#include <sstream>
#include <string>

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/dispatch/blocking_pool.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/observe/prometheus_text.h"

// The threads for blocking work. An extension of the system is made at its first use and ends after
// all actors.
struct Printers {
  explicit Printers(fraktor::ActorSystem& system)
      : pool(fraktor::BlockingPool::Start({.name = "printers", .max_threads = 1}, system.toolbox()).value()) {}
  std::unique_ptr<fraktor::BlockingPool> pool;
};

struct Page {
  int number;
};
struct Printed {
  int pages;
};
struct Count {
  using Reply = Printed;
};

std::binary_semaphore paper_is_in{0};
std::binary_semaphore started{0};
std::counting_semaphore<> done{0};

class Printer : public fraktor::Actor<Printer, Page, Count> {
 public:
  // No worker waits meanwhile, and the actor handles no other page.
  fraktor::Task<> On(Context& context, Page page) {
    auto printing = fraktor::RunBlocking(*context.system().Extension<Printers>().pool, [page] {
      if (page.number > 1) return;
      started.release();
      paper_is_in.acquire();
    });
    absl::Status printed = co_await printing;
    if (printed.ok()) ++pages_;
    done.release();
  }
  Printed On(Context&, const Count&) { return {pages_}; }

 private:
  int pages_ = 0;
};

int main() {
  fraktor::ActorSystem system("office");
  // Two pages may wait. The sender of a third gets an error.
  const fraktor::PropsPtr props =
      fraktor::MakeTypedProps<Printer>({.mailbox = {.capacity = 2, .overflow = fraktor::OverflowStrategy::kReject}});
  absl::StatusOr<fraktor::ActorRef> spawned = system.TrySpawn(*props, "printer");
  if (!spawned.ok()) {
    std::cerr << spawned.status() << "\n";  // Names the option that is invalid.
    return 1;
  }
  const auto printer = fraktor::RefOf<Printer>::Unchecked(*spawned);

  printer.Tell(Page{1});
  started.acquire();
  for (int number = 2; number <= 4; ++number) {
    const absl::Status sent = printer.TryTell(Page{number});
    std::cout << "page " << number << ": " << (sent.ok() ? "waits" : std::string(sent.message())) << "\n";
  }
  paper_is_in.release();
  // Until then the mailbox may have no room for the ask either.
  for (int page = 1; page <= 3; ++page) done.acquire();
  absl::StatusOr<Printed> printed = system.AskAndWait(printer, Count{}, absl::Seconds(5));
  if (!printed.ok()) {
    std::cerr << printed.status() << "\n";
    return 1;
  }
  std::cout << printed->pages << " pages printed\n";

  // The text that Prometheus scrapes.
  std::istringstream lines(fraktor::ToPrometheusText(system.hub().Snapshot(system.toolbox().Now())));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("enqueued_total{type=\"Printer\"}") != std::string::npos) std::cout << line << "\n";
  }
  return 0;
}
