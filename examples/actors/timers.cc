// A clock that ticks, and a session that ends when nobody uses it: timers and a receive timeout.
#include "fraktor/actor/timer/timers.h"

#include <iostream>

#include "fraktor/actor/actor.h"
#include "fraktor/actor/timer/receive_timeout.h"

struct Tick {};
struct Run {
  using Reply = fraktor::Done;
  int ticks;
};
struct Use {};

class Session : public fraktor::Actor<Session, Use> {
 public:
  absl::Status PreStart(Context& context) { return fraktor::SetReceiveTimeout(context, absl::Milliseconds(50)); }
  void On(Context&, const Use&) { ++used_; }
  void On(Context& context, const fraktor::ReceiveTimeout&) {
    std::cout << "nobody has used the session for a while; it was used " << used_ << " times" << std::endl;
    context.Stop();
  }

 private:
  int used_ = 0;
};

class Clock : public fraktor::Actor<Clock, Run, Tick> {
 public:
  fraktor::Deferred<fraktor::Done> On(Context& context, const Run& run) {
    left_ = run.ticks;
    asker_ = fraktor::ReplyTo<fraktor::Done>(context);
    session_ = context.Spawn<Session>("session");
    absl::Status watched = context.Watch(session_);
    if (!watched.ok()) return watched;
    return fraktor::Timers(context).StartFixedRate("tick", Tick{}, {.period = absl::Milliseconds(5)});
  }
  void On(Context& context, const Tick&) {
    context.Tell(session_, Use{});
    if (--left_ > 0) return;
    fraktor::Timers(context).Cancel("tick");
    std::cout << "the clock has stopped" << std::endl;
  }
  void On(Context&, const fraktor::Terminated&) { asker_.Reply(fraktor::Done{}); }

 private:
  int left_ = 0;
  fraktor::ReplyTo<fraktor::Done> asker_;
  fraktor::RefOf<Session> session_;
};

int main() {
  fraktor::ActorSystem system("time");
  auto clock = system.Spawn<Clock>("clock");
  absl::StatusOr<fraktor::Done> done = system.AskAndWait(clock, Run{3}, absl::Seconds(30));
  if (!done.ok()) std::cerr << done.status() << "\n";
  return done.ok() ? 0 : 1;
}
