// A program that ends in order when it gets SIGTERM: it accepts no new orders, finishes the orders
// that it has, and then ends the actors.
#include <iostream>
#include <memory>
#include <string>

#include "fraktor/actor/actor.h"
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"

// A line in one piece: actors and main write at the same time.
void Say(const std::string& text) { std::cout << text + "\n" << std::flush; }

struct Order {
  std::string item;
};

class Kitchen : public fraktor::Actor<Kitchen, Order> {
 public:
  void On(Context&, const Order& order) {
    ++served_;
    Say("served: " + order.item);
  }
  void PostStop(Context&) { Say("the kitchen is closed after " + std::to_string(served_) + " orders"); }

 private:
  int served_ = 0;
};

int main() {
  namespace phase = fraktor::shutdown_phase;

  fraktor::ActorSystemOptions options{.config = {.system_name = "restaurant"}};
  options.coordinated_shutdown.on_sigterm = true;
  // If an actor hangs, the process ends after this time, and the log names the actor.
  options.coordinated_shutdown.sigterm_deadline = absl::Seconds(20);
  std::unique_ptr<fraktor::ActorSystem> system = fraktor::ActorSystem::Create(options).value();

  auto kitchen = system->Spawn<Kitchen>("kitchen");
  fraktor::CoordinatedShutdown& shutdown = system->coordinated_shutdown();
  shutdown
      .AddTask(phase::kServiceUnbind, "close the door",
               [] {
                 Say("the door is closed");
                 return fraktor::MakeReadyFuture();
               })
      .value();
  shutdown
      .AddTask(phase::kServiceRequestsDone, "finish the orders",
               [&] { return fraktor::GracefulStop(*system, kitchen, absl::Seconds(5)); })
      .value();

  kitchen.Tell(Order{"soup"});
  kitchen.Tell(Order{"fish"});
  Say("open");
  const absl::Status ended = system->WhenTerminated().Wait();  // Until SIGTERM comes.
  Say("good night");
  return ended.ok() ? 0 : 1;
}
