#include "fraktor/actor/tree/internal/actor_types.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// Relaxed: only the numbers matter, and each differs from the others.
std::atomic<uint64_t> next_serial{1};

}  // namespace

ActorTypes::ActorTypes(ObservabilityHub* hub, const ActorSlotPool& slots, const TreePaths& paths)
    : hub_(hub), slots_(slots), paths_(paths), serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

[[gnu::noinline]] uint16_t ActorTypes::FindNumberOf(const ActorProps& props) {
  const std::string name(props.type_name());
  uint16_t type = hub_ == nullptr ? 0 : hub_->TypeId(name);
  {
    MutexLock lock(mutex_);
    // Without metrics, this object numbers the types itself.
    if (!HasMetrics()) {
      const size_t next = types_.size() + 1;
      type = types_.try_emplace(name, next <= UINT16_MAX ? static_cast<uint16_t>(next) : uint16_t{0}).first->second;
    }
    if (type != 0) names_.try_emplace(type, name);
  }
  props.memo().store(serial_ << kTypeBits | type, std::memory_order_relaxed);
  return type;
}

std::string ActorTypes::NameOf(uint16_t type) const {
  if (IsObservedActor(type) && HasMetrics()) return hub_->TypeNameOf(type);
  MutexLock lock(mutex_);
  const auto found = names_.find(type);
  return found == names_.end() ? "other" : found->second;
}

absl::Status ActorTypes::Observe(ActorRef actor) {
  if (!HasMetrics()) {
    return absl::FailedPreconditionError(
        "there are no metrics: ObservabilityOptions.enabled is false, or there is no hub");
  }
  const bool is_actor = actor.IsActor();
  if (!is_actor || !slots_.Owns(actor.slot())) {
    return absl::InvalidArgumentError(
        absl::StrCat(is_actor ? std::string("an actor of another system") : paths_.PathOf(actor),
                     " is no actor of this system; observe it where it lives"));
  }
  const std::string type = NameOf(actor.slot()->type.load(std::memory_order_relaxed));
  FRAKTOR_ASSIGN_OR_RETURN(const ObservedId id, hub_->RegisterActor(type, paths_.PathOf(actor)));
  if (TellSystem(actor, MakeEnvelope<ObserveActor>(ActorRef(), id)) == nullptr) return absl::OkStatus();
  hub_->Release(id);
  return absl::NotFoundError(absl::StrCat(paths_.PathOf(actor), " has ended; observe a living actor"));
}

void ActorTypes::StopObserving(ActorRef actor) { TellSystem(actor, MakeEnvelope<UnobserveActor>(ActorRef())); }

void ActorTypes::Forget(ActorSlot& slot) {
  const ObservedId id = slot.type.load(std::memory_order_relaxed);
  if (!HasMetrics() || !IsObservedActor(id)) [[likely]]
    return;
  // Before the id is free: later messages count for the type.
  slot.type.store(hub_->TypeId(hub_->TypeNameOf(id)), std::memory_order_relaxed);
  hub_->Release(id);
}

}  // namespace fraktor::inline v0::actor_internal
