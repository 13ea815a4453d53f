// A program that ends in order when it gets SIGTERM: first no new orders come, then those that are there are finished,
// then the actors end.
#include <iostream>
#include <memory>
#include <string>

#include "fraktor/actor/actor.h"
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"

struct Order {
  std::string item;
};

class Kitchen : public fraktor::Actor<Kitchen, Order> {
 public:
  void On(Context&, const Order& order) {
    ++served_;
    std::cout << "served: " << order.item << std::endl;
  }
  void PostStop(Context&) { std::cout << "the kitchen is closed after " << served_ << " orders" << std::endl; }

 private:
  int served_ = 0;
};

int main() {
  namespace phase = fraktor::shutdown_phase;

  fraktor::ActorSystemOptions options{.config = {.system_name = "restaurant"}};
  options.coordinated_shutdown.on_sigterm = true;
  // If something hangs, the process ends then, and the log says what it was.
  options.coordinated_shutdown.sigterm_deadline = absl::Seconds(20);
  std::unique_ptr<fraktor::ActorSystem> system = fraktor::ActorSystem::Create(options).value();

  auto kitchen = system->Spawn<Kitchen>("kitchen");
  fraktor::CoordinatedShutdown& shutdown = system->coordinated_shutdown();
  shutdown
      .AddTask(phase::kServiceUnbind, "close the door",
               [] {
                 std::cout << "the door is closed" << std::endl;
                 return fraktor::MakeReadyFuture();
               })
      .value();
  shutdown
      .AddTask(phase::kServiceRequestsDone, "finish the orders",
               [&] { return fraktor::GracefulStop(*system, kitchen, absl::Seconds(5)); })
      .value();

  kitchen.Tell(Order{"soup"});
  kitchen.Tell(Order{"fish"});
  std::cout << "open" << std::endl;
  const absl::Status ended = system->WhenTerminated().Wait();  // Until SIGTERM comes.
  std::cout << "good night" << std::endl;
  return ended.ok() ? 0 : 1;
}
