// Typed actors, and the actor system that they live in: the header that programs begin with.
//
//   #include "fraktor/actor/actor.h"
//
//   struct Greeted { std::string text; };
//   struct Greet { using Reply = Greeted; std::string name; };
//
//   class Greeter : public fraktor::Actor<Greeter, Greet> {
//    public:
//     Greeted On(Context&, const Greet& greet) { return {"Hello, " + greet.name}; }
//   };
//
//   int main() {
//     fraktor::ActorSystem system("hello");
//     auto greeter = system.Spawn<Greeter>("greeter");
//     absl::StatusOr<Greeted> reply = system.AskAndWait(greeter, Greet{"world"}, absl::Seconds(1));
//     std::cout << reply.value().text << "\n";
//   }
//
// More: fraktor/actor/typed/typed_actor.h (handlers and hooks),
// fraktor/actor/system/actor_system.h, fraktor/actor/system/actor_system_options.h (workers, log,
// dispatchers, metrics), fraktor/actor/timer/ (timers), fraktor/actor/pattern/ (stash, FSM, circuit
// breaker), fraktor/actor/router/, fraktor/actor/testkit/.
#ifndef FRAKTOR_ACTOR_ACTOR_H_
#define FRAKTOR_ACTOR_ACTOR_H_

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/actor/typed/typed_ref.h"
#include "fraktor/actor/typed/typed_system.h"

#endif  // FRAKTOR_ACTOR_ACTOR_H_
