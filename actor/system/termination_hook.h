// The messages by which an actor delays the end of its system until it is ready.
//
//   // Delays the end of the system until it has said goodbye.
//   class Greeter final : public ActorInstance {
//    public:
//     explicit Greeter(std::string* said) : said_(*said) {}
//     absl::Status PreStart(ActorContext& context) override {
//       context.Tell(context.system().system_guardian(), RegisterTerminationHook{});
//       return absl::OkStatus();
//     }
//     absl::Status Receive(ActorContext& context, Envelope& message) override {
//       if (!message.Is<TerminationHook>()) return context.Unhandled(message);
//       said_ = "goodbye";
//       context.Reply(TerminationHookDone{});
//       return absl::OkStatus();
//     }
//
//    private:
//     std::string& said_;
//   };
//
// The actor tells /system (ActorSystem::system_guardian) once. Actors get their hooks in the order
// of their registrations.
#ifndef FRAKTOR_ACTOR_SYSTEM_TERMINATION_HOOK_H_
#define FRAKTOR_ACTOR_SYSTEM_TERMINATION_HOOK_H_

namespace fraktor::inline v0 {

// An actor sends this to /system to delay its end: when /system is about to end, the actor gets a
// TerminationHook. It replies TerminationHookDone when it is ready, or ends.
struct RegisterTerminationHook {};
struct TerminationHook {};
struct TerminationHookDone {};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_TERMINATION_HOOK_H_
