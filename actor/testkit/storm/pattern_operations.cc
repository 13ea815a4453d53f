// The receptionist, machines, and the tasks of the coordinated shutdown.
#include <string>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/pattern/receptionist.h"
#include "fraktor/actor/testkit/storm/machine.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/actor/typed/typed_ref.h"

namespace fraktor::storm {
namespace {

int RandomService(Deed& deed) { return static_cast<int>(deed.random.Uniform(kServices)); }
ServiceOfStorm KeyOf(int service) { return ServiceOfStorm(absl::StrCat(service)); }
Receptionist& ReceptionistOf(Deed& deed) { return Receptionist::Of(deed.context.system()); }
TypedRef<Letter> Self(Deed& deed) { return TypedRef<Letter>::Unchecked(deed.context.self()); }

absl::Status OfferService(Deed& deed) {
  const int service = RandomService(deed);
  ReceptionistOf(deed).Register(KeyOf(service), Self(deed)).IgnoreError();
  deed.person.life().registered.insert(service);
  return absl::OkStatus();
}

absl::Status WithdrawService(Deed& deed) {
  const int service = RandomService(deed);
  ReceptionistOf(deed).Deregister(KeyOf(service), Self(deed));
  deed.person.life().registered.erase(service);
  return absl::OkStatus();
}

absl::Status SubscribeToService(Deed& deed) {
  const int service = RandomService(deed);
  ReceptionistOf(deed).Subscribe(KeyOf(service), TypedRef<Services>::Unchecked(deed.context.self())).IgnoreError();
  deed.person.life().listings.try_emplace(service);
  return absl::OkStatus();
}

absl::Status UnsubscribeFromService(Deed& deed) {
  const int service = RandomService(deed);
  ReceptionistOf(deed).Unsubscribe(KeyOf(service), TypedRef<Services>::Unchecked(deed.context.self()));
  deed.person.life().listings.erase(service);
  return absl::OkStatus();
}

absl::Status FindService(Deed& deed) {
  Future<Services> finding = ReceptionistOf(deed).Find(KeyOf(RandomService(deed)), absl::Milliseconds(5));
  if (deed.random.Bernoulli(0.5)) finding.Cancel();
  return absl::OkStatus();
}

// To machines these are commands; to others they are unhandled.
absl::Status SubscribeToAMachine(Deed& deed) {
  deed.context.Tell(deed.Anybody().ref, SubscribeTransitions{deed.context.self()});
  return absl::OkStatus();
}

absl::Status UnsubscribeFromAMachine(Deed& deed) {
  const auto& machines = deed.person.life().machines;
  const ActorRef machine = machines.empty() ? deed.Anybody().ref : machines.begin()->first;
  deed.context.Tell(machine, UnsubscribeTransitions{deed.context.self()});
  return absl::OkStatus();
}

absl::Status AddShutdownTask(Deed& deed) {
  if (&deed.context.system() == &deed.world().system()) {
    deed.world().shutdown_tasks().Add(deed.world().system(), deed.random);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<ActorOperation> PatternOperations() {
  return {
      {"offer a service", 3, &OfferService},
      {"withdraw a service", 2, &WithdrawService},
      {"subscribe to a service", 2, &SubscribeToService},
      {"unsubscribe from a service", 1, &UnsubscribeFromService},
      {"find a service", 1, &FindService},
      {"subscribe to a machine", 6, &SubscribeToAMachine},
      {"unsubscribe from a machine", 1, &UnsubscribeFromAMachine},
      {"add a shutdown task", 1, &AddShutdownTask},
  };
}

}  // namespace fraktor::storm
