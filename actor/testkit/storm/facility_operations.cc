// Timers, receive timeouts, stashes and behaviours.
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/actor/timer/receive_timeout.h"
#include "fraktor/actor/timer/timers.h"

namespace fraktor::storm {
namespace {

std::string RandomKey(Deed& deed) { return absl::StrCat("t", deed.random.Uniform(4)); }

// The facilities of the actor without its types: it handles every message of the storm.
absl::Status StartSingleTimer(Deed& deed) {
  return Timers(deed.context)
      .StartSingle(RandomKey(deed), Tick{deed.world().FreeToken()},
                   deed.random.UniformDuration(absl::ZeroDuration(), absl::Milliseconds(4)));
}

absl::Status StartPeriodicTimer(Deed& deed) {
  const TimerPeriod period{.period = deed.random.UniformDuration(absl::Microseconds(300), absl::Milliseconds(4))};
  if (deed.random.Bernoulli(0.5)) {
    return Timers(deed.context).StartFixedRate(RandomKey(deed), Tick{deed.world().FreeToken()}, period);
  }
  return Timers(deed.context).StartFixedDelay(RandomKey(deed), Tick{deed.world().FreeToken()}, period);
}

absl::Status CancelTimer(Deed& deed) {
  if (deed.random.Bernoulli(0.2)) {
    Timers(deed.context).CancelAll();
  } else {
    Timers(deed.context).Cancel(RandomKey(deed));
  }
  return absl::OkStatus();
}

absl::Status SetTimeout(Deed& deed) {
  return SetReceiveTimeout(deed.context, deed.random.UniformDuration(absl::Microseconds(500), absl::Milliseconds(6)));
}

absl::Status CancelTimeout(Deed& deed) {
  CancelReceiveTimeout(deed.context);
  return absl::OkStatus();
}

absl::Status BeginToStash(Deed& deed) {
  deed.person.life().stashes += static_cast<int>(1 + deed.random.Uniform(5));
  if (deed.random.Uniform(20) == 0) SetStashCapacity(deed.context, 2);
  return absl::OkStatus();
}

absl::Status TakeBackAll(Deed& deed) {
  ++deed.person.life().events.unstashed;
  UnstashAll(deed.context);
  return absl::OkStatus();
}

absl::Status TakeBackOne(Deed& deed) {
  ++deed.person.life().events.unstashed;
  UnstashOne(deed.context);
  return absl::OkStatus();
}

absl::Status BecomeAnother(Deed& deed) {
  deed.person.moods().ChangeMood(deed.context, Moods::Change::kBecome);
  return absl::OkStatus();
}

absl::Status BecomeAnotherOnTop(Deed& deed) {
  deed.person.moods().ChangeMood(deed.context, Moods::Change::kBecomeStacked);
  return absl::OkStatus();
}

absl::Status UnbecomeOne(Deed& deed) {
  deed.person.moods().ChangeMood(deed.context, Moods::Change::kUnbecome);
  return absl::OkStatus();
}

}  // namespace

std::vector<ActorOperation> FacilityOperations() {
  return {
      {"start a timer", 3, &StartSingleTimer},
      {"start a periodic timer", 2, &StartPeriodicTimer},
      {"cancel timers", 2, &CancelTimer},
      {"set a receive timeout", 1, &SetTimeout},
      {"cancel the receive timeout", 1, &CancelTimeout},
      {"stash what comes", 3, &BeginToStash},
      {"unstash all", 3, &TakeBackAll},
      {"unstash one", 2, &TakeBackOne},
      {"become", 2, &BecomeAnother},
      {"become, stacked", 2, &BecomeAnotherOnTop},
      {"unbecome", 2, &UnbecomeOne},
  };
}

}  // namespace fraktor::storm
