// Receptionist: actors of a system find each other by the service that they offer.
//
//   const ServiceKey<Print> kPrinters("printers");
//
//   class Printer : public Actor<Printer, Print> {
//    public:
//     absl::Status PreStart(Context& context) {
//       return Receptionist::Of(context.system()).Register(kPrinters, context.self());
//     }
//     Done On(Context&, const Print&) { return {}; }
//   };
//
//   // Gets a Listing at once, and another one after each change.
//   class Office : public Actor<Office, Listing<Print>> {
//    public:
//     absl::Status PreStart(Context& context) {
//       return Receptionist::Of(context.system()).Subscribe(kPrinters, context.self());
//     }
//     void On(Context&, const Listing<Print>& listing) { printers_ = listing.services; }
//
//    private:
//     std::vector<TypedRef<Print>> printers_;
//   };
//
//   Future<Listing<Print>> finding = Receptionist::Of(system).Find(kPrinters, absl::Seconds(1));
//
// A key is a name and the messages of the service: the same name with other messages is another
// key. An actor may register under many keys. The receptionist watches registered and subscribed
// actors, and removes them when they end. An actor that has already ended is not registered.
// Registering or subscribing again changes nothing.
//
// The receptionist is an actor, /system/receptionist, of this system only. Calls are messages to
// it, so those of one thread or actor keep their order: a Find after a Register sees it. Changes
// that are in the mailbox together become one Listing. A Listing names all services, so the cost of
// a change is proportional to the services, for each subscriber. For a key with thousands of
// services that come and go, use Find instead.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_PATTERN_RECEPTIONIST_H_
#define FRAKTOR_ACTOR_PATTERN_RECEPTIONIST_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/typed/typed_ref.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

// The name of a service whose actors take the messages Ms.
template <class... Ms>
class ServiceKey {
 public:
  explicit ServiceKey(std::string_view name) : name_(name) {}
  const std::string& name() const { return name_; }

  friend bool operator==(const ServiceKey&, const ServiceKey&) = default;

 private:
  std::string name_;
};

// The actors that are registered under a key, in the order of their registration.
template <class... Ms>
struct Listing {
  ServiceKey<Ms...> key;
  std::vector<TypedRef<Ms...>> services;
};

namespace receptionist_internal {

// A key without its type. The type of its Listing identifies the type.
struct Key {
  std::string name;
  const MessageType* listing;

  friend bool operator==(const Key&, const Key&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Key& key) {
    return H::combine(std::move(state), key.name, key.listing);
  }
};

template <class... Ms>
Key KeyOf(const ServiceKey<Ms...>& key) {
  return {.name = key.name(), .listing = MessageTypeOf<Listing<Ms...>>()};
}

template <class... Ms>
Listing<Ms...> MakeListing(std::string_view name, const std::vector<ActorRef>& services) {
  Listing<Ms...> listing{.key = ServiceKey<Ms...>(name), .services = {}};
  listing.services.reserve(services.size());
  for (const ActorRef service : services) listing.services.push_back(TypedRef<Ms...>::Unchecked(service));
  return listing;
}

// Sends a listing of the key's type.
using SendListing = void (*)(ActorRef subscriber, std::string_view name, const std::vector<ActorRef>& services);

// The messages of the receptionist.
struct RegisterService {
  Key key;
  ActorRef service;
};
struct DeregisterService {
  Key key;
  ActorRef service;
};
struct SubscribeToService {
  Key key;
  ActorRef subscriber;
  SendListing send;
};
struct UnsubscribeFromService {
  Key key;
  ActorRef subscriber;
};
struct ServicesFound {
  std::vector<ActorRef> services;
};
struct FindServices {
  using Reply = ServicesFound;
  Key key;
};

}  // namespace receptionist_internal

class Receptionist {
 public:
  // Returns the receptionist of a system. The first call starts it.
  static Receptionist& Of(ActorSystem& system) { return system.Extension<Receptionist>(); }

  explicit Receptionist(ActorSystem& system);

  // The key decides the type: an actor that takes more messages can register too. InvalidArgument
  // for a reference to no one; FailedPrecondition if the system was ending at the first call of Of.
  template <class... Ms>
  absl::Status Register(const ServiceKey<Ms...>& key, std::type_identity_t<TypedRef<Ms...>> service) {
    if (absl::Status valid = Check("Register", key.name(), service.untyped()); !valid.ok()) return valid;
    Tell(actor_, receptionist_internal::RegisterService{receptionist_internal::KeyOf(key), service.untyped()});
    return absl::OkStatus();
  }
  template <class... Ms>
  void Deregister(const ServiceKey<Ms...>& key, std::type_identity_t<TypedRef<Ms...>> service) {
    Tell(actor_, receptionist_internal::DeregisterService{receptionist_internal::KeyOf(key), service.untyped()});
  }

  // The subscriber gets the present Listing, and a new one after each change. Errors as above.
  template <class... Ms>
  absl::Status Subscribe(const ServiceKey<Ms...>& key, std::type_identity_t<TypedRef<Listing<Ms...>>> subscriber) {
    if (absl::Status valid = Check("Subscribe", key.name(), subscriber.untyped()); !valid.ok()) return valid;
    Tell(actor_, receptionist_internal::SubscribeToService{
                     .key = receptionist_internal::KeyOf(key),
                     .subscriber = subscriber.untyped(),
                     .send = [](ActorRef to, std::string_view name, const std::vector<ActorRef>& services) {
                       Tell(to, receptionist_internal::MakeListing<Ms...>(name, services));
                     }});
    return absl::OkStatus();
  }
  template <class... Ms>
  void Unsubscribe(const ServiceKey<Ms...>& key, std::type_identity_t<TypedRef<Listing<Ms...>>> subscriber) {
    Tell(actor_,
         receptionist_internal::UnsubscribeFromService{receptionist_internal::KeyOf(key), subscriber.untyped()});
  }

  // Returns the registered actors; an empty Listing if there are none. Errors are those of
  // ActorSystem::Ask.
  template <class... Ms>
  Future<Listing<Ms...>> Find(const ServiceKey<Ms...>& key, absl::Duration timeout) {
    return system_
        .Ask<receptionist_internal::ServicesFound>(
            actor_, receptionist_internal::FindServices{receptionist_internal::KeyOf(key)}, timeout)
        .Map([name = key.name()](const receptionist_internal::ServicesFound& found) {
          return receptionist_internal::MakeListing<Ms...>(name, found.services);
        });
  }

 private:
  absl::Status Check(std::string_view call, std::string_view key, ActorRef actor) const;

  ActorSystem& system_;
  // No one if the system was ending at the first call of Of.
  ActorRef actor_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_RECEPTIONIST_H_
