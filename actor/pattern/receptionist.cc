#include "fraktor/actor/pattern/receptionist.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace receptionist_internal {
namespace {

// Arrives behind the messages in the mailbox, and sends a listing of each key that has changed.
struct PublishChanges {};

class ReceptionistActor final : public Actor<ReceptionistActor, RegisterService, DeregisterService, SubscribeToService,
                                             UnsubscribeFromService, FindServices, PublishChanges> {
 public:
  void On(Context& context, RegisterService&& added) {
    if (HasEnded(added.service)) return;
    Service& service = services_[added.key];
    if (!service.numbers.emplace(added.service, next_number_).second) return;
    service.in_order.emplace(next_number_++, added.service);
    Join(context, added.service, added.key);
    Change(context, added.key);
  }
  void On(Context& context, const DeregisterService& removed) {
    if (!Remove(removed.key, removed.service)) return;
    Leave(context, removed.service, removed.key);
    Change(context, removed.key);
  }
  void On(Context& context, SubscribeToService&& added) {
    if (HasEnded(added.subscriber)) return;
    Service& service = services_[added.key];
    if (!service.subscribers.emplace(added.subscriber, added.send).second) return;
    Join(context, added.subscriber, added.key);
    added.send(added.subscriber, added.key.name, service.InOrder());
  }
  void On(Context& context, const UnsubscribeFromService& removed) {
    const auto found = services_.find(removed.key);
    if (found == services_.end() || found->second.subscribers.erase(removed.subscriber) == 0) return;
    Leave(context, removed.subscriber, removed.key);
    EraseIfUnused(removed.key);
  }
  ServicesFound On(Context&, const FindServices& find) {
    const auto found = services_.find(find.key);
    return {.services = found == services_.end() ? std::vector<ActorRef>() : found->second.InOrder()};
  }
  void On(Context&, const PublishChanges&) {
    is_publishing_ = false;
    for (const Key& key : std::exchange(changed_, {})) {
      const auto found = services_.find(key);
      if (found == services_.end()) continue;
      if (found->second.subscribers.empty()) {
        // Without subscribers no listing is made, which would visit all services.
        EraseIfUnused(key);
        continue;
      }
      const std::vector<ActorRef> services = found->second.InOrder();
      for (const auto& [subscriber, send] : found->second.subscribers) send(subscriber, key.name, services);
    }
  }
  void On(Context& context, const Terminated& ended) {
    const auto found = keys_.find(ended.actor);
    if (found == keys_.end()) return;
    const absl::flat_hash_map<Key, int> keys = std::move(found->second);
    keys_.erase(found);
    for (const auto& [key, uses] : keys) {
      services_[key].subscribers.erase(ended.actor);
      if (Remove(key, ended.actor)) {
        Change(context, key);
      } else {
        EraseIfUnused(key);
      }
    }
  }

 private:
  struct Service {
    std::vector<ActorRef> InOrder() const {
      std::vector<ActorRef> services;
      services.reserve(in_order.size());
      for (const auto& [number, service] : in_order) services.push_back(service);
      return services;
    }

    // Maps in both directions between actors and registration numbers: only a listing visits all of
    // them.
    std::map<uint64_t, ActorRef> in_order;
    absl::flat_hash_map<ActorRef, uint64_t> numbers;
    absl::flat_hash_map<ActorRef, SendListing> subscribers;
  };

  bool Remove(const Key& key, ActorRef service) {
    const auto found = services_.find(key);
    if (found == services_.end()) return false;
    const auto number = found->second.numbers.find(service);
    if (number == found->second.numbers.end()) return false;
    found->second.in_order.erase(number->second);
    found->second.numbers.erase(number);
    return true;
  }
  void EraseIfUnused(const Key& key) {
    const auto found = services_.find(key);
    if (found != services_.end() && found->second.in_order.empty() && found->second.subscribers.empty()) {
      services_.erase(found);
    }
  }

  // An actor that ends later is removed when its Terminated arrives.
  static bool HasEnded(ActorRef actor) { return !actor.IsRemote() && !actor.IsCurrent(); }

  // The receptionist watches an actor as long as it is registered or subscribed under any key.
  void Join(Context& context, ActorRef actor, const Key& key) {
    absl::flat_hash_map<Key, int>& keys = keys_[actor];
    const bool is_first = keys.empty();
    ++keys[key];
    if (is_first) context.Watch(actor).IgnoreError();
  }
  void Leave(Context& context, ActorRef actor, const Key& key) {
    const auto found = keys_.find(actor);
    if (--found->second[key] == 0) found->second.erase(key);
    if (!found->second.empty()) return;
    keys_.erase(found);
    context.Unwatch(actor);
  }
  void Change(Context& context, const Key& key) {
    changed_.insert(key);
    if (!std::exchange(is_publishing_, true)) context.Tell(context.self(), PublishChanges{});
  }

  absl::flat_hash_map<Key, Service> services_;
  // How often each actor is registered or subscribed under a key: up to twice per key.
  absl::flat_hash_map<ActorRef, absl::flat_hash_map<Key, int>> keys_;
  absl::flat_hash_set<Key> changed_;
  uint64_t next_number_ = 0;
  bool is_publishing_ = false;
};

}  // namespace
}  // namespace receptionist_internal

Receptionist::Receptionist(ActorSystem& system) : system_(system) {
  const absl::StatusOr<ActorRef> actor =
      system.TrySpawnSystemActor(TypedPropsOf<receptionist_internal::ReceptionistActor>(), "receptionist");
  if (actor.ok()) actor_ = *actor;
}

absl::Status Receptionist::Check(std::string_view call, std::string_view key, ActorRef actor) const {
  if (actor.IsNoOne()) {
    return absl::InvalidArgumentError(absl::StrCat(ToAbsl(call), "(\"", ToAbsl(key),
                                                   "\") got a reference to no one, such as a default TypedRef; pass "
                                                   "the reference of an actor"));
  }
  if (actor_.IsNoOne()) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToAbsl(call), "(\"", ToAbsl(key), "\"): the actor system is ending, and has no receptionist"));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
